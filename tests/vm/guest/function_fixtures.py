#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""function_fixtures.py BUILD_DIRECTORY: in a guest, records what unit tests need of its
kernel's function tracers into /out/data/VERSION (tests/vm/fixtures copies it to
tests/data). Of each case:

    CASE.traced.gz   the buffer, drained after its text was read
    CASE.txt.gz      the kernel's own text of it, under the options that the capture tells
    CASE.VIEW.txt.gz the same under other options of the tracer, where they change the text
    CASE.VIEW.options  trace_options at that time
"""

import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from fixtures import fewer_symbols, version, write_gz  # noqa: E402
from harness import INSTANCES, TRACEFS, Test, check, skip  # noqa: E402

GRAPH = {"set_graph_function": "vfs_read\ndo_sys_openat2\nvfs_write", "max_graph_depth": "4"}
CASES = {
    "function": dict(tracer="function", files={"set_ftrace_filter": "vfs_* *_fault\ntick_*"},
                     events=["sched/sched_switch"]),
    "function-stack": dict(tracer="function", options=["func_stack_trace"],
                           files={"set_ftrace_filter": "vfs_open\nvfs_statx"}),
    "function-user-stack": dict(tracer="function", options=["userstacktrace"],
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
    # No roots: whole interrupts are in it, and what began before the recording.
    "graph-all": dict(tracer="function_graph", files={"max_graph_depth": "2"}),
    "graph-times": dict(tracer="function_graph", options=["nosleep-time", "nograph-time"],
                        files={**GRAPH, "set_graph_function": "vfs_read\nksys_read\ndo_nanosleep",
                               "max_graph_depth": "4"}),
    "graph-retval": dict(tracer="function_graph", options=["funcgraph-retval"], files=GRAPH,
                         views={"hex": ["funcgraph-retval-hex"]}),
    "graph-retaddr": dict(tracer="function_graph", options=["funcgraph-retaddr", "funcgraph-retval"],
                          files=GRAPH),
    "graph-args": dict(tracer="function_graph", options=["funcgraph-args"], files=GRAPH),
}


def load():
    subprocess.run(["sh", "-c", "echo x >/var/tmp/f; cat /var/tmp/f; sleep 0.01"],
                   check=False, stdout=subprocess.DEVNULL)


def set_option(buffer, option, on=True):
    off = option.startswith("no") and option != "nop"
    name = option[2:] if off else option
    (buffer / "options" / name).write_text("1" if on != off else "0")


@contextlib.contextmanager
def tracing(name, tracer):
    """A buffer that can have that tracer: an instance, else the top level, put back."""
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


def extract(test, instance, symbols_of, out):
    """The buffer as a stream; of symbols and formats what it takes to print it."""
    symbols, events = test.dir / "kallsyms", test.dir / "available_events"
    fewer_symbols(symbols_of, symbols)
    events.write_text("sched:sched_switch\nsched:sched_wakeup\nsched:sched_process_exec\n")
    where = ["--instance", instance] if instance else []
    try:
        subprocess.run(["mount", "--bind", str(symbols), "/proc/kallsyms"], check=True)
        subprocess.run(["mount", "--bind", str(events), str(TRACEFS / "available_events")], check=True)
        done = test.run("extract", *where, "-o", "case.traced")
        check(done.status == 0, f"extract: {done}")
    finally:
        for path in ("/proc/kallsyms", str(TRACEFS / "available_events")):
            subprocess.run(["umount", path], check=False, stderr=subprocess.DEVNULL)
    write_gz(out, (test.dir / "case.traced").read_bytes())


def record(test, name, out, tracer, files=None, options=(), events=(), views=None):
    with tracing(test.name, tracer) as (buffer, instance):
        (buffer / "tracing_on").write_text("0")
        (buffer / "buffer_size_kb").write_text("4096")
        for file, value in (files or {}).items():
            # The roots and the depth of graphs are one for all instances.
            (buffer if (buffer / file).exists() else TRACEFS).joinpath(file).write_text(
                value.replace(" ", "\n"))
        (buffer / "current_tracer").write_text(tracer)
        (buffer / "trace").write_text("")
        have = {p.name for p in (buffer / "options").iterdir()}
        wanted, options = options, [o for o in options if o.removeprefix("no") in have]
        if wanted and not options:
            print(f"{name}: this kernel has no {' '.join(wanted)}")
            return
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
        text = (buffer / "trace").read_bytes()
        check(text.count(b"\n") > 20, f"{name} has recorded next to nothing:\n{text.decode()}")
        check(b"LOST" not in text, "the fixture's buffer is too small")
        write_gz(out / f"{name}.txt.gz", text)
        everything = text
        for view, settings in (views or {}).items():
            for option in settings:
                set_option(buffer, option)
            other = (buffer / "trace").read_bytes()
            everything += other
            write_gz(out / f"{name}.{view}.txt.gz", other)
            (out / f"{name}.{view}.options").write_bytes((buffer / "trace_options").read_bytes())
            for option in settings:
                set_option(buffer, option, on=False)
        check(not views or (buffer / "trace").read_bytes() == text, "a view left its traces")
        extract(test, instance, everything, out / f"{name}.traced.gz")
        for option in options:
            set_option(buffer, option, on=False)
        print(f"{name}: {'an instance' if instance else 'the top level'}, {text.count(10)} lines")


def main():
    if not os.environ.get("TRACED_VM"):
        skip("only for guests")
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True, exist_ok=True)
    test = Test("function-fixtures")
    for name, case in CASES.items():
        test.case(name, lambda test, name=name, case=case: record(test, name, out, **case))
    test.end()


if __name__ == "__main__":
    main()
