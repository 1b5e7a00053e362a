#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl report as a command: its inputs and forms, and reports of recordings that just ended."""

import csv
import io
import json
import os
import re
import shutil
import subprocess

from fleet_data import as_lines, packed
from harness import Test, check, chunks, need, without_others

SUBBUFS = 10  # enum chunk_type
CHILDREN = 20


def table_of(text):
    """The rows of the first table of a text, as dictionaries; columns are two spaces apart."""
    lines = text.splitlines()
    names = lines[1].split()
    return [dict(zip(names, line.split(), strict=False)) for line in lines[2:] if line and "rows are shown" not in line]


def recorded(test):
    r = test.run("record", "-q", "--name", test.name, "-e", "sched", "-o", "x.traced", "--", "sh", "-c",
                 f"for i in $(seq {CHILDREN}); do true; /bin/true; done")
    check(r.status == 0, r)


def forms(test):
    """Text, JSON and CSV have the same rows and numbers."""
    recorded(test)
    text = test.run("report", "sched", "x.traced")
    check(text.status == 0 and text.err == "", text)
    document = json.loads(test.run("report", "sched", "--json", "x.traced").out)
    check(document["format"] == "traced-report" and document["version"] == 1, document)
    rows = document["reports"][0]["rows"]
    table = list(csv.DictReader(io.StringIO(test.run("report", "sched", "--csv", "x.traced").out)))
    check(len(rows) == len(table) == len(table_of(text.out)) > CHILDREN, f"{len(rows)}, {len(table)}")
    for a, b in zip(rows, table, strict=True):
        check((a["task"], str(a["tid"]), str(a["runtime_ns"])) == (b["task"], b["tid"], b["runtime_ns"]), f"{a} {b}")
        check((str(a["delay"]["max_ns"]) if a["delay"]["count"] else "") == b["delay_max_ns"], f"{a} {b}")
        check(sum(n for _, n in a["delay"]["buckets"]) == a["delay"]["count"], a)


def first_page(test):
    """Without a name: how much there is, then the tables of the first questions."""
    recorded(test)
    r = test.run("report", "x.traced")
    check(r.status == 0 and re.match(r"\S+ \S+, [0-9]+ events, none lost\n\ncpus\n", r.out), r)
    check([line for line in r.out.splitlines() if line.isalpha()] == ["cpus", "delays", "sched"], r)
    page = json.loads(test.run("report", "--json", "x.traced").out)["reports"]
    alone = {name: json.loads(test.run("report", name, "--json", "--top", "10", "x.traced").out)["reports"][0]["rows"]
             for name in ("cpus", "delays", "sched")}
    check({table["name"]: table["rows"] for table in page} == alone, "the page's rows are not those of the reports")


def choices(test):
    recorded(test)
    rows = json.loads(test.run("report", "sched", "--json", "--by", "comm", "x.traced").out)["reports"][0]["rows"]
    trues = [row for row in rows if row["comm"] == "true"]
    # A busy kernel leaves out switches: such runs are cut.
    check(len(trues) == 1 and trues[0]["runs"] + trues[0]["cut"] >= CHILDREN, trues)
    r = test.run("report", "sched", "--sort", "delay-p99", "--top", "3", "x.traced")
    check(len(table_of(r.out)) == 3 and "3 of " in r.out, r)
    for words, why in ((("counts",), "bytes, which sorts the table counts, is no time\n  hint: it has no column of times"),
                       (("sched", "--sort", "runs"), "is no time\n  hint: --sort by a time: runtime, delay"),
                       (("runq",), "no column sorts the table runq")):
        r = test.run("report", *words, "--min", "1ms", "x.traced")
        check(r.status == 1 and why in r.err, f"{words}: {r}")
    rows = json.loads(test.run("report", "sched", "--json", "--min", "100us", "x.traced").out)["reports"][0]["rows"]
    check(rows and all(row["runtime_ns"] >= 100_000 for row in rows), rows)


