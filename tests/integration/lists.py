#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tracectl lists of the kernel: fields of events with the operators of filters, clocks, tracers and
options; from tracefs, and from the daemon for users."""

import json
import os
import platform

from harness import INSTANCES, TRACEFS, Test, as_nobody, check

OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "&", "~"]


def fields_of(test, *globs, **kwargs):
    result = test.run("events", "--fields", "--json", *globs, **kwargs)
    check(result.status == 0, f"{result}")
    return {e["event"]: e["fields"] for e in json.loads(result.out)}


def value_of(operators):
    return '"x"' if "~" in operators else "CPUS{0}" if "<" not in operators else "1"


def is_taken(instance, event, text):
    try:
        (instance / "events" / event.replace(":", "/") / "filter").write_text(text)
    except OSError:
        return False
    return True


def check_taken(instance, event, fields):
    """The kernel takes each operator of each field."""
    version = tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2])
    tests = [f"{f['name']} {o} {value_of(f['operators'])}" for f in fields for o in f["operators"]
             if version >= (6, 6) or value_of(f["operators"]) != "CPUS{0}"]
    if not tests or is_taken(instance, event, " && ".join(tests)):
        return len(tests)
    check(False, f"{event} refuses {[t for t in tests if not is_taken(instance, event, t)]}")


def check_refused(instance, event, fields):
    """And of one field of each kind the other operators it does not."""
    kinds = {value_of(f["operators"]): f for f in fields if f["operators"]}
    refused = 0
    for value, field in kinds.items():
        for o in set(OPERATORS) - set(field["operators"]):
            check(not is_taken(instance, event, f"{field['name']} {o} {value}"), f"{event} takes '{o}' of {field}")
            refused += 1
    return refused


def the_kernel_agrees(test):
    events = fields_of(test)
    instance = INSTANCES / f"lists-{test.name}"
    instance.mkdir()
    taken = refused = 0
    try:
        for event, fields in events.items():
            # The kernel's own events have no filters.
            if (instance / "events" / event.replace(":", "/") / "filter").exists():
                taken += check_taken(instance, event, fields)
                refused += check_refused(instance, event, fields)
    finally:
        instance.rmdir()
    check(taken > 1000 and refused > 100, f"only {taken} and {refused}")


def fields_as_text(test):
    text = test.run("events", "-v", "sched:sched_switch").out
    check(text.startswith("sched:sched_switch\n") and "\nevery event\n" in text, text)
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  ")}
    check(lines["prev_comm"] == ["char[16]", "==", "!=", "~"], f"{lines['prev_comm']}")
    check(lines["common_pid"] == ["int", "==", "!=", "<", "<=", ">", ">=", "&"], f"{lines['common_pid']}")
    check("root" not in lines["next_pid"] and "comm" in lines, text)
    check(test.run("events", "--fields", "sched:sched_switch").out == text, "--fields is not -v")
    check("root only" in test.run("events", "--fields", "kmem:kmalloc").out, "call_site is open")
    everything = test.run("events", "--fields", timeout=120)
    check(everything.status == 0 and everything.out.count("\nevery event\n") == 1, f"{everything}")


def lists(test, **kwargs):
    words = {what: test.run("list", what, **kwargs).out.split() for what in ("clocks", "tracers", "options")}
    check({"boot", "mono", "local"} <= set(words["clocks"]) and "nop" in words["tracers"], f"{words}")
    check(words["tracers"] == (TRACEFS / "available_tracers").read_text().split(), f"{words}")
    check(words["options"] == sorted(os.listdir(TRACEFS / "options")), f"{words}")
    result = test.run("list", "clocks", "--json", **kwargs)
    check(json.loads(result.out) == words["clocks"], f"{result}")
    return words


def from_tracefs(test):
    lists(test)
    result = test.run("list", "flight")
    check(result.status == 2 and "'flight' is nothing to list" in result.err and "tracectl status flight" in result.err,
          f"{result}")
    check(test.run("list", "clocks", wrap=as_nobody()).status == 1, "nobody needs the daemon")


def from_the_daemon(test):
    """The same to root and to a user."""
    test.daemon.socket.parent.chmod(0o755)
    test.daemon.socket.chmod(0o666)
    own = lists(test)
    check(lists(test, wrap=as_nobody()) == own, "a user gets other lists")
    check(fields_of(test, "sched", wrap=as_nobody()) == fields_of(test, "sched"), "a user gets other fields")


def main():
    test = Test("lists")
    for case in (the_kernel_agrees, fields_as_text, from_tracefs):
        test.case(case.__name__.replace("_", " "), case)
    for case in (from_the_daemon, fields_as_text):
        test.case(case.__name__.replace("_", " ") + " (with a daemon)", case, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
