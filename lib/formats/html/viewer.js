// SPDX-License-Identifier: LGPL-2.1-or-later
// The page loads the model piece by piece, and shows the part that people choose.

const TABLE_ROWS = 200;
const MOMENT_SPAN = 20e6; // ns around a time of a report
const ANSWER_MS = 4; // of each frame, for searches and sums, so that moving stays smooth
const LABELS_PART = 0.28; // of a narrow screen's width
const PINS_PART = 0.4; // of the height, at most
const RUN_PARTS = 12; // a run that a walk leads to takes at least this part of the view

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

function* whileWanted(work, isWanted) {
  while (isWanted() && !work.next().done) yield;
}

class Viewer {
  constructor() {
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.failed = ''; // why the trace can't be shown
    this.steps = [];
    this.arrows = [];
    this.tools = {tellElement: (ref) => tellElement(this.model, ref), absolute, bucketFrom, delayOf, TextPacker}; // for tests
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
    this.painted = performance.now();
    this.ready = true;
  }

  build() {
    const {model} = this;
    this.rows = new Rows(model);
    this.why = new Why(model);
    this.walk = new Walk(this);
    this.buildPage();
    const margin = Math.max((model.lastTime - model.firstTime) * 0.01, 500);
    this.whole = {from: model.firstTime - margin, to: model.lastTime + margin};
    this.show(this.whole.from, this.whole.to);
    this.setTheme();
    this.dark.addEventListener('change', () => this.setTheme());
    new ResizeObserver(() => this.resize()).observe(this.scroll);
    this.input.listen();
    this.resize();
    this.moments.restore();
    putOverviewTable(this);
  }

  buildPage() {
    const {model} = this;
    const header = make('header', {parent: document.body});
    make('h1', {parent: header}, titleOf(model));
    document.title = plain(titleOf(model));
    putAccount(model, make('span', {parent: header, className: 'about'}), showLines);
    this.bar = new RowBar(this, header);
    this.finder = new Finder(this, header, (item) => this.go(item));
    this.tables = new Tables(this);
    this.sumsView = new SumsView(model, (t, place) => this.goToMoment(t, place));
    if (this.tables.all.length) make('button', {parent: header, onclick: () => this.toggleTables()}, 'report');
    this.help = makeHelp(this);
    const title = 'colours and keys (?)';
    make('button', {parent: header, title, onclick: () => this.help.showModal()}, '?');
    this.head = new Head(this);
    this.moments = new Moments(this, this.head.canvas);
    this.pins = new Panel(model, new PinnedRows(), 'pins');
    this.panel = new Panel(model, this.rows, 'scroll');
    this.painter = this.panel.painter;
    this.scroll = this.panel.element;
    this.canvas = this.panel.canvas;
    this.details = make('section', {parent: document.body, id: 'details', hidden: true});
    this.details.setAttribute('aria-label', 'selection');
    this.pane = new Pane(this, this.details);
    this.report = make('section', {parent: document.body, id: 'report', hidden: true});
    this.hover = new Hover(this);
    this.input = new Input(this);
  }

  setTheme() {
    const theme = new Theme(this.dark.matches);
    for (const panel of [this.panel, this.pins]) panel.painter.setTheme(theme);
    this.head.overview = null;
    this.sumsView.setTheme(this.dark.matches);
    this.dirty();
  }

  resize() {
    const width = this.scroll.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    if (!width || !this.panel.height) return;
    LABELS_WIDTH = Math.min(LABELS_MOST, Math.max(90, Math.round(width * LABELS_PART)));
    this.pins.element.style.boxShadow = this.pins.rows.height ? '' : 'none';
    this.pins.element.style.height = `${Math.min(this.pins.rows.height, window.innerHeight * PINS_PART)}px`;
    this.pins.resize(width, Math.max(1, this.pins.height), ratio);
    this.panel.resize(width, this.panel.height, ratio);
    this.head.resize(width, ratio);
    this.placeRows();
    // A new size leaves the canvas black: nobody must see that.
    this.paint();
  }

  placeRows() {
    this.pins.place();
    this.panel.place();
    this.bar.sync();
    this.dirty();
  }

