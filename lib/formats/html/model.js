// SPDX-License-Identifier: LGPL-2.1-or-later
// The model: the page's two data blocks as columns of numbers, by CPU, thread and counter.
// Times are nanoseconds since the second in which the trace begins. A Number holds 104 days of them exactly.

const State = {UNKNOWN: 0, RUNNING: 1, RUNNABLE: 2, SLEEPING: 3, BLOCKED: 4, STOPPED: 5, DEAD: 6};
const STATE_NAMES = ['unknown', 'running', 'runnable', 'sleeping', 'blocked (uninterruptible)', 'stopped', 'exited'];
const RANK_OF_STATE = [2, 1, 5, 3, 6, 4, 0];
const STATE_OF_LETTER = {R: 2, S: 3, D: 4, K: 4, W: 2, T: 5, t: 5, X: 6, x: 6, Z: 6};
// A task's name may have up to 15 characters of these, which is never all of them.
const AFTER_NAME = /-(\d+) +\([ \d-]+\) +\[(\d+)\] +(?:(\S+) +)?\d+\.\d+: /;
// An end event ends only slices of its own kind.
const Kind = {MARK: 0, SYSCALL: 1, WORK: 2, ELEMENT: 3, IRQ: 4};
const TID_LIMIT = 1 << 22;
const LEAVING_NS = 20e3;

class Thread {
  constructor(tid) {
    this.tid = tid;
    this.pid = 0;
    this.name = '';
    this.cpu = null; // the one on which it ran last
    this.nest = new Nest();
    this.stateStart = new Column(Float64Array);
    this.state = new Column(Uint16Array);
    this.wakes = new Column(Uint32Array); // events that wake this thread
    this.gapsBefore = 0; // of all CPUs, as it became runnable
    this.samples = new SampleColumns();
    this.lastSeen = -Infinity; // by a function tracer, or in a sample
  }

  get current() {
    return this.state.length ? this.state.data[this.state.length - 1] : State.UNKNOWN;
  }

  enter(t, state) {
    if (this.state.length ? this.current === state : state === State.UNKNOWN) return;
    this.stateStart.push(t);
    this.state.push(state);
  }

  // It ran since t: replaces its states from then on. Returns false if another CPU's events say otherwise.
  runSince(t) {
    let n = this.state.length;
    while (n > 0 && this.stateStart.data[n - 1] >= t && this.state.data[n - 1] !== State.RUNNING) n--;
    if (n > 0 && this.state.data[n - 1] === State.RUNNING) return false;
    this.state.length = this.stateStart.length = n;
    this.doubtWait();
    this.enter(t, State.RUNNING);
    return true;
  }

  // When it began to run is not known.
  doubtWait() {
    if (this.current === State.RUNNABLE) this.state.data[this.state.length - 1] = State.UNKNOWN;
  }

  see(t) {
    if (t > this.lastSeen) this.lastSeen = t;
  }

  // The kernel's recording ends: nothing is known of the time after, unless it exited.
  endRecording(t) {
    if (this.current !== State.DEAD) this.enter(t, State.UNKNOWN);
    for (const kind of [Kind.SYSCALL, Kind.WORK]) while (this.nest.end(t, kind) !== undefined);
  }

  // Returns the index of its state at time t: that in which it ran, if there is one. The text's times are whole
  // microseconds, so its next state may begin then, too.
  runningAt(t) {
    const {state, stateStart} = this;
    const last = Math.max(0, stateStart.above(t) - 1);
    let i = last;
    while (i > 0 && state.data[i] !== State.RUNNING && stateStart.data[i] === t) i--;
    return state.data[i] === State.RUNNING ? i : last;
  }

  stateEnd(i, lastTime) {
    return i + 1 < this.state.length ? this.stateStart.data[i + 1] : lastTime;
  }

  // Sums up the running time before each state. If several states share a pixel, the highest rank is shown.
  seal(lastTime) {
    const ranks = new Float32Array(this.state.length);
    this.ran = new Float64Array(this.state.length + 1);
    for (let i = 0; i < this.state.length; i++) {
      const ns = this.state.data[i] === State.RUNNING ? this.stateEnd(i, lastTime) - this.stateStart.data[i] : 0;
      this.ran[i + 1] = this.ran[i] + ns;
      ranks[i] = RANK_OF_STATE[this.state.data[i]];
    }
    this.prominent = new Peaks(this.stateStart, ranks);
  }
}

