// The tree as a graph: positions and sizes of its cards, zoom, and the minimap.
const NARROWEST = 184, NARROW = 240, WIDE = 380, BETWEEN = 44, MARGIN = 22;
const SMALLEST = 0.03, LARGEST = 2, READABLE = 0.92, FAR = 0.55, MANY = 150;
const SVG = 'http://www.w3.org/2000/svg';

// Every level is a column. Subtrees are moved up until the gap between two cards of a level is minimal.
export function layOut(root, childrenOf, heightOf, wide, gap) {
  const offset = new Map();
  const lay = (card) => {
    const height = heightOf(card), children = childrenOf(card);
    if (!children.length) return { top: [0], bottom: [height] };
    const top = [], bottom = [], shifts = [];
    for (const child of children) {
      const part = lay(child);
      let shift = 0;
      for (let i = 0; i < Math.min(bottom.length, part.top.length); i++) shift = Math.max(shift, bottom[i] + gap - part.top[i]);
      part.top.forEach((edge, i) => { top[i] ??= edge + shift; bottom[i] = part.bottom[i] + shift; });
      shifts.push(shift);
    }
    const ends = [0, children.length - 1].map((i) => shifts[i] + heightOf(children[i]) / 2);
    const own = (ends[0] + ends[1] - height) / 2;
    children.forEach((child, i) => offset.set(child, shifts[i] - own));
    return { top: [0, ...top.map((edge) => edge - own)], bottom: [height, ...bottom.map((edge) => edge - own)] };
  };
  const whole = lay(root), places = new Map();
  const put = (card, level, y) => {
    places.set(card, { x: MARGIN + level * (wide + BETWEEN), y, height: heightOf(card) });
    for (const child of childrenOf(card)) put(child, level + 1, y + offset.get(child));
  };
  put(root, 0, MARGIN - Math.min(...whole.top));
  return { places, levels: whole.top.length, width: 2 * MARGIN + (whole.top.length - 1) * (wide + BETWEEN) + wide, height: 2 * MARGIN + Math.max(...whole.bottom) - Math.min(...whole.top) };
}

export function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// `links()` gives [from, to, class, thickness] for every line; hidden cards have no position.
export class TreeCanvas {
  constructor(canvas, links) {
    this.canvas = canvas;
    this.links = links;
    this.scale = 1;
    this.wide = NARROW;
    this.breadth = 1;
    this.tall = null;
    this.places = new Map();
    this.size = { width: 0, height: 0 };
    const part = (id) => document.getElementById(id);
    [this.room, this.sheet, this.lines, this.map, this.scaleText] = ['room', 'sheet', 'links', 'minimap', 'scale'].map(part);
    part('fit').addEventListener('click', () => this.fit());
    part('in').addEventListener('click', () => this.zoom(this.scale * 1.25));
    part('out').addEventListener('click', () => this.zoom(this.scale / 1.25));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('scroll', () => this.look());
    this.drag();
    this.pinch();
    this.steer();
    addEventListener('resize', () => {
      if (!this.shown || !canvas.clientWidth) return; // The canvas is not visible.
      const whole = Math.abs(this.scale - this.whole()) < 0.01; // If the whole tree was visible, it stays so.
      this.breadth = canvas.clientWidth;
      if (!whole || !this.root) return void this.zoom(this.scale);
      this.arrange(...this.arranged); // Another width may need other cards.
      this.begin(this.root);
    });
  }

  get shown() { return this.canvas.classList.contains('graph'); }

  // With `fit` the whole tree is shown, which avoids laying out a thousand cards at full size first.
  arrange(root, childrenOf, cards, fit = false) {
    this.arranged = [root, childrenOf, cards];
    this.measure(root, cards);
    const usual = this.lay(root, childrenOf, NARROW, this.tall.usual, 12);
    // If the whole tree is too small to read, use compact cards: lower, and as wide as the screen allows.
    const room = (this.breadth / READABLE - 2 * MARGIN + BETWEEN) / usual.levels - BETWEEN;
    const wide = Math.floor(Math.min(WIDE, Math.max(NARROWEST, room)));
    const low = (tall) => this.lay(root, childrenOf, wide, tall, 8);
    const lower = this.whole(usual) < READABLE ? low(this.tall.compact) : usual;
    const compact = this.whole(lower) > this.whole(usual); // Lower cards do not help if the width is the limit.
    // With space to spare, two lines of each claim are shown instead of one.
    const lines = compact ? low(this.tall.lines) : lower;
    const two = compact && this.whole(lines) >= this.whole(lower);
    const layout = two ? lines : compact ? lower : usual;
    this.sheet.classList.toggle('compact', compact);
    this.sheet.classList.toggle('lines', two);
    this.sheet.classList.toggle('many', cards.length > MANY);
    this.wide = layout.wide;
    this.places = layout.places;
    this.size = layout;
    for (const [card, { x, y, height }] of layout.places) {
      card.style.transform = `translate(${x}px, ${y}px)`;
      card.style.width = `${layout.wide}px`;
      card.style.height = `${height}px`; // A fixed height, so that cards never overlap.
    }
    this.lines.setAttribute('width', layout.width);
    this.lines.setAttribute('height', layout.height);
    this.draw();
    if (fit) this.fit(); else this.zoom(this.scale);
  }

