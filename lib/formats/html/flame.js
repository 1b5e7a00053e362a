// SPDX-License-Identifier: LGPL-2.1-or-later
// A selection's samples: a flame graph and the hottest functions.

const FLAME_LINE = 18; // pixels
const FLAME_LEAST = 0.4; // pixels: narrower functions are not drawn
const HOTTEST_ROWS = 30;
const CANVAS_MAX = 16384; // pixels: more than that browsers may not draw

class Flame {
  constructor(parent, sums, dark) {
    this.sums = sums;
    this.dark = dark;
    this.choice = {event: 0, kind: 'all', invert: false, by: ''};
    this.query = '';
    this.zoomed = null;
    this.element = make('div', {parent, className: 'flame'});
    this.buildBar();
    this.canvas = make('canvas', {parent: this.element});
    this.canvas.setAttribute('role', 'img');
    this.line = make('div', {parent: this.element, className: 'line'});
    this.list = make('div', {parent: this.element});
    this.canvas.onclick = (event) => this.click(event);
    this.canvas.onmousemove = (event) => this.point(event);
    this.canvas.onmouseleave = () => this.tell(null);
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.element);
    this.build();
  }

  close() {
    this.observer.disconnect();
  }

  setTheme(dark) {
    this.dark = dark;
    this.paint();
  }

  buildBar() {
    const {sums} = this;
    const bar = make('div', {parent: this.element, className: 'bar'});
    make('b', {parent: bar}, `${sums.count.toLocaleString('en')} samples`);
    const select = (label, key, options) => {
      const element = make('select', {parent: bar, onchange: () => this.choose(key, element.value)});
      element.setAttribute('aria-label', label);
      for (const [value, text] of options) make('option', {parent: element, value}, text);
    };
    if (sums.events.length > 1)
      select(
        'event',
        'event',
        sums.events.map((name, i) => [i, sums.model.names[name]]),
      );
    select('stacks', 'kind', [
      ['all', 'kernel and programs'],
      ['kernel', 'kernel only'],
      ['user', 'programs only'],
    ]);
    select('groups', 'by', [
      ['', 'together'],
      ['thread', 'by thread'],
      ['cpu', 'by CPU'],
    ]);
    const invert = make('button', {
      parent: bar,
      onclick: () => {
        this.choose('invert', !this.choice.invert);
        invert.setAttribute('aria-pressed', this.choice.invert);
      },
    });
    invert.append('invert');
    this.input = make('input', {
      parent: bar,
      type: 'search',
      placeholder: 'function',
      spellcheck: false,
      oninput: () => this.search(this.input.value),
    });
    this.found = make('span', {parent: bar, className: 'count'});
    this.back = make('button', {parent: bar, hidden: true, onclick: () => this.zoom(null)}, 'whole graph');
  }

  choose(key, value) {
    this.choice[key] = key === 'event' ? +value : value;
    this.zoomed = null;
    this.back.hidden = true;
    this.build();
  }

  build() {
    this.root = this.sums.tree(this.choice);
    this.depth = 0;
    this.lay(this.root);
    this.buildList();
    this.search(this.query);
  }

  // Sets each node's place: `at` is where it begins, in weight. Children lie in the order of their weight.
  lay(root) {
    const todo = [root];
    root.at = 0;
    root.depth = 0;
    while (todo.length) {
      const node = todo.pop();
      let {at} = node;
      node.sorted = [...node.children.values()].sort((a, b) => b.total - a.total);
      for (const child of node.sorted) {
        child.at = at;
        child.depth = node.depth + 1;
        at += child.total;
        todo.push(child);
      }
      this.depth = Math.max(this.depth, node.depth);
    }
  }

  weight(n) {
    const event = this.sums.model.names[this.sums.events[this.choice.event]] || '';
    const sum = /clock/.test(event) ? duration(n) : n.toLocaleString('en');
    return `${sum} (${((n / (this.root.total || 1)) * 100).toFixed(1)} %)`;
  }

  buildList() {
    const {functions} = this.sums.hottest(this.choice.event, this.choice.kind);
    this.list.replaceChildren();
    const table = make('table', {parent: this.list}, make('caption', {}, 'hottest functions'));
    make(
      'tr',
      {parent: table},
      ...['', 'alone', 'with what it calls', 'in'].map((text, i) =>
        make('th', {className: i % 3 ? 'number' : ''}, text),
      ),
    );
    for (const f of functions.slice(0, HOTTEST_ROWS)) {
      const show = () => {
        this.input.value = f.name;
        this.search(f.name);
      };
      make(
        'tr',
        {parent: table},
        make('td', {}, make('button', {onclick: show}, shortName(f.name))),
        make('td', {className: 'number'}, this.weight(f.self)),
        make('td', {className: 'number'}, this.weight(f.total)),
        make('td', {}, f.module),
      );
    }
    if (functions.length > HOTTEST_ROWS)
      make('tr', {parent: table}, make('td', {}, `and ${functions.length - HOTTEST_ROWS} more`));
  }

  search(query) {
    this.query = query.trim().toLowerCase();
    this.found.textContent = '';
    if (this.query) {
      let sum = 0;
      const todo = [this.root];
      while (todo.length) {
        const node = todo.pop();
        // A match contains what it calls.
        if (this.matches(node)) sum += node.total;
        else for (const child of node.sorted) todo.push(child);
      }
      this.found.textContent = this.weight(sum);
    }
    this.paint();
  }

  matches(node) {
    return this.query !== '' && !node.isGroup && node.name.toLowerCase().includes(this.query);
  }

  zoom(node) {
    this.zoomed = node && node.parent ? node : null;
    this.back.hidden = !this.zoomed;
    this.paint();
  }

  // Returns {x, width} of a node in pixels. Nodes above the zoomed one fill the width.
  place(node, width) {
    const focus = this.zoomed || this.root;
    const scale = width / (focus.total || 1);
    const x = Math.max(0, (node.at - focus.at) * scale);
    return {x, width: Math.min(width, (node.at + node.total - focus.at) * scale) - x};
  }

  color(node) {
    if (node.isGroup) return this.dark ? '#394252' : '#dde2ea';
    if (this.matches(node)) return this.dark ? '#b0479b' : '#ee9fdc';
    let hash = 7;
    for (let i = 0; i < node.name.length; i++) hash = (Math.imul(hash, 31) + node.name.charCodeAt(i)) >>> 0;
    const part = hash % 24;
    const hue = isKernelModule(node.module) ? 26 + part : 196 + part;
    return `hsl(${hue} ${this.dark ? 45 : 72}% ${this.dark ? 30 + (part % 5) : 74 + (part % 7)}%)`;
  }

  paint() {
    const {canvas, root} = this;
    const width = this.element.clientWidth;
    if (!width || !root) return;
    const ratio = window.devicePixelRatio || 1;
    const height = (this.depth + 1) * FLAME_LINE;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.min(CANVAS_MAX, Math.round(height * ratio));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${canvas.height / ratio}px`;
    const c = canvas.getContext('2d');
    c.scale(ratio, ratio);
    c.font = FONT;
    c.textBaseline = 'middle';
    this.drawn = [];
    const todo = [root];
    while (todo.length) {
      const node = todo.pop();
      const place = this.place(node, width);
      if (place.width < FLAME_LEAST) continue;
      this.paintNode(c, node, place);
      for (const child of node.sorted) todo.push(child);
    }
    canvas.setAttribute('aria-label', `flame graph of ${this.weight(root.total)}`);
  }

  paintNode(c, node, {x, width}) {
    const y = node.depth * FLAME_LINE;
    this.drawn.push({node, x, width, y});
    const above = this.zoomed && node.depth < this.zoomed.depth;
    c.globalAlpha = above ? 0.5 : 1;
    c.fillStyle = this.color(node);
    c.fillRect(x, y, Math.max(0.5, width - 0.5), FLAME_LINE - 1);
    c.globalAlpha = 1;
    if (width - 8 < 3 * CHAR) return;
    c.fillStyle = this.dark ? '#eef1f5' : '#1c2430';
    c.fillText(fitText(c, node.name, width - 8), x + 4, y + FLAME_LINE / 2);
  }

  nodeAt({offsetX: x, offsetY: y}) {
    const hit = this.drawn.find((d) => y >= d.y && y < d.y + FLAME_LINE && x >= d.x && x < d.x + d.width);
    return hit ? hit.node : null;
  }

  click(event) {
    const node = this.nodeAt(event);
    if (node) this.zoom(node);
  }

  point(event) {
    this.tell(this.nodeAt(event));
  }

  tell(node) {
    this.canvas.style.cursor = node ? 'pointer' : '';
    const words = node && [node.name, node.module, this.weight(node.total), `alone ${this.weight(node.self)}`];
    this.line.textContent = node
      ? plain(words.filter(Boolean).join(' · '))
      : 'orange: kernel, blue: programs; a click zooms in';
  }
}
