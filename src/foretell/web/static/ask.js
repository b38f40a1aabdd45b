// What asking will cost and take, from what is chosen: the price of a trial of the model, times the trials.
const form = document.getElementById('ask');
const told = document.getElementById('estimate');
const basis = document.getElementById('estimate-basis');

function minutes(seconds) {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
}

function show() {
  const model = form.querySelector('input[name=pick]:checked');
  const trials = Math.max(1, Number(form.elements.trials?.value) || 1);
  if (!model) { told.textContent = ''; return; }
  const seconds = minutes(Number(model.dataset.seconds));
  basis.textContent = model.dataset.basis ?? '';
  if (model.dataset.dollars === undefined) { told.textContent = `Price not known; about ${seconds}`; return; }
  const dollars = Number(model.dataset.dollars) * trials;
  const money = dollars === 0 ? 'Costs nothing' : `About $${dollars < 0.01 ? dollars.toPrecision(1) : dollars.toFixed(2)}`;
  const limit = Number(form.elements.budget?.value);
  const over = limit && dollars > limit ? `; it will stop at the $${limit} it may spend` : '';
  told.textContent = `${money}, about ${seconds}${over}`;
}

if (form && told) {
  form.addEventListener('input', show);
  form.elements.model?.addEventListener('input', () => {
    if (form.elements.model.value) form.querySelector('input[name=pick][value=""]').checked = true;
  });
  show();
}
