#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Marks of programs that link libtraced, recorded with the kernel's events: each field of every call
in the JSON, and their order."""

import json
import pathlib
import re
import socket
import subprocess

from harness import INSTANCES, Test, check, interrupt
from perfetto_decode import Decoder, packets_of

ANY = object()
INT64_MIN = -(1 << 63)


def record_example(test, *arguments, to="x.traced"):
    example = test.build / "libtraced" / "marks_example"
    env = test.environment(TRACED_MARKS=str(test.daemon.socket.parent))
    result = test.run("record", "--name", test.name, "-o", to, "-e", "sched", *arguments, "--", example, env=env)
    check(result.status == 0, f"{result}")
    said = re.search(r"recorded: (\w+), thread clock: (\w+), instructions: (\w+), dropped: (\d+)",
                     result.out)
    check(said and said[1] == "yes" and said[4] == "0", f"{result}")
    return said[2] == "yes", said[3] == "yes"


def convert(test, to, *arguments):
    result = test.run("convert", "x.traced", to, *arguments)
    check(result.status == 0 and "warning" not in result.err, f"{result}")
    return test.dir / to


def event(ph, name=None, args=None, cat="example", **more):
    e = dict(ph=ph, cat=cat, **more)
    if name:
        e["name"] = name
    if args is not None:
        e["args"] = args
    return e


def meta(name, key, value):
    return event("M", name, {key: value}, cat="__metadata")


WORK = ["main", "work"]
ADDRESSES = ["0x401000", "0x402000"]


def wanted_of_main(clocked, counted):
    """The marks of libtraced/example.c, by thread; stacks by the names of their frames."""
    thread_clock = ({"tts": ANY} if clocked else {}) | ({"ticount": ANY} if counted else {})
    hexed, scoped = "0x100", {"id": "0x100", "scope": "example scope"}
    return [
        meta("process_name", "name", "example"),
        meta("process_labels", "labels", "shows everything"),
        meta("process_sort_index", "sort_index", -5),
        meta("thread_name", "name", "main thread"),
        event("B", "scope", {"int": -42, "uint": (1 << 64) - 1, "double": 0.25, "bool": True,
                             "string": 'a "quoted" \u00e4 \ufffd byte\n', "pointer": "0xdeadbeef",
                             "json": {"list": [1, 2.5, None], "deep": {"yes": True}}}),
        event("B", "begin", {"first": 1}, cat="example,more"),
        event("E", "begin", {"first": 4, "second": 2}, cat="example,more"),
        event("X", "complete", {"why": "to save half"}, dur=ANY),
        event("X", "described", dur=ANY, cname="good", sf=WORK, esf=ADDRESSES),
        event("E", "scope"),
        event("i", "thread instant", s="t"),
        event("i", "process instant", s="p"),
        event("i", "global instant", s="g"),
        event("i", "late", {"named 1": INT64_MIN, "bytes": "no\0end", "null": None}, s="p"),
        event("R", "mark", {"n": 1}),
        event("P", "sample", sf=WORK),
        event("C", "cats", {"cats": 7}),
        event("C", "pets", {"cats": 7, "dogs": 2.5}),
        event("C", "odd", {"good": 1.5}),
        event("C", "queue", {"length": 12}, id="0x3"),
        event("b", "request", {"url": "/"}, id=hexed),
        event("b", "headers", id=hexed),
        event("n", "cache", id=hexed),
        event("e", "headers", {"code": 200}, id=hexed),
        event("e", "request", id=hexed),
        event("b", "scoped", **scoped),
        event("e", "scoped", **scoped),
        event("b", "local", id2={"local": "0x200"}),
        event("e", "local", id2={"local": "0x200"}),
        event("b", "global", id2={"global": "0x300"}),
        event("=", "link", {"linked_id": "0x301"}, id2={"global": "0x300"}),
        event("e", "global", id2={"global": "0x301"}),
        event("B", "give"),
        event("s", "flow", id="0x400"),
        event("s", "next", id="0x401"),
        event("E", "give"),
        event("N", "Object", id="0x1000"),
        event("O", "Object", {"snapshot": {"size": 1, "self": {"id_ref": "0x1000"}}}, id="0x1000"),
        event("O", "Special", {"snapshot": {"base_type": "Object", "size": 2}}, id="0x1000"),
        event("O", "Object", {"snapshot": {"cat": "other"}}, id2={"local": "by name"}),
        event("(", "Object", id="0x1000"),
        event("i", "in context", s="t"),
        event(")", "Object", id="0x1000"),
        event("D", "Object", id="0x1000"),
        event("V", "dump", {"dumps": {"level_of_detail": "light"}}, id="0x500"),
        event("v", "dump", {"dumps": {"process_totals": {"resident_set_bytes": "1f4000"}}},
              id="0x500"),
        event("B", "counted", **thread_clock),
        event("E", "counted", **thread_clock),
    ]


WANTED_OF_CONSUMER = [
    meta("thread_name", "name", "consumer"),
    meta("thread_sort_index", "sort_index", 2),
    event("B", "step"),
    event("t", "flow", id="0x400"),
    event("E", "step"),
    event("B", "take"),
    event("f", "flow", id="0x400", bp="e"),
    event("E", "take"),
    event("f", "next", id="0x401"),
    event("B", "after"),
    event("E", "after"),
]


def stack_of(frames, frame):
    names = []
    while frame is not None:
        names.insert(0, frames[frame]["name"])
        frame = frames[frame].get("parent")
    return names


def compare(events, wanted, frames):
    # Metadata has no time, and its place does not matter.
    for e, w in zip(events, wanted):
        have = {k: v for k, v in e.items() if k not in ("pid", "tid", "ts")}
        for key in ("sf", "esf"):
            if key in have:
                have[key] = stack_of(frames, have[key])
        known = {k: have.get(k) if v is ANY else v for k, v in w.items()}
        check(have == known and None not in have.values(), f"{e} is not {w}")
        check(("ts" in e) == (e["ph"] != "M"), f"{e}")
    check(len(events) == len(wanted), f"{len(events)} events, not {len(wanted)}")


def of_example(trace):
    """The marks by thread, the main one first, without names that the recorder gives."""
    events = trace["traceEvents"]
    pid = next(e["pid"] for e in events if e.get("name") == "scope")
    consumer = next(e["tid"] for e in events if e.get("name") == "take")
    given = next(i for i, e in enumerate(events) if e.get("name") == "process_labels") - 1
    mine = [e for e in events[given:] if e["pid"] == pid]
    named = {"pid": pid, "tid": consumer, "cat": "__metadata"}
    return (pid, consumer, [e for e in mine if e["tid"] == pid],
            [e for e in mine if e["tid"] == consumer and
             e != named | {"name": "thread_name", "ph": "M", "args": {"name": "marks_example"}}])


def times_of(text, events):
    """Seconds of the lines with one of these events."""
    return [float(t) for t in re.findall(rf"\s(\d+\.\d+): (?:{events})", text)]


def every_call_is_in_the_json(test, *arguments):
    """From a capture, or with --stream from a JSON written during the recording."""
    clocked, counted = record_example(test, *arguments, to="x.json" if arguments else "x.traced")
    trace = json.loads((test.dir / "x.json" if arguments else convert(test, "x.json")).read_text())
    pid, consumer, main, other = of_example(trace)
    check(pid != consumer, "one thread")
    compare(main, wanted_of_main(clocked, counted), trace["stackFrames"])
    compare(other, WANTED_OF_CONSUMER, trace["stackFrames"])

    # A mark with an earlier time is in the place of that time.
    times = {e.get("name"): e["ts"] for e in main if "ts" in e}
    check(times["late"] <= times["thread instant"], "late")
    x = next(e for e in main if e.get("name") == "complete")
    scope = next(e for e in main if e.get("name") == "scope")
    # On a busy machine a millisecond may become seconds.
    check(scope["ts"] <= x["ts"] and 1000 <= x["dur"] < 6e7, f"{x}")
    syncs = {s["sync_id"]: s for s in trace["otherData"]["clock_syncs"]}
    check(set(syncs) == {"example-received", "example-issued"}, f"{syncs}")
    issued = syncs["example-issued"]
    check("issue_ts_ns" not in syncs["example-received"] and
          issued["issue_ts_ns"] <= issued["ts_ns"] < issued["issue_ts_ns"] + 60 * 10**9, f"{issued}")
    marks = trace["otherData"]["marks"]
    check(marks["rings"] == 2 and marks["lost"] == 0 and marks["marks"] >= 58, f"{marks}")

    # The thread ran when it marked: the kernel's text is on the same clock. Some kernels (6.18 in this
    # project's guests) don't report each switch, but its birth and its end frame it, too.
    text = trace["systemTraceEvents"]
    began = times_of(text, rf"sched_wakeup_new: .* pid={consumer} |sched_switch: .* next_pid={consumer} ")
    ended = times_of(text, rf"sched_switch: .* prev_pid={consumer} |sched_process_exit: .* pid={consumer} ")
    took = next(e["ts"] for e in other if e.get("name") == "take") / 1e6
    check(began and ended and min(began) < took < max(ended), f"{began} {took} {ended}")


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class Track:
    """A described track: its path from the top."""

    def __init__(self, descriptor, tracks):
        self.descriptor = descriptor
        self.parent = tracks[descriptor.parent_uuid] if descriptor.parent_uuid else None

    def path(self):
        d = self.descriptor
        own = (f"process {d.process.pid}" if d.HasField("process") else
               f"thread {d.thread.tid}" if d.HasField("thread") else d.name)
        return (self.parent.path() if self.parent else ()) + (own,)


def annotation(names, a):
    for field in ("bool_value", "uint_value", "int_value", "double_value", "string_value"):
        if a.HasField(field):
            return getattr(a, field)
    if a.HasField("pointer_value"):
        return hex(a.pointer_value)
    if a.dict_entries:
        return annotations(names, a.dict_entries)
    return [annotation(names, v) for v in a.array_values]


def annotations(names, entries):
    return {names[a.name_iid] if a.name_iid else a.name: annotation(names, a) for a in entries}


class Marks:
    """All TrackEvents of a trace, with interned and described data resolved."""

    def __init__(self, packets):
        self.tracks, self.events, self.described = {}, [], []
        categories, names, keys = {}, {}, {}
        for p in packets:
            for table, new in ((categories, p.interned_data.event_categories),
                               (names, p.interned_data.event_names),
                               (keys, p.interned_data.debug_annotation_names)):
                for i in new:
                    check(i.iid and i.iid not in table, "interned twice")
                    table[i.iid] = (i.str if isinstance(i.str, str) else i.str.decode())
            if p.HasField("track_descriptor"):
                self.described.append(p.track_descriptor.uuid)
                self.tracks[p.track_descriptor.uuid] = Track(p.track_descriptor, self.tracks)
            if not p.HasField("track_event"):
                continue
            e = p.track_event
            check(p.sequence_flags == 2 and p.trusted_packet_sequence_id == 1, f"{p}")
            event = {
                "path": self.tracks[e.track_uuid].path(),
                "type": e.type,
                "name": names[e.name_iid] if e.name_iid else e.name,
                "cats": [categories[i] for i in e.category_iids] + list(e.categories),
                "args": annotations(keys, e.debug_annotations),
                "stack": [f.function_name for f in e.callstack.frames],
                "flows": list(e.flow_ids), "ends": list(e.terminating_flow_ids),
                "counts": [self.tracks[u].descriptor.name for u in e.extra_counter_track_uuids],
                "value": (e.counter_value if e.HasField("counter_value") else
                          e.double_counter_value if e.HasField("double_counter_value") else None),
                "ts": p.timestamp,
            }
            self.events.append(event)


def wanted_in_perfetto(pid, tid, clocked, counted):
    """(track, type, name, and further fields) of libtraced/example.c, in order of writing."""
    process = (f"process {pid}",)
    main, other = process + (f"thread {pid}",), process + (f"thread {tid}",)
    counts = {"counts": ["thread time"] * clocked + ["thread instructions"] * counted}
    shared = ("Applications",)
    object_track = process + ("Object 0x1000",)
    return [
        (main, BEGIN, "scope", {"args": {
            "int": -42, "uint": (1 << 64) - 1, "double": 0.25, "bool": True,
            "string": 'a "quoted" \u00e4 \ufffd byte\n', "pointer": "0xdeadbeef",
            "json": {"list": [1, 2.5, "null"], "deep": {"yes": True}}}}),
        (main, BEGIN, "begin", {"args": {"first": 1}, "cats": ["example", "more"]}),
        (main, END, "", {"args": {"first": 4, "second": 2}, "cats": ["example", "more"]}),
        (main, BEGIN, "complete", {"args": {"why": "to save half"}}),
        (main, END, "", {"cats": []}),
        (main, BEGIN, "described", {"args": {"cname": "good"}, "stack": WORK}),
        (main, END, "", {"cats": [], "stack": ADDRESSES}),
        (main, END, "", {}),
        (main, INSTANT, "thread instant", {}),
        (process, INSTANT, "process instant", {}),
        (shared + ("instants",), INSTANT, "global instant", {}),
        (process, INSTANT, "late", {"args": {"named 1": INT64_MIN, "bytes": "no\0end",
                                             "null": "null"}}),
        (main, INSTANT, "mark", {"args": {"n": 1}}),
        (main, INSTANT, "sample", {"stack": WORK}),
        (process + ("cats",), COUNTER, "", {"value": 7}),
        (process + ("pets cats",), COUNTER, "", {"value": 7}),
        (process + ("pets dogs",), COUNTER, "", {"value": 2.5}),
        (process + ("odd good",), COUNTER, "", {"value": 1.5}),
        (process + ("queue 0x3 length",), COUNTER, "", {"value": 12}),
        (process + ("request",), BEGIN, "request", {"args": {"url": "/"}}),
        (process + ("request",), BEGIN, "headers", {}),
        (process + ("request",), INSTANT, "cache", {}),
        (process + ("request",), END, "headers", {"args": {"code": 200}}),
        (process + ("request",), END, "request", {}),
        (process + ("scoped",), BEGIN, "scoped", {}),
        (process + ("scoped",), END, "scoped", {}),
        (process + ("local",), BEGIN, "local", {}),
        (process + ("local",), END, "local", {}),
        (shared + ("operations", "global"), BEGIN, "global", {}),
        (shared + ("operations", "global"), END, "global", {}),
        (main, BEGIN, "give", {}),
        (main, INSTANT, "flow", {"flows": 1}),
        (main, INSTANT, "next", {"flows": 1}),
        (main, END, "", {}),
        (other, BEGIN, "step", {}),
        (other, INSTANT, "flow", {"flows": 1}),
        (other, END, "", {}),
        (other, BEGIN, "take", {}),
        (other, INSTANT, "flow", {"ends": 1}),
        (other, END, "", {}),
        (other, BEGIN, "after", {"ends": 1}),
        (other, END, "", {}),
        (object_track, BEGIN, "Object", {}),
        (object_track, INSTANT, "Object",
         {"args": {"snapshot": {"size": 1, "self": {"id_ref": "0x1000"}}}}),
        (object_track, INSTANT, "Special",
         {"args": {"snapshot": {"base_type": "Object", "size": 2}}}),
        (process + ("Object by name",), INSTANT, "Object", {"args": {"snapshot": {"cat": "other"}}}),
        (main + ("contexts",), BEGIN, "Object", {"args": {"id": "0x1000"}}),
        (main, INSTANT, "in context", {}),
        (main + ("contexts",), END, "Object", {"args": {"id": "0x1000"}}),
        (object_track, END, "Object", {}),
        (shared + ("memory",), INSTANT, "dump", {"args": {"dumps": {"level_of_detail": "light"}}}),
        (process, INSTANT, "dump",
         {"args": {"dumps": {"process_totals": {"resident_set_bytes": "1f4000"}}}}),
        (main, BEGIN, "counted", counts),
        (main, END, "", counts),
    ]


def compare_in_perfetto(marks, wanted):
    # Track by track: marks that threads made at the same time may have any order.
    events = sorted(marks.events, key=lambda e: e["path"])
    for e, (path, kind, name, said) in zip(events, sorted(wanted, key=lambda w: w[0])):
        have = dict(e, flows=len(e["flows"]), ends=len(e["ends"]))
        del have["ts"]
        known = {"path": path, "type": kind, "name": name, "cats": ["example"], "args": {},
                 "stack": [], "flows": 0, "ends": 0, "counts": [], "value": None} | said
        check(have == known, f"{have} is not {known}")
    check(len(marks.events) == len(wanted), f"{len(marks.events)} events, not {len(wanted)}")


def every_call_is_in_perfetto(test, *arguments):
    clocked, counted = record_example(test)
    pid, consumer, json_main, _ = of_example(json.loads(convert(test, "x.json").read_text()))
    trace = Decoder(test.dir, test.source).parse(
        packets_of(convert(test, "x.pftrace", *arguments).read_bytes()))
    marks = Marks(trace.packet)
    compare_in_perfetto(marks, wanted_in_perfetto(pid, consumer, clocked, counted))

    check(len(marks.described) == len(set(marks.described)), "a track was described twice")
    process = next(t.descriptor for t in marks.tracks.values() if t.path() == (f"process {pid}",))
    check(process.process.process_name == "example" and process.sibling_order_rank == -5 and
          list(process.process.process_labels) == ["shows everything"], f"{process}")
    thread = next(t.descriptor for t in marks.tracks.values() if t.descriptor.thread.tid == consumer)
    check(thread.thread.thread_name == "consumer" and thread.sibling_order_rank == 2, f"{thread}")
    root = marks.tracks[0].descriptor
    check(root.process_ordering == 1 and root.thread_ordering == 1, f"{root}")
    shared = next(t.descriptor for t in marks.tracks.values() if t.path() == ("Applications",))
    check(shared.child_ordering == 1, f"{shared}")

    # One flow from "give" by "step" to "take", the other to "after".
    flow = [(e["flows"] + e["ends"])[0] for e in marks.events if e["name"] == "flow"]
    following = [(e["flows"] + e["ends"])[0] for e in marks.events if e["name"] in ("next", "after")]
    check(len(flow) == 3 and len(set(flow)) == 1, f"{flow}")
    check(len(following) == 2 and len(set(following)) == 1 and following[0] != flow[0], f"{following}")

    # The same times as in the JSON, to the nanosecond.
    times = {e["name"]: e["ts"] for e in marks.events}
    for e in json_main:
        if e["ph"] in "BiRPX" and e["name"] in times:
            check(times[e["name"]] == round(e["ts"] * 1000), f"{e}: {times[e['name']]}")


def every_call_is_followed(test):
    clocked, counted = record_example(test, "--stream", to="x.pftrace")
    marks = Marks(Decoder(test.dir, test.source).decode(test.dir / "x.pftrace").packet)
    threads = {e["path"][1]: int(e["path"][1].split()[1]) for e in marks.events
               if len(e["path"]) == 2 and e["path"][1].startswith("thread ")}
    pid = int(next(e["path"][0] for e in marks.events if e["name"] == "scope").split()[1])
    consumer = next(t for t in threads.values() if t != pid)
    compare_in_perfetto(marks, wanted_in_perfetto(pid, consumer, clocked, counted))


def a_text_says_that_marks_are_missing(test):
    for how in ((), ("--stream",)):
        record_example(test, *how, to="x.txt" if how else "x.traced")
        result = test.run("convert", "x.traced", "x.txt")
        check(result.status == 0 and "no place for applications' marks" in result.err, f"{result}")


def send_garbage(test):
    """As a program that speaks another protocol."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(test.daemon.socket.parent / "marks.sock"))
        s.send(b"garbage" * 8)
        check(s.recv(1) == b"", "the daemon still serves the sender of garbage")


