#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many clients at once, and other users who interfere: thousands of clients, one that never reads,
two dozen sessions, instances that somebody turns off or removes while they record."""

import json
import os
import resource
import socket
import time

from daemon import HELLO, connect, frame, start, status, stop
from harness import INSTANCES, Daemon, Test, check, settled


def main_instance(test, name):
    found = [i for i in test.instances() if name in i and not i.endswith("-tasks")]
    check(len(found) == 1, f"instances of {name}: {found}")
    return INSTANCES / found[0]


def memory_kb(test):
    for line in open(f"/proc/{test.daemon.process.pid}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def bound_kb(test, kb):
    """A sanitizer keeps freed memory for a while: 256 MiB, and its surroundings."""
    return 1 << 20 if test.is_sanitized() else kb


def thousands(test):
    """2,000 connections, most of which the limit refuses, while a session goes on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    name = start(test, "bystander", "-e", "sched:sched_switch")
    before = memory_kb(test)
    descriptors = f"/proc/{test.daemon.process.pid}/fd"
    count = len(os.listdir(descriptors))
    sockets = []
    for n in range(2000):
        s = connect(test)
        sockets.append(s)
        if n % 2:
            try:
                s.sendall(HELLO)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was refused at once
    check(memory_kb(test) - before < bound_kb(test, 16384), f"memory: {before} to {memory_kb(test)} kB")
    for s in sockets:
        s.close()
    settled("clients are let in again", lambda: test.run("list").status == 0)
    settled("descriptors are closed", lambda: len(os.listdir(descriptors)) < count + 30)
    check("sched_switch" in stop(test, name, "bystander.txt"), "the bystander's recording")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def never_reads(test):
    """The queue of a client is bounded, and others are served meanwhile."""
    began = time.monotonic()
    check(test.run("list").status == 0, "list")
    usual = time.monotonic() - began
    s = connect(test)
    s.sendall(HELLO)
    s.settimeout(0.2)
    before = memory_kb(test)
    question = b"".join(frame(b"\x08" + bytes([2 + n % 100]) + b"\x42\x00") for n in range(500))
    sent = 0
    until = time.monotonic() + 4
    while time.monotonic() < until:
        try:
            sent += s.send(question)
        except socket.timeout:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    began = time.monotonic()
    check(test.run("list").status == 0, "another client is not served")
    check(time.monotonic() - began < 5 + 5 * usual, "another client waits long")
    check(memory_kb(test) - before < bound_kb(test, 32768), f"memory: {before} to {memory_kb(test)} kB for {sent} bytes of questions")
    s.close()


def two_dozen(test):
    config = test.dir / "traced.conf"
    config.write_text("[limits]\nsessions = 32\n[defaults]\nbuffer_size = 64K\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", str(config))
    names = [f"{test.name}-n{n}" for n in range(24)]
    clients = [test.start("start", "--name", name, "-e", "sched:sched_process_exit" if n % 2 else "irq")
               for n, name in enumerate(names)]
    for c in clients:
        r = test.finish(c)
        check(r.status == 0, f"start: {r}")
    check(len(status(test)["sessions"]) == 24, "sessions are missing from the list")
    check(test.run("mark", "all hear this").status == 0, "mark")
    for n, name in enumerate(names):
        if n % 8 == 0:
            check("all hear this" in stop(test, name, f"{n}.txt"), f"{name} has not heard it")
    clients = [test.start("cancel", name) for n, name in enumerate(names) if n % 8]
    check(all(test.finish(c).status == 0 for c in clients), "cancel")
    check(status(test)["sessions"] == [], "sessions are left")
    test.check_no_instances()


def memory_goes_back(test):
    """What recordings need for symbols, formats and tasks, each in a thread of its own."""
    before = memory_kb(test)
    names = [f"{test.name}-m{n}" for n in range(6)]
    clients = [test.start("start", "--name", name, "-b", "64K", "-e", "irq", "-e", "timer") for name in names]
    check(all(test.finish(c).status == 0 for c in clients), "start")
    time.sleep(1)
    clients = [test.start("stop", name, "-o", f"{name}.txt") for name in names]
    check(all(test.finish(c).status in (0, 3) for c in clients), "stop")
    grown = memory_kb(test) - before
    check(grown < bound_kb(test, 8192), f"memory: {before} kB, and {grown} more")


def turned_off(test):
    """Somebody writes 0 to its tracing_on: earlier events are there, and a message says so."""
    name = start(test, "off", "-e", "sched:sched_switch")
    check(test.run("mark", "before").status == 0, "mark")
    instance = main_instance(test, name)
    time.sleep(0.3)
    (instance / "tracing_on").write_text("0")
    time.sleep(0.3)
    r = test.run("stop", name, "-o", "off.json")
    check(r.status == 3 and "turned tracing off" in r.err, f"{r}")
    trace = json.loads((test.dir / "off.json").read_text())
    check("sched_switch" in trace["systemTraceEvents"], "earlier events are missing")
    check([e["name"] for e in trace["traceEvents"] if e["ph"] == "i"] == ["before"], "the mark is missing")


def removed(test):
    """Somebody removes the instance. This works once nobody has its files open, so not while it
    records."""
    name = start(test, "removed", "-e", "sched:sched_switch")
    instance = main_instance(test, name)
    try:
        instance.rmdir()
    except OSError:
        pass
    r = test.run("stop", name, "-o", "removed.txt")
    check(r.status in (0, 3), f"{r}")
    # Its rings' last user may end a moment later.
    until = time.monotonic() + 20
    while instance.exists():
        check(time.monotonic() < until, "the session is left")
        time.sleep(0.05)
    check(test.run("list").status == 0, "the daemon is gone")


def main():
    test = Test("crowd")
    for label, function in (("two thousand clients", thousands), ("a client that never reads", never_reads),
                            ("two dozen sessions", two_dozen), ("memory of what ended", memory_goes_back),
                            ("an instance is turned off", turned_off),
                            ("an instance is removed", removed)):
        test.case(label, function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
