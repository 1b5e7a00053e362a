#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run by the system's python, which has python3-protobuf.

The Perfetto trace beside the text of the same capture: the same events, in
the same order, with the same values. The second decoder is python3-protobuf,
on classes that protoc makes from proto/perfetto."""

import importlib
import re
import subprocess
import sys

from harness import Failure, Test, check

LINE = re.compile(r"^ *(?P<comm>.*)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] \S+ +(?P<sec>\d+)\.(?P<usec>\d{6}): "
                  r"(?P<details>.*)$")
BOOTTIME = 6
GENERIC_BASE = 65536


def text_events(path):
    """(cpu, microseconds, pid, name, details) of each line."""
    out = []
    for line in path.read_text(errors="replace").splitlines():
        m = LINE.match(line)
        if line.startswith(("#", "CPU:")):
            continue
        if not m:  # the rest of a text that has newlines in it
            continue
        name = re.match(r"[^:( ]+", m["details"])[0]
        out.append((int(m["cpu"]), int(m["sec"]) * 1000000 + int(m["usec"]), int(m["pid"]), name,
                    m["details"]))
    return out


class Decoder:
    def __init__(self, folder, source):
        subprocess.run(["protoc", f"--proto_path={source / 'proto'}", f"--python_out={folder}",
                        "perfetto/ftrace.proto", "perfetto/trace.proto"], check=True)
        sys.path.insert(0, str(folder))
        self.trace = importlib.import_module("perfetto.trace_pb2")

    def decode(self, path):
        trace = self.trace.Trace()
        trace.ParseFromString(path.read_bytes())
        return trace


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def wire_fields(data):
    """(number, value) of each field; varints and bytes are all that is written here."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            check(len(value) == size, "a field runs over its message")
        else:
            raise Failure(f"wire type {tag & 7}")
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
        check(number in fields, f"a generic field {number} has no descriptor")
        name, kind = fields[number]
        check((kind == 9) == isinstance(value, bytes), f"{name} is not of the type described")
        if kind == 3 and value >= 1 << 63:
            value -= 1 << 64
        out[name] = value.decode() if isinstance(value, bytes) else value
    return out


def plain_events(bundle_bytes, bundle):
    """What python's parser keeps of typed events, and generic ones by hand."""
    names = descriptor_names(bundle)
    raws = [value for number, value in wire_fields(bundle_bytes) if number == 2]
    check(len(raws) == len(bundle.event), "events are missing to the second decoder")
    for event, raw in zip(bundle.event, raws):
        order = [number for number, _ in wire_fields(raw)]
        check(order[:2] == [1, 2] and len(order) == 3,
              f"an event has the fields {order}: not timestamp, pid, message")
        kind = event.WhichOneof("event")
        if kind:
            message = getattr(event, kind)
            values = {f.name: list(v) if f.label == f.LABEL_REPEATED else v
                      for f, v in message.ListFields()}
        else:
            check(order[2] >= GENERIC_BASE and order[2] in names, f"no descriptor for {order[2]}")
            kind, fields = names[order[2]]
            values = generic_values(dict(wire_fields(raw))[order[2]], fields)
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
    """What the reader infers for compact events, from the switches of that CPU before them."""
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


def perfetto_events(data, trace):
    """By CPU, in time order: (ts, pid, name, values); and the count of compact ones."""
    packets = [value for number, value in wire_fields(data) if number == 1]
    cpus, compacts = {}, 0
    for packet, raw in zip(trace.packet, packets):
        if not packet.HasField("ftrace_events"):
            continue
        bundle = packet.ftrace_events
        check(bundle.HasField("cpu"), "a bundle has no CPU")
        events = list(plain_events(dict(wire_fields(raw))[1], bundle))
        compact = list(compact_events(bundle.compact_sched))
        compacts += len(compact)
        cpu = cpus.setdefault(bundle.cpu, [])
        check(bool(cpu) != bundle.HasField("previous_bundle_end_timestamp"),
              "only the first bundle of a CPU says since when it is valid")
        cpu.extend(sorted(events + compact, key=lambda e: e[0]))
    return {cpu: list(infer(events)) for cpu, events in cpus.items()}, compacts


def same_name(text_name, name):
    return text_name == ("tracing_mark_write" if name == "print" else name)


KEY_VALUE = re.compile(r"(\w+)=(-?\d+)(?![\w.x/:])")


def check_values(details, name, values):
    """Each plain number "key=value" of the text, where the message has a field of that name."""
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
    for key in ("prev_comm", "next_comm", "comm"):
        if isinstance(values.get(key), str) and name.startswith("sched_"):
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


LOAD = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do ls -l /usr/lib >/dev/null; sync /tmp; "
        "sleep 0.02; done; echo 'B|1|mark' > /dev/null"]


def record(test, *what, name="x.traced"):
    r = test.run("record", "-o", name, "-b", "8M", *what, "--", *LOAD)
    check(r.status == 0, f"record failed: {r}")
    for ending in ("txt", "pftrace"):
        r = test.run("convert", name, f"x.{ending}")
        check(r.status == 0, f"convert to .{ending} failed: {r}")
    return test.dir / "x.txt", test.dir / "x.pftrace"


def decoded(test, path):
    trace = Decoder(test.dir, test.source).decode(path)
    return trace, *perfetto_events(path.read_bytes(), trace)


