// SPDX-License-Identifier: LGPL-2.1-or-later
// Columns of numbers, and what they are put together to: slices in lanes, and counters.

// An array of numbers that grows.
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

  // The first index whose value is above x, in a sorted column.
  above(x, from = 0) {
    let low = from;
    let high = this.length;
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (this.data[mid] <= x) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

// Slices one after the other. ref: an event's index, or ~ that of an element; on a CPU, the thread.
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

  // Sums of all durations before each slice: how busy a pixel is, whatever it holds.
  seal() {
    const n = this.length;
    this.busy = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) this.busy[i + 1] = this.busy[i] + this.end.data[i] - this.start.data[i];
  }

  // The first slice that ends after t.
  at(t) {
    const i = this.start.above(t);
    return i > 0 && this.end.data[i - 1] > t ? i - 1 : i;
  }
}

// Slices that may lie in each other: a list in any order, lanes once sealed. A NaN ends with the trace.
class Nest {
  constructor() {
    this.list = new Lane();
    this.open = [];
    this.lanes = [];
  }

  begin(t, name, ref, kind) {
    this.open.push({index: this.list.length, kind, name});
    this.list.push(t, NaN, name, ref);
  }

  end(t, kind) {
    for (let i = this.open.length - 1; i >= 0; i--) {
      if (this.open[i].kind !== kind) continue;
      this.list.end.data[this.open[i].index] = t;
      this.open.splice(i, 1);
      return;
    }
  }

  endAll(t) {
    while (this.open.length) this.list.end.data[this.open.pop().index] = t;
  }

  *order() {
    const {start, end, length} = this.list;
    let sorted = true;
    for (let i = 1; i < length && sorted; i++) sorted = start.data[i - 1] <= start.data[i];
    const order = new Uint32Array(length);
    for (let i = 0; i < length; i++) order[i] = i;
    yield;
    // Of those that begin together the longest is around the others.
    if (!sorted) {
      order.sort((a, b) => start.data[a] - start.data[b] || end.data[b] - end.data[a] || a - b);
    }
    return order;
  }

  *seal(lastTime) {
    const list = this.list;
    for (let i = 0; i < list.length; i++) if (!(list.end.data[i] >= list.start.data[i])) list.end.data[i] = lastTime;
    const order = yield* this.order();
    const ends = [];
    for (let k = 0; k < order.length; k++) {
      const i = order[k];
      const start = list.start.data[i];
      let depth = ends.length;
      while (depth > 0 && ends[depth - 1] <= start) depth--;
      ends.length = depth;
      ends.push(list.end.data[i]);
      if (depth === this.lanes.length) this.lanes.push(new Lane());
      this.lanes[depth].push(start, list.end.data[i], list.name.data[i], list.ref.data[i]);
      if ((k & 0x3fff) === 0x3fff) yield;
    }
    // A lane's slices may still overlap where they were not nested: the later one is shown from there on.
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

  // Least and greatest of each 32 values, of each 1024 ...
  seal() {
    this.levels = [];
    let low = this.value.data.subarray(0, this.value.length);
    let high = low;
    this.min = 0;
    this.max = 0;
    while (low.length > 32) {
      const n = Math.ceil(low.length / 32);
      const level = {low: new Float64Array(n).fill(Infinity), high: new Float64Array(n).fill(-Infinity)};
      for (let i = 0; i < low.length; i++) {
        const j = i >>> 5;
        if (low[i] < level.low[j]) level.low[j] = low[i];
        if (high[i] > level.high[j]) level.high[j] = high[i];
      }
      this.levels.push(level);
      ({low, high} = level);
    }
    for (let i = 0; i < low.length; i++) {
      if (low[i] < this.min) this.min = low[i];
      if (high[i] > this.max) this.max = high[i];
    }
  }

  // Of the values with index from (inclusive) to (exclusive).
  range(from, to) {
    let min = Infinity;
    let max = -Infinity;
    const take = (low, high, a, b) => {
      for (let i = a; i < b; i++) {
        if (low[i] < min) min = low[i];
        if (high[i] > max) max = high[i];
      }
    };
    let low = this.value.data;
    let high = low;
    for (const level of this.levels) {
      const a = (from + 31) >>> 5;
      const b = to >>> 5;
      if (a >= b) break;
      take(low, high, from, a * 32);
      take(low, high, b * 32, to);
      ({low, high} = level);
      from = a;
      to = b;
    }
    take(low, high, from, to);
    return [min, max];
  }
}

// Lanes by who is first free: asynchronous slices do not nest.
class AsyncNest extends Nest {
  *seal(lastTime) {
    const list = this.list;
    for (let i = 0; i < list.length; i++) if (!(list.end.data[i] >= list.start.data[i])) list.end.data[i] = lastTime;
    for (const i of yield* this.order()) {
      const start = list.start.data[i];
      let lane = this.lanes.find((l) => l.end.data[l.length - 1] <= start);
      if (!lane && this.lanes.length < 32) this.lanes.push((lane = new Lane()));
      if (lane) lane.push(start, list.end.data[i], list.name.data[i], list.ref.data[i]);
    }
    for (const lane of this.lanes) lane.seal();
    this.list = null;
    this.open = null;
  }
}
