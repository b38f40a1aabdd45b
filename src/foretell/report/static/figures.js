// Figures and tables: shows the titles of elements, and saves figures and tables as SVG, PNG and CSV.
// It is embedded in reports that are well-formed XML, so it must not contain the two characters that XML reserves.
// Reports work without it: titles of elements are tooltips, and the SVG contains the numbers.
const TAKEN = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-weight',
  'font-family', 'text-anchor'];
const NEAR = 28;

const made = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
const slug = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60) || 'figure';

function hand(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = made('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// The figure as it is shown on the page, with its colours as attributes.
function picture(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((element, i) => {
    if (element.closest('metadata') || element.tagName === 'title') return;
    const style = getComputedStyle(element);
    for (const name of TAKEN) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  const [, , width, height] = svg.getAttribute('viewBox').split(' ');
  const paper = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  const colour = getComputedStyle(svg).getPropertyValue('--ft-paper').trim() || '#ffffff';
  for (const [name, value] of Object.entries({ width, height, fill: colour })) paper.setAttribute(name, value);
  copy.prepend(paper);
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  return { text: new XMLSerializer().serializeToString(copy), width: Number(width), height: Number(height) };
}

function saveSvg(svg, name) {
  hand(`${name}.svg`, new Blob([picture(svg).text], { type: 'image/svg+xml' }));
}

function savePng(svg, name) {
  const { text, width, height } = picture(svg);
  const image = new Image();
  image.addEventListener('load', () => {
    const canvas = made('canvas', { width: 2 * width, height: 2 * height });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => hand(`${name}.png`, blob), 'image/png');
  });
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
}

const saveCsv = (text, name) => hand(`${name}.csv`, new Blob([text], { type: 'text/csv' }));

function buttons(kinds) {
  const row = added(made('p', { className: 'take' }));
  for (const [title, what, act] of kinds) {
    const button = made('button', { type: 'button', className: 'take-one', textContent: title });
    button.setAttribute('aria-label', what);
    button.addEventListener('click', act);
    row.append(button);
  }
  return row;
}

// The version of a figure (for pages or phones) that is shown.
const shown = figure => [...figure.querySelectorAll('svg.ft')].find(svg => svg.getClientRects().length)
  ?? figure.querySelector('svg.ft');

const dressed = new WeakSet();
// Marks elements that this script adds; updates of a live page ignore them.
const added = element => { element.dataset.added = ''; return element; };

function readable(figure) {
  const box = added(made('output', { className: 'read-out', hidden: true }));
  let now = -1;
  const title = one => [...one.children].find(child => child.tagName === 'title');
  const points = () => [...shown(figure).querySelectorAll('path,rect,circle,text')].filter(title);
  const clear = () => {
    box.hidden = true;
    for (const one of figure.querySelectorAll('.lit')) one.classList.remove('lit');
  };
  const tell = one => {
    clear();
    const group = one.dataset.g === undefined ? [one] : points().filter(other => other.dataset.g === one.dataset.g);
    box.replaceChildren(...group.map(other => made('span', { textContent: title(other).textContent })));
    for (const other of group) other.classList.add('lit');
    if (!box.isConnected) figure.append(box);
    box.hidden = false;
    const outer = figure.getBoundingClientRect(), inner = one.getBoundingClientRect();
    const left = inner.left + inner.width / 2 - outer.left - box.offsetWidth / 2;
    box.style.left = `${Math.max(0, Math.min(left, outer.width - box.offsetWidth))}px`;
    const above = inner.top - outer.top - box.offsetHeight - 10;
    box.style.top = `${above > -8 ? above : inner.bottom - outer.top + 10}px`;
  };
  figure.addEventListener('pointermove', event => {
    if (!event.target.closest('svg')) { clear(); return; }
    let best = null, distance = NEAR;
    for (const one of points()) {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      const dx = Math.max(left - event.clientX, 0, event.clientX - right);
      const dy = Math.max(top - event.clientY, 0, event.clientY - bottom);
      const far = Math.hypot(dx, dy);
      if (distance > far) { best = one; distance = far; }
    }
    if (best) { now = points().indexOf(best); tell(best); } else clear();
  });
  figure.addEventListener('pointerleave', clear);
  figure.addEventListener('blur', clear);
  figure.addEventListener('keydown', event => {
    if (event.target !== figure) return;
    if (event.key === 'Escape') { clear(); return; }
    const all = points(), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!all.length || !(step || event.key === 'Home' || event.key === 'End')) return;
    event.preventDefault();
    const group = all[now]?.dataset.g;
    const others = group === undefined ? false : all.some(one => one.dataset.g !== group);
    do now = step ? (now + step + all.length) % all.length : event.key === 'Home' ? 0 : all.length - 1;
    while (step ? others ? all[now].dataset.g === group : false : false);
    tell(all[now]);
  });
}

function listen(figure) {
  if (dressed.has(figure) || !figure.querySelector('svg.ft')) return;
  readable(figure);
  dressed.add(figure);
}

function dress(figure) {
  const svg = figure.querySelector('svg.ft');
  if (!svg || figure.querySelector('.take') || !svg.querySelector('metadata')) return;
  const label = svg.getAttribute('aria-label'), name = () => slug(label);
  figure.append(buttons([
    ['SVG', `Save the figure as SVG: ${label}`, () => saveSvg(shown(figure), name())],
    ['PNG', `Save the figure as PNG: ${label}`, () => savePng(shown(figure), name())],
    ['CSV', `Save the numbers as CSV: ${label}`,
      () => saveCsv(figure.querySelector('metadata').textContent, name())],
  ]));
}

// Tables: a button that saves the visible rows as CSV, and a hint if the table is wider than the page.
function tableCsv(table) {
  const cell = one => {
    let text = one.innerText.replace(/\s+/g, ' ').trim();
    if (/^[=+@\t\r]|^-(?![\d.])/.test(text)) text = `'${text}`;
    return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = [...table.rows].filter(row => row.getClientRects().length);
  return rows.map(row => [...row.cells].map(cell).join(',') + '\n').join('');
}

function dressTable(region) {
  const table = region.querySelector('table');
  if (!table || region.nextElementSibling?.matches('.take')) return;
  const label = region.getAttribute('aria-label') ?? document.title;
  const row = buttons([['CSV', `Save the table as CSV: ${label}`, () => saveCsv(tableCsv(table), slug(label))]]);
  const cue = made('span', { className: 'more-right', hidden: true, textContent: 'The table is wider than the page: scroll sideways →' });
  row.prepend(cue);
  region.after(row);
  const look = () => {
    cue.hidden = region.scrollLeft + region.clientWidth >= region.scrollWidth - 2;
  };
  region.addEventListener('scroll', look, { passive: true });
  // The observer also runs after the first layout; calling look() here would force an earlier layout.
  new ResizeObserver(look).observe(region);
}

const figures = () => document.querySelectorAll('figure.chart');
function dressAll() {
  figures().forEach(listen);
  figures().forEach(dress);
  document.querySelectorAll('.scroll[role=region]').forEach(dressTable);
}
figures().forEach(listen);
// Buttons change the layout of the page, so they are added after the first paint.
if (PerformanceObserver.supportedEntryTypes.includes('paint')) {
  new PerformanceObserver((_, watch) => { watch.disconnect(); dressAll(); }).observe({ type: 'paint', buffered: true });
} else dressAll();
// Parts of live pages are replaced when they change.
let waiting = false;
new MutationObserver(() => {
  if (waiting) return;
  waiting = true;
  setTimeout(() => { waiting = false; dressAll(); }, 50);
}).observe(document.body, { childList: true, subtree: true });
