// SPDX-License-Identifier: LGPL-2.1-or-later
// The painter of rows. The visible pixels and rows bound its work.
//
// Slices narrower than a pixel take one step per pixel. The longest one gives the pixel its colour. The more of the
// pixel they fill together, the stronger the colour is. The painter paints all slices into one image, one line per
// lane. Then it stretches each line to its lane's height. The image is opaque: tables hold each colour's mixes with
// its background, in 255 steps.

const LABELS_MOST = 230; // pixels
let LABELS_WIDTH = LABELS_MOST; // less on narrow screens
const FONT = '11px system-ui, sans-serif';
const PIN_WIDTH = 14; // pixels of a label's right end
const TOUCH = matchMedia('(pointer: coarse)'); // nothing is pointed at before it is touched
const LINE_MIN = 7; // pixels: the least height of a lane or strip

// Returns 0xAABBGGRR, a pixel of image data on a little-endian machine.
function pack(r, g, b) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// Returns 256 mixes of two colours: number n has n/255 of `color`, the rest of `below`.
function shades(below, color) {
  return Uint32Array.from({length: 256}, (_, part) => {
    const [r, g, b] = [0, 8, 16].map((shift) => {
      const [x, y] = [(below >>> shift) & 255, (color >>> shift) & 255];
      return Math.round(x + ((y - x) * part) / 255);
    });
    return pack(r, g, b);
  });
}

// Colours of slices. Any two differ for people who see two kinds of colours, too; texts on them can be read.
const PALETTE = {
  light:
    '#82968c #1ed2fa #f0c878 #c8e6c8 #b482b4 #4696e6 #c88246 #b4be82 #96bebe #aae6fa #f0e6aa #5aa06e'.split(' '),
  dark: '#3c3c32 #006e96 #8c5a14 #1e501e #502846 #143278 #641e00 #786446 #64646e #3c5096 #8c3250 #78326e'.split(' '),
};

