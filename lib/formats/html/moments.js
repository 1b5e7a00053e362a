// SPDX-License-Identifier: LGPL-2.1-or-later
// Moments that people mark: named, measured against each other, and kept in the page's address. Links and pictures of
// what is seen.

const MOMENTS_MAX = 26;
const MOMENT_NAME_MAX = 60;
const FILTER_MAX = 1000;
const MOMENTS_LINE = 22; // pixels of a picture

// Places of the address: times are nanoseconds since the first event. "v=FROM,TO&m=TIME,NAME&m=...&k=ROW,...&
// f=WORDS&o=ORDER&s=FROM,TO,TOP,BOTTOM": pinned rows by their numbers, the filter and the order of the rows, and a
// selection from pixel to pixel of the rows; with ",1" behind it, of the pinned rows.
class Place {
  static spell({view, moments, pins, filter, order, selection}) {
    const parts = [`v=${view.map(Math.round).join(',')}`];
    if (pins.length) parts.push(`k=${pins.join(',')}`);
    for (const {t, name} of moments) parts.push(`m=${Math.round(t)},${Place.encode(name)}`);
    if (filter) parts.push(`f=${Place.encode(filter)}`);
    if (order) parts.push(`o=${Place.encode(order)}`);
    if (selection) parts.push(`s=${selection.map(Math.round).join(',')}`);
    return `#${parts.join('&')}`;
  }

  // Returns what is well formed in the text; nothing else of it is used.
  static read(text) {
    const place = {view: null, moments: [], pins: [], filter: '', order: '', selection: null};
    for (const part of text.replace(/^#/, '').split('&')) {
      const [, key, value] = /^([vkmfos])=(.*)$/.exec(part) || [];
      const numbers = /^-?\d{1,16}(,-?\d{1,16})*$/.test(value || '') ? value.split(',').map(Number) : [];
      const [, time, name] = /^(-?\d{1,16}),(.*)$/.exec(value || '') || [];
      if (key === 'v' && numbers.length === 2 && numbers[0] < numbers[1]) place.view = numbers;
      if (key === 'k') place.pins = numbers;
      if (key === 'f') place.filter = Place.decode(value).slice(0, FILTER_MAX);
      if (key === 'o') place.order = Place.decode(value);
      if (key === 's' && (numbers.length === 4 || numbers.length === 5) && numbers[0] <= numbers[1])
        place.selection = numbers;
      if (key === 'm' && time !== undefined && place.moments.length < MOMENTS_MAX)
        place.moments.push({t: +time, name: [...Place.decode(name)].slice(0, MOMENT_NAME_MAX).join('')});
    }
    return place;
  }

  // Half a character can't be encoded.
  static encode(text) {
    return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
  }

  static decode(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return '';
    }
  }
}

class Moments {
  constructor(viewer, before) {
    this.viewer = viewer;
    this.all = []; // {t, name}, in order of time
    this.bar = make('div', {id: 'moments', hidden: true});
    before.before(this.bar);
    this.toast = make('div', {id: 'toast', parent: document.body, hidden: true});
    this.toast.setAttribute('role', 'status');
    window.addEventListener('hashchange', () => this.restore());
  }

  // Marks the time under the pointer, or the middle of the view.
  add() {
    const {painter} = this.viewer;
    const {pointer} = this.viewer.hover;
    if (this.all.length >= MOMENTS_MAX) return this.say(`${MOMENTS_MAX} moments are all that can be marked`);
    const t = pointer && pointer.x > LABELS_WIDTH ? painter.t(pointer.x) : (painter.from + painter.to) / 2;
    const taken = new Set(this.all.map(({name}) => name));
    const name = Array.from({length: MOMENTS_MAX}, (_, i) => String.fromCharCode(65 + i)).find((n) => !taken.has(n));
    this.all.push({t, name});
    return this.change();
  }

  change() {
    this.all.sort((a, b) => a.t - b.t);
    this.put();
    this.keep();
    this.viewer.resize();
  }

  put() {
    const {viewer} = this;
    const {model} = viewer;
    this.bar.hidden = !this.all.length;
    this.bar.replaceChildren();
    this.all.forEach((moment, i) => {
      const before = this.all[i - 1];
      if (before) make('b', {parent: this.bar}, `+ ${duration(moment.t - before.t)}`);
      const chip = make('span', {parent: this.bar, className: 'moment'});
      const input = make('input', {
        parent: chip,
        value: plain(moment.name),
        size: Math.max(2, moment.name.length),
        maxLength: MOMENT_NAME_MAX,
        onchange: () => {
          moment.name = input.value;
          this.change();
        },
      });
      input.setAttribute('aria-label', 'name of the moment');
      const go = () => viewer.centre(moment.t);
      make(
        'button',
        {parent: chip, title: absolute(model, moment.t), onclick: go},
        duration(moment.t - model.firstTime),
      );
      const remove = () => {
        this.all.splice(this.all.indexOf(moment), 1);
        this.change();
      };
      make('button', {parent: chip, title: 'remove', onclick: remove}, '×');
    });
    if (this.all.length > 2) make('span', {parent: this.bar}, `in all ${duration(this.all.at(-1).t - this.all[0].t)}`);
  }

