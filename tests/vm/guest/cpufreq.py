#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest whose processors have frequencies (tests/vm/pstates.py): the report power says how long each CPU
had which one, and polls read them."""

import json
import pathlib
import random
import subprocess
import time

from common import INSTANCES, TRACEFS, check, of_a_guest, record, skip
from report_kernel import check_power, events_of, events_of_text, report

CPUS = pathlib.Path("/sys/devices/system/cpu")
EVENTS = ("power:cpu_frequency", "power:cpu_idle", "sched:sched_switch", "irq:irq_handler_entry", "irq:irq_handler_exit",
          *(f"irq_vectors:{name}_{end}" for name in ("local_timer", "reschedule", "call_function_single") for end in ("entry", "exit")))
CHANGES = 60


def policies():
    """Of each CPU, with a governor that leaves the frequency to us."""
    for module in ("cpufreq_userspace", "acpi-cpufreq"):
        subprocess.run(["insmod", f"/later/{module}.ko"], stderr=subprocess.DEVNULL, check=False)
    found = sorted(CPUS.glob("cpu[0-9]*/cpufreq"))
    if not found:
        skip("the guest's processors have no frequencies: tests/vm/run -c cpufreq")
    for policy in found:
        (policy / "scaling_governor").write_text("userspace")
    return found


def frequencies(policy):
    return [int(word) for word in (policy / "scaling_available_frequencies").read_text().split()]


def change(found):
    """Sets each CPU's frequency in turn to another one than before; returns what was set, in order."""
    rng, done = random.Random(1), []
    for i in range(CHANGES):
        policy = found[i % len(found)]
        now = int((policy / "scaling_cur_freq").read_text())
        khz = rng.choice([f for f in frequencies(policy) if f != now])
        (policy / "scaling_setspeed").write_text(str(khz))
        done.append((int(policy.parent.name[3:]), khz))
        time.sleep(rng.uniform(0.0005, 0.01))
    return done


def same_as_the_text(test, file, events, changes):
    """By brute force over the events of a text."""
    found = [(int(e.details.split("cpu_id=")[1]), int(e.details.split("state=")[1].split()[0]))
             for e in events if e.name == "cpu_frequency"]
    check(found == changes, f"{found}, but {changes} were set")
    check_power(test, file, events)
    rows = [row for row in report(test, "power", file) if row["what"] == "frequency"]
    check({(row["cpu"], row["state"]) for row in rows} == set(changes), f"{rows}: {set(changes)}")
    # The first one of a CPU has no begin, the last one no end.
    check(sum(row["count"] for row in rows) == len(changes) - sum(row["open"] for row in rows), rows)


def of_a_recording(test, found):
    changes = []
    events = [word for name in EVENTS if (TRACEFS / "events" / name.replace(":", "/")).exists() for word in ("-e", name)]
    record(test, *events, "-b", "8M", "-o", "x.traced", during=lambda: changes.extend(change(found)))
    same_as_the_text(test, "x.traced", events_of(test, "x.traced"), changes)


def of_the_kernels_text(test, found):
    """The same buffer twice: as the kernel prints it, and extracted."""
    instance = INSTANCES / f"{test.name}-own"
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text("8192")
        (instance / "events/power/enable").write_text("1")
        changes = change(found)
        (instance / "tracing_on").write_text("0")
        text = (instance / "trace").read_text()
        done = test.run("extract", "--instance", instance.name, "-o", "y.traced")
        check(done.status == 0 and "LOST" not in text, done)
    finally:
        instance.rmdir()
    same_as_the_text(test, "y.traced", events_of_text(text), changes)


def polls(test, found):
    """What scaling_cur_freq says is in the recording, too."""
    for policy in found:
        (policy / "scaling_setspeed").write_text(str(max(frequencies(policy))))
    seen = {}

    def during():
        time.sleep(1)
        for khz in sorted(frequencies(found[0])):
            (found[0] / "scaling_setspeed").write_text(str(khz))
            time.sleep(1)

    record(test, "-e", "power:cpu_frequency", "--poll", "cpufreq@100ms", "-o", "polls.json", during=during)
    for event in json.loads((test.dir / "polls.json").read_text())["traceEvents"]:
        if event.get("ph") == "C" and event.get("cat") == "poll":
            seen.setdefault(event["name"], []).extend(event["args"].values())
    check(len(seen) == len(found), seen)
    first = next(values for name, values in seen.items() if name.endswith(found[0].parent.name[3:]))
    changes = [khz for before, khz in zip([0, *first], first) if khz != before]
    check(changes[-3:] == sorted(frequencies(found[0])), f"{changes}: {seen}")


def main():
    test = of_a_guest("cpufreq")
    found = policies()
    check(all(len(frequencies(policy)) == 3 for policy in found), found)
    test.case("a recording", of_a_recording, found)
    test.case("the kernel's text", of_the_kernels_text, found)
    test.case("polls", polls, found)
    test.end()


if __name__ == "__main__":
    main()