  lay(root, childrenOf, wide, tall, gap) {
    return { wide, ...layOut(root, childrenOf, (card) => (card === root ? tall.root : tall.other), wide, gap) };
  }

  // All cards except the root's have the same height. Measure a few once, because measuring a thousand is slow.
  measure(root, cards) {
    this.breadth = this.canvas.clientWidth || this.breadth;
    if (this.tall) return;
    const some = cards.filter((card) => card !== root).slice(0, 12);
    const look = (compact, lines = false) => {
      this.sheet.classList.toggle('compact', compact);
      this.sheet.classList.toggle('lines', lines);
      for (const card of [root, ...some]) { card.style.height = ''; card.style.width = `${NARROW}px`; }
      return { root: root.offsetHeight, other: Math.max(1, ...some.map((card) => card.offsetHeight)) };
    };
    this.sheet.classList.remove('far');
    this.tall = { usual: look(false), lines: look(true, true), compact: look(true) };
  }

  leave(cards) {
    for (const card of cards) for (const property of ['transform', 'height', 'width']) card.style[property] = '';
    for (const part of [this.room, this.sheet]) { part.style.width = ''; part.style.height = ''; part.style.transform = ''; }
    this.sheet.classList.remove('far', 'compact', 'lines', 'many');
    this.map.classList.add('off');
  }