class Theme {
  constructor(dark) {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    for (const name of ['back', 'raised', 'line', 'text', 'dim', 'accent', 'lost', 'group', 'tick', 'found'])
      this[name] = read(`--${name}`);
    const toPixel = (hex) => pack(...[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    this.backPixel = toPixel(read('--back'));
    this.palette = PALETTE[dark ? 'dark' : 'light'].map((hex) => shades(this.backPixel, toPixel(hex)));
    this.tickShades = shades(this.backPixel, toPixel(read('--tick')));
    // Each state's colour, mixed with that of running. An exited thread has the background's colour.
    this.states = ['unknown', 'running', 'runnable', 'sleeping', 'blocked', 'stopped', 'back'].map((name) =>
      shades(toPixel(read(`--${name}`)), toPixel(read('--running'))),
    );
  }

  // A number has the same colour in every row.
  shadesOf(n) {
    return this.palette[(Math.imul(n + 1, 0x9e3779b1) >>> 16) % this.palette.length];
  }
}

// Returns the index among shades for the filled part of a pixel. The least part is visible, too.
function visible(part) {
  return Math.max(72, Math.min(255, part * 255)) | 0;
}

class Painter {
  constructor(model, rows, canvas) {
    this.model = model;
    this.rows = rows;
    this.canvas = canvas;
    this.context = canvas.getContext('2d', {alpha: false});
    this.strip = document.createElement('canvas');
    this.stripContext = this.strip.getContext('2d', {alpha: false, willReadFrequently: true});
    this.from = 0; // the visible time
    this.to = 1;
    this.sight = null; // the view that the image shows
    this.painted = {slices: 0};
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
    this.strip.height = Math.ceil(height / LINE_MIN) + 4; // the first row may begin above the canvas
    this.image = this.stripContext.createImageData(this.pixels, this.strip.height);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  x(t) {
    return LABELS_WIDTH + ((t - this.from) / (this.to - this.from)) * (this.width - LABELS_WIDTH);
  }

  t(x) {
    return this.from + ((x - LABELS_WIDTH) / (this.width - LABELS_WIDTH)) * (this.to - this.from);
  }

  paint(scroll, {selection = null, mark = null, hover = null, arrows = [], pointed = null}) {
    const {context: c, theme, ratio, width, height} = this;
    const rows = this.rows.all.filter((row) => row.y + row.height > scroll && row.y < scroll + height);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme.back;
    c.fillRect(0, 0, width, height);
    this.paintRows(rows, scroll);
    c.save();
    c.beginPath();
    c.rect(LABELS_WIDTH, 0, width, height);
    c.clip();
    this.paintTexts();
    for (const row of rows) if (row.kind === 'counter') this.paintCounter(row, row.y - scroll);
    for (const row of rows) if (row.cpu) this.paintLosses(row, row.y - scroll);
    this.paintSelection(selection, mark, hover, scroll);
    c.restore();
    for (const row of rows) this.paintLabel(row, row.y - scroll, row === pointed);
    paintArrows(this, arrows, scroll);
  }

  // Repaints the image only if the view has changed.
  paintRows(rows, scroll) {
    const {context: c, ratio, pixels} = this;
    const sight = [this.from, this.to, scroll, this.rows.all, this.theme, this.image];
    if (!this.sight || sight.some((value, i) => value !== this.sight[i])) {
      this.sight = sight;
      this.painted = {slices: 0};
      this.lines = [];
      this.wide = [];
      for (const row of rows) this.paintRow(row, row.y - scroll);
      this.stripContext.putImageData(this.image, 0, 0, 0, 0, pixels, this.lines.length);
    }
    c.imageSmoothingEnabled = false;
    const left = Math.round(LABELS_WIDTH * ratio) / ratio;
    this.lines.forEach(([y, height], i) => {
      c.drawImage(this.strip, 0, i, pixels, 1, left, y, pixels / ratio, height - 1);
    });
  }

  paintRow(row, y) {
    let top = y;
    if (row.kind === 'events') this.paintTicks(row.cpu.time, top, row.height);
    if (row.strip) {
      this.paintStates(row.thread, top, row.strip);
      top += row.strip;
    }
    if (row.ticks) {
      this.paintTicks(row.thread.samples.time, top, row.ticks);
      top += row.ticks;
    }
    for (const lane of row.lanes) {
      if (top >= this.height) break;
      if (top + row.laneHeight > 0) this.paintLane(lane, top, row.laneHeight, row.kind === 'running');
      top += row.laneHeight;
    }
  }

  // Adds a line to the image, and its place on the canvas. Returns the index of its first pixel.
  line(y, height) {
    const start = this.lines.length * this.pixels;
    this.lines.push([y, height]);
    this.words.fill(this.theme.backPixel, start, start + this.pixels);
    return start;
  }

  // On a CPU the slice's thread gives its colour and label, elsewhere its name.
  paintLane(lane, y, height, isCpu) {
    const {from, to, pixels, words, ratio, theme, model} = this;
    const scale = pixels / (to - from);
    const start = lane.start.data;
    const end = lane.end.data;
    const key = (isCpu ? lane.ref : lane.name).data;
    const n = lane.length;
    const base = this.line(y, height);
    const wide = 34 * ratio;
    for (let i = lane.at(from); i < n && start[i] < to;) {
      const x0 = (start[i] - from) * scale;
      const x1 = (end[i] - from) * scale;
      this.painted.slices++;
      if (x1 - x0 < 1) {
        i = this.paintPixel(lane, i, Math.max(0, Math.floor(x0)), base, scale, key);
        continue;
      }
      const a = Math.max(0, Math.round(x0));
      const b = Math.min(pixels, Math.max(a + 1, Math.round(x1)));
      words.fill(theme.shadesOf(key[i])[255], base + a, base + b);
      // A gap separates neighbours of the same colour.
      if (x0 >= 0 && b - a > 3) words[base + a] = theme.backPixel;
      if (b - a >= wide && height >= 12) {
        const text = isCpu ? model.threadLabel(key[i]) : model.names[key[i]];
        this.wide.push([text, a / ratio, (b - a) / ratio, y, height]);
      }
      i++;
    }
  }

  // Paints the slices that begin within pixel x. Returns the index of the next slice to paint.
  paintPixel(lane, i, x, base, scale, key) {
    if (x >= this.pixels) return lane.length;
    const until = this.from + (x + 1) / scale;
    const j = lane.longest.walk(i, until);
    const over = Math.max(0, lane.end.data[j - 1] - until);
    const part = (lane.busy[j] - lane.busy[i] - over) * scale;
    this.words[base + x] = this.theme.shadesOf(key[lane.longest.best])[visible(part)];
    // The caller paints the last slice, too, if it goes on for another pixel.
    return over * scale > 1 ? Math.max(i + 1, j - 1) : j;
  }

  paintTicks(time, y, height) {
    const {from, to, pixels, words, theme} = this;
    const scale = pixels / (to - from);
    const base = this.line(y, height);
    for (let i = time.seek(from); i < time.length;) {
      const x = Math.floor((time.data[i] - from) * scale);
      if (x >= pixels) break;
      const j = Math.max(i + 1, time.seek(from + (x + 1) / scale, i));
      words[base + x] = theme.tickShades[visible(0.35 + Math.log2(j - i) / 10)];
      this.painted.slices++;
      i = j;
    }
  }

  paintStates(thread, y, height) {
    const {from, to, pixels, words, theme, model} = this;
    const scale = pixels / (to - from);
    const base = this.line(y, height);
    const {ran, prominent} = thread;
    const {data: start, length: n} = thread.stateStart;
    const state = thread.state.data;
    for (let i = Math.max(0, thread.stateStart.above(from) - 1); i < n && start[i] < to;) {
      const x0 = (start[i] - from) * scale;
      const end = i + 1 < n ? start[i + 1] : model.lastTime;
      this.painted.slices++;
      if ((end - start[i]) * scale >= 1) {
        const a = Math.max(0, Math.round(x0));
        const b = Math.min(pixels, Math.max(a + 1, Math.round((end - from) * scale)));
        words.fill(theme.states[state[i]][0], base + a, base + b);
        i++;
        continue;
      }
      const x = Math.max(0, Math.floor(x0));
      if (x >= pixels) break;
      const until = from + (x + 1) / scale;
      const j = prominent.walk(i, until);
      const over = Math.max(0, (j < n ? start[j] : model.lastTime) - until);
      const beyond = state[j - 1] === State.RUNNING ? over : 0;
      const part = Math.min(1, (ran[j] - ran[i] - beyond) * scale);
      const shade = part > 0 ? Math.round(Math.max(0.25, part) * 255) : 0;
      words[base + x] = theme.states[state[prominent.best]][shade];
      // The next round paints the last state, too, if it goes on for another pixel.
      i = over * scale > 1 && j - 1 > i ? j - 1 : j;
    }
  }

  paintTexts() {
    const {context: c, theme} = this;
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = theme.text;
    for (const [text, x, width, y, height] of this.wide) {
      c.fillText(fitText(c, text, width - 8), LABELS_WIDTH + x + 5, y + height / 2, width - 7);
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
        next = counter.range(i, from + (Math.floor(x0) + 1) / scale);
        a = Math.min(level(counter.most), zero);
        b = Math.max(level(counter.least), zero);
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
    const {context: c, theme} = this;
    let painted = -1; // up to this pixel
    for (const loss of row.cpu.losses) {
      if (loss.to < this.from || loss.from > this.to || this.x(loss.to) < painted) continue;
      const a = Math.max(LABELS_WIDTH - 4, this.x(loss.from), painted);
      const width = Math.max(3, Math.min(this.width + 4, this.x(loss.to)) - a);
      painted = a + width;
      c.fillStyle = theme.back;
      c.globalAlpha = 0.55;
      c.fillRect(a, y, width, row.height);
      c.globalAlpha = 1;
      c.fillStyle = this.hatch;
      c.fillRect(a, y, width, row.height);
      if (row.kind !== 'running' || width < 120) continue;
      const text = lossText(loss);
      c.font = `bold ${FONT}`;
      const room = c.measureText(text).width + 10;
      if (width < room) continue;
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
      if (!selection.list || selection.list === this.rows)
        c.fillRect(a, selection.top - scroll, b - a, selection.bottom - selection.top);
      c.globalAlpha = 1;
      c.fillRect(a, 0, 1, height);
      c.fillRect(b, 0, 1, height);
    }
    for (const [hit, width] of [
      [hover, 1],
      [mark, 2],
    ]) {
      const row = hit && this.rows.shown(hit.row);
      if (!row || !(hit.from <= this.to && hit.to >= this.from)) continue;
      const a = Math.max(this.x(hit.from), LABELS_WIDTH - 3);
      const b = Math.min(this.x(hit.to), this.width + 3);
      c.strokeStyle = width > 1 ? theme.accent : theme.text;
      c.lineWidth = width;
      c.strokeRect(a - 1, row.y + hit.top - scroll, Math.max(3, b - a) + 1, hit.height - 1);
    }
  }

  paintLabel(row, y, isPointed) {
    const {context: c, theme, width} = this;
    const isGroup = row.kind === 'group';
    c.fillStyle = isGroup ? theme.group : theme.raised;
    c.fillRect(0, y, isGroup ? width : LABELS_WIDTH - 1, row.height);
    c.fillStyle = theme.line;
    c.fillRect(0, y + row.height, width, 1);
    c.fillRect(LABELS_WIDTH - 1, y, 1, row.height);
    const middle = y + Math.min(row.height / 2, 11);
    let right = LABELS_WIDTH - 6;
    c.textBaseline = 'middle';
    if (!isGroup && (isPointed || TOUCH.matches || (row.source || row).pinned)) {
      right -= PIN_WIDTH;
      this.paintPin(right + PIN_WIDTH / 2, middle, (row.source || row).pinned);
    }
    c.fillStyle = theme.dim;
    c.font = FONT;
    if (row.note) {
      const noteWidth = c.measureText(row.note).width;
      right -= noteWidth;
      c.fillText(row.note, right, middle);
      right -= 8;
    }
    // In another order, threads are not below their process.
    const isSub = row.sub && !(row.thread && this.rows.order);
    c.font = isGroup || !isSub ? `600 ${FONT}` : FONT;
    c.fillStyle = isSub ? theme.dim : theme.text;
    const x = isSub ? 26 : 18;
    if (isGroup) c.fillText(row.group.open ? '▾' : '▸', 5, y + row.height / 2);
    c.fillText(fitText(c, row.label, right - x), x, middle, right - x);
  }

  paintPin(x, y, isPinned) {
    const {context: c, theme} = this;
    c.fillStyle = c.strokeStyle = isPinned ? theme.accent : theme.dim;
    c.lineWidth = 1;
    c.beginPath();
    c.arc(x, y - 2, 2.5, 0, 2 * Math.PI);
    if (isPinned) c.fill();
    c.moveTo(x, y + 0.5);
    c.lineTo(x, y + 5);
    c.stroke();
  }

  // Returns the item under the pointer, or null if there is no row.
  hit(x, y, scroll) {
    const row = this.rows.at(y + scroll);
    if (!row || x < LABELS_WIDTH) return row ? {row, kind: 'label', onPin: x > LABELS_WIDTH - 6 - 2 * PIN_WIDTH} : null;
    const t = this.t(x);
    const near = ((this.to - this.from) / (this.width - LABELS_WIDTH)) * 3;
    let inside = y + scroll - row.y;
    if (row.cpu) {
      const loss = row.cpu.losses.find((l) => l.from - near <= t && t <= l.to + near);
      if (loss) return {row, kind: 'loss', loss, from: loss.from, to: loss.to, top: 0, height: row.height};
    }
    if (row.kind === 'counter') return this.hitCounter(row, t);
    if (row.kind === 'events') {
      const {time} = row.cpu;
      const i = nearest(t, near, time.length, time.seek(t), (k) => time.data[k]);
      return i < 0 ? {row, kind: 'row'} : eventHit(this.model, row, row.cpu.events.data[i]);
    }
    if (inside < row.strip) return this.hitState(row, t);
    inside -= row.strip || 0;
    if (inside < row.ticks) {
      const {time, ref} = row.thread.samples;
      const i = nearest(t, near, time.length, time.seek(t), (k) => time.data[k]);
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
    if (i < 0 || t > thread.stateEnd(i, this.model.lastTime)) return {row, kind: 'row'};
    return stateHit(this.model, row, i);
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

// Returns the nearer of i - 1 and i, or -1 if neither is within `near`.
function nearest(t, near, length, i, timeOf) {
  let best = -1;
  for (const k of [i - 1, i]) {
    if (k < 0 || k >= length || Math.abs(timeOf(k) - t) > near) continue;
    if (best < 0 || Math.abs(timeOf(k) - t) < Math.abs(timeOf(best) - t)) best = k;
  }
  return best;
}

function stateHit(model, row, i) {
  const {thread} = row;
  return {
    row,
    kind: 'state',
    index: i,
    state: thread.state.data[i],
    from: thread.stateStart.data[i],
    to: thread.stateEnd(i, model.lastTime),
    top: 0,
    height: row.strip,
  };
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
