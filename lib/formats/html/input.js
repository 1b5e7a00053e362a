// SPDX-License-Identifier: LGPL-2.1-or-later
// Keyboard, mouse and fingers.

const HOLD_MS = 450; // a finger that rests so long selects
const NEAR = 3; // pixels: less is a click
const NEAR_TOUCH = 8;

// Actions by key; a held key acts in each frame. The help lists these, and runs one whose key is clicked there.
const KEYS = [
  {label: 'W S', text: 'zoom in and out', keys: ['w', 's'], held: true},
  {label: 'A D', text: 'move left and right', keys: ['a', 'd'], held: true},
  {
    label: '← →',
    text: 'move left and right by a step',
    keys: ['arrowleft', 'arrowright'],
    run: (v, {key}) => v.pan(key === 'arrowleft' ? -0.15 : 0.15),
  },
  {label: 'v', text: 'sum up the time in view, in all rows', keys: ['v'], run: (v) => v.selectView()},
  {label: 'z', text: 'zoom to the selection', keys: ['z'], run: (v) => v.showSelected()},
  {label: '0', text: 'show the whole trace', keys: ['0'], run: (v) => v.show(v.whole.from, v.whole.to)},
  {
    label: '/',
    text: 'search; Enter and Shift Enter: go to the next and the previous match',
    keys: ['/'],
    run: (v) => v.finder.focus(),
  },
  {label: 'r', text: 'filter the rows', keys: ['r'], run: (v) => v.bar.focus()},
  {
    label: '[ ]',
    text: 'to the waker; back, or to the thread that was woken',
    keys: ['[', ']'],
    run: (v, {key}) => (key === '[' ? v.walk.toWaker() : v.walk.back()),
  },
  {
    label: 'f F',
    text: 'follow the thread: its next run, its previous run',
    keys: ['f'],
    run: (v, {shiftKey}) => v.walk.follow(shiftKey ? -1 : 1),
  },
  {label: 'k', text: 'keep the row at the top, or no longer', keys: ['k'], run: (v) => v.pinSelected()},
  {label: 'b', text: 'hide rows that are blank in view, or show them', keys: ['b'], run: (v) => v.bar.toggleBlank()},
  {
    label: 'm',
    text: 'mark the moment under the pointer; two of them tell the time between',
    keys: ['m'],
    run: (v) => v.moments.add(),
  },
  {label: 'c', text: 'copy a link to this view, with its moments', keys: ['c'], run: (v) => v.moments.copyLink()},
  {label: 'p', text: 'save a picture (PNG) of this view', keys: ['p'], run: (v) => v.moments.savePicture()},
  {label: 't', text: 'show or hide the report, if the page has one', keys: ['t'], run: (v) => v.toggleTables()},
  {label: '?', text: 'this help', keys: ['?'], run: (v) => v.help.showModal()},
  {label: 'Esc', text: 'clear the selection', keys: ['escape'], run: (v) => v.clear()},
];
const POINTER_HELP = [
  ['wheel', 'scroll; with Ctrl, or two fingers apart on a trackpad: zoom; with Shift: move sideways'],
  ['drag', 'select a time and rows; with Shift, or on the ruler: move'],
  [
    'click',
    'show details; on a name: sum up the thread, or pin the row at its right end; on a heading: open or close it',
  ],
  ['touch', 'drag: move; two fingers: zoom; hold, then drag: select'],
];

class Input {
  constructor(viewer) {
    this.viewer = viewer;
    this.held = new Set();
    this.fingers = new Map();
    this.actions = new Map(KEYS.flatMap((entry) => entry.keys.map((key) => [key, entry])));
  }

  listen() {
    const {viewer} = this;
    document.addEventListener('keydown', (event) => this.onKey(event));
    document.addEventListener('keyup', (event) => this.held.delete(event.key.toLowerCase()));
    window.addEventListener('blur', () => this.held.clear());
    for (const panel of [viewer.panel, viewer.pins]) {
      this.listenTo(panel.canvas, panel);
      panel.element.addEventListener('scroll', () => viewer.dirty());
      panel.canvas.addEventListener('pointermove', (event) => this.onMove(event, panel));
      panel.canvas.addEventListener('pointerleave', () => viewer.point(null));
    }
    this.listenTo(viewer.head.canvas, null);
  }

  listenTo(canvas, panel) {
    canvas.addEventListener('wheel', (event) => this.onWheel(event), {passive: false});
    canvas.addEventListener('pointerdown', (event) => this.onDown(event, panel));
  }

  onKey(event) {
    if (event.target.closest('input, select, dialog') || event.ctrlKey || event.metaKey) return;
    // Some keyboards need it for a bracket.
    if (event.altKey && !'[]'.includes(event.key)) return;
    const key = event.key.toLowerCase();
    const action = this.actions.get(key);
    if (!action) return;
    if (action.held) {
      this.held.add(key);
      this.viewer.dirty();
      return;
    }
    // A space or Enter on a button is the browser's.
    event.preventDefault();
    action.run(this.viewer, {key, shiftKey: event.shiftKey});
  }

