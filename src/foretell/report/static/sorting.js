const sortable = place => place.querySelectorAll('table.sort').forEach(table => {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    if (!button.textContent.trim()) button.setAttribute('aria-label', 'Sort by name'); // A column without a heading.
    head.append(button);
    button.addEventListener('click', () => {
      const last = head.getAttribute('aria-sort');
      const way = last ? (last === 'ascending' ? -1 : 1) : (head.className === 'n' ? -1 : 1);
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', way === 1 ? 'ascending' : 'descending');
      const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const order = (a, b) => {
        const x = key(a), y = key(b);
        if (x === '' || y === '') return (x === '') - (y === '');
        return way * (isNaN(x - y) ? x.localeCompare(y) : x - y);
      };
      body.append(...[...body.rows].sort(order));
    });
  });
});
sortable(document);
// Parts that are loaded later send an event.
document.addEventListener('part', event => sortable(event.target));
