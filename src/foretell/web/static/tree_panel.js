// The panel beside the tree: pages about a claim, their forms and what they lead to, shown without leaving the tree.
const panel = document.getElementById('panel');
const LOOK = 700; // milliseconds between two looks at work that goes on
const LONGEST = 16_000; // characters of a what-if that a server takes in an address
let turn = 0, whatIf = '';

export async function openPanel(address) {
  await show(asked(address));
}

// A claim is asked for with the numbers of the what-if that is on the screen.
function asked(address) {
  const at = new URL(address, location.href);
  if (at.pathname.startsWith('/trees/claim/')) at.search = whatIf.length <= LONGEST ? whatIf : '';
  return fetch(at, { headers: { Accept: 'text/html' } });
}

const read = async (answer) => new DOMParser().parseFromString(await answer.text(), 'text/html');

export function recount(sets) {
  const query = sets.map(([id, p]) => `set=${encodeURIComponent(`${id}=${p}`)}`).join('&');
  if (query === whatIf) return;
  whatIf = query;
  refresh();
}

// Other numbers for the claim in the panel: only they are replaced, so that nothing typed there is lost.
async function refresh() {
  const [mine, query] = [turn, whatIf];
  if (!panel.querySelector('[data-part]')) return;
  const answer = await asked(panel.dataset.at).catch(() => null);
  const page = answer?.ok ? await read(answer) : null;
  if (mine !== turn || query !== whatIf || !page) return;
  for (const part of page.querySelectorAll('[data-part]')) panel.querySelector(`[data-part=${part.dataset.part}]`)?.replaceChildren(...lowered(part).childNodes);
}

async function show(asking) {
  const mine = ++turn, query = whatIf;
  const answer = await asking.catch(() => null);
  const page = answer && await read(answer);
  if (mine !== turn) return;
  const found = page?.querySelector('[data-panel]') ?? page?.querySelector('main');
  if (!found) { panel.textContent = 'The server did not answer. Nothing is known to have happened; read the page again.'; return; }
  for (const one of found.querySelectorAll('noscript')) one.remove(); // Parsed apart, what is for browsers without scripts is there.
  panel.replaceChildren(...lowered(found).childNodes);
  panel.dataset.at = answer.url;
  prepare();
  if (query !== whatIf) refresh();
  const box = panel.getBoundingClientRect();
  if (box.top > innerHeight - 80 || box.bottom < 80) panel.scrollIntoView({ block: 'start' });
  if (found.dataset.panel === 'going') setTimeout(() => { if (mine === turn) openPanel(answer.url); }, LOOK);
}

// Headings one level lower, as parts of another page.
function lowered(found) {
  for (const [from, to] of [['h3', 'h4'], ['h2', 'h3'], ['h1', 'h2']]) for (const head of found.querySelectorAll(from)) renamed(head, to);
  return found;
}

function renamed(head, name) {
  const made = document.createElement(name);
  for (const { name: key, value } of head.attributes) made.setAttribute(key, value);
  made.append(...head.childNodes);
  head.replaceWith(made);
}

// The page again, with the same what-if, at a claim.
function reload(claim) {
  const at = new URLSearchParams(location.hash.slice(1));
  if (claim) at.set('claim', claim); else at.delete('claim');
  history.replaceState(null, '', `#${at}`);
  location.reload();
}

// Who edits is asked once in a browser.
function prepare() {
  const author = panel.querySelector('[name=author]');
  if (!author || author.value) return;
  try { author.value = localStorage.getItem('foretell-author') ?? ''; } catch { /* only for this page, then */ }
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
  if (body.get('author')) { try { localStorage.setItem('foretell-author', body.get('author')); } catch { /* then not */ } }
  for (const button of form.querySelectorAll('button')) button.disabled = true;
  const answer = await fetch(form.action, { method: 'POST', body, headers: { Accept: 'text/html' } }).catch(() => null);
  for (const button of form.querySelectorAll('button')) button.disabled = false;
  // The tree is another one now: its page is read again, at the same claim.
  const [, kind, what] = answer ? new URL(answer.url).pathname.split('/') : [];
  if (answer?.ok && answer.redirected && kind === 'trees' && (what === 'claim' || what === 'view')) {
    reload(what === 'claim' ? decodeURIComponent(new URL(answer.url).pathname.split('/')[3]) : '');
    return;
  }
  await show(answer ? Promise.resolve(answer) : Promise.reject(new Error('no answer')));
});