  // Places the rows after a change of what is visible. The row at the top stays there.
  placeAgain() {
    const {rows, panel} = this;
    const {top} = panel;
    const old = rows.firstBelow(top);
    const offset = old ? top - old.y : 0;
    const after = old ? rows.all.slice(rows.all.indexOf(old)) : [];
    rows.place();
    this.placeRows();
    this.placeSelection();
    // If it is hidden: its group's row, or the next row that is not.
    const shown =
      old && (rows.shown(old) || rows.all.find((row) => row.group && row.group === old.group));
    const next = shown || after.find((row) => rows.shown(row));
    panel.top = shown ? shown.y + offset : next ? next.y : top;
    this.arrange();
  }

  // The selected rows may have moved, or be hidden.
  placeSelection() {
    const {selection} = this;
    if (!selection || !selection.first) return;
    const [first, last] = [selection.first, selection.last].map((row) => selection.list.shown(row.source || row));
    if (first && last && first.y <= last.y) Object.assign(selection, {top: first.y, bottom: last.y + last.height});
    else this.selection = null;
  }

  // Sets the visible time. It spans at least 200 ns, and at most the whole trace with its margins.
  show(from, to) {
    const limit = this.whole.to - this.whole.from;
    const span = Math.min(Math.max(to - from, 200), limit);
    const mid = (from + to) / 2;
    from = Math.min(Math.max(mid - span / 2, this.whole.from), this.whole.to - span);
    for (const {painter} of [this.panel, this.pins]) {
      painter.from = from;
      painter.to = from + span;
    }
    this.bar.onMove();
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
    this.input.moveByKeys(ms || 16);
    this.paint();
    if (this.input.held.size) this.dirty();
    else this.lastFrame = 0;
  }

  paint() {
    this.hover.refresh();
    const {selection, mark, arrows, hover} = this;
    for (const {painter, top, rows} of [this.pins, this.panel]) {
      const pointed = hover.pointer && hover.pointer.panel.rows === rows && hover.row ? rows.shown(hover.row) : null;
      if (rows.all.length || rows === this.rows)
        painter.paint(top, {selection, mark, arrows, pointed, hover: hover.hit});
    }
    this.head.paint();
    this.moments.paint();
  }

  point(pointer) {
    this.hover.point(pointer);
  }

  overviewTime(x) {
    return this.head.time(x);
  }

  drag(start, x, y) {
    const {painter} = this;
    const {panel} = start;
    if (start.x < LABELS_WIDTH) return;
    const {firstTime, lastTime} = this.model;
    const inside = (t) => Math.min(Math.max(t, firstTime), lastTime);
    const times = [start.x, Math.max(x, LABELS_WIDTH)].map((at) => inside(painter.t(at))).sort((a, b) => a - b);
    const ys = [start.y + start.scroll, y + panel.top].sort((a, b) => a - b);
    const first = panel.rows.firstBelow(ys[0]);
    const last = panel.rows.lastAbove(ys[1]);
    const [from, to] = times;
    this.selection =
      first && last && first.y <= last.y
        ? {from, to, top: first.y, bottom: last.y + last.height, list: panel.rows, first, last}
        : null;
    this.dirty();
  }

  click(panel, x, y) {
    const hit = panel.hit(x, y);
    this.walk.begin();
    if (hit && hit.row.kind === 'group') {
      hit.row.group.open = !hit.row.group.open;
      this.placeAgain();
    } else if (hit && hit.kind === 'label' && hit.onPin) {
      this.pin(hit.row);
    } else if (hit && hit.kind === 'label') {
      this.selection = null;
      this.setMark(this.rowHit(hit.row));
    } else {
      this.selection = null;
      this.setMark(hit && hit.from !== undefined ? hit : null);
    }
  }

  // A click on a thread's name selects the thread.
  rowHit(row) {
    if (!row.thread) return null;
    const {firstTime: from, lastTime: to} = this.model;
    return {row, kind: 'thread', from, to, top: 0, height: row.height};
  }

  pin(row) {
    this.pins.rows.toggle(row);
    this.placeSelection();
    this.resize();
  }

  pinSelected() {
    const row = this.mark ? this.mark.row : this.hover.row;
    if (row && row.kind !== 'group') this.pin(row);
  }

