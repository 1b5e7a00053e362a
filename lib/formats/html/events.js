// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions by event name: each puts an event of the kernel's text into the model.

// The middle of a switch's details. A name has 15 characters at most, so none has all of this.
const BETWEEN_NAMES = / prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=/;

// Returns a switch's tasks and the first one's state; null: the text has none.
function parseSwitch(text) {
  const found = BETWEEN_NAMES.exec(text);
  const nameAt = found ? found.index + found[0].length : -1;
  const nextAt = text.lastIndexOf(' next_pid=');
  if (!found || nextAt < nameAt) return null;
  return {prev: +found[1], state: found[2], next: parseInt(text.slice(nextAt + 10), 10), name: text.slice(nameAt, nextAt)};
}

// In each function `this` is the model.
const HANDLERS = {
  sched_switch({t, cpu, details}) {
    const found = parseSwitch(details);
    if (!found) return;
    const {prev, next} = found;
    this.endRunning(cpu, t);
    if (!Number.isNaN(cpu.unknownFrom)) this.learnTask(cpu, prev, t);
    if (prev > 0) this.leave(this.thread(prev), t, STATE_OF_LETTER[found.state[0]] ?? State.SLEEPING);
    cpu.leaving = prev;
    cpu.tid = next;
    cpu.since = t;
    if (next <= 0) return;
    const thread = this.thread(next);
    if (!thread.name) thread.name = own(found.name);
    thread.enter(t, State.RUNNING);
    thread.cpu = cpu;
  },
  sched_waking(event) {
    const thread = woken(this, event);
    // Events were lost: the thread ran and slept in between.
    if (thread && thread.current === State.RUNNABLE && thread.gapsBefore < this.lossCount)
      thread.enter(event.t, State.UNKNOWN);
    if (thread) becomeRunnable(this, thread, event.t);
  },
  sched_wakeup(event) {
    const thread = woken(this, event);
    if (thread) becomeRunnable(this, thread, event.t);
  },
  tracing_mark_write({t, index, thread, details}) {
    const [letter, pid, name, value] = details.split('|');
    if (letter === 'B') thread.nest.begin(t, this.intern(details.split('|').slice(2).join('|')), index, Kind.MARK);
    else if (letter === 'E') thread.nest.end(t, Kind.MARK);
    else if (letter === 'C') this.counter(name, +pid).push(t, +value, index);
    else if (letter === 'S') this.asyncBegin(t, +pid, own(name), `${pid} ${value}`, index);
    else if (letter === 'F') this.asyncEnd(t, name, `${pid} ${value}`);
    else thread.nest.list.push(t, t, this.intern(details), index);
  },
  irq_handler_entry({t, index, cpu, details}) {
    const [, number, name] = /^irq=(\d+) name=(.*)/.exec(details) || [, '?', details];
    cpu.irq.begin(t, this.intern(`${name} (irq ${number})`), index, Kind.IRQ);
  },
  irq_handler_exit({t, cpu}) {
    cpu.irq.end(t, Kind.IRQ);
  },
  softirq_entry({t, index, cpu, details}) {
    const [, name] = /\[action=(.*)\]/.exec(details) || [, details];
    cpu.softirq.begin(t, this.intern(name), index, Kind.IRQ);
  },
  softirq_exit({t, cpu}) {
    cpu.softirq.end(t, Kind.IRQ);
  },
  workqueue_execute_start({t, index, thread, details}) {
    const [, name] = /: function (.*)/.exec(details) || [, details];
    thread.nest.begin(t, this.intern(name), index, Kind.WORK);
  },
  workqueue_execute_end({t, thread}) {
    thread.nest.end(t, Kind.WORK);
  },
  sys_enter({t, index, thread, details}) {
    enterSyscall(this, t, index, thread, this.syscall(thread.tid, details.slice(0, details.indexOf(' ('))));
  },
  sys_exit({t, thread}) {
    thread.nest.end(t, Kind.SYSCALL);
  },
  cpu_frequency({t, index, details}) {
    const [, value, cpu] = /state=(\d+) cpu_id=(\d+)/.exec(details) || [];
    if (cpu) this.counter(`CPU ${cpu} frequency (kHz)`, 'cpu').push(t, +value, index);
  },
  cpu_idle({t, index, details}) {
    const [, value, cpu] = /state=(\d+) cpu_id=(\d+)/.exec(details) || [];
    // 4294967295, which is -1: the CPU left its idle state.
    if (cpu) this.counter(`CPU ${cpu} idle state`, 'cpu').push(t, value === '4294967295' ? 0 : +value + 1, index);
  },
};
HANDLERS.sched_wakeup_new = HANDLERS.sched_wakeup;

// Returns the thread that an event wakes, if the event names one.
function woken(model, {index, details}) {
  const at = details.lastIndexOf(' pid=');
  const tid = parseInt(details.slice(at + 5), 10);
  if (at < 0 || !(tid > 0)) return null;
  const thread = model.thread(tid);
  thread.wakes.push(index);
  return thread;
}

function becomeRunnable(model, thread, t) {
  if (thread.current === State.RUNNING || thread.current === State.RUNNABLE) return;
  thread.enter(t, State.RUNNABLE);
  thread.gapsBefore = model.lossCount;
}

// A thread is in one system call at a time. A new one ends the last, whose exit may be missing.
function enterSyscall(model, t, index, thread, name) {
  thread.nest.end(t, Kind.SYSCALL);
  thread.nest.begin(t, name, index, Kind.SYSCALL);
}

// An architecture's interrupts without a number. Their tracepoints are X_entry and X_exit.
const VECTORS = new Set(
  (
    'ipi local_timer reschedule call_function call_function_single irq_work x86_platform_ipi error_apic ' +
    'spurious_apic threshold_apic deferred_error_apic thermal_apic'
  ).split(' '),
);

function findHandler(name) {
  if (Object.hasOwn(HANDLERS, name)) return HANDLERS[name];
  const [, call, way] = /^sys_(enter|exit)_(.+)$/.exec(name) || [];
  if (call === 'enter') {
    return function begin({t, index, thread}) {
      enterSyscall(this, t, index, thread, this.intern(way));
    };
  }
  if (call === 'exit') return HANDLERS.sys_exit;
  const [, vector, end] = /^(\w+)_(entry|exit)$/.exec(name) || [];
  if (!VECTORS.has(vector)) return null;
  if (end === 'exit') return HANDLERS.irq_handler_exit;
  return function begin({t, index, cpu}) {
    cpu.irq.begin(t, this.intern(vector), index, Kind.IRQ);
  };
}
