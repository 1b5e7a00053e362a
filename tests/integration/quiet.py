#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the recorder does to a recording: events of its own, and the CPU time of a start.

Other load on the machine makes it move more sub-buffers, so its share of the events is judged, and
a few events of each start and end.
"""

import pathlib
import re
import time

from harness import Daemon, Test, check, settled

LINE = re.compile(r"\s*.{16}-(\d+)\s+\(\s*([\d-]+)\)\s+\[\d+\]\s+\S+\s+[\d.]+: (\w+)(.*)")
# Events of a start and an end, and the share for the sub-buffers that are moved meanwhile.
OWN, SHARE = 40, 0.01
# The client starts the command once tracing is on, and the recording's thread is told how it ended.
OWN_OF_COMMAND = 130
OWN_BEFORE_COMMAND = 100
TIME = re.compile(r" ([\d.]+): \w+: ")
# With all events, a system call leaves several of them, and so does each page that is moved. Large rings
# need not be read meanwhile. An idle machine makes at most so many events; the share is for a busy one.
OWN_OF_ALL, SHARE_OF_ALL, IDLE_OF_ALL, LARGE = 80, 0.35, 3000, ["-b", "64M"]
# After this time a start has no consequences any more.
SETTLED_S = 0.2
# Tries of a case: another process of this machine can delay anything.
TRIES = 3
STARTS = 5


def cpu_ns(pid):
    """CPU time of all threads that live."""
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total


def daemons(pid):
    """Private ones that the process started."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in children if pathlib.Path(f"/proc/{p}/comm").read_text() == "traced\n"]


def record(test, *arguments):
    """Returns the events of tracectl and traced, all events, and the CPU time of the start."""
    out = test.dir / "out.traced"
    before = cpu_ns(test.daemon.process.pid) if test.daemon else 0
    process = test.start("record", "-q", "--tgid", "--name", test.name, "-o", out, *arguments)
    # Without a question to the daemon: its answer would be in the recording.
    settled("the recording", lambda: test.is_on(test.name) or process.poll() is not None)
    time.sleep(SETTLED_S)
    try:
        pids = [process.pid] + ([test.daemon.process.pid] if test.daemon else daemons(process.pid))
        cpu = sum(map(cpu_ns, pids)) - before
    except FileNotFoundError:
        pids = []
    if len(pids) < 2:  # it ended while this process stood still
        done = test.finish(process)
        check(done.status == 0, str(done))
        return record(test, *arguments)
    done = test.finish(process)
    check(done.status == 0, str(done))
    done = test.run("convert", "-q", "--tgid", out, out.with_suffix(".txt"))
    check(done.status == 0, str(done))
    own, count = [], 0
    with open(out.with_suffix(".txt"), encoding="utf-8", errors="replace") as text:
        for line in text:
            event = LINE.match(line)
            count += event is not None
            if event and event[2].strip("-") and int(event[2]) in pids:
                own.append(f"{event[3]} {event[4].strip()}")
    check(count > 0, "no events")
    return own, count, cpu


def few_events_of_its_own(test, arguments, own_max, share_max, idle=0):
    for _ in range(TRIES):
        own, count, _ = record(test, *arguments)
        print(f"{len(own)} of {count} events are its own")
        if len(own) <= own_max + (count * share_max if count > idle else 0):
            return
    check(False, f"{len(own)} of {count} events are its own: {own[:100]}")


def the_command_begins_soon(test):
    """From the first event of the recording to the command's exec, few events are the recorder's. How long it takes depends
    on who else wants the CPUs."""
    for _ in range(TRIES):
        done = test.run("record", "-q", "-e", "raw_syscalls", "-e", "sched", "-o", "out.txt", "--", "true")
        check(done.status == 0, str(done))
        lines = [line for line in (test.dir / "out.txt").read_text().splitlines() if TIME.search(line)]
        execs = [n for n, line in enumerate(lines) if re.search(r"sched_process_exec: filename=\S*/true ", line)]
        check(len(execs) == 1, f"{len(execs)} of {len(lines)} events are the command's exec")
        own = [line for line in lines[:execs[0]] if re.match(r" *(tracectl|traced)-\d", line)]
        ms = (float(TIME.search(lines[execs[0]])[1]) - float(TIME.search(lines[0])[1])) * 1e3
        print(f"the command's exec is {ms:.1f} ms and {len(own)} events of the recorder after the first event")
        if len(own) <= OWN_BEFORE_COMMAND:
            return
    check(False, f"{len(own)} events of the recorder before the command's exec: {own[:100]}")


