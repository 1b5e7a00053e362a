// SPDX-License-Identifier: LGPL-2.1-or-later
// The tables of a selection's sums.

// Columns by name: heading, and value of a Durations.
const SUMS_COLUMNS = {
  sum: {head: 'sum', value: (d) => d.ns},
  alone: {head: 'alone', value: (d) => d.alone},
  part: {head: 'of a CPU', value: (d) => d.ns},
  count: {head: 'count', value: (d) => d.count},
  mean: {head: 'mean', value: (d) => d.ns / d.count},
  p50: {head: 'p50', value: (d) => d.quantile(0.5)},
  p99: {head: 'p99', value: (d) => d.quantile(0.99)},
  max: {head: 'longest', value: (d) => d.max},
};

class SumsView {
  // go(t, place) shows the time t in the row of a thread ({tid}) or CPU ({cpu}).
  constructor(model, go) {
    this.model = model;
    this.go = go;
    this.flame = null;
    this.chosen = 'times';
    this.orders = {slices: 'alone'}; // columns by which tables are sorted, if not by the first
  }

  close() {
    if (this.flame) this.flame.close();
    this.flame = null;
  }

  setTheme(dark) {
    if (this.flame) this.flame.setTheme(dark);
  }

  put(parent, sums, dark) {
    this.close();
    const tabs = make('div', {parent, className: 'tabs'});
    this.parts = {times: make('div', {parent}), samples: make('div', {parent})};
    this.buttons = {};
    if (sums.samples.count) {
      const labels = {times: 'sums', samples: `samples (${sums.samples.count.toLocaleString('en')})`};
      for (const key in labels)
        this.buttons[key] = make('button', {parent: tabs, onclick: () => this.choose(key)}, labels[key]);
      this.flame = new Flame(this.parts.samples, sums.samples, dark);
    }
    this.putTables(make('div', {parent: this.parts.times, className: 'tables'}), sums);
    this.choose(this.chosen);
  }

  // Shows the sums or, if there are any, the samples. The next selection shows the same.
  choose(key) {
    this.chosen = key;
    const shown = this.flame ? key : 'times';
    for (const part in this.parts) this.parts[part].hidden = part !== shown;
    for (const name in this.buttons) this.buttons[name].setAttribute('aria-pressed', name === shown);
  }

  putTables(tables, sums) {
    const {model} = this;
    const name = (i) => model.names[i];
    const put = (caption, key, columns, labelOf) => this.putTable(tables, caption, sums, key, columns, labelOf);
    put('run time by thread', 'cpu', 'sum part count p50 p99 max', (tid) => model.threadName(tid));
    put('run time by CPU', 'cpus', 'sum part count p50 p99 max', (cpu) => model.cpuName(cpu));
    put('waits for a CPU (delay) by thread', 'delays', 'sum count p50 p99 max', (tid) => model.threadName(tid));
    put('thread states', 'states', 'sum count mean max', (state) => STATE_NAMES[state]);
    put('interrupts', 'irqs', 'sum count p50 p99 max', name);
    put('system calls', 'syscalls', 'sum count p50 p99 max', name);
    put('slices by name', 'slices', 'sum alone count p50 p99 max', name);
    this.putEvents(tables, sums);
    if (!model.gaps.isWhole(sums.from, sums.to))
      make('p', {parent: tables}, 'Events are lost in this time. Slices and system calls may have ended before they do here.');
    if (!sums.counters.length) return;
    const rows = sums.counters.map(([label, ...numbers]) => [label, ...numbers.map((n) => n.toLocaleString('en'))]);
    addTable(tables, 'counters', ['', 'least', 'most', 'values'], rows);
  }

  putTable(parent, caption, sums, key, columns, labelOf) {
    const all = [...sums.tables[key]];
    if (!all.length) return;
    const span = sums.to - sums.from;
    const keys = columns.split(' ');
    const table = make('table', {parent});
    const fill = () => {
      const order = this.orders[key] || keys[0];
      const {value} = SUMS_COLUMNS[order];
      all.sort(([, a], [, b]) => value(b) - value(a) || b.count - a.count);
      table.replaceChildren(make('caption', {}, caption));
      const head = make('tr', {parent: table}, make('th', {}));
      for (const column of keys) {
        const choose = () => {
          this.orders[key] = column;
          fill();
        };
        head.append(this.headOf(column, order, choose));
      }
      for (const [of, durations] of all.slice(0, TABLE_ROWS)) {
        const tr = make('tr', {parent: table}, make('td', {}, shortName(labelOf(of))));
        for (const column of keys) make('td', {parent: tr, className: 'number'}, this.cell(column, durations, span));
      }
      if (all.length > TABLE_ROWS) make('tr', {parent: table}, make('td', {}, `and ${all.length - TABLE_ROWS} more`));
    };
    fill();
  }

  // A click on a heading sorts by that column.
  headOf(column, order, onclick) {
    const th = make('th', {className: 'number', scope: 'col'});
    make('button', {parent: th, onclick}, SUMS_COLUMNS[column].head);
    if (column === order) th.setAttribute('aria-sort', 'descending');
    return th;
  }

  cell(column, d, span) {
    const value = SUMS_COLUMNS[column].value(d);
    if (column === 'part') return span ? `${((value / span) * 100).toFixed(1)} %` : '';
    if (column === 'count') return value.toLocaleString('en');
    if (column !== 'max') return duration(value);
    return make('button', {title: absolute(this.model, d.at), onclick: () => this.go(d.at, d.place)}, duration(value));
  }

  putEvents(parent, {tables}) {
    const all = [...tables.events].sort(([, a], [, b]) => b - a);
    if (!all.length) return;
    const rows = all.slice(0, TABLE_ROWS).map(([name, n]) => [this.model.names[name], n.toLocaleString('en')]);
    if (all.length > TABLE_ROWS) rows.push([`and ${all.length - TABLE_ROWS} more`]);
    addTable(parent, 'events by name', ['', 'count'], rows);
  }
}
