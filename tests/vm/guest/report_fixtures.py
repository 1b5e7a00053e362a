#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""report_fixtures.py BUILD_DIRECTORY: in a guest, records what the tests of reports need of its kernel into
/out/data/VERSION (tests/vm/fixtures copies it to tests/data):

    reports.traced.gz  the scheduler, interrupts, system calls, requests to a disk, idle states
    marks.traced.gz    slices of a thread, which sleeps, reads a disk and runs in them, with the scheduler and the requests
    frequencies.traced.gz  frequencies and idle states
    osnoise.traced.gz  the tracer osnoise with its events, if the kernel has it; NMIs are among them
"""

import pathlib
import subprocess
import sys
import time

import cpufreq
from common import INSTANCES, TRACEFS, check, need, of_a_guest, only_events
from fixtures import fewer_symbols, version, write_gz

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


def enable(instance, names):
    """Returns those that the kernel has."""
    has = [name for name in names if (instance / "events" / name.replace(":", "/")).exists()]
    for name in has:
        (instance / "events" / name.replace(":", "/") / "enable").write_text("1")
    return has


def keep(test, instance, events, to):
    """What the instance has, with few symbols and formats."""
    text = (instance / "trace").read_bytes()
    check(b"LOST" not in text, "the fixture's buffer is too small")
    symbols = test.dir / "kallsyms"
    fewer_symbols(text, symbols)
    subprocess.run(["mount", "--bind", str(symbols), "/proc/kallsyms"], check=True)
    try:
        with only_events(test, events):
            done = test.run("extract", "--instance", instance.name, "-o", "x.traced")
    finally:
        subprocess.run(["umount", "/proc/kallsyms"], check=False)
    check(done.status == 0, f"extract: {done}")
    write_gz(to, (test.dir / "x.traced").read_bytes())
    return text


def of_instance(test, record):
    instance = INSTANCES / f"{test.name}-own"
    instance.mkdir()
    try:
        (instance / "tracing_on").write_text("0")
        (instance / "buffer_size_kb").write_text("8192")
        record(instance)
    finally:
        instance.rmdir()


def reports(test, out):
    def record(instance):
        has = enable(instance, EVENTS)
        (instance / "tracing_on").write_text("1")
        subprocess.run(["sh", "-c", LOAD], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "reports.traced.gz")
        for name in ("sys_exit", "irq_handler_entry", "block_rq_complete"):
            check(f": {name}: ".encode() in text, f"no {name}")

    of_instance(test, record)


def marks(test, out):
    def record(instance):
        has = enable(instance, [name for name in EVENTS if name.startswith(("sched", "block"))])
        (instance / "tracing_on").write_text("1")
        subprocess.run([sys.executable, "-c", SLICES, instance / "trace_marker"], check=True)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "marks.traced.gz")
        check(text.count(b": tracing_mark_write: ") == 320, "not each mark is an event")

    of_instance(test, record)


def frequencies(test, out):
    found = cpufreq.policies()

    def record(instance):
        has = enable(instance, cpufreq.EVENTS)
        (instance / "tracing_on").write_text("1")
        changes = cpufreq.change(found)
        (instance / "tracing_on").write_text("0")
        text = keep(test, instance, has, out / "frequencies.traced.gz")
        check(text.count(b": cpu_frequency: ") == len(changes), "not each change is an event")

    of_instance(test, record)


def osnoise(test, out):
    need("osnoise" in (TRACEFS / "available_tracers").read_text().split(), "this kernel has no osnoise")
    before = {name: (TRACEFS / "osnoise" / name).read_text() for name in NOISE}

    def record(instance):
        names = [f"osnoise:{p.name}" for p in (TRACEFS / "events/osnoise").iterdir() if p.is_dir()]
        has = enable(instance, names)
        (instance / "current_tracer").write_text("osnoise")
        try:
            (instance / "tracing_on").write_text("1")
            for _ in range(3):
                time.sleep(0.1)
                # Backtraces of all CPUs, by NMIs.
                pathlib.Path("/proc/sysrq-trigger").write_text("l")
            time.sleep(0.1)
            (instance / "tracing_on").write_text("0")
            text = keep(test, instance, has, out / "osnoise.traced.gz")
        finally:
            (instance / "current_tracer").write_text("nop")
        for name in ("nmi_noise", "irq_noise", "thread_noise"):
            check(f": {name}: ".encode() in text, f"no {name}")

    for name, value in NOISE.items():
        (TRACEFS / "osnoise" / name).write_text(value)
    try:
        of_instance(test, record)
    finally:
        for name in reversed(NOISE):
            (TRACEFS / "osnoise" / name).write_text(before[name])


def main():
    test = of_a_guest("report-fixtures")
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True, exist_ok=True)
    test.case("reports", reports, out)
    test.case("marks", marks, out)
    test.case("frequencies", frequencies, out)
    test.case("osnoise", osnoise, out)
    test.end()


if __name__ == "__main__":
    main()
