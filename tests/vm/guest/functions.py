#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: the function tracers, end to end, and that all changes are undone."""

import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from common import (INSTANCES, TRACEFS, check, extracted, need, of_a_guest, put_back, record, same_text, settings,
                    some_files, text_of)
from function_cases import CASES, LOOKED_UP, TOGETHER, TRIGGERS, recorded_case

GRAPH_IN_INSTANCE = None  # found out by main()


def top_level():
    return () if GRAPH_IN_INSTANCE else ("--top-level",)


def functions(test):
    record(test, "-p", "function", "-l", "vfs_*", "-n", "vfs_write", "-o", "out.txt")
    text = text_of(test)
    names = set(re.findall(r": (\w+)(?:\.\S+)? <-", text))
    check("vfs_read" in names, f"no vfs_read among {names}")
    check(all(n.startswith("vfs_") for n in names) and "vfs_write" not in names, f"{names}")


def by_expressions(test):
    # The kernel compares each excluded name with all its functions, which takes an emulated one long.
    record(test, "-p", "function", "-l", "/^vfs_(read|open|statx)$/", "-l", "!/^vfs_.*x$/", "-o", "out.txt")
    names = set(re.findall(r": (\w+)(?:\.\S+)? <-", text_of(test)))
    check(names == {"vfs_read", "vfs_open"}, f"{names}")


def a_module_that_comes_late(test, *how):
    """The module's functions have names, though it was loaded after the kernel's were written."""
    # A filter waits for a module that this file knows.
    modules = pathlib.Path("/lib/modules") / os.uname().release
    modules.mkdir(parents=True, exist_ok=True)
    with open(modules / "modules.dep", "a", encoding="utf-8") as f:
        f.write("kernel/drivers/net/dummy.ko:\n")

    def during():
        time.sleep(3)
        subprocess.run(["insmod", "/later/dummy.ko"], check=True)
        time.sleep(0.5)

    try:
        record(test, "-p", "function", "-l", "*:mod:dummy", "-l", "vfs_mkdir", *how, "-o", "out.txt",
               during=during)
    finally:
        subprocess.run(["rmmod", "dummy"], check=False)
    text = text_of(test)
    check(re.search(r": dummy_\w+(?: \[dummy\])? <-", text), f"no function of it in\n{text[-1500:]}")


def one_task(test):
    record(test, "-p", "function", "-l", "vfs_read", "--thread", os.getpid(), "-o", "out.txt")
    pids = set(re.findall(r"-(\d+) +\[\d+\].*: vfs_read <-", text_of(test)))
    check(pids == {str(os.getpid())}, f"{pids}, not {os.getpid()} alone")


def the_recorder_is_left_out(test, *how):
    """Its threads read the rings all the time, and would fill them with their own calls."""
    record(test, "-p", "function", "-l", "vfs_*", "-l", "do_sys*", "-l", "ring_buffer_*", *how, "-o", "out.txt",
           during=lambda: [(some_files(), time.sleep(0.2)) for _ in range(15)])
    tasks = collections.Counter(re.findall(r"^ *(\S.*?)-\d+ +\[\d+\].* <-", text_of(test), re.MULTILINE))
    check(sum(tasks.values()) > 100, f"few calls: {tasks}")
    check(not [t for t in tasks if t.startswith("traced")], f"{tasks}")


def stacks(test):
    record(test, "-p", "function", "-l", "vfs_open", "-O", "func_stack_trace", "-o", "out.txt")
    text = text_of(test)
    check(re.search(r"<stack trace>\n(?: => .+\n)+", text), f"no stack in\n{text[-1500:]}")


def options_are_shared():
    """Whether the kernel has one value of a tracer's option for all instances."""
    (INSTANCES / "probe").mkdir()
    option = INSTANCES / "probe/options/func_stack_trace"
    option.write_text("1")
    shared = (TRACEFS / "options/func_stack_trace").read_text() == "1\n"
    option.write_text("0")
    (INSTANCES / "probe").rmdir()
    return shared


