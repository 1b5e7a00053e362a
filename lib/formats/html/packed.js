// SPDX-License-Identifier: LGPL-2.1-or-later
// Text that takes little memory: pieces of it, packed in the block format of LZ4.

const PACKED_HASH_BITS = 14;
const MATCH_LEAST = 4;
const MATCH_FAR = 0xffff; // bytes back, at most
const UNPACKED_KEPT = 4; // pieces

// Writes how far a length exceeds its half of the token. Returns the next place.
function putLength(out, o, length) {
  for (length -= 15; length >= 255; length -= 255) out[o++] = 255;
  out[o++] = length;
  return o;
}

// Writes the literals from `at` to `i`, and a match of `length` bytes; 0: it is the end. Returns the next place.
function putSequence(out, o, bytes, at, i, back, length) {
  const literals = i - at;
  const more = length - MATCH_LEAST;
  out[o++] = (Math.min(literals, 15) << 4) | (length ? Math.min(more, 15) : 0);
  if (literals >= 15) o = putLength(out, o, literals);
  while (at < i) out[o++] = bytes[at++];
  if (!length) return o;
  out[o++] = back & 255;
  out[o++] = back >>> 8;
  return more >= 15 ? putLength(out, o, more) : o;
}

function wordAt(bytes, i) {
  return bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
}

// Packs the first n bytes into `out`, which has room for n + n / 255 + 16. Returns their number there.
// `places` has 2 ** PACKED_HASH_BITS entries.
function packBytes(bytes, n, out, places) {
  let o = 0;
  let at = 0; // the first byte that is not in `out`
  places.fill(-1);
  for (let i = 0; i + 12 < n;) {
    const word = wordAt(bytes, i);
    const hash = Math.imul(word, 0x9e3779b1) >>> (32 - PACKED_HASH_BITS);
    const from = places[hash];
    places[hash] = i;
    if (from < 0 || i - from > MATCH_FAR || wordAt(bytes, from) !== word) {
      // In text that has no like, the steps grow.
      i += 1 + ((i - at) >>> 6);
      continue;
    }
    let length = MATCH_LEAST;
    while (i + length < n - 5 && bytes[from + length] === bytes[i + length]) length++;
    o = putSequence(out, o, bytes, at, i, i - from, length);
    at = i += length;
  }
  return putSequence(out, o, bytes, at, n, 0, 0);
}

// Unpacks into `out`. Returns the number of bytes there.
function unpackBytes(packed, out) {
  let o = 0;
  for (let i = 0;;) {
    const token = packed[i++];
    let n = token >>> 4;
    if (n === 15) {
      do n += packed[i];
      while (packed[i++] === 255);
    }
    for (const end = i + n; i < end;) out[o++] = packed[i++];
    if (i >= packed.length) return o;
    let from = o - (packed[i] | (packed[i + 1] << 8));
    i += 2;
    n = token & 15;
    if (n === 15) {
      do n += packed[i];
      while (packed[i++] === 255);
    }
    for (const end = o + n + MATCH_LEAST; o < end;) out[o++] = out[from++];
  }
}

// Packs and unpacks texts of at most `most` characters.
class TextPacker {
  constructor(most) {
    this.bytes = new Uint8Array(most * 3);
    this.out = new Uint8Array(most * 3 + Math.ceil(most / 85) + 16);
    this.places = new Int32Array(1 << PACKED_HASH_BITS);
    this.encoder = new TextEncoder();
    this.decoder = new TextDecoder('utf-8', {ignoreBOM: true});
    this.unpacked = new Map(); // the texts that were asked for last, by their packed bytes
  }

  pack(text) {
    const {written} = this.encoder.encodeInto(text, this.bytes);
    return this.out.slice(0, packBytes(this.bytes, written, this.out, this.places));
  }

  unpack(packed) {
    let text = this.unpacked.get(packed);
    if (text !== undefined) return text;
    text = this.decoder.decode(this.bytes.subarray(0, unpackBytes(packed, this.bytes)));
    if (this.unpacked.size === UNPACKED_KEPT) this.unpacked.delete(this.unpacked.keys().next().value);
    this.unpacked.set(packed, text);
    return text;
  }
}
