"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const INK = "#1f2328", GRID = "#e4e7eb", MARKERS = 7;
const PRINTED = {autosize: false, width: 335, height: 240};
const CONFIG = {
  displaylogo: false,
  responsive: true,
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  toImageButtonOptions: {format: "svg"},
};
const narrow = matchMedia("(max-width: 640px)");
const touch = matchMedia("(pointer: coarse)");
let printing = false;

const plain = text => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// A logarithmic axis has no place for zero: what is below its floor is drawn there.
const raised = (values, floor) => floor === null ? values : values.map(v => Math.max(v, floor));

// Markers at even slots, shifted from learner to learner so that they do not cover each other.
function markerSizes(t, learner, learners, size) {
  const last = t[t.length - 1], sizes = t.map(() => 0);
  for (let k = 0; k < MARKERS; k++) {
    const place = (k + (learner + 1) / (learners + 1)) * last / MARKERS;
    sizes[t.findIndex(slot => slot >= place)] = size;
  }
  return sizes;
}

function traces(panel, measure, view) {
  const {t, learners} = panel, {curves, floor} = panel.measures[measure];
  const raise = values => raised(values, view.log[measure] ? floor : null);
  const bands = [], lines = [];
  curves.forEach(({mean, band, plotted, published}, i) => {
    const {label, colour, symbol} = learners[i];
    const shared = {
      type: "scatter", legendgroup: label, name: plain(label), showlegend: false,
      visible: !view.hidden.has(i),
    };
    if (band) {
      const [low, high] = band.map(raise);
      bands.push({
        ...shared, x: [...t, ...t.toReversed()], y: [...high, ...low.toReversed()],
        mode: "lines", line: {width: 0}, fill: "toself", fillcolor: colour + "22",
        hoverinfo: "skip", meta: "band",
      });
    }
    const range = band ? " (%{customdata[1]:,.5~g} to %{customdata[2]:,.5~g})" : "";
    lines.push({
      ...shared, x: t, y: raise(mean), mode: "lines+markers", meta: "mean",
      line: {color: colour, width: plotted ? 2.4 : 1.5},
      marker: {
        color: colour, symbol, opacity: 1, line: {color: "#fff", width: 0.7},
        size: markerSizes(t, i, learners.length, plotted ? 8 : 7),
      },
      customdata: mean.map((value, k) => band ? [value, band[0][k], band[1][k]] : [value]),
      hovertemplate: `${plain(label)}: <b>%{customdata[0]:,.5~g}</b>${range}<extra></extra>`,
    });
    if (published) {
      const [x, y] = published;
      lines.push({
        ...shared, x, y: raise(y), mode: "lines", meta: "published",
        visible: shared.visible && view.published,
        line: {color: colour, width: 1.4, dash: "5px,3px"}, customdata: y,
        hovertemplate: `${plain(label)}, published: %{customdata:,.5~g}<extra></extra>`,
      });
    }
  });
  return [...bands, ...lines];
}

// What fits the frame: the paper's learners, or all if asked or if the paper's are hidden.
function frame(panel, measure, view) {
  const {curves, floor} = panel.measures[measure];
  const shown = curves.filter((curve, i) => !view.hidden.has(i));
  const papers = shown.filter(curve => curve.plotted);
  const values = (view.all || view.log[measure] || !papers.length ? shown : papers)
    .flatMap(({mean, band, published}) => [mean, ...(band ?? []), published ? published[1] : []])
    .flat();
  if (!values.length) return undefined;
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  if (view.log[measure]) {
    const low = Math.log10(floor), high = Math.log10(Math.max(greatest, 10 * floor));
    return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
  }
  const margin = 0.04 * (greatest - least) || 1;
  return [least - margin, greatest + margin];
}

const axis = (title, more) => ({
  title: {text: plain(title), standoff: 8}, gridcolor: GRID, zeroline: false, linecolor: INK,
  showline: true, ticks: "outside", ticklen: 4, automargin: true, exponentformat: "none",
  separatethousands: true, ...more,
});

const linear = range => ({type: "linear", range});

// Decades; the lowest also stands for what is below it.
function logarithmic(range, floor) {
  const powers = [];
  for (let k = Math.round(Math.log10(floor)); k <= range[1]; k++) powers.push(k);
  const words = powers.map(k => Math.abs(k) > 3 ? `10<sup>${k}</sup>` : String(10 ** k));
  words[0] = `≤ ${words[0]}`;
  return {type: "log", range, tickvals: powers.map(k => 10 ** k), ticktext: words};
}

