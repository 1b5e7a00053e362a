// SPDX-License-Identifier: LGPL-2.1-or-later
// The rows of the page, from the top: CPUs, then processes with their threads; so of each machine.

const LANE = 16; // pixels
const EVERY_ROW = 1e9; // pixels: what is selected down to here includes rows of closed groups

// Rows below each other.
class RowList {
  begin() {
    this.all = [];
    this.height = 0;
    this.places = new Map();
  }

  // A pinned row is in two lists, each with a copy that has its own y.
  put(row, copy = row) {
    copy.y = this.height;
    this.height += copy.height + 1;
    this.all.push(copy);
    this.places.set(row, copy);
  }

  at(y) {
    return this.all.find((row) => y >= row.y && y < row.y + row.height + 1);
  }

  // Between groups there is no row. The first row that ends below y, and the last one that begins above it.
  firstBelow(y) {
    return this.all.find((row) => y < row.y + row.height + 1);
  }

  lastAbove(y) {
    return this.all.filter((row) => row.y <= y).at(-1);
  }

  // Returns the list's copy of a row; undefined if it is not visible.
  shown(row) {
    return this.places.get(row);
  }
}

class Rows extends RowList {
  constructor(model) {
    super();
    this.model = model;
    this.groups = [];
    this.filter = null; // a RowFilter
    this.order = null; // one of THREAD_ORDERS
    this.inSight = null; // {from, to}: rows that are blank there are left out
    this.byThread = new Map();
    for (const counter of model.counters.values()) {
      if (counter.owner !== 'cpu') model.process(counter.owner).counters.push(counter);
    }
    const hosts = model.hosts ? [...model.hosts.all, null] : [null];
    for (const host of hosts) {
      this.addCpus(host);
      this.addProcesses(host);
    }
    this.closeFar();
    this.place();
  }

  addCpus(host) {
    const {model} = this;
    const cpus = [...model.cpus.values()].filter(({number}) => model.hostOfCpu(number) === host);
    cpus.sort((a, b) => a.number - b.number);
    const group = this.addGroup('CPUs', true, host);
    group.isCpus = true;
    for (const cpu of cpus) {
      const label = `CPU ${ownCpu(host, cpu.number)}`;
      const add = (row) => group.rows.push({...row, cpu, host});
      if (cpu.running.length || cpu.losses.length) {
        add({kind: 'running', label, lanes: [cpu.running], laneHeight: 22, height: 22});
      }
      for (const name of ['irq', 'softirq']) {
        const {lanes} = cpu[name];
        if (lanes.length)
          add({kind: 'slices', label: name, sub: true, lanes, laneHeight: 12, height: 12 * lanes.length});
      }
      const alone = !cpu.running.length && !cpu.losses.length;
      if (cpu.events.length) {
        add({kind: 'events', label: alone ? `${label} events` : 'events', sub: !alone, lanes: [], height: 11});
      }
    }
    for (const counter of model.counters.values()) {
      const [, number] = /^CPU (\d+)/.exec(counter.label) || [];
      if (counter.owner !== 'cpu' || model.hostOfCpu(+number) !== host) continue;
      const label = model.ownCounterLabel(counter);
      group.rows.push({kind: 'counter', label, counter, host, lanes: [], height: 30});
    }
  }

  addProcesses(host) {
    const {model} = this;
    // Kernel threads and idle have a sort index above 0: they come last.
    const processes = [...model.processes.values()].filter(({pid}) => model.hostOfPid(pid) === host);
    processes.sort((a, b) => a.sort - b.sort || a.pid - b.pid);
    let kernel = null;
    for (const process of processes) {
      const rows = this.rowsOf(process);
      if (!rows.length) continue;
      const isKernel = process.sort > 0;
      if (isKernel && !kernel) kernel = this.addGroup('kernel threads', false, host);
      const group = isKernel ? kernel : this.addGroup(model.processLabel(process.pid), true, host);
      for (const row of rows) group.rows.push(Object.assign(row, {host}));
    }
  }

  closeFar() {
    // At first, groups below the first two screens or so are closed.
    let height = 0;
    for (const group of this.groups) {
      height += group.rows.reduce((sum, row) => sum + row.height, 0);
      if (height > 3000 && !group.isCpus) group.open = false;
    }
  }