  // Lines of one kind and thickness are drawn as one path, as are the spots of the map, so that large trees stay fast.
  draw() {
    if (!this.shown) return;
    const lines = new Map(), spots = new Map();
    const add = (parts, key, text) => parts.set(key, (parts.get(key) ?? '') + text);
    for (const [from, to, kind, thickness] of this.links()) {
      const [a, b] = [this.places.get(from), this.places.get(to)];
      if (!a || !b) continue;
      const [x1, y1, x2, y2] = [a.x + this.wide, a.y + a.height / 2, b.x, b.y + b.height / 2];
      const middle = (x1 + x2) / 2;
      add(lines, `${Math.round(2 * thickness) / 2} ${kind}`, `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
      const sign = /helps|hinders/.exec(kind)?.[0];
      if (sign) add(lines, `1.6 sign ${sign}`, `M${x2 - 16} ${y2}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0M${x2 - 12.5} ${y2}h7${sign === 'helps' ? `M${x2 - 9} ${y2 - 3.5}v7` : ''}`);
    }
    for (const [card, { x, y, height }] of this.places) {
      const kind = ['failed', 'stale', 'changed'].find((name) => card.classList.contains(name)) ?? 'spot';
      add(spots, kind, `M${x} ${y}h${this.wide}v${height}h${-this.wide}z`);
    }
    const paths = [...lines].sort(([a], [b]) => a.includes('sign') - b.includes('sign'));
    this.lines.replaceChildren(...paths.map(([key, d]) => shape('path', { d, 'stroke-width': key.split(' ', 1)[0], class: key.slice(key.indexOf(' ') + 1) })));
    this.view = shape('rect', { class: 'view' });
    this.map.replaceChildren(...[...spots].map(([kind, d]) => shape('path', { d, class: kind })), this.view);
    this.frame();
  }

  // The canvas is as high as the space that the page reserves for it.
  get most() { return this.canvas.clientHeight; }

  whole(size = this.size) { return Math.min(1, this.breadth / size.width, this.most / size.height); }

  fit() {
    this.zoom(Math.max(SMALLEST, this.whole()));
    this.canvas.scrollTo(0, 0);
  }

  // The first view: the whole tree if that can be read, else the readable part around the root.
  begin(root) {
    this.root = root;
    this.zoom(Math.max(this.whole(), READABLE));
    this.show(root);
  }

  zoom(wanted, at = null) {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, wanted)), before = this.scale;
    const { canvas, size } = this;
    const [x, y] = at ?? [canvas.clientWidth / 2, canvas.clientHeight / 2];
    const [left, top] = [(canvas.scrollLeft + x) / before, (canvas.scrollTop + y) / before];
    this.scale = scale;
    this.sheet.style.transform = `scale(${scale})`;
    this.sheet.style.width = `${size.width}px`;
    this.sheet.style.height = `${size.height}px`;
    this.room.style.width = `${size.width * scale}px`;
    this.room.style.height = `${size.height * scale}px`;
    this.sheet.classList.toggle('far', scale < FAR);
    canvas.scrollTo(left * scale - x, top * scale - y);
    this.scaleText.textContent = `${Math.round(100 * scale)} %`;
    this.look();
  }

  show(card) {
    const place = this.places.get(card);
    if (!place) return;
    const { canvas, scale } = this;
    canvas.scrollTo(scale * (place.x + this.wide / 2) - canvas.clientWidth / 2, scale * (place.y + place.height / 2) - canvas.clientHeight / 2);
  }

  look() {
    const { canvas, map, size, scale } = this;
    const hidden = !this.shown || (canvas.scrollWidth <= canvas.clientWidth + 2 && canvas.scrollHeight <= canvas.clientHeight + 2);
    map.classList.toggle('off', hidden);
    if (hidden) return;
    const small = Math.min(170 / size.width, 120 / size.height);
    map.setAttribute('width', Math.max(56, size.width * small)); // The map of a tall tree would be too narrow.
    map.setAttribute('height', size.height * small);
    map.setAttribute('preserveAspectRatio', 'none');
    map.setAttribute('viewBox', `0 0 ${size.width} ${size.height}`);
    this.frame();
  }

  // Shows on the map which part of the sheet is visible.
  frame() {
    const { canvas, map, scale } = this;
    if (map.classList.contains('off')) return;
    const at = { x: canvas.scrollLeft, y: canvas.scrollTop, width: canvas.clientWidth, height: canvas.clientHeight };
    for (const [key, value] of Object.entries(at)) this.view?.setAttribute(key, value / scale);
  }

  key(event) {
    if (!this.shown || event.ctrlKey || event.metaKey || event.target.type === 'number') return;
    if (event.key === '+' || event.key === '=') this.zoom(this.scale * 1.25);
    else if (event.key === '-') this.zoom(this.scale / 1.25);
    else if (event.key === '0') this.fit();
    else return;
    event.preventDefault();
  }

  // The wheel scrolls the page; in the tree it zooms if the tree has the focus, or with Ctrl.
  wheel(event) {
    if (!this.shown || !(event.ctrlKey || event.metaKey || this.canvas.contains(document.activeElement))) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    this.zoom(this.scale * Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) / 400), [event.clientX - box.left, event.clientY - box.top]);
  }

  drag() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener('pointerdown', (event) => {
      if (!this.shown || event.pointerType !== 'mouse' || event.button || event.target.closest('input, button, a, label')) return;
      from = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
      canvas.classList.add('dragged');
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => { if (from) canvas.scrollTo(from[0] - event.clientX, from[1] - event.clientY); });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { from = null; canvas.classList.remove('dragged'); });
  }

  pinch() {
    const { canvas } = this;
    const apart = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    let start = 0, before = 1;
    canvas.addEventListener('touchstart', (event) => { if (event.touches.length === 2) { start = apart(event.touches); before = this.scale; } }, { passive: true });
    canvas.addEventListener('touchmove', (event) => {
      if (!this.shown || event.touches.length !== 2 || !start) return;
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), [a, b] = event.touches;
      this.zoom(before * apart(event.touches) / start, [(a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top]);
    }, { passive: false });
  }

  steer() {
    const go = (event) => {
      const box = this.map.getBoundingClientRect(), { canvas, size, scale } = this;
      const x = (event.clientX - box.left) / box.width * size.width, y = (event.clientY - box.top) / box.height * size.height;
      canvas.scrollTo(x * scale - canvas.clientWidth / 2, y * scale - canvas.clientHeight / 2);
    };
    this.map.addEventListener('pointerdown', (event) => { this.map.setPointerCapture(event.pointerId); go(event); });
    this.map.addEventListener('pointermove', (event) => { if (event.buttons) go(event); });
  }
}