def options_of_others(test):
    """Before Linux 6.19 a tracer's options are everybody's: who sets one has the tracer alone."""
    shared, before = options_are_shared(), settings()
    print(f"  {'one option for all' if shared else 'each instance has its own'}")
    for held, others in ((["-O", "func_stack_trace"], [[], ["-O", "nofunc_stack_trace"]]),
                         ([], [["-O", "func_stack_trace"]])):
        done = test.run("start", "--name", f"{test.name}-held", "-p", "function", "-l", "vfs_open", *held)
        check(done.status == 0, f"start {held}: {done}")
        during = settings()
        for options in others:
            done = test.run("record", "-p", "function", "-l", "vfs_read", *options, "-o", "out.txt", "--", "cat",
                            "/proc/self/stat")
            check(done.status == (1 if shared else 0), f"{held}, then {options}: {done}")
            if shared:
                check("share this tracer's options" in done.err, f"{held}, then {options}: {done}")
            else:
                text = text_of(test)
                check(("<stack trace>" in text) == (options == ["-O", "func_stack_trace"]),
                      f"{held}, then {options}:\n{text[-1500:]}")
            put_back(during)
        check(test.run("cancel", f"{test.name}-held").status == 0, "cancel")
        put_back(before)


def triggers(test):
    """The function turns the recording off: earlier events are there, later ones are not."""
    def during():
        some_files()
        pathlib.Path("/var/tmp/d").mkdir()
        pathlib.Path("/var/tmp/d").rmdir()
        some_files()

    record(test, "-p", "function", "-l", "vfs_*", "-l", "vfs_mkdir:traceoff", "-o", "out.txt",
           during=during)
    text = text_of(test)
    check("vfs_read <-" in text, "nothing was recorded before")
    check("vfs_rmdir <-" not in text, "events after traceoff")


@contextlib.contextmanager
def reading():
    """A task that calls vfs_read without end."""
    task = subprocess.Popen([sys.executable, "-c", "f = open('/proc/self/comm')\nwhile True: f.seek(0); f.read()"])
    try:
        yield task.pid
    finally:
        task.kill()
        task.wait()


def triggers_that_turn_on(test):
    """A function turns tracing on, also at the recording's end: nothing comes after that."""
    for name, how in (("instance", []), ("top level", ["--top-level"])):
        with reading():
            done = record(test, "-p", "function", "-l", "vfs_read", "-l", "vfs_read:traceon", "-l", "vfs_mkdir:traceoff",
                          "--json", *how, "-o", "out.txt", during=lambda: time.sleep(1))
        told = json.loads(done.out)
        check(told["events"] and not told["warnings"], f"{name}: {done}")
        check(sum(row["unread"] for row in told["ledger"]) == 0, f"{name}: events came after the end: {told['ledger']}")


def triggers_are_removed(test):
    """Those of the top level, with and without a count: record() checks the kernel's list."""
    record(test, "-p", "function", "-l", "vfs_*", "-l", "vfs_read:stacktrace:3", "-l", "vfs_mkdir:traceoff:1", "-l",
           "vfs_rmdir:traceoff", "-l", "vfs_open:enable_event:sched:sched_switch:1", "-l",
           "vfs_unlink:enable_event:sched:sched_switch", "--top-level", "-o", "out.txt")


def graph(test):
    # All 40,000 functions take an emulated kernel with several CPUs minutes, because it must notify
    # each CPU.
    record(test, "-g", "vfs_read", "--max-graph-depth", 3, "-l", "vfs_*", "-l", "*_read*",
           "-l", "security_*", "-l", "rw_*", *top_level(), "-o", "out.txt")
    text = text_of(test)
    check(re.search(r"\|  vfs_read\(\)", text), f"no vfs_read in\n{text[:1500]}")
    deepest = max(len(m) for m in re.findall(r"\|  ( *)\w+\(\)", text))
    check(0 < deepest <= 4, f"{deepest} blanks before the deepest call")