def a_refused_program_is_reported(test):
    """The recording is whole, except for the refused client's marks."""
    # The exit status is 3 only with --fail-on-loss, as with events that are lost.
    for options, status in (((), 0), (("--fail-on-loss",), 3)):
        process = test.start("record", "--name", test.name, "-o", "x.json", "-e", "sched", *options)
        test.wait_for_recording(test.name)
        send_garbage(test)
        interrupt(process)
        result = test.finish(process)
        check(result.status == status and "marks of 1 program or thread are missing" in result.err, f"{result}")
    # A report keeps it, for those that are added up.
    test.run("record", "--name", test.name, "-q", "-t", "100ms", "-e", "sched", "-o", "whole.traced")
    process = test.start("record", "--name", test.name, "-o", "x.traced", "-e", "sched")
    test.wait_for_recording(test.name)
    send_garbage(test)
    interrupt(process)
    check(test.finish(process).status == 0, "no recording")
    for name in "x", "whole":
        (test.dir / f"{name}.json").write_text(test.run("report", "sched", "--json", f"{name}.traced").out)
    for files, missing in ((["x.json"], True), (["whole.json", "x.json"], True), (["whole.json"], False)):
        for options, status in (([], 0), (["--fail-on-loss"], 3 * missing)):
            result = test.run("report", *options, "--merge", *files)
            check(result.status == status and ("marks of applications were lost" in result.err) == missing, f"{result}")


