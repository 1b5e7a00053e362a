#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest, what a person's machine isn't taken for: CPUs that go and come back
while recording, modules that load, buffers whose sub-buffers aren't one page."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import INSTANCES, Test, check, interrupt, skip  # noqa: E402

CPUS = pathlib.Path("/sys/devices/system/cpu")
LINE = re.compile(r"^ *(?P<task>.*)-(?P<pid>\d+) +(?:\( *(?:\d+|-+)\) )?\[(?P<cpu>\d+)\] "
                  r"(?P<flags>\S+) +(?P<time>\d+\.\d+): (?P<text>.*)$")


def busy(seconds):
    """Something to see on every CPU."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for cpu in os.sched_getaffinity(0):
            subprocess.run(["taskset", f"{1 << cpu:x}", "true"], check=False, stderr=subprocess.DEVNULL)


def lines_of(path):
    lines = [LINE.match(line) for line in path.read_text(errors="surrogateescape").splitlines()
             if not line.startswith("#")]
    check(lines and all(lines), f"{path.name} has lines that are none of an event")
    return lines


def cpus_in(path):
    return {int(line["cpu"]) for line in lines_of(path)}


def record(test, *arguments, seconds=2, during=busy):
    """A recording that ends by Ctrl-C once during() is through."""
    process = test.start("record", "--name", test.name, *arguments)
    test.wait_for_recording(test.name)
    try:
        during(seconds)
    finally:
        interrupt(process)
    done = test.finish(process)
    check(done.status == 0, f"record: {done}")
    return done


def json_and_text(test):
    record(test, "-o", "out.traced")
    for name in ("out.json", "out.txt"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
    document = json.loads((test.dir / "out.json").read_text())
    check(document.get("traceEvents") is not None or document.get("systemTraceEvents"),
          f"out.json has nothing to show: {list(document)}")
    cpus = set(os.sched_getaffinity(0))
    check(cpus_in(test.dir / "out.txt") == cpus, f"not every CPU of {cpus} is in the text")
    switches = sum(line["text"].startswith("sched_switch:") for line in lines_of(test.dir / "out.txt"))
    check(switches > 10 * len(cpus), f"only {switches} sched_switch")


def hotplug(test):
    """A CPU's events from before it goes, and from after it is back, are all there."""
    online = CPUS / "cpu1" / "online"
    marks = []

    def mark(text):
        marks.append(text)
        instance = next(p for p in INSTANCES.iterdir()
                        if test.name in p.name and not p.name.endswith("-tasks"))
        (instance / "trace_marker").write_text(text)

    def on_cpu(cpu, text):
        previous = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})
        mark(text)
        os.sched_setaffinity(0, previous)

    def during(_):
        try:
            for turn in range(3):
                on_cpu(1, f"cpu1 before {turn}")
                busy(0.3)
                online.write_text("0")
                busy(0.3)
                on_cpu(0, f"cpu0 while cpu1 is away {turn}")
                online.write_text("1")
                busy(0.3)
                on_cpu(1, f"cpu1 after {turn}")
        finally:
            online.write_text("1")

    record(test, "-e", "sched", "-o", "out.txt", during=during)
    text = (test.dir / "out.txt").read_text(errors="replace")
    for m in marks:
        check(text.count(m) == 1, f"'{m}' is there {text.count(m)} times")
    at = {line["text"].rpartition(": ")[2]: line["cpu"] for line in lines_of(test.dir / "out.txt")}
    for m in marks:
        check(int(at[m]) == int(m[3]), f"'{m}' is on CPU {at[m]}")


def started_without_a_cpu(test):
    """A CPU that is away at the start comes during the recording."""
    online = CPUS / "cpu1" / "online"
    online.write_text("0")
    try:
        def during(_):
            busy(0.5)
            online.write_text("1")
            busy(1)
        record(test, "-e", "sched", "-o", "out.txt", during=during)
    finally:
        online.write_text("1")
    check(1 in cpus_in(test.dir / "out.txt"), "the CPU that came late has no event")


def modules(test):
    def during(_):
        time.sleep(0.5)
        for command in (["insmod", "/later/dummy.ko"], ["rmmod", "dummy"]):
            subprocess.run(command, check=True)

    record(test, "-e", "module", "-o", "out.txt", during=during)
    text = (test.dir / "out.txt").read_text()
    for wanted in (r"module_load: dummy ", r"module_free: dummy$"):
        check(re.search(wanted, text, re.M), f"no {wanted} in\n{text[-2000:]}")


def module_events(test):
    """Events that a module brings are found, recorded and printed by name."""
    subprocess.run(["insmod", "/later/vsock.ko"], check=True)
    subprocess.run(["insmod", "/later/vmw_vsock_virtio_transport_common.ko"], check=True)
    try:
        done = test.run("events", "vsock:*")
        check(done.status == 0 and "virtio_transport" in done.out, f"events: {done}")
        done = test.run("record", "-t", "200ms", "-e", "vsock:*", "-e", "sched", "-o", "out.txt")
        check(done.status == 0, f"record: {done}")
    finally:
        subprocess.run(["rmmod", "vmw_vsock_virtio_transport_common", "vsock"], check=True)
    check("sched_switch" in (test.dir / "out.txt").read_text(), "nothing recorded")


def sub_buffers(test, kilobytes):
    """Whatever the size of a sub-buffer, the text is the kernel's."""
    instance = INSTANCES / f"{test.name}-sub-buffers"
    instance.mkdir()
    try:
        size = instance / "buffer_subbuf_size_kb"
        if not size.exists():
            check(kilobytes == 4, "this case is for kernels that have the setting")
        else:
            size.write_text(str(kilobytes))
            check(int(size.read_text()) == kilobytes, f"the kernel made {size.read_text()} of it")
        (instance / "buffer_size_kb").write_text("8192")
        for system in ("sched", "irq", "timer"):
            (instance / "events" / system / "enable").write_text("1")
        long = "m" * min(1000, kilobytes * 200)
        (instance / "trace_marker").write_text(long)
        busy(1)
        (instance / "tracing_on").write_text("0")
        wanted = (instance / "trace").read_text(errors="surrogateescape")
        done = test.run("extract", "--instance", instance.name, "--raw-addresses", "-o", "out.txt")
        check(done.status == 0, f"extract: {done}")
        have = [line["text"] for line in lines_of(test.dir / "out.txt")]
        wanted = [LINE.match(line)["text"] for line in wanted.splitlines() if not line.startswith("#")]
        for i, (w, h) in enumerate(zip(wanted, have)):
            check(w == h, f"event {i} is\n  {h}\nand the kernel says\n  {w}")
        check(len(wanted) == len(have), f"{len(have)} events, and the kernel has {len(wanted)}")
    finally:
        (instance / "events" / "enable").write_text("0")
        instance.rmdir()


def main():
    if not os.environ.get("TRACED_VM"):
        skip("only for guests: it takes CPUs away")
    test = Test("kernel")
    test.case("JSON and text", json_and_text)
    if (CPUS / "cpu1" / "online").exists():
        test.case("CPU hotplug while recording", hotplug)
        test.case("a CPU that comes late", started_without_a_cpu)
    test.case("module load and unload", modules)
    test.case("events of a module", module_events)
    has_setting = pathlib.Path("/sys/kernel/tracing/buffer_subbuf_size_kb").exists()
    for kilobytes in (4, 8, 16, 32, 64) if has_setting else (4,):
        test.case(f"sub-buffers of {kilobytes} KiB", sub_buffers, kilobytes)
    test.end()


if __name__ == "__main__":
    main()
