#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""joint.py DIRECTORY NAME STATUS: checks what tests/vm/joint recorded; one line a check."""

import json
import pathlib
import re
import sys

LINE = re.compile(r"^ *(here|there):.*-\d+ +(?:\( *(?:\d+|-+)\) )?\[\d+\] \S+ +(\d+\.\d+): (\w+): (.*)$", re.M)
CRASH = re.compile(r"^.*(?:User process fault|unhandled|segfault).*$", re.M)
TIED = re.compile(r"there: clock tied within (\d+\.\d+) us")


def main():
    directory, name, status = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    messages = (directory / "messages").read_text()
    failed = False

    def outcome(what, good, why):
        nonlocal failed
        failed |= not good
        print(f"{'pass' if good else 'fail'}: {name}: {what}" + ("" if good else f": {why}"))

    outcome("both record", status == 0, f"status {status}: {messages}")
    trace = json.loads((directory / "joint.json").read_text()) if (directory / "joint.json").exists() else {}
    events = {"here": [], "there": []}
    for label, at, event, what in LINE.findall(trace.get("systemTraceEvents", "")):
        events[label].append((float(at), event, what))
    counts = {h["label"]: h["recording"]["events"] for h in trace.get("otherData", {}).get("hosts", [])}
    outcome("both have events", all(len(of) > 500 for of in events.values()), f"{counts}")
    switches = [what for _, event, what in events["there"] if event == "sched_switch"]
    outcome("its fields have its byte order", len(switches) > 100 and
            all(re.search(r" prev_prio=\d{1,3} prev_state=\S+ ==> next_comm=.* next_prio=\d{1,3}$", what) for what in switches)
            and any("next_comm=ls " in what for what in switches), f"{switches[:3]}")
    tied = TIED.search(messages)
    outcome("its clock is tied", tied and float(tied[1]) < 50_000, messages)
    ranges = [(min(of)[0], max(of)[0]) for of in events.values() if of]
    outcome("they record at the same time", len(ranges) == 2 and abs(ranges[0][0] - ranges[1][0]) < 1
            and abs(ranges[0][1] - ranges[1][1]) < 1, f"{ranges}")
    crash = CRASH.search((directory / "console").read_text(errors="replace"))
    outcome("no program crashes there", not crash, crash and crash[0])
    sys.exit(failed)


main()
