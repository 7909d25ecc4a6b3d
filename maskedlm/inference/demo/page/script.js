// A tab for each question, with a form and an answer below it.
// An address such as /?tab=mask&text=... is answered at once and can be shared.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const percent = (p) => (100 * p).toFixed(p < 0.0995 ? 1 : 0) + "%";

// Returns an element. Text is never parsed as markup.
function make(tag, properties = {}, ...children) {
  const { className, ...attributes } = properties;
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// --- Rendering answers ---

function bar(share, usual = null) {
  const track = make("div", { className: "bar" }, make("i"));
  track.firstChild.style.width = 100 * Math.min(Math.max(share, 0), 1) + "%";
  if (usual !== null) {
    const tick = make("u");
    tick.style.left = 100 * Math.min(Math.max(usual, 0), 1) + "%";
    track.append(tick);
  }
  return track;
}

// rows: [[name, share from 0 to 1, class of its bar]]; full: share of a full bar.
function bars(rows, caption, number = percent, full = 1) {
  const table = make("table", { className: "bars" });
  if (caption) table.append(make("caption", {}, caption));
  table.append(make("tbody", {}, ...rows.map(([name, share, kind]) => make("tr", { className: kind },
    make("th", { scope: "row", dir: "auto" }, name),
    make("td", { className: "track" }, bar(share / full)),
    make("td", { className: "number" }, number(share))))));
  return table;
}

function showFilled({ pieces, masks }) {
  const text = make("p", { className: "text", dir: "auto" }, pieces[0]);
  masks.forEach((words, i) => {
    text.append(make("mark", {}, words[0].word), pieces[i + 1]);
  });
  // The best candidate has a full bar, however small its probability is.
  const cards = masks.map((words, i) => make("div", { className: "card" },
    bars(words.map((w) => [w.word, w.probability]),
      masks.length > 1 ? `Candidates of mask ${i + 1}` : "Candidates",
      percent, Math.max(...words.map((w) => w.probability)) || 1)));
  return [text, make("div", { className: "cards" }, ...cards)];
}

function showCompared({ words, layers, standardised }) {
  const [a, b] = words;
  const cards = [cosines(layers, `Cosine of “${a}” in the first and “${b}” in the second ` +
    "sentence. “usual” is the mean over pairs of different words: only cosines " +
    "above it are informative.")];
  if (standardised.length) cards.push(cosines(standardised, "The same of standardised vectors: minus " +
    "the mean of a corpus, divided by its standard deviation."));
  return cards;
}

function cosines(rows, caption) {
  const head = make("tr", {}, make("th", { scope: "col" }, "Layer"),
    make("th", { scope: "col", className: "track" }, ""),
    make("th", { scope: "col", className: "number" }, "cosine"),
    make("th", { scope: "col", className: "number usual" }, "usual"));
  const body = rows.map(({ layer, cosine, usual }) => make("tr", {},
    make("th", { scope: "row" }, layer ? String(layer) : "embeddings"),
    make("td", { className: "track" }, bar(cosine, usual)),
    make("td", { className: "number" }, cosine.toFixed(2)),
    make("td", { className: "number usual" }, usual === null ? "–" : usual.toFixed(2))));
  return make("div", { className: "card" }, make("table", { className: "bars" },
    make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)));
}

let chosenHead = 0;

function showAttention({ tokens, weights }) {
  chosenHead = Math.min(chosenHead, weights.length - 1);
  const map = make("div", { className: "scroll", tabindex: "0", role: "region", "aria-label": "Map of the head" });
  const readout = make("p", { className: "readout", "aria-live": "polite" });
  const end = make("span");
  const scale = make("p", { className: "scale" }, "0%", make("i"), end, "of the attention");
  const buttons = weights.map((head, h) => {
    const button = make("button", { type: "button" }, thumbnail(head), `Head ${h + 1}`);
    button.addEventListener("click", () => choose(h));
    return button;
  });
  function choose(h) {
    chosenHead = h;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === h)));
    map.replaceChildren(heatmap(tokens, weights[h], readout));
    end.textContent = percent(largest(weights[h]));
    readout.textContent = "Rows attend to columns; point at a cell to read its share.";
  }
  choose(chosenHead);
  return [make("div", { className: "heads", role: "group", "aria-label": "Heads" }, ...buttons),
    make("div", { className: "card" }, map, scale, readout)];
}

const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const largest = (rows) => Math.max(...rows.map((row) => Math.max(...row)));

