#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Traces of the Common Trace Format, as Babeltrace 2 reads them: recorded and generated captures,
compared with their text; losses, marks, samples; and the leftovers of a failed export. Without root
and tracefs nothing is recorded."""

import contextlib
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import Failure, Test, check, in_namespace, need_tracefs, skip
from perfetto_decode import LINE

EVENT = re.compile(r"\[(?P<ts>\d+)\] (?P<host>\S+ )?(?P<name>.+?): (?P<rest>\{.*)$")
TIME = r"\[(\d+):(\d+):(\d+)\.(\d{9})\]"
LOST = re.compile(r"Tracer discarded (\d+) events? between " + TIME + " and " + TIME +
                  r".*?within\s+stream\s+\"[^\"]*cpu_(\d+)\"", re.S)
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]=,])|([^\s{}\[\]=,]+)')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}


def tokens(text):
    for m in TOKEN.finditer(text):
        if m[1] is not None:
            yield ("text", re.sub(r"\\(.)", lambda e: ESCAPES.get(e[1], e[1]), m[1]))
        elif m[2]:
            yield ("sign", m[2])
        else:
            yield ("word", m[3])


def number(word):
    try:
        return int(word, 0)
    except ValueError:
        return word


def stale_texts():
    """Until 2.0.4 it shows an empty text as the one before it (its "clear_string_field()")."""
    out = subprocess.run(["babeltrace2", "--version"], capture_output=True, check=True).stdout.decode()
    return tuple(map(int, re.search(r"(\d+)\.(\d+)\.(\d+)", out).groups())) < (2, 0, 5)


def value(at):
    """One value of Babeltrace's text: {a = 1, b = "x"}, [ [0] = 1, [1] = 2 ], a number, a text."""
    kind, token = next(at)
    if kind == "text":
        return token
    if kind == "word":
        return number(token)
    if token == "{":
        out = {}
        for kind, name in at:
            if name == "}" and kind == "sign":
                return out
            if name == "," and kind == "sign":
                continue
            check(next(at) == ("sign", "="), f"no '=' behind {name}")
            out[name] = value(at)
    if token == "[":
        out = []
        for kind, name in at:
            if name == "]" and kind == "sign":
                return out
            if name == "," and kind == "sign":
                continue
            check((kind, name) == ("sign", "["), f"{name} in a list")
            check(int(next(at)[1]) == len(out) and next(at)[1] == "]" and next(at)[1] == "=",
                  "a list's elements are not in order")
            out.append(value(at))
    raise Failure(f"what is {token}?")


# Most lines have only numbers and plain texts.
PLAIN = re.compile(r'\[(\d+)\] (?:\S+ )?(\S+?:\S+|sample): \{ cpu_id = (\d+) \}, \{ common_flags = (\w+), '
                   r'common_preempt_count = (\d+), common_pid = (-?\d+), tgid = (-?\d+), comm = "([^"\\]*)" \}, '
                   r'\{ ([^{}\[\]\\]*) \}$')
FIELD = re.compile(r'(\w+) = (?:"([^"]*)"|([^",]+))')


def parse(line):
    """(time, event's name, all of its fields in one dict)."""
    m = PLAIN.match(line)
    if m:
        fields = {"context cpu_id": int(m[3]), "common_flags": int(m[4], 16), "common_preempt_count": int(m[5]),
                  "common_pid": int(m[6]), "context tgid": int(m[7]), "context comm": m[8]}
        fields.update((k, number(word) if word else text) for k, text, word in FIELD.findall(m[9]))
        return int(m[1]), m[2], fields
    m = EVENT.match(line)
    check(m, f"no event: {line}")
    fields, at = {}, tokens(m["rest"])
    for kind, token in at:
        if (kind, token) == ("sign", ","):
            continue
        check((kind, token) == ("sign", "{"), f"{token} in {line}")
        part = {}
        for kind, name in at:
            if (kind, name) == ("sign", "}"):
                break
            if (kind, name) == ("sign", ","):
                continue
            check(next(at) == ("sign", "="), f"no '=' behind {name} in {line}")
            part[name] = value(at)
        # A field may have the name of one in the packet's or the event's context, which come before.
        in_context = not fields or "common_pid" in part
        fields.update({("context " + k if in_context and k in ("cpu_id", "comm", "tgid") else k): v for k, v in part.items()})
    return int(m["ts"]), m["name"], fields