function layout(x, y, more) {
  return {
    ...(printing ? PRINTED : {autosize: true, height: narrow.matches ? 280 : 330}),
    margin: {l: 52, r: 22, t: touch.matches && !printing ? 32 : 8, b: 40},
    font: {family: "system-ui, sans-serif", size: printing ? 10 : 12, color: INK},
    paper_bgcolor: "#fff", plot_bgcolor: "#fff",
    hovermode: narrow.matches ? "closest" : "x unified",
    hoverlabel: {bgcolor: "rgba(255,255,255,0.92)", font: {size: 12}},
    // On a touch screen a finger scrolls the page; the toolbar still zooms.
    dragmode: touch.matches ? false : "zoom",
    xaxis: x, yaxis: y, ...more,
  };
}

function draw(block) {
  const panel = data[block.id], view = block.view, last = panel.t[panel.t.length - 1];
  for (const plot of block.querySelectorAll("[data-measure]")) {
    const measure = plot.dataset.measure, logs = view.log;
    const x = axis("slot t", {
      hoverformat: ",d", ...(logs.t ? {type: "log", range: [0, Math.log10(last)]} : linear([0, last])),
    });
    const range = frame(panel, measure, view), {floor} = panel.measures[measure];
    const y = axis("", logs[measure] && range ? logarithmic(range, floor) : linear(range));
    const kept = JSON.stringify([logs, view.all, [...view.hidden], printing]);
    Plotly.react(plot, traces(panel, measure, view), layout(x, y, {uirevision: kept}), CONFIG);
    const note = plot.parentElement.querySelector(".outside");
    if (note) note.hidden = logs[measure] || view.all;
  }
}

function drawQueue(plot) {
  const {t, mean, largest} = data[plot.dataset.queue].queue;
  const step = (y, name, colour, more) => ({
    type: "scatter", mode: "lines", x: t, y, name, showlegend: false,
    line: {shape: "hv", width: 1.4, color: colour},
    hovertemplate: `${name}: %{y:,.4~g}<extra></extra>`, ...more,
  });
  const steps = [
    step(largest, "largest of the seeds", "#56B4E9", {fill: "tozeroy", fillcolor: "#56B4E933"}),
    step(mean, "mean of the seeds", "#0072B2"),
  ];
  const x = axis("slot t", {hoverformat: ",d", range: [0, t[t.length - 1]]});
  const size = printing ? {height: 180} : {height: 220};
  Plotly.react(plot, steps, layout(x, axis("", {rangemode: "tozero"}), size), CONFIG);
}

// Everything that is drawn, with what draws it.
const found = [[".panel", draw], ["[data-queue]", drawQueue]]
  .flatMap(([kind, how]) => [...document.querySelectorAll(kind)].map(block => [block, how]));

function listen(block, redraw) {
  const view = block.view = {hidden: new Set(), published: true, all: false, log: {}};
  const read = input => {
    const [name, of] = input.name.split("-");
    if (name === "log") view.log[of] = input.checked;
    else view[name] = input.checked;
  };
  for (const input of block.querySelectorAll("input")) {
    input.checked = input.defaultChecked;
    read(input);
    input.addEventListener("change", () => { read(input); redraw(block); });
  }
  for (const key of block.querySelectorAll(".key")) {
    key.addEventListener("click", () => {
      const learner = Number(key.dataset.learner), hide = !view.hidden.has(learner);
      view.hidden[hide ? "add" : "delete"](learner);
      key.setAttribute("aria-pressed", String(!hide));
      redraw(block);
    });
  }
}

const drawAll = () => found.forEach(([block, how]) => how(block));

addEventListener("beforeprint", () => { printing = true; drawAll(); });
addEventListener("afterprint", () => { printing = false; drawAll(); });
narrow.addEventListener("change", drawAll);

found.forEach(([block, how]) => listen(block, how));
// One after another, so that the page can be read and scrolled while the plots appear.
(async () => {
  for (const [block, how] of found) {
    how(block);
    await new Promise(resolve => setTimeout(resolve));
  }
  document.documentElement.dataset.drawn = "true";
})();
