#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: CPUs that go and come back during a recording, modules that load, time stamps that do
not fit into 27 bits, buffers whose sub-buffers aren't one page."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import time

from common import (INSTANCES, TRACEFS, check, extracted, lines_of, of_a_guest, record, same_text,
                    text_of)

CPUS = pathlib.Path("/sys/devices/system/cpu")


def busy_here(seconds):
    """Some events on this CPU, however slow the emulator is."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.001)


def busy(seconds):
    """Some events on every CPU."""
    before = os.sched_getaffinity(0)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            for cpu in before:
                with contextlib.suppress(OSError):  # it went away
                    os.sched_setaffinity(0, {cpu})
                time.sleep(0.001)
            subprocess.run(["true"], check=True)
    finally:
        os.sched_setaffinity(0, before)


def fill_sub_buffers():
    """Several on each CPU, with events of the scheduler."""
    for cpu in os.sched_getaffinity(0):
        on_cpu(cpu, lambda: [time.sleep(0.0001) for _ in range(200)])


def cpus_in(text):
    return {int(line["cpu"]) for line in lines_of(text)}


def record_busy(test, *arguments, seconds=1):
    record(test, *arguments, during=lambda: busy(seconds))


def json_and_text(test):
    record_busy(test, "-o", "out.traced")
    for name in ("out.json", "out.txt"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
    document = json.loads(text_of(test, "out.json"))
    check(document.get("traceEvents") is not None or document.get("systemTraceEvents"),
          f"out.json has no events: {list(document)}")
    cpus = set(os.sched_getaffinity(0))
    check(cpus_in(text_of(test)) == cpus, f"not every CPU of {cpus} is in the text")
    switches = sum(line["text"].startswith("sched_switch:") for line in lines_of(text_of(test)))
    check(switches > 10 * len(cpus), f"only {switches} sched_switch")


def on_cpu(cpu, function, *arguments):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        return function(*arguments)
    finally:
        os.sched_setaffinity(0, before)


def hotplug(test):
    """A CPU's events from before it goes, and from after it is back, are all there."""
    online = CPUS / "cpu1" / "online"
    marks = []

    def mark(text):
        marks.append(text)
        instance = next(i for i in test.instances() if not i.endswith("-tasks"))
        (INSTANCES / instance / "trace_marker").write_text(text)

    def during():
        try:
            for turn in range(3):
                on_cpu(1, mark, f"cpu1 before {turn}")
                busy(0.2)
                online.write_text("0")
                busy(0.2)
                on_cpu(0, mark, f"cpu0 while cpu1 is away {turn}")
                online.write_text("1")
                busy(0.2)
                on_cpu(1, mark, f"cpu1 after {turn}")
        finally:
            online.write_text("1")

    record(test, "-e", "sched", "-o", "out.txt", during=during)
    text = text_of(test)
    for m in marks:
        check(text.count(m) == 1, f"'{m}' is there {text.count(m)} times")
    at = {line["text"].rpartition(": ")[2]: line["cpu"] for line in lines_of(text)}
    for m in marks:
        check(int(at[m]) == int(m[3]), f"'{m}' is on CPU {at[m]}")


def started_without_a_cpu(test):
    """A CPU that is offline at the start comes during the recording, just before its end."""
    online = CPUS / "cpu1" / "online"
    online.write_text("0")
    try:
        def during():
            busy(0.3)
            online.write_text("1")
            on_cpu(1, busy_here, 0.2)
        record(test, "-e", "sched", "-o", "out.txt", during=during)
    finally:
        online.write_text("1")
    check(1 in cpus_in(text_of(test)), "the CPU that came late has no event")


def modules(test):
    def during():
        for command in (["insmod", "/later/dummy.ko"], ["rmmod", "dummy"]):
            subprocess.run(command, check=True)

    record(test, "-e", "module", "-o", "out.txt", during=during)
    text = text_of(test)
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
    check("sched_switch" in text_of(test), "nothing recorded")


