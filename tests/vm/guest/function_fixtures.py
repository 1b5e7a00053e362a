#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""function_fixtures.py BUILD_DIRECTORY: in a guest, records what unit tests need of its
kernel's function tracers into /out/data/VERSION (tests/vm/fixtures copies it to
tests/data). Of each case:

    CASE.traced.gz   the buffer, drained after its text was read
    CASE.txt.gz      the kernel's own text of it, under the options that the capture tells
    CASE.VIEW.txt.gz the same under other options of the tracer, where they change the text
    CASE.VIEW.options  trace_options at that time

Of a kernel that tests/vm/kernel built, only what Debian's kernels lack.
"""

import pathlib
import subprocess

from common import TRACEFS, check, of_a_guest, only_events
from fixtures import fewer_symbols, version, write_gz
from function_cases import CASES, recorded_case, set_option


def extract(test, instance, symbols_of, out):
    """The buffer as a stream, with the symbols and formats that printing it takes."""
    symbols = test.dir / "kallsyms"
    events = ("sched:sched_switch", "sched:sched_wakeup", "sched:sched_process_exec")
    fewer_symbols(symbols_of, symbols)
    where = ["--instance", instance] if instance else []
    try:
        subprocess.run(["mount", "--bind", str(symbols), "/proc/kallsyms"], check=True)
        with only_events(test, events):
            done = test.run("extract", *where, "-o", "case.traced")
        check(done.status == 0, f"extract: {done}")
    finally:
        subprocess.run(["umount", "/proc/kallsyms"], check=False, stderr=subprocess.DEVNULL)
    write_gz(out, (test.dir / "case.traced").read_bytes())


def record(test, name, out, **case):
    with recorded_case(test, **case) as (buffer, instance):
        if not buffer:
            print(f"{name}: this kernel has no {' '.join(case['options'])}")
            return
        text = (buffer / "trace").read_bytes()
        check(text.count(b"\n") > 20, f"{name} has recorded next to nothing:\n{text.decode()}")
        check(b"LOST" not in text, "the fixture's buffer is too small")
        write_gz(out / f"{name}.txt.gz", text)
        everything = text
        for view, settings in case.get("views", {}).items():
            for option in settings:
                set_option(buffer, option)
            other = (buffer / "trace").read_bytes()
            everything += other
            write_gz(out / f"{name}.{view}.txt.gz", other)
            (out / f"{name}.{view}.options").write_bytes((buffer / "trace_options").read_bytes())
            for option in settings:
                set_option(buffer, option, on=False)
        check("views" not in case or (buffer / "trace").read_bytes() == text, "a view left its traces")
        extract(test, instance, everything, out / f"{name}.traced.gz")
        print(f"{name}: {'an instance' if instance else 'the top level'}, {text.count(10)} lines")


def cases():
    lacking = {"funcgraph-retval", "funcgraph-retaddr"}
    return {name: case for name, case in CASES.items()
            if not version().endswith("-own") or lacking & set(case.get("options", ()))}


def main():
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True, exist_ok=True)
    test = of_a_guest("function-fixtures")
    for name, case in cases().items():
        test.case(name, lambda test, name=name, case=case: record(test, name, out, **case))
    test.end()


if __name__ == "__main__":
    main()
