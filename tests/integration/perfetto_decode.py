# SPDX-License-Identifier: LGPL-2.1-or-later
"""A second decoder of Perfetto traces, and the comparison with the text of the same capture.

The decoder is python3-protobuf, on classes that protoc makes from proto/perfetto; generic
events, whose fields no class has, are taken apart by their descriptors."""

import ctypes
import importlib
import json
import re
import subprocess
import sys
import zlib

from harness import Failure, check

LINE = re.compile(r"^ *(?P<comm>.*)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] \S+ +(?P<sec>\d+)\.(?P<usec>\d{6}): "
                  r"(?P<details>.*)$")
BOOTTIME = 6
GENERIC_BASE = 65536


def text_lines(text):
    """(cpu, microseconds, pid, name, details) of each line that does not continue a text."""
    for line in text.splitlines():
        m = LINE.match(line)
        if m:
            name = re.match(r"[^:( ]+", m["details"])[0]
            yield (int(m["cpu"]), int(m["sec"]) * 1000000 + int(m["usec"]), int(m["pid"]), name,
                   m["details"])


def text_events(path):
    return list(text_lines(path.read_text(errors="replace")))


def json_events(path):
    """The same from the JSON's text, in which a free-text mark is two lines: B and at once E."""
    out = []
    for event in text_lines(json.loads(path.read_text(errors="replace"))["systemTraceEvents"]):
        cpu, usec, pid, name, details = event
        if (out and name == "tracing_mark_write" and details.startswith(f"{name}: E|") and
                out[-1][:4] == event[:4] and out[-1][4].startswith(f"{name}: B|")):
            continue
        out.append((cpu, usec, pid, name, details))
    return out


IDLE_TID = 4194304  # of CPU 0, in the JSON


def json_functions(path):
    """By thread the function tracers' output, in order: (what, function, caller or None)."""
    out = {}
    for e in json.loads(path.read_text(errors="replace"))["traceEvents"]:
        args = e.get("args", {})
        if e.get("ph") not in "XBEi" or (e.get("cat") != "func" and e["ph"] != "E"):
            continue
        thread = out.setdefault(("idle", e["tid"] - IDLE_TID) if e["tid"] >= IDLE_TID else e["tid"], [])
        if e["ph"] == "i":
            thread.append(("hit", e["name"], args["from"]))
        if e["ph"] in "XB" and args.get("entry") != "missing":
            thread.append(("entry", e["name"], None))
        if e["ph"] in "XE" and args.get("exit") != "missing":
            thread.append(("exit", None, None))
    return out


def split_functions(cpus):
    """The result of perfetto_events: the function tracers' part as above, and the rest."""
    rest, functions = {}, {}
    for cpu, events in cpus.items():
        rest[cpu] = []
        for event in events:
            ts, pid, name, values = event
            thread = functions.setdefault(pid or ("idle", cpu), [])
            if name == "function":
                called = values.get("slice_name") or values["ip"]
                thread.append((ts, ("hit", called, values["parent_ip"])))
            elif name in ("funcgraph_entry", "fgraph_retaddr_entry"):
                thread.append((ts, ("entry", values["func"], None)))
            elif name == "funcgraph_exit":
                thread.append((ts, ("exit", None, None)))
            else:
                rest[cpu].append(event)
    return {thread: [e for _, e in sorted(events, key=lambda e: e[0])]
            for thread, events in functions.items() if events}, rest


def compare_functions(path, functions):
    """Every hit and entry, in the order of its thread, and as many exits. Returns their number."""
    ours = json_functions(path)
    check(set(ours) == set(functions), f"functions of {set(ours)}, not of {set(functions)}")
    for thread, events in functions.items():
        for kinds in (("hit", "entry"), ("exit",)):
            want = [e for e in events if e[0] in kinds]
            have = [e for e in ours[thread] if e[0] in kinds]
            first = next((pair for pair in zip(want, have) if pair[0] != pair[1]), None)
            check(want == have, f"thread {thread}: {len(have)} of {len(want)} in the JSON; {first}")
    return sum(len(events) for events in functions.values())


