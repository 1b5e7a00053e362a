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

function averageOf({count, sum_ns: sum}) {
  return count ? sum / count : 0;
}

// Returns the number by which a cell is sorted: what is not known comes last.
function rankOf(value, part) {
  if (value === null) return -Number.MAX_VALUE;
  if (!isHistogram(value)) return +value;
  return part ? value[`${PARTS[part - 1]}_ns`] : averageOf(value);
}

// One cell of a report's table: a text, or several of a histogram.
function cellsOf(key, value) {
  if (value === null) return ['?'];
  if (isHistogram(value)) {
    return [averageOf(value), ...PARTS.map((part) => value[`${part}_ns`])].map((ns) => (value.count ? duration(ns) : ''));
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
  constructor(viewer) {
    this.viewer = viewer;
    const {about} = viewer.model;
    const report = about && about.report;
    this.all = report && report.version === REPORT_VERSION ? report.reports : [];
  }

  put(parent) {
    for (const report of this.all) this.putReport(make('div', {parent}), report);
  }

  putReport(parent, report) {
    const {name, rows, notes} = report;
    make('h2', {parent}, name);
    const plots = new Plots(report);
    if (!plots.isEmpty) parent.append(plots.element);
    if (!rows.length) make('div', {parent}, 'no rows');
    else this.putRows(make('table', {parent}), rows, plots);
    for (const note of notes) make('div', {parent}, note);
  }

  // A click on a row, or its button, plots its histograms alone, another one those of all rows.
  putRows(table, rows, plots) {
    const head = make('tr', {parent: table});
    const lines = rows.map((row) => ({row, tr: this.putRow(table, row, plots)}));
    for (const [key, value] of Object.entries(rows[0])) {
      headsOf(key, value).forEach((text, part) => {
        const th = make('th', {parent: head, className: typeof value === 'string' ? '' : 'number', scope: 'col'});
        make('button', {parent: th, onclick: () => this.sort(table, th, lines, key, part)}, text);
      });
    }
    if (plots.hasParts) make('th', {parent: head, scope: 'col'}, 'plot');
  }

  putRow(table, row, plots) {
    const tr = make('tr', {parent: table, className: plots.hasParts ? 'plotted' : ''});
    if (plots.hasParts) tr.onclick = () => this.choose(table, tr, plots, row);
    for (const [key, value] of Object.entries(row)) {
      if (isMoment(key)) this.putMoment(tr, value, row);
      else this.putCells(tr, key, value, row);
    }
    if (plots.hasParts) this.putPlotButton(tr, row);
    return tr;
  }

  // Sorts by a column: texts by the alphabet, numbers from the greatest.
  sort(table, th, lines, key, part) {
    const isText = typeof lines[0].row[key] === 'string';
    const value = ({row}) => rankOf(row[key], part);
    const compare = (a, b) => (isText ? String(a.row[key]).localeCompare(String(b.row[key])) : value(b) - value(a));
    for (const other of th.parentNode.children) other.removeAttribute('aria-sort');
    th.setAttribute('aria-sort', isText ? 'ascending' : 'descending');
    table.append(...lines.sort(compare).map(({tr}) => tr));
  }

  putCells(tr, key, value, row) {
    const place = this.placeOf(key, row);
    for (const text of cellsOf(key, value)) {
      const td = make('td', {parent: tr, className: typeof value === 'string' ? '' : 'number'});
      if (place) this.link(td, text, () => this.viewer.goToRow(place));
      else td.append(plain(text));
      if (key === 'share_permille') this.putShare(td, value);
    }
  }

  // For keys. A click on it is one on the row.
  putPlotButton(tr, row) {
    const button = make('button', {parent: make('td', {parent: tr})}, 'plot');
    button.setAttribute('aria-label', plain(`plot ${Object.values(row)[0]}`));
    button.setAttribute('aria-pressed', 'false');
  }

  // A bar behind the number.
  putShare(td, permille) {
    td.classList.add('share');
    td.style.backgroundSize = `${permille / 10}% 100%`;
  }

  // Returns the thread or CPU that a cell names, if the picture has a row of it: {tid} or {cpu}.
  placeOf(key, row) {
    const {rows} = this.viewer;
    if (/(^|_)cpu$/.test(key)) return rows.ofCpu(row[key]) ? {cpu: row[key]} : null;
    const tid = /(^|_)tid$/.test(key) ? row[key] : key === 'task' ? row.tid : row[`${key}_tid`];
    return rows.ofThread(tid) ? {tid} : null;
  }

  // A click on it does not choose the row.
  link(parent, text, go) {
    const onclick = (event) => {
      event.stopPropagation();
      go();
    };
    return make('button', {parent, onclick}, text);
  }

  choose(table, tr, plots, row) {
    const old = table.querySelector('.chosen');
    const mark = (line, isChosen) => {
      line.classList.toggle('chosen', isChosen);
      line.lastChild.firstChild.setAttribute('aria-pressed', isChosen);
    };
    if (old) mark(old, false);
    if (old !== tr) mark(tr, true);
    plots.show(old === tr ? null : row);
  }

  putMoment(tr, ns, row) {
    const td = make('td', {parent: tr, className: 'number'});
    if (!ns) return;
    const {model} = this.viewer;
    const t = ns - Math.max(model.base, 0) * 1e9;
    this.link(td, absolute(model, t), () => this.viewer.goToMoment(t, row));
  }
}
