// SPDX-License-Identifier: LGPL-2.1-or-later
// The page loads the model piece by piece, and shows the part that people choose.

const OVERVIEW = 30;
const RULER = 22;
const HEAD = OVERVIEW + RULER;
const MOMENT_SPAN = 20e6; // ns around a time of a report
const ANSWER_MS = 4; // of each frame, for searches and sums, so that moving stays smooth
const KEYS_HELP = [
  ['W S', 'zoom in and out'],
  ['A D', 'move left and right'],
  ['wheel', 'scroll; with Ctrl: zoom; with Shift: move sideways'],
  ['drag', 'select a time and rows; with Shift, or on the ruler: move'],
  ['click', 'show details; on a heading: open or close it'],
  ['F', 'zoom to the selection'],
  ['0', 'show the whole trace'],
  ['M', 'mark the moment under the pointer; two of them tell the time between'],
  ['C', 'copy a link to this view, with its moments'],
  ['P', 'save a picture (PNG) of this view'],
  ['t', 'show or hide the report, if the page has one'],
  ['/', 'search; Enter and Shift Enter: go to the next and the previous match'],
  ['Esc', 'clear the selection'],
];

// Runs a generator for `ms` milliseconds at a time. The page can paint in between.
function inSlices(work, onSlice, ms = 12) {
  return new Promise((resolve, reject) => {
    const channel = new MessageChannel();
    let slices = 0;
    channel.port1.onmessage = () => {
      const until = performance.now() + ms;
      try {
        for (;;) {
          const {done, value} = work.next();
          if (done) return resolve(value);
          if (performance.now() > until) break;
        }
      } catch (error) {
        return reject(error);
      }
      onSlice();
      // A message arrives before the next frame, a timer fires after it.
      return ++slices % 4 ? channel.port2.postMessage(0) : setTimeout(() => channel.port2.postMessage(0));
    };
    channel.port2.postMessage(0);
  });
}

// The losses of one CPU; empty if there are none.
function describeLosses(cpu) {
  const lost = cpu.lost_overrun + cpu.lost_other;
  const say = [];
  if (lost) say.push(`${lost.toLocaleString('en')} events in ${cpu.gaps.toLocaleString('en')} gaps`);
  if (cpu.samples_lost) say.push(`${cpu.samples_lost.toLocaleString('en')} samples`);
  return say.length ? `CPU ${cpu.cpu} lost ${say.join(' and ')}` : '';
}

function* whileWanted(work, isWanted) {
  while (isWanted() && !work.next().done) yield;
}

class Viewer {
  constructor() {
    this.keys = new Set();
    this.dark = matchMedia('(prefers-color-scheme: dark)');
  }

  async start() {
    const {dark} = this;
    const preview = new Preview();
    this.model = new Model();
    const source = new Source(this.model, () => preview.show(this.model, dark.matches));
    await source.load();
    await inSlices(this.model.seal(), () => {});
    preview.remove();
    this.preview = preview;
    this.build();
    this.ready = true;
  }

  build() {
    const {model} = this;
    this.rows = new Rows(model);
    this.search = new Search(model);
    this.buildPage();
    this.painter = new Painter(model, this.rows, this.canvas);
    const margin = Math.max((model.lastTime - model.firstTime) * 0.01, 500);
    this.whole = {from: model.firstTime - margin, to: model.lastTime + margin};
    this.show(this.whole.from, this.whole.to);
    this.setTheme();
    this.dark.addEventListener('change', () => this.setTheme());
    new ResizeObserver(() => this.resize()).observe(this.scroll);
    this.listen();
    this.resize();
    this.moments.restore();
  }

