#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: the clock is set by an hour during a recording; with the word "sleep" the machine
sleeps (S3) instead. Applications' marks by that clock are where the kernel's own marks say they
were. A clock that the kernel calls synchronised ties machines that exchanges tie worse."""

import ctypes
import json
import os
import pathlib
import re
import struct
import sys
import time

from common import INSTANCES, check, of_a_guest, record, skip, text_of

STATE = pathlib.Path("/sys/power/state")
DEPTH = pathlib.Path("/sys/power/mem_sleep")
ALARM = pathlib.Path("/sys/class/rtc/rtc0/wakealarm")
MARK = re.compile(r" (\d+\.\d+): tracing_mark_write: B\|\d+\|(before|after) (\w+)$", re.M)
SLACK_US = 1000
ADJ_SETOFFSET = 0x100
ADJ_MAXERROR, ADJ_ESTERROR, ADJ_STATUS = 0x4, 0x8, 0x10
STA_UNSYNC = 0x40
RELAY = pathlib.Path(__file__).resolve().parents[2] / "integration/hosts_relay.py"


class Application:
    """Marks moments by one clock, each between two marks in the kernel's ring."""

    def __init__(self, test, clock):
        self.clock = clock
        self.events = []
        self.test = test

    def mark(self, name):
        instance = next(i for i in self.test.instances() if not i.endswith("-tasks"))
        marker = os.open(INSTANCES / instance / "trace_marker", os.O_WRONLY)
        try:
            os.write(marker, f"before {name}".encode())
            ns = time.clock_gettime_ns(self.clock)
            os.write(marker, f"after {name}".encode())
        finally:
            os.close(marker)
        self.events.append({"name": name, "ph": "i", "pid": 1, "tid": 1, "ts": ns / 1000})

    def write(self):
        (self.test.dir / "app.json").write_text(json.dumps(self.events))


def compare(test, app, word):
    """Merges the marks into the recording. Returns the JSON."""
    app.write()
    done = test.run("convert", "out.traced", "out.json", "--merge", "app.json", "--merge-clock", word)
    check(done.status == 0, f"convert: {done}")
    document = json.loads(text_of(test, "out.json"))
    at = {(m[2], m[3]): float(m[1]) * 1e6 for m in MARK.finditer(document["systemTraceEvents"])}
    seen = {e["name"]: e["ts"] for e in document["traceEvents"] if e["ph"] == "i" and e.get("pid") == 1}
    check(set(seen) == {e["name"] for e in app.events}, f"{seen}")
    slack = SLACK_US + document["otherData"]["merged"][0]["bound_ns"] / 1000
    for name, ts in seen.items():
        check(at["before", name] - slack <= ts <= at["after", name] + slack,
              f"{name} is at {ts}, not between {at['before', name]} and {at['after', name]}: {done}")
    return document


def end_of(document, clock):
    return next(c for c in document["otherData"]["clock_offsets"]
                if (c["clock"], c["when"]) == (clock, "end"))


def set_by(seconds):
    """In one call: an emulated CPU may stand still between a reading and a setting."""
    # struct timex: modes at its begin, time in the middle.
    adjust(struct.pack("I68xqq120x", ADJ_SETOFFSET, seconds, 0))


def adjust(timex):
    timex = bytearray(timex)
    set_it = ctypes.CDLL(None, use_errno=True).adjtimex
    check(set_it((ctypes.c_char * len(timex)).from_buffer(timex)) >= 0, os.strerror(ctypes.get_errno()))


def synchronise(status, max_us, estimated_us):
    """As a time daemon states it."""
    modes = ADJ_MAXERROR | ADJ_ESTERROR | ADJ_STATUS
    adjust(struct.pack("I4xqqqqi164x", modes, 0, 0, max_us, estimated_us, status))


def is_set(test, *steps):
    """For less than the time between two periodic readings; the recorder reads clocks after each step."""
    app = Application(test, time.CLOCK_REALTIME)
    total = sum(steps)

    def during():
        app.mark("first")
        for n, seconds in enumerate(steps):
            time.sleep(0.7)
            app.mark(f"last{n}")
            set_by(seconds)
            time.sleep(2)
            app.mark(f"first{n}")

    try:
        record(test, "-e", "sched:sched_process_exit", "-o", "out.traced", during=during)
    finally:
        set_by(-total)
    document = compare(test, app, "realtime")
    bound = document["otherData"]["merged"][0]["bound_ns"]
    # An emulated CPU may wait for milliseconds between two readings of clocks.
    check(bound < 10**7, f"the bound is too wide: {bound} ns")
    end = end_of(document, "REALTIME")
    if total:
        check(abs(end["stepped_ns"] - total * 10**9) < 10**8 and "drift_ppb" not in end, f"{end}")
    else:
        check("drift_ppb" in end, f"{end}")


def sleeps(test):
    """Marks by the clock that stands still meanwhile, and by the one that does not."""
    apps = [Application(test, clock) for clock in (time.CLOCK_MONOTONIC, time.CLOCK_REALTIME)]

    def during():
        for turn in ("evening", "morning"):
            for app in apps:
                app.mark(turn)
            if turn == "evening":
                time.sleep(0.5)
                ALARM.write_text("0")
                ALARM.write_text("+4")
                STATE.write_text("mem")
                time.sleep(0.5)

    record(test, "-e", "sched:sched_process_exit", "-o", "out.traced", during=during)
    for app, word in zip(apps, ("monotonic", "realtime")):
        end = end_of(compare(test, app, word), "MONOTONIC")
        check(end.get("stepped_ns", 0) < -10**9, f"the machine has not slept: {end}")


def ties(test, *options):
    """Over a way of 50 ms. The kernel adds 500 us to the error each second."""
    path = f"PATH={test.tracectl.parent}:{os.environ['PATH']}"
    host = f"other=exec:/usr/bin/env python3 {RELAY} --delay 50 -- env {path}"
    done = test.run("--label", f"near=exec:env {path}", "--label", host, "record", "-t", "2s", "-e",
                    "sched:sched_switch", "-o", "out.txt", *options)
    return dict(re.findall(r"(near|other): clock tied within \d+\.\d+ us by ([^,]+),", done.err)), done


def is_synchronised(test):
    for status, max_us, estimated_us, by in ((0, 200, 20, "the machines' synchronised clocks"), (STA_UNSYNC, 200, 20, "exchanges"),
                                             (0, 0, 0, "exchanges")):
        synchronise(status, max_us, estimated_us)
        try:
            found, done = ties(test)
        finally:
            synchronise(STA_UNSYNC, 16000000, 16000000)
        check(found.get("other") == by, f"{status} {max_us}: {done}")


def main():
    test = of_a_guest("clocks")
    if "sleep" in sys.argv[2:]:
        if not DEPTH.exists() or "deep" not in DEPTH.read_text() or not ALARM.exists():
            skip("this machine can't sleep, or would not wake up")
        DEPTH.write_text("deep")
        test.case("the machine sleeps", sleeps)
    else:
        test.case("the clock is set an hour forth", is_set, 3600)
        test.case("the clock is set an hour back", is_set, -3600)
        test.case("the clock is set forth and back", is_set, 3600, -3600)
        test.case("the clock is synchronised", is_synchronised, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
