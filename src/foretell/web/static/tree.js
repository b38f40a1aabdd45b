// What-if in the page: runs the same list of operations as Python.
import { run, withInput } from './circuit.js';
import { TreeCanvas, shape } from './tree_canvas.js';
import { openPanel, recount } from './tree_panel.js';

let circuit = JSON.parse(document.getElementById('circuit').textContent);
const part = (id) => document.getElementById(id);
const find = (text, root = document) => [...root.querySelectorAll(text)];
const by = (items, key) => new Map(items.map((item) => [item.dataset[key], item]));
const canvas = part('canvas');
const whole = circuit; // As the tree stands.
const claims = find('.claim');
const cards = by(claims.filter((card) => !('again' in card.dataset)), 'claim');
const shown = new Map();
for (const output of find('[data-p]')) shown.set(output.dataset.p, [...(shown.get(output.dataset.p) ?? []), output]);
const sliders = by(find('[data-set]'), 'set');
const exacts = by(find('[data-exact]'), 'exact');
const pins = by(find('[data-pin]'), 'pin');
const helds = by(find('[data-held]'), 'held');

// The visitor's changes: inputs by name, claims fixed at a value, and stated cases such as P0:all.
const inputs = { ...circuit.inputs };
const forced = {};
const stated = new Map();
const baseOf = numbersOf(run(circuit.ops, inputs));
const touched = new Set();
const first = new Map(); // Stated cases before they were changed.
let values = run(circuit.ops, inputs), now = baseOf, resting = 0;

// The probability of every claim.
function numbersOf(results) {
  return Object.fromEntries(Object.entries(circuit.claims).map(([id, place]) => [id, results[place]]));
}

const rootValue = (results) => results[circuit.claims[circuit.root]];

export function percent(p) {
  const near = Math.min(p, 1 - p);
  if (near > 0 && near < 0.00005) return p < 0.5 ? '<0.01 %' : '>99.99 %';
  const digits = near >= 0.0495 || near <= 0 ? 0 : near >= 0.00095 ? 1 : 2;
  const value = 100 * p, scaled = value * 10 ** digits, whole = Math.floor(scaled);
  // As Python, which rounds a value that is exactly in the middle to the even digit.
  const middle = Number.isInteger(value * 2 ** (digits + 1)) && scaled - whole === 0.5;
  return `${(middle ? (whole + whole % 2) / 10 ** digits : value).toFixed(digits)} %`;
}

const valid = (text) => text !== '' && Number(text) >= 0 && Number(text) <= 1;
// Boxes hold percentages, as all numbers of the page; addresses and scenarios hold probabilities.
const validBox = (box) => box.value !== '' && valid(String(box.value / 100));
let typed = null; // The box that is being typed into, which keeps what is typed.
const fill = (box, p) => { if (box !== typed) box.value = Number((100 * p).toFixed(4)); };
const typing = (box, work) => { if (!validBox(box)) return; typed = box; work(box.value / 100); typed = null; };
const places = () => Object.fromEntries(Object.entries(forced).map(([id, p]) => [circuit.claims[id], p]));

function update() {
  const last = now;
  values = run(circuit.ops, inputs, places());
  now = numbersOf(values);
  for (const [id, p] of Object.entries(now)) if (p !== last[id]) showNumber(id, p, baseOf[id]);
  for (const id of touched) showNumber(id, inputs[id], circuit.inputs[id]);
  touched.clear();
  tell();
  later(redraw);
  clearTimeout(resting);
  resting = setTimeout(() => { slopes(); keepInAddress(); recount(changes()); }, 150);
}

const redraw = () => graph.draw();

function showNumber(id, p, before) {
  for (const output of shown.get(id) ?? []) output.textContent = percent(p);
  const card = cards.get(id), moved = p !== before;
  if (!card) return;
  card.classList.toggle('changed', moved);
  const was = card.querySelector('.was');
  was.hidden = !moved;
  was.textContent = moved ? `${percent(before).replace(' %', '')} →` : '';
  card.querySelector('.fill').setAttribute('width', `${100 * p}%`);
  tick(card.querySelector('.ghost'), moved ? before : null);
  card.querySelector('.badge.set').hidden = !(id in forced || (id in inputs && inputs[id] !== circuit.inputs[id]));
}

