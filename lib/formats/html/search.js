// SPDX-License-Identifier: LGPL-2.1-or-later
// Search in the whole trace: a time; names of threads and processes, then slices, events, and arguments of elements.

const FOUND_MAX = 200000;
const FOUND_AT_ONCE = 256; // matches, each of which may need its element
const FOUND_KINDS = ['times', 'threads', 'processes', 'slices', 'events', 'args'];

class Search {
  constructor(model) {
    this.model = model;
    this.places = null;
    this.clear();
  }

  clear() {
    // {t} of a time; {tid} of threads, {pid} of processes; {t, lane, index} of slices; {t, ref} of events and elements. An element
    // has a place: that of a slice, {ref}, of a flow's step, {step}, or of a counter, {counter}.
    this.groups = Object.fromEntries(FOUND_KINDS.map((kind) => [kind, []]));
    this.found = []; // of all kinds, those with a time
    this.current = -1;
    this.more = false;
  }

  get count() {
    return FOUND_KINDS.reduce((sum, kind) => sum + this.groups[kind].length, 0);
  }

  *run(query) {
    this.clear();
    const {model} = this;
    const wanted = new RegExp(escaped(query), 'i');
    this.groups.times = timesOf(model, query).map((t) => ({t}));
    this.searchTasks(wanted);
    yield;
    yield* this.searchSlices(wanted);
    this.groups.slices.sort((a, b) => a.t - b.t);
    const events = {text: model.text, offset: model.offset, add: (i) => this.addEvent(i)};
    // In the text, backslashes may follow "<".
    yield* this.searchLines(events, escaped(query).replace(/</g, '<\\\\*'));
    if (!this.places) this.places = yield* Places.find(model);
    const elements = {text: model.more, offset: model.elements, add: (i) => this.addElement(i, wanted)};
    yield* this.searchLines(elements, escaped(JSON.stringify(query).slice(1, -1).replace(/</g, '\\u003c')));
  }

  searchTasks(regexp) {
    const {model, groups} = this;
    for (const {tid} of model.threads.values()) if (regexp.test(model.threadName(tid))) groups.threads.push({tid});
    for (const {pid} of model.processes.values())
      if (regexp.test(model.processLabel(pid))) groups.processes.push({pid});
  }

  *searchSlices(regexp) {
    const {model} = this;
    const matches = model.names.map((name) => name && regexp.test(name));
    if (!matches.includes(true)) return;
    for (const nest of model.nests()) {
      for (const lane of nest.lanes) {
        const {data: name, length: n} = lane.name;
        for (let i = 0; i < n && !this.more; i++) {
          if (matches[name[i]]) this.add('slices', {t: lane.start.data[i], lane, index: i});
          if ((i & 0x3fff) === 0x3fff) yield;
        }
        yield;
      }
    }
  }

  // Finds lines of a text, which begin at the offsets. Other lines are in between.
  *searchLines({text, offset, add}, pattern) {
    const n = offset.length;
    for (let from = 0; from < n && !this.more; from += 4096) {
      const to = Math.min(n, from + 4096);
      const start = offset.data[from];
      const piece = text.slice(start, to < n ? offset.data[to] : text.length);
      const regexp = new RegExp(pattern, 'gi');
      let line = from;
      let count = 0;
      for (let found = regexp.exec(piece); found && !this.more; found = regexp.exec(piece)) {
        while (line + 1 < to && offset.data[line + 1] - start <= found.index) line++;
        const end = piece.indexOf('\n', found.index) + 1;
        if (piece.lastIndexOf('\n', found.index) + 1 === offset.data[line] - start) add(line);
        if (!end || line + 1 >= to) break;
        regexp.lastIndex = end;
        if (++count % FOUND_AT_ONCE === 0) yield;
      }
      yield;
    }
  }

  addEvent(i) {
    this.add('events', {t: this.model.time.data[i], ref: i});
  }

