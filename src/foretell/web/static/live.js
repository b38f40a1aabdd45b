// Follows a stream of events. Each says only that something happened: what to show is the page itself, read again,
// so that a live page, a reloaded one and one of a finished run are the same.

const PAUSE = 400; // milliseconds between two readings at least
const RETRY = 5000;

export function follow(place) {
  const url = new URL(place.dataset.stream, location.href);
  const refresh = paced(() => reread(location.href));
  let source = null, after = place.dataset.after, ended = false;
  const open = () => {
    if (source || ended) return;
    url.searchParams.set('after', after);
    url.searchParams.set('brief', 'true');
    source = new EventSource(url);
    source.addEventListener('told', told => { after = told.lastEventId; refresh(); });
    source.addEventListener('waiting', told => {
      for (const one of document.querySelectorAll('[data-waiting]')) one.textContent = JSON.parse(told.data).text;
    });
    // A browser does not come back by itself after a refusal, such as that of a server that too many listen to.
    source.addEventListener('error', () => {
      if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(() => { open(); refresh(); }, RETRY); }
    });
    source.addEventListener('end', () => { ended = true; close(); refresh(); });
  };
  const close = () => { source?.close(); source = null; };
  // A browser holds few connections to one server: a tab that nobody sees gives its own back.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close(); else { open(); refresh(); }
  });
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', open);
  open();
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

export async function reread(address) {
  // A server that is gone is waited for by the stream, which tells when there is more.
  const answer = await fetch(address, { headers: { Accept: 'text/html' } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const now of document.querySelectorAll('[data-live]')) {
    const then = fresh.getElementById(now.id);
    if (then) renew(now, then);
  }
  document.title = fresh.title;
}

// Makes one element like another, leaving alone what is the same: focus, selection and opened details stay.
export function renew(now, then) {
  if (now.isEqualNode(then)) return;
  if (!alike(now, then) || now.namespaceURI !== 'http://www.w3.org/1999/xhtml') { now.replaceWith(then); return; }
  const open = now.localName === 'details' && now.open;
  for (const { name } of [...now.attributes]) if (!then.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of then.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  if (open) now.open = true;
  // What figures.js added is no part of what the server sends.
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
