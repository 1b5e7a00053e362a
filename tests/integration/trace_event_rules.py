#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What readers of the JSON need: Catapult's Trace Viewer, trace processor, speedscope, DevTools.

problems(trace) names each place for which one of them would refuse the trace, drop an event, or
show something else. As a program: trace_event_rules.py FILE... (.json, .json.gz)."""

import gzip
import json
import math
import pathlib
import re
import sys

PHASES = set("BEXiCbnestfPNODMVvRc()=")
# Longer strings can't be opened by V8.
STRING_MAX = 536_870_888
LINE = re.compile(r"(?P<comm>.+)-(?P<pid>\d+) +(?:\( *(?:\d+|-+)\) )?\[\d+\] "
                  r"(?:[dX.][Nnp.][Hhs.][0-9a-f.][0-9a-f.]? )? *(?P<time>\d+\.\d{6}(?:\d{3})?): "
                  r"(?P<name>\S+?): (?P<details>.+)")
SYNC = re.compile(r"tracing_mark_write: trace_event_clock_sync: (.*)")
HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
OURS = re.compile(rb'\{"systemTraceEvents":"# tracer:|(\{"traceEvents":)?\[\n\{"name":"process_\w+","ph":"M","cat":"__metadata"')
CNAMES = set("""thread_state_uninterruptible thread_state_iowait thread_state_running thread_state_runnable
    thread_state_sleeping thread_state_unknown background_memory_dump light_memory_dump detailed_memory_dump
    vsync_highlight_color generic_work good bad terrible black grey white yellow olive rail_response
    rail_animation rail_idle rail_load startup heap_dump_stack_frame heap_dump_object_type
    heap_dump_child_node_arrow cq_build_running cq_build_passed cq_build_failed cq_build_abandoned
    cq_build_attempt_runnig cq_build_attempt_passed cq_build_attempt_failed""".split())


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Rules:
    def __init__(self):
        self.found = []
        self.frames = {}
        self.open = {}  # B by thread
        self.last = {}  # time of the last B or E of a thread
        self.complete = {}  # the last X of a thread
        self.syncs = {}  # times of clock_sync events by id
        self.text_syncs = []

    def need(self, condition, text):
        if not condition:
            self.found.append(text)
        return condition

    # stackFrames and samples

    def take_frames(self, frames):
        self.frames = frames
        for name, frame in frames.items():
            self.need(isinstance(frame.get("name"), str), f"frame {name} has no name: {frame}")
            seen, at = set(), name
            while at is not None and at not in seen:
                seen.add(at)
                if not self.need(at in frames, f"frame {name} has the unknown caller {at}"):
                    break
                at = frames[at].get("parent")
            self.need(at is None or at not in seen, f"frame {name} calls itself")

    def take_sample(self, s):
        for key in ("tid", "ts", "weight"):
            self.need(is_number(s.get(key)), f"{key} of {s}")
        self.need(isinstance(s.get("name"), str), f"name of {s}")
        self.need(s.get("sf") in self.frames, f"unknown frame of {s}")

    # traceEvents

    def take_event(self, e):
        ph = e.get("ph")
        if not self.need(ph in PHASES, f"unknown phase of {e}"):
            return
        self.need(isinstance(e.get("name"), str), f"no name: {e}")
        if ph != "M" and not self.need(is_number(e.get("ts")), f"no time: {e}"):
            return
        for key in ("pid", "tid"):
            self.need(isinstance(e.get(key), int), f"no {key}: {e}")
        self.need(isinstance(e.get("cat"), str) or ph == "E", f"no category: {e}")
        self.need("stack" not in e and "estack" not in e, f"a raw stack: {e}")
        for key in ("sf", "esf"):
            self.need(key not in e or e[key] in self.frames, f"unknown frame: {e}")
        self.need(e.get("cname", "good") in CNAMES, f"unknown colour: {e}")
        self.need(isinstance(e.get("args", {}), dict), f"arguments: {e}")
        self.take_id(e)
        rule = {"B": self.take_begin, "E": self.take_end, "X": self.take_complete, "i": self.take_instant,
                "C": self.take_counter, "M": self.take_metadata, "O": self.take_snapshot, "P": self.take_sampled,
                "V": self.take_dump, "v": self.take_dump, "c": self.take_sync, "=": self.take_link}.get(ph)
        if rule:
            rule(e)

    def take_id(self, e):
        ph, ident, id2 = e["ph"], e.get("id"), e.get("id2")
        self.need(ident is None or id2 is None, f"id and id2: {e}")
        if id2 is not None:
            self.need(ph not in "stf", f"a flow with id2: {e}")
            if not self.need(isinstance(id2, dict) and len(id2) == 1 and set(id2) <= {"local", "global"}, f"id2: {e}"):
                return
            ident, = id2.values()
        if ph in "bnestfNOD()=":
            self.need(isinstance(ident, str), f"no id: {e}")
        if ph in "stf=" and isinstance(ident, str):
            self.need(HEX.fullmatch(ident), f"an id that is no number: {e}")

    def thread_of(self, e):
        return e.get("pid"), e.get("tid")

    def take_order(self, e):
        thread = self.thread_of(e)
        self.need(e["ts"] >= self.last.get(thread, e["ts"]), f"time runs backwards on its thread: {e}")
        self.last[thread] = e["ts"]

    def take_begin(self, e):
        self.take_order(e)
        self.open.setdefault(self.thread_of(e), []).append(e)

    def take_end(self, e):
        self.take_order(e)
        stack = self.open.get(self.thread_of(e))
        if self.need(stack, f"an end without a begin: {e}"):
            begin = stack.pop()
            self.need(begin.get("name") == e.get("name"), f"{e} ends {begin}")
            self.need(e.get("cat", begin.get("cat")) == begin.get("cat"), f"{e} ends {begin}")

    def take_complete(self, e):
        thread, last = self.thread_of(e), self.complete.get(self.thread_of(e))
        if not self.need(is_number(e.get("dur")) and e["dur"] >= 0, f"no duration: {e}"):
            return
        self.need(last is None or last["ts"] != e["ts"] or last["dur"] >= e["dur"], f"{e} comes after {last} within it")
        self.complete[thread] = e

    def take_instant(self, e):
        self.need(e.get("s", "t") in ("t", "p", "g"), f"scope: {e}")

    def take_counter(self, e):
        args = e.get("args", {})
        self.need(args and all(is_number(v) for v in args.values()), f"a counter without numbers: {e}")

    def take_metadata(self, e):
        args = e.get("args", {})
        self.need(args, f"metadata without arguments: {e}")
        texts = {"process_name": "name", "thread_name": "name", "process_labels": "labels"}
        if e["name"] in texts:
            self.need(isinstance(args.get(texts[e["name"]]), str), f"metadata without its text: {e}")

    def take_snapshot(self, e):
        snapshot = e.get("args", {}).get("snapshot")
        if isinstance(snapshot, dict):
            self.need("id" not in snapshot, f"a snapshot with an id: {e}")
            self.take_implicit(list(snapshot.values()), e)

    def take_implicit(self, values, e):
        for v in values:
            if isinstance(v, dict):
                self.need("id" not in v or (isinstance(v["id"], str) and re.search(r".+/.+", v["id"])),
                          f"an implicit snapshot without a name: {e}")
            if isinstance(v, (dict, list)):
                self.take_implicit(list(v.values()) if isinstance(v, dict) else v, e)

    def take_sampled(self, e):
        if e["name"] == "V8Sample":
            data = e.get("args", {}).get("data")
            self.need(isinstance(data, dict) and isinstance(data.get("stack"), list), f"no sample of V8: {e}")

    def take_dump(self, e):
        self.need("args" in e and isinstance(e["args"].get("dumps", {}), dict), f"a memory dump without dumps: {e}")

    def take_sync(self, e):
        ident = e.get("args", {}).get("sync_id")
        if self.need(isinstance(ident, str), f"no sync_id: {e}"):
            self.need(ident not in self.syncs, f"a sync_id comes twice: {e}")
            self.syncs[ident] = e["ts"]

    def take_link(self, e):
        linked = e.get("args", {}).get("linked_id")
        self.need(isinstance(linked, str) and HEX.fullmatch(linked), f"no linked_id: {e}")

    # systemTraceEvents

    def take_text(self, text):
        if not self.need(isinstance(text, str) and text.startswith("# tracer:"), "the kernel's text does not begin so"):
            return
        last = 0.0
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            m = LINE.fullmatch(line)
            if not self.need(m, f"no line of ftrace: {line!r}"):
                continue
            time = float(m["time"])
            self.need(time >= last, f"time runs backwards: {line!r}")
            last = time
            sync = SYNC.match(line[m.start("name"):])
            if sync:
                name = re.fullmatch(r"name=([A-Za-z0-9_-]+)", sync[1])
                if self.need(name, f"another sync: {line!r}"):
                    self.need(name[1] not in self.text_syncs, f"a sync comes twice: {line!r}")
                    self.text_syncs.append(name[1])

    def check_clocks(self, trace):
        """A file that was cut off has no events beside the text."""
        if not trace["traceEvents"]:
            return
        paired = any(name in self.syncs for name in self.text_syncs)
        declared = "clock-domain" in trace.get("metadata", {})
        self.need(paired != declared, f"the clocks are {'tied twice' if paired else 'not tied'}")

    def take_power(self, power):
        self.need(isinstance(power, str) and power.startswith("# BattOr"), "the power trace is none")
        self.need(any(f"<{name}>" in str(power) for name in self.syncs), "the power trace is not tied")

    def take(self, trace):
        events = trace if isinstance(trace, list) else trace.get("traceEvents")
        if not self.need(isinstance(events, list), "no traceEvents"):
            return
        if isinstance(trace, dict):
            self.take_frames(trace.get("stackFrames", {}))
        for e in events:
            self.take_event(e)
        for thread, stack in self.open.items():
            self.need(all(e.get("cat") != "func" for e in stack), f"functions of {thread} do not end: {stack}")
        if not isinstance(trace, dict):
            return
        for s in trace.get("samples", []):
            self.take_sample(s)
        self.take_text(trace.get("systemTraceEvents"))
        self.check_clocks(trace)
        self.need(trace.get("displayTimeUnit", "ms") in ("ms", "ns"), "displayTimeUnit")
        if "powerTraceAsString" in trace:
            self.take_power(trace["powerTraceAsString"])


def problems(trace):
    rules = Rules()
    rules.take(trace)
    return rules.found


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [k for k, _ in pairs]
        raise ValueError(f"a member comes twice: {next(k for k in keys if keys.count(k) > 1)}")
    return members


def parse(data):
    """Fails for what JSON.parse() refuses, and for a member that hides another."""
    text = data.decode("utf-8")
    if len(text) > STRING_MAX:
        raise ValueError("no browser can open it")
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)


def is_ours(data):
    """Whether the bytes are a whole trace of ours, not an application's file or a part of one."""
    return OURS.match(data) and data.endswith((b"}\n", b"]\n"))


def check_file(path):
    """The problems of a file, if it is a trace of ours."""
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError):
            return []
    if not is_ours(data):
        return []
    try:
        return problems(parse(data))
    except ValueError as e:
        return [str(e)]


def main():
    status = 0
    for name in sys.argv[1:]:
        for problem in check_file(name):
            print(f"{name}: {problem}"[:400])
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
