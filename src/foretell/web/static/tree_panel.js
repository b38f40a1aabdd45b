// The panel beside the tree: shows the pages of a claim and their forms without leaving the tree.
import { parsed } from './fetched.js';

const panel = document.getElementById('panel');
const LOOK = 700; // milliseconds between two reloads while work is in progress
const AGAIN = 3000; // milliseconds until the next attempt if the server did not answer
const LONGEST = 16_000; // maximum number of characters of a what-if in an address
let turn = 0, whatIf = '';

export async function openPanel(address) {
  await show(request(address), address);
}

// Requests a claim with the numbers of the current what-if.
function request(address) {
  const at = new URL(address, location.href);
  if (at.pathname.startsWith('/trees/claim/')) at.search = whatIf.length <= LONGEST ? whatIf : '';
  return fetch(at, { headers: { Accept: 'text/html' } });
}

const read = async (answer) => parsed(await answer.text());

export function recount(sets) {
  const query = sets.map(([id, p]) => `set=${encodeURIComponent(`${id}=${p}`)}`).join('&');
  if (query === whatIf) return;
  whatIf = query;
  refresh();
}

// Replaces only the numbers of the claim in the panel, so that nothing typed there is lost.
async function refresh() {
  const [mine, query, at] = [turn, whatIf, panel.dataset.at];
  if (!panel.querySelector('[data-part]')) return;
  const answer = await request(at).catch(() => null);
  const page = answer?.ok ? await read(answer) : null;
  // Another claim may have been opened meanwhile.
  if (mine !== turn || query !== whatIf || at !== panel.dataset.at || !page) return;
  for (const part of page.querySelectorAll('[data-part]')) {
    const old = panel.querySelector(`[data-part=${part.dataset.part}]`);
    if (old && !(old.contains(document.activeElement) && document.activeElement.matches('input'))) old.replaceChildren(...lowered(part).childNodes);
  }
}

async function show(asking, address) {
  const mine = ++turn, query = whatIf;
  const answer = await asking.catch(() => null);
  const page = answer && await read(answer);
  if (mine !== turn) return;
  const content = page?.querySelector('[data-panel]') ?? page?.querySelector('main');
  if (!content) {
    if (address) setTimeout(() => { if (mine === turn) openPanel(address); }, AGAIN);
    else panel.textContent = 'The server did not answer. Reload the page to see what has changed.';
    return;
  }
  for (const element of content.querySelectorAll('noscript')) element.remove(); // A parsed page contains its noscript parts.
  panel.replaceChildren(...lowered(content).childNodes);
  panel.dataset.at = answer.url;
  prepare();
  if (query !== whatIf) refresh();
  const box = panel.getBoundingClientRect();
  if (box.top > innerHeight - 80 || box.bottom < 80) panel.scrollIntoView({ block: 'start' });
  if (content.dataset.panel === 'going') setTimeout(() => { if (mine === turn) openPanel(answer.url); }, LOOK);
}

// Moves headings one level down, because they become part of another page.
function lowered(content) {
  for (const [from, to] of [['h3', 'h4'], ['h2', 'h3'], ['h1', 'h2']]) for (const head of content.querySelectorAll(from)) renamed(head, to);
  return content;
}

function renamed(head, name) {
  const element = document.createElement(name);
  for (const { name: key, value } of head.attributes) element.setAttribute(key, value);
  element.append(...head.childNodes);
  head.replaceWith(element);
}

// Reloads the page with the same what-if, at a claim.
function reload(claim) {
  const at = new URLSearchParams(location.hash.slice(1));
  if (claim) at.set('claim', claim); else at.delete('claim');
  history.replaceState(null, '', `#${at}`);
  location.reload();
}

// The browser remembers the author.
function prepare() {
  const author = panel.querySelector('[name=author]');
  if (!author || author.value) return;
  try { author.value = localStorage.getItem('foretell-author') ?? ''; } catch { /* Then the author is not remembered. */ }
}

panel.addEventListener('click', (event) => {
  const fresh = event.target.closest('a[data-reload]');
  if (fresh) { event.preventDefault(); reload(fresh.dataset.reload); return; }
  const link = event.target.closest('a[data-in-panel]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPanel(link.href);
});

panel.addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.target, body = new URLSearchParams(new FormData(form, event.submitter));
  if (form.method === 'get') return; // The what-if follows what is typed.
  if (body.get('author')) { try { localStorage.setItem('foretell-author', body.get('author')); } catch { /* Then the author is not remembered. */ } }
  for (const button of form.querySelectorAll('button')) button.disabled = true;
  const answer = await fetch(form.action, { method: 'POST', body, headers: { Accept: 'text/html' } }).catch(() => null);
  for (const button of form.querySelectorAll('button')) button.disabled = false;
  // The tree has changed: reload its page at the same claim.
  const [, kind, what] = answer ? new URL(answer.url).pathname.split('/') : [];
  if (answer?.ok && answer.redirected && kind === 'trees' && (what === 'claim' || what === 'view')) {
    reload(what === 'claim' ? decodeURIComponent(new URL(answer.url).pathname.split('/')[3]) : '');
    return;
  }
  await show(answer ? Promise.resolve(answer) : Promise.reject(new Error('no answer')));
});
