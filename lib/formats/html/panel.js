// SPDX-License-Identifier: LGPL-2.1-or-later
// A list of rows that scrolls. Its canvas has the size of the visible part, and stays there.

class Panel {
  constructor(model, rows, id) {
    this.rows = rows;
    this.element = make('div', {parent: document.body, id, className: 'rows', tabIndex: 0});
    this.spacer = make('div', {parent: this.element});
    this.canvas = make('canvas', {parent: this.spacer});
    this.painter = new Painter(model, rows, this.canvas);
  }

  get top() {
    return this.element.scrollTop;
  }

  set top(y) {
    this.element.scrollTop = y;
  }

  get height() {
    return this.element.clientHeight;
  }

  resize(width, height, ratio) {
    this.painter.resize(width, height, ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  place() {
    this.spacer.style.height = `${Math.max(this.rows.height, this.height)}px`;
  }

  // Scrolls as little as possible, or to the middle.
  reveal(row, middle = false) {
    const shown = this.rows.shown(row);
    if (!shown) return;
    const {height} = this;
    const from = shown.y;
    const to = shown.y + Math.min(shown.height, height);
    if (middle) this.top = from - (height - Math.min(shown.height, height)) / 2;
    else if (from < this.top) this.top = from - 4;
    else if (to > this.top + height) this.top = to - height + 4;
  }

  // Returns the item at a place of the canvas; its row is the one that all lists share.
  hit(x, y) {
    const hit = this.painter.hit(x, y, this.top);
    return hit && {...hit, row: hit.row.source || hit.row};
  }
}

// The rows that people pinned, above the others.
class PinnedRows extends RowList {
  constructor() {
    super();
    this.rows = [];
    this.place();
  }

  set(rows) {
    for (const row of this.rows) row.pinned = false;
    for (const row of rows) row.pinned = true;
    this.rows = [...new Set(rows)];
    this.place();
  }

  toggle(row) {
    const at = this.rows.indexOf(row);
    if (at < 0) this.rows.push(row);
    else this.rows.splice(at, 1);
    row.pinned = at < 0;
    this.place();
  }

  place() {
    this.begin();
    for (const row of this.rows) {
      const number = row.cpu && ownCpu(row.host, row.cpu.number);
      const own = row.cpu && !row.label.startsWith('CPU') ? `CPU ${number} ${row.label}` : row.label;
      const label = withHost(row.host, own);
      this.put(row, {...row, label, sub: false, source: row});
    }
  }
}
