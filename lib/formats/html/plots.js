// SPDX-License-Identifier: LGPL-2.1-or-later
// Histograms of a report's tables as plots: durations on a logarithmic axis.

const PLOT_WIDTH = 380;
const PLOT_HEIGHT = 96;
const PLOT_AXIS = 16; // pixels below the bars
const BARS_OCTAVE = 4;
const EXACT_BUCKETS = 128; // docs/report.md: below, each value has a bucket; above, each power of two has 64

function bucketFrom(bucket) {
  if (bucket < EXACT_BUCKETS) return bucket;
  return ((bucket & 63) + 64) * 2 ** ((bucket >>> 6) - 1);
}

// Collects values in bars of a quarter of an octave.
class Bars {
  constructor() {
    this.counts = new Map();
    this.total = 0;
  }

  add(ns, count) {
    const bar = Math.floor(Math.log2(Math.max(1, ns)) * BARS_OCTAVE + 1e-9);
    this.counts.set(bar, (this.counts.get(bar) || 0) + count);
    this.total += count;
  }

  addHistogram({buckets}) {
    for (const [bucket, count] of buckets) this.add(bucketFrom(bucket), count);
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
  const numbers = [...bars.counts.keys()];
  if (!numbers.length) return;
  const first = Math.min(...numbers) - 1;
  const last = Math.max(...numbers) + 2;
  const most = Math.max(...bars.counts.values());
  const height = PLOT_HEIGHT - PLOT_AXIS;
  const x = (bar) => ((bar - first) / (last - first)) * PLOT_WIDTH;
  const plot = svg('svg', {width: PLOT_WIDTH, height: PLOT_HEIGHT, role: 'img', 'aria-label': title}, figure);
  for (const [bar, count] of bars.counts) {
    const size = Math.max(1, (count / most) * (height - 4));
    const rect = svg(
      'rect',
      {x: x(bar) + 0.5, y: height - size, width: Math.max(1, x(bar + 1) - x(bar) - 1), height: size},
      plot,
    );
    const [from, to] = [bar, bar + 1].map((b) => duration(2 ** (b / BARS_OCTAVE)));
    const part = ((count / bars.total) * 100).toFixed(1);
    svg('title', {}, rect, `${from} to ${to}: ${count.toLocaleString('en')} (${part} %)`);
  }
  svg('line', {x1: 0, x2: PLOT_WIDTH, y1: height + 0.5, y2: height + 0.5}, plot);
  for (let power = 0; power < 13; power++) {
    const at = x(Math.log2(10 ** power) * BARS_OCTAVE);
    if (at < 12 || at > PLOT_WIDTH - 16) continue;
    svg('line', {x1: at, x2: at, y1: height, y2: height + 4}, plot);
    svg('text', {x: at, y: PLOT_HEIGHT - 2, 'text-anchor': 'middle'}, plot, duration(10 ** power));
  }
}

// The plots of one report: of all its rows, or of one.
class Plots {
  constructor(parent, rows) {
    this.rows = rows;
    this.element = make('div', {parent, className: 'plots'});
    this.show(null);
  }

  // Whether the report has something to plot.
  static fits(rows) {
    return rows.length > 0 && (Plots.isDistribution(rows[0]) || Plots.columns(rows).length > 0);
  }

  // A table like runq's is one histogram.
  static isDistribution(row) {
    return 'from_ns' in row && 'to_ns' in row && 'count' in row;
  }

  static columns(rows) {
    return Object.keys(rows[0]).filter((key) => rows.some((row) => isHistogram(row[key]) && row[key].buckets));
  }

  show(chosen) {
    const rows = chosen ? [chosen] : this.rows;
    this.element.replaceChildren();
    if (Plots.isDistribution(this.rows[0])) {
      const bars = new Bars();
      for (const {from_ns: from, to_ns: to, count} of this.rows) bars.add(Math.sqrt(Math.max(1, from) * to), count);
      plotBars(this.element, 'distribution', bars);
      return;
    }
    for (const column of Plots.columns(this.rows)) {
      const bars = new Bars();
      for (const row of rows) if (isHistogram(row[column]) && row[column].buckets) bars.addHistogram(row[column]);
      const [name] = chosen ? Object.values(chosen) : ['all rows'];
      plotBars(this.element, `${column.replace(/_/g, ' ')} of ${name}`, bars);
    }
  }
}
