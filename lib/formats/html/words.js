// SPDX-License-Identifier: LGPL-2.1-or-later
// Texts for numbers, hits and elements.

/** @param {Record<string, any>} options */
function make(tag, options = {}, ...children) {
  const {parent, ...properties} = options;
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.map((child) => (typeof child === 'string' ? plain(child) : child)));
  if (parent) parent.append(element);
  return element;
}

function duration(exact) {
  const ns = Math.round(exact);
  const a = Math.abs(ns);
  if (a < 1e3) return `${ns} ns`;
  if (a < 1e6) return `${+(ns / 1e3).toFixed(3)} µs`;
  if (a < 1e9) return `${+(ns / 1e6).toFixed(3)} ms`;
  return `${+(ns / 1e9).toFixed(6)} s`;
}

// Formats ns with enough digits to distinguish one step from the next.
function rulerText(ns, step) {
  const units = [
    {unit: 1e9, name: 's'},
    {unit: 1e6, name: 'ms'},
    {unit: 1e3, name: 'µs'},
  ];
  const {unit, name} = units.find((u) => Math.abs(ns) >= u.unit) || {unit: 1, name: 'ns'};
  return `${(ns / unit).toFixed(Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9)))} ${name}`;
}

function addTable(parent, caption, head, rows) {
  const table = make('table', {parent}, make('caption', {}, caption));
  const cells = (tag, values) =>
    values.map((value, i) =>
      make(tag, {className: i ? 'number' : '', ...(tag === 'th' ? {scope: 'col'} : {})}, shorten(value, NAME_SHOWN)),
    );
  make('tr', {parent: table}, ...cells('th', head));
  for (const row of rows) make('tr', {parent: table}, ...cells('td', row));
}

function absolute(model, t) {
  const ns = Math.round(t);
  const seconds = Math.floor(ns / 1e9);
  return `${Math.max(model.base, 0) + seconds}.${String(ns - seconds * 1e9).padStart(9, '0')} s`;
}

// Describes a hit: a title, lines of facts, and the trace's own text.
function tell(model, hit) {
  const {row, from, to} = hit;
  const lines = [`${duration(from - model.firstTime)} · ${absolute(model, from)}`];
  if (to > from) lines.unshift(duration(to - from));
  if (hit.kind === 'loss') return {title: lossText(hit.loss), lines: [...lines, `of ${model.cpuName(row.cpu.number)}`], text: ''};
  if (hit.kind === 'state') return {title: STATE_NAMES[hit.state], lines: [...lines, row.label], text: ''};
  if (hit.kind === 'running') return tellRunning(model, hit, lines);
  const text = hit.ref >= 0 ? model.eventText(hit.ref).trim() : tellElement(model, hit.ref);
  if (hit.kind === 'counter') {
    return {title: `${row.label}: ${row.counter.value.data[hit.index].toLocaleString('en')}`, lines, text};
  }
  if (hit.kind === 'event')
    return {title: model.names[model.eventName.data[hit.ref]], lines: [...lines, model.cpuName(row.cpu.number)], text};
  if (hit.kind === 'sample')
    return {title: `sample of ${model.element(hit.ref).name}`, lines: [...lines, row.label], text};
  return {
    title: model.names[hit.lane.name.data[hit.index]],
    lines: [...lines, row.cpu ? model.cpuName(row.cpu.number) : row.label],
    text,
  };
}

function tellRunning(model, hit, lines) {
  const {cpu} = hit.row;
  const {events, number} = cpu;
  const thread = model.threads.get(hit.ref);
  const process = thread && model.processes.get(thread.pid || thread.tid);
  if (process && process.pid !== thread.tid)
    lines.push(`process ${process.name} ${ownPid(hit.row.host, process.pid)}`);
  lines.push(model.cpuName(number));
  // The slice begins with one switch and ends with another.
  const texts = [];
  for (const t of [hit.from, hit.to]) {
    for (let i = cpu.time.seek(t); i < events.length && cpu.time.data[i] === t; i++) {
      if (model.names[model.eventName.data[events.data[i]]] !== 'sched_switch') continue;
      texts.push(model.eventText(events.data[i]).trim());
      break;
    }
  }
  return {title: model.threadLabel(hit.ref), lines, text: texts.join('\n')};
}

// A function's arguments and return value have names of their own.
function tellArguments(args) {
  const spell = (value) => (typeof value === 'object' ? JSON.stringify(value) : value);
  return Object.entries(args || {}).map(([key, value]) => {
    if (key === 'ret') return `returned ${spell(value)}`;
    if (key === 'arguments' && value && typeof value === 'object')
      return `arguments: ${Object.entries(value)
        .map(([name, v]) => `${name} = ${spell(v)}`)
        .join(', ')}`;
    return `${key}: ${spell(value)}`;
  });
}

function tellElement(model, ref) {
  const element = model.element(ref);
  if (!element) return '';
  const end = model.ends.has(ref) ? model.element(model.ends.get(ref)) : null;
  const words = [];
  if (element.cat) words.push(element.cat);
  words.push(...tellArguments(element.args), ...tellArguments(end && end.args));
  const frames = element.sf === undefined ? element.stack || [] : model.stack(element.sf);
  if (element.weight > 1) words.push(`weight ${element.weight}`);
  return [...words, ...frames.map((frame) => `  ${frame}`)].join('\n');
}
