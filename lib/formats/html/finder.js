// SPDX-License-Identifier: LGPL-2.1-or-later
// The search box and its list of results.

const FOUND_SHOWN = 8; // of each kind

class Finder {
  // go(item) shows a match of the search.
  constructor(viewer, parent, go) {
    this.viewer = viewer;
    this.go = go;
    this.search = new Search(viewer.model);
    this.input = make('input', {parent, type: 'search', placeholder: 'search  /', spellcheck: false, id: 'search'});
    this.input.setAttribute('aria-label', 'search times, names, slices, events and arguments');
    this.count = make('span', {parent, className: 'count'});
    this.count.setAttribute('role', 'status');
    this.list = make('section', {parent: document.body, id: 'found', hidden: true});
    this.input.addEventListener('input', () => this.find(this.input.value));
    this.input.addEventListener('keydown', (event) => this.onKey(event));
    this.input.addEventListener('focus', () => this.showList());
    document.addEventListener('pointerdown', ({target}) => {
      if (target !== this.input && !this.list.contains(target)) this.list.hidden = true;
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  onKey(event) {
    if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1);
    else if (event.key === 'ArrowDown') this.step(1, true);
    else if (event.key === 'ArrowUp') this.step(-1, true);
    else if (event.key === 'Escape') this.leave();
    else return;
    event.preventDefault();
  }

  leave() {
    this.list.hidden = true;
    this.viewer.scroll.focus();
  }

  step(way, keepList = false) {
    this.take(this.search.step(way, this.viewer.painter.from), keepList);
  }

  // The list would cover what it found.
  take(item, keepList = false) {
    if (!item) return;
    this.go(item);
    this.tellCount();
    this.putList();
    if (!keepList) this.list.hidden = true;
  }

  async find(query) {
    const {search, viewer} = this;
    this.query = query;
    search.clear();
    this.count.textContent = '';
    this.list.hidden = true;
    viewer.dirty();
    if (!query.trim()) return;
    const isWanted = () => this.query === query;
    await inSlices(whileWanted(search.run(query), isWanted), () => this.showProgress(), ANSWER_MS);
    if (!isWanted()) return;
    this.tellCount();
    this.showList();
    viewer.dirty();
  }

  // Names are found long before the last event.
  showProgress() {
    if (this.list.hidden && this.search.current < 0 && document.activeElement === this.input) this.showList();
    this.viewer.dirty();
  }

  tellCount() {
    const {count, current, more} = this.search;
    const all = count.toLocaleString('en') + (more ? '+' : '');
    this.count.textContent = count ? `${current < 0 ? '' : `${current + 1} of `}${all} found` : 'none found';
  }

  showList() {
    if (!this.search.count || !this.query) return;
    this.putList();
    this.list.hidden = false;
  }

  putList() {
    const {search} = this;
    this.list.replaceChildren();
    for (const kind of FOUND_KINDS) {
      const items = search.groups[kind];
      if (!items.length) continue;
      const title = `${kind} ${items.length.toLocaleString('en')}`;
      const group = make('div', {parent: this.list}, make('h3', {}, title));
      const first = search.indexOf(kind, 0);
      const from = Math.min(Math.max(0, search.current - first - 2), Math.max(0, items.length - FOUND_SHOWN));
      for (let i = from; i < Math.min(items.length, from + FOUND_SHOWN); i++) this.putItem(group, items[i], first + i);
    }
  }

  putItem(parent, item, index) {
    const {search} = this;
    const onclick = () => {
      search.current = index;
      this.take(item);
    };
    const {title, note} = this.describe(item);
    const button = make('button', {parent, onclick}, title, ' ', make('small', {}, note));
    if (index === search.current) button.setAttribute('aria-current', 'true');
  }

  describe({tid, pid, t, lane, index, ref}) {
    const {model} = this.viewer;
    if (tid !== undefined) return {title: model.threadName(tid), note: this.noteOfThread(tid)};
    if (pid !== undefined) return {title: model.processLabel(pid), note: ''};
    const note = duration(t - model.firstTime);
    if (!lane && ref === undefined) return {title: note, note: absolute(model, t)};
    if (lane)
      return {title: model.names[lane.name.data[index]], note: `${note}, ${duration(lane.end.data[index] - t)}`};
    if (ref >= 0) return {title: shorten(model.eventText(ref).replace(/^.*? \d+\.\d+: /, ''), NAME_SHOWN), note};
    const element = model.element(ref);
    return {title: `${element.name || element.ph} ${JSON.stringify(element.args)}`.slice(0, 200), note};
  }

  noteOfThread(tid) {
    const thread = this.viewer.model.threads.get(tid);
    return thread.ran && runTime(thread) ? `ran ${duration(runTime(thread))}` : '';
  }
}
