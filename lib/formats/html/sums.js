// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums over a selection.

// Durations of one kind: their sum, count, quantiles, and the place of the longest.
class Durations {
  constructor() {
    this.all = new Column(Float64Array, 4);
    this.ns = 0;
    this.alone = 0; // of `ns`, without the slices within
    this.max = -1;
    this.at = NaN; // the time at which the longest begins
    this.place = null; // {tid} or {cpu} of the longest
    this.sorted = false;
  }

  add(ns, at, place, alone) {
    this.all.push(ns);
    this.ns += ns;
    this.alone += alone;
    if (ns <= this.max) return;
    this.max = ns;
    this.at = at;
    this.place = place;
  }

  get count() {
    return this.all.length;
  }

  // Returns the duration that `part` of all do not exceed.
  quantile(part) {
    const {data, length: n} = this.all;
    if (!n) return 0;
    if (!this.sorted) data.subarray(0, n).sort();
    this.sorted = true;
    return data[Math.max(0, Math.ceil(part * n) - 1)];
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
    this.cpus = new Set(); // numbers
    this.tids = new Set();
    // cpu and delays by thread, cpus by CPU, states by state, the others by name.
    this.tables = {};
    for (const name of ['cpu', 'cpus', 'delays', 'states', 'irqs', 'syscalls', 'slices', 'events'])
      this.tables[name] = new Map();
    this.counters = [];
    this.samples = new SampleSums(model);
    this.syscallNames = new Set(model.names.flatMap((name, i) => (/^sys_enter/.test(name) ? [i] : [])));
  }

  // The caller resumes this generator until it is done.
  *run(rows) {
    for (const row of rows) {
      if (row.y + row.height <= this.top || row.y >= this.bottom) continue;
      if (row.cpu && row.kind === 'running') this.cpus.add(row.cpu.number);
      if (row.thread) this.tids.add(row.thread.tid);
      if (row.kind === 'events') yield* this.addEvents(row.cpu);
      if (row.counter) this.addCounter(row.counter);
      if (row.kind !== 'running')
        for (const [depth, lane] of row.lanes.entries()) yield* this.addLane(lane, row, row.lanes[depth + 1]);
      if (row.thread) yield* this.addStates(row.thread);
    }
    for (const cpu of this.model.cpus.values()) yield* this.addRuns(cpu);
    for (const thread of this.model.threads.values()) {
      if (this.tids.has(thread.tid)) yield* this.samples.add(thread, this.from, this.to, null);
      else if (this.cpus.size) yield* this.samples.add(thread, this.from, this.to, this.cpus);
    }
  }

  add(table, key, ns, at, place, alone = ns) {
    let sum = table.get(key);
    if (!sum) table.set(key, (sum = new Durations()));
    sum.add(ns, at, place, alone);
  }

  *addEvents({events, time}) {
    const {eventName} = this.model;
    for (let i = time.seek(this.from); i < events.length && time.data[i] <= this.to; i++) {
      const name = eventName.data[events.data[i]];
      this.tables.events.set(name, (this.tables.events.get(name) || 0) + 1);
      if ((i & 0xfff) === 0) yield;
    }
  }

  // Adds the runs on a CPU: all if the CPU is selected, otherwise those of the selected threads. A run that begins in
  // the selection ends a delay, if its thread was runnable.
  *addRuns({number, running}) {
    const {from, to, tables} = this;
    const isWhole = this.cpus.has(number);
    if (!isWhole && !this.tids.size) return;
    const {start, end, ref} = running;
    for (let i = running.at(from); i < running.length && start.data[i] < to; i++) {
      if ((i & 0xfff) === 0) yield;
      const tid = ref.data[i];
      if (!isWhole && !this.tids.has(tid)) continue;
      const ns = Math.min(end.data[i], to) - Math.max(start.data[i], from);
      this.add(tables.cpu, tid, ns, start.data[i], {tid});
      this.add(tables.cpus, number, ns, start.data[i], {cpu: number});
      if (start.data[i] >= from) this.addDelay(tid, start.data[i]);
    }
  }

  // Events in the wait may be lost: then the thread may have run in between.
  addDelay(tid, t) {
    const {gaps} = this.model;
    const thread = this.model.thread(tid);
    const {stateStart, state} = thread;
    const i = thread.runningAt(t);
    if (i < 1 || stateStart.data[i] !== t || state.data[i - 1] !== State.RUNNABLE) return;
    const began = stateStart.data[i - 1];
    if (!gaps.isWhole(began, t)) return;
    this.add(this.tables.delays, tid, t - began, began, {tid});
  }

  tableOf(lane, i, row) {
    if (row.kind === 'slices' && row.cpu) return this.tables.irqs;
    const ref = lane.ref.data[i];
    return ref >= 0 && this.syscallNames.has(this.model.eventName.data[ref])
      ? this.tables.syscalls
      : this.tables.slices;
  }

  // `below` has the slices within those of the lane, if they are a thread's.
  *addLane(lane, row, below) {
    const {from, to} = this;
    const {start, end, name} = lane;
    const place = row.thread ? {tid: row.thread.tid} : row.cpu ? {cpu: row.cpu.number} : {};
    // Slices of no length that begin at `from` or at `to` are in the selection.
    let i = start.seek(from);
    if (i > 0 && end.data[i - 1] > from) i--;
    for (; i < lane.length && start.data[i] <= to; i++) {
      if ((i & 0xfff) === 0) yield;
      if (start.data[i] === to && end.data[i] > to) continue;
      const first = Math.max(start.data[i], from);
      const last = Math.min(end.data[i], to);
      const inner = row.thread && below ? below.busyBefore(last) - below.busyBefore(first) : 0;
      this.add(this.tableOf(lane, i, row), name.data[i], last - first, start.data[i], place, last - first - inner);
    }
  }

  *addStates(thread) {
    const {from, to, model} = this;
    const {data: start, length: n} = thread.stateStart;
    for (let i = Math.max(0, thread.stateStart.above(from) - 1); i < n && start[i] < to; i++) {
      const ns = Math.min(thread.stateEnd(i, model.lastTime), to) - Math.max(start[i], from);
      if (ns > 0) this.add(this.tables.states, thread.state.data[i], ns, start[i], {tid: thread.tid});
      if ((i & 0xfff) === 0) yield;
    }
  }

  addCounter(counter) {
    const first = Math.max(0, counter.time.above(this.from) - 1);
    const last = counter.time.above(this.to);
    if (last <= first) return;
    counter.range(first, last < counter.time.length ? counter.time.data[last] : Infinity);
    this.counters.push([this.model.counterName(counter), counter.least, counter.most, last - first]);
  }
}
