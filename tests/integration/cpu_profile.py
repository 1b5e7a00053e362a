#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Profiles that libprofiler wrote, merged into a trace: the same functions with the same counts as
google-pprof reports. And files that are no profiles. PROFILED names another machine's program,
linked with libprofiler, after its emulator: scripts/cross."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import Test, check, skip


def command(test):
    """The program, which comes last, after the command that starts it."""
    return os.environ.get("PROFILED", "").split() or [str(test.build / "tests" / "integration" / "busy")]


def profile(test, name="app.prof", ms=400):
    """A real profile of the busy program."""
    path = test.dir / name
    preload = {} if "PROFILED" in os.environ else {"LD_PRELOAD": "libprofiler.so.0"}
    done = subprocess.run([*command(test), str(ms)], check=False, capture_output=True,
                          env=test.environment(CPUPROFILE=str(path), **preload))
    check(done.returncode == 0, f"the profiled program: {done}")
    check(path.exists() and path.stat().st_size > 100, "libprofiler wrote no profile")
    return path


def is_of_its_machine(test, path):
    """Numbers of the program's own width and byte order: a 0 and a 3 begin it."""
    kind = pathlib.Path(command(test)[-1]).read_bytes()[4:6]
    width, order = {1: 4, 2: 8}[kind[0]], {1: "little", 2: "big"}[kind[1]]
    check(path.read_bytes()[:2 * width] == bytes(width) + (3).to_bytes(width, order),
          f"not of {8 * width} bits, {order}-endian: {path.read_bytes()[:32].hex()}")


def capture(test):
    return test.source / "tests" / "data" / "6.18.44" / "sched.traced"


def pprof(test, path):
    """For each function how often it was the innermost one, and how often on the stack, by
    google-pprof."""
    out = subprocess.run(["google-pprof", "--text", "--nodefraction=0", command(test)[-1], path], check=True,
                         capture_output=True, text=True).stdout
    rows = re.findall(r"^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% +(\S+)", out, re.M)
    return {name: int(count) for count, _, name in rows}, {name: int(count) for _, count, name in rows}


def by_program(counts):
    """The counts of the busy program's functions, and the rest of all samples."""
    own = {name: counts.get(name, 0) for name in ("leaf", "middle_a", "middle_b", "work", "main")}
    return own, sum(counts.values()) - sum(own.values())


def merged_profile(test):
    """On a busy machine, or an emulated one, few of the profiler's signals arrive. If there are ten
    samples, one time in twenty all are the longer function's, which leaves one stack, whose callers
    pprof does not report; with forty samples that never happens."""
    for ms in (400, 2000, 8000, 32000):
        path = profile(test, ms=ms)
        is_of_its_machine(test, path)
        r = test.run("convert", "--cpu-profile", path, capture(test), "out.json")
        check(r.status == 0, r)
        trace = json.loads((test.dir / "out.json").read_text())
        told = trace["otherData"]["cpu_profiles"][0]
        if told["samples"] >= 40:
            return path, trace, told
    check(False, f"few samples: {told}")


def names_and_counts(test):
    path, trace, told = merged_profile(test)
    frames = trace["stackFrames"]
    counts = collections.Counter()
    under = collections.Counter()
    for sample in trace["samples"]:
        frame = frames[sample["sf"]]
        counts[frame["name"]] += sample["weight"]
        while frame:
            under[frame["name"]] += sample["weight"]
            frame = frames.get(frame.get("parent"))
    check(told["samples"] == sum(counts.values()), f"{told} but {counts}")
    # Each tool spells other files' functions differently (C++, the vdso): only the sums must agree.
    peer, peer_under = pprof(test, path)
    check(by_program(counts) == by_program(peer), f"{counts}, pprof says {peer}")
    check(by_program(under)[0] == by_program(peer_under)[0], f"{under}, pprof says {peer_under}")
    # A slow program may have samples in its start, too.
    check(under["middle_a"] and under["middle_b"] and under["main"] > told["samples"] / 2, str(under))
    check("no times" in json.dumps(trace["traceEvents"]), "the trace does not say that times are made")
    times = [s["ts"] for s in trace["samples"]]
    check(times == sorted(times), "samples are not in order")


def refusals(test):
    path = profile(test, ms=100)
    data = path.read_bytes()
    (test.dir / "cut.prof").write_bytes(data[:60])
    (test.dir / "other.prof").write_bytes(b"not a profile at all, but long enough to be one" * 3)
    (test.dir / "giga.prof").write_bytes(data[:40] + b"\x01" + bytes(7) + b"\xff" * 8 + data[56:])
    (test.dir / "empty.prof").write_bytes(b"")
    for name, says in (("cut.prof", "ends at byte 60"), ("other.prof", "not a profile"),
                       ("giga.prof", "18446744073709551615 addresses"),
                       ("empty.prof", "not a profile"), ("absent.prof", "absent.prof"), (".", "--cpu-profile")):
        r = test.run("convert", "--cpu-profile", name, capture(test), "out.json")
        check(r.status == 1 and says in r.err, f"{name}: {r}")
        check(not (test.dir / "out.json").exists(), f"{name}: wrote a file")


def main():
    test = Test("cpu_profile", root=False)
    if not shutil.which("google-pprof"):
        skip("cpu_profile needs google-perftools")
    test.case("the functions and counts of google-pprof", names_and_counts)
    test.case("files that are no profiles", refusals)
    test.end()


if __name__ == "__main__":
    main()
