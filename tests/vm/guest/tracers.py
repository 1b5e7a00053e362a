#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: the tracers of latencies, their settings and thresholds, and that all changes are
undone. Debian's cloud kernels have none of them, its rt kernels have three."""

import csv
import errno
import io
import json
import re
import time

from common import (INSTANCES, TRACEFS, Failure, check, extracted, need, of_a_guest, put_back, record, same_text,
                    settings, settled, skip, text_of)

CONFIGS = {"timerlat": "CONFIG_TIMERLAT_TRACER", "osnoise": "CONFIG_OSNOISE_TRACER",
           "hwlat": "CONFIG_HWLAT_TRACER"}
# At each new maximum, these keep what the ring buffer has.
TEXT_ONLY = ("wakeup", "wakeup_rt", "wakeup_dl", "irqsoff", "preemptoff", "preemptirqsoff")
FILES = ("tracing_thresh", "osnoise/timerlat_period_us", "osnoise/period_us", "osnoise/runtime_us",
         "osnoise/cpus", "osnoise/print_stack", "osnoise/stop_tracing_us",
         "osnoise/stop_tracing_total_us", "hwlat_detector/width", "hwlat_detector/window")
TIMERLAT = re.compile(r"\[(\d+)\] .*: #(\d+) +context +(irq|thread) timer_latency +(\d+) ns$", re.M)
# An emulated CPU manages a sample in some milliseconds.
PERIOD = "20ms"


def tracers():
    return (TRACEFS / "available_tracers").read_text().split()


def global_settings():
    return {name: (TRACEFS / name).read_text() for name in FILES if (TRACEFS / name).exists()}


def restored(before):
    until = time.monotonic() + 30
    while (now := global_settings()) != before and time.monotonic() < until:
        time.sleep(0.1)
    check(now == before, f"settings are {now}, not {before}")


def wait(seconds):
    return lambda: time.sleep(seconds)


def samples_and_their_report(test):
    before = global_settings()
    record(test, "-p", "timerlat", "--tracer-option", f"period={PERIOD}", "-e", "osnoise", "-o", "out.traced",
           during=wait(5))
    restored(before)
    for name in ("out.txt", "out.json", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
        check(b"timer_latency" in (test.dir / name).read_bytes(), f"{name} has no sample")
    text = text_of(test)
    check("LOST" not in text, "samples were lost")
    wanted = {}
    for cpu, _, context, ns in TIMERLAT.findall(text):
        wanted.setdefault(int(cpu), {"irq": [], "thread": []})[context].append(int(ns))
    check(sum(len(w["irq"]) for w in wanted.values()) >= 20, f"too few samples in\n{text[-1500:]}")
    # Numbers of a CPU are in sequence: none is missing.
    for cpu in wanted:
        numbers = [int(n) for c, n, context, _ in TIMERLAT.findall(text) if int(c) == cpu and context == "irq"]
        check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"CPU {cpu} has gaps: {numbers}")
    done = test.run("report", "timerlat", "out.traced", "--csv")
    check(done.status == 0, f"{done}")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    check(len(rows) == len(wanted), f"{rows}")
    for row in rows:
        mine = wanted[int(row["cpu"])]
        check(int(row["count"]) == len(mine["irq"]) and int(row["threads"]) == len(mine["thread"]), f"{row}")
        for part in ("irq", "thread"):
            if mine[part]:
                check(int(row[f"{part}_max_ns"]) == max(mine[part]) and int(row[f"{part}_min_ns"]) == min(mine[part]),
                      f"{part} of {row}, not {mine[part]}")


