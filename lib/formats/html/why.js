// SPDX-License-Identifier: LGPL-2.1-or-later
// Why a thread waits: who woke it, on which CPU it ran then, and who ran there before it.

const WAKES = new Set(['sched_waking', 'sched_wakeup', 'sched_wakeup_new']);

// Parses an event's line: its task, CPU and flags.
function parseLine(line) {
  const found = AFTER_NAME.exec(line);
  return found && {tid: +found[1], cpu: +found[2], flags: found[3] || ''};
}

// Returns the slice of a nest at time t that encloses no other, or null.
function innermost(nest, t) {
  for (let depth = nest.lanes.length - 1; depth >= 0; depth--) {
    const lane = nest.lanes[depth];
    const i = lane.start.above(t) - 1;
    if (i >= 0 && lane.end.data[i] >= t) return {lane, depth, index: i, name: lane.name.data[i]};
  }
  return null;
}

class Why {
  constructor(model) {
    this.model = model;
    this.runs = new Map();
  }

  // Returns a thread's runs on all CPUs, in time order.
  runsOf(tid) {
    let runs = this.runs.get(tid);
    if (runs) return runs;
    runs = [];
    for (const {number, running} of this.model.cpus.values()) {
      const {data: ref, length: n} = running.ref;
      for (let i = 0; i < n; i++)
        if (ref[i] === tid) runs.push({tid, cpu: number, from: running.start.data[i], to: running.end.data[i]});
    }
    runs.sort((a, b) => a.from - b.from);
    this.runs.set(tid, runs);
    return runs;
  }

