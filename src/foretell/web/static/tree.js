// What-if in the page: the operations of the tree are run here, the same list that Python runs.
import { run } from './circuit.js';

const circuit = JSON.parse(document.getElementById('circuit').textContent);
const find = (text, root = document) => [...root.querySelectorAll(text)];
const by = (items, key) => new Map(items.map((item) => [item.dataset[key], item]));
const canvas = document.getElementById('canvas');
const claims = find('.claim');
const cards = by(claims.filter((card) => !('again' in card.dataset)), 'claim');
const shown = new Map();
for (const output of find('[data-p]')) shown.set(output.dataset.p, [...(shown.get(output.dataset.p) ?? []), output]);
const sliders = by(find('[data-set]'), 'set');
const exacts = by(find('[data-exact]'), 'exact');
const pins = by(find('[data-pin]'), 'pin');
const helds = by(find('[data-held]'), 'held');

// What the visitor changed: inputs by name, and claims held at a value.
const inputs = { ...circuit.inputs };
const forced = {};
const base = run(circuit.ops, inputs);
const touched = new Set();
let values = base, resting = 0;

export function percent(p) {
  const near = Math.min(p, 1 - p);
  const digits = near >= 0.0995 || near === 0 ? 0 : near >= 0.00095 ? 1 : 2;
  return `${(100 * p).toFixed(digits)} %`;
}

const valid = (text) => text !== '' && Number(text) >= 0 && Number(text) <= 1;
const places = () => Object.fromEntries(Object.entries(forced).map(([id, p]) => [circuit.claims[id], p]));

function update() {
  const before = values;
  values = run(circuit.ops, inputs, places());
  for (const [id, place] of Object.entries(circuit.claims)) {
    if (values[place] === before[place]) continue;
    for (const output of shown.get(id) ?? []) output.textContent = percent(values[place]);
    cards.get(id)?.classList.toggle('changed', values[place] !== base[place]);
  }
  for (const id of touched) {
    for (const output of shown.get(id) ?? []) output.textContent = percent(inputs[id]);
    cards.get(id)?.classList.toggle('changed', inputs[id] !== circuit.inputs[id]);
  }
  touched.clear();
  tell();
  later(drawLinks);
  clearTimeout(resting);
  resting = setTimeout(slopes, 150);
}

function tell() {
  const place = circuit.claims[circuit.root];
  const moved = 100 * (values[place] - base[place]);
  document.getElementById('answer').textContent = percent(values[place]);
  document.getElementById('answer').value = percent(values[place]);
  document.getElementById('answer').dataset.value = values[place];
  const sets = changes();
  document.getElementById('moved').textContent = sets.length ? `${moved >= 0 ? '+' : '−'}${Math.abs(moved).toFixed(1)} points` : '';
  document.getElementById('reset').disabled = !sets.length;
  document.getElementById('now').hidden = !sets.length;
  const command = document.getElementById('command');
  command.textContent = ['foretell whatif', command.dataset.file, ...sets.map((one) => `--set ${one}`)].join(' ');
  const kept = document.getElementById('sets');
  if (kept) kept.value = sets.join(' ');
}

function changes() {
  const moved = Object.entries(inputs).filter(([id, p]) => p !== circuit.inputs[id]);
  return [...moved, ...Object.entries(forced)].map(([id, p]) => `${id}=${p}`);
}

// P is linear in each input by itself: at 0 and at 1 it takes its ends.
function slopes() {
  const place = circuit.claims[circuit.root];
  for (const row of find('#slopes [data-input]')) {
    const id = row.dataset.input;
    const [low, high] = [0, 1].map((p) => run(circuit.ops, { ...inputs, [id]: p }, places())[place]);
    row.querySelector('[data-now]').textContent = percent(inputs[id]);
    row.querySelector('[data-low]').textContent = percent(low);
    row.querySelector('[data-high]').textContent = percent(high);
  }
}

const waiting = new Set();
function later(work) {
  if (!waiting.size) requestAnimationFrame(() => { const all = [...waiting]; waiting.clear(); all.forEach((one) => one()); });
  waiting.add(work);
}

function setInput(id, p) {
  inputs[id] = p;
  touched.add(id);
  if (sliders.has(id)) sliders.get(id).value = p;
  if (exacts.has(id)) exacts.get(id).value = p;
}

function setPin(id, p) {
  if (p === null) delete forced[id]; else forced[id] = p;
  if (pins.has(id)) pins.get(id).checked = p !== null;
  if (p !== null && helds.has(id)) helds.get(id).value = p;
}

function reset() {
  for (const id of Object.keys(inputs)) if (inputs[id] !== circuit.inputs[id]) setInput(id, circuit.inputs[id]);
  for (const id of Object.keys(forced)) setPin(id, null);
  update();
}

// --- the shape: a graph where there is room, else an outline -------------------------------------------------------
const COLUMN = 300, GAP = 14, WIDTH = 248;
const folded = new Set();
const tree = new Map(claims.map((card) => [card, []]));
const above = new Map();
for (const card of claims) {
  const parent = cards.get(card.dataset.parent);
  if (parent && card !== parent) { tree.get(parent).push(card); above.set(card, parent); }
}
const roomy = matchMedia('(min-width: 44rem)');
let graph = true;

