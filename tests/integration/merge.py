#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that applications write themselves, merged into a recording as it ends."""

import json
import re
import sys

from harness import Test, check
from perfetto_decode import Decoder

# Writes a slice of its own life, by CLOCK_MONOTONIC, into the file named as its argument.
APPLICATION = """
import json, os, sys, time
def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1000
began = now()
time.sleep(0.02)
open(sys.argv[1], "w").write(json.dumps([{"name": "work", "cat": "app", "ph": "X", "ts": began,
    "dur": now() - began, "pid": os.getpid(), "tid": os.getpid()}])[:-1])
"""
# Ties a clock that began at another time to the recording; one event uses that clock.
METER = """
import json, subprocess, sys, time
begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
def clock():
    return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begin) / 1000 + 5e6
ties, peak = [], 0
for identity in ("first", "last"):
    asked = clock()
    subprocess.run([*sys.argv[1:], "--id", identity], check=True)
    ties.append({"name": "clock_sync", "ph": "c", "ts": clock(),
                 "args": {"sync_id": identity, "issue_ts": asked}})
    peak = peak or clock()
json.dump([{"name": "peak", "ph": "i", "ts": peak, "pid": 1, "tid": 1}], open("meter.json", "w"))
json.dump(ties, open("ties.json", "w"))
print((peak - 5e6) * 1000 + begin)
"""


def record(test, *arguments):
    return test.run("record", "--name", test.name, "-e", "sched:sched_process_exec", "-e",
                    "sched:sched_process_exit", *arguments)


def life_of(text, name):
    """When the working process began its program and ended, in microseconds."""
    times = [float(t) * 1e6 for t in
             re.findall(rf"{name}-\d+ .* (\d+\.\d+): sched_process_(?:exec|exit): ", text)]
    return min(times), max(times)


def a_command_writes_the_file(test):
    (test.dir / "app.py").write_text(APPLICATION)
    result = record(test, "-o", "x.json", "--merge", "app.json", "--", sys.executable, "app.py", "app.json")
    check(result.status == 0 and "tied" not in result.err, f"{result}")
    trace = json.loads((test.dir / "x.json").read_text())
    work, = [e for e in trace["traceEvents"] if e["name"] == "work"]
    began, ended = life_of(trace["systemTraceEvents"], "python[0-9.]*")
    check(began <= work["ts"] and work["ts"] + work["dur"] <= ended, f"{began} {work} {ended}")
    merged, = trace["otherData"]["merged"]
    check(merged["file"] == "app.json" and merged["clock"] == "MONOTONIC" and merged["ties"] >= 2,
          f"{merged}")
    check(merged["bound_ns"] < 10000, f"{merged}")


def stop_merges_a_file(test):
    (test.dir / "app.json").write_text('[{"name": "work", "ph": "i", "ts": 5, "pid": 7, "tid": 7}]')
    result = test.run("start", "--name", test.name, "-e", "sched:sched_process_exec")
    check(result.status == 0, f"{result}")
    result = test.run("stop", test.name, "-o", "x.pftrace", "--merge", "app.json", "--merge-clock", "boottime")
    check(result.status in (0, 3), f"{result}")
    trace = Decoder(test.dir, test.source).decode(test.dir / "x.pftrace")
    times = [p.timestamp for p in trace.packet if p.HasField("track_event")]
    check(times == [5000], f"{times}")


def record_meter(test, to):
    (test.dir / "meter.py").write_text(METER)
    result = record(test, "-o", to, "--merge", "meter.json", "--sync-file", "ties.json",
                    "--sync-bound", "20s", "--", sys.executable, "meter.py", *test.arguments("sync"))
    check(result.status == 0 and "tied" not in result.err, f"{result}")
    return result


def another_clock_is_tied(test):
    result = record_meter(test, "x.json")
    trace = json.loads((test.dir / "x.json").read_text())
    peak, = [e for e in trace["traceEvents"] if e["name"] == "peak"]
    merged, = trace["otherData"]["merged"]
    check(merged["clock"] == "clock_sync" and merged["ties"] == 2, f"{merged}")
    check([t["sync_id"] for t in merged["tied"]] == ["first", "last"] and
          max(t["bound_ns"] for t in merged["tied"]) == merged["tie_bound_ns"], f"{merged}")
    off = abs(peak["ts"] * 1000 - float(result.out.split()[-1]))
    check(off <= merged["bound_ns"] + 1000, f"{off} but {merged}")


def another_clock_is_in_perfetto(test):
    """A clock of the sequence, and the figures of each tie as an instant."""
    result = record_meter(test, "x.pftrace")
    peak, = json.loads((test.dir / "meter.json").read_text())
    ties = json.loads((test.dir / "ties.json").read_text())
    begin = float(result.out.split()[-1]) - (peak["ts"] - 5e6) * 1000
    trace = Decoder(test.dir, test.source).decode(test.dir / "x.pftrace")
    snapshots = [{c.clock_id: c.timestamp for c in p.clock_snapshot.clocks} for p in trace.packet
                 if p.HasField("clock_snapshot")]
    times = [s[6] for s in snapshots]
    check(times == sorted(times), f"{times}")
    meter = [(s[65], s[6]) for s in snapshots if 65 in s]
    check(len(meter) == 2, f"{snapshots}")
    for tie, (own, boot) in zip(ties, meter):
        half = (tie["ts"] - tie["args"]["issue_ts"]) * 500
        check(abs(own - (tie["ts"] * 1000 - half)) <= 1 and abs(boot - (own - 5e9 + begin)) <= half + 1000,
              f"{tie} {own} {boot} {begin}")
    instants = [p.timestamp for p in trace.packet if p.HasField("track_event") and p.timestamp in dict(meter).values()]
    check(sorted(instants) == sorted(dict(meter).values()), f"{instants} {meter}")