function thumbnail(rows) {
  const side = rows.length;
  const canvas = make("canvas", { width: side, height: side, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const most = largest(rows);
  context.fillStyle = styled("--accent");
  rows.forEach((row, i) => row.forEach((share, j) => {
    context.globalAlpha = share / most;
    context.fillRect(j, i, 1, 1);
  }));
  return canvas;
}

function heatmap(tokens, rows, readout) {
  const long = tokens.length > 20;
  const most = largest(rows);
  const flip = Number(styled("--flip"));
  const columns = tokens.map((token) => make("th", { scope: "col" }, make("span", {}, token)));
  const body = rows.map((row, i) => {
    const name = make("th", { scope: "row" }, tokens[i]);
    const cells = row.map((share, j) => {
      const cell = make("td", {}, long || share < 0.005 ? "" : (100 * share).toFixed(0));
      cell.style.background = `color-mix(in srgb, var(--accent) ${100 * share / most}%, var(--card))`;
      cell.classList.toggle("dark", share > flip * most);
      cell.addEventListener("pointerenter", () => {
        $$(".at", cell.closest("table")).forEach((old) => old.classList.remove("at"));
        name.classList.add("at");
        columns[j].classList.add("at");
        readout.textContent = `“${tokens[i]}” gives ${percent(share)} of its attention to “${tokens[j]}”.`;
      });
      return cell;
    });
    return make("tr", {}, name, ...cells);
  });
  const table = make("table", { className: long ? "map long" : "map" },
    make("thead", {}, make("tr", {}, make("td"), ...columns)),
    make("tbody", {}, ...body));
  table.style.setProperty("--count", tokens.length);
  return table;
}

// A type keeps its colour (.type0, ...) as long as the page is open.
const TYPES = 7;
const seenTypes = new Map();

function colourOf(type) {
  if (!seenTypes.has(type)) seenTypes.set(type, seenTypes.size % TYPES);
  return `type type${seenTypes.get(type)}`;
}

// The type of a tag such as B-PER; null for O.
const typeOf = (tag) => (tag === "O" ? null : tag.replace(/^[BIES]-/, ""));

// Renders the fields that a prediction has, whatever the model's task.
function showPrediction({ prediction, texts, cut }) {
  const { text, tokens, tags, entities, probabilities, cosines, nbest, ...others } = prediction;
  const card = make("div", { className: "card" });
  if (entities) {
    card.append(highlighted(text, entities));
    card.append(entities.length
      ? bars(entities.map((e) => [`${e.text}: ${e.type}`, e.score, colourOf(e.type)]), "Found")
      : make("p", {}, "Nothing was found."));
  } else if (tags) {
    card.append(make("ul", { className: "words", dir: "auto" }, ...tokens.map((token, i) => make("li", { title: percent(probabilities[i]), className: typeOf(tags[i]) && colourOf(typeOf(tags[i])) },
      token, make("small", {}, tags[i])))));
    if (others.tree) card.append(make("pre", { dir: "auto" }, indented(others.tree)));
  } else {
    const facts = Object.entries(others).filter(([, value]) =>
      value !== "" && (typeof value !== "object" || Array.isArray(value)));
    if (facts.length) card.append(make("dl", {}, ...facts.flatMap(([name, value]) => [
      make("dt", {}, name.replaceAll("_", " ")), make("dd", { dir: "auto" }, fact(value))])));
    if (nbest) {
      card.append(bars(nbest.slice(0, 8).map((n) => [n.answer || "(no answer)", n.score]), "Answers"));
    } else if (probabilities) {
      card.append(bars(...ranked(probabilities, texts, "Probabilities")));
    } else if (cosines) {
      card.append(bars(...ranked(cosines, texts, "Cosines"), (cosine) => cosine.toFixed(2)));
    }
  }
  if (cut) card.append(make("p", {}, cut));
  return [card];
}

// Returns a bracketed tree with a line for each bracket.
function indented(tree) {
  let depth = 0;
  return tree.replace(/ ?\(|\)/g, (mark, place) => {
    depth += mark === ")" ? -1 : 1;
    return mark === ")" || !place ? mark : `\n${"  ".repeat(depth - 1)}(`;
  });
}

function fact(value) {
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  return Array.isArray(value) ? value.map(fact).join(", ") || "none" : String(value);
}

// Returns rows of bars and a caption. Numbers in a list belong to the last texts.
function ranked(shares, texts, caption) {
  const names = Array.isArray(shares) && shares.length < texts.length ? texts.slice(-shares.length) : null;
  const rows = Object.entries(shares).map(([name, share]) => [names ? names[name] : name, share]);
  rows.sort((a, b) => b[1] - a[1]);
  const most = 12;
  return [rows.slice(0, most), rows.length > most ? `${caption}, the ${most} highest of ${rows.length}` : caption];
}

// Of nested entities, only the outermost are marked.
function highlighted(text, entities) {
  const characters = [...text];  // Offsets count characters as Python does.
  const paragraph = make("p", { className: "text", dir: "auto" });
  let end = 0;
  for (const e of entities.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (e.start < end) continue;
    paragraph.append(characters.slice(end, e.start).join(""),
      make("mark", { className: colourOf(e.type) }, characters.slice(e.start, e.end).join(""), make("b", {}, e.type)));
    end = e.end;
  }
  paragraph.append(characters.slice(end).join(""));
  return paragraph;
}

const SHOW = { fill: showFilled, compare: showCompared, attend: showAttention, label: showPrediction };

// --- Asking ---

async function ask(path, options) {
  let response, value;
  try {
    response = await fetch(path, options);
    value = await response.json();
  } catch {
    throw new Error("The demo doesn't answer: was it stopped in the terminal?");
  }
  if (!response.ok) throw new Error(value.error);
  return value;
}

async function submit(form) {
  const fields = Object.fromEntries(new FormData(form));
  for (const select of $$("[data-number]", form)) fields[select.name] = Number(select.value);
  const panel = form.closest("section");
  const result = $(".result", panel);
  const button = $(".go", form);
  button.disabled = true;
  result.setAttribute("aria-busy", "true");
  try {
    const answer = await ask("/api/" + form.dataset.answer, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(fields),
    });
    result.replaceChildren(...SHOW[form.dataset.answer](answer));
    history.replaceState(null, "", "?" + new URLSearchParams({ tab: panel.id, ...fields }));
  } catch (error) {
    result.replaceChildren(make("p", { className: "error", role: "alert" }, error.message));
  }
  button.disabled = false;
  result.removeAttribute("aria-busy");
}

function select(id) {
  for (const tab of $$("[role=tab]")) {
    const chosen = tab.getAttribute("aria-controls") === id;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $("#" + tab.getAttribute("aria-controls")).hidden = !chosen;
  }
}

function prepare(about) {
  const { checkpoint, mask, layers, heads, width, masked, tuned } = about;
  $("#about").textContent = `${checkpoint}: ${layers} layers of ${heads} heads, ${width} wide`;
  document.title = `${checkpoint} – maskedlm`;
  $$(".mask-token").forEach((element) => { element.textContent = mask; });
  $("#mask-text").value = masked[0];
  $("#mask-examples").append(...masked.slice(1).map((text) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      $("#mask-text").value = text;
      submit(button.form);
    });
    return button;
  }));
  $("#compare-first").value = "She sat on the bank of the river.";
  $("#compare-second").value = "The bank lent her the money.";
  $("#compare-word").value = "bank";
  $("#attention-text").value = "The cat sat on the mat because it was tired.";
  for (let i = 1; i <= layers; i++) {
    $("#attention-layer").append(make("option", { value: i }, `${i} of ${layers}`));
  }
  $("#attention-layer").value = layers;
  const models = $("#label-model");
  models.append(...tuned.map(({ path, kind }, i) => make("option", { value: i }, `${path} (${kind})`)));
  const exemplify = () => { $("#label-text").value = tuned[models.value].example; };
  models.addEventListener("change", () => {
    exemplify();
    $("#label .result").replaceChildren();
  });
  if (tuned.length) {
    exemplify();
  } else {
    $("#label form").replaceChildren(make("p", {}, "No fine-tuned model is open. Start the demo with one: ",
      make("code", {}, `maskedlm demo --checkpoint ${checkpoint} --finetuned runs/ner`)));
  }
}