class Cpu {
  constructor(number) {
    this.number = number;
    this.running = new Lane();
    this.irq = new Nest();
    this.softirq = new Nest();
    this.events = new Column(Uint32Array);
    this.time = new Column(Float64Array); // of `events`
    this.losses = []; // {from, to, count}; a count of NaN: unknown
    this.lossPending = null;
    this.beginning = {tid: -1, t: NaN}; // until a switch, if no events are lost: the last task, and its first event
    this.unknown = []; // {from, to}: times for which the running task is not known
    this.unknownFrom = -Infinity; // NaN: it is known
    this.leaving = -1; // the task before `tid`
    this.tid = -1; // unknown
    this.since = 0;
    this.last = NaN;
  }
}

// Times in which events of any CPU are lost, in order and without overlaps.
class Gaps {
  constructor(cpus) {
    this.from = new Column(Float64Array);
    this.to = new Column(Float64Array);
    const all = cpus.flatMap(({losses}) => losses.map(({from, to}) => ({from, to})));
    for (const {from, to} of all.sort((a, b) => a.from - b.from)) {
      const last = this.to.length - 1;
      if (last >= 0 && from <= this.to.data[last]) {
        this.to.data[last] = Math.max(this.to.data[last], to);
        continue;
      }
      this.from.push(from);
      this.to.push(to);
    }
  }

  // Returns whether no event between two times is missing.
  isWhole(from, to) {
    const i = this.to.above(from);
    return i >= this.to.length || this.from.data[i] >= to;
  }
}

class Process {
  constructor(pid) {
    this.pid = pid;
    this.name = '';
    this.sort = 0;
    this.threads = [];
    this.counters = [];
    this.async = new Map(); // AsyncNest by name or category
    this.instants = new Nest();
  }
}

class Model {
  constructor() {
    const packer = new TextPacker(SOURCE_PIECE);
    this.text = new TextBlock(packer);
    this.more = new TextBlock(packer);
    this.section = ''; // the member that is being read
    this.aboutAt = -1;
    this.base = -1; // seconds; -1 before the first event
    this.firstTime = NaN;
    this.lastTime = 0;
    this.names = [];
    this.nameIds = new Map();
    this.time = new Column(Float64Array, 1 << 16);
    this.offset = new Column(Uint32Array, 1 << 16);
    this.cpuOf = new Column(Uint16Array, 1 << 16);
    this.eventName = new Column(Uint32Array, 1 << 16);
    this.elements = new Column(Uint32Array); // offsets in `more`
    this.cpus = new Map();
    this.threads = new Map();
    this.processes = new Map();
    this.counters = new Map();
    this.asyncOpen = new Map();
    this.syscalls = new Map(); // by machine and number
    this.frames = new Frames();
    this.ends = new Map(); // from elements that begin slices to those that end them, if these have arguments
    this.about = null;
    this.hosts = null; // of a trace of several machines
    this.strange = 0; // lines that could not be read
    this.flows = new Flows();
    this.notDrawn = new Map(); // elements without a picture: how many, by phase
    this.cut = false;
    this.handlers = []; // by the number of an event's name
    this.lossCount = 0; // losses so far
    this.missed = 0; // switches that are not in the trace
  }

  intern(name) {
    let id = this.nameIds.get(name);
    if (id === undefined) {
      id = this.names.length;
      name = own(name);
      this.names.push(name);
      this.nameIds.set(name, id);
    }
    return id;
  }

  // A system call that has only a number gets its name when otherData is read. A slice of the same name is another one.
  syscall(tid, number) {
    const key = `${Math.floor(tid / HOST_PIDS)} ${number}`;
    let call = this.syscalls.get(key);
    if (!call) {
      call = {name: this.names.length, tid, number};
      this.names.push(own(number));
      this.syscalls.set(own(key), call);
    }
    return call.name;
  }

  nameSyscalls() {
    for (const {name, tid, number} of this.syscalls.values()) {
      const {syscalls} = (this.hosts ? this.hosts.ofPid(tid) : this.about) || {};
      const nr = number.slice('NR '.length);
      if (syscalls && typeof syscalls[nr] === 'string') this.names[name] = syscalls[nr];
    }
  }

  get(map, key, Type) {
    let item = map.get(key);
    if (!item) map.set(key, (item = new Type(key)));
    return item;
  }

