# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the checks of a guest. They may change what must not change on a person's machine: the
top level's settings, CPUs, modules."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import INSTANCES, TRACEFS, Failure, Test, check, interrupt, need, settled, skip  # noqa: E402,F401

# Top-level settings that a recording may change.
SETTINGS = ("current_tracer", "set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid",
            "set_ftrace_notrace_pid", "set_graph_function", "max_graph_depth", "trace_options",
            "trace_clock", "tracing_on", "tracing_cpumask", "set_event", "set_event_pid",
            "buffer_percent", "buffer_subbuf_size_kb", "events/enable", "options/func_stack_trace",
            "kprobe_events", "uprobe_events", "dynamic_events")
LINE = re.compile(r"^ *(?P<task>.*)-(?P<pid>\d+) +(?:\( *(?:\d+|-+)\) )?\[(?P<cpu>\d+)\] "
                  r"(?P<flags>\S+) +(?P<time>\d+\.\d+): (?P<text>.*)$")


def of_a_guest(name):
    if not os.environ.get("TRACED_VM"):
        skip("only for guests")
    return Test(name)


def settings():
    return {name: (TRACEFS / name).read_text() for name in SETTINGS if (TRACEFS / name).exists()}


def put_back(before):
    """The daemon answers before it has removed the recording."""
    until = time.monotonic() + 30
    while (now := settings()) != before and time.monotonic() < until:
        time.sleep(0.1)
    check(now == before, "not put back: " + ", ".join(
        f"{k}: {before[k]!r} is {v!r}" for k, v in now.items() if before[k] != v))


def append(path, text):
    """Python's own way looks for the end of the file, which these files don't have."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def some_files():
    for _ in range(20):
        pathlib.Path("/proc/self/stat").read_text()


def is_recording(test):
    if test.daemon:
        return '"recording"' in test.run("status", "--json").out
    try:
        # In this order: a new instance is on, and is turned off before it has an event.
        return any((INSTANCES / i / "set_event").read_text().strip() and
                   (INSTANCES / i / "tracing_on").read_text().strip() == "1"
                   for i in test.instances() if not i.endswith("-tasks"))
    except OSError:  # one that is being created
        return False


def record(test, *arguments, during=some_files, status=0):
    """A recording that ends by Ctrl-C after during(), and restores all settings."""
    before = settings()
    process = test.start("record", "--name", test.name, *arguments)
    # No bound of traced: an emulated machine on a busy host has needed more than 180 s to trace all functions.
    until = time.monotonic() + 400
    try:
        while process.poll() is None and time.monotonic() < until and not is_recording(test):
            # An emulated machine takes long to ask a daemon.
            time.sleep(0.3 if test.daemon else 0.1)
        # On a busy host the client may hear of it later: Ctrl-C would still cancel.
        time.sleep(0.5)
        during()
    finally:
        interrupt(process)
    done = test.finish(process)
    check(done.status == status, f"record {' '.join(map(str, arguments))}: {done}")
    put_back(before)
    return done


def text_of(test, name="out.txt"):
    return (test.dir / name).read_text(errors="surrogateescape")


def lines_of(text):
    lines = [LINE.match(line) for line in text.splitlines() if not line.startswith("#")]
    check(lines and all(lines), "there are lines without an event")
    return lines


def without_name(line):
    """Names change between two readings; the oracle test looks at them."""
    m = LINE.match(line)
    return line[m.start("pid"):] if m else line


def same_text(kernels, ours):
    """Compares line by line. Returns the number of lines."""
    theirs, own = (text.splitlines() for text in (kernels, ours))
    for i, (a, b) in enumerate(zip(theirs, own)):
        check(a == b or without_name(a) == without_name(b), f"line {i + 1} is\n  {b}\nand the kernel says\n  {a}")
    check(len(theirs) == len(own), f"{len(own)} lines, and the kernel has {len(theirs)}")
    return len(own)


@contextlib.contextmanager
def only_events(test, events):
    """Limits an extraction to these formats ("SYSTEM:NAME") and the kernel's own: an emulated
    machine takes seconds to read and parse all 1,700."""
    few = test.dir / "available_events"
    few.write_text("".join(f"{e}\n" for e in events))
    where = str(TRACEFS / "available_events")
    subprocess.run(["mount", "--bind", str(few), where], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", where], check=True)


def extracted(test, instance=None, events=None):
    """The buffer's text by tracectl, which removes from it what it reads. events: all events in it,
    to avoid reading every format."""
    where = ["--instance", instance] if instance else []
    with only_events(test, events) if events else contextlib.nullcontext():
        done = test.run("extract", *where, "--raw-addresses", "-o", "extracted.txt")
    check(done.status == 0, f"extract: {done}")
    return text_of(test, "extracted.txt")