def sched_and_irq(test):
    text, path = record(test, "-e", "sched", "-e", "irq")
    trace, cpus, compacts = decoded(test, path)
    compared, _ = compare(text_events(text), cpus)
    switches = sum(e[2] == "sched_switch" for events in cpus.values() for e in events)
    check(switches > 50, f"only {switches} switches")
    check(compacts > switches / 2, f"only {compacts} compact events for {switches} switches")
    check(compared > switches * 5, f"only {compared} values compared")
    gaps = [p.ftrace_events.cpu for p in trace.packet if p.ftrace_events.lost_events]
    check(not gaps, f"gaps on the CPUs {gaps}: {test.run('convert', '-v', 'x.traced', 'y.txt')}")


def many_events(test):
    """Typed and generic, strings, arrays, masks, dynamic fields; all of a machine's usual systems."""
    text, path = record(test, "-e", "sched", "-e", "irq", "-e", "raw_syscalls", "-e", "timer", "-e",
                        "workqueue", "-e", "writeback", "-e", "ext4", "-e", "task",
                        "-e", "signal", "-e", "block", "-e", "tlb", "-e", "rcu", "-e", "exceptions")
    _, cpus, _ = decoded(test, path)
    compared, names = compare(text_events(text), cpus)
    check(len(names) > 30, f"only {sorted(names)}")
    check(compared > 1000, f"only {compared} values compared")
    calls = [e for events in cpus.values() for e in events if e[2] == "sys_enter"]
    check(calls and all(len(e[3]["args"]) == 6 for e in calls), "sys_enter without six arguments")


def rare_packets(test):
    _, path = record(test)
    packets = Decoder(test.dir, test.source).decode(path).packet
    kinds = [p.WhichOneof("data") for p in packets]
    check(kinds[0] == "trace_uuid" and "system_info" in kinds[:4], f"the head is {kinds[:6]}")
    system = next(p.system_info for p in packets if p.HasField("system_info"))
    release = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout
    check(system.utsname.release == release.strip() and system.page_size, str(system))
    clocks = [p.clock_snapshot for p in packets if p.HasField("clock_snapshot")]
    check(len(clocks) >= 2, "no clock snapshots at start and end")
    for snapshot in clocks:
        ids = [c.clock_id for c in snapshot.clocks]
        check(snapshot.primary_trace_clock == BOOTTIME and BOOTTIME in ids and {1, 3, 5} <= set(ids),
              f"clocks {ids}")
    trees = [p.process_tree for p in packets if p.HasField("process_tree")]
    threads = {t.tid: t for tree in trees for t in tree.threads}
    processes = {p.pid for tree in trees for p in tree.processes}
    check(1 in processes and 2 in processes, "init and kthreadd are not there")
    check(all(t.tgid in processes for t in threads.values() if t.tgid), "a thread without a process")
    for phase in (1, 2):
        stats = [p.ftrace_stats for p in packets
                 if p.HasField("ftrace_stats") and p.ftrace_stats.phase == phase]
        check(len(stats) == 1 and stats[0].cpu_stats, f"no counts of phase {phase}")
    check(kinds[-1] == "trace_stats", "the tail is missing")


def losses(test):
    """A flood into the smallest buffers: gaps are flagged, counted, and shown."""
    r = test.run("record", "-e", "raw_syscalls", "-b", "64K", "-o", "x.traced", "--", "python3", "-c",
                 "import os\nfor i in range(1000000): os.getppid()")
    check(r.status == 0, f"record failed: {r}")
    r = test.run("convert", "x.traced", "x.pftrace")
    check(r.status == 0 and "lost" in r.err, f"convert failed: {r}")
    packets = Decoder(test.dir, test.source).decode(test.dir / "x.pftrace").packet
    slices = [p.track_event for p in packets if p.HasField("track_event")]
    begins = [e for e in slices if e.type == 1]
    check(len(slices) == 2 * len(begins), "a gap that does not end")
    if "none lost" in r.err:
        check(not begins, "gaps where nothing was lost")
        return
    lost = sum(e.debug_annotations[0].uint_value for e in begins)
    told = int(re.search(r"([\d,]+) (?:events )?lost", r.err)[1].replace(",", ""))
    check(lost == told, f"{lost} lost on the tracks, {told} told")
    check(any(p.ftrace_events.lost_events for p in packets), "no bundle says that events were lost")


def prefixes(test):
    """Cut anywhere between two packets, it is a trace still."""
    _, path = record(test)
    data, decoder, at = path.read_bytes(), Decoder(test.dir, test.source), 0
    ends = []
    while at < len(data):
        tag, at = varint(data, at)
        check(tag == 0x0A, "something else than packets in the file")
        size, at = varint(data, at)
        at += size
        ends.append(at)
    check(ends[-1] == len(data), "the last packet runs over the end")
    for i, end in enumerate(ends[:: max(1, len(ends) // 20)]):
        (test.dir / "cut").write_bytes(data[:end])
        decoder.decode(test.dir / "cut")


def main():
    test = Test("perfetto")
    for case in (sched_and_irq, many_events, rare_packets, losses, prefixes):
        test.case(case.__name__.replace("_", " "), case)
    test.end()


if __name__ == "__main__":
    main()