def graph_to_everything(test):
    record(test, "-p", "function_graph", "-l", "vfs_*", "-e", "sched:sched_switch", *top_level(),
           "-o", "out.traced")
    for name in ("out.json", "out.txt", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")


# A graph's text has the values beside a call, and beside its end.
CALL = re.compile(r"\|  +([\w.]+)\((.*)\)(?:;| \{)(?: /\*(?: <-(\S+))?(?: ret=(\S+))? \*/)?$", re.M)
END = re.compile(r"\|  +\} /\* ([\w.]+) ret=(\S+) \*/$", re.M)
VALUES = {"arguments": "funcgraph-args", "ret": "funcgraph-retval", "from": "funcgraph-retaddr"}


def graph_values(test):
    """The JSON's slices have the values that the text shows; the Perfetto trace's have some."""
    values = {word: option for word, option in VALUES.items() if (TRACEFS / "options" / option).exists()}
    need(values, f"this kernel has none of {', '.join(VALUES.values())}")
    print(f"  with {', '.join(values.values())}")
    # vfs_statfs() has dots in its name if the compiler split it.
    record(test, "-p", "function_graph", "-l", "vfs_*", *(o for option in values.values() for o in ("-O", option)),
           *top_level(), "-o", "out.traced", during=lambda: (some_files(), os.statvfs("/")))
    for name in ("out.json", "out.txt", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
    wanted = {word: collections.Counter() for word in VALUES}
    for function, arguments, caller, ret in CALL.findall(text_of(test)):
        for word, value in (("arguments", arguments), ("from", caller), ("ret", ret)):
            wanted[word][function, value] += value != ""
    wanted["ret"].update(END.findall(text_of(test)))
    found = {word: collections.Counter() for word in VALUES}
    for e in json.loads(text_of(test, "out.json"))["traceEvents"]:
        for word, value in e.get("args", {}).items():
            if word == "arguments":
                value = ", ".join(k if k == "..." else f"{k}={v}" for k, v in value.items())
            if word in VALUES and e["ph"] in "XBE":
                found[word][e["name"], value] += 1
    trace = (test.dir / "out.pftrace").read_bytes()
    for word in values:
        check(sum(wanted[word].values()) > 5, f"few of {word}: {wanted[word]}")
        check(+found[word] == +wanted[word], f"{word}: {found[word] - wanted[word]} instead of {wanted[word] - found[word]}")
        check(word.encode() in trace and b"Funcgraph" in trace, f"the Perfetto trace has no {word}")


def user_stacks(test):
    """Stacks beside their events, in every format."""
    record(test, "-e", "raw_syscalls:sys_enter", "-P", os.getpid(), "-O", "userstacktrace", "-o", "out.traced")
    for name in ("out.json", "out.txt", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
    for name in ("out.txt", "out.json"):
        check(re.search(r"<user stack trace>(\\n|\s)+=>  <[0-9a-f]+>", text_of(test, name)),
              f"no stack in {name}:\n{text_of(test, name)[-1500:]}")


def top_level_is_said(test):
    arguments = ("-p", "function_graph", "-l", "vfs_*", "-o", "out.txt")
    if GRAPH_IN_INSTANCE:
        record(test, *arguments)
        return
    before = settings()
    done = test.run("record", "-t", "100ms", *arguments)
    check(done.status == 1 and "--top-level" in done.err, f"{done}")
    put_back(before)


def top_level_in_use(test):
    event = TRACEFS / "events" / "sched" / "sched_switch" / "enable"
    event.write_text("1")
    try:
        done = test.run("record", "-t", "100ms", "-p", "function", "-l", "vfs_*", "--top-level",
                        "-o", "out.txt")
        check(done.status == 1 and "somebody else uses" in done.err, f"{done}")
        check(event.read_text().strip() == "1", "it changed a setting that is in use")
    finally:
        event.write_text("0")
        (TRACEFS / "trace").write_text("")


def killed_at_the_top_level(test):
    """The next start restores the settings that a killed recorder has left."""
    before = settings()
    process = test.start("start", "-p", "function", "-l", "vfs_*", "--top-level", "--name", "x")
    done = test.finish(process)
    check(done.status == 0, f"start: {done}")
    check(settings() != before, "it changed no setting")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    put_back(before)


def refusals(test):
    for arguments, words in (
            (["-p", "function", "-l", "vsf_*"], "vfs_*"),
            (["-p", "function", "-l", "vfs_raed"], "vfs_read"),
            (["-p", "function", "-l", "/^vfs_(raed|raedv)$/"], "no function that matches"),
            (["-p", "function", "-l", "/./"], "more than 1024 names"),
            (["-p", "function", "-l", "*:mod:no_such_module"], "no module"),
            (["-p", "function_graph", "-g", "vfs_raed"], "vfs_read"),
            (["-p", "functoin"], "function"),
            (["-p", "function", "-l", "vfs_*", "-O", "funcgraph-tail"], "the option 'funcgraph-tail'"),
            (["-p", "function", "-l", "vfs_read:traceof"], "traceoff")):
        before = settings()
        done = test.run("record", "-t", "100ms", *arguments, "-o", "out.txt")
        check(done.status == 1 and words in done.err, f"{arguments}: {done}")
        check(not (test.dir / "out.txt").exists(), "a file was written")
        put_back(before)
        check(not test.instances(), f"{arguments} left an instance behind")


def the_kernels_text(test, case):
    files = dict(case["files"])
    # Fewer than all 40,000 functions for a graph: an emulated kernel takes long to patch them.
    files.setdefault("set_ftrace_filter", "vfs_* ksys_* *_read *_open* do_sys* path_* schedule* do_nanosleep")
    with recorded_case(test, **{**case, "files": files}) as (buffer, instance):
        if not buffer:
            print("  this kernel has no " + " ".join(case["options"]))
            return
        wanted = (buffer / "trace").read_text()
        ours = extracted(test, instance, [e.replace("/", ":") for e in case.get("events", ["sched/sched_switch"])])
        check(same_text(wanted, ours) > 20, "too little was recorded")
        for stack in case.get("shows", ()):
            check(stack in wanted, f"the kernel has no {stack} in\n{wanted[-1500:]}")


def main():
    global GRAPH_IN_INSTANCE
    test = of_a_guest("functions")
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    (INSTANCES / "probe").mkdir()
    GRAPH_IN_INSTANCE = "function_graph" in (INSTANCES / "probe/available_tracers").read_text().split()
    (INSTANCES / "probe").rmdir()
    test.case("functions, and not others", functions, daemon=True)
    test.case("functions by regular expressions", by_expressions, daemon=True)
    test.case("functions of a module that comes late", a_module_that_comes_late, daemon=True)
    test.case("functions of a module that comes late, streamed", a_module_that_comes_late, "--stream",
              daemon=True)
    test.case("functions of one task", one_task, daemon=True)
    test.case("the recorder is left out", the_recorder_is_left_out, daemon=True)
    test.case("the recorder of a stream is left out", the_recorder_is_left_out, "--stream", daemon=True)
    test.case("stacks of functions", stacks, daemon=True)
    test.case("options of other recordings", options_of_others, daemon=True)
    test.case("a trigger", triggers, daemon=True)
    test.case("triggers that turn on", triggers_that_turn_on, daemon=True)
    test.case("triggers of the top level", triggers_are_removed, daemon=True)
    test.case("a graph from a root", graph, daemon=True)
    test.case("a graph in every format", graph_to_everything, daemon=True)
    test.case("values in a graph", graph_values, daemon=True)
    test.case("stacks of programs", user_stacks, daemon=True)
    test.case("what needs the top level says so", top_level_is_said, daemon=True)
    test.case("a top level in use", top_level_in_use, daemon=True)
    test.case("killed at the top level", killed_at_the_top_level, daemon=True)
    test.case("what the kernel lacks", refusals, daemon=True)
    for name, case in {**CASES, **TOGETHER, **TRIGGERS, **LOOKED_UP}.items():
        test.case(f"the kernel's text: {name}", the_kernels_text, case)
    test.end()


if __name__ == "__main__":
    main()
