// A picture with what is done to it, what models say, and how their confidence falls.
class Pane {
  constructor(number, begin) {
    this.number = number;
    this.seed = begin.seed;
    this.steps = begin.steps.map((step) => ({ ...step }));
    this.moved = 0;
    this.shown = null;
    this.root = $("#pane-template").content.firstElementChild.cloneNode(true);
    this.canvas = $("canvas", this.root);
    this.canvas.id = `picture-${number}`;
    this.context = this.canvas.getContext("2d");
    this.curve = new Curve($(".curve", this.root), (severity) => this.slide(this.moved, severity));
    this.draw = latest(() => this.refresh());
    this.ask = latest(() => this.answers());
    for (const event of ["pointerdown", "focusin"]) this.root.addEventListener(event, () => activate(this));
    $(".add", this.root).addEventListener("click", () => this.add());
    $(".another", this.root).addEventListener("click", () => this.reseed(this.seed + 1));
    $(".seed input", this.root).addEventListener("change", (event) => this.reseed(Number(event.target.value)));
    this.canvas.addEventListener("pointerdown", () => this.clean(true));
    for (const event of ["pointerup", "pointerleave", "pointercancel"]) {
      this.canvas.addEventListener(event, () => this.clean(false));
    }
    if (state.stored) for (const part of [".add", ".seed", ".save"]) $(part, this.root).hidden = true;
    this.controls();
    $("#copies").before(this.root);
  }

  get condition() {
    return conditionOf(this.steps);
  }

  query(condition = this.condition) {
    return { picture: shelf.chosen, c: condition, seed: this.seed };
  }

  // Rows of controls, made anew when corruptions are chosen; while a slider moves they stay.
  controls() {
    const place = $(".steps", this.root);
    const [number, part] = this.focused(place);
    place.replaceChildren(...this.steps.map((step, number) => this.row(step, number)));
    $(".hint", this.root).hidden = this.steps.length > 0;
    $(".add", this.root).hidden = Boolean(state.stored) || this.steps.length >= 2;
    $(".add", this.root).textContent = this.steps.length ? "+ then another" : "+ corruption";
    if (part) (place.children[number] ? $(part, place.children[number]) : $(".add", this.root)).focus();
    this.changed();
  }

  // Which control of which row the keyboard is at: the new one takes its place.
  focused(place) {
    const at = document.activeElement;
    if (!place.contains(at) || !at.matches(":focus-visible")) return [0, null];
    const parts = [".catalogue", ".corruption", ".remove", "input[type=range]"];
    return [[...place.children].findIndex((row) => row.contains(at)), parts.find((part) => at.matches(part))];
  }

  row(step, number) {
    const row = $("#step-template").content.firstElementChild.cloneNode(true);
    const unit = units.get(step.name);
    $("legend", row).textContent = this.steps.length > 1 ? (number ? "then" : "first") : "";
    const [catalogue, corruption] = [$(".catalogue", row), $(".corruption", row)];
    for (const each of state.catalogues) catalogue.add(new Option(`${each.name} (${each.units.length})`, each.name));
    catalogue.value = unit.catalogue;
    fill(corruption, unit.catalogue);
    corruption.value = step.name;
    catalogue.addEventListener("change", () => this.choose(number, firstOf(catalogue.value)));
    corruption.addEventListener("change", () => this.choose(number, corruption.value));
    $(".remove", row).addEventListener("click", () => this.remove(number));
    const slider = $("input[type=range]", row);
    slider.step = source.levels ? source.levels[1] - source.levels[0] : 0.05;
    slider.addEventListener("input", () => {
      this.begun = performance.now();
      this.slide(number, Number(slider.value));
    });
    slider.disabled = unit.only !== null;
    $(".description", row).textContent = unit.description + (unit.only === null ? "" : ` It exists at severity ${levelText(unit.only)} only.`);
    $(".absent", row).textContent = absent(unit.catalogue);
    $(".absent", row).hidden = !$(".absent", row).textContent;
    this.reading(row, step);
    return row;
  }

  reading(row, step) {
    $("input[type=range]", row).value = step.severity;
    $("output", row).textContent = levelText(step.severity);
  }

  choose(number, name) {
    const unit = units.get(name);
    const severity = unit.only ?? (this.steps[number].severity || 3);
    this.steps[number] = { name, severity };
    this.moved = number;
    this.controls();
  }

  add() {
    const used = this.steps.map((step) => step.name);
    const known = ["fog", "gaussian_noise", ...units.keys()].filter((each) => units.has(each) && !units.get(each).missing);
    const name = known.find((each) => !used.includes(each)) ?? known[0];
    this.steps.push({ name, severity: units.get(name).only ?? 2 });
    this.moved = this.steps.length - 1;
    this.controls();
  }

  remove(number) {
    this.steps.splice(number, 1);
    this.moved = 0;
    this.controls();
  }

