// SPDX-License-Identifier: LGPL-2.1-or-later
// The picture as tables for screen readers, which cannot see a canvas.

function putOverviewTable(viewer) {
  const {model, panel, head, pins, rows} = viewer;
  const name = (canvas, text) => {
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', text);
  };
  name(head.canvas, 'overview and ruler');
  name(pins.canvas, 'pinned rows');
  name(panel.canvas, 'rows of CPUs, processes and threads; tables of them follow');
  const box = make('section', {parent: document.body, className: 'read'});
  box.setAttribute('aria-label', 'the trace as tables');
  const cpus = [...model.cpus.values()].sort((a, b) => a.number - b.number);
  const span = model.lastTime - model.firstTime || 1;
  addTable(
    box,
    'CPUs',
    ['CPU', 'busy', 'events', 'gaps'],
    cpus.map((cpu) => [
      model.cpuName(cpu.number),
      `${((cpu.running.busy.at(-1) / span) * 100).toFixed(1)} %`,
      cpu.events.length.toLocaleString('en'),
      cpu.losses.length.toLocaleString('en'),
    ]),
  );
  const threads = [...rows.byThread.values()].map((row) => row.thread);
  threads.sort((a, b) => runTime(b) - runTime(a));
  addTable(
    box,
    'threads by run time',
    ['thread', 'ran', 'runnable', 'longest delay'],
    threads.slice(0, TABLE_ROWS).map((thread) => {
      const delay = delayOf(model, thread);
      return [model.threadName(thread.tid), duration(runTime(thread)), duration(delay.ns), duration(delay.max)];
    }),
  );
}