def unzstd(data):
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    size = lib.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    check(size < 1 << 24, "a zstd frame without its content's size")
    out = ctypes.create_string_buffer(size)
    check(lib.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data))) == size,
          "a damaged zstd frame")
    return out.raw


def packets_of(data):
    """The packets, with those inside other packets unpacked."""
    out = []
    for number, packet in wire_fields(data):
        check(number == 1, "the file has other fields than packets")
        fields = dict(wire_fields(packet))
        if set(fields) & {50, 133}:
            check(len(fields) == 1, "something beside the compressed packets")
            out.append(zlib.decompress(fields[50]) if 50 in fields else unzstd(fields[133]))
    return b"".join(out) or data


class Decoder:
    def __init__(self, folder, source):
        subprocess.run(["protoc", f"--proto_path={source / 'proto'}", f"--python_out={folder}",
                        *(f"perfetto/{p.name}" for p in (source / "proto/perfetto").glob("*.proto")),
                        "capture.proto", "origin.proto"], check=True)
        sys.path.insert(0, str(folder))
        self.trace = importlib.import_module("perfetto.trace_pb2")
        self.origin = importlib.import_module("origin_pb2")

    def parse(self, data):
        trace = self.trace.Trace()
        trace.ParseFromString(data)
        return trace

    def decode(self, path):
        return self.parse(path.read_bytes())


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def wire_fields(data):
    """(number, value) of each field; traces have varints and bytes only here. It is called for
    millions of fields: a varint of one byte, as most are, costs no call, and no text is made of an error that
    does not occur."""
    at, length = 0, len(data)
    while at < length:
        tag, at = data[at], at + 1
        if tag & 0x80:
            tag, at = varint(data, at - 1)
        kind = tag & 7
        if kind == 0:
            value, at = data[at], at + 1
            if value & 0x80:
                value, at = varint(data, at - 1)
        elif kind == 2:
            size, at = data[at], at + 1
            if size & 0x80:
                size, at = varint(data, at - 1)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise Failure("a field runs over its message")
        else:
            raise Failure(f"wire type {kind}")
        yield tag >> 3, value


def descriptor_names(bundle):
    """field number -> (event name, {number: (name, type)}) from DescriptorProtos."""
    out = {}
    for d in bundle.generic_event_descriptors:
        name, fields = None, {}
        for number, value in wire_fields(d.event_descriptor):
            if number == 1:
                name = value.decode()
            elif number == 2:
                f = dict(wire_fields(value))
                fields[f[3]] = (f[1].decode(), f[5])
        check(d.group_name, "a generic event has no group")
        check(all(0 < n < 32 for n in fields), f"{name}: field numbers beyond the reader's")
        out[d.field_id] = (name, fields)
    return out


def generic_values(raw, fields):
    out = {}
    for number, value in wire_fields(raw):
        if number not in fields:
            raise Failure(f"a generic field {number} has no descriptor")
        name, kind = fields[number]
        if (kind == 9) != isinstance(value, bytes):
            raise Failure(f"{name} is not of the type described")
        if kind == 3 and value >= 1 << 63:
            value -= 1 << 64
        out[name] = value.decode() if isinstance(value, bytes) else value
    return out


SWITCH, UNREPORTED = 4, 74731


def is_unreported(fields):
    """Whether the event is no event of the kernel's: a switch that it left out."""
    return SWITCH in fields and UNREPORTED in dict(wire_fields(fields[SWITCH]))


def plain_events(bundle_bytes, bundle, reported=True):
    """Python's parser keeps typed events; generic ones are parsed by hand. reported: only those of
    the kernel."""
    names = descriptor_names(bundle)
    raws = [value for number, value in wire_fields(bundle_bytes) if number == 2]
    check(len(raws) == len(bundle.event), "the second decoder has fewer events")
    for event, raw in zip(bundle.event, raws):
        parts = list(wire_fields(raw))
        fields = dict(parts)
        if reported and is_unreported(fields):
            continue
        order = [number for number, _ in parts]
        if order[:2] != [1, 2] or len(order) != 3:
            raise Failure(f"an event has the fields {order}: not timestamp, pid, message")
        kind = event.WhichOneof("event")
        if kind == "generic":
            kind = event.generic.event_name
            values = {f.name: getattr(f, f.WhichOneof("value")) for f in event.generic.field}
        elif kind:
            message = getattr(event, kind)
            values = {f.name: list(v) if f.label == f.LABEL_REPEATED else v
                      for f, v in message.ListFields()}
        else:
            check(order[2] >= GENERIC_BASE and order[2] in names, f"no descriptor for {order[2]}")
            kind, types = names[order[2]]
            values = generic_values(fields[order[2]], types)
        yield event.timestamp, event.pid, kind, values