  buildPage() {
    const header = make('header', {parent: document.body});
    make('h1', {parent: header}, this.title());
    this.about = make('span', {parent: header, className: 'about'});
    this.describe();
    this.input = make('input', {parent: header, type: 'search', placeholder: 'search  /', spellcheck: false});
    this.count = make('span', {parent: header, className: 'count'});
    this.help = make('dialog', {parent: document.body});
    const keys = make('table', {parent: this.help});
    for (const [key, text] of KEYS_HELP)
      make('tr', {parent: keys}, make('td', {}, make('kbd', {}, key)), make('td', {}, text));
    this.tables = new Tables(this.model, (t, row) => this.goToMoment(t, row));
    this.sumsView = new SumsView(this.model, (t, place) => this.goToMoment(t, place));
    if (this.tables.all.length) make('button', {parent: header, onclick: () => this.toggleTables()}, 'report');
    make('button', {parent: header, onclick: () => this.help.showModal()}, '?');
    this.help.onclick = () => this.help.close();
    this.head = make('canvas', {parent: document.body, id: 'head'});
    this.moments = new Moments(this, this.head);
    this.scroll = make('div', {parent: document.body, id: 'scroll', tabIndex: 0});
    this.spacer = make('div', {parent: this.scroll});
    this.canvas = make('canvas', {parent: this.spacer});
    this.details = make('section', {parent: document.body, id: 'details', hidden: true});
    this.report = make('section', {parent: document.body, id: 'report', hidden: true});
    this.tip = make('div', {parent: document.body, id: 'tip', hidden: true});
  }

  title() {
    const {about} = this.model;
    const title = about ? [about.hostname, about.started].filter((s) => s && s !== '(none)').join(', ') : 'trace';
    document.title = title || 'trace';
    return title || 'trace';
  }

  describe() {
    const {model} = this;
    const {about} = model;
    const n = model.time.length + model.elements.length;
    const say = [about ? `${about.system} ${about.kernel}` : '', duration(model.lastTime - model.firstTime)];
    say.push(`${(about ? about.events : n).toLocaleString('en')} events`);
    this.about.append(say.filter(Boolean).join(' · '));
    const bad = [];
    const lost = about ? about.lost : 0;
    const cpus = (about && about.cpus) || [];
    const samples = cpus.reduce((sum, cpu) => sum + (cpu.samples_lost || 0), 0);
    if (lost) bad.push(`${lost.toLocaleString('en')} lost`);
    if (samples) bad.push(`${samples.toLocaleString('en')} samples lost`);
    if (model.cut) bad.push('the file was cut: its end is missing');
    else if (about && about.incomplete) bad.push('the recording is incomplete');
    if (model.strange) bad.push(`${model.strange} lines could not be read`);
    if (bad.length) this.about.append(' · ', make('b', {}, bad.join(' · ')));
    if (model.notDrawn) this.about.append(` · ${model.notDrawn} elements cannot be drawn`);
    const more = cpus.map(describeLosses).filter(Boolean).concat((about && about.warnings) || []);
    this.about.title = [this.about.textContent, ...more].join('\n');
  }

  setTheme() {
    this.painter.setTheme(new Theme(this.dark.matches));
    this.overview = null;
    this.dirty();
  }