function tick(line, p) {
  line.setAttribute('visibility', p === null ? 'hidden' : 'visible');
  for (const end of ['x1', 'x2']) line.setAttribute(end, `${100 * (p ?? 0)}%`);
}

function tell() {
  const [answer, was] = [rootValue(values), baseOf[circuit.root]];
  const moved = 100 * (answer - was);
  part('answer').textContent = percent(answer);
  part('answer').value = percent(answer);
  part('answer').dataset.value = answer;
  const sets = changes();
  part('was').textContent = sets.length ? `${percent(was)} →` : '';
  part('shift').className = Math.abs(moved) < 0.05 ? '' : moved > 0 ? 'up' : 'down';
  part('shift').textContent = sets.length ? `${moved >= 0 ? '+' : '−'}${Math.abs(moved).toFixed(1)} points in this what-if` : '';
  tick(part('strip').querySelector('.ghost'), sets.length ? was : null);
  tick(part('strip').querySelector('.now'), answer);
  part('now').hidden = !sets.length;
  canvas.classList.toggle('played', sets.length > 0); // The chances in sequence belong to the tree as it stands.
  part('sets-shown').replaceChildren(...sets.map(([id, p]) => create('span', 'one', id, ' ', short(claimOf(id), 40), ' ', create('b', '', `${percent(before(id)).replace(' %', '')} → ${percent(p)}`))));
  const played = JSON.stringify(Object.fromEntries(sets.sort()));
  for (const button of find('[data-play]')) button.closest('tr').classList.toggle('playing', JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(button.dataset.play)).sort())) === played);
  const words = sets.map(([id, p]) => `${id}=${p}`);
  const form = part('save');
  if (form) {
    for (const field of find('#save [name=set], #keep [name=set]')) field.value = words.join(' ');
    const name = part('scenario');
    // The default name describes the changes.
    if (!('own' in name.dataset)) name.value = sets.map(([id, p]) => `${id} ${percent(p)}`).join(', ').slice(0, 80);
    form.action = form.action.split('#')[0] + address(); // After saving, the same what-if is shown.
  }
  if (!part('linked').hidden) part('link').value = link();
}

function create(name, kind, ...inside) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...inside);
  return element;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);
const claimOf = (id) => cards.get(id)?.querySelector('.said').textContent ?? '';
const before = (id) => circuit.inputs[id] ?? baseOf[id] ?? first.get(id);

function changes() {
  const moved = Object.entries(inputs).filter(([id, p]) => p !== circuit.inputs[id]);
  return [...moved, ...Object.entries(forced), ...stated];
}

// Other cases need other operations, which the server compiles; no model is asked.
async function state(id, p) {
  if (p === null) stated.delete(id); else stated.set(id, p);
  const wanted = new URLSearchParams([...stated].map(([name, value]) => ['set', `${name}=${value}`]));
  const answer = await fetch(`${canvas.dataset.view}?${wanted}`).catch(() => null);
  if (`${wanted}` !== `${new URLSearchParams([...stated].map(([name, value]) => ['set', `${name}=${value}`]))}`) return;
  if (!answer?.ok) { stated.delete(id); say('This case cannot be changed to that.'); return; }
  const { ops, claims: compiled } = (await answer.json()).circuit;
  circuit = { ...circuit, ops, claims: compiled };
  update();
}

// --- the what-if in the address: after the #, so that it can be sent and works from a file too ---------------------
function address() {
  const sets = changes();
  if (!sets.length) return '';
  return `#version=${canvas.dataset.version}&set=${sets.map(([id, p]) => `${encodeURIComponent(id)}=${p}`).join(',')}`;
}

const link = () => location.href.split('#')[0] + address();

function keepInAddress() {
  const wanted = address();
  if (wanted !== location.hash && (wanted || location.hash.includes('set='))) history.replaceState(null, '', wanted || location.href.split('#')[0]);
}