  // The names of slices and tasks were searched already.
  addElement(i, regexp) {
    const element = this.model.element(~i);
    if (!element || !element.args || !textsOf(element.args).some((text) => regexp.test(text))) return;
    const place = this.places.of(element, ~i);
    if (place) this.add('args', {t: this.model.elementTime(element.ts), ref: ~i, place});
  }

  add(kind, item) {
    if (this.found.length >= FOUND_MAX) {
      this.more = true;
      return;
    }
    this.groups[kind].push(item);
    this.found.push(item);
  }

  // Returns match number n, counted through all kinds.
  item(n) {
    for (const kind of FOUND_KINDS) {
      if (n < this.groups[kind].length) return this.groups[kind][n];
      n -= this.groups[kind].length;
    }
    return null;
  }

  indexOf(kind, i) {
    return FOUND_KINDS.slice(0, FOUND_KINDS.indexOf(kind)).reduce((sum, k) => sum + this.groups[k].length, i);
  }

  // Returns the next match found so far (way 1), or the previous one (way -1). The first step takes a name, or else
  // the first match from time t on.
  step(way, t) {
    const {count} = this;
    if (!count) return null;
    if (this.current < 0) {
      const kind = FOUND_KINDS.find((k) => this.groups[k].length);
      const next = this.groups[kind].findIndex((item) => !(item.t < t));
      this.current = this.indexOf(kind, Math.max(next, 0));
    } else {
      this.current = (this.current + way + count) % count;
    }
    return this.item(this.current);
  }
}

const UNITS = {ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9};

// Returns the times that people may mean: "12.5 ms" since the trace's begin, or "47826.190001" with or without " s", as
// the kernel's text and the page have it.
function timesOf(model, query) {
  const [, whole, part = '', unit] = /^\s*\+?(\d{1,12})(?:\.(\d{1,9}))?\s*([nuµμm]?s)?\s*$/.exec(query) || [];
  const times = [];
  if (unit) times.push(model.firstTime + Number(`${whole}.${part}`) * UNITS[unit]);
  if (part && (!unit || unit === 's')) times.push((Number(whole) - Math.max(model.base, 0)) * 1e9 + Number(part.padEnd(9, '0')));
  return times.filter((t) => t >= model.firstTime && t <= model.lastTime);
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

// Returns the names and values in arguments.
function textsOf(args) {
  if (args === null || typeof args !== 'object') return [String(args)];
  return Object.entries(args).flatMap(([key, value]) => [key, ...textsOf(value)]);
}

// Tells where elements are shown.
class Places {
  constructor(model) {
    this.model = model;
    this.drawn = new Uint8Array(model.elements.length); // as slices, by number
    this.begins = new Map(); // of slices, by the elements that end them
    this.steps = new Map(); // of flows, by element
  }

  static *find(model) {
    const places = new Places(model);
    for (const [begin, end] of model.ends) places.begins.set(end, begin);
    yield;
    for (const steps of model.flows.byThread.values()) for (const step of steps) places.steps.set(step.ref, step);
    yield;
    for (const nest of model.nests()) {
      for (const {ref} of nest.lanes) {
        for (let i = 0; i < ref.length; i++) {
          if (ref.data[i] < 0) places.drawn[~ref.data[i]] = 1;
          if ((i & 0xffff) === 0xffff) yield;
        }
        yield;
      }
    }
    return places;
  }

  // Returns the place of an element; null: it has none.
  of(element, ref) {
    const begin = element.ph === 'E' ? this.begins.get(ref) : ref;
    if (begin !== undefined && this.drawn[~begin]) return {ref: begin};
    if (element.ph === 'C') return this.ofCounter(element);
    const step = this.steps.get(ref);
    return step && innermost(this.model.thread(step.tid).nest, step.t) ? {step} : null;
  }

  ofCounter({name, pid, ts, args}) {
    const {model} = this;
    const t = model.elementTime(ts);
    for (const key in args) {
      const counter = model.counters.get(`${pid} ${counterLabel(name, key)}`);
      const i = counter ? counter.time.seek(t) : 0;
      if (counter && i < counter.time.length && counter.time.data[i] === t) return {counter};
    }
    return null;
  }
}
