// SPDX-License-Identifier: LGPL-2.1-or-later
// Search in the whole trace, and sums over a selection.

const FOUND_MAX = 200000;

class Search {
  constructor(model) {
    this.model = model;
    this.clear();
  }

  clear() {
    this.found = []; // {t, ref} of events; {t, lane, index} of slices without an event
    this.current = -1;
    this.more = false;
  }

  *run(query) {
    this.clear();
    const {model} = this;
    // In the text, backslashes may follow "<".
    const pattern = query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/</g, '<\\\\*');
    const n = model.time.length;
    for (let i = 0; i < n && !this.more; i += 4096) {
      this.searchLines(new RegExp(pattern, 'gi'), i, Math.min(n, i + 4096));
      yield;
    }
    yield* this.searchNames(new RegExp(pattern, 'i'));
    this.found.sort((a, b) => a.t - b.t);
  }

  searchLines(regexp, from, to) {
    const {model} = this;
    const start = model.offset.data[from];
    const end = to < model.offset.length ? model.offset.data[to] : model.text.length;
    const text = model.text.slice(start, end);
    let event = from;
    for (let found = regexp.exec(text); found && !this.more; found = regexp.exec(text)) {
      while (event + 1 < to && model.offset.data[event + 1] - start <= found.index) event++;
      this.add({t: model.time.data[event], ref: event});
      if (event + 1 >= to) break;
      regexp.lastIndex = model.offset.data[event + 1] - start;
    }
  }

  *searchNames(regexp) {
    const {model} = this;
    const matches = model.names.map((name) => regexp.test(name));
    if (!matches.includes(true)) return;
    const nests = [];
    for (const thread of model.threads.values()) nests.push(thread.nest);
    for (const process of model.processes.values()) nests.push(process.instants, ...process.async.values());
    for (const nest of nests) {
      for (const lane of nest.lanes) {
        for (let i = 0; i < lane.length && !this.more; i++) {
          const ref = lane.ref.data[i];
          if (ref < 0 && matches[lane.name.data[i]]) this.add({t: lane.start.data[i], lane, index: i});
        }
        yield;
      }
    }
  }

  add(item) {
    if (this.found.length < FOUND_MAX) this.found.push(item);
    else this.more = true;
  }

  // Returns the next match found so far (way 1), or the previous one (way -1). The first step takes the first match
  // from time t on.
  step(way, t) {
    if (!this.found.length) return null;
    if (this.current < 0) {
      const next = this.found.findIndex((item) => item.t >= t);
      this.current = next < 0 ? 0 : next;
    } else {
      this.current = (this.current + way + this.found.length) % this.found.length;
    }
    return this.found[this.current];
  }
}

// Sums over a selection: times `from` to `to`, in rows between `top` and `bottom`.
class Sums {
  constructor(model, {from, to, top, bottom}) {
    this.model = model;
    this.from = from;
    this.to = to;
    this.top = top;
    this.bottom = bottom;
    this.tables = {cpu: new Map(), states: new Map(), slices: new Map(), events: new Map()};
    this.counters = [];
  }

  // The caller resumes this generator until it is done.
  *run(rows) {
    for (const row of rows) {
      if (row.y + row.height <= this.top || row.y >= this.bottom) continue;
      if (row.kind === 'events') yield* this.addEvents(row.cpu);
      if (row.counter) this.addCounter(row.counter);
      for (const lane of row.lanes) yield* this.addLane(lane, row.kind === 'running');
      if (row.thread) yield* this.addStates(row.thread);
    }
  }

  add(table, key, ns) {
    const sum = table.get(key);
    if (!sum) {
      table.set(key, {ns, count: 1, max: ns});
      return;
    }
    sum.ns += ns;
    sum.count++;
    if (ns > sum.max) sum.max = ns;
  }

  *addEvents({events, time}) {
    const {eventName} = this.model;
    for (let i = time.seek(this.from); i < events.length && time.data[i] <= this.to; i++) {
      this.add(this.tables.events, eventName.data[events.data[i]], 0);
      if ((i & 0xfff) === 0) yield;
    }
  }

  *addLane(lane, isCpu) {
    const {from, to} = this;
    const {start, end} = lane;
    const key = isCpu ? lane.ref : lane.name;
    const table = isCpu ? this.tables.cpu : this.tables.slices;
    for (let i = Math.max(0, lane.at(from) - 1); i < lane.length && start.data[i] < to; i++) {
      if ((i & 0xfff) === 0) yield;
      if (end.data[i] < from) continue;
      this.add(table, key.data[i], Math.min(end.data[i], to) - Math.max(start.data[i], from));
    }
  }

  *addStates(thread) {
    const {from, to, model} = this;
    const {data: start, length: n} = thread.stateStart;
    for (let i = Math.max(0, thread.stateStart.above(from) - 1); i < n && start[i] < to; i++) {
      const ns = Math.min(thread.stateEnd(i, model.lastTime), to) - Math.max(start[i], from);
      if (ns > 0) this.add(this.tables.states, thread.state.data[i], ns);
      if ((i & 0xfff) === 0) yield;
    }
  }

  addCounter(counter) {
    const first = Math.max(0, counter.time.above(this.from) - 1);
    const last = counter.time.above(this.to);
    if (last <= first) return;
    counter.range(first, last < counter.time.length ? counter.time.data[last] : Infinity);
    this.counters.push([counter.label, counter.least, counter.most, last - first]);
  }
}
