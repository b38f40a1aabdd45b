// Returns a fetched page, of which parts become part of this one, and adds the style sheets that this one lacks.
export function parsed(text) {
  const fresh = new DOMParser().parseFromString(text, 'text/html');
  let before = null;
  for (const sheet of fresh.querySelectorAll('style[data-sheet]')) {
    const own = document.querySelector(`style[data-sheet="${sheet.dataset.sheet}"]`);
    const added = own ?? document.importNode(sheet, true);
    if (!own && before) before.after(added);
    else if (!own) document.head.querySelector('style').before(added);
    before = added;
  }
  return fresh;
}
