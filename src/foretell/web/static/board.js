// Tables that are dropped onto the board or chosen: their text goes into the form, as if it had been pasted.
const MOST = 900_000;
const form = document.getElementById('board');
const drop = form.querySelector('.drop');
const tables = document.getElementById('tables');
drop.hidden = false;

async function add(files) {
  for (const file of files) {
    const empty = [...tables.children].find((one) => !one.querySelector('textarea').value.trim());
    const line = empty ?? tables.appendChild(tables.lastElementChild.cloneNode(true));
    const text = file.size > MOST ? '' : await file.text();
    line.querySelector('input').value = file.name;
    line.querySelector('textarea').value = text;
    line.querySelector('textarea').placeholder = text ? '' : `${file.name} is too large for a page: foretell score -f ${file.name}`;
  }
}

drop.querySelector('input').addEventListener('change', (event) => add(event.target.files));
for (const kind of ['dragover', 'dragleave', 'drop']) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    drop.classList.toggle('over', kind === 'dragover');
    if (kind === 'drop') add(event.dataTransfer.files);
  });
}
