// SPDX-License-Identifier: LGPL-2.1-or-later
// Histograms of a report's tables as plots.

const PLOT_WIDTH = 420;
const PLOT_HEIGHT = 130;
const PLOT_LEFT = 44; // pixels for the counts
const PLOT_TOP = 8;
const PLOT_AXIS = 18; // pixels below the bars
const LABEL_ROOM = 52; // pixels between two labels of an axis, at least
const BARS_OCTAVE = 4;
const EXACT_BUCKETS = 128; // docs/report.md: below, each value has a bucket; above, each power of two has 64

function bucketFrom(bucket) {
  if (bucket < EXACT_BUCKETS) return bucket;
  return ((bucket & 63) + 64) * 2 ** ((bucket >>> 6) - 1);
}

function compact(number) {
  return number.toLocaleString('en', {notation: 'compact', maximumSignificantDigits: 4});
}

// The least of 1, 2, 5, 10, 20 and so on that is not below a number; of fractions, too.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least * (1 - 1e-9));
}

// The bars of a plot: values from `from` to below `end`, and how many there are.
class Bars {
  constructor(text) {
    this.text = text; // spells a value
    this.all = new Map(); // by `from`
    this.total = 0;
  }

  add(from, end, count) {
    const bar = this.all.get(from) || {from, end, count: 0};
    bar.count += count;
    this.all.set(from, bar);
    this.total += count;
  }

  // Collects a report's buckets in bars of a quarter of an octave.
  addHistogram({buckets}) {
    for (const [bucket, count] of buckets) {
      const bar = Math.floor(Math.log2(Math.max(1, bucketFrom(bucket))) * BARS_OCTAVE + 1e-9);
      this.add(2 ** (bar / BARS_OCTAVE), 2 ** ((bar + 1) / BARS_OCTAVE), count);
    }
  }

  get used() {
    return [...this.all.values()].filter(({count}) => count > 0).sort((a, b) => a.from - b.from);
  }

  say({from, end, count}) {
    const part = ((count / this.total) * 100).toFixed(1);
    return `${this.text(from)} to ${this.text(this.last(end))}: ${count.toLocaleString('en')} (${part} %)`;
  }

  // A time in ns is told by its bound, a number by the last one below it.
  last(end) {
    return this.text === duration ? end : end - 1;
  }
}

// Converts values to pixels. Bars of one width have a linear axis, others a logarithmic one, on which 0 is an octave
// below 1.
class Axis {
  constructor(bars) {
    this.isLog = new Set(bars.map(({from, end}) => end - from)).size > 1;
    const [low, high] = [bars[0].from, bars.at(-1).end].map((value) => this.at(value));
    const margin = Math.max((high - low) * 0.03, Math.abs(low) * 1e-12, Math.abs(high) * 1e-12);
    this.low = low - margin;
    this.span = high - low + 2 * margin;
  }

  at(value) {
    if (!this.isLog) return value;
    return value < 1 ? value - 1 : Math.log2(value);
  }

  x(value) {
    return PLOT_LEFT + ((this.at(value) - this.low) / this.span) * (PLOT_WIDTH - PLOT_LEFT);
  }

  value(at) {
    if (!this.isLog) return at;
    return at < 0 ? at + 1 : 2 ** at;
  }

  // Round values with room for their labels.
  marks() {
    const [from, to] = [this.low, this.low + this.span].map((at) => this.value(at));
    const values = [];
    if (this.isLog && this.span > 3) {
      if (from <= 0) values.push(0);
      const parts = this.span > 12 ? [1] : [1, 2, 5];
      for (let power = 1; power <= to; power *= 10) values.push(...parts.map((part) => part * power));
    } else {
      const step = niceStep((to - from) / 5);
      const first = Math.ceil(from / step);
      // A step can be too small for the number that it is added to.
      for (let i = 0; i < 20 && (first + i) * step <= to; i++) values.push((first + i) * step + 0);
    }
    let last = -LABEL_ROOM;
    return values.filter((value) => {
      const x = this.x(value);
      if (x < PLOT_LEFT || x > PLOT_WIDTH - 18 || x - last < LABEL_ROOM) return false;
      last = x;
      return true;
    });
  }
}

