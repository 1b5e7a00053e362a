// SPDX-License-Identifier: LGPL-2.1-or-later
// The controls of the rows: a filter, the order of threads, and whether blank rows are hidden.

const SETTLE_MS = 200; // blank rows are hidden when the view rests

class RowBar {
  constructor(viewer, parent) {
    this.viewer = viewer;
    this.hides = false;
    this.filter = make('input', {
      parent,
      type: 'search',
      placeholder: 'rows: /name/, pid, cpu1',
      spellcheck: false,
      id: 'filter',
    });
    this.filter.setAttribute('aria-label', 'filter rows by /name/, pid or CPU');
    this.filter.addEventListener('input', () => this.apply());
    this.filter.addEventListener('keydown', ({key}) => {
      if (key === 'Enter' || key === 'Escape') viewer.scroll.focus();
    });
    this.order = make('select', {parent, id: 'order', title: 'order of threads'});
    this.order.setAttribute('aria-label', 'order of threads');
    make('option', {parent: this.order, value: ''}, 'by process');
    for (const {name} of THREAD_ORDERS) make('option', {parent: this.order, value: name}, `by ${name}`);
    this.order.addEventListener('change', () => this.sort());
    const title = 'hide rows that are blank in view (b)';
    this.blank = make('button', {parent, title, onclick: () => this.toggleBlank()}, 'blank rows');
    this.sync();
  }

  focus() {
    this.filter.focus();
    this.filter.select();
  }

  apply() {
    const {rows} = this.viewer;
    const filter = new RowFilter(this.filter.value);
    rows.filter = filter.terms.length ? filter : null;
    this.filter.title = filter.error;
    this.filter.setAttribute('aria-invalid', String(Boolean(filter.error)));
    this.viewer.placeAgain();
  }

  sort() {
    this.viewer.rows.setOrder(THREAD_ORDERS.find(({name}) => name === this.order.value) || null);
    this.viewer.placeAgain();
  }

  // An order that does not exist is that by process.
  restore(filter, order) {
    this.filter.value = filter;
    this.order.value = THREAD_ORDERS.some(({name}) => name === order) ? order : '';
    this.apply();
    this.sort();
  }

  toggleBlank() {
    this.hides = !this.hides;
    this.hideBlank();
    this.sync();
  }

  // Called when the view has moved.
  onMove() {
    if (!this.hides) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hideBlank(), SETTLE_MS);
  }

  // The row at the top of the window stays there.
  hideBlank() {
    const {viewer} = this;
    const {from, to} = viewer.painter;
    viewer.rows.inSight = this.hides ? {from, to} : null;
    viewer.placeAgain();
  }

  // A search can make rows visible that were filtered out.
  sync() {
    if (!this.viewer.rows.filter) this.filter.value = '';
    this.blank.setAttribute('aria-pressed', String(this.hides));
  }
}
