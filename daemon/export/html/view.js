// SPDX-License-Identifier: LGPL-2.1-or-later
// How rows are painted: never more work than there are pixels and rows in sight.
//
// What is narrower than a pixel is found by binary search, from pixel to pixel, and shown as how much of the
// pixel it fills. All of a frame's slices are painted into one image, a line for each lane, and stretched from there.

const LABELS_WIDTH = 230;
const FONT = '11px system-ui, sans-serif';
const CHAR = 6.1; // about a character's width in that font

// 0xAABBGGRR, as an image holds it.
function pack(r, g, b, a = 255) {
  return ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

function fromHsl(h, s, l) {
  const f = (n) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return pack(f(0), f(8), f(4));
}

class Theme {
  constructor(dark) {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    for (const name of ['back', 'raised', 'line', 'text', 'dim', 'accent', 'lost', 'group', 'tick', 'found'])
      this[name] = read(`--${name}`);
    this.palette = [];
    for (let i = 0; i < 24; i++) {
      const hue = (i * 137.508 + 20) % 360;
      this.palette.push(dark ? fromHsl(hue, 0.38, i % 2 ? 0.4 : 0.34) : fromHsl(hue, 0.55, i % 2 ? 0.78 : 0.72));
    }
    const toPixel = (hex) => pack(...[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    this.states = ['unknown', 'running', 'runnable', 'sleeping', 'blocked', 'stopped', 'dead'].map((name) =>
      read(`--${name}`) ? toPixel(read(`--${name}`)) : 0,
    );
    this.tickPixel = toPixel(this.tick);
    this.edge = toPixel(this.back);
  }

  // The same for the same number, in every row.
  color(n) {
    return this.palette[(Math.imul(n + 1, 0x9e3779b1) >>> 16) % this.palette.length];
  }
}

function faint(color, part) {
  return ((color & 0xffffff) | (Math.max(72, Math.min(255, part * 255)) << 24)) >>> 0;
}

// Of b so much as part says; over nothing: as faint.
function mix(a, b, part) {
  if (!a) return faint(b, part);
  let color = 0xff;
  for (const shift of [16, 8, 0]) {
    const [x, y] = [(a >>> shift) & 255, (b >>> shift) & 255];
    color = (color << 8) | Math.round(x + (y - x) * part);
  }
  return color >>> 0;
}

// The first index at or behind from whose value is at least x: near ones first.
function seek(data, length, x, from) {
  let step = 1;
  let low = from;
  let high = from;
  while (high < length && data[high] < x) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  if (high > length) high = length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (data[mid] < x) low = mid + 1;
    else high = mid;
  }
  return low;
}

class Painter {
  constructor(model, rows, canvas) {
    this.model = model;
    this.rows = rows;
    this.canvas = canvas;
    this.context = canvas.getContext('2d', {alpha: false});
    this.strip = document.createElement('canvas');
    this.stripContext = this.strip.getContext('2d', {willReadFrequently: true});
    this.from = 0; // the visible time
    this.to = 1;
    this.painted = {slices: 0, labels: 0};
  }

  setTheme(theme) {
    this.theme = theme;
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const c = tile.getContext('2d');
    c.strokeStyle = theme.lost;
    c.lineWidth = 1.6;
    c.beginPath();
    for (const x of [-8, 0, 8]) {
      c.moveTo(x - 2, 10);
      c.lineTo(x + 10, -2);
    }
    c.stroke();
    this.hatch = this.context.createPattern(tile, 'repeat');
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pixels = Math.max(1, Math.round((width - LABELS_WIDTH) * ratio));
    this.strip.width = this.pixels;
    this.strip.height = 512;
    this.image = this.stripContext.createImageData(this.pixels, this.strip.height);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  x(t) {
    return LABELS_WIDTH + ((t - this.from) / (this.to - this.from)) * (this.width - LABELS_WIDTH);
  }

  t(x) {
    return this.from + ((x - LABELS_WIDTH) / (this.width - LABELS_WIDTH)) * (this.to - this.from);
  }

  paint(scroll, {selection, mark, hover}) {
    const {context: c, theme, ratio, width, height} = this;
    const rows = this.rows.all.filter((row) => row.y + row.height > scroll && row.y < scroll + height);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme.back;
    c.fillRect(0, 0, width, height);
    this.painted = {slices: 0, labels: 0};
    this.blits = [];
    this.wide = [];
    for (const row of rows) this.paintRow(row, row.y - scroll);
    this.flush();
    c.save();
    c.beginPath();
    c.rect(LABELS_WIDTH, 0, width, height);
    c.clip();
    this.paintTexts();
    for (const row of rows) if (row.kind === 'counter') this.paintCounter(row, row.y - scroll);
    for (const row of rows) if (row.cpu) this.paintLosses(row, row.y - scroll);
    this.paintSelection(selection, mark, hover, scroll);
    c.restore();
    for (const row of rows) this.paintLabel(row, row.y - scroll);
  }

  paintRow(row, y) {
    const {theme, model} = this;
    let top = y;
    if (row.kind === 'running') {
      this.paintLane(
        row.lanes[0],
        top,
        row.laneHeight,
        (lane, i) => theme.color(lane.ref.data[i]),
        (lane, i) => model.threadLabel(lane.ref.data[i]),
      );
      return;
    }
    if (row.kind === 'events') {
      const events = row.cpu.events;
      this.paintTicks(
        (t, from) => row.cpu.seek(model.time, t, from),
        events.length,
        top,
        row.height,
        (i) => model.time.data[events.data[i]],
      );
      return;
    }
    if (row.strip) {
      this.paintStates(row.thread, top, row.strip);
      top += row.strip;
    }
    if (row.ticks) {
      const {time} = row.thread.samples;
      this.paintTicks(
        (t, from) => seek(time.data, time.length, t, from),
        time.length,
        top,
        row.ticks,
        (i) => time.data[i],
      );
      top += row.ticks;
    }
    for (const lane of row.lanes) {
      this.paintLane(
        lane,
        top,
        row.laneHeight,
        (l, i) => theme.color(l.name.data[i]),
        (l, i) => model.names[l.name.data[i]],
      );
      top += row.laneHeight;
    }
  }

  // A line of the image, and where it goes.
  line(y, height) {
    if (this.blits.length === this.strip.height) this.flush();
    const start = this.blits.length * this.pixels;
    this.blits.push([y, height]);
    this.words.fill(0, start, start + this.pixels);
    return start;
  }

  flush() {
    const {context: c, ratio} = this;
    this.stripContext.putImageData(this.image, 0, 0, 0, 0, this.pixels, this.blits.length);
    c.imageSmoothingEnabled = false;
    const left = Math.round(LABELS_WIDTH * ratio) / ratio;
    this.blits.forEach(([y, height], i) => {
      c.drawImage(this.strip, 0, i, this.pixels, 1, left, y, this.pixels / ratio, height - 1);
    });
    this.blits = [];
  }

  paintLane(lane, y, height, colorOf, textOf) {
    const {from, to, pixels, words, ratio, theme} = this;
    const scale = pixels / (to - from);
    const start = lane.start.data;
    const end = lane.end.data;
    const n = lane.length;
    const base = this.line(y, height);
    const wide = 34 * ratio;
    for (let i = lane.at(from); i < n && start[i] < to;) {
      const x0 = (start[i] - from) * scale;
      const x1 = (end[i] - from) * scale;
      this.painted.slices++;
      if (x1 - x0 < 1) {
        i = this.paintPixel(lane, i, Math.max(0, Math.floor(x0)), base, scale, colorOf);
        continue;
      }
      const a = Math.max(0, Math.round(x0));
      const b = Math.min(pixels, Math.max(a + 1, Math.round(x1)));
      words.fill(colorOf(lane, i), base + a, base + b);
      // Neighbours of one colour stay two.
      if (x0 >= 0 && b - a > 3) words[base + a] = theme.edge;
      if (b - a >= wide && height >= 12) this.wide.push([textOf(lane, i), a / ratio, (b - a) / ratio, y, height]);
      i++;
    }
  }

  // All that begins within a pixel; returns what begins behind it.
  paintPixel(lane, i, x, base, scale, colorOf) {
    if (x >= this.pixels) return lane.length;
    const start = lane.start.data;
    const end = lane.end.data;
    const until = this.from + (x + 1) / scale;
    const j = Math.max(i + 1, seek(start, lane.length, until, i + 1));
    const over = Math.max(0, end[j - 1] - until);
    const part = (lane.busy[j] - lane.busy[i] - over) * scale;
    let longest = i;
    // A few of them stand for all.
    for (let k = i, step = Math.max(1, (j - i) >> 3); k < j; k += step) {
      if (end[k] - start[k] > end[longest] - start[longest]) longest = k;
    }
    this.words[base + x] = faint(colorOf(lane, longest), part);
    // The last one may be long: then it is painted, too.
    return over * scale > 1 ? Math.max(i + 1, j - 1) : j;
  }

  paintTicks(find, n, y, height, timeOf) {
    const {from, to, pixels, words, theme} = this;
    const scale = pixels / (to - from);
    const base = this.line(y, height);
    for (let i = find(from, 0); i < n;) {
      const x = Math.floor((timeOf(i) - from) * scale);
      if (x >= pixels) break;
      const j = Math.max(i + 1, find(from + (x + 1) / scale, i));
      words[base + x] = faint(theme.tickPixel, 0.35 + Math.log2(j - i) / 10);
      this.painted.slices++;
      i = j;
    }
  }

  paintStates(thread, y, height) {
    const {from, to, pixels, words, theme} = this;
    const scale = pixels / (to - from);
    const base = this.line(y, height);
    const {data: start, length: n} = thread.stateStart;
    for (let i = Math.max(0, thread.stateStart.above(from) - 1); i < n && start[i] < to;) {
      const x0 = (start[i] - from) * scale;
      const x1 = (thread.stateEnd(i, this.model.lastTime) - from) * scale;
      this.painted.slices++;
      if (x1 - x0 >= 1) {
        const a = Math.max(0, Math.round(x0));
        words.fill(
          theme.states[thread.state.data[i]],
          base + a,
          base + Math.min(pixels, Math.max(a + 1, Math.round(x1))),
        );
        i++;
        continue;
      }
      const x = Math.max(0, Math.floor(x0));
      if (x >= pixels) break;
      const until = from + (x + 1) / scale;
      const j = Math.max(i + 1, seek(start, n, until, i + 1));
      const over = Math.max(0, thread.stateEnd(j - 1, this.model.lastTime) - until);
      const beyond = thread.state.data[j - 1] === State.RUNNING ? over : 0;
      const ran = Math.min(1, (thread.ran[j] - thread.ran[i] - beyond) * scale);
      const other = theme.states[this.prominent(thread, i, j)];
      words[base + x] = ran > 0 ? mix(other, theme.states[State.RUNNING], Math.max(0.25, ran)) : other;
      // What lasts beyond the pixel is painted as well.
      i = over * scale > 1 && j - 1 > i ? j - 1 : j;
    }
  }

  // Of the states i to j, looked at in places, which one is to be seen; how much it ran is known exactly.
  prominent(thread, i, j) {
    const rank = [2, 1, 5, 3, 6, 4, 0];
    let best = thread.state.data[i];
    for (let k = i, step = Math.max(1, (j - i) >> 3); k < j; k += step) {
      if (rank[thread.state.data[k]] > rank[best]) best = thread.state.data[k];
    }
    return best;
  }

  paintTexts() {
    const {context: c, theme} = this;
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = theme.text;
    for (const [text, x, width, y, height] of this.wide) {
      const room = Math.floor((width - 8) / CHAR);
      const shown = text.length > room ? `${text.slice(0, room - 1)}…` : text;
      c.fillText(shown, LABELS_WIDTH + x + 5, y + height / 2, width - 7);
      this.painted.labels++;
    }
  }

  paintCounter(row, y) {
    const {context: c, theme, from, to, pixels, ratio} = this;
    const {counter, height} = row;
    const {data: time, length: n} = counter.time;
    const scale = pixels / (to - from);
    const span = counter.max - counter.min || 1;
    const level = (v) => y + 3 + (1 - (v - counter.min) / span) * (height - 5);
    const zero = level(0);
    c.fillStyle = theme.accent;
    c.globalAlpha = 0.6;
    c.beginPath();
    for (let i = Math.max(0, counter.time.above(from) - 1); i < n && time[i] < to;) {
      const x0 = Math.max(0, (time[i] - from) * scale);
      const x1 = Math.min(pixels, ((i + 1 < n ? time[i + 1] : this.model.lastTime) - from) * scale);
      let a = level(counter.value.data[i]);
      let b = zero;
      let width = x1 - x0;
      let next = i + 1;
      if (width < 1) {
        width = 1;
        next = Math.max(i + 1, seek(time, n, from + (Math.floor(x0) + 1) / scale, i + 1));
        const [min, max] = counter.range(i, next);
        a = Math.min(level(max), zero);
        b = Math.max(level(min), zero);
      }
      c.rect(LABELS_WIDTH + x0 / ratio, Math.min(a, b) - 0.5, width / ratio, Math.abs(b - a) + 1);
      i = next;
    }
    c.fill();
    c.globalAlpha = 1;
    c.fillStyle = theme.dim;
    c.font = '9px system-ui, sans-serif';
    c.textBaseline = 'top';
    c.fillText(counter.max.toLocaleString('en'), LABELS_WIDTH + 4, y + 3);
  }

  paintLosses(row, y) {
    const {context: c, theme, model} = this;
    for (const loss of row.cpu.losses) {
      const from = loss.from >= 0 ? loss.from : model.firstTime;
      if (loss.to < this.from || from > this.to) continue;
      const a = Math.max(LABELS_WIDTH - 4, this.x(from));
      const width = Math.max(3, Math.min(this.width + 4, this.x(loss.to)) - a);
      c.fillStyle = theme.back;
      c.globalAlpha = 0.55;
      c.fillRect(a, y, width, row.height);
      c.globalAlpha = 1;
      c.fillStyle = this.hatch;
      c.fillRect(a, y, width, row.height);
      if (width < 120 || row.kind !== 'running') continue;
      const text = lossText(loss);
      c.font = `bold ${FONT}`;
      const room = c.measureText(text).width + 10;
      c.fillStyle = theme.back;
      c.fillRect(a + (width - room) / 2, y + 3, room, row.height - 6);
      c.fillStyle = theme.lost;
      c.textBaseline = 'middle';
      c.fillText(text, a + (width - room) / 2 + 5, y + row.height / 2);
    }
  }

  paintSelection(selection, mark, hover, scroll) {
    const {context: c, theme, height} = this;
    if (selection) {
      const a = this.x(selection.from);
      const b = this.x(selection.to);
      c.fillStyle = theme.accent;
      c.globalAlpha = 0.16;
      c.fillRect(a, selection.top - scroll, b - a, selection.bottom - selection.top);
      c.globalAlpha = 1;
      c.fillRect(a, 0, 1, height);
      c.fillRect(b, 0, 1, height);
    }
    for (const [hit, width] of [
      [hover, 1],
      [mark, 2],
    ]) {
      if (!hit || !(hit.from <= this.to && hit.to >= this.from)) continue;
      const a = Math.max(this.x(hit.from), LABELS_WIDTH - 3);
      const b = Math.min(this.x(hit.to), this.width + 3);
      c.strokeStyle = width > 1 ? theme.accent : theme.text;
      c.lineWidth = width;
      c.strokeRect(a - 1, hit.row.y + hit.top - scroll, Math.max(3, b - a) + 1, hit.height - 1);
    }
  }

  paintLabel(row, y) {
    const {context: c, theme, width} = this;
    const isGroup = row.kind === 'group';
    c.fillStyle = isGroup ? theme.group : theme.raised;
    c.fillRect(0, y, isGroup ? width : LABELS_WIDTH - 1, row.height);
    c.fillStyle = theme.line;
    c.fillRect(0, y + row.height, width, 1);
    c.fillRect(LABELS_WIDTH - 1, y, 1, row.height);
    c.font = isGroup || !row.sub ? `600 ${FONT}` : FONT;
    c.fillStyle = row.sub ? theme.dim : theme.text;
    c.textBaseline = 'middle';
    const x = isGroup ? 18 : row.sub ? 26 : 18;
    if (isGroup) c.fillText(row.group.open ? '▾' : '▸', 5, y + row.height / 2);
    const room = Math.floor((LABELS_WIDTH - x - 6) / CHAR);
    const text = row.label.length > room ? `${row.label.slice(0, room - 1)}…` : row.label;
    c.fillText(text, x, y + Math.min(row.height / 2, 11));
  }

  // What is under the pointer; null: nothing that can be told of.
  hit(x, y, scroll) {
    const row = this.rows.at(y + scroll);
    if (!row || x < LABELS_WIDTH) return row ? {row, kind: 'label'} : null;
    const t = this.t(x);
    const near = ((this.to - this.from) / (this.width - LABELS_WIDTH)) * 3;
    let inside = y + scroll - row.y;
    if (row.cpu) {
      const loss = row.cpu.losses.find(
        (l) => (l.from >= 0 ? l.from : this.model.firstTime) - near <= t && t <= l.to + near,
      );
      if (loss)
        return {row, kind: 'loss', loss, from: Math.max(loss.from || 0, 0), to: loss.to, top: 0, height: row.height};
    }
    if (row.kind === 'counter') return this.hitCounter(row, t);
    if (row.kind === 'events') {
      const i = nearest(
        t,
        near,
        row.cpu.events.length,
        row.cpu.seek(this.model.time, t),
        (k) => this.model.time.data[row.cpu.events.data[k]],
      );
      return i < 0 ? {row, kind: 'row'} : eventHit(this.model, row, row.cpu.events.data[i]);
    }
    if (inside < row.strip) return this.hitState(row, t);
    inside -= row.strip || 0;
    if (inside < row.ticks) {
      const {time, ref} = row.thread.samples;
      const i = nearest(t, near, time.length, seek(time.data, time.length, t, 0), (k) => time.data[k]);
      if (i < 0) return {row, kind: 'row'};
      return {
        row,
        kind: 'sample',
        ref: ref.data[i],
        from: time.data[i],
        to: time.data[i],
        top: row.strip,
        height: row.ticks,
      };
    }
    inside -= row.ticks || 0;
    const depth = Math.floor(inside / row.laneHeight);
    const lane = row.lanes[depth];
    if (!lane) return {row, kind: 'row'};
    let i = lane.at(t);
    if (i >= lane.length || lane.start.data[i] > t) {
      i = nearest(t, near, lane.length, i, (k) => (lane.end.data[k] < t ? lane.end.data[k] : lane.start.data[k]));
    }
    return i < 0 ? {row, kind: 'row'} : sliceHit(row, depth, i);
  }

  hitState(row, t) {
    const {thread} = row;
    const i = thread.stateStart.above(t) - 1;
    if (i < 0) return {row, kind: 'row'};
    const to = i + 1 < thread.state.length ? thread.stateStart.data[i + 1] : this.model.lastTime;
    if (t > to) return {row, kind: 'row'};
    return {
      row,
      kind: 'state',
      state: thread.state.data[i],
      from: thread.stateStart.data[i],
      to,
      top: 0,
      height: row.strip,
    };
  }

  hitCounter(row, t) {
    const {counter} = row;
    const i = counter.time.above(t) - 1;
    if (i < 0) return {row, kind: 'row'};
    const to = i + 1 < counter.time.length ? counter.time.data[i + 1] : this.model.lastTime;
    return {
      row,
      kind: 'counter',
      index: i,
      ref: counter.ref.data[i],
      from: counter.time.data[i],
      to,
      top: 0,
      height: row.height,
    };
  }
}

// Of i and the one before it the nearer, if it is within near.
function nearest(t, near, length, i, timeOf) {
  let best = -1;
  for (const k of [i - 1, i]) {
    if (k < 0 || k >= length || Math.abs(timeOf(k) - t) > near) continue;
    if (best < 0 || Math.abs(timeOf(k) - t) < Math.abs(timeOf(best) - t)) best = k;
  }
  return best;
}

function sliceHit(row, depth, i) {
  const lane = row.lanes[depth];
  return {
    row,
    kind: row.kind === 'running' ? 'running' : 'slice',
    lane,
    index: i,
    ref: lane.ref.data[i],
    from: lane.start.data[i],
    to: lane.end.data[i],
    top: (row.strip || 0) + (row.ticks || 0) + depth * row.laneHeight,
    height: row.laneHeight,
  };
}

function eventHit(model, row, event) {
  const t = model.time.data[event];
  return {row, kind: 'event', ref: event, from: t, to: t, top: 0, height: row.height};
}

function lossText(loss) {
  if (!(loss.count >= 0)) return 'LOST EVENTS';
  return `LOST ${loss.count.toLocaleString('en')} EVENTS`;
}
