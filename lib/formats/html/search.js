// SPDX-License-Identifier: LGPL-2.1-or-later
// Search in the whole trace: names of threads and processes, then slices, events, and arguments of elements.

const FOUND_MAX = 200000;
const FOUND_KINDS = ['threads', 'processes', 'slices', 'events', 'args'];

class Search {
  constructor(model) {
    this.model = model;
    this.clear();
  }

  clear() {
    // {tid} of threads, {pid} of processes; {t, lane, index} of slices; {t, ref} of events and elements
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
    // In the text, backslashes may follow "<".
    const pattern = query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/</g, '<\\\\*');
    this.searchTasks(new RegExp(pattern, 'i'));
    yield;
    yield* this.searchSlices(new RegExp(pattern, 'i'));
    this.groups.slices.sort((a, b) => a.t - b.t);
    const events = {text: model.text, offset: model.offset, add: (i) => this.addEvent(i)};
    yield* this.searchLines(events, pattern);
    const elements = {
      text: model.more,
      offset: model.elements,
      add: (i) => this.addElement(i, new RegExp(pattern, 'i')),
    };
    yield* this.searchLines(elements, pattern);
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

  // Finds lines of a text, which begin at the offsets.
  *searchLines({text, offset, add}, pattern) {
    const n = offset.length;
    for (let from = 0; from < n && !this.more; from += 4096) {
      const to = Math.min(n, from + 4096);
      const start = offset.data[from];
      const piece = text.slice(start, to < n ? offset.data[to] : text.length);
      const regexp = new RegExp(pattern, 'gi');
      let line = from;
      for (let found = regexp.exec(piece); found && !this.more; found = regexp.exec(piece)) {
        while (line + 1 < to && offset.data[line + 1] - start <= found.index) line++;
        add(line);
        if (line + 1 >= to) break;
        regexp.lastIndex = offset.data[line + 1] - start;
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
    if (element && element.ph !== 'M' && element.args && regexp.test(JSON.stringify(element.args)))
      this.add('args', {t: this.model.elementTime(element.ts), ref: ~i});
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
