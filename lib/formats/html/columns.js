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

  // The first index at or behind from whose value is at least x, in a sorted column: near ones first.
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

// The greatest of some values, each of which has its time, in any stretch of time. That of each 8 is known, and the
// time of their last: a stretch is walked through in few steps, and in the order in which it lies in memory. A frame
// does so some ten thousand times; there a search in steps of all sizes takes longer, and more levels do, too.
//
// Values of one type only, as far as possible: the loops are made for it.
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

  // From index i on, which belongs to it in any case, through all whose time is before until; returns the first index
  // behind them. In best is then the index of the greatest, of equals the first one's.
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

  // Sums of all durations before each slice: how busy a pixel is, whatever it holds. The longest gives it its colour.
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

  // How much of the time before t is within slices.
  busyBefore(t) {
    const i = this.start.seek(t);
    return this.busy[i] - (i > 0 ? Math.max(0, this.end.data[i - 1] - t) : 0);
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

  // Sets least and most of the value with index i and all behind it whose time is before until; returns what is next.
  range(i, until) {
    const next = this.low.walk(i, until);
    this.high.walk(i, until);
    this.least = this.value.data[this.low.best];
    this.most = this.value.data[this.high.best];
    return next;
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
