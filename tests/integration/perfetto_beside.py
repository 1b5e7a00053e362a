# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decodes the fields that only traced writes into a Perfetto trace (docs/perfetto.md, proto/origin.proto),
and compares them with the text of the same capture."""

import re

from harness import check
from perfetto_decode import compact_events, plain_events, varint, wire_fields

RECORDING = 74726  # of a TracePacket
FORMATS, ADDRESSES, REST, FLAGS, LOST_COUNT = range(74726, 74731)  # of a bundle
NUMBER, ADDRESS, ADDRESS_LIST, NUMBER_LIST, BYTES = range(1, 6)
KINDS = range(1, 8)  # those from BYTES on are a length and bytes
FIELD = re.compile(r"field:[^;]*?(\w+)(?:\[[^\]]*\])?;\toffset:(\d+);")
# Kernels before 5.15 print four letters, without the one of migration.
LINE = re.compile(r"^ *.*-\d+ +\[(\d+)\] (\S{4,5}) +\d+\.\d{6}: ")
LOST = re.compile(r"^CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]$")
FLAGS_KINDS = 64


class Format:
    def __init__(self, message):
        text = message.text.decode()
        self.name = re.search(r"^name: (.*)$", text, re.M)[1]
        self.id = int(re.search(r"^ID: (\d+)$", text, re.M)[1])
        names = {int(offset): name for name, offset in FIELD.findall(text)}
        self.rest, at = [], 0
        while at < len(message.rest):
            numbers = []
            for _ in range(5):
                value, at = varint(message.rest, at)
                numbers.append(value)
            check(numbers[0] in KINDS and numbers[2] in names, f"{self.name}: {numbers}")
            self.rest.append((numbers[0], names[numbers[2]], numbers[3]))


class Beside:
    """Decodes one file. Afterwards: events by CPU, (flags, {field: value}, shown), and losses by
    CPU."""

    def __init__(self, decoder, data):
        self.origin = decoder.origin
        self.formats, self.addresses, self.recordings = {}, {}, []
        self.events, self.losses = {}, {}
        packets = [value for _, value in wire_fields(data)]
        for packet, raw in zip(decoder.parse(data).packet, packets):
            fields = dict(wire_fields(raw)) if not packet.HasField("perf_sample") else {}
            if RECORDING in fields:
                self.recordings.append(self.origin.Recording.FromString(fields[RECORDING]))
            if packet.HasField("ftrace_events"):
                self.read_bundle(packet.ftrace_events, fields[1])

    def read_bundle(self, bundle, raw):
        other = {}
        for number, value in wire_fields(raw):
            if number == FORMATS:
                format_ = Format(self.origin.Format.FromString(value))
                check(format_.name not in self.formats, f"the format of {format_.name} occurs twice")
                self.formats[format_.name] = format_
            elif number == ADDRESSES:
                address = self.origin.Address.FromString(value)
                check(address.id == len(self.addresses) + 1, f"address {address.id} is out of order")
                self.addresses[address.id] = address
            else:
                other[number] = value
        if bundle.lost_events:
            self.losses.setdefault(bundle.cpu, []).append(other.get(LOST_COUNT))
        check(bundle.lost_events or LOST_COUNT not in other, "a number of lost events, but no loss")
        # If times are equal, the compact event comes first.
        events = sorted([*compact_events(bundle.compact_sched), *plain_events(raw, bundle)],
                        key=lambda e: e[0])
        names = [self.formats[name] for _, _, name, _ in events]
        flags = self.read_flags(other.get(FLAGS, b""), names)
        rest, at = other.get(REST, b""), 0
        of_cpu = self.events.setdefault(bundle.cpu, [])
        for format_, flag in zip(names, flags):
            values, shown = {}, []
            for kind, name, size in format_.rest:
                values[name], at = self.read_value(kind, rest, at, shown)
                values[name] = (kind, size, values[name])
            of_cpu.append((format_.name, flag, values, shown))
        check(at == len(rest), f"{len(rest) - at} bytes in 74728 are of no event")

    @staticmethod
    def read_flags(data, formats):
        last, at, out = {}, 0, []
        expected = change = None
        for format_ in formats:
            if expected is None and at < len(data):
                expected, at = varint(data, at)
                change, at = varint(data, at)
            key = format_.id % FLAGS_KINDS
            if expected == 0:
                last[key], expected = change, None
            elif expected is not None:
                expected -= 1
            out.append(last.get(key, 0))
        check(at == len(data) and expected is None, "field 74729 has flags of no event")
        return out

    def read_address(self, data, at, shown):
        number, at = varint(data, at)
        if number:
            check(number in self.addresses, f"no address {number}")
            shown.append(self.addresses[number])
            return number, at
        return varint(data, at)

    def read_value(self, kind, data, at, shown):
        if kind == NUMBER:
            return varint(data, at)
        if kind == ADDRESS:
            return self.read_address(data, at, shown)
        count, at = varint(data, at)
        if kind not in (ADDRESS_LIST, NUMBER_LIST):
            check(at + count <= len(data), "bytes run over 74728")
            return data[at:at + count], at + count
        values = []
        for _ in range(count):
            value, at = self.read_address(data, at, shown) if kind == ADDRESS_LIST else varint(data, at)
            values.append(value)
        return values, at


def read_text(text):
    """By CPU: (flags, the whole of an event's text) and the numbers of lost events."""
    events, losses = {}, {}
    last = None
    for line in text.split("\n"):
        event, lost = LINE.match(line), LOST.match(line)
        if event:
            last = [event[2], line[event.end():]]
            events.setdefault(int(event[1]), []).append(last)
        elif lost:
            losses.setdefault(int(lost[1]), []).append(lost[2] and int(lost[2]))
        elif last:
            last[1] += "\n" + line
    return events, losses


def check_flags(shown, flags):
    preempt = flags >> 8
    counts = (preempt & 15, preempt >> 4) if len(shown) == 5 else (preempt,)
    check(shown[3:] == "".join(f"{n:x}" if n else "." for n in counts),
          f"{shown}, but the preemption count {preempt:#x}")
    check((shown[2] != ".") == bool(flags & 0x58), f"{shown}, but flags {flags:#x}")
    check(shown[0] not in "dD" or flags & 1, f"{shown}, but flags {flags:#x}")


def mask_text(header, data):
    """A mask as the kernel prints it, in groups of 32 bits."""
    order, step = "big" if header.big_endian else "little", header.word_size
    mask = sum(int.from_bytes(data[i:i + step], order) << 8 * i for i in range(0, len(data), step))
    return ",".join(f"{mask >> 32 * i & 0xffffffff:08x}" for i in reversed(range(len(data) // 4)))


def check_value(header, text, name, kind, size, value):
    """Whether the text has the value in a form that can be compared."""
    found = re.search(rf"\b{name}=(\{{[^}}]*\}}|[^ \n]*)", text)
    if not found:
        return False
    if kind == NUMBER and re.fullmatch(r"-?\d+|0x[0-9a-f]+", found[1]):
        check((int(found[1], 0) - value) % (1 << 8 * size) == 0, f"{text}\nbut {name} is {value}")
        return True
    if kind == NUMBER_LIST and re.fullmatch(r"\{(0x[0-9a-f]+,?)*\}", found[1]):
        shown = [int(n, 16) for n in found[1][1:-1].split(",") if n]
        check(len(shown) == len(value) and all((v - s) % (1 << 32) == 0 for s, v in zip(shown, value)),
              f"{text}\nbut {name} is {value}")
        return True
    if kind == BYTES and re.fullmatch(r"[0-9a-f]{8}(,[0-9a-f]{8})*", found[1]):
        check(found[1] == mask_text(header, value), f"{text}\nbut {name} is {value.hex()}")
        return True
    return False


def compare_beside(text, beside):
    """Returns how many values, symbols and losses were found in the text."""
    events, losses = read_text(text)
    header = beside.recordings[0].header
    check(losses == beside.losses, f"losses {beside.losses}, in the text {losses}")
    check(set(events) == set(beside.events), f"CPUs {set(beside.events)}, in the text {set(events)}")
    values = symbols = 0
    for cpu, lines in events.items():
        check(len(lines) == len(beside.events[cpu]), f"CPU {cpu}: {len(beside.events[cpu])} events")
        for (flags, line), (_, flag, others, shown) in zip(lines, beside.events[cpu]):
            check_flags(flags, flag)
            for name, (kind, size, value) in others.items():
                values += check_value(header, line, name, kind, size, value)
            for address in shown:
                what = (address.name or address.text).decode()
                check(what in line, f"{line}\nbut the trace has {what}")
                symbols += 1
    return values, symbols, sum(map(len, losses.values()))