PERFETTO_TYPES = {"B": BEGIN, "E": END, "i": INSTANT, "I": INSTANT, "R": INSTANT, "P": INSTANT,
                  "b": BEGIN, "S": BEGIN, "e": END, "F": END, "n": INSTANT, "T": INSTANT, "p": INSTANT,
                  "s": INSTANT, "t": INSTANT, "N": BEGIN, "O": INSTANT, "D": END, "(": BEGIN, ")": END,
                  "V": INSTANT, "v": INSTANT}


def wanted_of_phases(phases):
    """(time, type, name) of each event of a file, as it should become."""
    for e in phases["traceEvents"]:
        ts, ph = round(float(e["ts"]) * 1000) if "ts" in e else 0, e["ph"]
        if ph in PERFETTO_TYPES:
            # The end of a thread's slice has no name: it ends what is open.
            yield ts, PERFETTO_TYPES[ph], "" if ph == "E" else e["name"]
        elif ph == "X":
            yield ts, BEGIN, e["name"]
            yield ts + round(e["dur"] * 1000), END, ""
        elif ph == "C":
            for v in e["args"].values():
                if isinstance(v, (int, float)) and not isinstance(v, bool):
                    yield ts, COUNTER, ""
        elif ph == "f":
            if e.get("bp") == "e":
                yield ts, INSTANT, e["name"]
        else:
            check(ph in "Mc=", f"{ph}: what becomes of it?")
    for s in phases.get("samples", []):
        if "cpu" in s:
            continue  # a PerfSample
        yield round(s["ts"] * 1000), INSTANT, s["name"]