  resize() {
    const width = this.scroll.clientWidth;
    const height = this.scroll.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    this.painter.resize(width, height, ratio);
    for (const [canvas, h] of [
      [this.canvas, height],
      [this.head, HEAD],
    ]) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${h}px`;
    }
    this.head.width = width * ratio;
    this.head.height = HEAD * ratio;
    this.overview = null;
    this.foundIn = null;
    this.placeRows();
    // A new size leaves the canvas black: nobody must see that.
    this.paint();
  }

  placeRows() {
    this.spacer.style.height = `${Math.max(this.rows.height, this.scroll.clientHeight)}px`;
    this.dirty();
  }

  // Sets the visible time. It spans at least 200 ns, and at most the whole trace with its margins.
  show(from, to) {
    const limit = this.whole.to - this.whole.from;
    const span = Math.min(Math.max(to - from, 200), limit);
    const mid = (from + to) / 2;
    from = Math.min(Math.max(mid - span / 2, this.whole.from), this.whole.to - span);
    this.painter.from = from;
    this.painter.to = from + span;
    this.dirty();
  }

  zoom(factor, x) {
    const {painter} = this;
    const t = painter.t(Math.max(x, LABELS_WIDTH));
    this.show(t - (t - painter.from) * factor, t + (painter.to - t) * factor);
  }

  pan(part) {
    const {from, to} = this.painter;
    this.show(from + (to - from) * part, to + (to - from) * part);
  }

  dirty() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    this.asked = false;
    const ms = Math.min(50, now - (this.lastFrame || now));
    this.lastFrame = now;
    this.moveByKeys(ms || 16);
    this.paint();
    if (this.keys.size) this.dirty();
    else this.lastFrame = 0;
  }

  paint() {
    this.painter.paint(this.scroll.scrollTop, {selection: this.selection, mark: this.mark, hover: this.hover});
    this.paintHead();
    this.moments.paint();
  }

  moveByKeys(ms) {
    const rate = ms / 1000;
    const x = this.pointer ? this.pointer.x : this.painter.width / 2;
    if (this.keys.has('w')) this.zoom(0.15 ** rate, x);
    if (this.keys.has('s')) this.zoom((1 / 0.15) ** rate, x);
    if (this.keys.has('a')) this.pan(-0.9 * rate);
    if (this.keys.has('d')) this.pan(0.9 * rate);
  }

  // The overview and the ruler.

  paintHead() {
    const {painter} = this;
    const c = this.head.getContext('2d', {alpha: false});
    const {theme, ratio, width} = painter;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!this.overview) this.overview = this.makeOverview();
    c.fillStyle = theme.raised;
    c.fillRect(0, 0, width, HEAD);
    c.drawImage(this.overview, LABELS_WIDTH, 0, width - LABELS_WIDTH, OVERVIEW);
    const a = this.overviewX(painter.from);
    const b = Math.max(a + 2, this.overviewX(painter.to));
    c.fillStyle = theme.back;
    c.globalAlpha = 0.6;
    c.fillRect(LABELS_WIDTH, 0, a - LABELS_WIDTH, OVERVIEW);
    c.fillRect(b, 0, width - b, OVERVIEW);
    c.globalAlpha = 1;
    c.strokeStyle = theme.accent;
    c.strokeRect(a + 0.5, 0.5, b - a - 1, OVERVIEW - 1);
    this.paintFound(c);
    this.paintRuler(c);
  }

  overviewX(t) {
    const {from, to} = this.whole;
    return LABELS_WIDTH + ((t - from) / (to - from)) * (this.painter.width - LABELS_WIDTH);
  }

  overviewT(x) {
    const {from, to} = this.whole;
    return from + ((x - LABELS_WIDTH) / (this.painter.width - LABELS_WIDTH)) * (to - from);
  }

  // Draws how busy all CPUs were together; without scheduler events, how many events there were. Marks losses.
  makeOverview() {
    const {model, painter} = this;
    const canvas = make('canvas', {width: painter.pixels, height: OVERVIEW});
    const c = canvas.getContext('2d');
    const cpus = [...model.cpus.values()];
    const scale = (this.whole.to - this.whole.from) / painter.pixels;
    const sums = new Float64Array(painter.pixels);
    for (const {running} of cpus) {
      for (let x = 0, before = 0; x < sums.length; x++) {
        const after = running.busyBefore(this.whole.from + (x + 1) * scale);
        sums[x] += after - before;
        before = after;
      }
    }
    if (sums.every((s) => s === 0)) {
      for (let x = 0, before = 0; x < sums.length; x++) {
        const after = model.time.above(this.whole.from + (x + 1) * scale);
        sums[x] = after - before;
        before = after;
      }
    }
    const most = sums.reduce((a, b) => Math.max(a, b), 1e-9);
    c.fillStyle = painter.theme.tick;
    sums.forEach((sum, x) => c.fillRect(x, OVERVIEW, 1, (-sum / most) * (OVERVIEW - 4)));
    c.fillStyle = painter.theme.lost;
    for (const {losses} of cpus) {
      for (const loss of losses) {
        const x = ((loss.from >= 0 ? loss.from : model.firstTime) - this.whole.from) / scale;
        c.fillRect(x, 0, Math.max(2, (loss.to - this.whole.from) / scale - x), 4);
      }
    }
    return canvas;
  }

  // Marks matches in the overview, once per pixel. Each frame adds the new matches.
  paintFound(c) {
    const {found} = this.search;
    if (this.foundIn !== found) {
      this.foundIn = found;
      this.foundTaken = 0;
      this.foundAt = new Set();
    }
    while (this.foundTaken < found.length) this.foundAt.add(Math.round(this.overviewX(found[this.foundTaken++].t)));
    c.fillStyle = this.painter.theme.found;
    for (const x of this.foundAt) c.fillRect(x, OVERVIEW - 5, 1, 5);
  }

  paintRuler(c) {
    const {painter, model} = this;
    const {theme, from, to, width} = painter;
    const rough = ((to - from) / (width - LABELS_WIDTH)) * 110;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= rough);
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = theme.dim;
    const base = model.firstTime;
    c.fillText(`0 is ${absolute(model, base)}`, 8, OVERVIEW / 2);
    c.save();
    c.beginPath();
    c.rect(LABELS_WIDTH, 0, width, HEAD);
    c.clip();
    for (let k = Math.ceil((from - base) / step); base + k * step <= to; k++) {
      const x = painter.x(base + k * step);
      c.fillRect(x, OVERVIEW + 1, 1, RULER);
      c.fillText(rulerText(k * step, step), x + 4, OVERVIEW + RULER / 2);
    }
    c.restore();
    c.fillStyle = theme.raised;
    c.fillRect(0, OVERVIEW, LABELS_WIDTH - 1, RULER);
    c.fillStyle = theme.dim;
    c.fillText(`in view: ${duration(to - from)}`, 8, OVERVIEW + RULER / 2);
  }

  // Keyboard and mouse.

  listen() {
    const {canvas, scroll} = this;
    document.addEventListener('keydown', (event) => this.onKey(event));
    document.addEventListener('keyup', (event) => this.keys.delete(event.key.toLowerCase()));
    window.addEventListener('blur', () => this.keys.clear());
    scroll.addEventListener('scroll', () => this.dirty());
    for (const element of [canvas, this.head]) {
      element.addEventListener('wheel', (event) => this.onWheel(event), {passive: false});
      element.addEventListener('pointerdown', (event) => this.onDown(event));
    }
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerleave', () => this.point(null));
    this.input.addEventListener('input', () => this.find(this.input.value));
  }

  onKey(event) {
    const key = event.key.toLowerCase();
    if (event.target === this.input) {
      if (key === 'enter') this.go(this.search.step(event.shiftKey ? -1 : 1, this.painter.from));
      if (key === 'escape') this.scroll.focus();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    if (this.moments.onKey(key)) return;
    if ('wasd'.includes(key)) {
      this.keys.add(key);
      this.dirty();
    } else if (key === 'arrowleft' || key === 'arrowright') {
      this.pan(key === 'arrowleft' ? -0.15 : 0.15);
    } else if (key === '0') {
      this.show(this.whole.from, this.whole.to);
    } else if (key === 'f') {
      const {selection, mark} = this;
      const target = selection || mark;
      if (target)
        this.show(
          target.from - (target.to - target.from) * 0.05 - 50,
          target.to + (target.to - target.from) * 0.05 + 50,
        );
    } else if (key === '/') {
      event.preventDefault();
      this.input.focus();
      this.input.select();
    } else if (key === 't') {
      this.toggleTables();
    } else if (key === '?') {
      this.help.showModal();
    } else if (key === 'escape') {
      this.select(null);
      this.setMark(null);
    }
  }

  onWheel(event) {
    const unit = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.shiftKey ? event.deltaY + event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      this.zoom(1.0025 ** (event.deltaY * unit), event.offsetX);
    } else if (Math.abs(sideways) > 0) {
      this.pan((sideways * unit) / this.painter.width);
    } else {
      return; // the browser scrolls
    }
    event.preventDefault();
  }

  onDown(event) {
    if (event.button !== 0 && event.button !== 1) return;
    const {painter} = this;
    const onHead = event.currentTarget === this.head;
    const start = {
      x: event.offsetX,
      y: event.offsetY,
      from: painter.from,
      to: painter.to,
      scroll: this.scroll.scrollTop,
    };
    if (onHead && start.y < OVERVIEW) this.centre(this.overviewT(start.x));
    const moves = onHead || event.shiftKey || event.button === 1;
    let moved = false;
    const target = event.currentTarget;
    const move = (e) => {
      const dx = e.offsetX - start.x;
      moved ||= Math.abs(dx) > 3;
      if (!moved) return;
      if (onHead && start.y < OVERVIEW) {
        this.centre(this.overviewT(e.offsetX));
      } else if (moves) {
        const by = (dx / (painter.width - LABELS_WIDTH)) * (start.to - start.from);
        this.show(start.from - by, start.to - by);
      } else {
        this.drag(start, e.offsetX, e.offsetY);
      }
    };
    const up = (e) => {
      target.removeEventListener('pointermove', move);
      target.removeEventListener('pointerup', up);
      if (!moved && !onHead) this.click(e.offsetX, e.offsetY);
      else if (!moves) this.select(this.selection);
    };
    target.setPointerCapture(event.pointerId);
    target.addEventListener('pointermove', move);
    target.addEventListener('pointerup', up);
  }

  drag(start, x, y) {
    const {painter} = this;
    if (start.x < LABELS_WIDTH) return;
    const times = [painter.t(start.x), painter.t(Math.max(x, LABELS_WIDTH))].sort((a, b) => a - b);
    const ys = [start.y + start.scroll, y + this.scroll.scrollTop].sort((a, b) => a - b);
    const first = this.rows.at(ys[0]);
    const last = this.rows.at(ys[1]) || this.rows.all.at(-1);
    if (!first) return;
    this.selection = {from: times[0], to: times[1], top: first.y, bottom: last.y + last.height};
    this.dirty();
  }

  onMove(event) {
    this.point(event.buttons ? null : {x: event.offsetX, y: event.offsetY, pageX: event.clientX, pageY: event.clientY});
  }

  point(pointer) {
    if (pointer || !this.keys.size) this.pointer = pointer;
    const hit = pointer && this.painter.hit(pointer.x, pointer.y, this.scroll.scrollTop);
    const told = hit && hit.from !== undefined;
    this.hover = told ? hit : null;
    this.tip.hidden = !told;
    if (told) {
      const {title, lines, text} = tell(this.model, hit);
      this.tip.replaceChildren(make('b', {}, title), ...lines.map((line) => make('div', {}, line)));
      if (text) make('pre', {parent: this.tip}, text.length > 700 ? `${text.slice(0, 700)} …` : text);
      const {width, height} = this.tip.getBoundingClientRect();
      this.tip.style.left = `${Math.max(4, Math.min(pointer.pageX + 14, window.innerWidth - width - 8))}px`;
      const below = pointer.pageY + 18;
      this.tip.style.top = `${Math.max(4, below + height > window.innerHeight ? pointer.pageY - height - 10 : below)}px`;
    }
    this.dirty();
  }

  click(x, y) {
    const hit = this.painter.hit(x, y, this.scroll.scrollTop);
    if (hit && hit.row.kind === 'group') {
      hit.row.group.open = !hit.row.group.open;
      this.rows.place();
      this.placeRows();
      return;
    }
    this.selection = null;
    this.setMark(hit && hit.from !== undefined ? hit : null);
  }

  centre(t) {
    const {from, to} = this.painter;
    this.show(t - (to - from) / 2, t + (to - from) / 2);
  }

  setMark(hit) {
    this.mark = hit;
    this.details.hidden = !hit;
    if (hit) {
      const {title, lines, text} = tell(this.model, hit);
      this.details.replaceChildren(make('h2', {}, title), ...lines.map((line) => make('div', {}, line)));
      if (text) make('pre', {parent: this.details}, text);
    }
    this.dirty();
  }

  async select(selection) {
    this.selection = selection;
    this.mark = null;
    this.sums = null;
    this.details.hidden = !selection;
    this.dirty();
    if (!selection) return;
    const sums = new Sums(this.model, selection);
    const isWanted = () => this.selection === selection;
    await inSlices(whileWanted(sums.run(this.rows.all), isWanted), () => {}, ANSWER_MS);
    if (!isWanted()) return;
    this.sums = sums;
    this.tellSums();
  }

  tellSums() {
    const {selection} = this;
    this.details.replaceChildren(make('h2', {}, `${duration(selection.to - selection.from)} selected`));
    this.sumsView.put(this.details, this.sums, this.dark.matches);
  }

  toggleTables() {
    if (!this.tables.all.length) return;
    if (!this.report.firstChild) this.tables.put(this.report);
    this.report.hidden = !this.report.hidden;
  }

  // Centres a time that a report names, zooms in on it, and opens the row of the thread or CPU that it is about.
  goToMoment(t, {tid, cpu}) {
    const span = Math.min(this.painter.to - this.painter.from, MOMENT_SPAN);
    this.show(t - span / 2, t + span / 2);
    const row = this.rows.reveal((r) =>
      tid ? r.thread && r.thread.tid === tid : cpu !== undefined && r.kind === 'running' && r.cpu.number === cpu,
    );
    this.placeRows();
    if (row) this.scroll.scrollTop = row.y - 60;
    this.selection = row ? {from: t, to: t, top: row.y, bottom: row.y + row.height} : null;
    this.dirty();
  }

  async find(query) {
    const {search} = this;
    this.query = query;
    search.clear();
    this.count.textContent = '';
    this.dirty();
    if (!query.trim()) return;
    const isWanted = () => this.query === query;
    await inSlices(whileWanted(search.run(query), isWanted), () => this.dirty(), ANSWER_MS);
    if (!isWanted()) return;
    this.tellCount();
    this.dirty();
  }

  tellCount() {
    const {found, current, more} = this.search;
    const all = found.length.toLocaleString('en') + (more ? '+' : '');
    this.count.textContent = found.length ? `${current < 0 ? '' : `${current + 1} of `}${all} found` : 'none found';
  }

  go(item) {
    if (!item) return;
    this.tellCount();
    const cpu = item.lane ? -1 : this.model.cpuOf.data[item.ref];
    const row = this.rows.reveal((r) =>
      item.lane ? r.lanes.includes(item.lane) : r.kind === 'events' && r.cpu.number === cpu,
    );
    if (!row) return;
    this.placeRows();
    const hit = item.lane
      ? sliceHit(row, row.lanes.indexOf(item.lane), item.index)
      : eventHit(this.model, row, item.ref);
    const {from, to} = this.painter;
    if (hit.from < from || hit.from > to) this.centre(hit.from);
    const top = this.scroll.scrollTop;
    if (row.y < top || row.y + row.height > top + this.scroll.clientHeight) this.scroll.scrollTop = row.y - 60;
    this.selection = null;
    this.setMark(hit);
  }
}

const viewer = new Viewer();
// For tests, and for the browser's console.
window.traceViewer = viewer;
function startViewer() {
  // The script is in the head.
  if (!document.body) return setTimeout(startViewer);
  return viewer.start().catch((error) => {
    viewer.failed = String(error.stack || error);
    document.body.append(make('pre', {}, `This trace can't be shown: ${viewer.failed}`));
  });
}
startViewer();