def begin_with_spare(test):
    """A daemon as users have it: with instances that wait for the next recording."""
    config = test.dir / "spare.conf"
    config.write_text("[daemon]\nspare = yes\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", config)


def spares(test):
    return [i for i in test.instances_of(test.daemon.process.pid) if "-spare+" in i]


def a_start_with_a_spare(test, most):
    def start():
        settled("a spare", lambda: len(spares(test)) == 2)
        time.sleep(0.1)
        return start_cpu(test)

    begin_with_spare(test)
    check_start(test, start, most)


def start_cpu(test):
    """CPU time that a start takes in the daemon, with what it leaves for later."""
    before = cpu_ns(test.daemon.process.pid)
    process = test.start("start", "--name", test.name, "-e", "raw_syscalls", "-e", "sched")
    check(test.finish(process).status == 0, "start")
    time.sleep(SETTLED_S)
    cpu = cpu_ns(test.daemon.process.pid) - before
    check(test.run("cancel", test.name).status == 0, "cancel")
    return cpu


def usual_work():
    """CPU time of work that is always the same, and of a start's kind."""
    before = time.process_time_ns()
    for _ in range(500):
        pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return time.process_time_ns() - before


def check_start(test, start, most):
    """Kernels and machines differ by a factor of three: a start may take so many times the usual work."""
    for _ in range(STARTS):
        cpu, usual = start(), min(usual_work() for _ in range(3))
        words = f"a start takes {cpu / 1e6:.1f} ms of CPU time, {cpu / usual:.1f} times the usual work"
        print(words)
        if cpu < most * usual or test.is_sanitized():
            return
    check(False, f"each of {STARTS} starts takes more than {most} times the usual work; the last: {words}")


def a_private_start(test, most):
    check_start(test, lambda: record(test, "-e", "raw_syscalls", "-e", "sched", "-t", "600ms")[2], most)


def a_final_snapshot_is_quiet(test):
    """Tracing is off before the names are read."""
    check(test.run("start", "--ring", "--name", test.name, "-e", "raw_syscalls").status == 0, "start")
    time.sleep(0.3)
    check(test.run("stop", test.name, "--tgid", "-o", test.dir / "out.txt").status == 0, "stop")
    own = [line for line in (test.dir / "out.txt").read_text(errors="replace").splitlines()
           if f"({test.daemon.process.pid:7d})" in line or f"-{test.daemon.process.pid} " in line]
    check(len(own) < 200, f"{len(own)} events of traced's own: {own[-5:]}")


def main():
    test = Test("quiet")
    calls = ["-e", "raw_syscalls", "-e", "sched", "-t", "1s"]
    command = [*calls[:-2], "--", "sleep", "1"]
    everything = ["-e", "*:*", "-t", "300ms", *LARGE]
    for label, daemon in (("with a daemon", True), ("without a daemon", False)):
        test.case(f"system calls {label}", few_events_of_its_own, calls, OWN, SHARE, daemon=daemon)
        test.case(f"a command {label}", few_events_of_its_own, command, OWN_OF_COMMAND, SHARE, daemon=daemon)
        test.case(f"the command begins soon {label}", the_command_begins_soon, daemon=daemon)
        test.case(f"all events {label}", few_events_of_its_own, everything, OWN_OF_ALL, SHARE_OF_ALL,
                  IDLE_OF_ALL, daemon=daemon)
    test.case("a start with a spare", a_start_with_a_spare, 3.5, daemon=True)
    test.case("a start without a daemon", a_private_start, 7.5)
    test.case("a final snapshot is quiet", a_final_snapshot_is_quiet, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
