// The page: its pictures, both panes, the texts to copy, the keyboard, and both themes.
const shelf = {
  chosen: state.pictures[0].key,
  get name() {
    return state.pictures.find((picture) => picture.key === this.chosen).name;
  },
  begin() {
    const buttons = state.pictures.map((picture) => {
      const button = document.createElement("button");
      const image = new Image();
      image.src = picture.thumbnail;
      image.alt = picture.name;
      button.type = "button";
      button.title = picture.name;
      button.append(image);
      button.setAttribute("aria-pressed", picture.key === this.chosen);
      button.addEventListener("click", () => this.choose(picture.key));
      return button;
    });
    const [row, at] = [$("#shelf"), state.pictures.findIndex((picture) => picture.key === this.chosen)];
    const held = row.contains(document.activeElement);
    row.replaceChildren(...buttons);
    row.hidden = buttons.length < 2;
    if (held) buttons[at].focus();
    const [left, right] = [buttons[at].offsetLeft - row.offsetLeft, buttons[at].offsetLeft - row.offsetLeft + buttons[at].offsetWidth];
    row.scrollLeft = Math.min(left, Math.max(row.scrollLeft, right - row.clientWidth));
    const picture = state.pictures.find((each) => each.key === this.chosen);
    const models = state.models.length ? "" : "start it with -m MODEL to see what a model says";
    $("#lead").textContent = [picture.name, `${picture.width} × ${picture.height} px`, picture.note, state.note, models].filter(Boolean).join(" · ");
  },
  choose(key) {
    this.chosen = key;
    this.begin();
    for (const pane of panes) pane.changed();
    if ($("#film")) film.show(film.at);
  },
};

const copies = {
  kind: "python",
  texts: {},
  begin() {
    for (const tab of document.querySelectorAll("[data-copy]")) {
      tab.addEventListener("click", () => {
        this.kind = tab.dataset.copy;
        for (const each of document.querySelectorAll("[data-copy]")) each.setAttribute("aria-selected", each === tab);
        this.show();
      });
    }
    $("#copy").addEventListener("click", () => this.copy());
    this.refresh = latest(async () => {
      const query = active.query();
      this.texts = await source.copies(query);
      $("#copies").dataset.condition = query.c;
      this.view = `${"AB"[active.number]}, ${query.c}`;
      this.show();
    });
  },
  show() {
    $("#copy-text").textContent = this.texts[this.kind] ?? "";
    const before = state.stored ? ", before they were stored here" : "";
    $("#copied").textContent =
      this.kind === "toml"
        ? `The corruption of ${this.view}, for all images of a run. Random draws follow an image's path in its folder.`
        : `Text that gives exactly the pixels of ${this.view}${before}.`;
  },
  async copy() {
    const button = $("#copy");
    try {
      await navigator.clipboard.writeText(this.texts[this.kind]);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("#copy-text"));
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  },
};

async function upload(file) {
  if (!file || state.stored) return;
  tell("");
  try {
    if (file.size > state.most) throw new Error(`${file.name}: ${(file.size / 1e6).toFixed(0)} MB; expected at most ${state.most / 1e6} MB`);
    let response;
    try {
      response = await fetch(`pictures?${new URLSearchParams({ name: file.name })}`, { method: "POST", body: file });
    } catch {
      throw new Error(`${file.name}: the explorer did not take it, or does not answer.`);
    }
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    state.pictures = [...state.pictures.filter((picture) => picture.key !== answer.key), answer];
    shelf.choose(answer.key);
  } catch (error) {
    tell(error.message);
  }
}

function activate(pane) {
  if (active === pane) return;
  active = pane;
  for (const each of panes) each.root.classList.toggle("active", each === pane);
  copies.refresh();
}

// The corruption before or behind the chosen one, in its catalogue.
function turn(by) {
  const step = active.steps[active.moved];
  if (!step) return active.add();
  const members = state.catalogues.find((each) => each.name === units.get(step.name).catalogue).units.filter((unit) => !unit.missing);
  const here = members.findIndex((unit) => unit.name === step.name);
  return active.choose(active.moved, members[(here + by + members.length) % members.length].name);
}

const keys = {
  "[": () => turn(-1),
  "]": () => turn(1),
  r: () => !state.stored && active.reseed(active.seed + 1),
  x: () => activate(panes[1 - active.number]),
  h: () => active.held || active.clean(true),
  c: () => copies.copy(),
  d: () => setTheme(isDark() ? "light" : "dark"),
  p: () => $("#film") && film.toggle(),
  "?": () => $("#help").click(),
  ArrowLeft: () => active.slide(active.moved, (active.steps[active.moved]?.severity ?? 0) - (source.levels ? 0.5 : 0.1)),
  ArrowRight: () => active.slide(active.moved, (active.steps[active.moved]?.severity ?? 0) + (source.levels ? 0.5 : 0.1)),
};
for (const severity of "012345") keys[severity] = () => active.slide(active.moved, Number(severity));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("select, input[type=number]")) return;
  if (event.target.matches("input[type=range]") && event.key.startsWith("Arrow")) return; // a slider moves by itself
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

const letGo = () => panes.forEach((pane) => pane.held && pane.clean(false));
document.addEventListener("keyup", (event) => event.key === "h" && letGo());
window.addEventListener("blur", letGo); // what is let go elsewhere is not told

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("#theme").textContent = theme === "dark" ? "Light" : "Dark";
}

window.addEventListener("error", (event) => failed(event));
window.addEventListener("unhandledrejection", (event) => failed(event.reason));

$("#theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
$("#theme").textContent = isDark() ? "Light" : "Dark";
$("#help").addEventListener("click", () => {
  $("#keys").hidden = !$("#keys").hidden;
  $("#help").setAttribute("aria-expanded", !$("#keys").hidden);
});
$("#upload")?.addEventListener("change", (event) => upload(event.target.files[0]));
if (!state.stored) {
  let depth = 0;
  const over = (by) => ($("#drop").hidden = (depth = Math.max(0, depth + by)) === 0);
  document.addEventListener("dragenter", () => over(1));
  document.addEventListener("dragleave", () => over(-1));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    over(0);
    upload(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => upload(event.clipboardData.files[0]));
}

copies.begin();
let active = null;
const panes = [];
shelf.begin();
panes.push(new Pane(0, { seed: state.begin.seed, steps: [] }));
panes.push(new Pane(1, state.begin));
activate(panes[1]);
film.begin();
document.documentElement.dataset.ready = "yes";
