// SPDX-License-Identifier: LGPL-2.1-or-later
// The page's two blocks of data, read while the browser still loads the file.

const SOURCE_PIECE = 1 << 20; // characters of one piece of text
const READ_MS = 12; // at a time; the browser goes on loading in between
const LOOK_MS = 8; // between two looks for more text

// A block's whole lines, in pieces. Its text is never copied.
class TextBlock {
  constructor() {
    this.pieces = [];
    this.starts = []; // of the pieces, in characters of the block
    this.length = 0;
    this.rest = ''; // a line whose end is not here yet
  }

  add(text) {
    let at = 0;
    if (this.rest) {
      at = text.indexOf('\n') + 1;
      if (at) this.put(this.rest + text.slice(0, at));
      this.rest = at ? '' : this.rest + text;
      if (!at) return;
    }
    while (at < text.length) {
      const far = text.lastIndexOf('\n', at + SOURCE_PIECE) + 1;
      const end = far > at ? far : text.indexOf('\n', at) + 1;
      if (!end) {
        this.rest = text.slice(at);
        return;
      }
      this.put(text.slice(at, end));
      at = end;
    }
  }

  put(piece) {
    this.pieces.push(piece);
    this.starts.push(this.length);
    this.length += piece.length;
  }

  // At the block's end: an incomplete line is one, too.
  end() {
    if (this.rest) this.put(this.rest);
    this.rest = '';
  }

  // Returns the number of the piece with the character at `at`.
  pieceAt(at) {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (this.starts[mid] <= at) low = mid + 1;
      else high = mid;
    }
    return low - 1;
  }

  slice(from, to = this.length) {
    let text = '';
    for (let i = Math.max(0, this.pieceAt(from)); i < this.pieces.length && this.starts[i] < to; i++)
      text += this.pieces[i].slice(Math.max(0, from - this.starts[i]), to - this.starts[i]);
    return text;
  }

  // Returns the line that begins at `at`, without its end.
  line(at) {
    const i = this.pieceAt(at);
    if (i < 0) return '';
    const end = this.pieces[i].indexOf('\n', at - this.starts[i]);
    return this.pieces[i].slice(at - this.starts[i], end < 0 ? undefined : end);
  }
}

class Source {
  // onRead(part) is called after each stretch of work, with the part of the file that was read.
  constructor(model, onRead) {
    this.model = model;
    this.onRead = onRead;
    this.blocks = [];
    this.pause = makePause();
  }

  // Reads both blocks in their order. Whether the file was cut is in the model.
  async load() {
    let block = null;
    while ((block = await this.next())) {
      this.blocks.push(block);
      const isText = block.classList.contains('trace-data');
      const {model} = this;
      await this.readBlock(block, isText ? model.text : model.more, (piece, start) =>
        isText ? model.readText(piece, start) : model.readMore(piece, start),
      );
    }
    // In a complete file at least a newline follows the second block.
    if (this.blocks.length !== 2 || !this.blocks[1].nextSibling) this.model.cut = true;
    this.model.endMore();
  }

  static isLoaded() {
    return document.readyState !== 'loading';
  }

  // Returns the next block, or null once the file is loaded and has no more.
  async next() {
    for (;;) {
      const loaded = Source.isLoaded();
      const found = document.querySelectorAll('script.trace-data, script.trace-more')[this.blocks.length];
      if (found || loaded) return found || null;
      await sleep(LOOK_MS);
    }
  }

  async readBlock(block, text, read) {
    let done = 0;
    for (;;) {
      const ended = Source.isLoaded() || block.nextSibling;
      // The browser adds to the last node, which means to copy it, or makes another one.
      while (block.firstChild) {
        text.add(block.firstChild.data);
        block.firstChild.remove();
      }
      if (ended) text.end();
      for (; done < text.pieces.length; done++) await this.work(read(text.pieces[done], text.starts[done]));
      if (ended) return;
      await sleep(LOOK_MS);
    }
  }

  // Runs a generator, with pauses in which the browser works.
  async work(generator) {
    for (;;) {
      if (!this.until) this.until = performance.now() + READ_MS;
      if (generator.next().done) return;
      if (performance.now() < this.until) continue;
      this.onRead();
      await this.pause();
      this.until = 0;
    }
  }
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// Returns a function whose promise the browser fulfils after its other work; each fourth time after a timer.
function makePause() {
  const channel = new MessageChannel();
  let resume = null;
  let count = 0;
  channel.port1.onmessage = () => resume();
  return () =>
    new Promise((resolve) => {
      resume = resolve;
      if (++count % 4) channel.port2.postMessage(0);
      else setTimeout(resolve);
    });
}
