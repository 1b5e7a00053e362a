#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples of running code in a recording: known stacks, on the trace's clock. If a sample says that
a thread ran, the trace's own scheduling events must say so, too."""

import bisect
import collections
import ctypes
import json
import os
import re
import shutil
import subprocess

from harness import Test, check, need, skip

RECORD = ["--sample", "997hz", "--call-graph", "-e", "sched:sched_switch"]


def can_sample():
    """perf_event_open of cpu-clock on CPU 0, for all tasks."""
    attr = bytearray(128)
    attr[0:4] = (1).to_bytes(4, "little")
    attr[4:8] = (128).to_bytes(4, "little")
    number = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, (ctypes.c_char * 128).from_buffer(attr), -1, 0, -1, 0) if number else -1
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def stack(frames, sample):
    """Functions, the innermost first."""
    frame = frames.get(sample.get("sf"))
    while frame:
        yield frame["name"]
        frame = frames.get(frame.get("parent"))


def running(text):
    """By CPU: times in microseconds, the task that ran from then on, and the task that left the CPU
    at its end. Some kernels (6.18 in this project's guests) don't report each switch: then the two
    differ."""
    switches = collections.defaultdict(lambda: ([], [], []))
    for cpu, seconds, micro, before, tid in re.findall(
            r"\[(\d+)\] \S+ +(\d+)\.(\d+): sched_switch: .*prev_pid=(\d+) .*next_pid=(\d+)", text):
        times, tids, gave_way = switches[int(cpu)]
        if times:
            gave_way.append(int(before))
        times.append(int(seconds) * 1000000 + int(micro))
        tids.append(int(tid))
    return switches


