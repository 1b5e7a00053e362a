// SPDX-License-Identifier: LGPL-2.1-or-later
// Arrows of wake-ups and flows. An end is {row, t, top}: a row, a time, and a place within the row.

const ARROW_BEND = 24; // pixels
const ARROW_HEAD = 5;
const ARROWS_MAX = 1000; // of a flow

function paintArrows(painter, arrows, scroll) {
  const {context: c, theme, width, height} = painter;
  c.save();
  c.beginPath();
  c.rect(LABELS_WIDTH, 0, width, height);
  c.clip();
  c.lineWidth = 1.5;
  for (const {from, to, kind} of arrows) {
    const [a, b] = [from, to].map(({row, t, top}) => {
      const shown = painter.rows.shown(row);
      return shown && {x: painter.x(t), y: shown.y + top - scroll};
    });
    if (!a || !b) continue;
    c.strokeStyle = c.fillStyle = kind === 'flow' ? theme.found : theme.accent;
    c.setLineDash(kind === 'flow' ? [5, 3] : []);
    paintArrow(c, a, b);
  }
  c.restore();
}

function paintArrow(c, a, b) {
  const bend = Math.abs(b.x - a.x) < 4 ? 0 : ARROW_BEND;
  c.beginPath();
  c.moveTo(a.x, a.y);
  c.bezierCurveTo(a.x + bend, a.y, b.x - bend, b.y, b.x, b.y);
  c.stroke();
  c.beginPath();
  c.arc(a.x, a.y, 2.5, 0, 2 * Math.PI);
  c.fill();
  // The curve ends sideways, a line without a bend where it leads.
  const angle = bend ? 0 : Math.atan2(b.y - a.y, b.x - a.x);
  c.beginPath();
  c.moveTo(b.x, b.y);
  for (const side of [2.6, -2.6])
    c.lineTo(b.x + ARROW_HEAD * 1.6 * Math.cos(angle + side), b.y + ARROW_HEAD * 1.6 * Math.sin(angle + side));
  c.fill();
}

// Returns the place of a thread at time t: its row, or without one in sight the row of a CPU.
function arrowEnd(rows, tid, t, cpu, offset = 0.5) {
  const row = rows.ofThread(tid);
  if (row && rows.shown(row)) return {row, t, top: offset === 0.5 && row.strip ? row.strip / 2 : row.height * offset};
  const cpuRow = cpu === undefined || cpu < 0 ? null : rows.ofCpu(cpu);
  return cpuRow ? {row: cpuRow, t, top: cpuRow.height / 2} : null;
}

// An interrupt has no thread: its arrow comes from the CPU.
function wakerEnd(rows, {interrupt, tid, t, cpu}) {
  return arrowEnd(rows, interrupt || !tid ? -1 : tid, t, cpu);
}

// Returns the place of a flow's step: the slice that encloses it.
function flowEnd(rows, model, {tid, t}) {
  const row = rows.ofThread(tid);
  if (!row) return null;
  const slice = innermost(row.thread.nest, t);
  return {row, t, top: row.strip + row.ticks + ((slice ? slice.depth : 0) + 0.5) * row.laneHeight};
}

// Returns the arrows that belong to what is selected.
function arrowsOf(rows, model, why, steps) {
  const arrows = [];
  const add = (kind, from, to) => from && to && arrows.push({kind, from, to});
  if (why && why.wake) {
    const {wake, wait, here, ran} = why;
    add('wake', wakerEnd(rows, wake), arrowEnd(rows, here.thread.tid, wait.from, ran ? ran.cpu : wake.target));
  }
  if (why && why.wakes) {
    const {woken, t, target} = why.wakes;
    add('wake', wakerEnd(rows, why.wakes), arrowEnd(rows, woken, t, target));
  }
  if (why && why.preempted && why.preempted.by) {
    const {by, cpu, t} = why.preempted;
    add('wake', arrowEnd(rows, by, t, cpu), arrowEnd(rows, why.here.thread.tid, t, cpu));
  }
  for (const chain of [...new Set(steps.map((step) => step.chain))].slice(0, FLOWS_SHOWN))
    for (const {from, to} of Flows.arrows(chain)) add('flow', flowEnd(rows, model, from), flowEnd(rows, model, to));
  return arrows;
}
