#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captures of tests/data and generated ones, in all forms of a Perfetto trace: each beside
the text and the JSON of the same capture, and some beside what protoc decoded of
them once. `perfetto_files.py BUILD golden --update` writes the latter anew."""

import gzip
import json
import re
import subprocess
import sys
import zlib
from collections import Counter

from google.protobuf.message import DecodeError
from harness import Failure, Test, check
from perfetto_beside import Beside, compare_beside
from perfetto_decode import (Decoder, compare, compare_functions, json_events, json_functions,
                             packets_of, perfetto_events, split_functions, text_events, varint)
from perfetto_infer import Reader
from marks import BEGIN, Marks

FORMS = {
    "default": [],
    "plain sched": ["--compact-sched=off"],
    "legacy": ["--generic=legacy"],
    "deflate": ["--compress=deflate"],
}
# protoc's decoding is in tests/data/KERNEL/CASE.pftrace.decoded.gz.
GOLDEN = (("6.1.176", "function-stack"), ("6.1.176", "mixed"), ("6.12.107", "graph"),
          ("7.2.13", "function"))
# Options of every conversion.
MANY = 8_000_000


def unpack(test, kernel, case):
    out = test.dir / f"{kernel}-{case}.traced"
    with gzip.open(test.source / "tests/data" / kernel / f"{case}.traced.gz") as packed:
        out.write_bytes(packed.read())
    return out


def convert(test, source, ending, *options):
    out = source.with_suffix(ending)
    r = test.run("convert", "-q", *options, source, out, timeout=120)
    check(r.status == 0, f"convert {' '.join(options)} to {ending} failed: {r}")
    return out


def recorded():
    """(kernel, case) of all captures."""
    return sorted((p.parent.name, p.name.removesuffix(".traced.gz"))
                  for p in DATA.glob("*/*.traced.gz"))


def one_of_each():
    """The same, one per kernel, for work that does not depend on the capture."""
    return sorted(dict(recorded()).items())


def same_as_text(test, decoder, capture, form):
    """The reference is the JSON, in which all lines are "NAME: details", and its functions."""
    text = convert(test, capture, ".json")
    lines = json_events(text)
    trace = convert(test, capture, ".pftrace", *FORMS[form])
    data = packets_of(trace.read_bytes())
    cpus, compacts = perfetto_events(data, decoder.parse(data))
    functions, cpus = split_functions(cpus)
    compared, names = compare(lines, cpus)
    count = compare_functions(text, functions)
    return len(lines) + count, compared + count, names, compacts


def all_captures(test, form):
    decoder = Decoder(test.dir, test.source)
    events = compared = compacts = 0
    captures = recorded() if form == "default" else one_of_each()
    check(len(captures) >= (10 if form == "default" else 5), f"only {captures}")
    for kernel, case in captures:
        capture = unpack(test, kernel, case)
        n, values, _, compact = same_as_text(test, decoder, capture, form)
        events, compared, compacts = events + n, compared + values, compacts + compact
        capture.unlink()
    check(events > 10000 and compared > events, f"{compared} values of {events} events compared")
    check(bool(compacts) == (form != "plain sched"), f"{compacts} compact events")


def text_and_json(test):
    """The same events, in the same order, in the text and in the JSON."""
    for kernel, case in recorded():
        capture = unpack(test, kernel, case)
        lines = text_events(convert(test, capture, ".txt"))
        text = convert(test, capture, ".json")
        other, functions = json_events(text), json_functions(text)
        capture.unlink()
        if case.startswith("graph"):  # the text is a graph: no line is an event
            continue
        # Unlike a function's, a returning probe's line has a blank behind the arrow.
        hits = [e for e in lines if re.search(r" <-\S", e[4])]
        lines = [e for e in lines if not re.search(r" <-\S", e[4])]
        for thread, events in functions.items():
            # The JSON has no arguments (func-args).
            of_thread = [re.sub(r"\(.*\) <-", " <-", e[4]) for e in hits
                         if (("idle", e[0]) if e[2] == 0 else e[2]) == thread]
            check(of_thread == [f"{called} <-{caller}" for _, called, caller in events],
                  f"{kernel} {case}: thread {thread} has other functions in the JSON")
        check(sum(map(len, functions.values())) == len(hits), f"{kernel} {case}: {len(hits)} functions")
        check([e[:3] for e in lines] == [e[:3] for e in other],
              f"{kernel} {case}: {len(lines)} events in the text, {len(other)} in the JSON")


def bits(shown):
    """Groups of 32 bits, highest first, as a list: "0-3,8"."""
    value, out, bit = int(shown.replace(",", ""), 16), [], 0
    while value >> bit:
        if value >> bit & 1:
            first = bit
            while value >> (bit + 1) & 1:
                bit += 1
            out.append(str(first) if first == bit else f"{first}-{bit}")
        bit += 1
    return ",".join(out)


def numbers(shown):
    return ",".join(str(int(n, 16)) for n in shown.strip("{}").split(",") if n)


SHOWN = {"nums": numbers, "list": numbers, "mask": bits, "text": str, "dyn": str, "rel": str,
         "site": str, "ptr": lambda shown: int(shown, 16)}


def all_fields(test, machine):
    """Every value of an event that prints all of them."""
    decoder = Decoder(test.dir, test.source)
    capture = test.dir / "fields.traced"
    subprocess.run([test.generate, "fields", "3000", capture, machine], check=True)
    lines = text_events(convert(test, capture, ".txt"))
    check([e[1:] for e in json_events(convert(test, capture, ".json"))] == [e[1:] for e in lines],
          "the JSON differs from the text")
    for form, options in FORMS.items():
        data = packets_of(convert(test, capture, ".pftrace", *options).read_bytes())
        cpus, _ = perfetto_events(data, decoder.parse(data))
        events = [e for cpu in sorted(cpus) for e in cpus[cpu]]
        lines.sort(key=lambda e: e[0])
        check(len(events) == len(lines) == 3000, f"{form}: {len(events)} events, {len(lines)} lines")
        for line, (ts, pid, name, values) in zip(lines, events):
            check((ts + 500) // 1000 == line[1] and pid == line[2], f"{ts} for {line}")
            shown = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line[4]))
            meant = {k: SHOWN.get(k, int)(v) for k, v in shown.items()}
            # A list without elements is absent.
            check(len(meant) == 17 and name == "fields" and {k: v for k, v in meant.items()} ==
                  dict({k: "" for k in meant if k in ("list", "mask")}, **values),
                  f"{form}, {machine}: {line[4]}\nbut {values}")


def protoc(test, data):
    done = subprocess.run(["protoc", f"--proto_path={test.source / 'proto'}", "--decode",
                           "perfetto.protos.Trace", "perfetto/trace.proto"], input=data,
                          capture_output=True, check=True)
    return done.stdout.decode()


def without_origin(text):
    """protoc's output without our own fields, which have numbers for names, and without the bytes
    that all have in common."""
    lines, inside = [], None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if inside is None and "bytes_written:" in line:
            continue
        if inside is None and re.match(r" *747\d\d( \{|:)", line):
            inside = indent if line.endswith("{") else None
        elif inside is None:
            # Packets with nothing else.
            if line == "}" and lines[-1] == "packet {":
                lines.pop()
            else:
                lines.append(line)
        elif indent == inside and line.endswith("}"):
            inside = None
    return lines


def golden(test):
    for kernel, case in GOLDEN:
        path = DATA / kernel / f"{case}.pftrace.decoded.gz"
        text = protoc(test, convert(test, unpack(test, kernel, case), ".pftrace").read_bytes())
        if "--update" in sys.argv:
            lines = "".join(f"{line}\n" for line in without_origin(text))
            path.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
            continue
        with gzip.open(path, "rt") as expected:
            lines = expected.read().splitlines()
        is_now = without_origin(text)
        for number, (want, got) in enumerate(zip(lines, is_now), 1):
            check(want == got, f"{kernel} {case}, line {number} is\n{got}\nand should be\n{want}")
        check(len(lines) == len(is_now), f"{kernel} {case}: {len(lines)} lines are due")


def whole_packets(data):
    """The ends of the packets, as offsets in the file."""
    at, ends = 0, []
    while at < len(data):
        check(data[at] == 0x0A, "the file has other fields than packets")
        size, at = varint(data, at + 1)
        at += size
        ends.append(at)
    check(ends[-1] == len(data), "the last packet runs over the end")
    return ends


def cut_anywhere(test):
    """Each prefix of whole packets is a trace; a partial packet is not taken for one."""
    decoder = Decoder(test.dir, test.source)
    capture = unpack(test, "7.2.13", "mixed")
    for options, least in (([], 25), (["--compress=deflate"], 4)):
        data = convert(test, capture, ".pftrace", *options).read_bytes()
        ends = whole_packets(data)
        check(len(ends) > least, f"{options}: only {len(ends)} packets")
        counts = []
        for end in ends[:: max(1, len(ends) // 6)] + ends[-1:]:
            packets = packets_of(data[:end])
            cpus, _ = perfetto_events(packets, decoder.parse(packets))
            counts.append(sum(map(len, cpus.values())))
        check(counts == sorted(counts) and counts[-1] > 50000, f"{options}: events {counts}")
        for cut in (1, 2, 3, 100):
            try:
                decoder.parse(data[:ends[len(ends) // 2] + cut])
            except DecodeError:
                continue
            raise Failure(f"{cut} bytes of a packet were taken for one")


def joined(decoder, files):
    """The events of each CPU, over all files."""
    cpus = {}
    for path in files:
        data = path.read_bytes()
        for cpu, events in perfetto_events(data, decoder.parse(data))[0].items():
            cpus.setdefault(cpu, []).extend(events)
    return cpus


def text_lines(path):
    text = json.loads(path.read_text())["systemTraceEvents"]
    return [line for line in text.splitlines() if not line.startswith("# tracer")]


def in_segments(test):
    """Each file of a rotation opens alone, and together they equal the single file."""
    decoder = Decoder(test.dir, test.source)
    several = 0
    for kernel, case in one_of_each():
        capture = unpack(test, kernel, case)
        told = json.loads(test.run("convert", "--json", capture, "x.json").out)
        whole = joined(decoder, [convert(test, capture, ".pftrace")])
        lines = text_lines(convert(test, capture, ".json"))
        for limit in ("64K", f"{told['span_ns'] // 4 + 1}ns"):
            convert(test, capture, ".pftrace", "--rotate", limit)
            files = sorted(test.dir.glob(f"{capture.stem}.*.pftrace"))
            check(joined(decoder, files) == whole, f"{kernel} {case}: other events in {files}")
            several += len(files) > 2
            convert(test, capture, ".json", "--rotate", limit)
            parts = sorted(test.dir.glob(f"{capture.stem}.*.json"))
            check(sum(map(text_lines, parts), []) == lines, f"{kernel} {case}: other lines")
            for path in files + parts:
                path.unlink()
        capture.unlink()
    check(several > 5, f"only {several} recordings had several files")


def many_events(test):
    """Memory does not grow with the trace."""
    capture = test.dir / "many.traced"
    # A sanitizer makes programs slow and needs memory of its own: fewer events must do.
    many, memory_max = (1_000_000, 64 << 20) if test.is_sanitized() else (MANY, 32 << 20)
    subprocess.run([test.generate, "numbers", str(many), capture], check=True)
    out = test.dir / "many.pftrace"
    # A shell starts it: the kernel counts a process's memory before its exec, too.
    r = test.run("convert", "--json", capture, out, timeout=240, wrap=["sh", "-c", '"$@"; exit $?', "sh"])
    check(r.status == 0, f"convert failed: {r}")
    told = json.loads(r.out)
    check(told["events"] == many and out.stat().st_size > many * 10, f"not all events: {r}")
    peak = told["export_peak_rss_bytes"]
    check(1 << 20 < peak < memory_max, f"the conversion took {peak >> 20} MiB")


def zstd_and_gzip(test):
    capture = unpack(test, "6.12.107", "mixed")
    plain = convert(test, capture, ".pftrace").read_bytes()
    whole = convert(test, capture, ".pftrace.gz").read_bytes()
    check(zlib.decompress(whole, 31) == plain, "the .gz has other content")
    packed = convert(test, capture, ".pftrace", "--compress=zstd").read_bytes()
    check(packets_of(packed) == plain, "the packets differ")
    for ending, option in (("json", "--compress=zstd"), ("txt", "--generic=legacy"),
                           ("traced", "--compact-sched=off"), ("pftrace.gz", "--compress=deflate")):
        r = test.run("convert", option, capture, f"x.{ending}")
        check(r.status == 2 and ".pftrace" in r.err and not (test.dir / f"x.{ending}").exists(),
              f"{option} for .{ending}: {r}")


def compare_one_beside(test, decoder, capture, options=()):
    text = convert(test, capture, ".txt").read_text(errors="replace")
    data = packets_of(convert(test, capture, ".pftrace", *options).read_bytes())
    beside = Beside(decoder, data)
    first, last = beside.recordings
    check(len(first.header.uuid) == 16 and not first.header.pointer_key, "the header of the recording")
    check(last.ended and not last.incomplete and last.HasField("end"), "the end of the recording")
    return compare_beside(text, beside)


def beside_messages(test):
    """Data that only traced writes: formats, flags, symbols, lost events, and values without a
    message's field."""
    decoder = Decoder(test.dir, test.source)
    values = symbols = 0
    for kernel, case in recorded():
        if case.startswith("graph"):  # the text is a graph: no line is an event
            continue
        v, s, _ = compare_one_beside(test, decoder, unpack(test, kernel, case))
        values, symbols = values + v, symbols + s
    check(values >= 10 and symbols > 10000, f"only {values} values and {symbols} symbols compared")
    capture = test.dir / "generated.traced"
    for kind, machine in (("kinds", "64le"), ("kinds", "64be"), ("kinds", "32le"), ("kinds", "32be"),
                          ("fields", "64le"), ("fields", "32be"), ("losses", "64le"), ("sched", "64le")):
        subprocess.run([test.generate, kind, "2000", capture, machine], check=True)
        for form in ("default", "plain sched", "legacy"):
            compared = compare_one_beside(test, decoder, capture, FORMS[form])
            least = {"losses": (0, 0, 3), "sched": (0, 0, 0)}.get(kind, (2000, 2000, 0))
            check(all(n >= l for n, l in zip(compared, least)),
                  f"{kind}, {machine}, {form}: only {compared} compared")