  cpu(number) {
    return this.get(this.cpus, number, Cpu);
  }

  thread(tid) {
    return this.get(this.threads, tid, Thread);
  }

  process(pid) {
    return this.get(this.processes, pid, Process);
  }

  counter(label, owner) {
    const key = `${owner} ${label}`;
    let counter = this.counters.get(key);
    if (!counter) this.counters.set(key, (counter = new Counter(own(label), owner)));
    return counter;
  }

  see(t) {
    if (!(this.firstTime <= t)) this.firstTime = t;
    if (t > this.lastTime) this.lastTime = t;
  }

  *seal() {
    if (!(this.firstTime <= this.lastTime)) this.firstTime = this.lastTime = 0;
    const ends = this.kernelEnds();
    const endOf = (host) => ends.get(host) ?? this.lastTime;
    for (const cpu of this.cpus.values()) {
      const end = endOf(this.hostOfCpu(cpu.number));
      this.endRunning(cpu, end);
      if (cpu.lossPending) this.endLoss(cpu, end);
      if (Number.isNaN(cpu.unknownFrom) && end < this.lastTime) cpu.unknownFrom = end;
      // A gap before the CPU's first event.
      for (const loss of cpu.losses) if (Number.isNaN(loss.from)) loss.from = this.firstTime;
      if (!Number.isNaN(cpu.unknownFrom)) cpu.unknown.push({from: cpu.unknownFrom, to: Infinity});
      cpu.running.seal();
      yield* cpu.irq.seal(end);
      yield* cpu.softirq.seal(end);
    }
    this.gaps = new Gaps([...this.cpus.values()]);
    for (const thread of this.threads.values()) {
      const end = endOf(this.hostOfPid(thread.tid));
      if (end < this.lastTime) thread.endRecording(end);
      yield* thread.nest.seal(this.lastTime);
      thread.seal(this.lastTime);
      thread.samples.seal();
      // The rows of CPUs show idle times already.
      if (thread.tid === 0 && !thread.nest.lanes.length) continue;
      this.process(thread.pid || thread.tid).threads.push(thread);
    }
    for (const process of this.processes.values()) {
      yield* process.instants.seal(this.lastTime);
      for (const nest of process.async.values()) yield* nest.seal(this.lastTime);
      process.threads.sort((a, b) => Number(b.tid === process.pid) - Number(a.tid === process.pid) || a.tid - b.tid);
      if (!process.name) {
        const main = this.threads.get(process.pid);
        process.name = main ? main.name : '';
      }
    }
    for (const counter of this.counters.values()) counter.seal();
    this.nameSyscalls();
    this.asyncOpen = null;
    this.countHidden();
  }

  // Returns the last event's time of each machine's kernel. Marks may be later, and so may another machine.
  kernelEnds() {
    const ends = new Map();
    const put = (host, t) => Number.isFinite(t) && !(ends.get(host) >= t) && ends.set(host, t);
    for (const {number, last} of this.cpus.values()) put(this.hostOfCpu(number), last);
    for (const {tid, lastSeen} of this.threads.values()) put(this.hostOfPid(tid), lastSeen);
    return ends;
  }

  // Counts what has no place in a row, once all slices are known.
  countHidden() {
    for (const {async} of this.processes.values())
      for (const {crowded} of async.values()) this.leaveOut({ph: 'b'}, crowded);
    for (const {nest} of this.threads.values()) this.leaveOut({ph: 'B'}, nest.crowded);
    for (const [tid, steps] of this.flows.byThread)
      for (const {phase, t} of steps) if (!innermost(this.thread(tid).nest, t)) this.leaveOut({ph: phase});
  }

  // The kernel's text.

  // Reads whole lines, which begin at `start` of the block. The caller resumes this generator until it is done.
  *readText(s, start) {
    const length = s.length;
    let at = 0;
    for (let n = 0; at < length; n++) {
      let end = s.indexOf('\n', at);
      // A line without its end may be incomplete.
      if (end < 0) {
        const rest = s.slice(at);
        this.cut = rest !== NEXT_ELEMENT && /\S/.test(rest);
        break;
      }
      if (s.charCodeAt(at) === 35) this.readComment(s.slice(at, end));
      else if (end > at && !this.readLine(s, start, at, end)) this.strange++;
      at = end + 1;
      if ((n & 0x3ff) === 0x3ff) yield;
    }
  }