  rowsOf(process) {
    const {model} = this;
    const rows = [];
    const slices = (label, lanes) =>
      rows.push({kind: 'slices', label, process, lanes, laneHeight: LANE, height: LANE * lanes.length});
    for (const thread of process.threads) {
      const {lanes} = thread.nest;
      if (!lanes.length && !thread.state.length && !thread.samples.time.length) continue;
      const strip = thread.state.length ? (lanes.length ? 7 : 14) : 0;
      const ticks = thread.samples.time.length ? 8 : 0;
      const height = strip + ticks + LANE * lanes.length + 3;
      const row = {
        kind: 'thread',
        label: model.threadLabel(thread.tid),
        sub: thread.tid !== process.pid && process.threads.length > 1,
        process,
        thread,
        lanes,
        laneHeight: LANE,
        height,
        strip,
        ticks,
      };
      rows.push(row);
      this.byThread.set(thread.tid, row);
    }
    if (process.instants.lanes.length) slices('instants', process.instants.lanes);
    for (const [name, nest] of process.async) slices(name, nest.lanes);
    for (const counter of process.counters)
      rows.push({kind: 'counter', label: counter.label, process, counter, lanes: [], height: 34});
    return rows;
  }

  addGroup(label, open, host) {
    const group = {label, open, host, isCpus: false, rows: []};
    this.groups.push(group);
    return group;
  }

  ofThread(tid) {
    return this.byThread.get(tid);
  }

  // Returns a CPU's row of running threads, or the row of its events.
  ofCpu(number) {
    const cpus = this.groups.filter(({isCpus}) => isCpus).flatMap((group) => group.rows);
    const rows = cpus.filter((row) => row.cpu && row.cpu.number === number);
    return rows.find((row) => row.kind === 'running') || rows[0];
  }

  // Threads in another order leave their processes' groups, which keep the other rows.
  setOrder(order) {
    this.order = order;
    for (const row of this.byThread.values()) row.note = '';
    this.ordered = order ? orderThreads(this.groups, order, this.model) : this.groups;
  }

  isWanted(row) {
    return !this.filter || this.filter.matches(row);
  }

  // Lists the visible rows in `all` and sets their y. Rows of closed groups are not visible.
  place() {
    this.begin();
    let host = null; // of the group before
    for (const group of this.ordered || this.groups) {
      const wanted = group.rows.filter((row) => this.isWanted(row));
      if (!wanted.length) continue;
      const isNext = group.host && group.host !== host;
      host = group.host;
      if (isNext) this.put({kind: 'group', label: host.label, note: host.note, group: host, lanes: [], height: 24});
      if (host && !host.open && !this.filter) continue;
      const {inSight} = this;
      const rows = inSight ? wanted.filter((row) => !isBlank(row, inSight.from, inSight.to)) : wanted;
      const isOpen = group.open || Boolean(this.filter);
      // A single row needs no heading.
      if (group.rows.length === 1 && isOpen && !this.order) {
        if (rows.length) this.put(rows[0]);
        continue;
      }
      const blank = wanted.length - rows.length;
      const note = blank ? `${blank} blank` : '';
      this.put({kind: 'group', label: group.label, note, group, lanes: [], height: 20});
      if (isOpen) for (const row of rows) this.put(row);
      this.height += 4;
    }
  }

  // Rows have the same numbers in each page of a trace, whatever is visible, and in which order.
  get numbered() {
    return this.groups.flatMap(({rows}) => rows);
  }

  // Returns the rows that the filter wants, also those of closed groups.
  every() {
    return (this.ordered || this.groups).flatMap(({rows}) => rows.filter((row) => this.isWanted(row)));
  }

  // Returns the first row that matches, and makes it visible.
  reveal(match) {
    for (const group of this.ordered || this.groups) {
      const row = group.rows.find(match);
      if (!row) continue;
      if (!this.isWanted(row)) this.filter = null;
      group.open = true;
      if (group.host) group.host.open = true;
      this.place();
      if (!this.shown(row)) {
        this.inSight = null;
        this.place();
      }
      return row;
    }
    return null;
  }
}

// Whether a row shows nothing between two times. Sleeping is nothing.
function isBlank(row, from, to) {
  const hasTime = (time) => time.seek(from) < time.length && time.data[time.seek(from)] <= to;
  if (row.counter) return false;
  if (row.kind === 'events') return !hasTime(row.cpu.time);
  if (row.lanes.some((lane) => lane.at(from) < lane.length && lane.start.data[lane.at(from)] <= to)) return false;
  if (row.cpu) return !row.cpu.losses.some((loss) => !(loss.from > to) && loss.to >= from);
  const {thread} = row;
  return !thread || !(hasTime(thread.samples.time) || isActive(thread, from, to));
}

function isActive(thread, from, to) {
  const {data: start, length: n} = thread.stateStart;
  for (let i = Math.max(0, thread.stateStart.above(from) - 1); i < n && start[i] < to; i++) {
    const state = thread.state.data[i];
    if (state === State.RUNNING || state === State.RUNNABLE || state === State.BLOCKED) return true;
  }
  return false;
}