def on_the_traces_clock(trace):
    switches = running(trace["systemTraceEvents"])
    right = wrong = 0
    for sample in trace["samples"]:
        times, tids, gave_way = switches.get(sample["cpu"], ([], [], []))
        at = bisect.bisect_right(times, sample["ts"]) - 1
        # The text has times to the microsecond.
        if at < 0 or min(abs(sample["ts"] - times[i]) for i in (at, min(at + 1, len(times) - 1))) < 2:
            continue
        if at >= len(gave_way) or gave_way[at] != tids[at]:
            continue
        right += tids[at] == sample["tid"]
        wrong += tids[at] != sample["tid"]
    check(right > 100 and wrong <= right // 50, f"{right} samples are of who ran, {wrong} are not")


def record_busy(test, ms):
    busy = test.build / "tests" / "integration" / "busy"
    r = test.run("record", "--name", test.name, *RECORD, "-o", "out.traced", "--", str(busy), str(ms),
                 "-t", "1")
    check(r.status == 0, r)
    for name in ("out.json", "out.pftrace"):
        r = test.run("convert", "out.traced", name)
        check(r.status == 0, r)


def has_its_share(counts):
    """leaf() runs three times as long for middle_b()."""
    return 1.5 < counts["middle_b"] / max(counts["middle_a"], 1) < 6


def record_and_convert(test):
    # On a busy machine samples gather where a thread gets the CPU: a longer recording has more such places.
    for ms in (400, 1600, 4800):
        record_busy(test, ms)
        counts = check_recording(test)
        if not counts["leaf"] or has_its_share(counts):
            break
    # By frame pointers, and by libdw if it was built in.
    if counts["leaf"]:
        check(counts["leaf"] >= 200 and counts["main"] and counts["start_thread"], f"{counts}")
        check(has_its_share(counts), f"middle_b {counts['middle_b']}, middle_a {counts['middle_a']}")
    else:
        check(any(name.startswith("busy+0x") for name in counts), f"{counts.most_common(9)}")


def check_recording(test):
    """Returns how many samples have each function in their stack."""
    trace = json.loads((test.dir / "out.json").read_text())
    told = trace["otherData"]["samples"]
    check(told["event"] == "cpu-clock" and told["hz"] == 997 and told["samples"] == len(trace["samples"])
          and told["samples"] == sum(c["samples"] for c in told["cpus"]), f"{told}")
    threads = {e["tid"] for e in trace["traceEvents"] if e.get("ph") == "M"}
    # The kernel reports -1 for a dying task whose number was freed.
    nameless = [s for s in trace["samples"] if s["tid"] not in threads | {0, -1}]
    check(sum(s["tid"] == -1 for s in trace["samples"]) <= len(trace["samples"]) // 100, "nobody's samples")
    ends = [trace["samples"][i]["ts"] for i in (0, -1)]
    check(not nameless, f"samples of threads without a name, of {ends}: {nameless[:5]}")
    counts = collections.Counter()
    for sample in trace["samples"]:
        counts.update(set(stack(trace["stackFrames"], sample)))
    on_the_traces_clock(trace)
    check(any(n for n in counts if n.startswith("do_syscall") or n.startswith("el0")), "no kernel stacks")
    check((test.dir / "out.pftrace").stat().st_size > 10000, "no samples in the Perfetto trace")
    return counts


def as_a_profile(test):
    """google-pprof reports of our profile what the JSON has for the same samples."""
    need(shutil.which("google-pprof"), "google-pprof is not installed")
    busy = test.build / "tests" / "integration" / "busy"
    r = test.run("record", "--name", test.name, *RECORD, "-o", "out.traced", "--", str(busy), "300")
    check(r.status == 0, r)
    for arguments in (["busy.prof", "--comm", "busy"], ["out.json"]):
        r = test.run("convert", "out.traced", *arguments)
        check(r.status == 0, r)
    trace = json.loads((test.dir / "out.json").read_text())
    pids = {e["tid"] for e in trace["traceEvents"]
            if e["name"] == "thread_name" and e["args"].get("name") == "busy"}
    wanted = sum("middle_b" in stack(trace["stackFrames"], s) for s in trace["samples"]
                 if s["tid"] in pids)
    out = subprocess.run(["google-pprof", "--text", busy, "busy.prof"], check=True, cwd=test.dir,
                         capture_output=True, text=True).stdout
    found = re.search(r"^ +\d+ +\S+ +\S+ +(\d+) +\S+ middle_b$", out, re.M)
    # Without libdw the JSON lacks such names; google-pprof finds them by itself.
    check(found and (int(found[1]) == wanted or not wanted), f"{wanted} by the JSON:\n{out}")
    r = test.run("convert", "out.traced", "busy.prof", "--comm", "nobody at all")
    check(r.status == 1 and re.search(r"none of the \d+ samples", r.err), r)
    # The time counts, too.
    r = test.run("convert", "out.traced", "late.prof", "--from", "+10m")
    check(r.status == 1 and re.search(r"none of the \d+ samples", r.err), r)


def folded(trace):
    """The folded stacks as the JSON tells them: sums of weights by task and stack. Threads have one
    name each in the JSON, and may share it."""
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    sums = collections.Counter()
    for sample in trace["samples"]:
        functions = list(stack(trace["stackFrames"], sample))[::-1]
        sums[";".join([names.get(sample["tid"], str(sample["tid"])), *functions])] += sample["weight"]
    return sums


def as_folded_stacks(test):
    """Each line is a stack of the JSON, with the sum of its samples' weights."""
    busy = test.build / "tests" / "integration" / "busy"
    r = test.run("record", "--name", test.name, *RECORD, "-o", "out.traced", "--", str(busy), "300")
    check(r.status == 0, r)
    for arguments in (["out.folded"], ["busy.folded", "--comm", "busy"], ["out.json"]):
        r = test.run("convert", "out.traced", *arguments)
        check(r.status == 0, r)
    trace = json.loads((test.dir / "out.json").read_text())
    wanted = folded(trace)
    lines = [line.rsplit(" ", 1) for line in (test.dir / "out.folded").read_text().splitlines()]
    found = {name: int(n) for name, n in lines}
    check(len(found) == len(lines) and sum(found.values()) == sum(s["weight"] for s in trace["samples"]),
          f"{len(lines)} lines, {len(found)} stacks")
    # The kernel's number for a dying task has no name.
    odd = {n for n in found.keys() ^ wanted.keys() if not n.startswith("-1;")}
    check(not odd, f"{sorted(odd)[:5]} of {len(found)} and {len(wanted)}")
    check(all(found[n] == wanted[n] for n in found.keys() & wanted.keys()), "sums differ")
    mine = [line for line in (test.dir / "busy.folded").read_text().splitlines()]
    check(mine and all(line.startswith("busy;") for line in mine), f"{mine[:5]}")
    r = test.run("convert", "out.traced", "late.folded", "--from", "+10m")
    check(r.status == 1 and re.search(r"none of the \d+ samples", r.err), r)


def straight_to_json(test):
    """Files that the sandboxed exporter can't open have no names, but the kernel has."""
    r = test.run("record", "--name", test.name, "--sample", "499", "-t", "300ms", "-e",
                 "sched:sched_switch", "-C", "mono", "-o", "out.json", "--", "sh", "-c",
                 "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
    check(r.status == 0, r)
    trace = json.loads((test.dir / "out.json").read_text())
    check(trace["samples"] and all(s["weight"] for s in trace["samples"]), "no samples")
    on = running(trace["systemTraceEvents"])
    first = min(t[0][0] for t in on.values())
    check(all(s["ts"] > first - 100000 for s in trace["samples"]), "samples are on another clock")


def refusals(test):
    for arguments, status, says in (
            (["--sample", "fast"], 2, "'fast' is not a rate"),
            (["--call-graph"], 2, "--sample 997hz"),
            (["-o", "out.prof"], 2, "--sample 997hz"),
            (["-o", "out.folded"], 2, "--sample 997hz"),
            (["--sample", "99", "--ring"], 2, "exclude each other"),
            (["--sample", "99", "--stream"], 2, "exclude each other"),
            (["--sample", "99", "--sample-event", "moonlight"], 1, "one of cpu-clock"),
            (["--sample", "5000000"], 1, "too many")):
        output = [] if "-o" in arguments else ["-o", "out.json"]
        r = test.run("record", "--name", test.name, "-t", "200ms", *output, *arguments)
        check(r.status == status and says in r.err, f"{arguments}: {r}")
        check(test.files() == [], f"left {test.files()}")


def main():
    test = Test("samples")
    if not can_sample():
        skip("samples needs perf_event_open")
    test.case("stacks of a recording, on its clock", record_and_convert)
    test.case("as a profile for google-pprof", as_a_profile)
    test.case("as folded stacks", as_folded_stacks)
    test.case("straight to JSON, on another clock", straight_to_json)
    test.case("what can't be sampled", refusals)
    test.end()


if __name__ == "__main__":
    main()
