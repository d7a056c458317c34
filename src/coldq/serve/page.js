"use strict";
// Every second the last rounds of each agent, drawn anew. Nothing comes from elsewhere.
const SHOWN = 200, EVERY = 1000, MOST = 20;
const main = document.getElementById("agents"), note = document.getElementById("note");
let token = "", timer = 0;

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

function make(tag, text, parent, space) {
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  if (text !== "") made.textContent = text;
  parent.append(made);
  return made;
}

function plot(title, series, parent) {
  const figure = make("figure", "", parent), svg = make("svg", "", figure, "http://www.w3.org/2000/svg");
  const known = series.flat().filter((v) => v !== null);
  const low = Math.min(0, ...known), high = Math.max(...known, low + 1e-12);
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}, the last ${series[0]?.length ?? 0} rounds`);
  series.forEach((values, k) => {
    const line = make("polyline", "", svg, "http://www.w3.org/2000/svg");
    line.setAttribute("class", `s${k % 4}`);
    const step = 100 / Math.max(values.length - 1, 1);
    line.setAttribute("points", values.map((v, i) => v === null ? "" :
      `${(i * step).toFixed(2)},${(98 - 96 * (v - low) / (high - low)).toFixed(2)}`).join(" "));
  });
  const last = series.map((values) => values.at(-1)).filter((v) => v !== null && v !== undefined);
  make("figcaption", `${title}: ${last.map((v) => v.toPrecision(4)).join(", ") || "-"}`, figure);
}

function columns(history, name) {
  return Object.keys(history).filter((key) => key.startsWith(`${name}_`)).map((key) => history[key]);
}

async function show(name, parent) {
  const [agent, history] = await Promise.all(
    [ask(`/agents/${name}`), ask(`/agents/${name}/history?last=${SHOWN}`)]);
  const section = make("section", "", parent);
  section.dataset.agent = name;
  section.dataset.rounds = history.round.length;
  make("h2", name, section);
  const facts = make("dl", "", section);
  const values = { learner: agent.learner, round: agent.round, "in flight": agent.in_flight.length,
    waiting: agent.waiting.length, decision: agent.x.flat(9).slice(0, 8).map((v) => v.toPrecision(4)).join(", ") };
  for (const [key, value] of Object.entries(values)) {
    const pair = make("div", "", facts);
    make("dt", key, pair);
    make("dd", String(value), pair);
  }
  const plots = make("div", "", section);
  plots.className = "plots";
  const decisions = Object.keys(history).filter((key) => key.startsWith("x_")).slice(0, 8);
  for (const [title, series] of [["decisions", decisions.map((key) => history[key])],
    ["loss", [history.loss]], ["violation", columns(history, "violation")],
    ["queue", columns(history, "queue")], ["margin", columns(history, "margin")]]) {
    if (series.length) plot(title, series, plots);
  }
}

async function draw() {
  try {
    const names = await ask("/agents"), drawn = document.createDocumentFragment();
    for (const name of names.slice(0, MOST)) {
      // An agent that cannot be shown, as its file is damaged, hides no other.
      await show(name, drawn).catch((error) => make("p", `${name}: ${error.message}`, drawn));
    }
    main.replaceChildren(drawn);
    note.textContent = `${names.length} agent${names.length === 1 ? "" : "s"}`;
  } catch (error) {
    note.textContent = error.message;
  }
  timer = setTimeout(draw, EVERY);
}

document.getElementById("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token = document.getElementById("token").value;
  clearTimeout(timer);
  draw();
});
draw();