  centre(t) {
    const {from, to} = this.painter;
    this.show(t - (to - from) / 2, t + (to - from) / 2);
  }

  showSelected() {
    const target = this.selection || this.mark;
    if (!target) return;
    const margin = (target.to - target.from) * 0.05 + 50;
    this.show(target.from - margin, target.to + margin);
  }

  clear() {
    this.select(null);
    this.setMark(null);
  }

  // Selects a hit: shows its pane and arrows. The pane takes its place from the rows, and must not cover the hit.
  setMark(hit) {
    this.mark = hit;
    this.details.hidden = !hit;
    this.whyMark = hit ? this.explain(hit) : null;
    this.steps = hit && hit.kind === 'slice' && hit.row.thread ? this.model.flows.stepsIn(hit.row.thread, hit) : [];
    if (hit) {
      this.pane.show(hit, this.whyMark, this.steps);
      this.panel.place();
      this.panel.reveal(hit.row);
    }
    this.arrange();
  }

  arrange() {
    this.arrows = arrowsOf(this.rows, this.model, this.whyMark, this.steps);
    this.dirty();
  }

  // Returns why a thread waited or ran, or of an event whom it wakes: {wakes}.
  explain({kind, row, ref, from, index}) {
    if (kind === 'state') return this.why.explain(row.thread, index);
    if (kind === 'event') return {wakes: this.why.wakeOf(ref)};
    if (kind !== 'running') return null;
    const thread = this.model.threads.get(ref);
    const stretch = thread && this.why.stretch(thread, thread.runningAt(from));
    return stretch && stretch.state === State.RUNNING ? this.why.explain(thread, stretch.index) : null;
  }

  async select(selection) {
    this.selection = selection;
    this.setMark(null);
    this.sums = null;
    this.details.hidden = !selection;
    this.dirty();
    if (!selection) return;
    this.details.replaceChildren(make('h2', {}, this.selectedWords()));
    this.panel.place();
    if (selection.last && selection.list === this.rows) this.panel.reveal(selection.last);
    const sums = new Sums(this.model, selection);
    const isWanted = () => this.selection === selection;
    const rows = selection.bottom >= EVERY_ROW ? this.rows.every() : (selection.list || this.rows).all;
    await inSlices(whileWanted(sums.run(rows), isWanted), () => {}, ANSWER_MS);
    if (!isWanted()) return;
    this.sums = sums;
    this.tellSums();
  }

  // Selects the time in view, in all rows.
  selectView() {
    const {firstTime, lastTime} = this.model;
    const {from, to} = this.painter;
    return this.select({from: Math.max(from, firstTime), to: Math.min(to, lastTime), top: 0, bottom: EVERY_ROW});
  }

  selectedWords() {
    return `${duration(this.selection.to - this.selection.from)} selected`;
  }

  tellSums() {
    this.details.replaceChildren(make('h2', {}, this.selectedWords()));
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
    if (row) this.panel.reveal(row, true);
    this.selection = row ? this.selectionOf(row, t, t) : null;
    this.dirty();
  }

  // Shows a hit: its time, and its row in the middle.
  goToHit(hit) {
    if (!hit) return;
    this.hover.rest();
    const row = this.rows.reveal((r) => r === hit.row);
    if (!row) return;
    this.placeRows();
    const {from, to} = this.painter;
    if (hit.kind !== 'thread') {
      const isTiny = hit.to - hit.from < (to - from) / 1e4;
      const span = isTiny ? Math.max((hit.to - hit.from) * RUN_PARTS, Math.min(to - from, MOMENT_SPAN)) : to - from;
      if (hit.from < from || hit.from > to || isTiny) this.show(hit.from - span / 2, hit.from + span / 2);
    }
    this.selection = null;
    this.setMark(hit);
    this.panel.reveal(row, true);
  }

  goToThread(tid) {
    const row = this.rows.ofThread(tid);
    if (row) this.goToHit(this.rowHit(row));
    else this.pane.say('The trace has no row of this thread.');
  }

  // Sums up a thread or a CPU that the picture has a row of, and shows the row.
  goToRow({tid, cpu}) {
    this.walk.begin();
    if (tid !== undefined) return this.goToThread(tid);
    const {firstTime: from, lastTime: to} = this.model;
    const wanted = this.rows.ofCpu(cpu);
    const row = this.rows.reveal((r) => r === wanted);
    this.placeRows();
    this.select(this.selectionOf(row, from, to));
    return this.panel.reveal(row, true);
  }

