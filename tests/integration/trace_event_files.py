#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captures of tests/data as JSON, alone and with merged files, by the rules of its readers."""

import copy
import gzip
import json
import subprocess

from harness import Test, check
from trace_event_rules import STRING_MAX, check_file, is_ours, parse, problems

FORMS = ((), ("--json-array",), ("--function-view=slices",))


def unpack(test, path):
    out = test.dir / f"{path.parent.name}-{path.name.removesuffix('.gz')}"
    out.write_bytes(gzip.decompress(path.read_bytes()))
    return out


def convert(test, source, *options, out="x.json"):
    result = test.run("convert", "-q", source, out, *options, timeout=120)
    check(result.status in (0, 3), f"{source.name} {options}: {result}")
    data = (test.dir / out).read_bytes()
    check(is_ours(data), f"{source.name} {options}: begins with {data[:80]} and ends with {data[-20:]}")
    found = check_file(test.dir / out)
    check(not found, f"{source.name} {options}: {len(found)} problems: {found[:5]}")
    return parse(data)


def recorded_captures(test):
    captures = sorted((test.source / "tests/data").glob("*/*.traced.gz"))
    check(len(captures) > 20, f"{captures}")
    for path in captures:
        capture = unpack(test, path)
        for form in FORMS:
            convert(test, capture, *form)


def mixed(test):
    return unpack(test, test.source / "tests/data/6.1.176/mixed.traced.gz")


def merged_files(test):
    capture, marks = mixed(test), test.source / "tests/data/marks"
    files = [marks / "phases.json", *sorted((marks / "examples").iterdir())]
    check(len(files) > 16, f"{files}")
    for file in files:
        convert(test, capture, "--merge", file, "--merge-clock", "boottime")


def stacks_of(trace):
    """The names of each sample's frames, by its time."""
    frames = trace["stackFrames"]

    def stack(name):
        return [] if name is None else [*stack(frames[name].get("parent")), frames[name]["name"]]
    return sorted((s["ts"], stack(s["sf"])) for s in trace["samples"])


def earlier_exports(test):
    """Merged with two of its own exports, all samples keep their stacks."""
    capture = mixed(test)
    events = [{"name": "raw", "ph": "i", "ts": 1, "pid": 1, "tid": 1, "stack": ["a", f"b{i}"]} for i in range(5)]
    frames = {f"stack{i}": {"name": f"own {i}", **({"parent": f"stack{i - 1}"} if i else {})} for i in range(9)}
    samples = [{"tid": 1, "ts": i, "name": "x", "weight": 1, "sf": f"stack{i}"} for i in range(9)]
    app = {"traceEvents": events, "stackFrames": frames, "samples": samples}
    (test.dir / "app.json").write_text(json.dumps(app))
    clock = ("--merge-clock", "boottime")
    first = convert(test, capture, "--merge", "app.json", *clock, out="first.json")
    check([s for _, s in stacks_of(first)] == [s for _, s in stacks_of(app)], f"{first['stackFrames']}")
    again = convert(test, capture, "--merge", "app.json", *clock, "--merge", "first.json", *clock)
    check(len(again["samples"]) == 18, f"{again['samples']}")
    check(stacks_of(again) == sorted(2 * stacks_of(app)), f"{again['stackFrames']}")


def segments(test, capture, name, limit, *merged):
    """Exports with a lower limit than that of viewers. Returns the files."""
    done = subprocess.run([test.build / "tests/unit/export_limited", capture, name, "json", str(limit), "1", *merged],
                          cwd=test.dir, stdout=subprocess.PIPE, timeout=120, check=True)
    files = [test.dir / f"{name}.{i + 1}" for i in range(int(done.stdout))]
    return [file.rename(file.with_name(file.name + ".json")) for file in files]


def lines_of(trace):
    return [line for line in trace["systemTraceEvents"].splitlines() if not line.startswith("#")]


def own_events(trace):
    return [e for e in trace["traceEvents"] if e["ph"] != "M"]


