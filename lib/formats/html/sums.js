// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums over a selection.

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
