// SPDX-License-Identifier: LGPL-2.1-or-later
// Which rows are visible, and in which order.

function runTime(thread) {
  return thread.ran[thread.state.length];
}

// Returns for how long a thread was runnable, without running, and its longest time of that kind.
// Waits in which events are lost do not count: the thread may have run in between.
function delayOf({gaps, lastTime}, thread) {
  const delay = {ns: 0, count: 0, longest: -1, max: 0};
  for (let i = 0; i < thread.state.length; i++) {
    if (thread.state.data[i] !== State.RUNNABLE) continue;
    const from = thread.stateStart.data[i];
    const to = thread.stateEnd(i, lastTime);
    if (!gaps.isWhole(from, to)) continue;
    const ns = to - from;
    delay.ns += ns;
    delay.count++;
    if (ns > delay.max) Object.assign(delay, {max: ns, longest: i});
  }
  return delay;
}

// Returns for how long a thread was in a state.
function timeIn({lastTime}, thread, state) {
  let ns = 0;
  for (let i = 0; i < thread.state.length; i++)
    if (thread.state.data[i] === state) ns += thread.stateEnd(i, lastTime) - thread.stateStart.data[i];
  return ns;
}

// Each order compares threads by a number; of times, the greatest comes first and is noted in the row.
const THREAD_ORDERS = [
  {name: 'run time', value: (thread) => -runTime(thread), note: duration},
  {name: 'delay', value: (thread, model) => -delayOf(model, thread).ns, note: duration},
  {name: 'pid', value: (thread) => thread.tid},
];

// Each of several machines has its own list.
function orderThreads(groups, order, model) {
  const hosts = [...new Set(groups.map(({host}) => host))];
  const of = (host) => groups.filter((group) => group.host === host);
  return hosts.flatMap((host) => orderThreadsOf(host, of(host), order, model));
}

function orderThreadsOf(host, groups, order, model) {
  const [cpus, ...processes] = groups;
  const threads = processes.flatMap((group) => group.rows.filter((row) => row.thread));
  const values = new Map(threads.map((row) => [row, order.value(row.thread, model)]));
  threads.sort((a, b) => values.get(a) - values.get(b) || a.thread.tid - b.thread.tid);
  for (const row of threads) row.note = order.note ? order.note(-values.get(row)) : '';
  const others = processes.map(({label, open, rows}) => ({
    label,
    open,
    host,
    rows: rows.filter((row) => !row.thread),
  }));
  return [cpus, {label: `threads by ${order.name}`, open: true, host, rows: threads}, ...others];
}

// A filter has words, of which a row must match one: /EXPRESSION/ of names, a pid or tid, "cpu1", or a part of a name;
// of several machines, also after "LABEL:".
class RowFilter {
  constructor(text) {
    this.text = text;
    this.error = '';
    this.terms = (text.match(/\/(?:[^/\\]|\\.)+\/?|\S+/g) || []).map((word) => this.term(word));
  }

  term(word) {
    const [, label, rest] = /^([\w.-]+):(.+)$/.exec(word) || [];
    const whole = this.wordTerm(word);
    if (!label || word.toLowerCase().startsWith('cpu:')) return whole;
    const part = this.wordTerm(rest);
    return (row) => (row.host && row.host.label === label ? part(row) : whole(row));
  }

  wordTerm(word) {
    const [, cpu] = /^cpu[:=]?(\d+)$/i.exec(word) || [];
    if (cpu !== undefined) return (row) => (row.cpu ? ownCpu(row.host, row.cpu.number) === +cpu : row.label.startsWith(`CPU ${+cpu} `));
    if (/^\d+$/.test(word))
      return ({thread, process, host}) =>
        (thread && ownPid(host, thread.tid) === +word) || (process && ownPid(host, process.pid) === +word);
    if (word[0] === '/' && word.length > 1) return this.expression(word.slice(1).replace(/\/$/, ''));
    const part = word.toLowerCase();
    return (row) => namesOf(row).some((name) => name.toLowerCase().includes(part));
  }

  expression(source) {
    try {
      const pattern = new RegExp(source, 'iu');
      return (row) => namesOf(row).some((name) => pattern.test(name));
    } catch (error) {
      this.error = error.message;
      return () => true;
    }
  }

  matches(row) {
    return this.terms.some((term) => term(row));
  }
}

// Names are searched in their first part: an expression of a user could take very long.
function namesOf({label, thread, process, cpu, host}) {
  const number = cpu && `CPU ${ownCpu(host, cpu.number)}`;
  const names = [label, thread && thread.name, process && process.name, number, host && host.label];
  return names.filter(Boolean).map((name) => name.slice(0, 256));
}