function visible(card) {
  for (let one = above.get(card); one; one = above.get(one)) if (folded.has(one)) return false;
  return true;
}

function arrange() {
  for (const card of claims) card.hidden = !visible(card);
  const asGraph = graph && roomy.matches;
  canvas.classList.toggle('graph', asGraph);
  if (!asGraph) { for (const card of claims) card.style.transform = ''; document.getElementById('tree').style.height = ''; return; }
  const depth = new Map();
  const heights = new Map(claims.filter((card) => !card.hidden).map((card) => [card, card.offsetHeight]));
  let bottom = GAP, widest = 0;
  const put = (card, level) => {
    depth.set(card, level);
    widest = Math.max(widest, level);
    const children = tree.get(card).filter((child) => !child.hidden && !('again' in child.dataset));
    const top = bottom;
    for (const child of children) put(child, level + 1);
    bottom = Math.max(bottom, top + heights.get(card) + GAP);
    card.style.transform = `translate(${level * COLUMN + GAP}px, ${top}px)`;
    card.dataset.x = level * COLUMN + GAP;
    card.dataset.y = top + 22;
  };
  put(claims[0], 0);
  document.getElementById('tree').style.height = `${bottom}px`;
  const links = document.getElementById('links');
  links.setAttribute('width', (widest + 1) * COLUMN + GAP);
  links.setAttribute('height', bottom);
  drawLinks();
}

function drawLinks() {
  if (!canvas.classList.contains('graph')) return;
  const links = document.getElementById('links');
  const made = claims.filter((card) => !card.hidden && above.has(card)).map((card) => {
    const [from, to] = [above.get(card), cards.get(card.dataset.claim)];
    if (!to || to.hidden || from.hidden) return null;
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    const [x1, y1, x2, y2] = [Number(from.dataset.x) + WIDTH, Number(from.dataset.y), Number(to.dataset.x), Number(to.dataset.y)];
    const middle = (x1 + x2) / 2;
    path.setAttribute('d', `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
    path.setAttribute('class', `${'again' in card.dataset ? 'shared' : ''} ${to.classList.contains('changed') ? 'changed' : ''}`.trim());
    return path;
  });
  links.replaceChildren(...made.filter(Boolean));
}

function fold(card, close) {
  if (close) folded.add(card); else folded.delete(card);
  const button = card.querySelector('.fold');
  if (button) { button.setAttribute('aria-expanded', String(!close)); button.textContent = close ? '+' : '−'; }
}

function foldAll(close) {
  for (const [card, children] of tree) if (children.length && card !== claims[0]) fold(card, close);
  document.getElementById('all').textContent = close ? 'Open all' : 'Close all';
  arrange();
}

function go(id) {
  const card = cards.get(id);
  if (!card) return;
  for (let one = above.get(card); one; one = above.get(one)) fold(one, false);
  arrange();
  card.scrollIntoView({ block: 'center', inline: 'center' });
  (sliders.get(id) ?? card.querySelector('a')).focus();
}

for (const [id, slider] of sliders) slider.addEventListener('input', () => { setInput(id, Number(slider.value)); update(); });
for (const [id, exact] of exacts) exact.addEventListener('input', () => { if (valid(exact.value)) { setInput(id, Number(exact.value)); update(); } });
for (const [id, pin] of pins) pin.addEventListener('change', () => { const p = helds.get(id).value; setPin(id, pin.checked && valid(p) ? Number(p) : null); update(); });
for (const [id, held] of helds) held.addEventListener('input', () => { if (valid(held.value)) { setPin(id, Number(held.value)); update(); } });
for (const button of find('.fold')) button.addEventListener('click', () => { const card = button.closest('.claim'); fold(card, !folded.has(card)); arrange(); });
for (const button of find('[data-play]')) button.addEventListener('click', () => {
  reset();
  for (const [id, p] of Object.entries(JSON.parse(button.dataset.play))) if (id in inputs) setInput(id, p); else setPin(id, p);
  update();
  document.getElementById('answer').scrollIntoView({ block: 'center' });
});
for (const link of find('[data-go]')) link.addEventListener('click', (event) => { event.preventDefault(); go(link.dataset.go); });
document.getElementById('reset').addEventListener('click', reset);
document.getElementById('all').addEventListener('click', () => foldAll(folded.size === 0));
document.getElementById('shape').addEventListener('click', (event) => {
  graph = !graph;
  event.target.setAttribute('aria-pressed', String(graph));
  event.target.textContent = graph ? 'Show as outline' : 'Show as graph';
  arrange();
});
roomy.addEventListener('change', arrange);
for (const control of find('.move input, [data-play]')) control.disabled = false;
document.getElementById('tools').hidden = false;
foldAll(claims.length > 40);
if (claims.length <= 40) document.getElementById('all').textContent = 'Close all';
tell();