function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (parameters.has('claim')) later(() => pick(parameters.get('claim')));
  if (!parameters.has('set')) return;
  const unknown = [];
  clear();
  for (const edit of parameters.get('set').slice(0, 50_000).split(',')) {
    const at = edit.lastIndexOf('='), id = edit.slice(0, at), p = edit.slice(at + 1);
    if (at > 0 && valid(p) && id.includes(':') && !(id in circuit.inputs) && id.split(':')[0] in circuit.claims) state(id, Number(p));
    else if (at > 0 && valid(p) && (id in circuit.inputs || id in circuit.claims)) set(id, Number(p)); else unknown.push(edit.slice(0, 60));
  }
  update();
  const version = parameters.get('version') ?? canvas.dataset.version;
  const notes = [];
  if (version !== canvas.dataset.version) notes.push(`This what-if was made for version ${version.slice(0, 12)} of the tree; this is version ${canvas.dataset.version}, so the answer may differ from what was seen then.`);
  if (unknown.length) notes.push(`Left out, because the tree has no such claim or number: ${unknown.slice(0, 10).join(', ')}.`);
  say(notes.join(' '));
}

function say(text) {
  part('said').textContent = text;
  part('said').hidden = !text;
}

async function copy() {
  const button = part('copy'), words = button.textContent;
  keepInAddress();
  try {
    await navigator.clipboard.writeText(link());
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = words; }, 2000);
  } catch { // Without access to the clipboard, show the link.
    part('linked').hidden = false;
    part('link').value = link();
    part('link').select();
  }
}

// The answer with each input at 0 and at 1.
function slopes() {
  const rows = find('#slopes [data-input]').map((row) => {
    const id = row.dataset.input;
    return [row, ...[0, 1].map((p) => rootValue(run(circuit.ops, withInput(circuit, inputs, id, p), places())))];
  });
  const now = rootValue(values);
  const [least, most] = [Math.min(now, ...rows.flatMap(([, low, high]) => [low, high])), Math.max(now, ...rows.flatMap(([, low, high]) => [low, high]))];
  const x = (p) => 24 + 52 * (p - least) / Math.max(most - least, 1e-9); // Leave room for the numbers at both ends.
  for (const [row, low, high] of rows) {
    row.querySelector('[data-now]').textContent = percent(inputs[row.dataset.input]);
    const ends = [['false', low], ['true', high]].sort((a, b) => a[1] - b[1]);
    for (const [name, from, to] of [['.down', x(ends[0][1]), x(now)], ['.up', x(now), x(ends[1][1])]]) {
      const bar = row.querySelector(name);
      bar.setAttribute('x', `${from}%`);
      bar.setAttribute('width', `${Math.max(0, to - from)}%`);
    }
    const line = row.querySelector('.now');
    for (const end of ['x1', 'x2']) line.setAttribute(end, `${x(now)}%`);
    const [left, right] = [row.querySelector('.low'), row.querySelector('.high')];
    left.textContent = `${ends[0][0]} ${percent(ends[0][1])}`;
    right.textContent = `${percent(ends[1][1])} ${ends[1][0]}`;
    left.setAttribute('x', `${x(Math.min(now, ends[0][1]))}%`);
    left.setAttribute('dx', -6);
    right.setAttribute('x', `${x(Math.max(now, ends[1][1]))}%`);
    right.setAttribute('dx', 6);
    row.querySelector('svg').setAttribute('aria-label', `${percent(low)} if false, ${percent(high)} if true`);
  }
  axis(least, most, now, x);
  conclude(rows);
}

function axis(least, most, now, x) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => (most - least) / size <= 6) ?? 0.25, ticks = [];
  for (let p = Math.ceil(least / step - 1e-9) * step; p <= most + 1e-9; p += step) ticks.push(p);
  const word = (at, text, kind) => { const label = shape('text', { x: `${at}%`, y: 17, class: kind }); label.textContent = text; return label; };
  part('axis')?.replaceChildren(shape('line', { x1: `${x(least)}%`, x2: `${x(most)}%`, y1: 2, y2: 2 }),
    ...ticks.filter((p) => Math.abs(x(p) - x(now)) > 22).map((p) => word(x(p), percent(p), '')), word(x(now), `now ${percent(now)}`, 'here'));
}