def compact_events(compact):
    switches = list(zip(compact.switch_timestamp, compact.switch_prev_state, compact.switch_next_pid,
                        compact.switch_next_prio, compact.switch_next_comm_index))
    lengths = {len(compact.switch_timestamp), len(compact.switch_prev_state),
               len(compact.switch_next_pid), len(compact.switch_next_prio),
               len(compact.switch_next_comm_index)}
    check(len(lengths) == 1, "arrays of different lengths")
    ts = 0
    for delta, state, pid, prio, comm in switches:
        ts += delta
        yield ts, None, "sched_switch", {"prev_state": state, "next_pid": pid, "next_prio": prio,
                                         "next_comm": compact.intern_table[comm]}
    lengths = {len(compact.waking_timestamp), len(compact.waking_pid),
               len(compact.waking_target_cpu), len(compact.waking_prio),
               len(compact.waking_comm_index), len(compact.waking_common_flags)}
    check(len(lengths) == 1, "arrays of different lengths")
    ts = 0
    for i, delta in enumerate(compact.waking_timestamp):
        ts += delta
        yield ts, None, "sched_waking", {"pid": compact.waking_pid[i], "prio": compact.waking_prio[i],
                                         "target_cpu": compact.waking_target_cpu[i],
                                         "comm": compact.intern_table[compact.waking_comm_index[i]]}


def infer(events):
    """Values that the reader infers for compact events, from the switches of that CPU before them."""
    running = None
    for ts, pid, name, values in events:
        if pid is None:
            check(running, f"a compact {name} at {ts} before any plain sched_switch")
            pid = running["next_pid"]
            if name == "sched_switch":
                values = dict(values, prev_pid=running["next_pid"], prev_comm=running["next_comm"],
                              prev_prio=running["next_prio"])
        if name == "sched_switch":
            running = dict({"next_pid": 0, "next_comm": "", "next_prio": 0}, **values)
        yield ts, pid, name, values


def tree_names(trace):
    """(time, tid, name) of each thread in a process tree; they outrank the names of events."""
    return [(p.timestamp, t.tid, t.name) for p in trace.packet if p.HasField("process_tree")
            for t in p.process_tree.threads if t.name]


def check_inferred_names(data, trace):
    """The reader takes the name in its table of threads for prev_comm of a compact switch: this must
    be the name that the task had when it was switched to. Returns the number of such switches."""
    news = sorted(((ts, 0, tid, name) for ts, tid, name in tree_names(trace)), key=lambda n: n[:2])
    cpus, compacts = raw_events(data, trace)
    for cpu, events in cpus.items():
        running = None
        for ts, pid, name, values in events:
            if name == "sched_switch":
                news.append((ts, 1, cpu, (pid is None, running, values)))
                running = values
    names, table, checked = {}, {}, 0
    for ts, kind, who, what in sorted(news, key=lambda n: n[:2]):
        if kind == 0:
            table[who] = what
            continue
        is_compact, before, values = what
        if is_compact:
            tid = before["next_pid"]
            inferred = table.get(tid, names.get(tid))
            check(not tid or inferred == before["next_comm"],
                  f"at {ts} the reader infers {inferred} for {tid}, not {before['next_comm']}")
            checked += 1
        elif "prev_comm" in values:
            names[values.get("prev_pid", 0)] = values["prev_comm"]
        names[values.get("next_pid", 0)] = values["next_comm"]
    return checked


