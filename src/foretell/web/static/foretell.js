// Used by every page: the theme button, contact with the server, and what is folded or copied.
import { parsed } from './fetched.js';
import { follow } from './live.js';

const THEMES = ['system', 'light', 'dark'];

function themeButton(button) {
  const root = document.documentElement;
  const show = () => { button.textContent = `Theme: ${root.dataset.theme ?? 'system'}`; };
  button.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'system') + 1) % THEMES.length];
    if (next === 'system') delete root.dataset.theme; else root.dataset.theme = next;
    document.cookie = `foretell-theme=${next};path=/;max-age=31536000;samesite=lax`;
    try { localStorage.setItem('foretell-theme', next); } catch { /* Then the theme is only for this page. */ }
    show();
  });
  show();
  button.hidden = false;
}

const button = document.getElementById('theme');
if (button) themeButton(button);
if (document.body.dataset.server) follow(document.body.dataset.server);

// Reload the page until the result has been computed.
const AGAIN = 2000;
async function again() {
  const lost = document.documentElement.dataset.contact;
  const answer = lost ? null : await fetch(location.href).catch(() => null);
  const text = answer?.ok ? await answer.text() : ' data-again>';
  if (text.includes(' data-again>')) setTimeout(again, AGAIN); else location.reload();
}
if (document.querySelector('[data-again]')) setTimeout(again, AGAIN);

// Fill a collapsed part when it is opened: from a template, which pages written to files have, or from the server.
async function content(folded, link) {
  const template = document.getElementById(`of-${folded.id}`);
  if (template) {
    const part = document.createElement('div');
    part.append(template.content);
    return part;
  }
  const answer = await fetch(link.href).catch(() => null);
  if (!answer?.ok) return null;
  const part = parsed(await answer.text()).getElementById('part');
  part.removeAttribute('id'); // There may be several on one page.
  return part;
}
for (const link of document.querySelectorAll('details a.part')) {
  const folded = link.closest('details');
  folded.addEventListener('toggle', async () => {
    const part = await content(folded, link);
    if (!part) return;
    link.parentElement.replaceWith(part);
    part.dispatchEvent(new Event('part', { bubbles: true }));
  }, { once: true });
}

// A link to something collapsed opens it.
function unfold() {
  const id = decodeURIComponent(location.hash.slice(1));
  const place = id && document.getElementById(id);
  for (let element = place; element; element = element.parentElement) if (element.localName === 'details') element.open = true;
  if (place) place.scrollIntoView();
}
// A file that is dropped on a marked part of a form is chosen in it.
for (const place of document.querySelectorAll('[data-drop]')) {
  const over = event => { event.preventDefault(); place.classList.toggle('over', event.type === 'dragover'); };
  for (const kind of ['dragover', 'dragleave', 'drop']) place.addEventListener(kind, over);
  place.addEventListener('drop', event => { place.querySelector('input').files = event.dataTransfer.files; });
}

// A search box of a form shows what it finds while one types; what is ticked stays.
for (const box of document.querySelectorAll('[data-finds]')) {
  const find = async () => {
    const sent = new FormData(box.form), words = box.value;
    const wanted = new URLSearchParams([...sent].filter(([name]) => name === 'run' || name === box.name));
    wanted.set('look', 'yes');
    const answer = await fetch(`${box.form.action}?${wanted}`).catch(() => null);
    if (!answer?.ok || box.value !== words) return;
    const page = parsed(await answer.text());
    document.getElementById(box.dataset.finds).replaceWith(page.getElementById(box.dataset.finds));
  };
  box.addEventListener('input', find);
}

addEventListener('hashchange', unfold);
unfold();

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = !navigator.clipboard;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  });
}
for (const button of document.querySelectorAll('[data-print]')) {
  button.hidden = false;
  button.addEventListener('click', () => print());
}
