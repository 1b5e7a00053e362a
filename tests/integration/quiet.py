#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the recorder does to a recording: events of its own, and the CPU time of a start.

Its programs have names of their own here, and only events of these are recorded: so load on the
machine hardly matters.
"""

import contextlib
import pathlib
import re
import time

from harness import Daemon, Test, check, settled

DAEMON = "quiet-traced"
# The kernel may take the CPU from the recorder, and wake it when a sub-buffer is full.
DISTURBANCE = 24
# After this time a start has no consequences any more.
SETTLED_S = 0.2
# Tries of a case: another process of this machine can delay anything.
TRIES = 3
STARTS = 5


def cpu_ns(pid):
    """CPU time of all threads that live."""
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def daemons(pid):
    """Private ones that the process started."""
    return [int(p) for p in children(pid) if pathlib.Path(f"/proc/{p}/comm").read_text() == f"{DAEMON}\n"]


def rename_programs(test):
    """A program's threads have the name by which it was called."""
    tracectl, traced = test.top / "quiet-tracectl", test.top / DAEMON
    tracectl.symlink_to(test.tracectl)
    traced.symlink_to(test.traced)
    test.private.write_text(test.private.read_text().replace(str(test.traced), str(traced)))
    test.tracectl, test.traced = tracectl, traced


# The exporter and the poller have names of their own.
NAMES = ("quiet-", "traced-poll", "traced-export")
OURS = 'comm ~ "quiet-*" || comm == "traced-poll" || comm == "traced-export"'


def selection(events):
    """Options for the events of the recorder's threads."""
    return [word for event in events for word in ("-e", event, "-f", OURS)]


def lines_of(path, exporters=()):
    """One line an event, by these threads or about them, without other daemons' exporters: ours are those named, and
    those that begin in the recording. Filters let pass what any program writes into trace_marker."""
    text = path.read_text(errors="replace")
    ours = [*exporters, *re.findall(r"sched_process_fork: comm=quiet-traced .*child_pid=(\d+)", text)]
    lines = [line.strip() for line in text.splitlines() if line[:1] != "#" and any(name in line for name in NAMES)]
    exporters = [re.search(r"traced-export(?:-| pid=)(\d+)", line) for line in lines]
    return [line for line, exporter in zip(lines, exporters) if not exporter or exporter[1] in ours]


def own_events(test, events, *arguments):
    """What the recorder's threads did."""
    process = test.start("record", "-q", *selection(events), "-o", "out.txt", *arguments)
    exporters = set()
    while process.poll() is None:
        with contextlib.suppress(OSError):
            for daemon in [test.daemon.process.pid] if test.daemon else daemons(process.pid):
                exporters.update(children(daemon))
        time.sleep(0.1)
    done = test.finish(process)
    check(done.status == 0, str(done))
    return lines_of(test.dir / "out.txt", exporters)


def few_events_of_its_own(test, events, arguments, most):
    for _ in range(TRIES):
        own = own_events(test, events, *arguments)
        check(own, "no events")
        print(f"{len(own)} events are the recorder's own")
        if len(own) <= most + DISTURBANCE:
            return
    check(False, "\n".join([f"{len(own)} events are the recorder's own:", *own]))


def start_and_stop(test, events):
    """Events of the recorder in a recording of tracectl start: until tracectl stop begins, and from then on."""
    check(test.run("start", "--name", test.name, *selection(events)).status == 0, "start")
    time.sleep(1)
    check(test.run("stop", test.name, "-o", test.dir / "out.txt").status == 0, "stop")
    own = lines_of(test.dir / "out.txt")
    stop = next(i for i, line in enumerate(own) if "sched_process_exec" in line)
    return own[:stop], own[stop:]


def few_events_of_start_and_stop(test, events, most, most_of_stop):
    for _ in range(TRIES):
        start, stop = start_and_stop(test, events)
        print(f"{len(start)} events are the recorder's own until tracectl stop, {len(stop)} from then on")
        if len(start) <= most + DISTURBANCE and len(stop) <= most_of_stop + DISTURBANCE:
            return
    check(False, "\n".join(["events of the recorder's own:", *start, "and from tracectl stop on:", *stop]))


