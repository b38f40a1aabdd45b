// What asking will cost and take, asked of the server whenever a choice changes, and the command that asks the same.
const form = document.getElementById('ask');
const text = document.getElementById('estimate');
const basis = document.getElementById('estimate-basis');
const share = document.getElementById('share');
const command = document.getElementById('command');
const FIELDS = ['search', 'effort'];
const PAUSE = 200; // milliseconds without a change before the server is asked

function choices() {
  const sent = new FormData(form), found = new URLSearchParams();
  const set = (name, value) => { if (value) found.append(name, value); };
  set('model', sent.get('model') || sent.get('pick') || 'none');
  set('trials', sent.get('other_trials') || sent.get('trials'));
  set('budget', sent.get('budget'));
  for (const name of FIELDS) for (const value of sent.getAll(name)) set(name, value);
  for (const line of (sent.get('set') || '').split('\n')) set('set', line.trim());
  if (sent.get('model_price')) set('set', `prices.agent=${sent.get('model_price')}`);
  if (!found.has('search')) found.set('search', 'none');
  return found;
}

async function estimate() {
  const chosen = choices(), budget = Number(chosen.get('budget'));
  if ([...form.elements].some(one => one.name !== 'question' && !one.validity.valid)) return; // The browser says why.
  const answer = await fetch(`/api/ask/estimate?${chosen}`).catch(() => null);
  if (!answer?.ok || String(choices()) !== String(chosen)) return; // Something else was chosen meanwhile.
  const told = await answer.json();
  text.textContent = told.text;
  basis.textContent = told.basis;
  share.hidden = !(budget && told.dollars);
  if (!share.hidden) { share.max = budget; share.value = Math.min(told.dollars, budget); }
}

function quoted(word) {
  return /^[\w@%+=:,.\/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function showCommand() {
  const sent = new FormData(form), question = sent.get('question').trim(), chosen = choices();
  command.hidden = !question;
  const words = ['foretell', 'ask', question];
  for (const name of ['closes', 'price']) if (sent.get(name)) words.push(`--${name}`, sent.get(name));
  for (const name of ['model', 'search', 'effort', 'trials', 'budget', 'set'])
    for (const value of chosen.getAll(name)) if (value !== 'none') words.push(`--${name}`, value);
  command.querySelector('code').textContent = words.map(quoted).join(' ');
}

let waiting = 0;
function changed(event) {
  const { target } = event;
  if (target.name === 'other_trials' && target.value)
    for (const one of form.querySelectorAll('input[name=trials]')) one.checked = false;
  if (target.name === 'trials') form.elements.other_trials.value = '';
  if (target.name === 'model' && target.value) form.querySelector('input[name=pick][value=""]').checked = true;
  showCommand();
  clearTimeout(waiting);
  waiting = setTimeout(estimate, PAUSE);
}

if (form && text) {
  form.addEventListener('input', changed);
  showCommand();
  estimate();
}