  selectionOf(row, from, to) {
    return {from, to, top: row.y, bottom: row.y + row.height, list: this.rows, first: row, last: row};
  }

  // Shows what a thread did at time t, in its own row or in the CPU's; what woke another thread, if it is the waker.
  goToRun(tid, t, {onCpu = false, isWaker = false} = {}) {
    const row = this.rows.ofThread(tid);
    const run = onCpu || !row || !row.strip ? this.why.runAt(tid, t) : null;
    if (run) {
      const {running} = this.model.cpu(run.cpu);
      let i = running.start.seek(run.from);
      while (running.ref.data[i] !== tid && running.start.data[i + 1] === run.from) i++;
      this.goToHit(sliceHit(this.rows.ofCpu(run.cpu), 0, i));
    } else if (row && row.strip) {
      const {thread} = row;
      const index = isWaker ? thread.runningAt(t) : Math.max(0, thread.stateStart.above(t) - 1);
      this.goToHit(stateHit(this.model, row, index));
    }
  }

  goToEvent(ref) {
    const cpu = this.model.cpuOf.data[ref];
    const row = this.rows.reveal((r) => r.kind === 'events' && r.cpu.number === cpu);
    if (row) this.goToHit(eventHit(this.model, row, ref));
  }

  goToLane(lane, index) {
    const row = this.rows.reveal((r) => r.lanes.includes(lane));
    if (row) this.goToHit(sliceHit(row, row.lanes.indexOf(lane), index));
  }

  // A flow's step is shown by the slice that encloses it.
  goToStep({tid, t}) {
    const slice = innermost(this.model.thread(tid).nest, t);
    if (slice) this.goToLane(slice.lane, slice.index);
  }

  // Shows a time that was searched for.
  goToTime(t) {
    const span = Math.min(this.painter.to - this.painter.from, MOMENT_SPAN);
    this.show(t - span / 2, t + span / 2);
    this.setMark(null);
    this.selection = {from: t, to: t, top: 0, bottom: EVERY_ROW};
    this.dirty();
  }

  // Shows a match of the search.
  go({t, tid, pid, lane, index, ref, place}) {
    this.walk.begin();
    if (place) return this.goToPlace(place, t);
    if (lane) this.goToLane(lane, index);
    else if (ref >= 0) this.goToEvent(ref);
    else if (tid !== undefined) this.goToThread(tid);
    else if (pid === undefined) this.goToTime(t);
    else this.goToProcess(pid);
    return undefined;
  }

  goToPlace({ref, step, counter}, t) {
    if (step) return this.goToStep(step);
    if (!counter) return this.goToElement(ref);
    const row = this.rows.reveal((r) => r.counter === counter);
    return row && this.goToHit(this.painter.hitCounter(row, t));
  }

  goToProcess(pid) {
    const row = this.rows.reveal((r) => r.process && r.process.pid === pid);
    if (!row) return;
    this.placeRows();
    if (row.thread) this.goToHit(this.rowHit(row));
    else this.panel.reveal(row, true);
  }

  goToElement(ref) {
    for (const nest of this.model.nests()) {
      for (const lane of nest.lanes) {
        const index = lane.ref.data.subarray(0, lane.length).indexOf(ref);
        if (index >= 0) return this.goToLane(lane, index);
      }
    }
    return undefined;
  }
}

const viewer = new Viewer();
// For tests, and for the browser's console.
Object.assign(window, {traceViewer: viewer});
window.addEventListener('error', ({error, message}) => {
  // The pinned rows take their place from the others, so the browser reports these in the next frame.
  if (error || !/^ResizeObserver loop/.test(message)) showError(error || message);
});
window.addEventListener('unhandledrejection', ({reason}) => showError(reason));
function startViewer() {
  // The script is in the head.
  if (!document.body) return setTimeout(startViewer);
  return viewer.start().catch((error) => {
    viewer.failed = String(error.stack || error);
    showError(`This trace can't be shown: ${viewer.failed}`);
  });
}
startViewer();
