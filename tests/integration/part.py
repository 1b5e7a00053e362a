#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Parts of a recording: what convert and report leave out, compared with the text of the whole."""

import fnmatch
import json
import re
import subprocess

from harness import Test, check

LINE = re.compile(r"\s*(.{1,16})-(\d+)\s+\[(\d+)\]\s+\S+\s+(\d+)\.(\d+): ((\w*).*)")
LOST = re.compile(r"CPU:(\d+) \[LOST (\d+ )?EVENTS\]")
ABOUT = re.compile(r"\b(?:prev_pid|next_pid|pid)=(\d+)")
MS = 1000
EVENTS = 20000


class Line:
    def __init__(self, text):
        comm, tid, cpu, seconds, micro, said, self.name = LINE.match(text).groups()
        self.details = said.partition(": ")[2]
        self.text = text
        self.comm = comm.strip()
        self.tid, self.cpu = int(tid), int(cpu)
        self.us = int(seconds) * 10**6 + int(micro)
        # The scheduler's events belong to the tasks that they name, as with set_event_pid.
        about = ABOUT.findall(self.details) if self.name.startswith("sched_") else []
        self.tids = {self.tid, *map(int, about)}


def lines_of(text):
    return [Line(t) for t in text.splitlines() if LINE.match(t)]


def seconds(us):
    return f"{us // 10**6}.{us % 10**6:06}"


def generated(test, kind="sched", events=EVENTS):
    path = test.dir / f"{kind}.traced"
    subprocess.run([test.build / "tests/unit/generate", kind, str(events), path], check=True)
    return path


def convert(test, path, *arguments, to="part.txt"):
    r = test.run("convert", "--json", path, to, *arguments)
    check(r.status == 0, r)
    return json.loads(r.out)


def check_account(result):
    for row in result["ledger"]:
        check(row["written"] == row["events"] + row["lost_overrun"] + row["lost_other"] + row["unread"] + row["left_out"], row)


def part_of(test, path, *arguments):
    """The lines of a part; its account must add up."""
    result = convert(test, path, *arguments)
    check_account(result)
    lines = lines_of((test.dir / "part.txt").read_text())
    check(len(lines) == result["events"], f"{len(lines)} lines, {result['events']} events")
    said = re.findall("^# a part of the recording: (.*)$", (test.dir / "part.txt").read_text(), re.M)
    check(len(said) == bool(arguments), said)
    if arguments:
        check(any(f"({said[0]})" in w and "left out" in w for w in result["warnings"]), f"{said}: {result['warnings']}")
    return lines


def same(found, wanted, what):
    check([x.text for x in found] == [x.text for x in wanted], f"{what}: {len(found)} lines, {len(wanted)} in the whole")
    check(found, f"{what}: not one")


