// Updates the estimate of cost and time whenever a choice changes, and the equivalent command.
const form = document.getElementById('ask');
const text = document.getElementById('estimate');
const basis = document.getElementById('estimate-basis');
const share = document.getElementById('share');
const command = document.getElementById('command');
const FIELDS = ['search', 'effort'];
const PAUSE = 200; // milliseconds without a change before a request

function choices() {
  const sent = new FormData(form), parameters = new URLSearchParams();
  const set = (name, value) => { if (value) parameters.append(name, value); };
  set('model', sent.get('model') || sent.get('pick') || 'none');
  set('trials', sent.get('other_trials') || sent.get('trials'));
  set('budget', sent.get('budget'));
  for (const name of FIELDS) for (const value of sent.getAll(name)) set(name, value);
  for (const line of (sent.get('set') || '').split('\n')) set('set', line.trim());
  if (sent.get('model_price')) set('set', `prices.agent=${sent.get('model_price')}`);
  if (!parameters.has('search')) parameters.set('search', 'none');
  return parameters;
}

async function estimate() {
  const chosen = choices(), budget = Number(chosen.get('budget'));
  if ([...form.elements].some(field => field.name !== 'question' && !field.validity.valid)) return; // The browser shows why.
  const answer = await fetch(`/api/ask/estimate?${chosen}`).catch(() => null);
  if (!answer?.ok || String(choices()) !== String(chosen)) return; // The choices have changed since.
  const estimate = await answer.json();
  text.textContent = estimate.text;
  basis.textContent = estimate.basis;
  share.hidden = !(budget && estimate.dollars);
  if (!share.hidden) { share.max = budget; share.value = Math.min(estimate.dollars, budget); }
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
    for (const button of form.querySelectorAll('input[name=trials]')) button.checked = false;
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