  slide(number, severity) {
    const step = this.steps[number];
    if (!step || units.get(step.name).only !== null) return;
    step.severity = nearest(Math.min(5, Math.max(0, severity)));
    this.moved = number;
    this.reading($(".steps", this.root).children[number], step);
    this.changed();
  }

  reseed(seed) {
    this.seed = Math.min(2 ** 31 - 1, Math.max(0, Math.floor(seed) || 0));
    $(".seed input", this.root).value = this.seed;
    this.changed();
  }

  changed() {
    this.begun = this.begun ?? performance.now();
    this.draw();
    if (active === this) copies.refresh();
  }

  async refresh() {
    const query = this.query();
    const [picture, begun] = [$(".picture", this.root), this.begun ?? performance.now()];
    this.begun = null;
    const patience = setTimeout(() => {
      picture.dataset.waiting = "making it … kernels may be compiled the first time";
      picture.classList.add("waiting");
    }, 700);
    try {
      this.shown = await source.pixels(query);
    } finally {
      clearTimeout(patience);
      picture.classList.remove("waiting");
    }
    this.paint(this.shown);
    const title = `${"AB"[this.number]} · ${query.c.replaceAll("@", " ").replaceAll("+", " + ")}`;
    $("h2", this.root).textContent = title;
    this.canvas.setAttribute("aria-label", `${shelf.name} under ${query.c}`);
    this.root.dataset.condition = query.c;
    this.root.dataset.seed = query.seed;
    this.root.dataset.picture = query.picture;
    this.root.dataset.milliseconds = performance.now() - begun;
    $(".time", this.root).textContent = state.stored ? "" : `${this.shown.made.toFixed(1)} ms`;
    const saved = source.saved(query);
    if (saved) $(".save", this.root).href = saved;
    this.ask();
  }

  paint(shown) {
    if (this.canvas.width !== shown.width || this.canvas.height !== shown.height) {
      [this.canvas.width, this.canvas.height] = [shown.width, shown.height];
    }
    shown.draw(this.context);
  }

  // Beneath a finger or the mouse, the clean picture: what has changed is seen best in one place.
  async clean(wanted) {
    if (!this.shown) return;
    this.held = wanted;
    if (!wanted) return this.paint(this.shown);
    const clean = await source.pixels(this.query("clean"));
    if (this.held) this.paint(clean); // unless it was let go meanwhile
  }

  async answers() {
    if (!state.models.length) return;
    const query = this.query();
    const place = $(".answers", this.root);
    place.classList.add("stale");
    const told = [];
    for (const model of state.models.keys()) told.push(await source.answers(model, query));
    place.replaceChildren(...told.map((said, model) => answerList(said, model)));
    place.classList.remove("stale");
    place.dataset.condition = query.c;
    if (query.c !== this.condition) return;
    const step = this.steps[this.moved];
    const falls = step && units.get(step.name).only === null;
    this.curve.follow(falls ? step : null, this, query);
  }
}

function answerList(said, model) {
  const box = document.createElement("div");
  box.className = `model s${model % 4}`;
  const title = document.createElement("h3");
  title.textContent = state.models[model];
  const list = document.createElement("ol");
  for (const each of said.top) {
    const line = document.createElement("li");
    line.style.setProperty("--share", each.confidence);
    line.classList.toggle("before", each.class === said.clean.class);
    const [name, share] = [document.createElement("span"), document.createElement("span")];
    name.textContent = name.title = each.name;
    share.textContent = `${(100 * each.confidence).toFixed(1)} %`;
    line.append(name, share);
    list.append(line);
  }
  box.append(title, list);
  return box;
}

const units = new Map();
for (const catalogue of state.catalogues) {
  for (const unit of catalogue.units) units.set(unit.name, { ...unit, catalogue: catalogue.name });
}

function firstOf(catalogue) {
  const members = state.catalogues.find((each) => each.name === catalogue).units;
  return (members.find((unit) => !unit.missing) ?? members[0]).name;
}

function fill(select, catalogue) {
  const groups = new Map();
  for (const unit of state.catalogues.find((each) => each.name === catalogue).units) {
    const option = new Option(unit.title + (unit.missing ? " (not on this machine)" : ""), unit.name);
    option.disabled = Boolean(unit.missing);
    if (!groups.has(unit.family)) groups.set(unit.family, Object.assign(document.createElement("optgroup"), { label: unit.family }));
    groups.get(unit.family).append(option);
  }
  select.replaceChildren(...groups.values());
}

// Why some of a catalogue cannot be made here.
function absent(catalogue) {
  const without = state.catalogues.find((each) => each.name === catalogue).units.filter((unit) => unit.missing);
  const reasons = [...new Set(without.map((unit) => unit.missing))];
  return reasons.map((reason) => `${without.filter((unit) => unit.missing === reason).map((unit) => unit.title).join(", ")}: ${reason}`).join(" ");
}

function nearest(severity) {
  if (!source.levels) return Math.round(severity * 100) / 100;
  return source.levels.reduce((best, each) => (Math.abs(each - severity) < Math.abs(best - severity) ? each : best));
}