  readComment(line) {
    const lost = /^# CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]$/.exec(line);
    if (!lost) return;
    const cpu = this.cpu(+lost[1]);
    const count = lost[2] === undefined ? NaN : +lost[2];
    this.lossCount++;
    // No line tells the times between two losses: they are one gap. A function tracer's events are no lines.
    if (cpu.lossPending) {
      cpu.lossPending.count += count;
      return;
    }
    this.forgetTask(cpu);
    cpu.beginning = null;
    cpu.irq.endAll(cpu.last);
    cpu.softirq.endAll(cpu.last);
    cpu.lossPending = {from: cpu.last, to: NaN, count};
  }

  // The running task is known up to the CPU's last event.
  forgetTask(cpu) {
    this.endRunning(cpu, cpu.last);
    this.loseSight(cpu, cpu.last);
    cpu.tid = -1;
    if (Number.isNaN(cpu.unknownFrom)) cpu.unknownFrom = cpu.last;
  }

  // An event is another task's than the one that was switched to: some kernels leave out switches, and so do filters.
  missSwitch(cpu) {
    this.forgetTask(cpu);
    cpu.beginning = {tid: -1, t: NaN};
    this.missed++;
  }

  // Makes the state of the thread that ran on `cpu` unknown from t on.
  loseSight(cpu, t) {
    const thread = cpu.tid > 0 && this.threads.get(cpu.tid);
    if (thread && thread.cpu === cpu && thread.current === State.RUNNING) thread.enter(t, State.UNKNOWN);
  }

  // A switch from `tid` at time t is a CPU's first one, or the first after a gap or after a switch that is missing. If
  // there is no gap, the task ran since the last event that was not its own.
  learnTask(cpu, tid, t) {
    const {beginning} = cpu;
    const from = beginning && beginning.tid === tid ? beginning.t : t;
    cpu.beginning = null;
    const ran = from < t && (tid === 0 || this.thread(tid).runSince(from));
    if (ran && tid > 0) cpu.running.push(from, t, this.intern(''), tid);
    if (!ran && tid > 0) this.thread(tid).doubtWait();
    cpu.unknown.push({from: cpu.unknownFrom, to: ran ? from : t});
    cpu.unknownFrom = NaN;
  }

  // An exiting thread's last switch ends all its slices.
  leave(thread, t, state) {
    thread.enter(t, state);
    thread.gapsBefore = this.lossCount;
    if (state === State.DEAD) thread.nest.endAll(t);
  }

  endLoss(cpu, t) {
    cpu.lossPending.to = t;
    cpu.losses.push(cpu.lossPending);
    cpu.lossPending = null;
  }

  endRunning(cpu, t) {
    if (cpu.tid > 0 && t >= cpu.since) cpu.running.push(cpu.since, t, this.intern(''), cpu.tid);
  }

  // Parses "comm-TID (TGID) [CPU] flags SECONDS.FRACTION: name: details". Returns false for any other line.
  readLine(s, start, at, end) {
    // A task's name may contain anything, but its column is 16 characters wide, or more with a machine's label.
    const i = at + 16;
    if (s.charCodeAt(i) === 45 && isDigit(s.charCodeAt(i + 1)) && this.readLineFrom(s, start, at, end, i)) return true;
    const found = AFTER_NAME.exec(s.slice(at, end));
    return found ? this.readLineFrom(s, start, at, end, at + found.index) : false;
  }