// Sorts the bars, widest first, and updates the sentence; the order stays while the list has the focus.
function conclude(rows) {
  if (!rows.length) return;
  const width = ([, low, high]) => Math.abs(high - low);
  const sorted = [...rows].sort((a, b) => width(b) - width(a) || rows.indexOf(a) - rows.indexOf(b));
  if (changes().length && !part('slopes').contains(document.activeElement)) part('slopes').append(...sorted.map(([row]) => row));
  const [[row, low, high]] = sorted, id = row.dataset.input;
  const worth = (bar) => { const p = inputs[bar[0].dataset.input]; return width(bar) ** 2 * p * (1 - p); };
  const useful = sorted.reduce((best, bar) => (worth(bar) > worth(best) ? bar : best))[0].dataset.input;
  const link = create('a', '', id);
  Object.assign(link, { href: '#' });
  link.dataset.go = id;
  const quoted = create('q', '', short(row.dataset.claimText, 120));
  quoted.dir = 'auto';
  part('says')?.replaceChildren('It depends most on ', link, ' ', quoted, ` (${percent(high)} if true, ${percent(low)} if false)`);
  const open = percent(inputs[useful]);
  part('finding')?.replaceChildren(...(useful === id
    ? ['Research ', create('strong', '', id), ` first: it has the largest effect on the answer and is still open (${open}).`]
    : [create('strong', '', id), ' has the largest effect on the answer. Research ', create('strong', '', useful), ` first, because it is less certain (${open}).`]));
}

// Saves what is on the screen. Each input with the answer at 0 and at 1:
const ends = () => find('#slopes [data-input]').map((row) => {
  const id = row.dataset.input;
  return [id, row.dataset.claimText, ...[0, 1].map((p) => rootValue(run(circuit.ops, withInput(circuit, inputs, id, p), places())))];
});

function give(blob, suffix) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `what_would_change_the_answer.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// Mark text that a spreadsheet would read as a formula.
function tornadoCsv() {
  const cell = (value) => { const text = /^[=+@\t\r-]/.test(value) ? `'${value}` : value; return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const lines = ends().map(([id, claim, low, high]) => [cell(id), cell(claim), String(inputs[id]), String(low), String(high)].join(','));
  give(new Blob([['id,claim,p,if_false,if_true', ...lines, ''].join('\r\n')], { type: 'text/csv' }), 'csv');
}

function tornadoPicture() {
  const rows = ends(), now = rootValue(values), [width, height] = [960, 60 + 34 * rows.length];
  const all = [now, ...rows.flatMap(([, , low, high]) => [low, high])], [least, most] = [Math.min(...all), Math.max(...all)];
  const x = (p) => 540 + 340 * (p - least) / Math.max(most - least, 1e-9);
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/[^\t\n\r\u0020-\uFFFD]/g, '');
  const words = (at, y, text, more = '') => `<text x="${at}" y="${y}" ${more}>${safe(text)}</text>`;
  const bar = (from, to, y, colour) => `<rect x="${Math.min(from, to)}" y="${y}" width="${Math.abs(to - from)}" height="16" fill="${colour}"/>`;
  const parts = rows.map(([id, claim, low, high], i) => {
    const y = 44 + 34 * i, [left, right] = [['false', low], ['true', high]].sort((a, b) => a[1] - b[1]);
    return [words(12, y + 13, short(`${id} ${claim}`, 62)), bar(x(now), x(low), y, '#b45309'), bar(x(now), x(high), y, '#1d5fae'),
      words(x(left[1]) - 6, y + 13, `${left[0]} ${percent(left[1])}`, 'text-anchor="end"'), words(x(right[1]) + 6, y + 13, `${percent(right[1])} ${right[0]}`)].join('');
  });
  return { width, height, text: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12" fill="#1b1f24"><rect width="${width}" height="${height}" fill="#ffffff"/>${words(12, 22, short(document.querySelector('h1').textContent.trim(), 62), 'font-size="14" font-weight="bold"')}${words(x(now), 34, `now ${percent(now)}`, 'text-anchor="middle"')}${parts.join('')}<line x1="${x(now)}" x2="${x(now)}" y1="38" y2="${height - 10}" stroke="#1b1f24" stroke-dasharray="4 3"/></svg>` };
}

