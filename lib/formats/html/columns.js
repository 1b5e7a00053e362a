// SPDX-License-Identifier: LGPL-2.1-or-later
// Columns of numbers, and the lanes of slices and the counters that consist of them.

// A typed array that grows. The page uses four types: with a fifth, engines make push() ten times slower.
class Column {
  constructor(Type, room = 16) {
    this.data = new Type(room);
    this.length = 0;
  }

  push(value) {
    if (this.length === this.data.length) {
      const larger = new this.data.constructor(this.length * 2);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = value;
  }

  // Returns the first index with a value above x. The column must be sorted.
  above(x) {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (this.data[mid] <= x) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  // Returns the first index, starting at `from`, with a value of at least x. The column must be sorted.
  // The steps double, so an index near `from` is found fast.
  seek(x, from = 0) {
    const {data, length} = this;
    let low = from;
    let high = from;
    for (let step = 1; high < length && data[high] < x; step *= 2) {
      low = high + 1;
      high += step;
    }
    if (high > length) high = length;
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (data[mid] < x) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

// Finds the greatest value in a stretch of time; each value has a time. It stores the greatest value and the last
// time of each 8 values. So a walk takes few steps, in memory order. A frame walks some ten thousand times. A search
// that jumps in memory would be slower there, and so would more levels.
//
// All `values` should have one array type: the engine compiles the loops for it.
class Peaks {
  constructor(time, values) {
    this.time = time.data;
    this.values = values;
    this.best = 0;
    const n = values.length >>> 3;
    this.last = new Float64Array(n);
    this.peak = new values.constructor(n);
    this.at = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      let k = i * 8;
      for (let j = k + 1; j < i * 8 + 8; j++) if (values[j] > values[k]) k = j;
      this.last[i] = this.time[i * 8 + 7];
      this.peak[i] = values[k];
      this.at[i] = k;
    }
  }

  // Walks over value i, whatever its time, and the next values with times before `until`. Returns the index after
  // the last one. Sets `best` to the index of the greatest value, of equal ones the first.
  walk(i, until) {
    const {time, values, last, peak, at} = this;
    const n = values.length;
    let best = i;
    let most = values[i];
    let k = i + 1;
    for (const edge = Math.min(n, (k + 7) & ~7); k < edge && time[k] < until; k++) {
      if (values[k] > most) {
        most = values[k];
        best = k;
      }
    }
    if ((k & 7) === 0) {
      let block = k >>> 3;
      for (; block < last.length && last[block] < until; block++) {
        if (peak[block] > most) {
          most = peak[block];
          best = at[block];
        }
      }
      for (k = block * 8; k < n && time[k] < until; k++) {
        if (values[k] > most) {
          most = values[k];
          best = k;
        }
      }
    }
    this.best = best;
    return k;
  }
}

// Slices; in a row's lane they are in time order and do not overlap. `ref` is an event's index, or ~INDEX of an
// element. In a CPU's lane of running threads `ref` is the thread's id.
class Lane {
  constructor() {
    this.start = new Column(Float64Array);
    this.end = new Column(Float64Array);
    this.name = new Column(Uint32Array);
    this.ref = new Column(Int32Array);
  }

  get length() {
    return this.start.length;
  }

  push(start, end, name, ref) {
    this.start.push(start);
    this.end.push(end);
    this.name.push(name);
    this.ref.push(ref);
  }

  // Sums up the durations before each slice: two sums tell how busy a pixel is. Its longest slice gives its colour.
  seal() {
    const n = this.length;
    const durations = new Float32Array(n);
    this.busy = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) {
      const duration = this.end.data[i] - this.start.data[i];
      durations[i] = duration;
      this.busy[i + 1] = this.busy[i] + duration;
    }
    this.longest = new Peaks(this.start, durations);
  }

  // Returns how much of the time before t the slices cover.
  busyBefore(t) {
    const i = this.start.seek(t);
    return this.busy[i] - (i > 0 ? Math.max(0, this.end.data[i - 1] - t) : 0);
  }

  // Returns the index of the first slice that ends after t.
  at(t) {
    const i = this.start.above(t);
    return i > 0 && this.end.data[i - 1] > t ? i - 1 : i;
  }
}

const NEST_LANES = 256;

// Slices that may nest: a list in any order, lanes once sealed. A slice with the end NaN ends with the trace.
class Nest {
  crowded = 0; // slices that found no lane

  constructor() {
    this.list = new Lane();
    this.open = new Map(); // by kind: indices of slices
    this.lanes = [];
  }

  begin(t, name, ref, kind) {
    if (!this.open.has(kind)) this.open.set(kind, []);
    this.open.get(kind).push(this.list.length);
    this.list.push(t, NaN, name, ref);
  }

  // Ends the last open slice of a kind. Returns its event or element; undefined: none is open.
  end(t, kind) {
    const open = this.open.get(kind);
    if (!open || !open.length) return undefined;
    const index = open.pop();
    this.list.end.data[index] = t;
    return this.list.ref.data[index];
  }

  endAll(t) {
    for (const open of this.open.values()) for (const index of open) this.list.end.data[index] = t;
    this.open.clear();
  }

  endWithTrace(lastTime) {
    const {start, end, length} = this.list;
    for (let i = 0; i < length; i++) if (!(end.data[i] >= start.data[i])) end.data[i] = lastTime;
  }

  *order() {
    const {start, end, length} = this.list;
    let sorted = true;
    for (let i = 1; i < length && sorted; i++) sorted = start.data[i - 1] <= start.data[i];
    const order = new Uint32Array(length);
    for (let i = 0; i < length; i++) order[i] = i;
    yield;
    // If slices begin together, the longest one encloses the others.
    if (!sorted) {
      order.sort((a, b) => start.data[a] - start.data[b] || end.data[b] - end.data[a] || a - b);
    }
    return order;
  }

  *seal(lastTime) {
    const list = this.list;
    this.endWithTrace(lastTime);
    const order = yield* this.order();
    const ends = [];
    for (let k = 0; k < order.length; k++) {
      const i = order[k];
      const start = list.start.data[i];
      let depth = ends.length;
      while (depth > 0 && ends[depth - 1] <= start) depth--;
      ends.length = depth;
      ends.push(list.end.data[i]);
      if ((k & 0x3fff) === 0x3fff) yield;
      if (depth === this.lanes.length && depth < NEST_LANES) this.lanes.push(new Lane());
      if (depth < NEST_LANES) this.lanes[depth].push(start, list.end.data[i], list.name.data[i], list.ref.data[i]);
      else this.crowded++;
    }
    // Slices that were not nested may overlap within a lane. The earlier one is cut there.
    for (const lane of this.lanes) {
      for (let i = 1; i < lane.length; i++) {
        if (lane.end.data[i - 1] > lane.start.data[i]) lane.end.data[i - 1] = lane.start.data[i];
      }
      lane.seal();
    }
    this.list = null;
    this.open = null;
  }
}

class Counter {
  constructor(label, owner) {
    this.label = label;
    this.owner = owner;
    this.time = new Column(Float64Array);
    this.value = new Column(Float64Array);
    this.ref = new Column(Int32Array);
  }

  push(t, value, ref) {
    if (!Number.isFinite(value)) return;
    this.time.push(t);
    this.value.push(value);
    this.ref.push(ref);
  }

  seal() {
    const values = this.value.data.slice(0, this.value.length);
    this.high = new Peaks(this.time, values);
    this.low = new Peaks(
      this.time,
      values.map((v) => -v),
    );
    this.range(0, Infinity);
    this.min = Math.min(0, this.least);
    this.max = Math.max(0, this.most);
  }

  // Sets `least` and `most` over value i and the next values with times before `until`. Returns the next index.
  range(i, until) {
    const next = this.low.walk(i, until);
    this.high.walk(i, until);
    this.least = this.value.data[this.low.best];
    this.most = this.value.data[this.high.best];
    return next;
  }
}

const ASYNC_LANES = 32;

// Asynchronous slices do not nest: each one goes to the first free lane.
class AsyncNest extends Nest {
  *seal(lastTime) {
    const list = this.list;
    this.endWithTrace(lastTime);
    for (const i of yield* this.order()) {
      const start = list.start.data[i];
      let lane = this.lanes.find((l) => l.end.data[l.length - 1] <= start);
      if (!lane && this.lanes.length < ASYNC_LANES) this.lanes.push((lane = new Lane()));
      if (lane) lane.push(start, list.end.data[i], list.name.data[i], list.ref.data[i]);
      else this.crowded++;
    }
    for (const lane of this.lanes) lane.seal();
    this.list = null;
    this.open = null;
  }
}
