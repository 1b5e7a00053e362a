// SPDX-License-Identifier: LGPL-2.1-or-later
// The overview of the whole trace, and the ruler.

const OVERVIEW = 30;
const RULER = 22;
const HEAD = OVERVIEW + RULER;

class Head {
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = make('canvas', {parent: document.body, id: 'head'});
  }

  resize(width, ratio) {
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEAD}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = HEAD * ratio;
    this.overview = null;
    this.foundIn = null;
  }

  paint() {
    const {painter} = this.viewer;
    const c = this.canvas.getContext('2d', {alpha: false});
    const {theme, ratio, width} = painter;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!this.overview) this.overview = this.makeOverview();
    c.fillStyle = theme.raised;
    c.fillRect(0, 0, width, HEAD);
    c.drawImage(this.overview, LABELS_WIDTH, 0, width - LABELS_WIDTH, OVERVIEW);
    const a = this.x(painter.from);
    const b = Math.max(a + 2, this.x(painter.to));
    c.fillStyle = theme.back;
    c.globalAlpha = 0.6;
    c.fillRect(LABELS_WIDTH, 0, a - LABELS_WIDTH, OVERVIEW);
    c.fillRect(b, 0, width - b, OVERVIEW);
    c.globalAlpha = 1;
    c.strokeStyle = theme.accent;
    c.strokeRect(a + 0.5, 0.5, b - a - 1, OVERVIEW - 1);
    this.paintFound(c);
    this.paintRuler(c);
  }

  x(t) {
    const {from, to} = this.viewer.whole;
    return LABELS_WIDTH + ((t - from) / (to - from)) * (this.viewer.painter.width - LABELS_WIDTH);
  }

  time(x) {
    const {from, to} = this.viewer.whole;
    return from + ((x - LABELS_WIDTH) / (this.viewer.painter.width - LABELS_WIDTH)) * (to - from);
  }

  // Draws how busy all CPUs were together; without scheduler events, how many events there were. Marks losses.
  makeOverview() {
    const {model, painter, whole} = this.viewer;
    const canvas = make('canvas', {width: painter.pixels, height: OVERVIEW});
    const c = canvas.getContext('2d');
    const cpus = [...model.cpus.values()];
    const scale = (whole.to - whole.from) / painter.pixels;
    const sums = new Float64Array(painter.pixels);
    for (const {running} of cpus) {
      for (let x = 0, before = 0; x < sums.length; x++) {
        const after = running.busyBefore(whole.from + (x + 1) * scale);
        sums[x] += after - before;
        before = after;
      }
    }
    if (sums.every((s) => s === 0)) {
      for (let x = 0, before = 0; x < sums.length; x++) {
        const after = model.time.above(whole.from + (x + 1) * scale);
        sums[x] = after - before;
        before = after;
      }
    }
    const most = sums.reduce((a, b) => Math.max(a, b), 1e-9);
    c.fillStyle = painter.theme.tick;
    sums.forEach((sum, x) => c.fillRect(x, OVERVIEW, 1, (-sum / most) * (OVERVIEW - 4)));
    c.fillStyle = painter.theme.lost;
    for (const {losses} of cpus) {
      for (const loss of losses) {
        const x = (loss.from - whole.from) / scale;
        c.fillRect(x, 0, Math.max(2, (loss.to - whole.from) / scale - x), 4);
      }
    }
    return canvas;
  }

  // Marks matches in the overview, once per pixel. Each frame adds the new matches.
  paintFound(c) {
    const {found} = this.viewer.finder.search;
    if (this.foundIn !== found) {
      this.foundIn = found;
      this.foundTaken = 0;
      this.foundAt = new Set();
    }
    while (this.foundTaken < found.length) this.foundAt.add(Math.round(this.x(found[this.foundTaken++].t)));
    c.fillStyle = this.viewer.painter.theme.found;
    for (const x of this.foundAt) c.fillRect(x, OVERVIEW - 5, 1, 5);
  }

  paintRuler(c) {
    const {painter, model} = this.viewer;
    const {theme, from, to, width} = painter;
    const rough = ((to - from) / (width - LABELS_WIDTH)) * 110;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= rough);
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = theme.dim;
    const base = model.firstTime;
    c.fillText(`0 is ${absolute(model, base)}`, 8, OVERVIEW / 2, LABELS_WIDTH - 12);
    c.save();
    c.beginPath();
    c.rect(LABELS_WIDTH, 0, width, HEAD);
    c.clip();
    for (let k = Math.ceil((from - base) / step); base + k * step <= to; k++) {
      const x = painter.x(base + k * step);
      c.fillRect(x, OVERVIEW + 1, 1, RULER);
      paintRulerText(c, rulerText(k * step, step), x, width);
    }
    c.restore();
    c.fillStyle = theme.raised;
    c.fillRect(0, OVERVIEW, LABELS_WIDTH - 1, RULER);
    c.fillStyle = theme.dim;
    c.fillText(`in view: ${duration(to - from)}`, 8, OVERVIEW + RULER / 2, LABELS_WIDTH - 12);
  }
}

// A label stands right of its tick; at the right edge, left of it.
function paintRulerText(c, text, x, width) {
  const room = c.measureText(text).width + 8;
  if (x + room <= width) c.fillText(text, x + 4, OVERVIEW + RULER / 2);
  else if (x - room >= LABELS_WIDTH) c.fillText(text, x + 4 - room, OVERVIEW + RULER / 2);
}