  spell() {
    const {painter, pins, rows, selection, model, bar} = this.viewer;
    const since = (t) => t - model.firstTime;
    return Place.spell({
      view: [since(painter.from), since(painter.to)],
      moments: this.all.map(({t, name}) => ({t: since(t), name})),
      pins: pins.rows.rows.map((row) => rows.numbered.indexOf(row)),
      filter: rows.filter ? bar.filter.value : '',
      order: bar.order.value,
      selection: selection && [
        since(selection.from),
        since(selection.to),
        selection.top,
        selection.bottom,
        ...(selection.list === pins.rows ? [1] : []),
      ],
    });
  }

  // Writes what is seen into the address, without a new entry of the history.
  keep() {
    this.kept = this.spell();
    window.location.replace(this.kept);
  }

  // Shows what the address tells.
  restore() {
    const {viewer} = this;
    if (window.location.hash === this.kept || window.location.hash.length < 2) return;
    const {view, moments, pins, filter, order, selection} = Place.read(window.location.hash);
    const first = viewer.model.firstTime;
    if (view) viewer.show(first + view[0], first + view[1]);
    this.all = moments.map(({t, name}) => ({t: first + t, name})).sort((a, b) => a.t - b.t);
    this.put();
    const {numbered} = viewer.rows;
    viewer.pins.rows.set(pins.map((number) => numbered[number]).filter(Boolean));
    viewer.bar.restore(filter, order);
    viewer.resize();
    viewer.select(selection && this.restoreSelection(selection));
  }

  restoreSelection([from, to, top, bottom, isPinned]) {
    const {model, pins, rows} = this.viewer;
    const list = isPinned ? pins.rows : rows;
    const times = {from: model.firstTime + from, to: model.firstTime + to};
    const [first, last] = [list.firstBelow(top), list.lastAbove(bottom - 1)];
    const isHeld = first && last && bottom < EVERY_ROW;
    return {...times, top, bottom, list, ...(isHeld ? {first, last} : {})};
  }

  async copyLink() {
    this.keep();
    const link = window.location.href;
    try {
      await navigator.clipboard.writeText(link);
      this.say('the link to this view is copied');
    } catch {
      this.say('the link is in the address bar: the browser does not let this page copy it');
    }
  }

  // Returns a picture of the overview, the ruler and the rows as they are seen, below the moments' times.
  picture() {
    const {head, pins, panel, painter} = this.viewer;
    const canvases = [head.canvas, ...(pins.height ? [pins.canvas] : []), panel.canvas];
    const line = this.all.length ? Math.round(MOMENTS_LINE * painter.ratio) : 0;
    const height = canvases.reduce((sum, canvas) => sum + canvas.height, line);
    const picture = make('canvas', {width: panel.canvas.width, height});
    const c = picture.getContext('2d');
    this.viewer.paint();
    if (line) this.paintTimes(c);
    let y = line;
    for (const canvas of canvases) {
      c.drawImage(canvas, 0, y);
      y += canvas.height;
    }
    return picture;
  }

  paintTimes(c) {
    const {theme, ratio, width} = this.viewer.painter;
    c.save();
    c.scale(ratio, ratio);
    c.fillStyle = theme.raised;
    c.fillRect(0, 0, width, MOMENTS_LINE);
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = theme.text;
    c.fillText(fitText(c, this.words(), width - 16), 8, MOMENTS_LINE / 2);
    c.restore();
  }

  // Returns what the bar says.
  words() {
    const {firstTime} = this.viewer.model;
    return this.all
      .map(({t, name}, i) => {
        const between = i ? `   + ${duration(t - this.all[i - 1].t)}   ` : '';
        return `${between}${plain(name)}: ${duration(t - firstTime)}`;
      })
      .join('');
  }

  savePicture() {
    this.picture().toBlob((blob) => {
      const url = URL.createObjectURL(blob);
      const name = document.title.replace(/[^\w.-]+/g, '-');
      make('a', {href: url, download: `${name}.png`}).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
      this.say(`${name}.png is saved`);
    });
  }

  say(text) {
    this.toast.textContent = text;
    this.toast.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.toast.hidden = true), 3000);
  }

  // Draws the moments over the rows and the ruler.
  paint() {
    const {painter, canvas, pins} = this.viewer;
    const head = this.viewer.head.canvas;
    const {theme} = painter;
    for (const {t, name} of this.all) {
      const x = painter.x(t);
      if (x < LABELS_WIDTH || x > painter.width) continue;
      for (const [element, y] of [
        [canvas, 0],
        [pins.canvas, 0],
        [head, OVERVIEW],
      ]) {
        const c = element.getContext('2d');
        c.fillStyle = theme.found;
        c.fillRect(Math.round(x), y, 1, painter.height);
      }
      const c = head.getContext('2d');
      c.font = `bold ${FONT}`;
      const text = shorten(plain(name), 16);
      const width = c.measureText(text).width + 8;
      c.fillRect(Math.round(x), HEAD - 14, width, 14);
      c.fillStyle = theme.back;
      c.textBaseline = 'middle';
      c.fillText(text, Math.round(x) + 4, HEAD - 7);
    }
  }
}