# Fields that hold the number of an interned symbol.
SYMBOLS = {"workqueue_queue_work": "function", "workqueue_activate_work": "function",
           "workqueue_execute_start": "function", "workqueue_execute_end": "function",
           "funcgraph_entry": "func", "funcgraph_exit": "func", "hrtimer_expire_entry": "function",
           "sched_blocked_reason": "caller", "cpuhp_enter": "fun", "cpuhp_multi_enter": "fun",
           "kfree_skb": "location", "mm_shrink_slab_start": "shrink", "mm_shrink_slab_end": "shrink"}


def with_symbols(name, values, symbols):
    field = SYMBOLS.get(name)
    if field in values and values[field] in symbols:
        return dict(values, **{field: symbols[values[field]]})
    return values


def raw_events(data, trace):
    """As perfetto_events, without what the reader infers."""
    packets = [value for number, value in wire_fields(data) if number == 1]
    cpus, compacts, symbols = {}, 0, {}
    for packet, raw in zip(trace.packet, packets):
        if not packet.HasField("ftrace_events"):
            continue
        bundle = packet.ftrace_events
        symbols.update((s.iid, s.str.decode()) for s in packet.interned_data.kernel_symbols)
        check(bundle.HasField("cpu"), "a bundle has no CPU")
        events = [(ts, pid, name, with_symbols(name, values, symbols))
                  for ts, pid, name, values in plain_events(dict(wire_fields(raw))[1], bundle)]
        compact = list(compact_events(bundle.compact_sched))
        compacts += len(compact)
        cpu = cpus.setdefault(bundle.cpu, [])
        check(bool(cpu) != bundle.HasField("previous_bundle_end_timestamp"),
              "only a CPU's first bundle must have the end of the previous one")
        cpu.extend(sorted(events + compact, key=lambda e: e[0]))
    return cpus, compacts


def perfetto_events(data, trace):
    """By CPU, in order of time: (ts, pid, name, values); and the number of compact ones."""
    cpus, compacts = raw_events(data, trace)
    return {cpu: list(infer(events)) for cpu, events in cpus.items()}, compacts


def same_name(text_name, name):
    return text_name == ("tracing_mark_write" if name == "print" else name)


KEY_VALUE = re.compile(r"(\w+)=(-?\d+)(?![\w.x/:])")


def check_values(details, name, values):
    """Each plain number "key=value" of the text for which the message has a field of that name."""
    compared = 0
    for key, shown in KEY_VALUE.findall(details):
        value = values.get(key)
        if name == "irq_handler_exit" and key == "ret":
            continue
        if isinstance(value, int):
            # Hexadecimal digits may look like a decimal number.
            meant = {int(shown), int(shown) % (1 << 32), int(shown) % (1 << 64), int(shown, 16)}
            check(value in meant, f"{details}\nbut {name} has {values}")
            compared += 1
    if isinstance(values.get(SYMBOLS.get(name)), str):
        check(values[SYMBOLS[name]] in details, f"{details}\nbut {name} has {values}")
        compared += 1
    for key in ("prev_comm", "next_comm", "comm"):
        # "wakeup": an event by SQL in tests/data.
        if isinstance(values.get(key), str) and name.startswith(("sched_", "wakeup")):
            check(f"{key}={values[key]} " in details + " ", f"{details}\nbut {name} has {values}")
            compared += 1
    return compared


def compare(text, cpus):
    count = sum(len(events) for events in cpus.values())
    check(len(text) == count, f"{len(text)} events in the text, {count} in the Perfetto trace")
    compared, names = 0, set()
    for cpu, events in cpus.items():
        lines = [t for t in text if t[0] == cpu]
        check(len(lines) == len(events), f"CPU {cpu}: {len(lines)} lines, {len(events)} events")
        for (_, usec, tid, text_name, details), (ts, pid, name, values) in zip(lines, events):
            check((ts + 500) // 1000 == usec, f"{ts} is not the time of: {details}")
            check(pid == tid, f"pid {pid} for: {details}")
            if not text_name.startswith("sys_"):
                check(same_name(text_name, name), f"{name} for: {details}")
            compared += check_values(details, name, values)
            names.add(name)
    return compared, names