function saveTornado(kind) {
  const { width, height, text } = tornadoPicture();
  if (kind === 'svg') { give(new Blob([text], { type: 'image/svg+xml' }), kind); return; }
  const image = new Image();
  image.addEventListener('load', () => {
    const paper = Object.assign(document.createElement('canvas'), { width: 2 * width, height: 2 * height });
    paper.getContext('2d').drawImage(image, 0, 0, paper.width, paper.height);
    paper.toBlob((blob) => give(blob, kind), 'image/png');
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

const waiting = new Set();
function later(work) {
  if (!waiting.size) requestAnimationFrame(() => { const all = [...waiting]; waiting.clear(); all.forEach((task) => task()); });
  waiting.add(work);
}

function setInput(id, p) {
  inputs[id] = p;
  touched.add(id);
  if (sliders.has(id)) sliders.get(id).value = p;
  if (exacts.has(id)) fill(exacts.get(id), p);
}

function change(id, p) {
  for (const [other, to] of Object.entries(withInput(circuit, inputs, id, p))) if (other === id || to !== inputs[other]) setInput(other, to);
  update();
}

function setPin(id, p) {
  if (p === null) delete forced[id]; else forced[id] = p;
  if (pins.has(id)) pins.get(id).checked = p !== null;
  if (p !== null && helds.has(id)) fill(helds.get(id), p);
}

const set = (id, p) => (id in circuit.inputs ? setInput(id, p) : setPin(id, p));

function clear() {
  if (stated.size) { stated.clear(); circuit = whole; }
  for (const id of Object.keys(inputs)) if (inputs[id] !== circuit.inputs[id]) setInput(id, circuit.inputs[id]);
  for (const id of Object.keys(forced)) setPin(id, null);
}

function reset() { clear(); say(''); update(); }

// --- the layout: a graph if there is room, else an outline  -------------------------------------------------------
const folded = new Set();
const tree = new Map(claims.map((card) => [card, []]));
const above = new Map();
for (const card of claims) {
  const parent = cards.get(card.dataset.parent);
  if (parent && card !== parent) { tree.get(parent).push(card); above.set(card, parent); }
}
const childrenOf = (card) => tree.get(card).filter((child) => !child.hidden && !('again' in child.dataset));
const graph = new TreeCanvas(canvas, function* () {
  for (const card of claims) {
    if (card.hidden || !above.has(card)) continue;
    const to = cards.get(card.dataset.claim), slope = Number(card.dataset.slope ?? NaN);
    const sign = slope > 0 ? 'helps' : slope < 0 ? 'hinders' : '';
    const kind = [sign, 'again' in card.dataset ? 'shared' : '', to?.classList.contains('changed') ? 'changed' : ''];
    yield [above.get(card), to, kind.filter(Boolean).join(' '), Number.isNaN(slope) ? 1.5 : 1.5 + 8 * Math.min(1, Math.abs(slope))];
  }
});
const roomy = matchMedia('(min-width: 44rem)');
let asGraph = roomy.matches, chosen = false;

function visible(card) {
  for (let parent = above.get(card); parent; parent = above.get(parent)) if (folded.has(parent)) return false;
  return true;
}

function arrange(fit = false) {
  for (const card of claims) card.hidden = !visible(card);
  part('stage').classList.toggle('listed', !asGraph);
  canvas.classList.toggle('graph', asGraph);
  part('tools').classList.toggle('outlined', !asGraph);
  part('shape').setAttribute('aria-pressed', String(asGraph));
  part('outline').setAttribute('aria-pressed', String(!asGraph));
  if (asGraph) graph.arrange(claims[0], childrenOf, claims.filter((card) => !card.hidden), fit); else graph.leave(claims);
}

function fold(card, close) {
  if (close) folded.add(card); else folded.delete(card);
  const button = card.querySelector('.fold');
  if (button) { button.setAttribute('aria-expanded', String(!close)); button.textContent = close ? '+' : '−'; }
}

function foldAll(close) {
  for (const [card, children] of tree) if (children.length && card !== claims[0]) fold(card, close);
  part('all').textContent = folded.size ? 'Open all' : 'Close all';
  arrange();
}

function go(id) {
  const card = cards.get(id);
  if (!card) return;
  for (let parent = above.get(card); parent; parent = above.get(parent)) fold(parent, false);
  arrange();
  canvas.scrollIntoView({ block: 'nearest' });
  if (asGraph) graph.show(card); else card.scrollIntoView({ block: 'center' });
  (sliders.get(id) ?? card.querySelector('a')).focus({ preventScroll: true });
}

function pick(id) {
  const card = cards.get(id);
  if (!card || 'still' in canvas.dataset) return;
  for (const picked of find('.claim.picked')) picked.classList.remove('picked');
  card.classList.add('picked');
  recount(changes());
  openPanel(card.querySelector('.id').href);
}

for (const [id, slider] of sliders) slider.addEventListener('input', () => change(id, Number(slider.value)));
for (const [id, exact] of exacts) exact.addEventListener('input', () => typing(exact, (p) => change(id, p)));
for (const [id, pin] of pins) pin.addEventListener('change', () => { const box = helds.get(id); setPin(id, pin.checked && validBox(box) ? box.value / 100 : null); update(); });
for (const [id, held] of helds) held.addEventListener('input', () => typing(held, (p) => { setPin(id, p); update(); }));
for (const button of find('.fold')) button.addEventListener('click', () => { const card = button.closest('.claim'); fold(card, !folded.has(card)); arrange(); });
for (const button of find('[data-play]')) button.addEventListener('click', () => {
  clear();
  for (const [id, p] of Object.entries(JSON.parse(button.dataset.play))) set(id, p);
  update();
  part('answer').scrollIntoView({ block: 'center' });
});
document.addEventListener('click', (event) => {
  const link = event.target.closest('[data-go]');
  if (link) { event.preventDefault(); go(link.dataset.go); }
});
// With a modifier key a link opens as usual; a page opened from disk has no server to fetch parts from.
for (const link of find('[data-pick]')) link.addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || 'still' in canvas.dataset) return;
  event.preventDefault();
  pick(link.dataset.pick);
});
part('panel').addEventListener('focusin', (event) => { const { case: id } = event.target.dataset; if (id && !first.has(id)) first.set(id, event.target.defaultValue / 100); });
part('panel').addEventListener('input', (event) => { const { case: id } = event.target.dataset; if (id && validBox(event.target)) state(id, event.target.value / 100); });
part('scenario')?.addEventListener('input', (event) => { event.target.dataset.own = ''; });
part('tornado-csv')?.addEventListener('click', tornadoCsv);
for (const button of find('[data-tornado]')) button.addEventListener('click', () => saveTornado(button.dataset.tornado));
part('reset').addEventListener('click', reset);
part('copy').addEventListener('click', copy);
part('all').addEventListener('click', () => foldAll(folded.size === 0));
for (const [id, wanted] of [['shape', true], ['outline', false]]) part(id).addEventListener('click', () => {
  [asGraph, chosen] = [wanted, true];
  arrange(true);
});
roomy.addEventListener('change', () => {
  if (chosen) return;
  asGraph = roomy.matches;
  arrange(true);
});
addEventListener('hashchange', readAddress);
for (const control of find('.num input, [data-play]')) control.disabled = false;
part('tools').hidden = false;
part('all').hidden = ![...tree].some(([card, children]) => children.length && card !== claims[0]);
foldAll(claims.length > 40);
if (asGraph) graph.begin(claims[0]);
tell();
slopes();
readAddress();