def every_phase_is_in_perfetto(test):
    """A merged file: the table of the format, line by line."""
    result = test.run("record", "--name", test.name, "-t", "10ms", "-e", "sched", "-o", "x.traced")
    check(result.status == 0, f"{result}")
    file = test.source / "tests" / "data" / "marks" / "phases.json"
    result = test.run("convert", "x.traced", "x.pftrace", "--merge", file, "--merge-clock", "boottime")
    check(result.status == 0 and "left out" not in result.err, f"{result}")
    phases = json.loads(file.read_text())
    packets = Decoder(test.dir, test.source).decode(test.dir / "x.pftrace").packet
    marks = Marks(packets)
    samples = sorted(p.timestamp for p in packets if p.HasField("perf_sample"))
    wanted = sorted(round(s["ts"] * 1000) for s in phases["samples"] if "cpu" in s)
    check(samples == wanted and wanted, f"samples: {samples}, not {wanted}")
    have = sorted((e["ts"], e["type"], e["name"]) for e in marks.events)
    wanted = sorted(wanted_of_phases(phases))
    check(have == wanted, f"only in the trace: {sorted(set(have) - set(wanted))}, "
          f"only in the file: {sorted(set(wanted) - set(have))}")
    flows = [e for e in marks.events if e["flows"] or e["ends"]]
    check(len(flows) == sum(e["ph"] in "stf" for e in phases["traceEvents"]), f"{flows}")


