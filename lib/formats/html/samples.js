// SPDX-License-Identifier: LGPL-2.1-or-later
// Samples, and the tree of functions that a flame graph shows.

const STACK_MAX = 512; // frames of a stack that are followed
const CPU_LIMIT = 4096;
const PROGRAMS_OWN = new Set(['[unknown]', '[vdso]', '[vsyscall]', '[heap]', '[stack]', '[uprobes]']);

// Frames by number. A frame's caller is a frame: together they are the tree of all stacks.
class Frames {
  constructor() {
    this.ids = new Map(); // from ids of the file to numbers
    this.name = [];
    this.module = [];
    this.caller = new Column(Int32Array);
  }

  get length() {
    return this.name.length;
  }

  // Returns the number of an id. Its frame may follow later in the file. -1: it has none.
  number(id) {
    if (id === undefined || id === null) return -1;
    const key = String(id);
    let number = this.ids.get(key);
    if (number === undefined) {
      this.ids.set(key, (number = this.length));
      this.name.push('');
      this.module.push('');
      this.caller.push(-1);
    }
    return number;
  }

  put(id, frame) {
    const number = this.number(id);
    const caller = this.number(frame.parent);
    this.name[number] = String(frame.name);
    this.module[number] = String(frame.category || '');
    this.caller.data[number] = caller;
  }

  // Returns the numbers of a stack's frames, the innermost first.
  stack(number) {
    const numbers = [];
    for (let f = number; f >= 0 && numbers.length < STACK_MAX; f = this.caller.data[f]) numbers.push(f);
    return numbers;
  }
}

// The kernel's modules are in brackets.
function isKernelModule(module) {
  return module.startsWith('[') && !module.startsWith('[anon') && !PROGRAMS_OWN.has(module);
}

// One thread's samples, in time order once sealed.
class SampleColumns {
  constructor() {
    this.time = new Column(Float64Array);
    this.ref = new Column(Int32Array);
    this.cpu = new Column(Int32Array);
    this.frame = new Column(Int32Array);
    this.weight = new Column(Float64Array);
    this.event = new Column(Uint32Array);
  }

  push(t, ref, cpu, frame, weight, event) {
    this.time.push(t);
    this.ref.push(ref);
    this.cpu.push(cpu);
    this.frame.push(frame);
    this.weight.push(weight);
    this.event.push(event);
  }

  seal() {
    const {data, length: n} = this.time;
    let sorted = true;
    for (let i = 1; i < n && sorted; i++) sorted = data[i - 1] <= data[i];
    if (sorted) return;
    const order = Uint32Array.from({length: n}, (_, i) => i).sort((a, b) => data[a] - data[b] || a - b);
    for (const key of ['ref', 'cpu', 'frame', 'weight', 'event', 'time']) {
      const column = this[key];
      column.data = column.data.constructor.from(order, (i) => column.data[i]);
    }
  }
}

// Sums of samples by thread, CPU, event and stack.
class SampleSums {
  constructor(model) {
    this.model = model;
    this.groups = []; // {tid, cpu, event, frames}; frames: {weight, count} by number
    this.events = []; // numbers of names
    this.count = 0;
  }

  // Adds the samples of `thread`; of all CPUs, or of those in the set `cpus`.
  *add(thread, from, to, cpus) {
    const {time, cpu, frame, weight, event} = thread.samples;
    const groups = new Map();
    for (let i = time.seek(from); i < time.length && time.data[i] <= to; i++) {
      if ((i & 0xfff) === 0) yield;
      const c = cpu.data[i];
      if (cpus && !cpus.has(c)) continue;
      const e = this.eventIndex(event.data[i]);
      const key = e * CPU_LIMIT + c + 1;
      let group = groups.get(key);
      if (!group) {
        groups.set(key, (group = {tid: thread.tid, cpu: c, event: e, frames: new Map()}));
        this.groups.push(group);
      }
      const sum = group.frames.get(frame.data[i]);
      if (sum) {
        sum.weight += weight.data[i];
        sum.count++;
      } else {
        group.frames.set(frame.data[i], {weight: weight.data[i], count: 1});
      }
      this.count++;
    }
  }

  eventIndex(name) {
    const i = this.events.indexOf(name);
    return i < 0 ? this.events.push(name) - 1 : i;
  }

  *entries(wanted) {
    for (const {tid, cpu, event, frames} of this.groups) {
      if (event === wanted) for (const [frame, {weight}] of frames) yield {tid, cpu, frame, weight};
    }
  }

  groupLabel(by, {tid, cpu}) {
    return by === 'thread' ? this.model.threadName(tid) : cpu >= 0 ? this.model.cpuName(cpu) : 'no CPU';
  }

  // Returns the stack's frames, the outermost first, as [name, module].
  path(frame, kind) {
    const {frames} = this.model;
    if (frame < 0) return kind === 'all' ? [['no stack', '']] : [];
    const path = [];
    for (const f of frames.stack(frame)) {
      if (kind === 'all' || isKernelModule(frames.module[f]) === (kind === 'kernel'))
        path.unshift([frames.name[f], frames.module[f]]);
    }
    return path;
  }

  // Returns the tree of calls. `invert`: from the sampled functions to their callers. `by`: '', 'thread' or 'cpu'.
  tree({event = 0, kind = 'all', invert = false, by = ''} = {}) {
    const root = new FlameNode('all', '', null);
    for (const entry of this.entries(event)) {
      const path = this.path(entry.frame, kind);
      if (!path.length) continue;
      if (invert) path.reverse();
      let node = root;
      node.total += entry.weight;
      if (by) {
        node = node.child(this.groupLabel(by, entry), '');
        node.isGroup = true;
        node.total += entry.weight;
      }
      for (const [name, module] of path) {
        node = node.child(name, module);
        node.total += entry.weight;
      }
      node.self += entry.weight;
    }
    return root;
  }

  // Returns {name, module, self, total} of each function, the hottest first. Recursion counts once.
  hottest(event = 0, kind = 'all') {
    const functions = new Map();
    let all = 0;
    for (const {frame, weight} of this.entries(event)) {
      const path = this.path(frame, kind);
      if (!path.length) continue;
      all += weight;
      const seen = new Set();
      path.forEach(([name, module], i) => {
        const key = `${module}\0${name}`;
        let f = functions.get(key);
        if (!f) functions.set(key, (f = {name, module, self: 0, total: 0}));
        if (i === path.length - 1) f.self += weight;
        if (!seen.has(key)) f.total += weight;
        seen.add(key);
      });
    }
    return {all, functions: [...functions.values()].sort((a, b) => b.self - a.self || b.total - a.total)};
  }
}

class FlameNode {
  constructor(name, module, parent) {
    this.name = name;
    this.module = module;
    this.parent = parent;
    this.total = 0;
    this.self = 0;
    this.isGroup = !parent;
    this.children = new Map();
  }

  child(name, module) {
    const key = `${module}\0${name}`;
    let node = this.children.get(key);
    if (!node) this.children.set(key, (node = new FlameNode(name, module, this)));
    return node;
  }
}