  // Returns the index of the first run that begins at time t or later.
  nextRun(tid, t) {
    const runs = this.runsOf(tid);
    let low = 0;
    let high = runs.length;
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (runs[mid].from < t) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  runAt(tid, t) {
    const i = this.nextRun(tid, t);
    const runs = this.runsOf(tid);
    if (runs[i] && runs[i].from === t) return runs[i];
    return i > 0 && runs[i - 1].to >= t ? runs[i - 1] : null;
  }

  // Returns the thread that ran on a CPU at time t; of two, the earlier one.
  taskAt(cpu, t) {
    const {running} = this.model.cpu(cpu);
    const i = running.start.seek(t) - 1;
    return i >= 0 && running.end.data[i] >= t ? running.ref.data[i] : 0;
  }

  stretch(thread, i) {
    if (i < 0 || i >= thread.state.length) return null;
    const from = thread.stateStart.data[i];
    return {thread, index: i, state: thread.state.data[i], from, to: thread.stateEnd(i, this.model.lastTime)};
  }

  // Explains one state of a thread. `wait` is the runnable stretch before its run, `sleep` that before the wait.
  explain(thread, i) {
    const here = this.stretch(thread, i);
    if (!here) return null;
    let wait = null;
    if (here.state === State.RUNNABLE) wait = here;
    else if (here.state === State.RUNNING) wait = this.stretch(thread, i - 1);
    else wait = this.stretch(thread, i + 1);
    // A wake-up after an exit is another thread's, with the same id.
    if (here.state === State.DEAD || (wait && wait.state !== State.RUNNABLE)) wait = null;
    const tid = thread.tid;
    const next = this.nextRun(tid, here.state === State.RUNNING ? here.from + 1 : here.to);
    const runs = this.runsOf(tid);
    const before = this.nextRun(tid, here.from) - 1;
    const why = {here, wait, wake: null, preempted: null, previous: null, next: null, ran: null, isWhole: true};
    why.previous = this.isOneLife(thread, i, runs[before]) ? runs[before] : null;
    why.next = this.isOneLife(thread, i, runs[next]) ? runs[next] : null;
    const span = here.state === State.RUNNING ? wait : here.state === State.DEAD ? null : here;
    if (span) why.isWhole = this.model.gaps.isWhole(span.from, (wait || here).to);
    if (here.state === State.RUNNING) why.run = this.runAt(tid, here.from);
    if (!wait) return why;
    const sleep = this.stretch(thread, wait.index - 1);
    if (!sleep || sleep.state !== State.RUNNING) why.wake = this.wakeAt(thread, wait.from);
    if (!why.wake) why.preempted = this.preemption(tid, wait.from);
    why.ran = runs[this.nextRun(tid, wait.to)] || null;
    if (why.ran && why.ran.from !== wait.to) why.ran = null;
    const cpu = why.ran ? why.ran.cpu : why.wake ? why.wake.target : why.preempted ? why.preempted.cpu : -1;
    if (this.model.cpus.has(cpu)) why.meanwhile = this.meanwhile(cpu, wait.from, wait.to);
    return why;
  }

  // Returns whether the thread did not exit between its state i and a run. Its id may be used again.
  isOneLife({state, stateStart}, i, run) {
    if (!run) return false;
    const {data: start} = stateStart;
    for (let k = i; k < state.length && start[k] < run.from; k++) if (state.data[k] === State.DEAD) return false;
    for (let k = i - 1; k >= 0 && start[k] > run.from; k--) if (state.data[k] === State.DEAD) return false;
    return true;
  }

  // A thread that stays runnable when it leaves its CPU was preempted by the next one.
  preemption(tid, t) {
    for (const {number, events, time} of this.model.cpus.values()) {
      for (let i = time.seek(t); i < events.length && time.data[i] === t; i++) {
        const found = this.parseSwitch(events.data[i]);
        if (found && found.prev === tid) return {cpu: number, by: found.next, t};
      }
    }
    return null;
  }

  // Returns the tasks of a switch; null: the event is another one.
  parseSwitch(event) {
    const {model} = this;
    return model.names[model.eventName.data[event]] === 'sched_switch' ? parseSwitch(model.eventText(event)) : null;
  }

  // Returns the event that made a thread runnable at time t.
  wakeAt(thread, t) {
    const {model} = this;
    const events = thread.wakes;
    for (let k = events.length - 1; k >= 0; k--) {
      const event = events.data[k];
      if (model.time.data[event] < t) break;
      const earlier = k > 0 && model.time.data[events.data[k - 1]] >= t;
      if (model.time.data[event] === t && !earlier) return this.parseWake(event);
    }
    return null;
  }

  // Parses an event that wakes a thread; null: it is another one.
  wakeOf(event) {
    const {model} = this;
    return WAKES.has(model.names[model.eventName.data[event]]) ? this.parseWake(event) : null;
  }

  parseWake(event) {
    const {model} = this;
    const line = model.eventText(event);
    const by = parseLine(line);
    if (!by) return null;
    const [, target] = /.* target_cpu=(\d+)/.exec(line) || [];
    const [, woken] = /.* pid=(\d+)/.exec(line) || [];
    const name = model.names[model.eventName.data[event]];
    const t = model.time.data[event];
    const interrupt = this.interruptOf({...by, t});
    return {event, t, name, ...by, woken: +woken, target: target === undefined ? -1 : +target, interrupt};
  }

  // The third flag tells that an interrupt or a softirq, not the task, caused an event.
  interruptOf({flags, cpu, t}) {
    const kind = /[hHzZ]/.test(flags[2]) ? 'irq' : flags[2] === 's' ? 'softirq' : '';
    if (!kind) return null;
    const slice = innermost(this.model.cpu(cpu)[kind], t);
    return {kind: kind === 'irq' ? 'interrupt' : 'softirq', name: slice ? this.model.names[slice.name] : ''};
  }

  // Sums up who ran on a CPU between two times, longest first. The rest is idle, or the task is not known.
  meanwhile(cpu, from, to) {
    const {running, irq, softirq, unknown} = this.model.cpu(cpu);
    const sums = new Map();
    const add = (key, about, start, end) => {
      const ns = Math.min(end, to) - Math.max(start, from);
      if (ns <= 0) return 0;
      const sum = sums.get(key) || {...about, ns: 0, count: 0, first: Math.max(start, from)};
      sum.ns += ns;
      sum.count++;
      sums.set(key, sum);
      return ns;
    };
    let idle = to - from;
    for (let i = Math.max(0, running.start.above(from) - 1); i < running.length && running.start.data[i] < to; i++)
      idle -= add(running.ref.data[i], {tid: running.ref.data[i]}, running.start.data[i], running.end.data[i]);
    for (const [kind, nest] of [
      ['irq', irq],
      ['softirq', softirq],
    ]) {
      for (const lane of nest.lanes.slice(0, 1)) {
        for (let i = lane.at(from); i < lane.length && lane.start.data[i] < to; i++) {
          const name = this.model.names[lane.name.data[i]];
          add(`${kind} ${name}`, {name: `${kind} ${name}`, lane, index: i}, lane.start.data[i], lane.end.data[i]);
        }
      }
    }
    const dark = unknown.reduce((sum, u) => sum + Math.max(0, Math.min(u.to, to) - Math.max(u.from, from)), 0);
    return {cpu, rows: [...sums.values()].sort((a, b) => b.ns - a.ns), idle: idle - dark, unknown: dark};
  }

  // Returns the wake-ups by a thread within one of its runs.
  wakesBy(run) {
    const {events, time} = this.model.cpu(run.cpu);
    const wakes = [];
    for (let i = time.seek(run.from); i < events.length && time.data[i] <= run.to; i++) {
      const wake = this.wakeOf(events.data[i]);
      if (!wake || wake.tid !== run.tid || wakes.some(({woken}) => woken === wake.woken)) continue;
      if (!wake.interrupt) wakes.push(wake);
    }
    return wakes;
  }
}