function svg(tag, attributes, parent, text = '') {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function plotBars(parent, title, bars) {
  const figure = make('figure', {parent}, make('figcaption', {}, `${title} · ${bars.total.toLocaleString('en')}`));
  const {used} = bars;
  if (!used.length) return;
  const axis = new Axis(used);
  const most = used.reduce((a, b) => (b.count > a.count ? b : a));
  const bottom = PLOT_HEIGHT - PLOT_AXIS;
  const y = (count) => bottom - (count / most.count) * (bottom - PLOT_TOP);
  const span = `${bars.text(used[0].from)} to ${bars.text(bars.last(used.at(-1).end))}`;
  const label = plain(`${title}: ${used.length} bars from ${span}. The highest is ${bars.say(most)}`);
  const viewBox = `0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`;
  const plot = svg('svg', {width: PLOT_WIDTH, viewBox, role: 'img', 'aria-label': label}, figure);
  const step = Math.max(1, niceStep(most.count / 2));
  for (let count = 0; count <= most.count; count += step) {
    const at = Math.round(y(count)) + 0.5;
    svg('line', {x1: PLOT_LEFT, x2: PLOT_WIDTH, y1: at, y2: at}, plot);
    svg('text', {x: PLOT_LEFT - 5, y: at + 4, 'text-anchor': 'end'}, plot, compact(count));
  }
  for (const bar of used) {
    const [x, end] = [axis.x(bar.from), axis.x(bar.end)];
    const height = Math.max(1, bottom - y(bar.count));
    const rect = svg('rect', {x, y: bottom - height, width: Math.max(1, end - x - 1), height}, plot);
    svg('title', {}, rect, bars.say(bar));
  }
  for (const value of axis.marks()) {
    const x = axis.x(value);
    svg('line', {x1: x, x2: x, y1: bottom, y2: bottom + 4}, plot);
    svg('text', {x, y: PLOT_HEIGHT - 3, 'text-anchor': 'middle'}, plot, bars.text(value, true));
  }
}

// A range of a row is a column and the next one: "from" and "to" of durations, or "KEY" and "KEY-to" of a kernel's
// histogram. Returns {title, from, to, count, groups, text}: names of members of a row; a row of the same `groups`
// belongs to the same histogram.
function rangesOf({columns, rows}) {
  const keys = Object.keys(rows[0] || {});
  const counts = columns.findIndex(({kind}) => kind === 'count');
  if (keys.length !== columns.length) return [];
  const isRange = (i) => {
    const [a, b] = [columns[i], columns[i + 1]];
    if (a.kind === 'time') return a.name === 'from' && b.name === 'to' && b.kind === 'time';
    return a.kind === 'number' && b.kind === 'number' && b.name === `${a.name}-to`;
  };
  const number = (value, isShort) => (isShort ? compact(value) : value.toLocaleString('en'));
  return keys.slice(0, Math.max(0, counts - 1)).flatMap((key, i) => {
    if (!isRange(i)) return [];
    const groups = keys.slice(0, counts).filter((_, k) => k !== i && k !== i + 1);
    const isTime = columns[i].kind === 'time';
    const title = isTime ? 'distribution' : columns[i].name;
    return [{title, from: key, to: keys[i + 1], count: keys[counts], groups, text: isTime ? duration : number}];
  });
}

// The plots of one report: of all its rows, or of one.
class Plots {
  constructor(report) {
    this.rows = report.rows;
    this.ranges = rangesOf(report);
    this.columns = Object.keys(this.rows[0] || {}).filter((key) =>
      this.rows.some((row) => isHistogram(row[key]) && row[key].buckets),
    );
    this.isEmpty = !this.ranges.length && !this.columns.length;
    // Whether a row has a plot of its own.
    this.hasParts = this.columns.length > 0 || this.ranges.some(({groups}) => groups.length);
    this.element = make('div', {className: 'plots'});
    this.show(null);
  }

  show(chosen) {
    this.element.replaceChildren();
    for (const range of this.ranges) this.putRange(range, chosen);
    for (const column of this.columns) this.putColumn(column, chosen);
  }

  putRange({title, from, to, count, groups, text}, chosen) {
    const bars = new Bars(text);
    for (const row of this.rows)
      if (!chosen || groups.every((key) => row[key] === chosen[key])) bars.add(row[from], row[to] + 1, row[count]);
    const name = chosen && groups.length ? ` of ${groups.map((key) => chosen[key]).join(', ')}` : '';
    plotBars(this.element, shorten(`${title}${name}`, NAME_SHOWN), bars);
  }

  putColumn(column, chosen) {
    const bars = new Bars(duration);
    for (const row of chosen ? [chosen] : this.rows)
      if (isHistogram(row[column]) && row[column].buckets) bars.addHistogram(row[column]);
    const [name] = chosen ? Object.values(chosen) : ['all rows'];
    plotBars(this.element, shorten(`${column.replace(/_/g, ' ')} of ${name}`, NAME_SHOWN), bars);
  }
}
