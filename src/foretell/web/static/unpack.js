// Used in files: fills in the content of a page, which is stored compressed, and then starts the page's other scripts.
const loader = document.currentScript;

async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}

// A part is a script that leaves its data on its element: browsers load no other data from disk.
function load(part) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.onload = () => resolve(script.packed);
    script.onerror = () => reject(new Error(`The file ${part} of this site is missing.`));
    script.src = part;
    document.head.append(script);
  });
}

// The page that the address names, among those that share this file.
async function page(index) {
  const key = location.search.slice(1).split(/[&=]/)[0];
  const place = index.textContent.split('\n').findIndex(part => key && part.split(' ').includes(key));
  if (place < 0) throw new Error('This site has no page at this address.');
  const pages = JSON.parse(await unpacked(await load(`${index.dataset.folder}/${place + 1}.js`)));
  const [title, content] = pages[key];
  document.title = title;
  return content;
}

async function fill(main) {
  const packed = document.getElementById('packed');
  try {
    main.innerHTML = packed ? await unpacked(packed.textContent) : await page(document.getElementById('pages'));
  } catch (problem) {
    const note = document.createElement('p');
    note.className = 'note';
    note.textContent = problem.message;
    main.append(note);
  }
  for (const src of loader.dataset.then.split(' ').filter(Boolean)) {
    const script = document.createElement('script');
    script.async = false; // They run in this order.
    script.src = src;
    document.body.append(script);
  }
}

fill(document.getElementById('main'));
