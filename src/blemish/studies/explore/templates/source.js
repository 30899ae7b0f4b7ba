// Where pixels, answers and texts come from: the server that sent the page, or, in an export, what lies beside it.
const state = JSON.parse(document.getElementById("state").textContent);
const $ = (selector, root = document) => root.querySelector(selector);
const errors = [];

function tell(message) {
  const notice = $("#notice");
  notice.textContent = message;
  notice.hidden = !message;
}

// The text of a condition, as the library reads it.
function conditionOf(steps) {
  const parts = steps.filter((step) => step.severity > 0).map((step) => `${step.name}@${levelText(step.severity)}`);
  return parts.join("+") || "clean";
}

function levelText(severity) {
  return String(Math.round(severity * 1e6) / 1e6);
}

// At most one call of a function at a time, and then one with the newest arguments: a slider moves faster than pixels.
function latest(work) {
  let running = false;
  let waiting = null;
  return async function call(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await work(...given);
    } catch (error) {
      failed(error);
    }
    running = false;
    if (waiting) {
      const next = waiting;
      waiting = null;
      call(...next);
    }
  };
}

function failed(error) {
  tell(error.message || String(error));
  errors.push(String(error.message || error));
  document.documentElement.dataset.errors = errors.length;
}

async function get(what, query) {
  let response;
  try {
    response = await fetch(`${what}?${new URLSearchParams(query)}`, { cache: "no-store" });
  } catch {
    throw new Error("The explorer does not answer: it may have been stopped. Start it again, and open its new address.");
  }
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

const live = {
  async pixels(query) {
    const response = await get("pixels", query);
    const [width, height] = response.headers.get("X-Size").split("x").map(Number);
    const image = new ImageData(new Uint8ClampedArray(await response.arrayBuffer()), width, height);
    return { width, height, draw: (context) => context.putImageData(image, 0, 0), made: Number(response.headers.get("X-Milliseconds")) };
  },
  async answers(model, query) {
    return (await get("answers", { ...query, model })).json();
  },
  async copies(query) {
    return (await get("copies", query)).json();
  },
  saved: (query) => `save?${new URLSearchParams(query)}`,
  levels: null,
};

// An export has one picture after the other in a strip, for each corruption, at the severities of `state.levels`.
const strips = new Map();

function strip(file) {
  if (!strips.has(file)) {
    strips.set(file, new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => resolve(image);
      image.onerror = () => reject(new Error(`${file} is missing beside this page, or damaged.`));
      image.src = file;
    }));
  }
  return strips.get(file);
}

const stored = {
  entry(query) {
    const entry = state.stored[query.picture][query.c];
    if (!entry) throw new Error(`${query.c} is not in this export.`);
    return entry;
  },
  async pixels(query) {
    const begun = performance.now();
    const entry = this.entry(query);
    const image = await strip(entry.file);
    const { width, height } = entry;
    return { width, height, draw: (context) => context.drawImage(image, entry.at * width, 0, width, height, 0, 0, width, height), made: performance.now() - begun };
  },
  async answers(model, query) {
    return this.entry(query).answers[model];
  },
  async copies(query) {
    this.entry(query);
    const [name, severity] = query.c.split("@");
    const texts = state.texts[query.picture][name];
    return Object.fromEntries(Object.entries(texts).map(([kind, text]) => [kind, text.replaceAll(state.severity, severity)]));
  },
  saved: () => null,
  levels: state.levels,
};

const source = state.stored ? stored : live;