def words(test):
    """The recording may come first. The sums of timehist are the report sched."""
    recorded(test)
    wanted = test.run("report", "sched", "x.traced").out
    for arguments in (["x.traced", "sched"], ["timehist", "-s", "x.traced"], ["x.traced", "timehist", "--summary"]):
        r = test.run("report", *arguments)
        check(r.status == 0 and r.out == wanted, f"{arguments}: {r}")
    data = (test.dir / "x.traced").read_bytes()
    r = test.run("report", "-", "sched", stdin=data)
    check(r.status == 0 and r.out == wanted, f"a pipe: {r}")
    for arguments in (["runq", "-s", "x.traced"], ["timehist,sched", "-s", "x.traced"], ["-s", "x.traced"]):
        r = test.run("report", *arguments)
        check(r.status == 2 and "--summary is of the report timehist" in r.err, f"{arguments}: {r}")
    r = test.run("report", "timehist", "--summary")
    check(r.status == 2 and "the recording is missing" in r.err, r)
    r = test.run("report", "functions", "x.traced")
    check(r.status == 1 and "no events for the report functions" in r.err, r)
    for arguments in (["report", "sched", "x.traced"], ["convert", "x.traced", "x.txt"]):
        r = test.run(*arguments, "--comm", "no-such-task")
        check(r.status == 1 and "not one event" in r.err and "its events are from" not in r.err, r)


def chosen_events(test):
    """Without -e, what the reports need is recorded; with it, what is missing is told before."""
    r = test.run("record", "-q", "--name", test.name, "--report", "timer,runq", "-t", "200ms", "-o", "x.traced")
    check(r.status == 0 and r.out.startswith("timer\n") and "\nrunq\n" in r.out, r)
    counts = json.loads(test.run("report", "counts", "--json", "x.traced").out)["reports"][0]["rows"]
    systems = {row["event"].partition(":")[0] for row in counts}
    check({"timer", "sched"} <= systems and not systems & {"irq", "block"}, systems)
    for event in "irq", "power":
        r = test.run("record", "--name", test.name, "--report", "sched", "-e", event, "-t", "100ms")
        check("there will be no events for the report sched\n  hint: add -e sched\n" in r.err, r)
    for event in ("sched", "sched:sched_switch", "sched_switch", "s*:sched_switch"):
        r = test.run("record", "--name", test.name, "--report", "sched", "-e", event, "-t", "100ms")
        check(r.status == 0 and "there will be no" not in r.err, f"{event}: {r}")


