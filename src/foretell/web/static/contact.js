// Whether the server answers. Without contact, a page says so, stops its clocks and sends nothing until contact is back.

const SILENCE = 5000; // milliseconds without a message after which contact is lost
const LONGEST = 30_000; // maximum number of milliseconds between two attempts
const TICK = 1000;
const NOTE = 20_000; // milliseconds for which a page says that contact is back

const root = document.documentElement;
let looked = Date.now(); // when the page last looked
let heard = Date.now(); // when the last message came, or when the page began to listen
let ahead = null; // the server's clock minus ours in seconds; null until a message states its time
let lost = false, refused = '', login = '', attempts = 0, next = 0, timer = 0, events = {};

// `attempt` asks the server for the page and returns its HTTP status, 0 without an answer. `lose` and `regain` are
// called when contact is lost and back, and `beat` every second while there is contact.
export function watchContact(handlers) {
  events = handlers;
  setInterval(tick, TICK);
  addEventListener('submit', hold, { capture: true });
  addEventListener('click', event => { if (serverLink(event.target.closest?.('a[href]'))) hold(event); }, { capture: true });
}

// Records a message from the server, with the server's time in seconds if the message states it.
export function hear(time) {
  heard = Date.now();
  if (time) ahead = time - heard / 1000;
}

// Starts listening anew, for example after the tab was hidden: the clocks wait for the first message.
export function listenAnew() {
  if (lost) { attempt(); return; }
  heard = Date.now();
  ahead = null;
}

export function isLost() { return lost; }

export function loseContact() {
  if (lost) return;
  lost = true;
  attempts = 0;
  root.dataset.contact = 'lost';
  setControls();
  events.lose();
  attempt();
}

// What a visitor may no longer do although the server answers, such as after its token has changed; '' for nothing.
export function refuse(text, link = '') {
  if (text === refused) return;
  [refused, login] = [text, link];
  if (text) show(text, '', '', link); else banner()?.remove();
  setControls();
}

function tick() {
  const late = Math.abs(Date.now() - looked) > SILENCE;
  looked = Date.now();
  // After sleep or long work of the browser, messages may be waiting to be read.
  if (document.hidden || late) return;
  // A jump of the clock also means that the page does not know what has happened since.
  if (!lost && Math.abs(Date.now() - heard) > SILENCE) loseContact();
  if (lost) count(); else { clocks(); events.beat(); }
}

async function attempt() {
  clearTimeout(timer);
  next = 0;
  count();
  const status = await events.attempt();
  if (!lost) return;
  if (status) { regain(); return; }
  const pause = Math.min(LONGEST, TICK * 2 ** attempts++);
  next = Date.now() + pause;
  timer = setTimeout(attempt, pause);
  count();
}

function regain() {
  lost = false;
  listenAnew();
  delete root.dataset.contact;
  setControls();
  if (refused) show(refused, '', '', login);
  else {
    show(`Contact again since ${timeOf(Date.now())}`, '', 'This page shows the state as it is now.');
    setTimeout(() => { if (!lost && !refused) banner()?.remove(); }, NOTE);
  }
  events.regain();
}

// The clocks follow the server's time and stand still without contact.
function clocks() {
  if (ahead === null) return;
  for (const place of document.querySelectorAll('[data-since]')) {
    const passed = Math.max(0, Date.now() / 1000 + ahead - Number(place.dataset.since));
    const bar = place.querySelector('progress');
    place.querySelector('strong').textContent = lasting(passed);
    if (bar) bar.value = Math.min(passed, bar.max);
  }
}

function lasting(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

function timeOf(milliseconds) { return new Date(milliseconds).toTimeString().slice(0, 8); }

// Orders to the server wait: nothing is sent, and no link leads to the browser's page for errors.
function hold(event) {
  const signedOut = refused && event.target.querySelector?.('[name=csrf]');
  if (!lost && !signedOut) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  banner()?.scrollIntoView({ block: 'nearest' });
}

function serverLink(link) {
  return link && link.origin === location.origin && link.href.split('#')[0] !== location.href.split('#')[0];
}

function setControls() {
  for (const button of document.querySelectorAll('form button:not([type=button])')) {
    const off = lost || (refused && button.form.querySelector('[name=csrf]'));
    if (off) button.setAttribute('aria-disabled', 'true'); else button.removeAttribute('aria-disabled');
  }
}

function banner() { return document.getElementById('contact'); }

function count() {
  if (!lost) return;
  const wait = next ? ` in ${Math.max(0, Math.ceil((next - Date.now()) / 1000))} s` : ' now';
  show(`No contact since ${timeOf(heard)}, trying again`, wait,
    'Clocks are stopped, and nothing can be sent until contact is back. Work on the server does not need this page.');
}

function show(title, moving, text, link = '') {
  let place = banner();
  if (!place) {
    place = document.createElement('div');
    place.id = 'contact';
    place.setAttribute('role', 'status');
    place.innerHTML = '<p><strong></strong><span aria-hidden="true"></span><br><small></small></p><button type="button" class="second">Try now</button>';
    place.querySelector('button').addEventListener('click', () => { if (lost) attempt(); else events.attempt(); });
    document.getElementById('main').prepend(place);
  }
  const set = (name, value) => { const element = place.querySelector(name); if (element.textContent !== value) element.textContent = value; };
  set('strong', title);
  set('span', moving);
  set('small', text);
  place.querySelector('a')?.remove();
  if (link) {
    const way = document.createElement('a');
    [way.href, way.className, way.textContent] = [link, 'button', 'Log in'];
    place.querySelector('button').before(way);
  }
  place.querySelector('button').hidden = !lost && !link;
}
