#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Perfetto trace beside the text of the same capture: the same events, in
the same order, with the same values."""

import collections
import re
import subprocess

from harness import Test, check
from perfetto_decode import (BOOTTIME, Decoder, check_inferred_names, compact_events, compare,
                             perfetto_events, text_events, varint)
from perfetto_infer import IN_INTERRUPT


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


def irq_contexts(test):
    """The interrupt flags of compact wakings are those of the text's flags column."""
    text, path = record(test, "-e", "sched:sched_switch", "-e", "sched:sched_waking")
    letters = {0x18: "HZ", 0x10: "sz", 0x08: "hZ", 0: ".z"}
    columns = {}
    for cpu, column, time in re.findall(r"\[(\d+)\] \S\S(\S)\S+ +(\d+\.\d{6}): sched_waking: ", text.read_text()):
        columns.setdefault((int(cpu), int(time.replace(".", ""))), set()).add(column)
    seen = collections.Counter()
    for bundle in (p.ftrace_events for p in Decoder(test.dir, test.source).decode(path).packet):
        wakings = [e[0] for e in compact_events(bundle.compact_sched) if e[2] == "sched_waking"]
        for ts, flags in zip(wakings, bundle.compact_sched.waking_common_flags, strict=True):
            column = columns[bundle.cpu, (ts + 500) // 1000]
            check(column & set(letters[flags & IN_INTERRUPT]), f"flags {flags:#x} of a waking at {ts}, {column} in the text")
            seen.update(column if len(column) == 1 else ())
    check(seen["."] > 10 and seen["h"] + seen["s"] + seen["H"] > 10, f"only {seen}")


def renames(test):
    """Shells become other programs."""
    _, path = record(test, "-e", "sched")
    trace = Decoder(test.dir, test.source).decode(path)
    checked = check_inferred_names(path.read_bytes(), trace)
    check(checked > 50, f"only {checked} compact switches")


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
    check(len(slices) == 2 * len(begins), "a gap without an end")
    if "none lost" in r.err:
        check(not begins, "gaps where nothing was lost")
        return
    lost = sum(e.debug_annotations[0].uint_value for e in begins)
    told = int(re.search(r"([\d,]+) (?:events )?lost", r.err)[1].replace(",", ""))
    check(lost == told, f"{lost} lost on the tracks, {told} told")
    check(any(p.ftrace_events.lost_events for p in packets), "no bundle says that events were lost")


def prefixes(test):
    """Truncated between any two packets, it is still a trace."""
    _, path = record(test)
    data, decoder, at = path.read_bytes(), Decoder(test.dir, test.source), 0
    ends = []
    while at < len(data):
        tag, at = varint(data, at)
        check(tag == 0x0A, "the file has other fields than packets")
        size, at = varint(data, at)
        at += size
        ends.append(at)
    check(ends[-1] == len(data), "the last packet runs over the end")
    for i, end in enumerate(ends[:: max(1, len(ends) // 20)]):
        (test.dir / "cut").write_bytes(data[:end])
        decoder.decode(test.dir / "cut")


def main():
    test = Test("perfetto")
    for case in (sched_and_irq, irq_contexts, renames, many_events, rare_packets, losses, prefixes):
        test.case(case.__name__.replace("_", " "), case)
    test.end()


if __name__ == "__main__":
    main()
