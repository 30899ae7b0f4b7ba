// A walk from corruption to corruption, as a film.
const film = {
  frames: state.film ?? [],
  at: 0,
  playing: false,

  begin() {
    if (!$("#film")) return;
    this.canvas = $("#film-picture");
    this.context = this.canvas.getContext("2d");
    this.slider = $("#film-at");
    this.slider.max = this.frames.length - 1;
    this.show = latest(async (at) => this.paint(at, await this.pixels(at)));
    this.ask = latest(async (at) => this.answers(at));
    this.slider.addEventListener("input", () => {
      this.stop();
      this.show(Number(this.slider.value));
    });
    $("#film-play").addEventListener("click", () => this.toggle());
    new ResizeObserver(() => this.curves()).observe($("#film-curves"));
    this.curves();
    this.show(0);
  },

  pixels(at) {
    return source.pixels({ picture: shelf.chosen, c: this.frames[at].c, seed: panes[1].seed });
  },

  paint(at, shown) {
    this.at = at;
    if (this.canvas.width !== shown.width) [this.canvas.width, this.canvas.height] = [shown.width, shown.height];
    shown.draw(this.context);
    this.slider.value = at;
    const frame = this.frames[at];
    const words = frame.parts.filter((part) => part[1] > 0).map(([name, severity]) => `${name} ${levelText(severity)}`);
    const hold = frame.accuracy === null ? "" : ` · calibrated accuracy ${(100 * frame.accuracy).toFixed(1)} %`;
    $("#film-caption").textContent = `${at + 1} of ${this.frames.length} · ${words.join(" + ") || "clean"}${hold}`;
    $("#film").dataset.at = at;
    this.mark.setAttribute("transform", `translate(${this.x(at)} 0)`);
    this.ask(at);
  },

  async answers(at) {
    const lines = [];
    for (const [model, name] of state.models.entries()) {
      const said = await source.answers(model, { picture: shelf.chosen, c: this.frames[at].c, seed: panes[1].seed });
      const line = document.createElement("li");
      line.className = `s${model % 4}`;
      const who = document.createElement("b");
      who.textContent = name;
      line.append(who, `: ${said.top[0].name}, ${(100 * said.top[0].confidence).toFixed(0)} %`);
      lines.push(line);
    }
    $("#film-answers").replaceChildren(...lines);
  },

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  },

  stop() {
    this.playing = false;
    $("#film-play").textContent = "Play";
  },

  // The next frame is made while this one is looked at.
  async play() {
    this.playing = true;
    $("#film-play").textContent = "Pause";
    try {
      let at = this.at + 1 < this.frames.length ? this.at + 1 : 0;
      let next = this.pixels(at);
      while (this.playing) {
        const begun = performance.now();
        const shown = await next;
        if (!this.playing) return;
        this.paint(at, shown);
        at = (at + 1) % this.frames.length;
        next = this.pixels(at);
        const rest = 1000 / Number($("#film-rate").value) - (performance.now() - begun);
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, rest)));
      }
      await next;
    } catch (error) {
      this.stop();
      failed(error);
    }
  },

  x(at) {
    return LEFT + (at / Math.max(1, this.frames.length - 1)) * (this.width - LEFT - RIGHT);
  },

  // How strong each corruption is along the walk.
  curves() {
    const names = [...new Set(this.frames.flatMap((frame) => frame.parts.map((part) => part[0])))];
    this.width = Math.max(150, Math.round($("#film-curves").getBoundingClientRect().width));
    const end = this.width - RIGHT;
    const svg = shape("svg", { viewBox: `0 0 ${this.width} 122`, role: "img", "aria-label": "Severities along the walk" });
    const y = (severity) => 8 + (1 - severity / 5) * 92;
    for (const severity of [0, 5]) {
      svg.append(shape("line", { class: "grid", x1: LEFT, x2: end, y1: y(severity), y2: y(severity) }));
      svg.append(shape("text", { x: LEFT - 6, y: y(severity) + 3, "text-anchor": "end" }, severity));
    }
    names.forEach((name, number) => {
      const severities = this.frames.map((frame) => frame.parts.find((part) => part[0] === name)?.[1] ?? 0);
      const line = severities.map((severity, at) => `${this.x(at).toFixed(1)} ${y(severity).toFixed(1)}`).join("L");
      const group = shape("g", { class: `s${number % 4}` });
      group.append(shape("path", { class: "area", d: `M${LEFT} ${y(0)}L${line}L${end} ${y(0)}Z` }));
      const peak = severities.indexOf(Math.max(...severities));
      const label = shape("text", { x: Math.min(end - 40, Math.max(LEFT + 40, this.x(peak))), y: 118, "text-anchor": "middle" }, name);
      if (names.length * 100 <= this.width) group.append(label);
      svg.append(group);
    });
    this.mark = shape("g", {});
    this.mark.append(shape("line", { class: "now", x1: 0, x2: 0, y1: 4, y2: 104 }));
    svg.append(this.mark);
    this.mark.setAttribute("transform", `translate(${this.x(this.at)} 0)`);
    $("#film-curves").replaceChildren(svg);
  },
};
