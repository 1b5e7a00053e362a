// SPDX-License-Identifier: LGPL-2.1-or-later
// The item under the pointer, and its tooltip. The view may move under a pointer that rests.

const TIP_TEXT = 700; // characters

class Hover {
  constructor(viewer) {
    this.viewer = viewer;
    this.pointer = null;
    this.hit = null;
    this.row = null;
    this.rests = false;
    this.tip = make('div', {parent: document.body, id: 'tip', hidden: true});
  }

  point(pointer) {
    this.rests = false;
    this.pointer = pointer && {panel: this.viewer.panel, ...pointer};
    this.sight = null;
    this.viewer.dirty();
  }

  // The view goes to another place: a tooltip there would cover it, until the pointer moves.
  rest() {
    this.rests = true;
    this.tip.hidden = true;
  }

  // Finds the item again if the pointer or the view has moved.
  refresh() {
    const {pointer, viewer} = this;
    const {from, to} = viewer.painter;
    const sight = pointer ? [pointer, from, to, pointer.panel.top, pointer.panel.rows.all] : [];
    if (this.sight && this.sight.length === sight.length && this.sight.every((value, i) => value === sight[i])) return;
    this.sight = sight;
    const found = pointer && pointer.panel.hit(pointer.x, pointer.y);
    this.row = found ? found.row : null;
    this.hit = found && found.from !== undefined ? found : null;
    this.tip.hidden = !this.hit || this.rests;
    if (!this.tip.hidden) this.tell(this.hit, pointer);
  }

  tell(hit, {pageX, pageY}) {
    const {tip} = this;
    const {title, lines, text} = tell(this.viewer.model, hit);
    tip.replaceChildren(make('b', {}, shorten(title, 300)), ...lines.map((line) => make('div', {}, line)));
    if (text) make('pre', {parent: tip}, shorten(text, TIP_TEXT));
    const {width, height} = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(pageX + 14, window.innerWidth - width - 8))}px`;
    const below = pageY + 18;
    tip.style.top = `${Math.max(4, below + height > window.innerHeight ? pageY - height - 10 : below)}px`;
  }
}