def lost(numbers):
    """[CPU, number, from, to]: in microseconds of the day."""
    count, *times, cpu = map(int, numbers)
    begin, end = (((h * 60 + m) * 60 + s) * 1000000 + (ns + 500) // 1000
                  for h, m, s, ns in (times[:4], times[4:]))
    return [cpu, count, begin, end]


def babeltrace(directory):
    done = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", directory],
                          capture_output=True, check=False, timeout=120)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    check(done.returncode == 0 and "ERROR" not in err, f"babeltrace2 {directory}: {err[-2000:]}")
    return [parse(line) for line in out.splitlines()], [lost(m) for m in LOST.findall(err)]


def convert(test, source, name, *options, status=0):
    out = test.dir / name
    r = test.run("convert", "-q", *options, source, out, timeout=120)
    check(r.status == status, f"convert to {name}: {r}")
    return out


def unpack(test, path):
    out = test.dir / "in.traced"
    data = path.read_bytes()
    out.write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
    return out


def text_lines(path):
    """(cpu, microseconds, pid, comm, details), with newlines within a text restored."""
    out = []
    for line in path.read_bytes().decode(errors="replace").split("\n"):
        m = LINE.match(line)
        if m:
            out.append([int(m["cpu"]), int(m["sec"]) * 1000000 + int(m["usec"]), int(m["pid"]),
                        m["comm"], m["details"]])
    return out


def by_cpu(events, key):
    out = {}
    for event in events:
        out.setdefault(key(event), []).append(event)
    return out


# The kernel prints these in base 16 without a prefix.
IN_HEX = {"clone_flags", "sa_flags", "hrtimer"}
SHOWN = re.compile(r"(\w+)=(.*?)(?=,? \w+=| ==> |$)")


def same_values(details, fields):
    """The number of the line's values that equal the event's."""
    count = 0
    for key, shown in SHOWN.findall(details):
        meant = fields.get(key)
        if isinstance(meant, int):
            try:
                shown = int(shown, 16 if key in IN_HEX or shown.startswith("0x") else 10)
            except ValueError:
                continue
        elif not isinstance(meant, str):
            continue
        # Texts of probes are in quotes.
        check(shown in (meant, f'"{meant}"'), f"{key} is {meant!r}: {details}")
        count += 1
    return count


def same_function(details, fields):
    called, _, caller = details.partition(" <-")
    check(re.sub(r"\(.*", "", called) == fields["ip_symbol"] and caller == fields["parent_ip_symbol"],
          f"{fields} for {details}")
    return 2


def same_as_text(lines, events):
    compared = 0
    cpus = by_cpu(events, lambda e: e[2]["context cpu_id"])
    check(len(lines) == len(events), f"{len(events)} events for {len(lines)} lines")
    for cpu, of_cpu in by_cpu(lines, lambda e: e[0]).items():
        check(len(of_cpu) == len(cpus[cpu]), f"CPU {cpu}: {len(cpus[cpu])} events for {len(of_cpu)} lines")
        for (_, usec, pid, comm, details), (ts, name, fields) in zip(of_cpu, cpus[cpu]):
            check((ts + 500) // 1000 == usec and fields["common_pid"] == pid and
                  fields["context comm"] == comm, f"{ts} {name} {fields} for {usec} {comm}-{pid} {details}")
            word = name.split(":")[1]
            if word == "function":
                compared += same_function(details, fields)
            elif details.startswith(word + ":"):
                compared += same_values(details[len(word) + 1:], fields)
    return compared


def all_captures(test):
    sum_events = sum_compared = 0
    paths = sorted(p for p in (test.source / "tests/data").glob("*/*.traced*"))
    check(len(paths) >= 20, f"only {paths}")
    for path in paths:
        capture = unpack(test, path)
        result = test.run("convert", "--json", capture, test.dir / "x.ctf")
        check(result.status == 0, f"{path}: {result}")
        told = json.loads(result.out)
        events, gaps = babeltrace(test.dir / "x.ctf")
        check(len(events) == told["events"] > 0 and not gaps, f"{path}: {len(events)} events, {told}")
        check(not any(e[1].endswith("(raw)") or e[1].startswith("unknown:") for e in events), f"{path}: not by its format")
        sum_events += len(events)
        # A graph's text is a tree, in which no line is an event.
        if path.name.startswith("graph"):
            check(all(e[2]["func_symbol"] for e in events if "funcgraph" in e[1]), f"{path}: no names")
        elif "stack" not in path.name:
            lines = text_lines(convert(test, capture, "x.txt", "--raw-addresses"))
            sum_compared += same_as_text(lines, events)
        shutil.rmtree(test.dir / "x.ctf")
    check(sum_events > 100000 and sum_compared > sum_events, f"{sum_compared} values of {sum_events} events")


