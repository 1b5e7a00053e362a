#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""report_fixtures.py BUILD_DIRECTORY: in a guest, records what the tests of reports and formats need of its kernel
into /out/data/VERSION (tests/vm/fixtures copies it to tests/data):

    reports.traced.gz  the scheduler, interrupts, system calls, requests to a disk, idle states
    marks.traced.gz    slices of a thread, which sleeps, reads a disk and runs in them, with the scheduler and the requests
    frequencies.traced.gz  frequencies and idle states
    osnoise.traced.gz  the tracer osnoise with its events, if the kernel has it; NMIs are among them
    latencies.traced.gz  the tracer timerlat with its samples and events, if the kernel has it
    made.traced.gz     events that the kernel makes for a recording: of SQL and of each kind of probe
"""

import contextlib
import pathlib
import subprocess
import sys
import time

import cpufreq
from common import INSTANCES, TRACEFS, check, need, of_a_guest, only_events, record, text_of
from fixtures import fewer_symbols, version, write_gz
from sql import OPEN, OPENED, RUN, WAKEUP, opens, two_of_cpu_0

EVENTS = ("sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new",
          "sched:sched_process_exec", "sched:sched_process_fork", "sched:sched_process_exit",
          "irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry", "irq:softirq_exit", "irq:softirq_raise",
          "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "power:cpu_idle", "power:cpu_frequency",
          "block:block_rq_insert", "block:block_rq_issue", "block:block_rq_requeue", "block:block_rq_complete")
LOAD = ("dd if=/dev/vda of=/dev/null bs=16k count=8 iflag=direct; echo data | dd of=/dev/vda conv=fsync;"
        "cat /proc/self/stat; ls /proc/self/missing; sleep 0.01")
SLICES = """
import mmap, os, sys, time
marker = os.open(sys.argv[1], os.O_WRONLY)
disk = os.open("/dev/vda", os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
def mark(kind, name=None, *more):
    os.write(marker, "|".join([kind, *([str(os.getpid()), name] if name else []), *map(str, more)]).encode())
for i in range(32):
    mark("S", "request", i)
    mark("B", "outer")
    mark("B", "sleep")
    time.sleep(0.002)
    mark("E")
    mark("B", "read")
    os.preadv(disk, [page], i << 12)
    mark("E")
    mark("B", "spin")
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    mark("E")
    mark("E")
    mark("F", "request", i)
"""
NOISE = {"runtime_us": "80000", "period_us": "100000"}
# An emulated CPU manages a sample in some milliseconds.
LATENCIES = {"timerlat_period_us": "20000"}
# Functions that events of made() name, and one by which traced knows a kernel with eprobes.
MADE_OF = (b"tracing_mark_write", b"vfs_open", b"vfs_read", b"path_openat", b"do_open", b"__probestub_sched_switch",
           b"eprobe_dyn_event_create")


def enable(instance, names):
    """Returns those that the kernel has."""
    has = [name for name in names if (instance / "events" / name.replace(":", "/")).exists()]
    for name in has:
        (instance / "events" / name.replace(":", "/") / "enable").write_text("1")
    return has


@contextlib.contextmanager
def few_symbols(test, text):
    """The kernel has only symbols that the text names."""
    symbols = test.dir / "kallsyms"
    fewer_symbols(text, symbols)
    subprocess.run(["mount", "--bind", str(symbols), "/proc/kallsyms"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "/proc/kallsyms"], check=False)


def keep(test, instance, events, to):
    """What the instance has, with few symbols and formats."""
    text = (instance / "trace").read_bytes()
    check(b"LOST" not in text, "the fixture's buffer is too small")
    with few_symbols(test, text), only_events(test, events):
        done = test.run("extract", "--instance", instance.name, "-o", "x.traced")
    check(done.status == 0, f"extract: {done}")
    write_gz(to, (test.dir / "x.traced").read_bytes())
    return text


def of_instance(test, fill):
    instance = INSTANCES / f"{test.name}-own"
    instance.mkdir()
    try:
        (instance / "tracing_on").write_text("0")
        (instance / "buffer_size_kb").write_text("8192")
        fill(instance)
    finally:
        instance.rmdir()


def reports(test, out):
    def fill(instance):
        has = enable(instance, EVENTS)
        (instance / "tracing_on").write_text("1")
        subprocess.run(["sh", "-c", LOAD], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "reports.traced.gz")
        for name in ("sys_exit", "irq_handler_entry", "block_rq_complete"):
            check(f": {name}: ".encode() in text, f"no {name}")

    of_instance(test, fill)


def marks(test, out):
    def fill(instance):
        has = enable(instance, [name for name in EVENTS if name.startswith(("sched", "block"))])
        (instance / "tracing_on").write_text("1")
        subprocess.run([sys.executable, "-c", SLICES, instance / "trace_marker"], check=True)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "marks.traced.gz")
        check(text.count(b": tracing_mark_write: ") == 320, "not each mark is an event")

    of_instance(test, fill)


def frequencies(test, out):
    found = cpufreq.policies()

    def fill(instance):
        has = enable(instance, cpufreq.EVENTS)
        (instance / "tracing_on").write_text("1")
        changes = cpufreq.change(found)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "frequencies.traced.gz")
        check(text.count(b": cpu_frequency: ") == len(changes), "not each change is an event")

    of_instance(test, fill)


def of_tracer(test, out, tracer, settings, during, wanted):
    """What a tracer of latencies and its events leave, with these settings of its folder."""
    need(tracer in (TRACEFS / "available_tracers").read_text().split(), f"this kernel has no {tracer}")
    before = {name: (TRACEFS / "osnoise" / name).read_text() for name in settings}

    def fill(instance):
        names = [f"osnoise:{p.name}" for p in (TRACEFS / "events/osnoise").iterdir() if p.is_dir()]
        has = enable(instance, names)
        (instance / "current_tracer").write_text(tracer)
        try:
            (instance / "tracing_on").write_text("1")
            during()
            (instance / "tracing_on").write_text("0")
            text = keep(test, instance, has, out)
        finally:
            (instance / "current_tracer").write_text("nop")
        for name in wanted:
            check(name in text, f"no {name}")

    for name, value in settings.items():
        (TRACEFS / "osnoise" / name).write_text(value)
    try:
        of_instance(test, fill)
    finally:
        for name in reversed(settings):
            (TRACEFS / "osnoise" / name).write_text(before[name])


def backtraces():
    """Of all CPUs, by NMIs."""
    for _ in range(3):
        time.sleep(0.1)
        pathlib.Path("/proc/sysrq-trigger").write_text("l")
    time.sleep(0.1)


def osnoise(test, out):
    of_tracer(test, out / "osnoise.traced.gz", "osnoise", NOISE, backtraces,
              (b": nmi_noise: ", b": irq_noise: ", b": thread_noise: "))


def latencies(test, out):
    of_tracer(test, out / "latencies.traced.gz", "timerlat", LATENCIES, lambda: time.sleep(1),
              (b" context    irq timer_latency ", b" context thread timer_latency ", b": irq_noise: "))


def made(test, out):
    need((TRACEFS / "synthetic_events").exists(), "this kernel has no synthetic events")
    readme = (TRACEFS / "README").read_text()
    words = [*OPENED, "--sql", WAKEUP + ' WHERE end.next_comm ~ "pyt*"', "--as", "wakeup", "--sql", RUN, "--as", "run",
             "--sql", OPEN.replace(" start.path,", ""), "--as", "open_time"]
    names = ["opened", "was_opened", "wakeup", "run", "open_time"]
    if " f[:[<group>/]" in readme:
        words += ["--fprobe", "f:entered vfs_read $arg*",
                  "--fprobe", "f:named vfs_open name=path->dentry->d_name.name:string",
                  "--tprobe", "t:switched sched_switch to=next->pid comm=next->comm:string"]
        names += ["entered", "named", "switched"]
    if " eprobe_dyn_event_create\n" in pathlib.Path("/proc/kallsyms").read_text():
        words += ["--eprobe", "e:opens syscalls:sys_enter_openat dfd=$dfd:s32 file=+0($filename):ustring"]
        names.append("opens")
    with few_symbols(test, b" ".join(MADE_OF)):
        record(test, *words, "-o", "out.traced", during=lambda: (two_of_cpu_0(), opens()))
    check(test.run("convert", "out.traced", "out.txt").status == 0, "convert")
    text = text_of(test)
    for name in names:
        check(text.count(f": {name}: ") >= 20, f"{text.count(f': {name}: ')} events {name}")
    check("LOST" not in text, "the fixture's buffer is too small")
    write_gz(out / "made.traced.gz", (test.dir / "out.traced").read_bytes())


def main():
    test = of_a_guest("report-fixtures")
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True, exist_ok=True)
    test.case("reports", reports, out)
    test.case("marks", marks, out)
    test.case("frequencies", frequencies, out)
    test.case("osnoise", osnoise, out)
    test.case("latencies", latencies, out)
    test.case("made", made, out)
    test.end()


if __name__ == "__main__":
    main()