def a_missing_file_is_reported(test):
    result = record(test, "-o", "x.json", "--merge", "absent.json", "--", "true")
    check(result.status == 3 and "absent.json: No such file" in result.err, f"{result}")
    json.loads((test.dir / "x.json").read_text())
    (test.dir / "x.json").unlink()
    for status, arguments in ((1, ("-o", "x.json", "--merge", ".")),
                              (2, ("-o", "x.json", "--merge", "app.json", "--stream")),
                              (2, ("-o", "x.json", "--merge", "app.json", "--rotate", "1M")),
                              (2, ("-o", "x.traced", "--merge", "app.json")),
                              (2, ("-o", "x.pftrace", "--json-array"))):
        result = record(test, *arguments, "--", "touch", "ran")
        check(result.status == status, f"{arguments}: {result}")
    check(test.files() == [], f"{test.files()}")


def an_array_is_written(test):
    (test.dir / "app.py").write_text(APPLICATION)
    for how in ((), ("--stream",)):
        merge = () if how else ("--merge", "app.json")
        result = record(test, "-o", "x.json", "--json-array", *how, *merge, "--", sys.executable, "app.py",
                        "app.json")
        check(result.status == 0 and "no place for the kernel's text" in result.err, f"{result}")
        events = json.loads((test.dir / "x.json").read_text())
        check(isinstance(events, list), f"{type(events)}")
        check(any(e["name"] == "work" for e in events) == bool(merge), f"{events}")


# Fifty slices of 10 ms, one after the other, on ten threads.
MANY = """
import json, os, sys, time
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1000
events = [{"name": "thread_name", "ph": "M", "pid": 1 << 22, "tid": (1 << 22) + t, "args": {"name": f"merged {t}"}}
          for t in range(10)]
for n in range(50):
    began = now()
    time.sleep(0.01)
    events.append({"name": f"slice {n}", "cat": "app", "ph": "X", "ts": began, "dur": now() - began,
                   "pid": 1 << 22, "tid": (1 << 22) + n % 10, "sf": "2"})
open(sys.argv[1], "w").write(json.dumps({"traceEvents": events, "stackFrames":
    {"1": {"name": "outer"}, "2": {"name": "inner", "parent": "1"}}}))
"""


def a_rotated_recording_takes_them(test):
    """Each mark is in the file of its time only, with its thread's name and its stack."""
    (test.dir / "many.py").write_text(MANY)
    result = test.run("record", "-e", "sched:sched_switch", "-o", "x.traced", "--", sys.executable,
                      "many.py", "app.json")
    check(result.status == 0, f"{result}")
    for to in ("y.json", "y.pftrace"):
        result = test.run("convert", "x.traced", to, "--merge", "app.json", "--merge-clock",
                          "boottime", "--rotate", "100ms", "--json")
        check(result.status == 0, f"{result}")
        files = json.loads(result.out)["files"]
        check(len(files) >= 5, f"{files}")
        slices = []
        for name in files:
            slices += (slices_of_json if to == "y.json" else slices_of_perfetto)(test, name)
        check(slices == [f"slice {n}" for n in range(50)], f"{slices}")


def slices_of_json(test, name):
    trace = json.loads((test.dir / name).read_text(errors="strict"))
    slices = [e for e in trace["traceEvents"] if e.get("cat") == "app"]
    named = {e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    check(all(e["tid"] in named for e in slices), f"{name} does not name all of {slices}")
    frames = trace.get("stackFrames", {})
    for e in slices:
        frame = frames[e["sf"]]
        check([frames[frame["parent"]]["name"], frame["name"]] == ["outer", "inner"], f"{e}")
    lines = [float(t) * 1e6 for t in re.findall(r" (\d+\.\d{6}): ", trace["systemTraceEvents"])]
    check(all(lines[0] - 2e5 <= e["ts"] <= lines[-1] + 2e5 for e in slices), f"{name}: other times")
    return [e["name"] for e in slices]


def slices_of_perfetto(test, name):
    trace = Decoder(test.dir, test.source).decode(test.dir / name)
    names, tracks, out = {}, {}, []
    for p in trace.packet:
        names.update({i.iid: i.str if isinstance(i.str, str) else i.str.decode()
                      for i in p.interned_data.event_names})
        if p.HasField("track_descriptor"):
            tracks[p.track_descriptor.uuid] = p.track_descriptor.thread.thread_name
        if p.HasField("track_event") and p.track_event.type == 1:
            e = p.track_event
            check(tracks[e.track_uuid].startswith("merged "), f"{name}: {tracks}")
            check([f.function_name for f in e.callstack.frames] == ["outer", "inner"], f"{e}")
            out.append(e.name or names[e.name_iid])
    return out


def main():
    test = Test("merge")
    test.case("a command writes the file that is merged", a_command_writes_the_file)
    test.case("stop merges a file", stop_merges_a_file, daemon=True)
    test.case("another clock is tied while it is recorded", another_clock_is_tied, daemon=True)
    test.case("another clock is in the Perfetto trace", another_clock_is_in_perfetto, daemon=True)
    test.case("a missing file is reported", a_missing_file_is_reported)
    test.case("an array is written", an_array_is_written)
    test.case("a rotated recording takes the marks", a_rotated_recording_takes_them)
    test.end()


if __name__ == "__main__":
    main()