def a_threshold_ends_it(test):
    before, top = global_settings(), settings()
    started = time.monotonic()
    done = test.run("record", "-t", "100s", "-p", "timerlat", "--tracer-option", f"period={PERIOD}", "--stop-us", "1",
                    "-o", "out.txt")
    check(done.status == 0 and "--stop-us" in done.err, f"{done}")
    check(time.monotonic() - started < 80, "it did not end at the threshold")
    samples = TIMERLAT.findall(text_of(test))
    check(samples and any(int(ns) >= 1000 for *_, ns in samples), f"no late sample in\n{text_of(test)[-1500:]}")
    done = test.run("record", "-t", "2s", "-p", "timerlat", "--tracer-option", f"period={PERIOD}", "--stop-us",
                    "900000000", "-o", "whole.txt")
    check(done.status == 0 and "--stop-us" not in done.err, f"a threshold that is not reached: {done}")
    check(len(TIMERLAT.findall(text_of(test, "whole.txt"))) > len(samples), "too few samples without a stop")
    restored(before)
    put_back(top)


def ends_at_a_threshold(test, *options):
    """A recording that ends at the first late sample, and has what the ring buffer had before it."""
    before, top = global_settings(), settings()
    done = test.run("record", "-t", "100s", "-p", "timerlat", "--tracer-option", f"period={PERIOD}", "--stop-us", "1",
                    "-e", "timer:hrtimer_expire_entry", *options, "-o", "out.txt")
    check(done.status == 0 and "--stop-us" in done.err, f"{options}: {done}")
    text = text_of(test)
    check("LOST" not in text, f"{options}: events are missing")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    late = [n for n, line in enumerate(lines) if (m := TIMERLAT.search(line)) and int(m[4]) >= 1000]
    check(late, f"{options}: no late sample in\n{text[-1500:]}")
    check(any("hrtimer_expire_entry" in line for line in lines[:late[0]]),
          f"{options}: nothing before the sample in\n{text[:1500]}")
    restored(before)
    put_back(top)


def a_threshold_of_a_ring(test):
    ends_at_a_threshold(test, "--ring")


def a_threshold_of_a_stream(test):
    ends_at_a_threshold(test, "--stream")


def a_threshold_of_noise(test):
    """It ends at the first interruption that is too long, which the trace has."""
    before, top = global_settings(), settings()
    started = time.monotonic()
    done = test.run("record", "-t", "100s", "-p", "osnoise", "-e", "osnoise", "--stop-us", "1", "-o", "out.txt")
    check(done.status == 0 and "--stop-us" in done.err, f"{done}")
    check(time.monotonic() - started < 80, "it did not end at the threshold")
    found = re.findall(r": sample_threshold: start \S+ duration (\d+) ns ", text_of(test))
    check(any(int(ns) >= 1000 for ns in found), f"no long interruption in\n{text_of(test)[-1500:]}")
    restored(before)
    put_back(top)


def noise(test):
    before = global_settings()
    record(test, "-p", "osnoise", "--tracer-option", "runtime=100ms", "--tracer-option", "period=500ms",
           "-o", "out.traced", during=wait(5))
    restored(before)
    done = test.run("report", "noise", "out.traced", "--json")
    check(done.status == 0 and "from the events of osnoise" in done.out, f"{done}")
    json.loads(done.out)


def hardware(test):
    before = global_settings()
    record(test, "-p", "hwlat", "--tracer-option", "width=100ms", "--tracer-option", "window=500ms",
           "--tracer-option", "threshold=1us", "-o", "out.txt", during=wait(5))
    restored(before)
    check(re.search(r"inner/outer\(us\): ", text_of(test)), f"no sample in\n{text_of(test)[-1500:]}")


def without_head(text):
    """These tracers have heads of their own in the kernel's text, and columns for them."""
    return "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#"))


def of_tracer(test, tracer, function):
    need(tracer in tracers(), f"this kernel has no {tracer}")
    if function is the_kernels_text:
        function(test, tracer)
    else:
        function(test)


def the_kernels_text(test, tracer):
    instance = INSTANCES / f"{test.name}-text"
    instance.mkdir()
    try:
        (instance / "current_tracer").write_text(tracer)
        time.sleep(4)
        (instance / "tracing_on").write_text("0")
        wanted = (instance / "trace").read_text()
        ours = extracted(test, instance.name, ["sched:sched_switch"])
        check(same_text(without_head(wanted), without_head(ours)) >= 2, "too little was recorded")
    finally:
        (instance / "current_tracer").write_text("nop")
        instance.rmdir()