def each_segment_opens_alone(test):
    """Together they have what one JSON has."""
    for path in sorted((test.source / "tests/data").glob("*/*.traced.gz")):
        capture = unpack(test, path)
        whole = convert(test, capture)
        size = (test.dir / "x.json").stat().st_size
        files = segments(test, capture, "limited", max(size // 3, 30000))
        check(len(files) > 1 or size < 100000, f"{path}: {size} bytes in {files}")
        traces = []
        for file in files:
            found = check_file(file)
            check(not found, f"{path} {file.name}: {len(found)} problems: {found[:5]}")
            traces.append(json.loads(file.read_text()))
        check(sum((lines_of(t) for t in traces), []) == lines_of(whole), f"{path}: other lines")
        for key in ("events", "lost"):
            counts = [t["otherData"][key] for t in traces]
            check(sum(counts) == whole["otherData"][key], f"{path} {key}: {counts} of {whole['otherData'][key]}")


def marks_of_segments(test):
    """A slice that is open where a segment ends begins again in the next one."""
    capture = mixed(test)
    times = [float(line.split(": ")[0].split()[-1]) * 1e6 for line in lines_of(convert(test, capture))]
    first, span = times[0], times[-1] - times[0]

    def mark(ph, name, share, tid, **more):
        return {"name": name, "ph": ph, "cat": "c", "pid": 9, "tid": tid, "ts": first + span * share, **more}
    events = [mark("X", "x", i / 2000, 1, dur=1) for i in range(2000)]
    events += [mark("B", f"outer {i}", i / 100, 2) for i in range(40)]
    events += [mark("E", f"outer {39 - i}", 0.6 + i / 100, 2) for i in range(40)]
    events += [mark(ph, "short", (i + (ph == "E") * 0.9) / 50, 3) for i in range(50) for ph in "BE"]
    frames = {str(i): {"name": f"f{i}", "category": "", **({"parent": str(i - 1)} if i else {})} for i in range(9)}
    samples = [{"tid": 1, "ts": first + i, "name": "s", "weight": 1, "sf": str(i % 9)} for i in range(2000)]
    (test.dir / "app.json").write_text(json.dumps({"traceEvents": events, "stackFrames": frames, "samples": samples}))
    count, samples_count, begun = 0, 0, 0
    files = segments(test, capture, "limited", 60000, "app.json")
    check(len(files) > 5, f"{files}")
    for file in files:
        found = check_file(file)
        check(not found, f"{file.name}: {len(found)} problems: {found[:5]}")
        trace = json.loads(file.read_text())
        own = [e for e in own_events(trace) if e["pid"] == 9]
        count += sum(e["ph"] in "XE" for e in own)
        begun += sum(e["ph"] == "B" for e in own)
        samples_count += len(trace.get("samples", []))
    check(count == 2000 + 40 + 50 and samples_count == 2000, f"{count} {samples_count}")
    check(begun > 40 + 50, f"{begun}: nothing begins again")


def ends_with_other_names(test):
    """A merged file's E ends the innermost B of its thread, whatever name and category it has."""
    capture = mixed(test)
    start = float(lines_of(convert(test, capture))[0].split(": ")[0].split()[-1]) * 1e6
    events = [{"name": name, "ph": ph, "cat": cat, "pid": 9, "tid": 9, "ts": start + i}
              for i, (ph, name, cat) in enumerate((("B", "outer", "c"), ("B", "inner", "c"), ("E", "outer", "c"),
                                                   ("E", "inner", "other")))]
    (test.dir / "app.json").write_text(json.dumps(events))
    trace = convert(test, capture, "--merge", "app.json", "--merge-clock", "boottime")
    own = [(e["ph"], e["name"]) for e in own_events(trace) if e["pid"] == 9]
    check(own == [("B", "outer"), ("B", "inner"), ("E", "inner"), ("E", "outer")], f"{own}")


def beyond_what_a_viewer_opens(test):
    subprocess.run([test.build / "tests/unit/generate", "sched", "3600000", test.dir / "x.traced"], check=True)
    (test.dir / "out.0002.json").write_text("{}")
    result = test.run("convert", "x.traced", "out.json", timeout=300)
    check(result.status == 0, f"{result}")
    check("out.json goes on in out.0003.json: " in result.err, f"{result.err}")
    check((test.dir / "out.0002.json").read_text() == "{}", "another file is replaced")
    for name in ("out.json", "out.0003.json"):
        path = test.dir / name
        check(1 << 20 < path.stat().st_size <= STRING_MAX, f"{name}: {path.stat()}")
        with path.open("rb") as f:
            check(f.read(31) == b'{"systemTraceEvents":"# tracer:', name)
            f.seek(-2, 2)
            check(f.read() == b"}\n", f"{name} does not end")
    found = check_file(test.dir / "out.0003.json")
    check(not found, f"{len(found)} problems: {found[:5]}")
    result = test.run("convert", "x.traced", "/dev/null", "--format", "json", timeout=300)
    check(result.status == 1 and "a viewer can open" in result.err, f"{result}")


GOOD = {
    "systemTraceEvents": "# tracer: nop\n   a-b-7     [000] d..2.     1.000001: sched_switch: x\n"
                         "     <idle>-0     [001] .....     1.000002: tracing_mark_write: "
                         "trace_event_clock_sync: name=one\n# CPU:1 [LOST 5 EVENTS]\n",
    "stackFrames": {"1": {"name": "main", "category": ""}, "2": {"name": "f", "category": "", "parent": "1"}},
    "samples": [{"tid": 7, "ts": 1, "name": "cycles", "sf": "2", "weight": 1}],
    "displayTimeUnit": "ns",
    "powerTraceAsString": "# BattOr\n0.0 1.0 1.0 <one>\n",
    "traceEvents": [
        {"name": "process_name", "ph": "M", "cat": "x", "pid": 7, "tid": 7, "args": {"name": "a"}},
        {"name": "process_labels", "ph": "M", "cat": "x", "pid": 7, "tid": 7, "args": {"labels": "a"}},
        {"name": "b", "ph": "B", "cat": "x", "pid": 7, "tid": 7, "ts": 1, "sf": "2", "cname": "good"},
        {"name": "b", "ph": "E", "cat": "x", "pid": 7, "tid": 7, "ts": 2},
        {"name": "outer", "ph": "X", "cat": "x", "pid": 7, "tid": 7, "ts": 3, "dur": 2},
        {"name": "inner", "ph": "X", "cat": "x", "pid": 7, "tid": 7, "ts": 3, "dur": 1},
        {"name": "i", "ph": "i", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "s": "p"},
        {"name": "c", "ph": "C", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "args": {"n": 1}},
        {"name": "a", "ph": "b", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id2": {"local": "1"}},
        {"name": "f", "ph": "s", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id": "0x1"},
        {"name": "o", "ph": "O", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id": "1",
         "args": {"snapshot": {"deep": [{"id": "o/1"}]}}},
        {"name": "V8Sample", "ph": "P", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "args": {"data": {"stack": []}}},
        {"name": "d", "ph": "v", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id": "1", "args": {"dumps": {}}},
        {"name": "k", "ph": "(", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id": "1"},
        {"name": "l", "ph": "=", "cat": "x", "pid": 7, "tid": 7, "ts": 4, "id": "0x1", "args": {"linked_id": "0x2"}},
        {"name": "clock_sync", "ph": "c", "cat": "x", "pid": 0, "tid": 0, "ts": 1, "args": {"sync_id": "one"}},
    ],
    "metadata": {},
}
DELETED = object()
# Each fault has the words of the problem, the path to a member, and its new value.
FAULTS = (
    ("no name", ("traceEvents", 3, "name"), DELETED),
    ("ends", ("traceEvents", 3, "name"), "other"),
    ("ends", ("traceEvents", 3, "cat"), "y"),
    ("without a begin", ("traceEvents", 2, "tid"), 8),
    ("runs backwards", ("traceEvents", 3, "ts"), 0.5),
    ("within it", ("traceEvents", 5, "dur"), 3),
    ("no duration", ("traceEvents", 5, "dur"), DELETED),
    ("no time", ("traceEvents", 2, "ts"), DELETED),
    ("no pid", ("traceEvents", 2, "pid"), DELETED),
    ("no category", ("traceEvents", 2, "cat"), DELETED),
    ("unknown frame", ("traceEvents", 2, "sf"), "3"),
    ("unknown colour", ("traceEvents", 2, "cname"), "pink"),
    ("raw stack", ("traceEvents", 2, "stack"), ["0x1"]),
    ("unknown phase", ("traceEvents", 2, "ph"), "Z"),
    ("scope", ("traceEvents", 6, "s"), "x"),
    ("without numbers", ("traceEvents", 7, "args"), {"n": "1"}),
    ("id and id2", ("traceEvents", 8, "id"), "1"),
    ("id2", ("traceEvents", 8, "id2"), "1"),
    ("no id", ("traceEvents", 8, "id2"), DELETED),
    ("a flow with id2", ("traceEvents", 9, "id2"), {"global": "0x1"}),
    ("no number", ("traceEvents", 9, "id"), "one"),
    ("snapshot with an id", ("traceEvents", 10, "args", "snapshot", "id"), "o/1"),
    ("without a name", ("traceEvents", 10, "args", "snapshot", "deep", 0, "id"), 1),
    ("no sample of V8", ("traceEvents", 11, "args"), {}),
    ("without dumps", ("traceEvents", 12, "args"), DELETED),
    ("no id", ("traceEvents", 13, "id"), DELETED),
    ("no linked_id", ("traceEvents", 14, "args", "linked_id"), "two"),
    ("without its text", ("traceEvents", 1, "args", "labels"), ["a"]),
    ("without arguments", ("traceEvents", 0, "args"), {}),
    ("comes twice", ("traceEvents", 14), GOOD["traceEvents"][15]),
    ("not tied", ("traceEvents", 15, "args", "sync_id"), "two"),
    ("tied twice", ("metadata",), {"clock-domain": "LINUX_FTRACE_GLOBAL"}),
    ("unknown caller", ("stackFrames", "2", "parent"), "3"),
    ("calls itself", ("stackFrames", "1", "parent"), "2"),
    ("unknown frame", ("samples", 0, "sf"), "3"),
    ("weight", ("samples", 0, "weight"), DELETED),
    ("displayTimeUnit", ("displayTimeUnit",), "us"),
    ("power trace", ("powerTraceAsString",), "0.0 1.0 1.0 <one>"),
    ("power trace", ("powerTraceAsString",), "# BattOr\n"),
    ("does not begin so", ("systemTraceEvents",), "\n# tracer: nop\n"),
    ("no line of ftrace", ("systemTraceEvents",), "# tracer: nop\n a-7 [000] D..2. 1.000001: x: y\n"),
    ("no line of ftrace", ("systemTraceEvents",), "# tracer: nop\n a-7 [000] d..2. 1.000001: x: \n"),
    ("time runs backwards", ("systemTraceEvents",),
     "# tracer: nop\n a-7 [000] d..2. 1.000001: x: y\n a-7 [000] d..2. 1.000000: x: y\n"),
)


def each_fault_is_found(_):
    check(problems(GOOD) == [], f"{problems(GOOD)}")
    for words, path, value in FAULTS:
        trace = copy.deepcopy(GOOD)
        at = trace
        for key in path[:-1]:
            at = at[key]
        if value is DELETED:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        found = problems(trace)
        check(any(words in problem for problem in found), f"{words}, {path}: {found}")
    for text in (b'{"a":1,"a":2}', b'[NaN]', b'["\xff"]'):
        try:
            parse(text)
        except ValueError:
            continue
        check(False, f"{text} is taken")


def main():
    test = Test("trace-event-files", root=False)
    test.case("each fault is found", each_fault_is_found)
    test.case("recorded captures", recorded_captures)
    test.case("merged files", merged_files)
    test.case("earlier exports", earlier_exports)
    test.case("each segment opens alone", each_segment_opens_alone)
    test.case("marks of segments", marks_of_segments)
    test.case("ends with other names", ends_with_other_names)
    test.case("beyond what a viewer opens", beyond_what_a_viewer_opens)
    test.end()


if __name__ == "__main__":
    main()