def inputs(test):
    recorded(test)
    wanted = test.run("report", "sched", "x.traced").out
    data = (test.dir / "x.traced").read_bytes()
    check(test.run("report", "sched", "-", stdin=data).out == wanted, "a pipe differs")
    subprocess.run(["gzip", "-k", test.dir / "x.traced"], check=True)
    check(test.run("report", "sched", "x.traced.gz").out == wanted, "gzip differs")
    r = test.run("convert", "-q", "x.traced", "x.dat")
    check(r.status == 0, r)
    check(test.run("report", "sched", "x.dat").out == wanted, "a .dat differs")
    with open(test.dir / "x.traced", "rb") as file:
        *_, (at, length) = [(file.tell(), length) for kind, _, length in chunks(file) if kind == SUBBUFS]
    # In the last events, and behind them.
    for size in (at + length // 2, len(data) - 1):
        (test.dir / "cut.traced").write_bytes(data[:size])
        r = test.run("report", "sched", "cut.traced")
        check(r.status == 3 and "INCOMPLETE" in r.err, r)
    # Before the formats of events.
    (test.dir / "cut.traced").write_bytes(data[:20000])
    for name in ("sched", "timehist"):
        r = test.run("report", name, "cut.traced")
        check(r.status == 1 and f"the stream is incomplete: the recording has no events for the report {name}\n" in r.err
              and "tracectl record" not in r.err, r)


def without_a_file(test):
    r = test.run("record", "--name", test.name, "--report", "sched", "-e", "sched", "-t", "300ms")
    check(r.status == 0 and r.out.startswith("sched\n") and len(table_of(r.out)) > 1, r)
    check(test.files() == [], f"left {test.files()}")
    r = test.run("record", "-q", "--name", test.name, "--report", "sched", "-e", "sched", "-t", "300ms", "-o", "y.traced")
    check(r.status == 0 and r.out == test.run("report", "sched", "y.traced").out, r)


def of_a_session(test):
    name = f"{test.name}-ring"
    r = test.run("start", "-q", "--ring", "--name", name, "-e", "sched")
    check(r.status == 0, r)
    for _ in range(CHILDREN):
        subprocess.run(["true"], check=True)
    first = test.run("report", "sched", "--session", name, "--json", "--by", "comm")
    check(first.status == 0, first)
    runs = {row["comm"]: row["runs"] + row["cut"] for row in json.loads(first.out)["reports"][0]["rows"]}
    check(runs.get("true", 0) >= CHILDREN, runs)
    check(name in test.run("list").out, "the session ended")
    check(test.run("cancel", "-q", name).status == 0, "cancel")


def of_an_ordinary_session(test):
    """What it has up to now, and it goes on: later all is in its file."""
    name = f"{test.name}-plain"
    r = test.run("start", "-q", "--name", name, "-e", "sched", "-e", "timer:timer_start")
    check(r.status == 0, r)
    seen = 0
    for _ in range(2):
        for _ in range(CHILDREN):
            subprocess.run(["true"], check=True)
        r = test.run("report", "sched", "--session", name, "--json", "--by", "comm")
        check(r.status == 0 and r.err == "", r)
        runs = {row["comm"]: row["runs"] + row["cut"] for row in json.loads(r.out)["reports"][0]["rows"]}
        check(runs.get("true", 0) >= seen + CHILDREN, f"{runs.get('true')} after {seen}")
        seen = runs["true"]
    r = test.run("snapshot", "-q", name, "-o", "part.json")
    check(r.status == 0, r)
    part = json.loads((test.dir / "part.json").read_text("utf-8"))["otherData"]
    check(part["ended"] == "snapshot" and not any(map(without_others, part.get("warnings", []))), part)
    r = test.run("report", "timer", "--session", name)
    check(r.status in (0, 3) and r.err == "" and "0x" not in r.out, r)
    check(test.run("stop", "-q", name, "-o", "all.traced").status == 0, "stop")
    r = test.run("report", "sched", "--json", "--by", "comm", "all.traced")
    check(r.status == 0 and r.err == "", r)
    runs = {row["comm"]: row["runs"] + row["cut"] for row in json.loads(r.out)["reports"][0]["rows"]}
    check(runs["true"] >= seen, runs)
    # Only a running one.
    r = test.run("report", "sched", "--session", name)
    check(r.status == 1 and "there is no session" in r.err, r)


def with_a_page(test):
    """The recording is written in any form; a page has the tables."""
    for name, tables in (("x.html", True), ("x.json", False), ("x.pftrace", False)):
        r = test.run("record", "--name", test.name, "-e", "sched", "-t", "100ms", "--report", "sched,runq", "-o", name)
        check(r.status == 0 and r.out.startswith("sched\n") and "\nrunq\n" in r.out, r)
        check(name in test.files() and f"{name}: " in r.err, f"{test.files()}: {r}")
        text = (test.dir / name).read_bytes()
        check((b'"report":{"format":"traced-report"' in text) == tables, f"{name}: {text[-2000:]}")
    r = test.run("record", "--name", test.name, "-e", "sched", "-t", "100ms", "--report", "sched", "--top", "1",
                 "--by", "comm", "--json", "-o", "z.json")
    rows = json.loads(r.out)["reports"][0]["rows"]
    check(r.status == 0 and len(rows) == 1 and "comm" in rows[0] and "z.json" in test.files(), r)
    # A report of which there are no events is missing, and the page is not.
    r = test.run("record", "--name", test.name, "-e", "irq", "-t", "100ms", "--report", "sched", "-o", "y.html")
    check(r.status == 3 and "no events for the report sched" in r.err, r)
    check("y.html" in test.files(), test.files())


def refusals(test):
    recorded(test)
    for arguments, status, says in (
            (["report"], 2, "the recording is missing"),
            (["report", "nothing", "x.traced"], 2, "there is no report 'nothing'"),
            (["report", "sched"], 1, "name a recording, too"),
            (["report", "nothing", "runq", "none", "x.traced"], 2, "no report 'nothing'\n    there is no report 'none'\n"),
            (["report", "nothing", "gone.traced"], 2, "gone.traced: No such file"),
            (["report", "net", "x.traced", "gone.traced", "lost.traced"], 1,
             "gone.traced: No such file or directory\n    lost.traced: No such file"),
            (["convert", "gone.traced", "x.traced", "lost.traced", "-o", "y.txt"], 1,
             "gone.traced: No such file or directory\n    lost.traced: No such file"),
            (["report", "sched", "--by", "color", "x.traced"], 2, "it is made by"),
            (["report", "sched", "--sort", "color", "x.traced"], 1, "its columns are task"),
            (["report", "sched", "--top", "0", "x.traced"], 2, "not a number of rows"),
            (["report", "sched", "--format", "xml", "x.traced"], 2, "text, json and csv"),
            (["report", "sched", "--csv", "--json", "x.traced"], 2, "--json and --csv exclude each other"),
            (["report", "sched", "--format", "text", "--json", "x.traced"], 2, "--json and --format text exclude each other"),
            (["record", "--report", "sched", "--csv", "--json", "-t", "1s"], 2, "--json and --csv exclude each other"),
            (["report", "sched", "--session", "none-such", "x.traced"], 2, "x.traced and --session exclude each other"),
            (["report", "--session", "none-such", "-"], 2, "- and --session exclude each other"),
            (["report", "sched", "--session", "none-such"], 1, "no traced is running"),
            (["record", "--report", "nothing", "-t", "1s"], 2, "there is no report"),
            (["record", "--report", "sched", "-t", "1s", "--format", "json"], 2, "name it: -o FILE"),
            (["record", "--report", "sched", "-t", "1s", "-o", "-", "--format", "txt"], 2, "both write to standard output"),
            (["record", "--sort", "runs", "-t", "1s"], 2, "record: --sort is of a report, and there is none"),
            (["report", "--merge", "a.json", "--from", "+1s"], 2, "exclude each other"),
            (["report", "sched", "x.traced", "x.traced"], 2, "one recording only: x.traced, or x.traced\n  hint: 'report net'"),
            (["record", "--report", "critpath", "-t", "1s"], 2, "hint: name the thread: --task TID|NAME\n"),
            (["convert", "--report", "sched", "x.traced", "y.json"], 2, "write a .html")):
        r = test.run(*arguments)
        check(r.status == status and says in r.err and not r.out, f"{arguments}: {r}")
    r = test.run("record", "-q", "--name", test.name, "-e", "irq", "-t", "100ms", "-o", "irq.traced")
    check(r.status == 0, r)
    # All that was not recorded ends alike. The hint makes a file that a report can read.
    for name, options in (("sched", "-e sched"), ("block", "-e block"), ("functions", "-p function_graph"),
                          ("timerlat", "-p timerlat"), ("hist", "--hist sched_switch:keys=next_comm")):
        r = test.run("report", name, "irq.traced")
        check(r.status == 1 and not r.out and f"no events for the report {name}\n" in r.err, r)
        check(f"tracectl record -t 10s {options} -o out.traced\n" in r.err, r)
    r = test.run("report", "sched", "irq", "block", "irq.traced")
    check(r.status == 1 and "for the report sched\n    the recording has no events for the report block\n" in r.err and
          "record -t 10s --report sched,block -o out.traced\n" in r.err and not r.out, r)
    # A table is empty if its events were recorded and did not happen.
    r = test.run("record", "-q", "--name", test.name, "-e", "sched:sched_process_hang", "-e", "block:block_rq_error", "-e",
                 "sched:sched_switch", "-f", "prev_pid == 1 && next_pid == 1", "-e", "raw_syscalls", "-f", "id == 99999", "-t",
                 "100ms", "-o", "none.traced")
    check(r.status in (0, 3), r)
    # Not marks: other tests make some.
    for name in "syscalls", "sched":
        r = test.run("report", name, "none.traced")
        check("no rows: nothing of this kind was recorded\n" in r.out and r.status in (0, 3), r)


def merging(test):
    """Two recordings' reports, added up."""
    parts = []
    for name in ("a", "b"):
        recorded(test)
        r = test.run("report", "sched,runq,counts", "--json", "--by", "comm", "x.traced")
        check(r.status == 2 and "counts is not made by" in r.err, r)
        r = test.run("report", "sched,runq", "--json", "--by", "comm", "x.traced")
        (test.dir / f"{name}.json").write_text(r.out)
        parts.append(json.loads(r.out))
    r = test.run("report", "--merge", "a.json", "b.json", "--json")
    check(r.status == 0, r)
    merged = json.loads(r.out)
    check(merged["events"] == sum(part["events"] for part in parts), merged["events"])
    for i, key in ((0, ("comm",)), (1, ("comm", "from_ns"))):
        sums = {}
        for part in parts:
            for row in part["reports"][i]["rows"]:
                of = sums.setdefault(tuple(row[k] for k in key), {"count": 0, "buckets": {}})
                of["count"] += row["runs"] if i == 0 else row["count"]
                for bucket, count in row.get("delay", {"buckets": []})["buckets"]:
                    of["buckets"][bucket] = of["buckets"].get(bucket, 0) + count
        rows = merged["reports"][i]["rows"]
        check(len(rows) == len(sums), f"{len(rows)}, {len(sums)}")
        for row in rows:
            of = sums[tuple(row[k] for k in key)]
            check(of["count"] == (row["runs"] if i == 0 else row["count"]), f"{row}: {of}")
            check(dict(row.get("delay", {"buckets": []})["buckets"]) == of["buckets"], f"{row}: {of}")
    check(sum(row["share_permille"] for row in merged["reports"][1]["rows"] if row["comm"] == "true") >= 950, "shares")
    text = test.run("report", "--merge", "a.json", "--merge", "b.json", "--top", "2")
    check(text.status == 0 and text.out.count("rows are shown") == 2, text)
    piped = test.run("report", "--merge", "a.json", "-", stdin=(test.dir / "b.json").read_bytes())
    check(piped.out.replace("standard input: ", "b.json: ") == test.run("report", "--merge", "a.json", "b.json").out, piped)
    # Compressed, also by a pipe.
    plain = test.run("report", "--merge", "a.json", "b.json").out
    subprocess.run(["gzip", "-k", test.dir / "b.json"], check=True)
    zipped = test.run("report", "--merge", "a.json", "b.json.gz")
    check(zipped.status == 0 and zipped.out.replace("b.json.gz: ", "b.json: ") == plain, zipped)
    zipped = test.run("report", "--merge", "-", "a.json", stdin=(test.dir / "b.json.gz").read_bytes())
    check(zipped.status == 0 and zipped.out == test.run("report", "--merge", "b.json", "a.json").out.replace(
        "b.json: ", "standard input: "), zipped)
    # The last eight bytes are the checksum and the length.
    for missing in (100, 8, 1):
        (test.dir / "cut.json.gz").write_bytes((test.dir / "b.json.gz").read_bytes()[:-missing])
        r = test.run("report", "--merge", "a.json", "cut.json.gz")
        check(r.status == 1 and "cut.json.gz: it is cut" in r.err and not r.out, f"{missing}: {r}")
    # A board's rows by a pipe, too.
    need(shutil.which("zstd"), "zstd is not installed")
    rows = as_lines((test.dir / "b.json").read_bytes())
    (test.dir / "b.zst").write_bytes(packed(rows))
    piped = test.run("report", "--merge", "a.json", "-", stdin=packed(rows))
    check(piped.status == 0 and piped.out.replace("standard input: ", "b.zst: ") ==
          test.run("report", "--merge", "a.json", "b.zst").out, piped)
    (test.dir / "j.json.zst").write_bytes(packed((test.dir / "b.json").read_bytes()))
    r = test.run("report", "--merge", "j.json.zst")
    check(r.status == 1 and "it is no report: line 1\n  hint: a .zst has rows" in r.err and not r.out, r)
    r = test.run("report", "--merge", "-", stdin=rows)
    check(r.status == 1 and "it has no reports" in r.err and "rows are read compressed: as .ndjson.zst" in r.err, r)


def merged_without_names(test):
    """What can't be added up is left out, and told."""
    recorded(test)
    for name in "a.json", "b.json":
        (test.dir / name).write_text(test.run("report", "--json", "x.traced").out)
    r = test.run("report", "--json", "--merge", "a.json", "b.json")
    check(r.status == 0, r)
    (sched,) = (t for t in json.loads(r.out)["reports"] if t["name"] == "sched")
    before = json.loads((test.dir / "a.json").read_text())["reports"]
    check([t["name"] for t in before][:2] == ["cpus", "delays"], before)
    (once,) = (t for t in before if t["name"] == "sched")
    check(sum(row["runs"] for row in sched["rows"]) == 2 * sum(row["runs"] for row in once["rows"]) > 0, sched)
    check("a.json: left out, as it can't be merged: cpus, delays" in r.out, r)


def bad_merges(test):
    recorded(test)
    for name, by in (("a", "comm"), ("b", "cpu")):
        (test.dir / f"{name}.json").write_text(test.run("report", "sched", "--json", "--by", by, "x.traced").out)
    (test.dir / "t.json").write_text(test.run("report", "timehist", "--json", "x.traced").out)
    (test.dir / "cut.json").write_text((test.dir / "a.json").read_text()[:-300])
    (test.dir / "long.json").write_text(json.dumps({"comment": "x" * 5000}))
    for arguments, status, says in (
            (["a.json", "b.json"], 1, "b.json: its report sched has a row by cpu, and that of a file before it by comm"),
            (["a.json", "x.traced"], 1, "x.traced: at byte 0: not the beginning of a JSON value"),
            (["t.json"], 1, "its report timehist can't be merged"),
            (["cut.json"], 1, "cut.json: it ends in the middle"),
            (["none.json"], 1, "none.json: No such file"),
            (["a.json", "sched"], 1, "sched: No such file or directory\n  hint: --merge shows all reports"),
            (["long.json"], 1, "a string longer than 4096 bytes\n  hint: tracectl report --json writes reports"),
            (["none.json", "a.json", "cut.json", "gone.json"], 1, "none.json: No such file"),
            (["none.json", "a.json", "cut.json", "gone.json"], 1, "gone.json: No such file"),
            (["none.json", "a.json", "cut.json", "gone.json"], 1, "cut.json: it ends in the middle"),
            (["t.json", "a.json", "b.json", "cut.json"], 1, "b.json: its report sched has a row by cpu"),
            (["t.json", "a.json", "b.json", "cut.json"], 1, "cut.json: it ends in the middle"),
            (["/dev/zero"], 1, "is a device"),
            (["a.json", "--by", "cpu"], 2, "--merge and --by exclude each other"),
            (["a.json", "--sort", "color"], 1, "its columns are comm")):
        r = test.run("report", "--merge", *arguments)
        check(r.status == status and says in r.err and not r.out, f"{arguments}: {r}")


def by_root(test):
    """Root's report is made by another user, who can't write."""
    recorded(test)
    os.chmod(test.dir / "x.traced", 0o600)
    check(test.run("report", "sched", "x.traced").status == 0, "a file that only root can read")
    # The result of a process that found nothing is empty.
    subprocess.run([test.build / "tests/unit/generate", "functions", "2000", test.dir / "f.traced"], check=True)
    (test.dir / "f.json").write_text(test.run("report", "--json", "f.traced").out)
    r = test.run("report", "--merge", "f.json")
    check(r.status == 0 and not r.err, r)


def of_nothing(test):
    """Said once, of the recording: it has no file."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        for output in ([], ["-o", "x.traced"]):
            r = test.run("record", "--name", test.name, "-t", "100ms", "-e", "sched:sched_process_exec", "-P",
                         sleeper.pid, "--report", "counts", *output)
            check(r.status == 3 and r.err.count("NOT ONE EVENT") == 1 and r.err.count("hint: no selected") == 1, r)
            check("/dev/fd" not in r.err and (output or "the recording: NOT ONE EVENT" in r.err), r)
        sleeper.kill()


def main():
    test = Test("report_command")
    test.case("forms", forms)
    test.case("first page", first_page)
    test.case("choices", choices)
    test.case("words", words)
    test.case("chosen events", chosen_events)
    test.case("inputs", inputs)
    test.case("without a file", without_a_file)
    test.case("of nothing", of_nothing)
    test.case("of a session", of_a_session, daemon=True)
    test.case("of an ordinary session", of_an_ordinary_session, daemon=True)
    test.case("with a page", with_a_page)
    test.case("refusals", refusals)
    test.case("merging", merging)
    test.case("merged without names", merged_without_names)
    test.case("bad merges", bad_merges)
    test.case("by root", by_root)
    test.end()


if __name__ == "__main__":
    main()