def inferred(test):
    """One row for each thread; slices of scheduling that end. Old captures have no ring of births: a
    task whose birth only the trace has is known twice."""
    decoder = Decoder(test.dir, test.source)
    for kernel, case in recorded():
        data = convert(test, unpack(test, kernel, case), ".pftrace").read_bytes()
        reader = Reader(data, decoder.parse(data))
        born = {values["pid"] for _, _, name, values in reader.events if name == "task_newtask"}
        of_nobody = {t.tid for tree in reader.trees for t in tree.threads if not t.tgid}
        rows = Counter(t.tid for t in reader.threads if t.tid not in of_nobody & born)
        twice = [tid for tid, count in rows.items() if count > 1]
        check(not twice, f"{kernel} {case}: threads that appear twice: {twice}")
        check(not reader.open_scheds() and not reader.open_states() and not reader.mismatched,
              f"{kernel} {case}: slices or states without an end")


def values_of_calls(test):
    """Values of functions are annotations of slices, the same as in the JSON."""
    decoder = Decoder(test.dir, test.source)
    for kernel, case, least in (("7.2.13", "graph-args", {"arguments": 400}),
                                ("7.2.13-own", "graph-retval", {"ret": 100}),
                                ("7.2.13-own", "graph-retaddr", {"ret": 100, "from": 100})):
        capture = unpack(test, kernel, case)
        calls, returns, wanted, wanted_returns = {}, {}, {}, {}
        for e in json.loads(convert(test, capture, ".json", "--raw-addresses").read_bytes())["traceEvents"]:
            if e.get("cat", "func") != "func" or not e.get("pid"):
                continue
            args, thread = e.get("args", {}), f"thread {e['tid']}"
            if e["ph"] in "XB" and "entry" not in args:
                wanted.setdefault(thread, []).append((e["name"], {k: v for k, v in args.items() if k != "ret"}))
            if "ret" in args:
                wanted_returns.setdefault(thread, Counter())[e["name"], args["ret"]] += 1
        trace = decoder.parse(convert(test, capture, ".pftrace", "--raw-addresses").read_bytes())
        for e in Marks(trace.packet).events:
            if e["path"][-1] != "Funcgraph":
                continue
            thread = e["path"][-2]
            if e["type"] == BEGIN:
                calls.setdefault(thread, []).append((e["name"], e["args"]))
            if "ret" in e["args"]:
                returns.setdefault(thread, Counter())[e["name"], e["args"]["ret"]] += 1
        check(calls == wanted,
              f"{case}: {[(a, b) for t in wanted for a, b in zip(wanted[t], calls.get(t, ())) if a != b][:3]}")
        check(returns == wanted_returns,
              f"{case}: {[(returns.get(t, Counter()) - w, w - returns.get(t, Counter())) for t, w in wanted_returns.items()]}")
        found = {"ret": sum(map(Counter.total, returns.values())),
                 "from": sum("from" in args for thread in calls.values() for _, args in thread),
                 "arguments": sum(len(args.get("arguments", ())) for thread in calls.values() for _, args in thread)}
        check(all(found[word] > count for word, count in least.items()), f"{kernel} {case}: only {found}")


