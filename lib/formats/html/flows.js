// SPDX-License-Identifier: LGPL-2.1-or-later
// Flows: steps of one thing that goes from slice to slice, as applications name them (phases s, t, f).

class Flows {
  constructor() {
    this.chains = new Map(); // by category, name and id: steps
    this.byThread = new Map();
    this.count = 0;
  }

  add(phase, t, tid, ref, key) {
    const step = {phase, t, tid, ref, key};
    let chain = this.chains.get(key);
    // A new start with an id that was used begins another flow.
    if (!chain || phase === 's') this.chains.set(key, (chain = []));
    chain.push(step);
    step.chain = chain;
    if (!this.byThread.has(tid)) this.byThread.set(tid, []);
    this.byThread.get(tid).push(step);
    this.count++;
  }

  // Returns the steps that belong to a slice of a thread: those that no inner slice has.
  stepsIn(thread, {lane, from, to}) {
    return (this.byThread.get(thread.tid) || []).filter((step) => {
      if (step.t < from || step.t > to) return false;
      const slice = innermost(thread.nest, step.t);
      return slice && slice.lane === lane;
    });
  }

  // Returns the arrows through the steps of a flow, the first ones of many.
  static arrows(chain) {
    const steps = [...chain].sort((a, b) => a.t - b.t).slice(0, ARROWS_MAX + 1);
    return steps.slice(1).map((to, i) => ({from: steps[i], to}));
  }
}
