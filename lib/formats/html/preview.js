// SPDX-License-Identifier: LGPL-2.1-or-later
// The beginning of a long trace as a picture, while the rest is read.

const PREVIEW_EVENTS = 10000;
const PREVIEW_AFTER_MS = 150; // a short trace is shown at once

class Preview {
  constructor() {
    this.element = make('div', {id: 'wait'});
    // Not at the end: there the browser is adding what it reads.
    document.body.prepend(this.element);
    this.says = make('p', {parent: this.element});
    make('progress', {parent: this.element});
    this.began = performance.now();
    this.canvas = null;
  }

  // Called after each stretch of reading. Returns whether there is a picture.
  show(model, dark) {
    const read = model.time.length + model.elements.length;
    const beginning = this.canvas ? ' This is its beginning.' : '';
    this.says.textContent = `Reading the trace: ${read.toLocaleString('en')} events …${beginning}`;
    if (this.canvas || read < PREVIEW_EVENTS || performance.now() - this.began < PREVIEW_AFTER_MS)
      return this.canvas !== null;
    this.element.classList.add('small');
    this.canvas = make('canvas');
    this.element.after(this.canvas);
    this.paint(Preview.beginning(model), dark);
    this.painted = performance.now();
    return true;
  }

  // Returns a model of the first events.
  static beginning(model) {
    const part = new Model();
    let left = PREVIEW_EVENTS;
    for (const [block, read] of [
      [model.text, (piece, start) => part.readText(piece, start)],
      [model.more, (piece, start) => part.readMore(piece, start)],
    ]) {
      for (let i = 0; i < block.pieces.length && left > 0; i++) {
        const before = part.time.length + part.elements.length;
        // A generator yields now and then, so that the work can be ended.
        for (const work = read(block.piece(i), block.starts[i]); !work.next().done;)
          if (part.time.length + part.elements.length - before > left) break;
        left -= part.time.length + part.elements.length - before;
      }
    }
    for (const work = part.seal(); !work.next().done;);
    return part;
  }

  paint(model, dark) {
    const {canvas} = this;
    const painter = new Painter(model, new Rows(model), canvas);
    const width = window.innerWidth;
    const height = window.innerHeight - canvas.getBoundingClientRect().top;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    painter.setTheme(new Theme(dark));
    painter.resize(width, height, window.devicePixelRatio || 1);
    painter.from = model.firstTime;
    painter.to = Math.max(model.lastTime, model.firstTime + 1000);
    painter.paint(0, {});
  }

  remove() {
    this.element.remove();
    if (this.canvas) this.canvas.remove();
  }
}
