// SPDX-License-Identifier: LGPL-2.1-or-later
// The tables of a report that was made with the page: docs/report.md describes their JSON.

const REPORT_VERSION = 1;
const PARTS = ['p50', 'p99', 'max'];

// A column "delay" with a histogram becomes columns "delay avg" to "delay max".
function headsOf(key, value) {
  const label = key.replace(/_(ns|bytes|permille)$/, '').replace(/_/g, ' ');
  return isHistogram(value) ? ['avg', ...PARTS].map((part) => `${label} ${part}`) : [label];
}

function isHistogram(value) {
  return value !== null && typeof value === 'object';
}

// One cell of a report's table: a text, or several of a histogram.
function cellsOf(key, value) {
  if (value === null) return ['?'];
  if (isHistogram(value)) {
    const avg = value.count ? value.sum_ns / value.count : 0;
    return [avg, ...PARTS.map((part) => value[`${part}_ns`])].map((ns) => (value.count ? duration(ns) : ''));
  }
  if (typeof value === 'string') return [value];
  if (key.endsWith('_ns')) return [duration(value)];
  if (key.endsWith('_permille')) return [`${(value / 10).toFixed(1)} %`];
  return [/(^|_)(tid|pid|cpu)$/.test(key) ? String(value) : value.toLocaleString('en')];
}

function isMoment(key) {
  return /(^|_)at_ns$/.test(key);
}

class Tables {
  // go(t, row) shows the time t of the trace, and what the table's row is about.
  constructor(model, go) {
    this.model = model;
    this.go = go;
    const report = model.about && model.about.report;
    this.all = report && report.version === REPORT_VERSION ? report.reports : [];
  }

  put(parent) {
    for (const report of this.all) this.putReport(make('div', {parent}), report);
  }

  putReport(parent, {name, rows, notes}) {
    make('h2', {parent}, name);
    const plots = Plots.fits(rows) ? new Plots(parent, rows) : null;
    if (!rows.length) make('div', {parent}, 'no rows');
    else this.putRows(make('table', {parent}), rows, plots);
    for (const note of notes) make('div', {parent}, note);
  }

  // A click on a row plots its histograms alone, another one those of all rows.
  putRows(table, rows, plots) {
    const head = make('tr', {parent: table});
    for (const [key, value] of Object.entries(rows[0]))
      for (const text of headsOf(key, value))
        make('th', {parent: head, className: typeof value === 'string' ? '' : 'number'}, text);
    for (const row of rows) {
      const tr = make('tr', {parent: table, className: plots ? 'plotted' : ''});
      if (plots) tr.onclick = () => this.choose(table, tr, plots, row);
      for (const [key, value] of Object.entries(row)) {
        if (isMoment(key)) this.putMoment(tr, value, row);
        else
          for (const text of cellsOf(key, value))
            make('td', {parent: tr, className: typeof value === 'string' ? '' : 'number'}, text);
      }
    }
  }

  choose(table, tr, plots, row) {
    const old = table.querySelector('.chosen');
    if (old) old.classList.remove('chosen');
    if (old !== tr) tr.classList.add('chosen');
    plots.show(old === tr ? null : row);
  }

  putMoment(tr, ns, row) {
    const td = make('td', {parent: tr, className: 'number'});
    if (!ns) return;
    const t = ns - Math.max(this.model.base, 0) * 1e9;
    make('button', {parent: td, onclick: () => this.go(t, row)}, absolute(this.model, t));
  }
}