def begin_with_spare(test):
    """A daemon as users have it: with instances that wait for the next recording."""
    config = test.dir / "spare.conf"
    config.write_text("[daemon]\nspare = yes\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", config)


def spares(test):
    return [i for i in test.instances_of(test.daemon.process.pid) if "-spare+" in i]


def start_cpu_with_a_spare(test):
    settled("a spare", lambda: len(spares(test)) == 2)
    time.sleep(0.1)
    return start_cpu(test)


def a_start_with_a_spare(test, most):
    begin_with_spare(test)
    check_start(test, lambda: start_cpu_with_a_spare(test), most)


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


def private_start_cpu(test):
    """CPU time that a start takes in tracectl and its daemon, with what it leaves for later."""
    process = test.start("record", "-q", "--name", test.name, "-e", "raw_syscalls", "-e", "sched", "-t", "600ms",
                         "-o", "out.traced")
    settled("the recording", lambda: test.is_on(test.name) or process.poll() is not None)
    time.sleep(SETTLED_S)
    try:
        pids = [process.pid, *daemons(process.pid)]
        cpu = sum(map(cpu_ns, pids))
    except FileNotFoundError:
        pids = []
    done = test.finish(process)
    check(done.status == 0, str(done))
    # It may have ended while this process stood still.
    return cpu if len(pids) == 2 else private_start_cpu(test)


def a_private_start(test, most):
    check_start(test, lambda: private_start_cpu(test), most)


def us_until_the_command(test):
    """From the mark that the recorder makes once tracing is on to the wake-up of the command, which waits for that. None: it did
    not sleep yet, on a busy machine."""
    done = test.run("record", "-q", "-e", "sched:sched_waking", "-e", "sched:sched_process_exec", "-o", "out.txt", "--",
                    "true")
    check(done.status == 0, str(done))
    text = (test.dir / "out.txt").read_text(errors="replace")
    command = re.search(r"sched_process_exec: filename=\S*true pid=(\d+)", text)
    check(command, f"the command's exec is missing: {text}")
    mark, waking = [re.search(rf" ([\d.]+): {what}", text) for what in
                    ("tracing_mark_write: trace_event_clock_sync", rf"sched_waking: comm=\S+ pid={command[1]} ")]
    check(mark, f"the mark is missing: {text}")
    return round((float(waking[1]) - float(mark[1])) * 1e6) if waking else None


def the_command_begins_at_once(test, most_us):
    """Another process may take the CPU in between, but not each time."""
    delays = [us_until_the_command(test) for _ in range(STARTS)]
    print(f"from the start to the wake-up of the command: {delays} us")
    woken = [us for us in delays if us is not None]
    check(woken and min(woken) <= most_us, f"the command waits too long: {delays} us")


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
    rename_programs(test)
    calls = ["raw_syscalls", "sched"]
    for label, daemon in (("with a daemon", True), ("without a daemon", False)):
        for what, events, arguments, most in (
                ("a second", calls, ["-t", "1s"], 24),
                ("a command", calls, ["--", "sleep", "1"], 30),
                # A system call leaves several of them.
                ("all events", ["*:*"], ["-t", "300ms", "-b", "64M"], 75)):
            test.case(f"{what} {label}", few_events_of_its_own, events, arguments, most, daemon=daemon)
    for words, events, polls, stream, start, stop in (
            ("with system calls", calls, 70, 400, 250, 700), ("of sched", ["sched"], 50, 50, 50, 50)):
        for what, options, most in (("polled files", ["--poll", "meminfo"], polls), ("a stream", ["--stream"], stream)):
            test.case(f"{what} {words}", few_events_of_its_own, events, [*options, "-t", "1s"], most, daemon=True)
        test.case(f"a streamed command {words}", few_events_of_its_own, events, ["--stream", "--", "sleep", "1"], stream, daemon=True)
        test.case(f"start and stop {words}", few_events_of_start_and_stop, events, start, stop, daemon=True)
    for label, daemon in (("with a daemon", True), ("without a daemon", False)):
        test.case(f"the command begins at once {label}", the_command_begins_at_once, 1000, daemon=daemon)
    test.case("a start with a spare", a_start_with_a_spare, 3.5, daemon=True)
    test.case("a start without a daemon", a_private_start, 7.5)
    test.case("a final snapshot is quiet", a_final_snapshot_is_quiet, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
