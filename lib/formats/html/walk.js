// SPDX-License-Identifier: LGPL-2.1-or-later
// Walks along wake-ups and flows from what is selected, and along a thread's runs.

const STEPS_TRIED = 1e6; // of all flows together

// Returns what is found for the first step of a slice's flows that has one. A slice may have many steps of a long flow.
function firstFound(steps, find) {
  let left = STEPS_TRIED;
  for (const step of steps) {
    if ((left -= step.chain.length) < 0) break;
    const found = find(step.chain, step);
    if (found) return found;
  }
  return undefined;
}

class Walk {
  constructor(viewer) {
    this.viewer = viewer;
    this.path = []; // selected before each step to a waker
  }

  // A selection by hand begins a new path.
  begin() {
    this.path = [];
  }

  step(go) {
    const {mark} = this.viewer;
    const path = [...this.path, mark];
    go();
    this.path = path;
  }

  toWaker() {
    const {viewer} = this;
    const {mark, whyMark: why, steps} = viewer;
    if (!mark) return;
    const previous = firstFound(steps, (chain, step) => chain.findLast(({t}) => t < step.t));
    if (previous) this.step(() => viewer.goToStep(previous));
    else if (why && why.wake && (why.wake.interrupt || !why.wake.tid))
      this.step(() => viewer.goToEvent(why.wake.event));
    else if (why && why.wake) this.step(() => viewer.goToRun(why.wake.tid, why.wake.t, {isWaker: true}));
    else if (why && why.wakes && !why.wakes.interrupt && why.wakes.tid)
      this.step(() => viewer.goToRun(why.wakes.tid, why.wakes.t, {isWaker: true}));
    else if (why && why.preempted && why.preempted.by)
      this.step(() => viewer.goToRun(why.preempted.by, why.preempted.t));
    else if (why || steps.length) viewer.pane.say(`${this.endOf(why)}: the path ends here.`);
    else viewer.pane.say('Select a state of a thread, a run or a wake-up: the pane then names its cause.');
  }

  endOf(why) {
    const {interrupt: by, tid} = (why && why.wakes) || {};
    if (!by) return tid === 0 ? 'The idle task woke it' : 'The trace has no waker';
    const article = by.kind === 'softirq' ? 'A' : 'An';
    return `${by.name ? 'The' : article} ${by.kind} ${by.name}`.trim() + ' woke it';
  }

  // Goes back; without a path to a thread that this run woke.
  back() {
    const {viewer} = this;
    const {mark, whyMark: why, steps} = viewer;
    if (this.path.length) {
      const hit = this.path.pop();
      const {path} = this;
      viewer.goToHit(hit);
      this.path = path;
      return;
    }
    if (!mark) return;
    const next = firstFound(steps, (chain, step) => chain.find(({t}) => t > step.t));
    const run = why && why.run;
    const [wake] = run ? viewer.why.wakesBy(run) : [];
    if (next) viewer.goToStep(next);
    else if (wake) viewer.goToRun(wake.woken, wake.t);
    else if (why && why.wakes) viewer.goToRun(why.wakes.woken, why.wakes.t);
    else viewer.pane.say('The trace has no thread that this run woke.');
  }

  follow(way) {
    const {viewer} = this;
    const {mark} = viewer;
    const {tid} = mark ? placeOf(viewer, mark) : {};
    if (!tid) return;
    this.begin();
    const runs = viewer.why.runsOf(tid);
    const next = viewer.why.nextRun(tid, mark.from + (way > 0 && mark.kind !== 'thread' ? 1 : 0));
    const run = runs[way > 0 ? next : next - 1];
    if (run) viewer.goToRun(tid, run.from, {onCpu: mark.row.kind === 'running'});
    else viewer.pane.say(`The trace has no ${way > 0 ? 'later' : 'earlier'} run of this thread.`);
  }
}
