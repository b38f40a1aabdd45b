// Keeps the live parts of a page like those of a reloaded page: follows the events of its run while that is going on, and
// otherwise asks from time to time whether the server is still there.
import { parsed } from './fetched.js';
import { hear, isLost, listenAnew, loseContact, refuse, watchContact } from './contact.js';

const PAUSE = 400; // minimum number of milliseconds between two reloads
const BEATS = 2; // seconds between two questions whether the server is there
const ROWS = 5; // seconds between two reloads of parts that no stream announces, or two attempts to open one
const PATIENCE = 5000; // milliseconds that an answer may take before the server counts as gone
const PAGE_PATIENCE = 20_000; // the same for a whole page, which may be large
const STREAMS = 3; // maximum number of streams of all windows, because browsers limit the connections to a server

let denied = false; // whether the server answered that this page must not be read or is gone

// `server` is an address that is answered quickly and without a token.
export function follow(server) {
  let source = null, opening = false, giveBack = () => {}, beats = 0;
  const place = () => document.querySelector('[data-stream]');
  const refresh = paced(() => reread());
  const open = async () => {
    if (opening || source || document.hidden || isLost() || denied || !place()) return;
    opening = true;
    const free = await freeStream();
    opening = false;
    if (!free) return;
    giveBack = free;
    if (document.hidden || !place()) { close(); return; }
    const url = new URL(place().dataset.stream, location.href);
    url.searchParams.set('after', place().dataset.after);
    url.searchParams.set('brief', 'true');
    source = new EventSource(url);
    source.addEventListener('heartbeat', event => {
      const { at, pending } = JSON.parse(event.data);
      hear(at);
      if (place() && pending !== place().dataset.pending) refresh();
    });
    source.addEventListener('progress', () => { hear(); refresh(); });
    source.addEventListener('end', () => { hear(); close(); refresh(); });
    // The stream may have been refused or its server ended.
    source.addEventListener('error', () => { close(); ping(); });
  };
  const close = () => { source?.close(); source = null; giveBack(); giveBack = () => {}; };
  const ping = async () => {
    const answer = await patiently(server);
    if (answer?.ok) hear(Date.parse(answer.headers.get('date')) / 1000); else if (!document.hidden) loseContact();
  };
  const look = () => { listenAnew(); if (!isLost()) { open(); reread(); } };
  watchContact({
    attempt: () => reread(),
    lose: close,
    regain: open,
    beat: () => {
      if (source) return;
      beats += 1;
      if (beats % BEATS === 0) ping();
      if (beats % ROWS === 0 && !denied) { open(); if (document.querySelector('[data-stream],tr[data-live]')) refresh(); }
    },
  });
  // A hidden page needs neither a connection nor an answer.
  document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else look(); });
  addEventListener('pagehide', close);
  addEventListener('pageshow', event => { if (event.persisted) look(); });
  open();
}

// Returns a function that gives back one of the streams that all windows may have, or null if there is none. Browsers
// offer no locks to pages of other machines without encryption.
async function freeStream() {
  if (!navigator.locks) return () => {};
  for (let n = 0; n < STREAMS; n++) {
    const free = await new Promise(answer => {
      navigator.locks.request(`foretell stream ${n}`, { ifAvailable: true }, lock => {
        if (!lock) { answer(null); return null; }
        return new Promise(release => { answer(release); });
      });
    });
    if (free) return free;
  }
  return null;
}

function patiently(address, options = {}) {
  return fetch(address, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE), ...options }).catch(() => null);
}

function paced(work) {
  let waiting = false, running = false, again = false;
  const run = async () => {
    waiting = false;
    running = true;
    try { await work(); } finally {
      running = false;
      if (again) { again = false; start(); }
    }
  };
  const start = () => { waiting = true; setTimeout(run, PAUSE); };
  return () => { if (running) again = true; else if (!waiting) start(); };
}

// Reloads the live parts and returns the HTTP status, 0 if the server did not answer in time.
async function reread() {
  const answer = await patiently(location.href, { headers: { Accept: 'text/html' }, signal: AbortSignal.timeout(PAGE_PATIENCE) });
  const text = await answer?.text().catch(() => null);
  if (typeof text !== 'string' || answer.status >= 500) { if (!document.hidden) loseContact(); return 0; }
  hear();
  denied = !answer.ok;
  const fresh = parsed(text);
  if (answer.ok) {
    for (const now of document.querySelectorAll('[data-live]')) {
      const then = fresh.getElementById(now.id);
      if (then) renew(now, then);
    }
    document.title = fresh.title;
  }
  refuse(...refusal(answer.status, fresh));
  return answer.status;
}

// What the server no longer allows, with a link to log in if that helps; the forms of a new session get its sign.
function refusal(status, fresh) {
  if (status === 401) return ['This server now asks for its token: log in to go on', '/login'];
  if (status === 404) return ['The server no longer has this page'];
  const own = document.querySelectorAll('[name=csrf]'), sign = fresh.querySelector('[name=csrf]')?.value;
  if (own.length && !sign) return ['You are logged out, or the token of the server has changed: log in to go on', '/login'];
  for (const field of own) field.value = sign;
  return [''];
}

// Makes one element like another and leaves equal parts alone, so that focus, selection and opened details stay.
export function renew(now, then) {
  if (now.isEqualNode(then)) return;
  if (!alike(now, then) || now.namespaceURI !== 'http://www.w3.org/1999/xhtml') { now.replaceWith(then); return; }
  const open = now.localName === 'details' && now.open;
  for (const { name } of [...now.attributes]) if (!then.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of then.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  if (open) now.open = true;
  // Ignore what figures.js has added.
  const own = child => child.dataset?.added === undefined;
  const old = [...now.childNodes].filter(own), fresh = [...then.childNodes];
  fresh.forEach((child, i) => {
    if (i >= old.length) now.append(child);
    else if (child.nodeType === Node.ELEMENT_NODE && old[i].nodeType === Node.ELEMENT_NODE) renew(old[i], child);
    else if (!old[i].isEqualNode(child)) old[i].replaceWith(child);
  });
  old.slice(fresh.length).forEach(child => child.remove());
}

function alike(a, b) { return a.localName === b.localName && a.id === b.id; }
