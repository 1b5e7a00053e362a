// SPDX-License-Identifier: LGPL-2.1-or-later
// The help: what the colours mean, and what keys and pointer do.

function makeHelp(viewer) {
  const help = make('dialog', {parent: document.body, id: 'help'});
  help.append(make('h2', {}, 'Colours'), makeLegend(), make('h2', {}, 'Keys and pointer'));
  const keys = make('table', {parent: help});
  const put = (input, text) => make('tr', {parent: keys}, make('td', {}, ...input), make('td', {}, text));
  for (const entry of KEYS) put(keysOf(entry, viewer, help), entry.text);
  for (const [way, text] of POINTER_HELP) put([make('kbd', {}, way)], text);
  help.onclick = () => help.close();
  return help;
}

// Buttons that do what the keys do, for screens without keys. Held keys only show: fingers zoom and move.
function keysOf({label, keys, run = null}, viewer, help) {
  if (!run) return [make('kbd', {}, label)];
  return label.split(' ').flatMap((name, i) => {
    const onclick = () => {
      // Closing gives the focus back, which the action may take.
      help.close();
      run(viewer, {key: keys[i] || keys[0], shiftKey: name !== name.toLowerCase()});
    };
    return [make('button', {onclick}, name), ' '];
  });
}

function makeLegend() {
  const list = make('ul', {className: 'legend'});
  const put = (name, text) => make('li', {parent: list}, make('i', {className: name}), text);
  put('running', 'running');
  put('runnable', 'runnable: it waits for a CPU');
  put('sleeping', 'sleeping');
  put('blocked', 'blocked (uninterruptible)');
  put('stopped', 'stopped');
  put('unknown', 'unknown: the trace does not tell');
  put('lost', 'events are lost');
  put('tick', 'events and samples: the stronger, the more there are');
  put('found', 'matches of the search; arrows of flows');
  put('accent', 'the selection; arrows of wake-ups; counters');
  put('slice', 'slices: each name, and on CPUs each thread, has a colour in all rows');
  return list;
}

// Shows lines of text.
function showLines(lines) {
  const dialog = make('dialog', {parent: document.body}, ...lines.map((line) => make('p', {}, line)));
  dialog.onclick = () => dialog.close();
  dialog.onclose = () => dialog.remove();
  dialog.showModal();
}

// Errors are shown in the page: nobody looks into the browser's console.
function showError(error) {
  let box = document.getElementById('error');
  if (!box) {
    box = make('pre', {parent: document.body, id: 'error'});
    box.setAttribute('role', 'alert');
    box.onclick = () => box.remove();
  }
  box.textContent = plain(String((error && error.stack) || error));
}
