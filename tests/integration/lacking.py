#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What this machine's kernel lacks is refused with the configuration that has it, changes nothing, and
stands in the doctor's list. Cases of what the kernel has are skipped."""

import json
import pathlib
import re

from harness import INSTANCES, TRACEFS, Test, check, need, settled

SQL = ("SELECT start.pid, (end.TIMESTAMP - start.TIMESTAMP) AS lat FROM sched_waking AS start JOIN sched_switch AS end "
       "ON start.pid = end.next_pid")
HAS_EPROBES = " eprobe_dyn_event_create\n"
SETTINGS = ("set_event", "current_tracer", "trace_options", "tracing_on", "kprobe_events", "uprobe_events",
            "dynamic_events", "synthetic_events", "tracing_thresh")


def file(name):
    return lambda: (TRACEFS / name).exists()


def tracer(name):
    return lambda: name in (TRACEFS / "available_tracers").read_text().split()


def readme(text):
    return lambda: text in (TRACEFS / "README").read_text()


def trigger(name):
    return lambda: name in (TRACEFS / "events/sched/sched_switch/trigger").read_text()


def eprobes():
    return readme(" e[:[<group>/]")() and HAS_EPROBES in pathlib.Path("/proc/kallsyms").read_text()


def option(name, needs):
    return (name, file(f"options/{name}"), ("-e", "sched:sched_switch", "-O", name), needs, "calls")


def tracer_of(name, needs, check_name="latencies"):
    return (name, tracer(name), ("-p", name), needs, check_name)


# What, whether the kernel has it, the request, what has to be named, and the doctor's line.
CASES = (
    ("kprobes", file("kprobe_events"), ("--kprobe", "p:x vfs_read"), "CONFIG_KPROBE_EVENTS", "probes"),
    ("uprobes", file("uprobe_events"), ("--uprobe", "p:x /bin/sh:0x1000"), "CONFIG_UPROBE_EVENTS", "probes"),
    ("fprobes", readme(" f[:[<group>/]"), ("--fprobe", "vfs_read"), "CONFIG_FPROBE_EVENTS, Linux 6.5", "probes"),
    ("tprobes", readme(" t[:[<group>/]"), ("--tprobe", "sched_switch"), "CONFIG_FPROBE_EVENTS, Linux 6.5", "probes"),
    ("eprobes", eprobes, ("--eprobe", "e:x sched:sched_switch a=$next_pid"), "CONFIG_EPROBE_EVENTS, Linux 5.15",
     "probes"),
    ("histograms", file("events/sched/sched_switch/hist"), ("--hist", "sched_switch:keys=next_pid"),
     "CONFIG_HIST_TRIGGERS", "histograms"),
    ("synthetic events", file("synthetic_events"), ("--sql", SQL), "CONFIG_SYNTH_EVENTS", None),
    ("stacks of triggers", trigger("stacktrace"), ("--trigger", "sched:sched_switch: stacktrace"), "CONFIG_STACKTRACE",
     "triggers"),
    ("user events", file("user_events_data"), ("-e", "user_events:x"), "CONFIG_USER_EVENTS, Linux 6.4", "marks"),
    ("copy_trace_marker", file("options/copy_trace_marker"), ("-e", "sched:sched_switch", "-O", "copy_trace_marker"),
     "Linux 6.16", "marks"),
    option("funcgraph-retval", "CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5"),
    option("funcgraph-args", "CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15"),
    option("funcgraph-retaddr", "CONFIG_FUNCTION_GRAPH_RETADDR, Linux 6.13"),
    tracer_of("timerlat", "CONFIG_TIMERLAT_TRACER"),
    tracer_of("osnoise", "CONFIG_OSNOISE_TRACER"),
    tracer_of("hwlat", "CONFIG_HWLAT_TRACER"),
    tracer_of("function_graph", "CONFIG_FUNCTION_GRAPH_TRACER", None),
)


def settings():
    """(file, setting) of each file: a line of those that list events, all of the others."""
    found = set()
    for path in (TRACEFS / name for name in SETTINGS):
        text = path.read_text() if path.exists() else ""
        found.update((path.name, setting) for setting in (text.splitlines() if path.name.endswith("_events") else [text]))
    return found


def check_settings(before):
    """Nothing stays that was not there before. Other tests, which run beside this one, set something for seconds."""
    new = settings() - before
    settled(lambda: f"it stays: {new}", lambda: not new.intersection_update(settings()) and not new)


def doctors_line(test, name):
    done = test.run("doctor", "--json")
    findings = [f for f in json.loads(done.out) if f["check"] == name]
    check(len(findings) == 1, f"{name}: {done}")
    return " ".join(str(findings[0].get(key) or "") for key in ("text", "mend"))


def is_refused(test, has, arguments, needs, line):
    told = doctors_line(test, line) if line else None
    if has():
        check(not told or needs not in told, f"the kernel has it, and the doctor says: {told}")
    need(not has(), "the kernel has it")
    check(not told or needs in told, f"the doctor says: {told}")
    before = settings()
    done = test.run("record", "-t", "100ms", *arguments, "-o", "out.json")
    check(done.status == 1 and needs in done.err, f"{done}")
    check(not (test.dir / "out.json").exists() and not test.instances(), "something is left")
    check_settings(before)


def names_of_arguments(test):
    has = pathlib.Path("/sys/kernel/btf/vmlinux").exists()
    told = doctors_line(test, "probes")
    check(("no names of arguments (CONFIG_DEBUG_INFO_BTF)" in told) != has, told)


def counts_that_are_told(test):
    """Histograms that have not counted need not be read."""
    told = doctors_line(test, "histograms")
    need("histograms and synthetic events" in told, "the kernel has none")
    release = tuple(map(int, re.findall(r"\d+", pathlib.Path("/proc/sys/kernel/osrelease").read_text())[:2]))
    check("Linux 6.14" not in told or release < (6, 14), told)


def a_ring_that_outlives_a_crash(test):
    need(not (INSTANCES / "traced_boot").exists(), "the kernel has it")
    release = tuple(map(int, re.findall(r"\d+", pathlib.Path("/proc/sys/kernel/osrelease").read_text())[:2]))
    told = doctors_line(test, "boot recorder")
    check("boot-recorder enable" in told if release >= (6, 12) else "Linux 6.12" in told, told)
    done = test.run("extract", "--last-boot", "-o", "out.txt")
    check(done.status == 1 and "no instance 'traced_boot'" in done.err and "boot-recorder enable" in done.err, f"{done}")
    check(not (test.dir / "out.txt").exists(), "a file was written")


def tracers_of_maxima(test):
    """Another kernel would not help, so no configuration is named."""
    for name in ("wakeup", "wakeup_rt", "wakeup_dl", "irqsoff", "preemptoff", "preemptirqsoff"):
        before = settings()
        done = test.run("record", "-t", "100ms", "-p", name, "-o", "out.json")
        check(done.status == 1 and "as text only" in done.err and "hint: " in done.err, f"{name}: {done}")
        check("CONFIG_" not in done.err, f"{name}: {done}")
        check(not test.instances(), f"{name}: something is left")
        check_settings(before)


def main():
    test = Test("lacking")
    for what, *rest in CASES:
        test.case(what, is_refused, *rest)
    test.case("names of arguments", names_of_arguments)
    test.case("counts that are told", counts_that_are_told)
    test.case("a ring that outlives a crash", a_ring_that_outlives_a_crash)
    test.case("tracers of maxima", tracers_of_maxima)
    test.end()


if __name__ == "__main__":
    main()