// Fills in the form named in the address, and submits it if fields are given.
function follow(query) {
  const panel = $$("[role=tabpanel]").find((p) => p.id === query.get("tab")) ?? $("#mask");
  select(panel.id);
  const form = $("form", panel);
  const filled = $$("[name]", form).filter((field) => query.has(field.name));
  for (const field of filled) {
    const was = field.value;
    field.value = query.get(field.name);
    if (field.matches("select") && field.selectedIndex < 0) field.value = was;  // An option of another model.
  }
  if (filled.length) submit(form);
}

async function start() {
  for (const tab of $$("[role=tab]")) {
    tab.addEventListener("click", () => select(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const tabs = $$("[role=tab]");
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  }
  for (const form of $$("form")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit(form);
    });
  }
  for (const area of $$("textarea")) {
    area.addEventListener("keydown", (event) => {
      const isOneLine = area.id !== "label-text";
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (isOneLine && !event.shiftKey))) {
        event.preventDefault();
        area.form.requestSubmit();
      }
    });
  }
  $("#insert-mask").addEventListener("click", () => {
    const area = $("#mask-text");
    area.setRangeText($(".mask-token").textContent, area.selectionStart, area.selectionEnd, "end");
    area.focus();
  });
  $("#attention-layer").addEventListener("change", (event) => event.target.form.requestSubmit());
  try {
    prepare(await ask("/api/about"));
  } catch (error) {
    $("main").prepend(make("p", { className: "error", role: "alert" }, error.message));
  }
  follow(new URLSearchParams(location.search));
}

start();
