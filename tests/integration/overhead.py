#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings with a limit on their own cost: the events that they drop, and their messages."""

import json
import os
import re
import sys

from harness import Test, check

# System calls for a number of seconds, so many per 2 ms.
BUSY = "import os, sys, time\nuntil = time.monotonic() + float(sys.argv[1])\n" \
       "while time.monotonic() < until:\n for _ in range(int(sys.argv[2])): os.getppid()\n time.sleep(0.002)\n"


def record(test, seconds, calls, out, *arguments):
    done = test.run("record", "-q", "--json", "-b", "16M", "-e", "raw_syscalls", "-e", "sched", *arguments,
                    "-o", out, "--", sys.executable, "-c", BUSY, str(seconds), str(calls))
    check(done.status == 3, f"expected exit status 3: {done}")
    return json.loads(done.out), done.err


def events_are_shed_in_order(test):
    out = test.dir / "shed.txt"
    said, _ = record(test, 8, 150, out, "--max-cpu", "0.1%", "--shed", "raw_syscalls:sys_enter",
                     "--shed", "raw_syscalls", "--shed", "sched")
    trace = out.read_text("utf-8", "replace").splitlines()
    warnings = [w for w in said["warnings"] if "the limit is" in w]
    check("read only when they are 50 % full" in warnings[0] and "75 %" in warnings[1], f"{warnings}")
    check("no events of raw_syscalls:sys_enter" in warnings[2], f"{warnings}")
    # Each dropped event is in the trace with a time: no such event comes after it.
    [place] = [i for i, line in enumerate(trace) if "tracing_mark_write" in line
               and "no events of raw_syscalls:sys_enter:" in line]
    check(any("sys_enter:" in line for line in trace[:place]), "there were no such events before")
    late = [line for line in trace[place + 200:] if " sys_enter:" in line]
    check(not late, f"dropped events: {late[:2]}")


def far_above_the_limit_it_ends(test):
    said, told = record(test, 9, 800, test.dir / "end.traced", "--max-cpu", "0.1")
    check("more than twice the limit of 0.1 %" in told + json.dumps(said), f"{told} {said['warnings']}")
    check(said["span_ns"] < 8.5e9, f"the recording went on for {said['span_ns']} ns")


def nonsense_is_refused(test):
    for arguments, words in (
            (["--max-cpu", "0"], "not a percentage of a CPU"),
            (["--max-cpu", "120%"], "not a percentage of a CPU"),
            (["--shed", "sched"], "--max-cpu"),
            (["--max-cpu", "1%", "--shed", "irq"], "cannot shed"),
            (["--max-cpu", "1%", "--ring"], "flight recorder"),
            (["--max-memory", "4M"], "too little"),
            (["-b", "16M", "--max-memory", "20M"], "too little")):
        done = test.run("record", "-t", "1s", "-e", "sched", *arguments, "-o", test.dir / "no.json")
        check(done.status in (1, 2) and words in done.err, f"{arguments}: {done}")


def what_would_do_is_taken(test):
    for buffer in ([], ["-b", "4K"], ["-b", "4097B"], ["-b", "100K"]):
        record = ["record", "-t", "50ms", "-e", "sched:sched_switch", *buffer, "-o", test.dir / "would.txt"]
        told = re.search(r"hint: (\S+) would do", test.run(*record, "--max-memory", "1K").err)
        check(told, f"{buffer}: no hint")
        done = test.run(*record, "--max-memory", told[1])
        check(done.status == 0, f"{told[1]}: {done}")


def buffers_fit_the_memory(test):
    check(test.run("start", "--name", test.name, "-e", "sched", "--max-memory", "10M").status == 0, "start")
    told = json.loads(test.run("status", "--json").out)
    check(test.run("cancel", test.name).status == 0, "cancel")
    [size] = [session["buffer_bytes"] for session in told["sessions"]]
    check(64 << 10 <= size <= (2 << 20) // os.cpu_count(), f"a buffer of {size} bytes for each CPU")


def main():
    test = Test("overhead")
    test.case("nonsense is refused", nonsense_is_refused)
    test.case("what would do is taken", what_would_do_is_taken, daemon=True)
    test.case("buffers fit the memory", buffers_fit_the_memory, daemon=True)
    test.case("events are shed in order", events_are_shed_in_order)
    test.case("a recording far above its limit ends", far_above_the_limit_it_ends)
    test.end()


if __name__ == "__main__":
    main()