def parts_are_the_whole(test):
    recorded = sorted((test.source / "tests/data").glob("*/mixed.traced.gz"))
    check(len(recorded) >= 4, recorded)
    for path in [*(generated(test, kind) for kind in ("sched", "mixed", "losses")), *recorded]:
        whole = part_of(test, path)
        cuts = [whole[len(whole) * i // 7].us for i in range(1, 7)]
        put = []
        for begin, end in zip([None, *cuts], [*cuts, None], strict=True):
            arguments = ["--from", seconds(begin)] if begin else []
            arguments += ["--to", seconds(end)] if end else []
            found = part_of(test, path, *arguments)
            same(found, [x for x in whole if (begin or 0) <= x.us < (end or 1 << 62)], f"{path} {arguments}")
            put += found
        same(put, whole, "put together")


def relative_times(test):
    path = generated(test)
    whole = part_of(test, path)
    first, last = whole[0].us, whole[-1].us
    found = part_of(test, path, "--from", "+2ms", "--to=-3ms")
    # Times of the text are cut to microseconds.
    for edge, wanted in ((found[0].us, first + 2 * MS), (found[-1].us, last - 3 * MS)):
        check(abs(edge - wanted) < MS, f"{edge}, not {wanted}")
    begin, end = first + 2 * MS, last - 3 * MS
    inner = [x for x in whole if begin < x.us < end]
    outer = [x for x in whole if begin - 1 <= x.us <= end + 1]
    check(len(inner) <= len(found) <= len(outer), f"{len(found)} lines, {len(inner)} to {len(outer)} in the whole")


def wishes(test):
    path = generated(test, "mixed")
    whole = part_of(test, path)
    tid = whole[len(whole) // 2].tid or whole[len(whole) // 2 + 1].tid
    comm = next(x.comm for x in whole if x.tid == tid)
    name = whole[-1].name
    tids_of = {x.tid for x in whole if x.comm == comm}
    for arguments, wanted in (
            (["--cpus", "1"], lambda x: x.cpu == 1),
            (["-e", name], lambda x: x.name == name),
            (["-e", "sched:*sw*", "-e", "irq"], lambda x: fnmatch.fnmatch(x.name, "*sw*") or "irq" in x.name),
            (["-P", str(tid)], lambda x: tid in x.tids),
            (["--thread", str(tid)], lambda x: tid in x.tids),
            (["--comm", comm], lambda x: x.tids & tids_of),
            (["--cpus", "0", "--thread", str(tid)], lambda x: tid in x.tids and x.cpu == 0),
    ):
        same(part_of(test, path, *arguments), [x for x in whole if wanted(x)], arguments)


def filters(test):
    path = generated(test)
    whole = part_of(test, path)
    switches = [x for x in whole if x.name == "sched_switch"]

    def number(line, name):
        return int(re.search(rf"\b{name}=(-?\d+)", line.details)[1])

    def comm(line, name):
        return re.search(rf"\b{name}=(.*?) \w+=", line.details)[1]

    middle = number(switches[len(switches) // 2], "next_pid")
    name = comm(switches[1], "next_comm")
    for texts, wanted in (
            (["sched_switch: next_pid >= 0"], lambda x: True),
            ([f"sched_switch: next_pid < {middle}"], lambda x: number(x, "next_pid") < middle),
            ([f"sched_switch: next_pid == {middle} || prev_pid == {middle}"],
             lambda x: middle in (number(x, "next_pid"), number(x, "prev_pid"))),
            ([f'sched/sched_switch: next_comm ~ "{name[:2]}*" && !(next_pid == {middle})'],
             lambda x: comm(x, "next_comm").startswith(name[:2]) and number(x, "next_pid") != middle),
            ([f"sched_switch: next_pid == {middle}", f'sched_switch: next_comm == "{name}"'],
             lambda x: number(x, "next_pid") == middle or comm(x, "next_comm") == name),
            (["sched_switch: CPU == 1"], lambda x: x.cpu == 1),
            (["sched_switch: next_pid > -1 && next_prio & 0x38"], lambda x: number(x, "next_prio") & 0x38),
            (["sched_sw*: next_pid && next_comm !~ '^w' || !(prev_pid != 0)"],
             lambda x: number(x, "next_pid") and not comm(x, "next_comm").startswith("w") or not number(x, "prev_pid")),
            ([f'sched_switch: COMM == "{name}"'], lambda x: x.comm == name),
            (["sched_switch: next_pid == prev_pid + 1"], lambda x: number(x, "next_pid") == number(x, "prev_pid") + 1),
            (["sched_switch: next_pid - prev_pid < -1"], lambda x: number(x, "next_pid") - number(x, "prev_pid") < -1),
            (["sched_switch: next_pid * 3 + prev_pid % 5 >> 1 > 40 ^ 2"],
             lambda x: (number(x, "next_pid") * 3 + number(x, "prev_pid") % 5) >> 1 > 40 ^ 2),
            (["sched_switch: (next_pid & 6) == 2 || 3 <= -next_pid / 4 + 5"],
             lambda x: number(x, "next_pid") & 6 == 2 or 3 <= -(number(x, "next_pid") // 4) + 5),
            (["sched_switch: !(100 / prev_pid > 1)"], lambda x: not number(x, "prev_pid") or 100 // number(x, "prev_pid") <= 1),
            ([f'sched_switch: next_pid == "{middle:#x}"'], lambda x: number(x, "next_pid") == middle),
            (["sched_switch"], lambda x: True),
            ([r'sched_switch: next_comm =~ "^[a-z]\{1,15\}\(x\{0,2\}\)\{0,9\}"'],
             lambda x: comm(x, "next_comm")[:1].isalpha()),
            (["sched:sched_switch: CPU == 1"], lambda x: x.cpu == 1),
            (["sched/sched_switch, SCHED:sched_[s]witch ,sched : *_switch: CPU == 1"], lambda x: x.cpu == 1),
            (["SCHED_sw\\|SCHED_[s]witch: CPU == 1"], lambda x: x.cpu == 1),
    ):
        arguments = [a for t in texts for a in ("--filter", t)]
        same(part_of(test, path, *arguments), [x for x in switches if wanted(x)], texts)


def losses_are_placed(test):
    path = generated(test, "losses")
    whole = convert(test, path)
    middle = lines_of((test.dir / "part.txt").read_text())[EVENTS // 2].us
    lost = {}
    for where in ("--from", "--to"):
        result = convert(test, path, where, seconds(middle))
        text = (test.dir / "part.txt").read_text()
        lost[where] = result["lost"]
        check(0 < result["lost"] < whole["lost"] and LOST.search(text), result)
    # A loss across the border may be in either.
    check(abs(sum(lost.values()) - whole["lost"]) <= 100, f"{lost}, {whole['lost']} in the whole")


def state_is_shown(test):
    path = generated(test)
    whole = part_of(test, path)
    border = whole[len(whole) // 2].us
    kept = {}
    for line in whole:
        if line.us < border and line.name == "sched_switch":
            kept[line.cpu] = line
    wanted = sorted((x.us, x.cpu, x.details) for x in kept.values())
    convert(test, path, "--from", seconds(border), to="x.json")
    trace = json.loads((test.dir / "x.json").read_text())
    early = [x for x in lines_of(trace["systemTraceEvents"]) if x.us < border]
    check(sorted((x.us, x.cpu, x.details) for x in early) == wanted, f"{[x.text for x in early]}, not {wanted}")
    check(any("left_out" in row for row in trace["otherData"]["cpus"]), "the JSON does not say what is left out")
    # The others have it, too; a text has not.
    later = sum(x.us >= border for x in whole)
    for to in ("x.pftrace", "x.html", "x.txt"):
        result = convert(test, path, "--from", seconds(border), to=to)
        check_account(result)
        found = result["events"]
        check(found == later + (len(wanted) if to != "x.txt" else 0), f"{to}: {found} events, {later} from then on")


def reports(test):
    path = generated(test)
    whole = part_of(test, path)
    begin, end = whole[1000].us, whole[-1000].us
    r = test.run("report", "counts", "--json", "--from", seconds(begin), "--to", seconds(end), "--cpus", "1", path)
    check(r.status == 0 and "this is a part of the recording" in r.err, r)
    document = json.loads(r.out)
    found = {row["event"]: row["count"] for row in document["reports"][0]["rows"]}
    # It says of what it is, and so does a sum with a whole one.
    # A time without all digits stands for its half microsecond before and after.
    check(document["part"] == f"from {seconds(begin - 1)}500, to {seconds(end - 1)}500, CPUs 1", document["part"])
    (test.dir / "part.json").write_text(r.out)
    for names in (("counts",), ("counts,sched",), ("timehist",), ()):
        r = test.run("report", *names, "--cpus", "1", path)
        check(r.status == 0 and re.search("\na part of the recording: (.*, )?CPUs 1(, .*)?\n$", r.out), r.out[-300:])
    check("a part of the recording" not in test.run("report", path).out, "a whole recording is a part")
    (test.dir / "whole.json").write_text(test.run("report", "counts", "--json", path).out)
    (test.dir / "other.json").write_text(test.run("report", "counts", "--json", "--to", seconds(begin), path).out)
    check("part" not in json.loads((test.dir / "whole.json").read_text()), "a whole recording's report names a part")
    for files, said in ((("whole", "part"), document["part"]), (("part", "part"), document["part"]), (("other", "part"), "several parts"),
                        (("whole", "whole"), None)):
        r = test.run("report", "--json", "--merge", *(test.dir / f"{name}.json" for name in files))
        check(json.loads(r.out).get("part") == said, f"the part of {files}: {r}")
        r = test.run("report", "--merge", *(test.dir / f"{name}.json" for name in files))
        check(r.out.endswith(f"\na part of the recording: {said}\n") == (said is not None), r)
    wanted = {}
    for line in whole:
        if begin <= line.us < end and line.cpu == 1:
            wanted[f"sched:{line.name}"] = wanted.get(f"sched:{line.name}", 0) + 1
    check(found == wanted, f"{found}, not {wanted}")
    # Reports of parts add up to that of the whole.
    cuts = [seconds(whole[len(whole) * i // 4].us) for i in range(1, 4)]
    files = []
    for i, (after, until) in enumerate(zip([None, *cuts], [*cuts, None], strict=True)):
        arguments = (["--from", after] if after else []) + (["--to", until] if until else [])
        files.append(test.dir / f"{i}.json")
        files[-1].write_text(test.run("report", "counts", "--json", *arguments, path).out)
    r = test.run("report", "--json", "--merge", *files)
    check(r.status == 0, r)
    tables = [{row["event"]: (row["count"], row["bytes"]) for row in json.loads(text)["reports"][0]["rows"]}
              for text in (r.out, (test.dir / "whole.json").read_text())]
    check(tables[0] == tables[1] and len(tables[0]) > 1, f"{tables}")
    # Runs and waits of the chosen tasks are those that they have beside all others.
    for name in ("sched", "timehist"):
        every = json.loads(test.run("report", name, "--json", path).out)["reports"][0]["rows"]
        tid = every[len(every) // 2]["tid"]
        some = json.loads(test.run("report", name, "--json", "--thread", tid, path).out)["reports"][0]["rows"]
        check(some == [row for row in every if row["tid"] == tid], f"{name} of {tid}: {some}")


def marks(test):
    process = test.start("record", "--name", test.name, "-e", "sched", "-t", "60s", "-o", "x.traced")
    test.wait_for_recording(test.name)
    for arguments in (["before"], ["here"], ["--begin", "inside"], ["there"], ["--begin", "slice"], ["within"],
                      ["--end", "slice"], ["late"]):
        r = test.run("mark", *arguments)
        check(r.status == 0, r)
    process.send_signal(2)
    r = test.finish(process)
    check(r.status == 0, r)
    r = test.run("convert", "x.traced", "x.txt", "--from", "here", "--to", "mark:there")
    check(r.status == 0 and "left out" in r.err, r)
    found = [x.details for x in lines_of((test.dir / "x.txt").read_text()) if x.name == "tracing_mark_write"]
    check(len(found) == 2 and found[0].endswith("|here") and "inside" in found[1], found)
    # A slice has its name at its begin and at its end.
    r = test.run("convert", "x.traced", "x.txt", "--from", "slice", "--to", "slice")
    check(r.status == 0, r)
    found = [x.details for x in lines_of((test.dir / "x.txt").read_text()) if x.name == "tracing_mark_write"]
    check(len(found) == 2 and "|slice|" in found[0] and found[1].endswith("|within"), found)
    r = test.run("convert", "x.traced", "x.txt", "--from", "late", "--to", "late")
    check(r.status == 1 and "no mark of the recording after --from has the name 'late'" in r.err, r)


def slices_are_open(test):
    program = test.build / "tests" / "integration" / "marks_rotate"
    env = test.environment(TRACED_MARKS=str(test.daemon.socket.parent))
    r = test.run("record", "--name", test.name, "-e", "sched", "-o", "x.traced", "--", program, env=env)
    check(r.status == 0, r)
    r = test.run("convert", "x.traced", "whole.json")
    check(r.status == 0, r)
    # The recording may begin and end long before and after it.
    whole = [e["ts"] for e in json.loads((test.dir / "whole.json").read_text())["traceEvents"] if e.get("name") == "whole"]
    since, until = (f"{(ts + off) / 1e6:.6f}" for ts, off in ((whole[1], 300_000), (whole[2], -300_000)))
    r = test.run("convert", "--json", "x.traced", "x.json", "--from", since, "--to", until)
    check(r.status == 0, r)
    warning = next(w for w in json.loads(r.out)["warnings"] if "left out" in w)
    check(not re.search(r"\b0 marks", warning), warning)
    begin, end = (float(t) for t in re.search(r"from (\S+), to (\S+)\)", warning).groups())
    events = [e for e in json.loads((test.dir / "x.json").read_text())["traceEvents"] if e.get("name") == "whole"]
    check([e["ph"] for e in events] == ["B", "B"] and len({e["tid"] for e in events}) == 2, events)
    check(all(abs(e["ts"] - begin * 1e6) < 1 for e in events), f"{events}, not at {begin}")
    times = [e["ts"] for e in json.loads((test.dir / "x.json").read_text())["traceEvents"] if e.get("name") == "round"]
    check(times and begin * 1e6 - 1 <= min(times) and max(times) < end * 1e6, f"{min(times)} to {max(times)}")
    # A report guesses nothing: what is open at an edge is no whole slice.
    r = test.run("report", "marks", "--json", "--from", since, "x.traced")
    check(r.status == 0 and not any(row["slice"] == "whole" and row["count"] for row in json.loads(r.out)["reports"][0]["rows"]), r)


def errors(test):
    path = generated(test, events=2000)
    for arguments, status, said in (
            (["--from", "1.2.3"], 2, "no time in a recording"),
            (["--from", "+x"], 2, "no time in a recording"),
            (["--to", "mark:"], 2, "no time in a recording"),
            (["--from", "nowhere"], 1, "no mark of the recording has the name 'nowhere'"),
            (["--from", "+2ms", "--to", "+1ms"], 1, "ends before it begins"),
            (["--from", "+1h"], 1, "its events are from 100.0000"),
            (["--thread", "x"], 2, "not a thread id"),
            (["--cpus", "x"], 2, "--cpus"),
            (["--filter", "sched_switch: prev_prio <"], 2, "it ends early"),
            (["--filter", "sched_switch: prev_prio == x"], 1, "none of these events has a number field 'x'"),
            (["--filter", "sched_switch: 1 + nonsense < 3"], 1,
             "a number field 'nonsense'\n      sched_switch: 1 + nonsense < 3\n                        ^\n"),
            (["--filter", "next_prio < 3"], 2, "the names of events should be here"),
            (["-e", "sched", "-f", "next_prio < 3"], 2, "the names of events should be here"),
            (["--filter", "next_prio"], 1, "no event found"),
            (["--filter", r'sched_switch: next_comm =~ "\(x\{32767\}\)\{0,32767\}"'], 2, "this has too many repetitions"),
            (["--filter", r'sched_switch: next_comm !~ "x\{0,32767\}"'], 2, "this has too many repetitions"),
            (["--filter", r"sched_\(x\{32767\}\)\{32767\}: 1"], 1, "no event found"),
            (["--filter", "sched:next_prio: 1"], 1, "no event found"),
            (["--filter", "sched_switch: COMM == \"a:b\" && x:"], 2, "an operator should be here"),
            (["--filter", "sched_switch, no_such_event: pid < 3"], 1, "no event found"),
            (["--filter", "sched_switch: next_comm < \"x\""], 2, "a number should be here"),
            (["--filter", "sched_switch: next_comm < 3"], 1, "a number field 'next_comm'"),
            (["--filter", "sched_switch: prev_pid || next_pid && prev_prio"], 2, "'&&' after '||' needs brackets"),
            (["-e", "no_such_event"], 1, "not one event of the recording is in that part"),
    ):
        r = test.run("convert", path, "x.txt", *arguments)
        check(r.status == status and said in r.err, f"{arguments}: {r}")
        check("x.txt" not in test.files(), f"{arguments}: {test.files()}")
        # Tasks follow from all events.
        if said.startswith("not one event"):
            continue
        r = test.run("report", "sched", path, *arguments)
        check(r.status == status and said in r.err and not r.out, f"report {arguments}: {r}")
    # A part that is longer than the recording.
    for late, short in (("-10s", True), ("-1h", True), ("-10us", False)):
        for command in (["convert", path, "x.txt"], ["report", "counts", path]):
            r = test.run(*command, "--from", late)
            said = "the recording's events span less than " in r.err and "none is left out before them" in r.err
            check(r.status == 0 and said == short and "(from " in r.err, f"{late}: {r}")
    (test.dir / "x.txt").unlink()
    # Rows that come as the recording is read wait for an event of the part, up to 100,000.
    for events, wrong in ((200_000, ["--filter", "sched_switch: prev_prio == 7"]), (400_000, ["-e", "no_such_event"])):
        path = generated(test, events=events)
        for form in ([], ["--csv"], ["--json"]):
            r = test.run("report", "timehist", path, *wrong, *form)
            check(r.status == 1 and not r.out and "not one event" in r.err, f"timehist {wrong}: {r}")
    r = test.run("report", "timehist", path, "--filter", "sched_switch: prev_prio == 7")
    check(r.status == 1 and r.out and "not one event" in r.err, f"more rows than wait: {r.status}, {r.err}")
    whole, part = (test.run("report", "timehist", path, *only).out for only in ([], ["-e", "sched_waking"]))
    part, said = part[:len(whole)], part[len(whole):]
    check(said == "a part of the recording: events sched_waking\n", said)
    check(len(whole) > 1_000_000 and part == whole, f"{len(part)} of {len(whole)} bytes")
    path = generated(test, events=2000)
    # A part stays empty although something ran before it.
    r = test.run("convert", path, "x.json", "--from", "+1h")
    check(r.status == 1 and "not one event" in r.err and "x.json" not in test.files(), r)
    for to in ("x.traced", "x.dat"):
        r = test.run("convert", path, to, "--to", "+1ms")
        check(r.status == 1 and "keep the whole recording" in r.err and to not in test.files(), r)


def main():
    test = Test("part")
    test.case("parts put together are the whole", parts_are_the_whole)
    test.case("times from the begin and the end", relative_times)
    test.case("CPUs, tasks and events", wishes)
    test.case("filters", filters)
    test.case("losses are placed", losses_are_placed)
    test.case("who runs at its begin", state_is_shown)
    test.case("reports", reports)
    test.case("marks as times", marks, daemon=True)
    test.case("slices that are open", slices_are_open, daemon=True)
    test.case("errors", errors)
    test.end()


if __name__ == "__main__":
    main()