def module_is_unloaded(test):
    """The module goes while its events are recorded, and the kernel then empties the rings. Data
    that was read by then (only full sub-buffers) is there, by name, and a message says that
    something is missing."""
    names = ("vsock", "vmw_vsock_virtio_transport_common", "vsock_loopback")

    def talk():
        with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as server, \
                socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as client:
            server.bind((socket.VMADDR_CID_ANY, 4321))
            server.listen()
            client.connect((1, 4321))
            client.send(b"hello")

    def during():
        busy(0.3)
        talk()
        fill_sub_buffers()
        time.sleep(1.5)
        # A connection ends some seconds after it was closed.
        until = time.monotonic() + 60
        while subprocess.run(["rmmod", names[-1]], capture_output=True, check=False).returncode:
            check(time.monotonic() < until, f"{names[-1]} stays in use")
            time.sleep(0.5)
        for name in reversed(names[:-1]):
            subprocess.run(["rmmod", name], check=True)
        busy(0.3)

    for name in names:
        subprocess.run(["insmod", f"/later/{name}.ko"], check=True)
    done = record(test, "-e", "vsock:*", "-e", "sched", "-o", "out.txt", during=during, status=3)
    check("the kernel resets them when it empties its ring buffers" in done.err, f"no message says so: {done}")
    check("virtio_transport_alloc_pkt: " in text_of(test), f"its events are missing: {done}")


@contextlib.contextmanager
def instance_of(test, name):
    instance = INSTANCES / f"{test.name}-{name}"
    instance.mkdir()
    try:
        yield instance
    finally:
        (instance / "events" / "enable").write_text("0")
        instance.rmdir()


def sub_buffers(test, kilobytes):
    """Whatever the size of a sub-buffer, the text is the kernel's."""
    with instance_of(test, "sub-buffers") as instance:
        size = instance / "buffer_subbuf_size_kb"
        if kilobytes != 4:
            size.write_text(str(kilobytes))
            check(int(size.read_text()) == kilobytes, f"the kernel made {size.read_text()} of it")
        (instance / "buffer_size_kb").write_text("4096")
        systems = [instance / "events" / system for system in ("sched", "irq", "timer")]
        for system in systems:
            (system / "enable").write_text("1")
        (instance / "trace_marker").write_text("m" * min(1000, kilobytes * 200))
        busy(0.5)
        (instance / "tracing_on").write_text("0")
        wanted = (instance / "trace").read_text(errors="surrogateescape")
        # Once with every format that there is.
        events = None if kilobytes == 4 else [f"{p.parent.parent.name}:{p.parent.name}" for system in systems
                                              for p in system.glob("*/format")]
        check(same_text(wanted, extracted(test, instance.name, events)) > 100, "too little was recorded")


def long_silences(test):
    """Between two events more time passes than a delta's 27 bits hold, and more than 32 bits; and
    stamps that the kernel writes whole, because a variable of the events' time requires it. The
    text is the same, and the times agree with the clock, which this program reads, too."""
    trigger = "hist:keys=common_pid:began=common_timestamp"
    marks = []
    with instance_of(test, "deltas") as deltas, instance_of(test, "stamps") as stamps:
        whole = stamps / "events/sched/sched_process_exit/trigger"
        whole.write_text(trigger)
        for instance in (deltas, stamps):
            (instance / "trace_clock").write_text("boot")
        for name, pause in (("first", 0.001), ("27 bits", 0.2), ("32 bits", 4.4), ("28 bits", 0.3)):
            time.sleep(pause)
            for instance in (deltas, stamps):
                for cpu in os.sched_getaffinity(0):
                    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                    on_cpu(cpu, (instance / "trace_marker").write_text, f"{name}, CPU {cpu}")
                    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                    marks.append((instance, f"{name}, CPU {cpu}", before, after))
        whole.write_text("!" + trigger)
        for instance in (deltas, stamps):
            wanted = (instance / "trace").read_text()
            ours = extracted(test, instance.name)
            same_text(wanted, ours)
            at = {line["text"].partition(": ")[2]: float(line["time"]) for line in lines_of(ours)}
            for _, text, before, after in (m for m in marks if m[0] == instance):
                check(before - 1000 <= round(at[text] * 1e9) <= after + 1000,
                      f"{instance.name}: '{text}' is of {at[text]}, not between {before} and {after} ns")


def main():
    test = of_a_guest("kernel")
    test.case("JSON and text", json_and_text)
    if (CPUS / "cpu1" / "online").exists():
        test.case("CPU hotplug while recording", hotplug)
        test.case("a CPU that comes late", started_without_a_cpu)
    test.case("module load and unload", modules)
    test.case("events of a module", module_events)
    test.case("a module is unloaded while it is recorded", module_is_unloaded)
    test.case("time stamps of more than 27 and 32 bits", long_silences)
    for kilobytes in (4, 8, 16, 32, 64) if (TRACEFS / "buffer_subbuf_size_kb").exists() else (4,):
        test.case(f"sub-buffers of {kilobytes} KiB", sub_buffers, kilobytes)
    test.end()


if __name__ == "__main__":
    main()
