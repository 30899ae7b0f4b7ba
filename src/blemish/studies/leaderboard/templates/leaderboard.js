"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.errors = "";
  window.addEventListener("error", (event) => { root.dataset.errors += `${event.message}; `; });

  // Tables are sorted by a click on the head of a column: first the best or lowest, then the other way.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    return text === "" ? null : Number.isNaN(Number(text)) ? text.toLowerCase() : Number(text);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column), row]);
        // What is not known stays at the end, whichever way.
        rows.sort(([a], [b]) => (a === null) - (b === null) || (down ? compare(b, a) : compare(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  // Filters.
  const form = document.querySelector(".filters");
  if (form) {
    const status = form.querySelector("[role=status]");
    const fits = (row, asked) =>
      row.dataset.name.includes(asked.name) && row.dataset.data.includes(asked.data)
      && (!asked.web || row.dataset.web === asked.web)
      && (asked.parameters === "" || (row.dataset.parameters !== "" && Number(row.dataset.parameters) <= Number(asked.parameters)));
    const filter = () => {
      const asked = Object.fromEntries([...new FormData(form)].map(([key, text]) => [key, String(text).trim().toLowerCase()]));
      let shown = 0, all = 0;
      for (const ranking of document.querySelectorAll(".ranking")) {
        const wanted = (!asked.tier || ranking.dataset.tier === asked.tier) && ranking.dataset.protocol.includes(asked.protocol);
        let here = 0;
        for (const row of ranking.querySelectorAll("tbody tr")) {
          const fit = wanted && fits(row, asked);
          row.hidden = !fit;
          here += fit;
          all += 1;
        }
        ranking.hidden = !wanted || (here === 0 && ranking.querySelector("tbody") !== null);
        shown += here;
      }
      status.textContent = `${shown} of ${all} lines. Ranks are those among all models of a ranking.`;
    };
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // The first page finds models by name.
  const find = document.getElementById("find");
  if (find) {
    const names = JSON.parse(document.getElementById("names-of-models").textContent);
    const found = document.getElementById("found");
    find.addEventListener("input", () => {
      const text = find.value.trim().toLowerCase();
      const hits = text ? names.filter(([name]) => name.toLowerCase().includes(text)).slice(0, 30) : [];
      found.replaceChildren(...hits.map(([name, slug]) => {
        const item = document.createElement("li"), link = document.createElement("a");
        link.href = `models/${slug}.html`;
        // Long names may be broken after signs, not in the middle of words.
        link.append(...name.split(/(?<=[_\-./])/).flatMap((part) => [part, document.createElement("wbr")]));
        item.append(link);
        return item;
      }));
      found.hidden = hits.length === 0;
    });
  }

  // Hints where something scrolls sideways.
  const hint = () => {
    for (const box of document.querySelectorAll(".sideways")) {
      const inner = box.querySelector(".scroll");
      box.classList.toggle("scrolls", inner.scrollWidth > inner.clientWidth + 4);
      box.classList.toggle("ended", inner.scrollLeft + inner.clientWidth >= inner.scrollWidth - 4);
    }
  };
  for (const inner of document.querySelectorAll(".scroll")) inner.addEventListener("scroll", hint);
  window.addEventListener("resize", hint);
  document.addEventListener("toggle", hint, true);
  hint();
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
})();
