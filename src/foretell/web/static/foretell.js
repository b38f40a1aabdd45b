// What every page does: the theme button, and live parts that follow the server's events.
import { follow, reread } from './live.js';

const THEMES = ['system', 'light', 'dark'];

function themeButton(button) {
  const root = document.documentElement;
  const show = () => { button.textContent = `Theme: ${root.dataset.theme ?? 'system'}`; };
  button.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'system') + 1) % THEMES.length];
    if (next === 'system') delete root.dataset.theme; else root.dataset.theme = next;
    document.cookie = `foretell-theme=${next};path=/;max-age=31536000;samesite=lax`;
    try { localStorage.setItem('foretell-theme', next); } catch { /* only for this page, then */ }
    show();
  });
  show();
  button.hidden = false;
}

const button = document.getElementById('theme');
if (button) themeButton(button);
const stream = document.querySelector('[data-stream]');
if (stream) follow(stream);

// The clock of work under way runs on between two events.
function lasting(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}
if (stream) setInterval(() => {
  for (const place of document.querySelectorAll('[data-since]')) {
    const passed = Date.now() / 1000 - Number(place.dataset.since), rod = place.querySelector('progress');
    place.querySelector('strong').textContent = lasting(passed);
    if (rod) rod.value = Math.min(passed, rod.max);
  }
}, 1000);

// Rows of running runs are read again while somebody looks at them.
const ROWS = 5000;
if (document.querySelector('tr[data-live]')) setInterval(() => {
  if (!document.hidden && document.querySelector('tr[data-live]')) reread(location.href);
}, ROWS);

// What is being computed is asked for until it is there.
const AGAIN = 2000;
async function again() {
  const answer = await fetch(location.href).catch(() => null);
  const text = answer?.ok ? await answer.text() : ' data-again>';
  if (text.includes(' data-again>')) setTimeout(again, AGAIN); else location.reload();
}
if (document.querySelector('[data-again]')) setTimeout(again, AGAIN);

// A folded part that is a page of its own is fetched when it is opened; opened as a file, the link to it stays.
for (const link of document.querySelectorAll('details a.part')) {
  const folded = link.closest('details');
  if (location.protocol.startsWith('http')) folded.addEventListener('toggle', async () => {
    const answer = await fetch(link.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const part = page.getElementById('part');
    part.removeAttribute('id'); // Several may stand on one page.
    link.parentElement.replaceWith(part);
    part.dispatchEvent(new Event('part', { bubbles: true }));
  }, { once: true });
}

// A link to something folded opens it.
function unfold() {
  const id = decodeURIComponent(location.hash.slice(1));
  const place = id && document.getElementById(id);
  for (let one = place; one; one = one.parentElement) if (one.localName === 'details') one.open = true;
  if (place) place.scrollIntoView();
}
addEventListener('hashchange', unfold);
unfold();

for (const one of document.querySelectorAll('[data-copy]')) {
  one.hidden = !navigator.clipboard;
  one.addEventListener('click', async () => {
    await navigator.clipboard.writeText(one.dataset.copy);
    one.textContent = 'Copied';
  });
}
for (const one of document.querySelectorAll('[data-print]')) {
  one.hidden = false;
  one.addEventListener('click', () => print());
}
