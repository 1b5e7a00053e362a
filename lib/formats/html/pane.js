// SPDX-License-Identifier: LGPL-2.1-or-later
// The pane of what is selected: what it is, where, and why it waited.

const TEXT_SHOWN = 20000; // characters
const FLOWS_SHOWN = 30;
const STEPS_SHOWN = 12; // of a flow

class Pane {
  constructor(viewer, element) {
    this.viewer = viewer;
    this.element = element;
  }

  // Describes a hit; `why` and `steps` of flows may be missing.
  show(hit, why, steps) {
    const {model} = this.viewer;
    const {title, text} = hit.kind === 'thread' ? this.titleOfThread(hit) : tell(model, hit);
    this.element.replaceChildren(make('h2', {}, shorten(title, 300)));
    const parts = make('div', {parent: this.element, className: 'parts'});
    this.putFacts(parts, hit);
    if (hit.kind === 'thread') this.putSummary(parts, hit.row.thread);
    if (why && why.here) this.putWhy(parts, why);
    if (why && why.wakes) this.putWakes(parts, why.wakes);
    if (why && why.meanwhile) this.putMeanwhile(parts, why.meanwhile);
    if (steps.length) this.putFlows(parts, steps);
    if (text) make('pre', {parent: this.element}, shorten(text, TEXT_SHOWN));
  }

  // Adds a sentence below the others, as an answer to a key.
  say(text) {
    if (this.element.hidden) this.element.replaceChildren();
    if (this.said) this.said.remove();
    this.said = make('p', {parent: this.element}, text);
    this.said.setAttribute('role', 'status');
    this.element.hidden = false;
    this.element.scrollTop = this.element.scrollHeight;
  }

  // A selection by hand.
  link(text, go) {
    const onclick = () => {
      this.viewer.walk.begin();
      go();
    };
    return make('button', {className: 'link', onclick}, text);
  }

  // t: when it woke or preempted another thread, or was woken
  threadLink(tid, t, isWaker = false) {
    if (!tid) return 'idle';
    const go = () => (t === undefined ? this.viewer.goToThread(tid) : this.viewer.goToRun(tid, t, {isWaker}));
    return this.link(this.viewer.model.threadLabel(tid), go);
  }

  sliceLink({name, lane, index}) {
    return this.link(name, () => this.viewer.goToLane(lane, index));
  }

  momentLink(tid, t, text) {
    return this.link(text, () => this.viewer.goToRun(tid, t));
  }

  putFacts(parent, hit) {
    const {model} = this.viewer;
    const {tid, pid, cpu} = placeOf(this.viewer, hit);
    const list = make('dl', {parent});
    const put = (name, ...values) => make('div', {parent: list}, make('dt', {}, name), make('dd', {}, ...values));
    const isThread = hit.kind === 'thread';
    if (!isThread) put('time', `${duration(hit.from - model.firstTime)} · ${absolute(model, hit.from)}`);
    if (hit.to > hit.from && !isThread) put('duration', duration(hit.to - hit.from));
    put('row', shortName(hit.row.label));
    // Elements X are whole.
    const hasEnd = hit.to > hit.from && (hit.ref >= 0 || (model.element(hit.ref) || {}).ph === 'B');
    if (hit.kind === 'slice' && hit.row.thread && hasEnd && !model.gaps.isWhole(hit.from, hit.to))
      put('losses', 'Events are lost in this time: this slice may have ended before, and another one begun.');
    if (hit.row.host) put('host', `${hit.row.host.label} · ${hit.row.host.clock}`);
    put('thread', tid === undefined ? 'none' : this.threadLink(tid));
    put('process', pid ? model.processLabel(pid) : 'none');
    const isAway = hit.kind === 'state' && hit.state !== State.RUNNING;
    if (!isThread) put('CPU', cpu === undefined ? 'none' : `${this.ownCpu(cpu)}${isAway ? ', where it ran last' : ''}`);
  }

  // The CPU's number on its machine.
  ownCpu(number) {
    return ownCpu(this.viewer.model.hostOfCpu(number), number);
  }

  titleOfThread({row}) {
    const {name} = row.thread;
    return {title: row.label, text: name.length > NAME_SHOWN ? name : ''};
  }

