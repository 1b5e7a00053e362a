// SPDX-License-Identifier: LGPL-2.1-or-later
// Texts of unknown origin, made fit for a place on the page.

const CHAR = 6.1; // pixels: the approximate width of a letter
const CHAR_LEAST = 2; // of the narrowest letter
const NAME_SHOWN = 200; // characters

// Characters that reorder or hide what follows them.
const UNPRINTED = /[\u0000-\u0008\u000b-\u001f\u007f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

// Spells characters without a picture of their own, so that no name looks like another one.
function plain(text) {
  if (text.search(UNPRINTED) < 0) return text;
  return text.replace(UNPRINTED, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// Cuts between characters, and says so.
function shorten(text, length) {
  return text.length > length ? `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

function shortName(name) {
  return shorten(name, NAME_SHOWN);
}

// Returns as much of a text as fits into `room` pixels. Letters of Latin are counted, others are measured.
function fitText(c, text, room) {
  if (room < CHAR) return '';
  let shown = text.slice(0, Math.ceil(room / CHAR_LEAST));
  if (/^[ -~]*$/.test(shown)) return shorten(shown, Math.floor(room / CHAR));
  shown = plain(shown);
  if (shown.length >= text.length && c.measureText(shown).width <= room) return shown;
  const letters = [...shown];
  let [low, high] = [0, letters.length];
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (c.measureText(`${letters.slice(0, mid).join('')}…`).width <= room) low = mid;
    else high = mid - 1;
  }
  return low < letters.length || shown.length < text.length ? `${letters.slice(0, low).join('')}…` : shown;
}
