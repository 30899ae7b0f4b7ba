// Confidence over severity, point by point in the background, coarse ones first.
const SVG = "http://www.w3.org/2000/svg";
const [HEIGHT, LEFT, RIGHT, BOTTOM, TOP] = [140, 36, 8, 20, 8];

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// 0, 5, 2.5, … down to steps of a quarter.
function coarseFirst() {
  if (source.levels) return [...source.levels];
  const order = [0, 5];
  for (const step of [2.5, 1.25, 0.5, 0.25]) {
    for (let at = 0; at <= 5; at += step) if (!order.includes(at)) order.push(at);
  }
  return order;
}

class Curve {
  constructor(figure, pick) {
    this.figure = figure;
    this.key = null;
    this.points = [];
    this.svg = shape("svg", { role: "img" });
    figure.append(this.svg);
    this.svg.addEventListener("click", (event) => {
      pick((5 * (event.clientX - this.svg.getBoundingClientRect().left - LEFT)) / (this.width() - LEFT - RIGHT));
    });
    new ResizeObserver(() => this.key && this.draw()).observe(figure);
  }

  // A unit of the drawing is a pixel, so that letters are as large on a phone.
  width() {
    return Math.max(150, Math.round(this.svg.getBoundingClientRect().width));
  }

  // Begin anew where anything but this severity has changed; else only move the mark.
  follow(step, pane, query) {
    this.figure.hidden = !step;
    if (!step) {
      this.key = null;
      return;
    }
    const others = pane.steps.map((each) => (each === step ? `${each.name}@` : `${each.name}@${each.severity}`));
    const key = JSON.stringify([query.picture, query.seed, others]);
    this.now = step.severity;
    this.over = pane.steps.length > 1 ? `the severity of ${step.name}` : "severity";
    if (key !== this.key) {
      this.key = key;
      this.points = state.models.map(() => new Map());
      delete this.figure.dataset.complete;
      this.compute(key, pane, step, query);
    }
    this.draw();
  }

  async compute(key, pane, step, query) {
    const steps = pane.steps.map((each) => ({ ...each }));
    const moved = pane.steps.indexOf(step);
    try {
      for (const severity of coarseFirst()) {
        for (const model of state.models.keys()) {
          steps[moved].severity = severity;
          const said = await source.answers(model, { ...query, c: conditionOf(steps) });
          if (key !== this.key) return;
          this.points[model].set(severity, { share: said.clean.confidence, kept: said.top[0].class === said.clean.class, name: said.clean.name });
        }
        this.draw();
      }
      this.figure.dataset.complete = "yes";
    } catch (error) {
      failed(error);
    }
  }

  draw() {
    const width = this.width();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const x = (severity) => LEFT + (severity / 5) * (width - LEFT - RIGHT);
    const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(shape("line", { class: "grid", x1: x(0), x2: x(5), y1: y(share), y2: y(share) }));
      parts.push(shape("text", { x: LEFT - 5, y: y(share) + 3, "text-anchor": "end" }, `${100 * share}%`));
    }
    for (let severity = 0; severity <= 5; severity++) {
      parts.push(shape("text", { x: x(severity), y: HEIGHT - 5, "text-anchor": "middle" }, severity));
    }
    parts.push(shape("line", { class: "now", x1: x(this.now), x2: x(this.now), y1: TOP, y2: HEIGHT - BOTTOM }));
    this.points.forEach((points, model) => {
      const group = shape("g", { class: `s${model % 4}` });
      const sorted = [...points].sort((a, b) => a[0] - b[0]);
      const line = sorted.map(([severity, point], i) => `${i ? "L" : "M"}${x(severity)} ${y(point.share)}`).join("");
      if (line) group.append(shape("path", { d: line }));
      for (const [severity, point] of sorted) {
        const dot = shape("circle", { cx: x(severity), cy: y(point.share), r: 2.6, class: point.kept ? "kept" : "changed" });
        dot.append(shape("title", {}, `${state.models[model]} at severity ${levelText(severity)}: ${(100 * point.share).toFixed(1)} % for ${point.name}`));
        group.append(dot);
      }
      parts.push(group);
    });
    this.svg.replaceChildren(...parts);
    const names = [...new Set(this.points.map((points) => points.get(0)?.name).filter(Boolean))];
    const caption = `Confidence in the clean answer${names.length === 1 ? ` (${names[0]})` : ""} over ${this.over}; hollow where another answer leads.`;
    $("figcaption", this.figure).textContent = caption;
    this.svg.setAttribute("aria-label", caption);
  }
}