  putSummary(parent, thread) {
    const {model, why} = this.viewer;
    const delay = delayOf(model, thread);
    const runs = why.runsOf(thread.tid);
    const longest = runs.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a), runs[0]);
    const list = make('dl', {parent});
    const put = (name, ...values) => make('div', {parent: list}, make('dt', {}, name), make('dd', {}, ...values));
    put('ran', `${duration(runTime(thread))}, ${runs.length.toLocaleString('en')} times`);
    if (longest) put('longest run', this.momentLink(thread.tid, longest.from, duration(longest.to - longest.from)));
    put('runnable', `${duration(delay.ns)}, ${delay.count.toLocaleString('en')} times`);
    if (delay.longest >= 0)
      put('longest delay', this.momentLink(thread.tid, thread.stateStart.data[delay.longest], duration(delay.max)));
    for (const state of [State.SLEEPING, State.BLOCKED, State.STOPPED]) {
      const ns = timeIn(model, thread, state);
      if (ns) put(STATE_NAMES[state], duration(ns));
    }
    put('on CPUs', [...new Set(runs.map((run) => this.ownCpu(run.cpu)))].sort((a, b) => a - b).join(', ') || 'none');
  }

  putWhy(parent, why) {
    const box = make('div', {parent, className: 'why'});
    const put = (...words) => make('p', {parent: box}, ...words);
    const {here, wait, wake, preempted, ran, run} = why;
    const {tid} = here.thread;
    if (run) put(`Ran for ${duration(run.to - run.from)} on CPU ${this.ownCpu(run.cpu)}.`);
    if (wake) this.putWake(put, wake);
    else if (preempted) put('Preempted by ', this.threadLink(preempted.by, preempted.t), ` on CPU ${this.ownCpu(preempted.cpu)}.`);
    else put('No event in the trace tells who woke it.');
    if (wait) {
      const end = ran ? [', then it ran on ', this.momentLink(tid, ran.from, `CPU ${this.ownCpu(ran.cpu)}`), '.'] : ['.'];
      put(`Runnable for ${duration(wait.to - wait.from)}`, ...end);
    }
    if (!why.isWhole) put('Events are lost in this time: the thread may have run in between.');
    for (const [name, other] of [
      ['Previous', why.previous],
      ['Next', why.next],
    ]) {
      if (!other) put(`${name} run: none in the trace.`);
      else
        put(
          `${name} run: `,
          this.momentLink(tid, other.from, `CPU ${this.ownCpu(other.cpu)}, ${duration(other.to - other.from)}`),
        );
    }
    const {walk} = this.viewer;
    const key = (name, onclick) => make('button', {onclick}, make('kbd', {}, name));
    make(
      'p',
      {parent: box, className: 'hint'},
      key('[', () => walk.toWaker()),
      ' to the waker ',
      key(']', () => walk.back()),
      ' back, or to the woken thread ',
      key('f', () => walk.follow(1)),
      ' next run',
    );
  }

  putWake(put, wake) {
    const at = ` on CPU ${this.ownCpu(wake.cpu)}`;
    if (wake.interrupt) {
      const {kind, name} = wake.interrupt;
      put(
        `Woken by ${kind === 'interrupt' ? 'an interrupt' : 'a softirq'}${name ? `, ${name},` : ''}${at}, in `,
        this.threadLink(wake.tid, wake.t),
        '.',
      );
    } else {
      put('Woken by ', this.threadLink(wake.tid, wake.t, true), `${at}.`);
    }
    // The scheduler may finish a wake-up on another CPU than the waker's.
    if (wake.name === 'sched_wakeup')
      put('Only sched_wakeup was recorded. The waker may be another one; sched_waking tells surely.');
  }

  putWakes(parent, {woken, t, target}) {
    const where = target < 0 ? '.' : `, for CPU ${this.ownCpu(target)}.`;
    make('p', {parent}, 'Wakes ', this.threadLink(woken, t), where);
  }

  putMeanwhile(parent, {cpu, rows, idle, unknown}) {
    const table = make('table', {parent}, make('caption', {}, `CPU ${this.ownCpu(cpu)} meanwhile`));
    make('tr', {parent: table}, headCell(''), headCell('time'), headCell('count'));
    const put = (what, ns, count) =>
      make(
        'tr',
        {parent: table},
        make('td', {}, what),
        make('td', {className: 'number'}, duration(ns)),
        make('td', {className: 'number'}, count),
      );
    for (const row of rows.slice(0, TABLE_ROWS)) {
      const what = row.lane ? this.sliceLink(row) : this.threadLink(row.tid, row.first);
      put(what, row.ns, row.count.toLocaleString('en'));
    }
    if (idle > 0) put('idle', idle, '');
    if (unknown > 0) put('unknown', unknown, '');
  }

  putFlows(parent, steps) {
    const {model} = this.viewer;
    const chains = [...new Set(steps.map((step) => step.chain))];
    if (chains.length > FLOWS_SHOWN) make('p', {parent}, `The first ${FLOWS_SHOWN} of ${chains.length} flows:`);
    for (const chain of chains.slice(0, FLOWS_SHOWN)) {
      const element = model.element(chain[0].ref);
      const table = make('table', {parent}, make('caption', {}, shorten(`flow ${element.name}`, NAME_SHOWN)));
      make('tr', {parent: table}, headCell(''), headCell('thread'), headCell('time'));
      for (const step of chain.slice(0, STEPS_SHOWN)) {
        const go = this.link(duration(step.t - model.firstTime), () => this.viewer.goToStep(step));
        const phase = {s: 'begins', t: 'goes on', f: 'ends'}[step.phase];
        make(
          'tr',
          {parent: table},
          make('td', {}, phase),
          make('td', {}, model.threadLabel(step.tid)),
          make('td', {className: 'number'}, go),
        );
      }
      if (chain.length > STEPS_SHOWN)
        make('tr', {parent: table}, make('td', {}, `and ${chain.length - STEPS_SHOWN} more`));
    }
  }
}

function headCell(text) {
  return make('th', {scope: 'col'}, text);
}

// Returns the thread, process and CPU of a hit, as far as they are known.
function placeOf({model, why}, hit) {
  const {row, kind} = hit;
  let tid = row.thread && row.thread.tid;
  let cpu = row.cpu && row.cpu.number;
  if (kind === 'running') tid = hit.ref;
  else if (kind === 'event') ({tid, cpu} = parseLine(model.eventText(hit.ref)) || {tid, cpu});
  else if (kind === 'slice' && row.cpu) tid = why.taskAt(cpu, hit.from);
  else if (kind === 'sample') ({cpu} = model.element(hit.ref));
  else if (tid && kind !== 'thread') cpu = cpuAt(why, tid, hit);
  const thread = model.threads.get(tid);
  const pid = thread && tid ? thread.pid || thread.tid : row.process && row.process.pid;
  return {tid, pid, cpu};
}

// A thread that does not run is on the CPU of its last run.
function cpuAt(why, tid, {from, ref, kind}) {
  if (kind === 'slice' && ref >= 0) return why.model.cpuOf.data[ref];
  const run = why.runAt(tid, from) || why.runsOf(tid)[why.nextRun(tid, from) - 1];
  return run && run.cpu;
}
