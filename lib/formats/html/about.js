// SPDX-License-Identifier: LGPL-2.1-or-later
// The recording's name and account, in the header.

const LONE_END = 'ends of slices without a begin';
const LONE_STEP = 'steps of flows outside of slices';
const PHASE_NAMES = {
  '=': 'links of ids',
  c: 'clock syncs',
  b: `asynchronous slices beyond ${ASYNC_LANES} at a time`,
  E: LONE_END,
  e: LONE_END,
  F: LONE_END,
  D: LONE_END,
  ')': LONE_END,
  s: LONE_STEP,
  t: LONE_STEP,
  f: LONE_STEP,
};

// The accounts of the machines' recordings, with their labels; of one machine its own, without.
function recordingsOf(about) {
  if (!about) return [];
  if (!about.hosts) return [{...about, label: ''}];
  return about.hosts.map(({label, recording}) => ({...recording, label: `${label}: `}));
}

// The losses of one CPU; empty if there are none.
function describeLosses(cpu, label) {
  const lost = cpu.lost_overrun + cpu.lost_other;
  const say = [];
  if (lost) say.push(`${lost.toLocaleString('en')} events in ${cpu.gaps.toLocaleString('en')} gaps`);
  if (cpu.samples_lost) say.push(`${cpu.samples_lost.toLocaleString('en')} samples`);
  return say.length ? `${label}CPU ${cpu.cpu} lost ${say.join(' and ')}` : '';
}

function titleOf({about}) {
  if (about && about.hosts) return about.hosts.map(({label}) => label).join(', ');
  const title = about ? [about.hostname, about.started].filter((s) => s && s !== '(none)').join(', ') : 'trace';
  return title || 'trace';
}

function describeMissed({missed}) {
  const count = missed.toLocaleString('en');
  return missed ? [`${count} ${missed === 1 ? 'switch between tasks is' : 'switches between tasks are'} not in the trace`] : [];
}

// Elements without a picture, by kind.
function describeNotDrawn({notDrawn}) {
  const kinds = new Map();
  for (const [phase, count] of notDrawn) {
    const kind = Object.hasOwn(PHASE_NAMES, phase) ? PHASE_NAMES[phase] : `phase ${shorten(phase, 20)}`;
    kinds.set(kind, (kinds.get(kind) || 0) + count);
  }
  return [...kinds].map(([kind, count]) => `without a picture: ${kind}, ${count.toLocaleString('en')}`);
}

function describeClocks({hosts}) {
  return hosts ? hosts.all.map(({label, clock}) => `${label}: ${clock}`) : [];
}

// Puts the account into an element. A click on it lists all of it, as the tooltip does.
function putAccount(model, element, onList) {
  const {about} = model;
  const n = model.time.length + model.elements.length;
  const recordings = recordingsOf(about);
  const kernels = new Set(recordings.map(({system, kernel}) => [system, kernel].filter(Boolean).join(' ')));
  const bad = [];
  const lost = about ? about.lost : 0;
  const cpus = recordings.flatMap((one) => (one.cpus || []).map((cpu) => ({...cpu, label: one.label})));
  const samples = cpus.reduce((sum, cpu) => sum + (cpu.samples_lost || 0), 0);
  if (lost) bad.push(`${lost.toLocaleString('en')} lost`);
  if (samples) bad.push(`${samples.toLocaleString('en')} samples lost`);
  if (model.cut) bad.push('the file was cut: its end is missing');
  else if (about && about.incomplete) bad.push('the recording is incomplete');
  if (model.strange) bad.push(`${model.strange} lines could not be read`);
  const size = `${(about ? about.events : n).toLocaleString('en')} events`;
  // A narrow window cuts the end.
  if (bad.length) element.append(make('b', {}, bad.join(' · ')), ' · ');
  element.append([size, duration(model.lastTime - model.firstTime), ...kernels].filter(Boolean).map(plain).join(' · '));
  // Clock syncs concern other tools.
  const unseen = [...model.notDrawn].reduce((sum, [phase, count]) => sum + (phase === 'c' ? 0 : count), 0);
  if (unseen) element.append(` · ${unseen.toLocaleString('en')} without a picture`);
  const more = cpus
    .map((cpu) => describeLosses(cpu, cpu.label))
    .filter(Boolean)
    .concat(describeMissed(model), describeNotDrawn(model), describeClocks(model), (about && about.warnings) || []);
  const lines = [element.textContent, ...more];
  element.title = lines.map(plain).join('\n');
  element.onclick = () => onList([titleOf(model), ...lines.flatMap((line) => line.split(' · '))]);
}