def stacks(test):
    """Names of a stack beside its addresses."""
    capture = unpack(test, test.source / "tests/data/7.2.13/function-stack.traced.gz")
    events, _ = babeltrace(convert(test, capture, "x.ctf"))
    text = convert(test, capture, "x.txt").read_text()
    shown = [re.findall(r"^ => (.*)$", part, re.M) for part in text.split("<stack trace>")[1:]]
    named = [[n for n in e[2]["caller_symbols"] if n] for e in events if e[1] == "ftrace:kernel_stack"]
    check(len(shown) == len(named) > 10 and shown == named, f"{named[:2]} for {shown[:2]}")
    check(all(len(e[2]["caller"]) == len(e[2]["caller_symbols"]) for e in events if "caller" in e[2]),
          "not a name for each address")


def words(shown, bits):
    """A mask's groups of 32 bits, highest first, as the kernel's words, lowest first."""
    all_bits, out = int(shown.replace(",", ""), 16), []
    while all_bits:
        out.append(all_bits & ((1 << bits) - 1))
        all_bits >>= bits
    return out


def all_fields(test, machine):
    """Every value of an event that prints all of them."""
    capture = test.dir / "fields.traced"
    subprocess.run([test.generate, "fields", "2000", capture, machine], check=True)
    lines = text_lines(convert(test, capture, "x.txt", "--raw-addresses"))
    events, _ = babeltrace(convert(test, capture, "x.ctf"))
    stale = stale_texts()
    check(f"byte_order = {machine[2:]};" in (test.dir / "x.ctf/metadata").read_text(), "another byte order")
    check(len(lines) == len(events) == 2000, f"{len(lines)} lines, {len(events)} events")
    for (_, usec, _, _, details), (ts, name, fields) in zip(lines, events):
        shown = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", details))
        check((ts + 500) // 1000 == usec and name == "test:fields" and len(shown) == 17, f"{name}: {details}")
        for key, word in shown.items():
            got = fields["site_symbol" if key == "site" else key]
            if key in ("text", "dyn", "rel", "site"):
                meant = word
            elif key in ("nums", "list"):
                meant = [int(n, 16) for n in word.strip("{}").split(",") if n]
            elif key == "mask":
                meant = words(word, int(machine[:2]))
                got = got[:len(meant)] if not any(got[len(meant):]) else got
            else:
                meant = int(word, 16 if key == "ptr" else 10)
            check(got == meant or (meant == "" and stale), f"{machine}: {key} is {got}: {details}")


def losses(test):
    """Each gap is in its place with its number, or marked as of unknown size."""
    capture = test.dir / "losses.traced"
    subprocess.run([test.generate, "losses", "20000", capture], check=True)
    text = convert(test, capture, "x.txt").read_text()
    gaps, before, after = [], {}, {}
    for line in text.splitlines():
        m = re.match(r"CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]", line)
        at = LINE.match(line)
        if m:
            gaps.append([int(m[1]), int(m[2] or 1), bool(m[2]), before.get(int(m[1])), None])
            after[int(m[1])] = gaps[-1]
        elif at:
            cpu, usec = int(at["cpu"]), int(at["sec"]) * 1000000 + int(at["usec"])
            before[cpu] = usec
            if cpu in after:
                after.pop(cpu)[4] = usec
    events, told = babeltrace(convert(test, capture, "x.ctf"))
    own = by_cpu((e for e in events if e[1] == "traced:events_lost"), lambda e: e[2]["context cpu_id"])
    check(len(events) == 20000 + len(gaps), f"{len(events)} events for {len(gaps)} gaps")
    for cpu, of_cpu in by_cpu(gaps, lambda g: g[0]).items():
        check([e[2]["count"] for e in own[cpu]] == [g[1] if g[2] else 0 for g in of_cpu], f"CPU {cpu}: {own[cpu]}")
    meant = [[g[0], g[1], g[3] if g[3] is not None else g[4], g[4]] for g in gaps]
    check(len(told) > 50 and sorted(told) == sorted(meant), f"{sorted(told)[:5]}\nbut {sorted(meant)[:5]}")


def marks(test):
    """Merged marks, each with all of its fields."""
    capture = unpack(test, test.source / "tests/data/6.18.44/sched.traced")
    source = test.source / "tests/data/marks/phases.json"
    whole = json.loads(convert(test, capture, "x.json", "--merge", source, "--merge-clock", "boottime")
                       .read_bytes())
    meant = [e for e in whole["traceEvents"] if e.get("cat", "") not in ("", "func", "__metadata", "clock_sync")]
    # A step of an old asynchronous slice is an instant here; in the JSON it is a slice NAME:STEP.
    steps = {e["name"]: e["name"].removesuffix(f":{e['args']['step']}") for e in meant
             if e["ph"] == "b" and "step" in e.get("args", {})}
    check(steps, "no step")
    meant = [e for e in meant if e["ph"] != "e" or e["name"] not in steps]
    events, _ = babeltrace(convert(test, capture, "x.ctf", "--merge", source, "--merge-clock", "boottime"))
    got = [e for e in events if e[1].startswith("mark:")]
    check(len(got) >= len(meant) > 10, f"{len(got)} marks for {len(meant)}")
    for mark in meant:
        # The JSON's readers want a category, and the name of a slice at its end.
        name, kind = mark.get("name", ""), None
        if mark["ph"] == "E":
            name, kind = "", "mark:end"
        elif name in steps:
            name, kind = steps[name], "mark:async_instant"
        same = [f for _, k, f in got if kind in (None, k) and (f["category"] or "default") == mark["cat"] and
                f["name"] == name and json.loads(f.get("args", "{}")) == mark.get("args", {})]
        check(same, f"no {mark}")
    check(len({e[1] for e in got}) > 8, f"only {({e[1] for e in got})}")


def cut_anywhere(test):
    """After a damaged capture there is a whole trace, or none."""
    data = unpack(test, test.source / "tests/data/6.18.44/sched.traced").read_bytes()
    whole = 0
    for part in range(1, 15):
        (test.dir / "in.traced").write_bytes(data[:len(data) * part // 15])
        result = test.run("convert", "-q", "in.traced", "x.ctf")
        check(result.status in (1, 3), f"cut at {part}: {result}")
        check((test.dir / "x.ctf").exists() == (result.status == 3), f"cut at {part}: {result}")
        if result.status == 3:
            events, _ = babeltrace(test.dir / "x.ctf")
            check("incomplete = 1;" in (test.dir / "x.ctf/metadata").read_text(), "does not say so")
            whole = max(whole, len(events))
            shutil.rmtree(test.dir / "x.ctf")
    check(test.files() == ["in.traced"] and whole > 100, f"{test.files()}, {whole} events")


def refusals(test):
    capture = unpack(test, test.source / "tests/data/6.18.44/sched.traced")
    (test.dir / "full").mkdir()
    (test.dir / "full" / "file").write_text("mine")
    (test.dir / "file").write_text("mine")
    (test.dir / "link").symlink_to("empty")
    (test.dir / "empty").mkdir()
    for out, text in (("full", "is not empty"), ("full/", "is not empty"), ("file", "is not a directory"),
                      ("link", "is not a directory"), ("no/where", "does not exist"), (".", "not a name for a new directory")):
        r = test.run("convert", capture, out, "--format", "ctf")
        check(r.status in (1, 2) and text in r.err, f"{out}: {r}")
    r = test.run("convert", capture, "-", "--format", "ctf")
    check(r.status == 2 and "needs a name" in r.err, f"{r}")
    r = test.run("convert", capture, "x.ctf", "--rotate", "1M")
    check(r.status != 0 and "one directory" in r.err, f"{r}")
    check((test.dir / "full/file").read_text() == (test.dir / "file").read_text() == "mine", "written over")
    # An output that can't be written is not begun under its name.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    r = test.run("convert", capture, "x.ctf", preexec_fn=limit)
    check(r.status == 1 and "x.ctf" in r.err, f"{r}")
    check(sorted(test.files()) == ["empty", "file", "full", "in.traced", "link"], f"left: {test.files()}")
    # An empty directory is used as it is.
    r = test.run("convert", "-q", capture, "empty/", "--format", "ctf")
    check(r.status == 0 and babeltrace(test.dir / "empty")[0], f"{r}")


def has_begun(test):
    for path in test.dir.glob(".x.ctf.*/cpu_0"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size:
                return True
    return False


def interrupt(test, capture, number):
    """True: it had begun, and still ran when it was signalled."""
    process = test.start("convert", "-q", capture, "x.ctf")
    begun, until = False, time.monotonic() + 60
    while not begun and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
        begun = has_begun(test)
    runs = process.poll() is None
    process.send_signal(number)
    r = test.finish(process)
    check(begun or not runs, "it did not begin")
    return begun and runs and r.status != 0


def interrupted(test):
    """After an abort nothing is left, whichever process is killed."""
    capture = test.dir / "big.traced"
    for number in (signal.SIGINT, signal.SIGKILL):
        for events in (3000000, 6000000, 12000000):
            subprocess.run([test.generate, "sched", str(events), capture], check=True)
            if interrupt(test, capture, number):
                break
            # A fast machine finished before the signal: it gets more to do.
            shutil.rmtree(test.dir / "x.ctf", ignore_errors=True)
        else:
            raise Failure(f"{number!r} always comes too late")
        for _ in range(200):
            if test.files() == ["big.traced"]:
                break
            time.sleep(0.05)
        check(test.files() == ["big.traced"], f"left: {test.files()}")


def recorded(test):
    need_tracefs()
    r = test.run("record", "--name", test.name, "-t", "300ms", "-e", "sched", "--format", "ctf", "-o", "x")
    check(r.status == 0 and "x:" in r.err, f"{r}")
    events, _ = babeltrace(test.dir / "x")
    check(len(events) > 10 and all(e[1].startswith(("sched:", "ftrace:")) for e in events), f"{len(events)}")
    r = test.run("record", "--name", test.name, "-t", "100ms", "--stream", "-o", "y.ctf")
    check(r.status == 2 and "omit --stream" in r.err, f"{r}")
    r = test.run("record", "--name", test.name, "-e", "sched", "--sample", "199hz", "--call-graph", "-o", "s.ctf",
                 "--status=ours", "--", "timeout", "0.4", "sh", "-c", "while :; do :; done")
    check(r.status == 0, f"{r}")
    samples = [f for _, name, f in babeltrace(test.dir / "s.ctf")[0] if name == "sample"]
    check(len(samples) > 5 and any(f["callchain"] for f in samples) and
          all(f["cpu"] >= 0 for f in samples), f"{samples[:3]}")
    check(test.files() == ["s.ctf", "x"], f"left: {test.files()}")


def does_not_fit(test):
    """The disk is full when the exporter has already written its last bytes: the recording is kept."""
    need_tracefs()
    disk = test.dir / "disk"
    disk.mkdir()
    r = test.run("record", "--name", test.name, "-b", "64K", "-e", "sched:sched_switch", "-o", "disk/x.ctf", "--",
                 "sh", "-c", "for i in $(seq 100); do /bin/true; done",
                 wrap=in_namespace(f"mount -t tmpfs -o size=8k none {disk}"))
    check(r.status == 1 and "No space left" in r.err, f"{r}")
    safe = re.search(r"the recording is safe: tracectl convert (\S+\.traced) DIR/x.ctf \(DIR on another disk\)$", r.err, re.M)
    check(safe, f"{r}")
    r = test.run("convert", safe[1], "disk/x.ctf")
    check(r.status == 0 and babeltrace(disk / "x.ctf")[0], f"{r}")
    os.unlink(safe[1])


def main():
    test = Test("ctf", root=False)
    if not shutil.which("babeltrace2"):
        skip("babeltrace2 is not installed: nothing to read the traces with")
    test.generate = test.build / "tests" / "unit" / "generate"
    test.case("recorded captures", all_captures)
    test.case("stacks", stacks)
    for machine in ("64le", "64be", "32le", "32be"):
        test.case(f"all types of fields, {machine}", all_fields, machine)
    test.case("losses", losses)
    test.case("marks", marks)
    test.case("cut anywhere", cut_anywhere)
    test.case("refusals", refusals)
    test.case("interrupted", interrupted)
    test.case("recorded", recorded)
    test.case("the disk is full", does_not_fit)
    test.end()


if __name__ == "__main__":
    main()