# Numbers of clock_gettime(2), and the one for x86's counter (traced/mark_record.h).
CLOCKS = {"realtime": 0, "monotonic": 1, "monotonic_raw": 4, "boottime": 7, "tai": 11, "tsc": 256}
PAIRS = 10000


def marks_and_events_are_in_order(test):
    """A mark right after a kernel's event is always after it, and before the next one."""
    program = test.build / "tests" / "integration" / "marks_order"
    clocks = dict(CLOCKS)
    if "constant_tsc" not in pathlib.Path("/proc/cpuinfo").read_text():
        del clocks["tsc"]
    process = test.start("record", "--name", test.name, "-o", "x.traced", "-b", "16M", "-e",
                         "sched:sched_process_exec")
    made = {}
    try:
        test.wait_for_recording(test.name)
        instance = next(i for i in test.instances() if not i.endswith("-tasks"))
        for name, number in clocks.items():
            writer = subprocess.Popen([program, test.daemon.socket.parent,
                                       INSTANCES / instance / "trace_marker", str(number), str(PAIRS)],
                                      stdout=subprocess.PIPE)
            made[name] = (writer, int(writer.stdout.readline() or 0))
            check(made[name][1], f"{name}: nothing was marked")
    finally:
        # They keep the instance's trace_marker open, so that it can't be removed.
        for writer, _ in made.values():
            writer.kill()
            writer.communicate()
        interrupt(process)
        result = test.finish(process)
    check(result.status == 0, f"{result}")
    test.check_no_instances()
    trace = Decoder(test.dir, test.source).decode(convert(test, "x.pftrace"))
    marks = {name: [] for name in clocks}
    lines = {name: {} for name in clocks}
    tids = {f"thread {pid}": name for name, (_, pid) in made.items()}
    for e in Marks(trace.packet).events:
        name = tids[e["path"][-1]]
        check(e["name"] == f"m{len(marks[name]):07}", f"{e} is not number {len(marks[name])}")
        marks[name].append(e["ts"])
    for p in trace.packet:
        for e in p.ftrace_events.event:
            m = re.fullmatch(r"C\|\d+\|order(\d+)\|(\d+)\n?", e.print.buf)
            if m:
                lines[next(n for n, i in clocks.items() if i == int(m[1]))][int(m[2])] = e.timestamp
    for name in clocks:
        check(len(marks[name]) == len(lines[name]) == PAIRS,
              f"{name}: {len(marks[name])} marks and {len(lines[name])} lines")
        # Bundles are per CPU: the numbers give the order of writing.
        events = [lines[name][i] for i in range(PAIRS)]
        wrong = sum(not before < mark for before, mark in zip(events, marks[name]))
        wrong += sum(not mark < after for mark, after in zip(marks[name], events[1:]))
        least = min(mark - before for before, mark in zip(events, marks[name]))
        check(wrong == 0, f"{name}: {wrong} of {2 * PAIRS - 1} are in the wrong order, by {-least} ns")


def main():
    test = Test("marks")
    test.case("every call is in the JSON", every_call_is_in_the_json, daemon=True)
    test.case("every call is in the JSON of --stream", every_call_is_in_the_json, "--stream",
              daemon=True)
    test.case("every call is in the Perfetto trace of --stream", every_call_is_followed, daemon=True)
    test.case("a text says that marks are missing", a_text_says_that_marks_are_missing, daemon=True)
    test.case("a refused program is reported", a_refused_program_is_reported, daemon=True)
    test.case("every phase is in the Perfetto trace", every_phase_is_in_perfetto, daemon=True)
    test.case("marks and the kernel's events are in order", marks_and_events_are_in_order, daemon=True)
    for how in ("none", "deflate"):
        test.case(f"every call is in the Perfetto trace (--compress={how})",
                  every_call_is_in_perfetto, f"--compress={how}", daemon=True)
    test.end()


if __name__ == "__main__":
    main()