  // The task's name ends before `comm`.
  readLineFrom(s, start, at, end, comm) {
    let i = comm;
    let tid = 0;
    let pid = 0;
    let cpu = 0;
    let c;
    for (i++; isDigit((c = s.charCodeAt(i))); i++) tid = tid * 10 + c - 48;
    // "5 (1) [0]x 9.9:": no name has room for all of this.
    if (s.charCodeAt(i) !== 32) return false;
    while (s.charCodeAt(i) === 32) i++;
    if (s.charCodeAt(i) !== 40) return false;
    for (i++; (c = s.charCodeAt(i)) !== 41 && i < end; i++) if (isDigit(c)) pid = pid * 10 + c - 48;
    if (s.charCodeAt(++i) !== 32) return false;
    while (s.charCodeAt(i) === 32) i++;
    if (s.charCodeAt(i) !== 91 || !isDigit(s.charCodeAt(i + 1))) return false;
    for (i++; isDigit((c = s.charCodeAt(i))); i++) cpu = cpu * 10 + c - 48;
    if (c !== 93) return false;
    i = s.indexOf(' ', i + 2); // skips "] " and the flags
    while (s.charCodeAt(i) === 32) i++;
    let seconds = 0;
    let fraction = 0;
    let digits = 0;
    if (!isDigit(s.charCodeAt(i))) return false;
    for (; isDigit((c = s.charCodeAt(i))); i++) seconds = seconds * 10 + c - 48;
    if (c !== 46) return false;
    for (i++; isDigit((c = s.charCodeAt(i))); i++, digits++) fraction = fraction * 10 + c - 48;
    if (c !== 58 || !digits || i >= end) return false;
    i += 2;
    const colon = s.indexOf(':', i);
    if (colon < 0 || colon >= end) return false;
    if (this.base < 0) this.base = seconds;
    const t = (seconds - this.base) * 1e9 + (digits === 6 ? fraction * 1000 : fraction * 10 ** (9 - digits));
    this.addEvent(s, t, start, at, comm, this.intern(s.slice(i, colon)), colon, end, tid, pid, cpu);
    return true;
  }

  addEvent(s, t, start, at, comm, name, colon, end, tid, pid, cpuNumber) {
    const index = this.time.length;
    const cpu = this.cpu(cpuNumber);
    const thread = this.thread(tid);
    // The kernel leaves the task a little after the switch's event.
    const isLeaving = tid === cpu.leaving && t - cpu.since < LEAVING_NS;
    if (cpu.tid >= 0 && cpu.tid !== tid && !isLeaving) this.missSwitch(cpu);
    this.see(t);
    this.time.push(t);
    this.offset.push(start + at);
    this.cpuOf.push(cpuNumber);
    this.eventName.push(name);
    cpu.events.push(index);
    cpu.time.push(t);
    cpu.last = t;
    if (cpu.beginning && cpu.beginning.tid !== tid) cpu.beginning = {tid, t};
    if (cpu.lossPending) this.endLoss(cpu, t);
    if (pid && !thread.pid) thread.pid = pid;
    if (!thread.name) thread.name = own(restore(s.slice(at, comm).trim()));
    let handler = this.handlers[name];
    if (handler === undefined) handler = this.handlers[name] = findHandler(this.names[name]);
    if (handler) handler.call(this, {t, index, cpu, thread, details: restore(s.slice(colon + 2, end))});
  }

  // Asynchronous slices of one name or category share a row.
  asyncNest(pid, track) {
    const process = this.process(pid);
    let nest = process.async.get(track);
    if (!nest) process.async.set(track, (nest = new AsyncNest()));
    return nest;
  }

  asyncBegin(t, pid, name, cookie, ref, track = name) {
    const key = `${track} ${cookie}`;
    const nest = this.asyncNest(pid, track);
    let open = this.asyncOpen.get(key);
    if (!open) this.asyncOpen.set(key, (open = []));
    open.push({nest, index: nest.list.length});
    nest.list.push(t, NaN, this.intern(name), ref);
  }

  asyncEnd(t, track, cookie) {
    const open = this.asyncOpen.get(`${track} ${cookie}`);
    const last = open && open.pop();
    if (last) last.nest.list.end.data[last.index] = t;
    return Boolean(last);
  }

  // The other members of the JSON, one element per line.

  *readMore(s, start) {
    for (let at = 0, n = 0; at < s.length; n++) {
      let end = s.indexOf('\n', at);
      if (end < 0) end = s.length;
      const c = s.charCodeAt(at);
      if (c === 123 && s.charCodeAt(at + 1) === 34 && this.section)
        this.readElement(this.section, s.slice(at, end), start + at);
      else if (c === 34 && this.section === 'stackFrames') this.section = this.readFrame(s.slice(at, end));
      else if (c === 34) this.section = this.readMember(s.slice(at, end), start + at);
      at = end + 1;
      if ((n & 0x1ff) === 0x1ff) yield;
    }
  }

