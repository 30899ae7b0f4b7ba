"use strict";
// Draws the charts of a report in the colours of the current theme, and again when the theme changes.
(() => {
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const button = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const asked = new URLSearchParams(location.hash.slice(1)).get("theme");
  let chosen = asked === "dark" || asked === "light" ? asked : null;
  const errors = [];

  const current = () => chosen || (dark.matches ? "dark" : "light");
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const colour = (name) => {  // as a plain colour: the style sheet gives one for each theme
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  // Traces name their colours by role ("series-0", "quiet"), so that one description serves both themes.
  // Only entries called "…color" are, because labels come from data and may look like anything.
  const painted = (value, key = "") => {
    if (Array.isArray(value)) return value.map((item) => painted(item));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, painted(item, name)]));
    return key.endsWith("color") && value.startsWith("$") ? colour(value.slice(1)) : value;
  };

  const axis = (own) => ({
    gridcolor: colour("grid"), linecolor: colour("rule"), zeroline: false, ticks: "", fixedrange: true,
    automargin: true, ...painted(own || {}),
  });

  const layout = (chart) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("quiet") },
    margin: { l: 36, r: 10, t: 8, b: 30 }, hoverlabel: { bgcolor: colour("raised"), font: { color: colour("ink") } },
    ...painted(chart.layout), xaxis: axis(chart.layout.xaxis), yaxis: axis(chart.layout.yaxis),
  });

  const draw = async () => {
    for (const chart of charts) {
      try {
        const place = document.getElementById(chart.id);
        await Plotly.react(place, painted(chart.data), layout(chart), { displayModeBar: false, responsive: true });
      } catch (error) {
        errors.push(`${chart.id}: ${error}`);
      }
    }
  };

  const show = async () => {
    root.dataset.theme = current();
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${current() === "dark" ? "light" : "dark"} theme`);
    await draw();
    root.dataset.errors = errors.join("; ");
    root.dataset.charts = String(document.querySelectorAll(".plot .main-svg:first-of-type").length);
  };

  button.addEventListener("click", () => { chosen = current() === "dark" ? "light" : "dark"; show(); });
  dark.addEventListener("change", show);
  window.addEventListener("error", (event) => { errors.push(event.message); root.dataset.errors = errors.join("; "); });
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((item) => { item.open = true; });
    root.dataset.theme = "light";
    draw();
  });
  window.addEventListener("afterprint", show);
  button.hidden = false;
  show();
})();