def killed(test):
    before, top = global_settings(), settings()
    done = test.run("start", "-p", "timerlat", "--tracer-option", f"period={PERIOD}", "--stop-us", "900000",
                    "--name", "x")
    check(done.status == 0, f"start: {done}")
    check(global_settings() != before, "it changed no setting")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    restored(before)
    put_back(top)


def refusals(test):
    has = tracers()
    for tracer, config in CONFIGS.items():
        if tracer in has:
            continue
        done = test.run("record", "-t", "100ms", "-p", tracer, "-o", "out.txt")
        check(done.status == 1 and config in done.err, f"{tracer}: {done}")
    for tracer in TEXT_ONLY:
        for options in ((), ("--top-level",)):
            done = test.run("record", "-t", "100ms", "-p", tracer, *options, "-o", "out.txt")
            check(done.status == 1 and "as text only" in done.err, f"{tracer}: {done}")
    check(not (test.dir / "out.txt").exists(), "a file was written")
    done = test.run("doctor")
    check(all((config in done.out) != (tracer in has) for tracer, config in CONFIGS.items()), f"{done}")


def raw_snapshot_is_refused(_test, tracer):
    """Why tracers of maxima are not recorded: their events are in the snapshot, which is refused raw
    while they are on, and freed with them."""
    need(tracer in tracers(), f"this kernel has no {tracer}")
    instance = INSTANCES / "traced-test-maximum"
    instance.mkdir()
    try:
        (instance / "current_tracer").write_text(tracer)
        # tracing_max_latency has a maximum somewhat earlier than the text.
        settled("a maximum in its text", lambda: "latency: " in (instance / "trace").read_text())
        check(int((instance / "tracing_max_latency").read_text()) > 0, "its text has a maximum that is 0")
        try:
            (instance / "per_cpu/cpu0/snapshot_raw").open("rb").close()
        except OSError as e:
            check(e.errno == errno.EBUSY, f"snapshot_raw: {e}")
        else:
            raise Failure("snapshot_raw can be read")
        (instance / "current_tracer").write_text("nop")
        check("Snapshot is freed" in (instance / "snapshot").read_text(), "the snapshot outlives the tracer")
    finally:
        (instance / "current_tracer").write_text("nop")
        instance.rmdir()


# The cases of a tracer that the kernel lacks are skipped.
CASES = (
    ("timerlat", "timerlat and its report", samples_and_their_report),
    ("timerlat", "a threshold", a_threshold_ends_it),
    ("timerlat", "a threshold keeps what a ring has", a_threshold_of_a_ring),
    ("timerlat", "a threshold ends a stream", a_threshold_of_a_stream),
    ("timerlat", "killed", killed),
    ("timerlat", "the kernel's text of timerlat", the_kernels_text),
    ("osnoise", "osnoise and its report", noise),
    ("osnoise", "a threshold of noise", a_threshold_of_noise),
    ("osnoise", "the kernel's text of osnoise", the_kernels_text),
    ("hwlat", "hwlat", hardware),
)


def main():
    test = of_a_guest("tracers")
    has = tracers()
    print("  the kernel has " + " ".join(has))
    test.case("what the kernel lacks", refusals, daemon=True)
    for tracer, label, function in CASES:
        test.case(label, of_tracer, tracer, function, daemon=True)
    # No guest has a task with a deadline, and Debian's kernels lack the others.
    for tracer in ("wakeup", "wakeup_rt"):
        test.case(f"the snapshot of {tracer}", raw_snapshot_is_refused, tracer)
    # Refusals alone are no check of these tracers.
    if not test.failed and not set(CONFIGS) & set(has):
        skip(f"the kernel has none of {', '.join(CONFIGS)}; it refuses them as it should")
    test.end()


if __name__ == "__main__":
    main()
