# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests to the function tracers, in buffers that are not traced's."""

import contextlib
import subprocess

from common import INSTANCES, TRACEFS, some_files

GRAPH = {"set_graph_function": "vfs_read\ndo_sys_openat2\nvfs_write", "max_graph_depth": "4"}
CASES = {
    "function": dict(tracer="function", files={"set_ftrace_filter": "vfs_* *_fault\ntick_*"},
                     events=["sched/sched_switch"]),
    "function-stack": dict(tracer="function", options=["func_stack_trace"], shows=["<stack trace>"],
                           files={"set_ftrace_filter": "vfs_open\nvfs_statx"}),
    "function-user-stack": dict(tracer="function", options=["userstacktrace"], shows=["<user stack trace>"],
                                files={"set_ftrace_filter": "vfs_open"},
                                events=["sched/sched_process_exec"]),
    "function-args": dict(tracer="function", options=["func-args"],
                          files={"set_ftrace_filter": "vfs_* *_fault"}),
    "graph": dict(tracer="function_graph", files=GRAPH,
                  events=["sched/sched_switch", "sched/sched_wakeup"],
                  views={"columns": ["funcgraph-proc", "funcgraph-abstime", "funcgraph-tail",
                                     "nofuncgraph-overhead"],
                         "bare": ["nofuncgraph-cpu", "nofuncgraph-duration", "nofuncgraph-irqs",
                                  "funcgraph-overrun"]}),
    # No roots: it has whole interrupts, and functions that began before the recording.
    "graph-all": dict(tracer="function_graph", files={"max_graph_depth": "2"}),
    "graph-times": dict(tracer="function_graph", options=["nosleep-time", "nograph-time"],
                        files={**GRAPH, "set_graph_function": "vfs_read\nksys_read\ndo_nanosleep",
                               "max_graph_depth": "4"}),
    "graph-retval": dict(tracer="function_graph", options=["funcgraph-retval"], files=GRAPH,
                         views={"hex": ["funcgraph-retval-hex"]}),
    "graph-retaddr": dict(tracer="function_graph", options=["funcgraph-retaddr", "funcgraph-retval"],
                          files=GRAPH, views={"callers": ["nofuncgraph-retval"]}),
    "graph-args": dict(tracer="function_graph", options=["funcgraph-args"], files=GRAPH),
}


# Not for a fixture, which would have the arguments of all functions.
TOGETHER = {
    "graph with all values": dict(tracer="function_graph", files=GRAPH,
                                  options=["funcgraph-retaddr", "funcgraph-retval", "funcgraph-args"]),
}


# A function can make the kernel write a stack or end the recording.
TRIGGERS = {
    "a stack where a function is": dict(
        tracer="function", files={"set_ftrace_filter": "vfs_read vfs_open vfs_open:stacktrace"},
        shows=["<stack trace>"]),
    "the end where a function is": dict(
        tracer="function", files={"set_ftrace_filter": "vfs_* vfs_rmdir:traceoff"},
        events=["sched/sched_switch"], shows=["vfs_rmdir <-"]),
}


# The kernel looks up these addresses of running programs when its text is read.
LOOKED_UP = {
    "stacks of programs by file": dict(
        tracer="function", options=["userstacktrace", "sym-userobj"], events=["syscalls/sys_enter_openat"],
        files={"set_ftrace_filter": "vfs_open"}, shows=["<user stack trace>", "[+0x"]),
}


def load():
    some_files()
    subprocess.run(["sh", "-c", "echo x >/var/tmp/f; cat /var/tmp/f; mkdir /var/tmp/d; sleep 0.01; rmdir /var/tmp/d"],
                   check=False, stdout=subprocess.DEVNULL)


def set_option(buffer, option, on=True):
    off = option.startswith("no") and option != "nop"
    name = option[2:] if off else option
    (buffer / "options" / name).write_text("1" if on != off else "0")


@contextlib.contextmanager
def tracing(name, tracer):
    """A buffer that can have that tracer: an instance, otherwise the top level, restored
    afterwards."""
    instance = INSTANCES / f"{name}-functions"
    instance.mkdir()
    try:
        if tracer in (instance / "available_tracers").read_text().split():
            yield instance, instance.name
        else:
            yield TRACEFS, None
    finally:
        for file, value in (("current_tracer", "nop"), ("set_ftrace_filter", ""),
                            ("set_graph_function", ""), ("max_graph_depth", "0"),
                            ("trace", ""), ("tracing_on", "1")):
            (TRACEFS / file).write_text(value)
        (instance / "events" / "enable").write_text("0")
        (instance / "current_tracer").write_text("nop")
        instance.rmdir()


@contextlib.contextmanager
def recorded_case(test, tracer, files=None, options=(), events=(), views=None, shows=None):
    """A buffer with the output of the case's tracer for a load, and its instance, or None for the
    top level; no buffer if the kernel lacks the first of the options."""
    with tracing(test.name, tracer) as (buffer, instance):
        (buffer / "tracing_on").write_text("0")
        (buffer / "buffer_size_kb").write_text("4096")
        have = {p.name for p in (buffer / "options").iterdir()}
        wanted, options = options, [o for o in options if o.removeprefix("no") in have]
        if list(wanted[:1]) != options[:1]:
            yield None, None
            return
        for file, value in (files or {}).items():
            # All instances share the roots and the depth of graphs.
            (buffer if (buffer / file).exists() else TRACEFS).joinpath(file).write_text(
                value.replace(" ", "\n"))
        (buffer / "current_tracer").write_text(tracer)
        (buffer / "trace").write_text("")
        for option in options:
            set_option(buffer, option)
        for event in events:
            (buffer / "events" / event / "enable").write_text("1")
        load()
        (buffer / "tracing_on").write_text("1")
        load()
        (buffer / "tracing_on").write_text("0")
        for event in events:
            (buffer / "events" / event / "enable").write_text("0")
        try:
            yield buffer, instance
        finally:
            for option in options:
                set_option(buffer, option, on=False)
