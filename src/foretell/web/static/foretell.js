// What every page does: the theme button, and live parts that follow the server's events.
import { follow } from './live.js';

const THEMES = ['system', 'light', 'dark'];

function themeButton(button) {
  const root = document.documentElement;
  const show = () => { button.textContent = `Theme: ${root.dataset.theme ?? 'system'}`; };
  button.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'system') + 1) % THEMES.length];
    if (next === 'system') delete root.dataset.theme; else root.dataset.theme = next;
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
