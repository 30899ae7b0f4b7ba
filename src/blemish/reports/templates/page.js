"use strict";
// What a page does when it is used: themes, sorting, models that are switched off, severities of examples, and tips.
(() => {
  const root = document.documentElement;
  const errors = [];
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const text = (item) => item.textContent.trim();
  root.dataset.errors = "";
  window.addEventListener("error", (event) => { errors.push(event.message); root.dataset.errors = errors.join("; "); });

  // Themes.
  const button = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const asked = new URLSearchParams(location.hash.slice(1)).get("theme");
  let chosen = asked === "dark" || asked === "light" ? asked : null;
  const current = () => chosen || (dark.matches ? "dark" : "light");
  const paint = () => {
    const other = current() === "dark" ? "light" : "dark";
    root.dataset.theme = current();
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  button.addEventListener("click", () => { chosen = current() === "dark" ? "light" : "dark"; paint(); });
  dark.addEventListener("change", paint);
  button.hidden = false;
  paint();

  // Headings of rows that say the same as the row above are not written twice.
  const again = (table) => {
    let before = null;
    for (const row of all("tbody > tr:not(.off)", table)) {
      const head = row.cells[0];
      head.classList.toggle("again", before !== null && table.dataset.heads === "1" && text(head) === before);
      before = text(head);
    }
  };

  // Tables are sorted by a click on a heading: once up, once down, then as they were.
  const amount = (cell) => {
    const said = text(cell).replace(/\u2212/g, "-").replace(/,(?=\d{3})/g, "").match(/^[<>★≈]?\s*([+-]?\d+(\.\d+)?)/);
    return said ? Number(said[1]) : null;
  };
  const sortable = (table) => {
    const body = table.tBodies[0], rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const press = document.createElement("button");
      press.type = "button";
      press.append(...head.childNodes);
      head.append(press);
      press.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const now = was === "ascending" ? "descending" : was === "descending" ? null : "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        if (now) head.setAttribute("aria-sort", now);
        const sign = now === "descending" ? -1 : 1;
        const numbers = rows.some((row) => amount(row.cells[place]) !== null) && !head.classList.contains("text");
        const key = (row) => numbers ? amount(row.cells[place]) : text(row.cells[place]);
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === null || y === null) return (x === null) - (y === null);  // what has no number comes last
          return sign * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
        };
        body.append(...(now ? [...rows].sort(order) : rows));
        again(table);
      });
    });
  };
  all("table.sortable").forEach(sortable);

  // Models are switched off everywhere: in charts, as rows and as columns of tables, and in answers.
  const models = document.querySelector("details.models");
  const switches = all("input[data-switch]");
  if (models) {
    const number = new Map(switches.map((box) => [text(box.parentElement), box.dataset.switch]));
    for (const table of all("table[data-heads]")) {
      const heads = [...table.tHead.rows[0].cells].map(text);
      heads.forEach((head, place) => {
        for (const row of table.rows) {
          const own = number.get(place === 0 ? "" : head);
          if (own !== undefined) row.cells[place].dataset.m = own;
          if (head === "model" && row.parentElement.tagName === "TBODY" && number.has(text(row.cells[place])))
            row.dataset.m = number.get(text(row.cells[place]));
        }
      });
    }
    const apply = () => {
      const off = new Set(switches.filter((box) => !box.checked).map((box) => box.dataset.switch));
      all("[data-m]").forEach((item) => item.classList.toggle("off", off.has(item.dataset.m)));
      all("table[data-heads]").forEach(again);
      document.getElementById("shown").textContent = `${switches.length - off.size} of ${switches.length}`;
    };
    switches.forEach((box) => box.addEventListener("change", apply));
    document.getElementById("all").addEventListener("click", () => {
      switches.forEach((box) => { box.checked = true; });
      apply();
    });
    document.addEventListener("click", (event) => { if (!models.contains(event.target)) models.open = false; });
    models.addEventListener("keydown", (event) => { if (event.key === "Escape") models.open = false; });
    models.hidden = false;
    apply();
  }

  // Pictures are loaded when they are about to be seen: their data is in the page, and takes memory only then.
  const load = (image) => { image.src = image.dataset.src; image.removeAttribute("data-src"); };
  const eye = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) { eye.unobserve(entry.target); if (entry.target.dataset.src) load(entry.target); }
  }, { rootMargin: "600px" });
  const watch = () => all("img[data-src]").forEach((image) => eye.observe(image));
  watch();

  // Examples at another severity are in templates, so that their pictures are made when they are asked for.
  for (const slider of all("input[data-levels]")) {
    const levels = slider.dataset.levels.split(" ");
    const output = slider.parentElement.querySelector("output");
    slider.addEventListener("input", () => {
      const level = levels[Number(slider.value)];
      output.textContent = level;
      for (const place of all("[data-level]", slider.closest("section"))) {
        if (place.tagName === "TEMPLATE" && place.dataset.level === level) place.replaceWith(place.content.cloneNode(true));
      }
      watch();
      for (const place of all("div[data-level]", slider.closest("section"))) place.hidden = place.dataset.level !== level;
      switches.forEach((box) => {
        all(`[data-level] [data-m="${box.dataset.switch}"]`).forEach((item) => item.classList.toggle("off", !box.checked));
      });
    });
    slider.closest("label").hidden = false;
  }

  // Tips: the mark that is nearest to the pointer says what it stands for.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.hidden = true;
  for (const mark of all("svg.plot .mark")) {
    const title = mark.querySelector("title");
    if (title) { mark.tipText = title.textContent; title.remove(); }
  }
  const nearest = (event) => {
    const chart = event.target.closest("svg.plot");
    let best = null, least = 24;
    for (const mark of chart ? all(".mark", chart) : []) {
      const box = mark.getBoundingClientRect();
      const away = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
      if (box.width && away < least) { best = mark; least = away; }
    }
    tip.hidden = !best || !best.tipText;
    if (tip.hidden) return;
    tip.textContent = best.tipText;
    const box = best.getBoundingClientRect();
    const left = Math.min(Math.max(6, box.x + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 6);
    const above = box.y - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
  };
  document.addEventListener("pointermove", nearest);
  document.addEventListener("pointerdown", nearest);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // What scrolls sideways says so.
  const hints = () => all(".scroll").forEach((place) => {
    const rest = place.scrollWidth - place.clientWidth;
    place.parentElement.classList.toggle("scrolls", rest > 2);
    place.parentElement.classList.toggle("ended", rest - place.scrollLeft <= 2);
  });
  all(".scroll").forEach((place) => place.addEventListener("scroll", hints, { passive: true }));
  all("details").forEach((item) => item.addEventListener("toggle", hints));
  window.addEventListener("resize", hints);
  hints();

  // Printing: everything is open, and on white; afterwards as it was.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("main details:not([open])");
    opened.forEach((item) => { item.open = true; });
    all("img[data-src]").forEach(load);
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => { opened.forEach((item) => { item.open = false; }); paint(); });
  root.dataset.charts = String(all("svg.plot").length);
})();
