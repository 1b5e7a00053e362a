// SPDX-License-Identifier: LGPL-2.1-or-later
// The tables of a selection's sums.

const SUMS_HEAD = {
  sum: 'sum',
  part: 'of a CPU',
  count: 'count',
  mean: 'mean',
  p50: 'p50',
  p99: 'p99',
  max: 'longest',
};

class SumsView {
  // go(t, place) shows the time t in the row of a thread ({tid}) or CPU ({cpu}).
  constructor(model, go) {
    this.model = model;
    this.go = go;
    this.flame = null;
    this.chosen = 'times';
  }

  close() {
    if (this.flame) this.flame.close();
    this.flame = null;
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
    put('slices by name', 'slices', 'sum count p50 p99 max', name);
    this.putEvents(tables, sums);
    if (!sums.counters.length) return;
    const rows = sums.counters.map(([label, ...numbers]) => [label, ...numbers.map((n) => n.toLocaleString('en'))]);
    addTable(tables, 'counters', ['', 'least', 'most', 'values'], rows);
  }

  putTable(parent, caption, sums, key, columns, labelOf) {
    const all = [...sums.tables[key]].sort(([, a], [, b]) => b.ns - a.ns || b.count - a.count);
    if (!all.length) return;
    const span = sums.to - sums.from;
    const keys = columns.split(' ');
    const table = make('table', {parent}, make('caption', {}, caption));
    const head = ['', ...keys.map((column) => SUMS_HEAD[column])];
    make('tr', {parent: table}, ...head.map((text, i) => make('th', {className: i ? 'number' : ''}, text)));
    for (const [of, durations] of all.slice(0, TABLE_ROWS)) {
      const tr = make('tr', {parent: table}, make('td', {}, labelOf(of)));
      for (const column of keys) make('td', {parent: tr, className: 'number'}, this.cell(column, durations, span));
    }
    if (all.length > TABLE_ROWS) make('tr', {parent: table}, make('td', {}, `and ${all.length - TABLE_ROWS} more`));
  }

  cell(column, d, span) {
    switch (column) {
      case 'sum':
        return duration(d.ns);
      case 'part':
        return `${((d.ns / span) * 100).toFixed(1)} %`;
      case 'count':
        return d.count.toLocaleString('en');
      case 'mean':
        return duration(d.ns / d.count);
      case 'p50':
        return duration(d.quantile(0.5));
      case 'p99':
        return duration(d.quantile(0.99));
      default:
        return make(
          'button',
          {title: absolute(this.model, d.at), onclick: () => this.go(d.at, d.place)},
          duration(d.max),
        );
    }
  }

  putEvents(parent, {tables}) {
    const all = [...tables.events].sort(([, a], [, b]) => b - a);
    if (!all.length) return;
    const rows = all.slice(0, TABLE_ROWS).map(([name, n]) => [this.model.names[name], n.toLocaleString('en')]);
    if (all.length > TABLE_ROWS) rows.push([`and ${all.length - TABLE_ROWS} more`]);
    addTable(parent, 'events by name', ['', 'count'], rows);
  }
}
