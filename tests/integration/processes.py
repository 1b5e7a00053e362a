#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings that are limited to processes or threads: what is in them, and what is not."""

import contextlib
import re
import subprocess
import sys

from harness import INSTANCES, Test, check, functions_refused, interrupt, need, settled

# An event, or a call of a function.
LINE = re.compile(r"^ *.+-(\d+) +\[\d+\] \S{4,5} +\d+\.\d+: (\w+)(?:: | <-)(.*)$", re.M)

# One thread is there from the beginning, one starts during the recording and ends at once, and so
# does a child process, which lives until it is told to execute something.
PROGRAM = """
import os, subprocess, sys, threading
asked = threading.Event()
def work():
    asked.wait()
    os.getppid()
def work_at_once():
    os.getppid()
    print(threading.get_native_id(), flush=True)
old = threading.Thread(target=work)
old.start()
print(old.native_id, flush=True)
sys.stdin.readline()
asked.set()
old.join()
new = threading.Thread(target=work_at_once)
new.start()
new.join()
child = subprocess.Popen(["sh", "-c", "read go; exec /bin/true"])
print(child.pid, flush=True)
child.wait()
print("done", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def program():
    """The process, and the id of its thread."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def tell(process):
    process.stdin.write("\n")
    process.stdin.flush()


def is_listed(test, file, pid):
    """Whether the kernel's list of the recording has that task."""
    main = [i for i in test.instances() if not i.endswith("-tasks")]
    return str(pid) in (INSTANCES / main[0] / file).read_text().split()


def recorded(test, process, *arguments, leaves_out):
    """Records the program's work. Returns the events by task, and the ids of new thread and child."""
    recorder = test.start("record", "--name", test.name, *arguments, "-e", "raw_syscalls:sys_enter", "-e",
                          "sched:sched_process_exec", "-o", "x.txt")
    try:
        test.wait_for_recording(test.name)
        tell(process)
        new, child = int(process.stdout.readline()), int(process.stdout.readline())
        if leaves_out:
            settled("the child is left out", lambda: is_listed(test, "set_event_notrace_pid", child))
        tell(process)
        check(process.stdout.readline() == "done\n", "the program failed")
        interrupt(recorder)
    finally:
        result = test.finish(recorder)
    check(result.status == 0, f"{result}")
    events = {}
    for pid, name, text in LINE.findall((test.dir / "x.txt").read_text(errors="replace")):
        # The recorder's own mark, which ties the clocks.
        if not text.startswith("trace_event_clock_sync: name=traced_"):
            events.setdefault(int(pid), []).append((name, text))
    return events, new, child


def executed(events, child):
    return [text for name, text in events.get(child, []) if name == "sched_process_exec" and "/bin/true" in text]


def a_process_with_its_threads(test, *more):
    need(has_notrace(), "this kernel cannot leave out children")
    with program() as (process, old):
        events, new, child = recorded(test, process, "-P", process.pid, *more, leaves_out=True)
    check({process.pid, old, new} <= events.keys(), f"{process.pid}, {old}, {new} are not all in {events.keys()}")
    check(events.keys() <= {process.pid, old, new, child}, f"strangers: {events.keys()}")
    check(not executed(events, child), f"the child's events: {events[child]}")


def in_a_flight_recorder(test):
    a_process_with_its_threads(test, "--ring")


def a_process_with_its_children(test):
    with program() as (process, old):
        events, new, child = recorded(test, process, "-F", "-P", process.pid, leaves_out=False)
    check({process.pid, old, new, child} <= events.keys(), f"{process.pid}, {old}, {new}, {child}: {events.keys()}")
    check(len(executed(events, child)) == 1, f"the child's events: {events[child]}")


def one_thread(test):
    with program() as (process, old):
        events, _, _ = recorded(test, process, "--thread", old, leaves_out=False)
    check(events.keys() == {old}, f"of {old}: {events.keys()}")


def a_thread_beside_a_process(test):
    """What a thread starts is not in it, although the kernel adds it for the sake of the process."""
    need(has_notrace(), "this kernel cannot leave out children")
    with program() as (process, old), program() as (other, of_other):
        events, new, child = recorded(test, process, "-P", process.pid, "--thread", other.pid, leaves_out=True)
    own = {process.pid, old, new, child, other.pid}
    check(events.keys() <= own, f"strangers to {own}, beside {of_other}: { {k: v for k, v in events.items() if k not in own} }")
    check({process.pid, old, new} <= events.keys() and of_other not in events, f"{events.keys()}")


def functions(test):
    need(not functions_refused(), "this kernel traces no functions")
    need((INSTANCES.parent / "set_ftrace_notrace_pid").exists(), "this kernel cannot leave out children")
    with program() as (process, old):
        events, new, child = recorded(test, process, "-P", process.pid, "-p", "function", "-l", "*sys_getppid",
                                      leaves_out=True)
    calls = {pid for pid, own in events.items() if any(name.endswith("sys_getppid") for name, _ in own)}
    check({old, new} <= calls <= {process.pid, old, new, child}, f"{old}, {new}: {calls}")


def nobody_is_there(test):
    result = test.run("record", "--name", test.name, "-t", "100ms", "-P", "4194303", "-o", "x.txt")
    check(result.status == 1 and "no such process" in result.err and "pgrep" in result.err, f"{result}")
    with program() as (process, _):
        result = test.run("record", "--name", test.name, "-t", "100ms", "-P", process.pid, "-e",
                          "sched:sched_process_exec", "-o", "x.txt")
    check(result.status == 3 and "NOT ONE EVENT" in result.err and "--thread" in result.err
          and "-F adds them" in result.err, f"{result}")


def has_notrace():
    return (INSTANCES.parent / "set_event_notrace_pid").exists()


def main():
    test = Test("processes")
    for case in (a_process_with_its_threads, in_a_flight_recorder, a_process_with_its_children, one_thread,
                 a_thread_beside_a_process, functions, nobody_is_there):
        # A private daemon does not say when it records: an interrupt before would cancel.
        test.case(case.__name__.replace("_", " "), case, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
