// SPDX-License-Identifier: LGPL-2.1-or-later
// The page's two blocks of data, read while the browser still loads the file.

const SOURCE_PIECE = 1 << 20; // characters of one piece of text
const NEXT_ELEMENT = '#-'; // a line of the kernel's text that begins in one element and ends in the next
const READ_MS = 12; // at a time; the browser goes on loading in between
const LOOK_MS = 8; // between two looks for more text
// Characters of a block that stay as they are: an ordinary trace is not packed. Shorter pieces are not worth it.
const PLAIN_MOST = 1 << 24;
const PACKED_LEAST = 1 << 12;

// A block's whole lines, in pieces. Of a long text all but its beginning is packed as it comes. Only a line NEXT_ELEMENT
// has its end in the next piece: so an element's text is a piece, of which the browser makes no copy.
class TextBlock {
  constructor(packer) {
    this.packer = packer;
    this.pieces = []; // texts, or packed bytes
    this.starts = []; // where each piece begins, in characters of the block
    this.length = 0;
    this.rest = ''; // a line whose end is not here yet
  }

  add(text) {
    if (!this.rest && text.length <= SOURCE_PIECE && (text.endsWith('\n') || text.endsWith(`\n${NEXT_ELEMENT}`)))
      this.put(text);
    else this.addPart(text);
  }

  addPart(text) {
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
        if (this.rest === NEXT_ELEMENT) this.end();
        return;
      }
      this.put(text.slice(at, end));
      at = end;
    }
  }

  put(piece) {
    const {length} = piece;
    const isPacked = this.length >= PLAIN_MOST && length >= PACKED_LEAST && length <= SOURCE_PIECE;
    // The browser's text may be a hundred times longer: a part of it would keep it.
    this.pieces.push(isPacked ? this.packer.pack(piece) : own(piece));
    this.starts.push(this.length);
    this.length += length;
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

  piece(i) {
    const piece = this.pieces[i];
    return typeof piece === 'string' ? piece : this.packer.unpack(piece);
  }

  slice(from, to = this.length) {
    let text = '';
    for (let i = Math.max(0, this.pieceAt(from)); i < this.pieces.length && this.starts[i] < to; i++)
      text += this.piece(i).slice(Math.max(0, from - this.starts[i]), to - this.starts[i]);
    return text;
  }

  // Returns the line that begins at `at`, without its end.
  line(at) {
    const i = this.pieceAt(at);
    if (i < 0) return '';
    const piece = this.piece(i);
    const end = piece.indexOf('\n', at - this.starts[i]);
    return piece.slice(at - this.starts[i], end < 0 ? undefined : end);
  }
}

class Source {
  // onRead() is called after each stretch of work. It tells whether there is something to see, so that the rest can
  // wait until the file is loaded: what the browser has read it copies while it waits for its turn.
  constructor(model, onRead) {
    this.model = model;
    this.onRead = onRead;
    this.blocks = []; // {isText, text, ended, done}; done: pieces that the model has read
    this.last = null; // the last element of them
    this.pause = makePause();
    this.isShown = false;
    this.loaded = false;
  }

  // Reads both blocks in their order. Whether the file was cut is in the model.
  async load() {
    // The browser tells of an element as soon as it has read it, in the midst of a long stretch of such work.
    const observer = new MutationObserver(() => this.take());
    observer.observe(document.body, {childList: true});
    while (!this.loaded) {
      this.loaded = document.readyState !== 'loading';
      this.take();
      await this.read();
      if (!this.loaded) await sleep(LOOK_MS);
    }
    observer.disconnect();
    // In a complete file at least a newline follows the second block.
    if (this.blocks.length !== 2 || !this.last.nextSibling) this.model.cut = true;
    this.model.endMore();
  }

  // Takes the text that the browser has put into the blocks' elements, and removes those that are complete. The browser
  // goes on with the last text node, which means to copy it, or makes another one. Removed nodes keep their texts until
  // it collects garbage, so these are emptied; Chromium's script elements keep a copy, which textContent replaces.
  take() {
    for (const element of document.querySelectorAll('script.trace-data, script.trace-more')) {
      // The first picture needs what there is; later, a whole element is less work.
      if (this.isShown && !this.loaded && !element.nextSibling) return;
      const {text} = this.enter(element.classList.contains('trace-data'));
      while (element.firstChild) {
        text.add(element.firstChild.nodeValue);
        element.firstChild.nodeValue = '';
        element.firstChild.remove();
      }
      element.textContent = '';
      if (this.last && this.last !== element) this.last.remove();
      this.last = element;
    }
    if (this.loaded) this.end();
  }

  // Returns the block of an element. Another one ends with it.
  enter(isText) {
    const last = this.blocks.at(-1);
    if (last && last.isText === isText) return last;
    this.end();
    this.blocks.push({isText, text: isText ? this.model.text : this.model.more, ended: false, done: 0});
    return this.blocks.at(-1);
  }

  end() {
    const block = this.blocks.at(-1);
    if (!block || block.ended) return;
    block.ended = true;
    block.text.end();
  }

  // Until the file is loaded, reads only as much as the first picture needs.
  async read() {
    const {model} = this;
    for (const block of this.blocks) {
      for (const {text} = block; block.done < text.pieces.length; block.done++) {
        if (this.isShown && !this.loaded) return;
        const [piece, start] = [text.piece(block.done), text.starts[block.done]];
        await this.work(block.isText ? model.readText(piece, start) : model.readMore(piece, start));
      }
      if (!block.ended) return;
    }
  }

  // Runs a generator, with pauses in which the browser works.
  async work(generator) {
    for (;;) {
      if (!this.until) this.until = performance.now() + READ_MS;
      if (generator.next().done) return;
      if (performance.now() < this.until) continue;
      this.isShown = this.onRead();
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
