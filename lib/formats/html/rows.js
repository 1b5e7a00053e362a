// SPDX-License-Identifier: LGPL-2.1-or-later
// The rows of the page, from the top: CPUs, then processes with their threads.

const LANE = 16; // pixels

class Rows {
  constructor(model) {
    this.model = model;
    this.groups = [];
    this.addCpus();
    this.addProcesses();
    this.place();
  }

  addCpus() {
    const {model} = this;
    const cpus = [...model.cpus.values()].sort((a, b) => a.number - b.number);
    const group = this.addGroup('CPUs', true);
    for (const cpu of cpus) {
      const add = (row) => group.rows.push({...row, cpu});
      if (cpu.running.length || cpu.losses.length) {
        add({kind: 'running', label: `CPU ${cpu.number}`, lanes: [cpu.running], laneHeight: 22, height: 22});
      }
      for (const name of ['irq', 'softirq']) {
        const {lanes} = cpu[name];
        if (lanes.length)
          add({kind: 'slices', label: name, sub: true, lanes, laneHeight: 12, height: 12 * lanes.length});
      }
      const alone = !cpu.running.length && !cpu.losses.length;
      if (cpu.events.length) {
        add({kind: 'events', label: alone ? `CPU ${cpu.number} events` : 'events', sub: !alone, lanes: [], height: 11});
      }
    }
    for (const counter of model.counters.values()) {
      if (counter.owner === 'cpu')
        group.rows.push({kind: 'counter', label: counter.label, counter, lanes: [], height: 30});
    }
  }

  addProcesses() {
    const {model} = this;
    for (const counter of model.counters.values()) {
      if (counter.owner !== 'cpu') model.process(counter.owner).counters.push(counter);
    }
    // Kernel threads and idle have a sort index above 0: they come last.
    const processes = [...model.processes.values()].sort((a, b) => a.sort - b.sort || a.pid - b.pid);
    let kernel = null;
    for (const process of processes) {
      const rows = this.rowsOf(process);
      if (!rows.length) continue;
      const isKernel = process.sort > 0;
      if (isKernel && !kernel) kernel = this.addGroup('kernel threads', false);
      const group = isKernel ? kernel : this.addGroup(`${process.name || 'process'} ${process.pid}`, true);
      group.rows.push(...rows);
    }
    // At first, groups below the first two screens or so are closed.
    let height = 0;
    for (const group of this.groups) {
      height += group.rows.reduce((sum, row) => sum + row.height, 0);
      if (height > 3000 && group !== this.groups[0]) group.open = false;
    }
  }

  rowsOf(process) {
    const {model} = this;
    const rows = [];
    const slices = (label, lanes) =>
      rows.push({kind: 'slices', label, lanes, laneHeight: LANE, height: LANE * lanes.length});
    for (const thread of process.threads) {
      const {lanes} = thread.nest;
      if (!lanes.length && !thread.state.length && !thread.samples.time.length) continue;
      const strip = thread.state.length ? (lanes.length ? 7 : 14) : 0;
      const ticks = thread.samples.time.length ? 8 : 0;
      const height = strip + ticks + LANE * lanes.length + 3;
      const label = model.threadLabel(thread.tid);
      rows.push({
        kind: 'thread',
        label,
        sub: thread.tid !== process.pid && process.threads.length > 1,
        thread,
        lanes,
        laneHeight: LANE,
        height,
        strip,
        ticks,
      });
    }
    if (process.instants.lanes.length) slices('instants', process.instants.lanes);
    for (const [name, nest] of process.async) slices(name, nest.lanes);
    for (const counter of process.counters)
      rows.push({kind: 'counter', label: counter.label, counter, lanes: [], height: 34});
    return rows;
  }

  addGroup(label, open) {
    const group = {label, open, rows: []};
    this.groups.push(group);
    return group;
  }

  // Lists the visible rows in `all` and sets their y. Rows of closed groups are not visible.
  place() {
    this.all = [];
    let y = 0;
    const put = (row) => {
      row.y = y;
      y += row.height + 1;
      this.all.push(row);
    };
    for (const group of this.groups) {
      if (!group.rows.length) continue;
      // A single row needs no heading.
      if (group.rows.length === 1 && group.open) {
        put(group.rows[0]);
        continue;
      }
      put({kind: 'group', label: group.label, group, lanes: [], height: 20});
      if (group.open) group.rows.forEach(put);
      y += 4;
    }
    this.height = y;
  }

  at(y) {
    return this.all.find((row) => y >= row.y && y < row.y + row.height + 1);
  }

  // Returns the first row that matches, and opens its group.
  reveal(match) {
    for (const group of this.groups) {
      const row = group.rows.find(match);
      if (!row) continue;
      if (!group.open) {
        group.open = true;
        this.place();
      }
      return row;
    }
    return null;
  }
}