  // No line begins with an array's end: it follows the last element, or the member's name.
  // otherData is the last member. Without it the file was cut.
  endMore() {
    if (this.aboutAt >= 0) this.about = parseJson(this.more.slice(this.aboutAt).replace(/}\s*$/, ''));
    if (!this.about) this.cut = true;
    else if (Array.isArray(this.about.hosts)) this.hosts = new Hosts(this.about.hosts);
  }

  readMember(line, at) {
    const [, name] = /^"(\w+)":/.exec(line) || [];
    if (name === 'traceEvents' || name === 'samples' || name === 'stackFrames') return name;
    if (name === 'otherData') this.aboutAt = at + '"otherData":'.length;
    return '';
  }

  // Reads a line "ID":{...}, of stackFrames. One more bracket follows the last frame.
  readFrame(line) {
    const isLast = line.endsWith('}},');
    const frames = parseJson(`{${line.slice(0, isLast ? -2 : -1)}}`);
    for (const id in frames) this.frames.put(id, frames[id]);
    return isLast ? '' : 'stackFrames';
  }

  readElement(section, line, at) {
    const element = parseElement(line);
    if (!element) return;
    const ref = ~this.elements.length;
    this.elements.push(at);
    if (section === 'samples') this.addSample(element, ref);
    else this.addElement(element, ref);
  }

  elementTime(us) {
    if (typeof us !== 'number') return NaN;
    if (this.base < 0) this.base = Math.floor(us / 1e6);
    const t = Math.round((us - this.base * 1e6) * 1e3);
    return t;
  }

  addSample(e, ref) {
    const t = this.elementTime(e.ts);
    const {weight} = e;
    if (!Number.isFinite(t)) return;
    this.see(t);
    if (e.cpu >= 0) this.thread(e.tid).see(t);
    this.thread(e.tid).samples.push(
      t,
      ref,
      e.cpu >= 0 && e.cpu < CPU_LIMIT ? e.cpu : -1,
      this.frames.number(e.sf),
      Number.isFinite(weight) && weight >= 0 ? weight : 1,
      this.intern(String(e.name)),
    );
  }

  addElement(e, ref) {
    if (e.ph === 'M') return this.addName(e);
    if (e.ph === 'c' || e.ph === '=') return this.leaveOut(e);
    const t = this.elementTime(e.ts);
    if (!Number.isFinite(t)) return this.leaveOut(e);
    const thread = this.thread(e.tid);
    if (!thread.pid) thread.pid = e.pid;
    // Functions' ends have no category, marks always.
    if (e.cat === 'func' || (e.ph === 'E' && !e.cat)) thread.see(Math.round(t + (e.dur || 0) * 1e3));
    const name = () => this.intern(String(e.name));
    const id = () => (e.id2 ? e.id2.local || e.id2.global : e.id);
    // A local id is one of its process.
    const cookie = () => `${e.id2 && e.id2.local ? e.pid : ''} ${e.name} ${id()}`;
    switch (e.ph) {
      case 'B':
        thread.nest.begin(t, name(), ref, Kind.ELEMENT);
        break;
      case 'E':
        this.endElement(e, ref, thread.nest.end(t, Kind.ELEMENT));
        break;
      case 'X':
        thread.nest.list.push(t, t + Math.round((e.dur || 0) * 1e3), name(), ref);
        this.see(t + (e.dur || 0) * 1e3);
        break;
      case 'i':
      case 'I':
      case 'R':
        (e.s === 'p' || e.s === 'g' ? this.process(e.pid).instants : thread.nest).list.push(t, t, name(), ref);
        break;
      case 'b':
      case 'S':
        this.asyncBegin(t, e.pid, String(e.name), cookie(), ref, e.cat);
        break;
      case 'e':
      case 'F':
        if (!this.asyncEnd(t, e.cat, cookie())) this.leaveOut(e);
        break;
      case 'n':
        this.asyncNest(e.pid, e.cat).list.push(t, t, name(), ref);
        break;
      case 'C':
        for (const key in e.args) {
          this.counter(counterLabel(e.name, key), e.pid).push(t, +e.args[key], ref);
        }
        break;
      case 'P':
        this.addSample(e, ref);
        break;
      case 's':
      case 't':
      case 'f':
        this.flows.add(e.ph, t, thread.tid, ref, `${e.cat} ${e.name} ${id()}`);
        break;
      case 'N':
        this.asyncBegin(t, e.pid, String(e.name), cookie(), ref, `${e.cat} objects`);
        break;
      case 'D':
        if (!this.asyncEnd(t, `${e.cat} objects`, cookie())) this.leaveOut(e);
        break;
      case '(':
        this.asyncBegin(t, e.pid, String(e.name), cookie(), ref, `${e.cat} contexts`);
        break;
      case ')':
        if (!this.asyncEnd(t, `${e.cat} contexts`, cookie())) this.leaveOut(e);
        break;
      case 'O':
        this.asyncNest(e.pid, `${e.cat} snapshots`).list.push(t, t, name(), ref);
        break;
      case 'v':
      case 'V':
        this.process(e.pid).instants.list.push(t, t, name(), ref);
        break;
      default:
        return this.leaveOut(e);
    }
    this.see(t);
    return undefined;
  }

  // The end of a slice may have arguments of its own, a function's return value for example.
  endElement(e, ref, begin) {
    if (begin === undefined) this.leaveOut(e);
    else if (e.args) this.ends.set(begin, ref);
  }

  leaveOut({ph}, count = 1) {
    const phase = String(ph);
    if (count) this.notDrawn.set(phase, (this.notDrawn.get(phase) || 0) + count);
  }

  addName(e) {
    const {args} = e;
    if (!args) return;
    if (e.name === 'thread_name') {
      const thread = this.thread(e.tid);
      thread.name = String(args.name);
      thread.pid = e.pid;
    } else if (e.name === 'process_name') {
      this.process(e.pid).name = String(args.name);
    } else if (e.name === 'process_sort_index') {
      this.process(e.pid).sort = +args.sort_index;
    }
  }

  // Texts for the page.

  eventText(index) {
    return restore(this.text.line(this.offset.data[index]));
  }

  element(ref) {
    return parseElement(this.more.line(this.elements.data[~ref]));
  }

  // Returns the functions' names, the innermost first.
  stack(id) {
    const {frames} = this;
    return frames.stack(frames.ids.get(String(id)) ?? -1).map((f) => frames.name[f]);
  }

  hostOfPid(pid) {
    return this.hosts && this.hosts.ofPid(pid);
  }

  hostOfCpu(number) {
    return this.hosts && this.hosts.ofCpu(number);
  }

  // Without the owner, which is a process or `cpu`, as the row's place tells it.
  ownCounterLabel({label, owner}) {
    const [, number] = (owner === 'cpu' && /^CPU (\d+)/.exec(label)) || [];
    return number ? label.replace(number, String(ownCpu(this.hostOfCpu(+number), +number))) : label;
  }

  counterName(counter) {
    const {label, owner} = counter;
    const [, number] = /^CPU (\d+)/.exec(label) || [];
    if (owner === 'cpu') return withHost(this.hostOfCpu(+number), this.ownCounterLabel(counter));
    return withHost(this.hostOfPid(owner), `${label} of ${this.processLabel(owner)}`);
  }

  threadLabel(tid) {
    const thread = this.threads.get(tid);
    const number = ownPid(this.hostOfPid(tid), tid);
    // No task has an id from TID_LIMIT on. The JSON uses those for idle on each CPU.
    return `${shortName((thread && thread.name) || '<...>')}${number < TID_LIMIT ? ` ${number}` : ''}`;
  }

  // With the machine's label, for places that show several machines.
  threadName(tid) {
    return withHost(this.hostOfPid(tid), this.threadLabel(tid));
  }

  processLabel(pid) {
    const process = this.processes.get(pid);
    return `${shortName((process && process.name) || 'process')} ${ownPid(this.hostOfPid(pid), pid)}`;
  }

  // As threadName().
  cpuName(number) {
    const host = this.hostOfCpu(number);
    return withHost(host, `CPU ${ownCpu(host, number)}`);
  }

  // All slices of the rows, by nest.
  *nests() {
    for (const cpu of this.cpus.values()) yield* [cpu.irq, cpu.softirq];
    for (const thread of this.threads.values()) yield thread.nest;
    for (const process of this.processes.values()) yield* [process.instants, ...process.async.values()];
  }
}

// Removes the backslash that keeps the browser from ending the block at this text.
function restore(text) {
  return text.includes('<\\') ? text.replace(/<\\(\\*(?:\/script|script|!--))/gi, '<$1') : text;
}

// A counter's name for one of an element's arguments.
function counterLabel(name, key) {
  return name + (key === 'value' || key === 'name' ? '' : ` ${key}`);
}

// Returns a copy of a part of a text. A browser's own part keeps the whole text in memory.
function own(part) {
  return ` ${part}`.slice(1);
}

function isDigit(c) {
  return c >= 48 && c <= 57;
}

function parseElement(line) {
  return parseJson(line.replace(/[\],]+$/, ''));
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