  moveByKeys(ms) {
    const {viewer, held} = this;
    const rate = ms / 1000;
    const x = viewer.hover.pointer ? viewer.hover.pointer.x : viewer.painter.width / 2;
    if (held.has('w')) viewer.zoom(0.15 ** rate, x);
    if (held.has('s')) viewer.zoom((1 / 0.15) ** rate, x);
    if (held.has('a')) viewer.pan(-0.9 * rate);
    if (held.has('d')) viewer.pan(0.9 * rate);
  }

  onWheel(event) {
    const {viewer} = this;
    const unit = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.shiftKey ? event.deltaY + event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      // A trackpad sends small steps, which are a scale in percent.
      const isPinch = event.deltaMode === 0 && Math.abs(event.deltaY) < 50 && event.deltaY % 1 !== 0;
      viewer.zoom((isPinch ? 1.01 : 1.0025) ** (event.deltaY * unit), event.offsetX);
    } else if (Math.abs(sideways) > Math.abs(event.deltaY) || (event.shiftKey && sideways)) {
      viewer.pan((sideways * unit) / viewer.painter.width);
    } else {
      return; // the browser scrolls
    }
    event.preventDefault();
  }

  onMove(event, panel) {
    if (event.pointerType === 'touch') return;
    const {offsetX: x, offsetY: y, clientX: pageX, clientY: pageY} = event;
    this.viewer.point(event.buttons ? null : {x, y, pageX, pageY, panel});
  }

  // `panel` is null on the ruler and the overview.
  onDown(event, panel) {
    if (event.button !== 0 && event.button !== 1) return;
    const isTouch = event.pointerType === 'touch';
    if (isTouch && this.pinch(event)) return;
    const {painter} = this.viewer;
    const start = {x: event.offsetX, y: event.offsetY, from: painter.from, to: painter.to, panel};
    start.scroll = panel ? panel.top : 0;
    const onOverview = !panel && start.y < OVERVIEW;
    if (onOverview) this.viewer.centre(this.viewer.overviewTime(start.x));
    this.drag = {start, onOverview, isTouch, moves: !panel || isTouch || event.shiftKey || event.button === 1};
    this.follow(event, this.drag);
  }

  follow(event, drag) {
    const target = event.currentTarget;
    const hold = drag.isTouch && setTimeout(() => (drag.moves = drag.moved || !drag.start.panel), HOLD_MS);
    const move = (e) => e.pointerId === event.pointerId && this.dragTo(drag, e.offsetX, e.offsetY);
    const end = (e) => {
      if (e.pointerId !== event.pointerId) return;
      clearTimeout(hold);
      target.removeEventListener('pointermove', move);
      for (const kind of ['pointerup', 'pointercancel']) target.removeEventListener(kind, end);
      if (e.type === 'pointerup' && !drag.isOver) this.endDrag(drag, e);
    };
    target.setPointerCapture(event.pointerId);
    target.addEventListener('pointermove', move);
    for (const kind of ['pointerup', 'pointercancel']) target.addEventListener(kind, end);
  }

  dragTo(drag, x, y) {
    const {viewer} = this;
    const {start} = drag;
    const dx = x - start.x;
    drag.moved ||= Math.max(Math.abs(dx), Math.abs(y - start.y)) > (drag.isTouch ? NEAR_TOUCH : NEAR);
    if (!drag.moved || drag.isOver) return;
    if (drag.onOverview) {
      viewer.centre(viewer.overviewTime(x));
    } else if (drag.moves) {
      const by = (dx / (viewer.painter.width - LABELS_WIDTH)) * (start.to - start.from);
      viewer.show(start.from - by, start.to - by);
    } else {
      viewer.drag(start, x, y);
    }
  }

  endDrag({start, moved, moves}, {offsetX, offsetY}) {
    if (!moved && start.panel) this.viewer.click(start.panel, offsetX, offsetY);
    else if (!moves) this.viewer.select(this.viewer.selection);
  }

  // Two fingers zoom and move: the times that they touched stay below them.
  pinch(event) {
    const {fingers, viewer} = this;
    const target = event.currentTarget;
    fingers.set(event.pointerId, event.offsetX);
    const times = () => [...fingers.values()].map((x) => viewer.painter.t(x));
    let held = null;
    if (fingers.size === 2) {
      held = times();
      if (this.drag) this.drag.isOver = true;
    }
    const move = (e) => {
      if (!fingers.has(e.pointerId)) return;
      fingers.set(e.pointerId, e.offsetX);
      if (held && fingers.size === 2) this.stretch(held, [...fingers.values()]);
    };
    const end = (e) => {
      if (e.pointerId !== event.pointerId) return;
      fingers.delete(e.pointerId);
      target.removeEventListener('pointermove', move);
      for (const kind of ['pointerup', 'pointercancel']) target.removeEventListener(kind, end);
    };
    target.addEventListener('pointermove', move);
    for (const kind of ['pointerup', 'pointercancel']) target.addEventListener(kind, end);
    return fingers.size > 1;
  }

  stretch(times, places) {
    const [t0, t1] = times;
    const [x0, x1] = places;
    if (Math.abs(x1 - x0) < 10 || t0 === t1) return;
    const {viewer} = this;
    const scale = Math.abs((t1 - t0) / (x1 - x0));
    const from = (t0 + t1) / 2 - ((x0 + x1) / 2 - LABELS_WIDTH) * scale;
    viewer.show(from, from + (viewer.painter.width - LABELS_WIDTH) * scale);
  }
}
