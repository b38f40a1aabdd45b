// Used in files: fills in the content of a page, which is stored compressed, and then starts the page's other scripts.
const loader = document.currentScript;

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.textContent), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  document.getElementById('main').innerHTML = await new Response(stream).text();
  for (const src of loader.dataset.then.split(' ').filter(Boolean)) {
    const script = document.createElement('script');
    script.async = false; // They run in this order.
    script.src = src;
    document.body.append(script);
  }
}

unpack(document.getElementById('packed'));