def samples_of_timerlat(test):
    """Their fields are those of the text, which has no names of them."""
    decoder = Decoder(test.dir, test.source)
    capture = unpack(test, "6.12.117-rt", "latencies")
    text = convert(test, capture, ".txt").read_text()
    wanted = {}
    for cpu, number, context, ns in re.findall(r"\[(\d+)\] .*: #(\d+) +context +(irq|thread) timer_latency +(\d+) ns$",
                                               text, re.M):
        wanted.setdefault(int(cpu), []).append((int(number), context, int(ns)))
    data = convert(test, capture, ".pftrace").read_bytes()
    found = {cpu: [(v["seqnum"], ("irq", "thread")[v["context"]], v["timer_latency"]) for *_, name, v in events
                   if name == "timerlat"] for cpu, events in perfetto_events(data, decoder.parse(data))[0].items()}
    check(found == wanted and sum(map(len, wanted.values())) > 100, f"{found}\nbut the text has {wanted}")


def not_read(test):
    """tracectl writes Perfetto traces and does not read them; the message says what to keep
    instead."""
    capture = test.dir / "fields.traced"
    subprocess.run([test.generate, "fields", "300", capture, "64le"], check=True)
    for form, ending in (*((form, ".pftrace") for form in FORMS), ("default", ".pftrace.gz")):
        trace = convert(test, capture, ending, *(FORMS[form] if ending == ".pftrace" else ()))
        r = test.run("convert", trace, "again.txt")
        check(r.status == 1 and "this is a Perfetto trace" in r.err and "convert x.traced" in r.err,
              f"{form}{ending}: {r}")
        check(not (test.dir / "again.txt").exists(), f"{form}{ending}: a file was written")
        piped = test.run("convert", "--format", "txt", "-", "-", stdin=trace.read_bytes())
        check(piped.status == 1 and "this is a Perfetto trace" in piped.err and not piped.out, f"a pipe: {piped}")


DATA = None


def main():
    global DATA  # pylint: disable=global-statement
    test = Test("perfetto-files", root=False)
    DATA = test.source / "tests" / "data"
    test.generate = test.build / "tests" / "unit" / "generate"
    for form in FORMS:
        test.case(f"recorded captures, {form}", all_captures, form)
    test.case("text and JSON", text_and_json)
    for machine in ("64le", "64be", "32le", "32be"):
        test.case(f"all types of fields, {machine}", all_fields, machine)
    test.case("beside the messages", beside_messages)
    test.case("what readers infer", inferred)
    test.case("values of calls", values_of_calls)
    test.case("samples of timerlat", samples_of_timerlat)
    test.case("Perfetto traces are not read", not_read)
    test.case("golden", golden)
    test.case("zstd and gzip", zstd_and_gzip)
    test.case("cut anywhere", cut_anywhere)
    test.case("rotated", in_segments)
    test.case("many events", many_events)
    test.end()


if __name__ == "__main__":
    main()
