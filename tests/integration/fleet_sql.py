#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""contrib/fleet: parquet.sql makes rows of boards' reports, and each query finds what was put there. DuckDB comes from
npm."""

import json
import re
import shutil
import subprocess

from fleet_data import HIST, as_lines, packed, put, put_rows, reports
from harness import Test, check, need

PACKAGES = ["@duckdb/node-api@1.4.4-r.1", "hyparquet@1.33.0", "hyparquet-compressors@1.1.2"]
# Distributions are exact to 1 %.
EXACT = 0.01


def duckdb(test):
    """The folder with DuckDB."""
    folder = test.build / "duckdb"
    need(shutil.which("npm") and shutil.which("node"), "npm and node are needed")
    if not (folder / "node_modules/hyparquet").is_dir():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text("{}")
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder,
                              check=False, capture_output=True)
        need(done.returncode == 0, f"npm can't fetch {PACKAGES}")
    return folder


def run(test, sql):
    done = subprocess.run(["node", test.source / "tests/integration/duckdb.mjs", test.duckdb], cwd=test.dir / "results",
                          input=sql.encode(), capture_output=True, check=False, timeout=120)
    check(done.returncode == 0, f"{sql[-300:]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return json.loads(done.stdout)


def query(test, name):
    contrib = test.source / "contrib/fleet"
    rows = run(test, (contrib / "rows.sql").read_text() + (contrib / f"queries/{name}.sql").read_text())
    return [{key: number(value) for key, value in row.items()} for row in rows]


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def origin(day, kernel="6.1.0", arch="arm64", groups=(), **labels):
    return {"started": f"2026-11-{day}T12:00:00Z", "kernel": kernel, "arch": arch, "groups": list(groups),
            "labels": labels}


def task(name, delay, tid=1, runtime=1000, **more):
    return {"task": name, "tid": tid, "runtime_ns": runtime, "runs": 1, "delay": delay, **more}


def fill(folder):
    """Six boards of two days. door-6 is slow on the second one, door-5 is silent on it, door-4 loses events, and door-3
    has an old kernel."""
    for day, order in ((27, 16), (28, 17)):
        for n in range(1, 7):
            if (day, n) == (28, 5):
                continue
            slow = 50 if (day, n) == (28, 6) else 1
            sched = [task("door", {10000 * slow: 99, 20000 * slow: 2}, runtime=5000 + n, migrations=3 * n),
                     task("kworker/0:1", {1000 + n: 50}, tid=2, runtime=900)]
            irq = [{"name": "eth0", "kind": "irq", "count": 1000 if n == 2 else 10, "total_ns": 10**7 * n,
                    "time": {2000: 9, 90000 * n: 1}},
                   {"name": "NET_RX", "kind": "softirq", "count": 5, "total_ns": 0, "time": {500: 5}, "raise": {3000: 5}}]
            syscalls = [{"call": "openat", "calls": 10, "errors": n if n > 2 else 0, "time": {5000: 10}},
                        {"call": "futex", "calls": 5, "errors": 0, "time": {2_000_000: 5}}]
            block = [{"device": "179:0", "operation": "R", "count": 4, "errors": 2 if n == 1 else 0,
                      "time": {3_000_000 if n == 1 else 100_000: 4}}]
            timer = [{"function": "tick", "kind": "hrtimer", "count": 7, "late": {7000: 6, 70000: 1}, "run": {100: 7}},
                     {"function": "old", "kind": "timer", "count": 1}]
            work = [{"function": "flush", "count": 2, "total_ns": 400, "run": {200: 2}, "delay": {10: 2}, "cut": int(n == 4)}]
            put_rows(folder, f"door-{n}",
                reports({"sched": sched, "irq": irq, "syscalls": syscalls, "block": block, "timer": timer,
                         "workqueue": work, HIST: [{"next_comm": "door", "hitcount": 3}]},
                        events=1000, lost=250 if n == 4 else 0, incomplete=n == 4,
                        origin=origin(day, "5.10.0" if n == 3 else "6.1.0", groups=["canary"] if n == 6 else ["rest"],
                                      type="lift" if n == 6 else "door")),
                order=order)
    # A board that answers without any row, and says that it is another one.
    put_rows(folder, "door-7", reports({}, origin={**origin(28), "board": "door-1"}))


def near(value, expected):
    return abs(value - expected) <= EXACT * expected


def queries(test):
    results = test.dir / "results"
    results.mkdir()
    fill(results)
    test.duckdb = duckdb(test)
    # Again: nothing is there twice.
    for _ in range(2):
        skipped = run(test, (test.source / "contrib/fleet/parquet.sql").read_text())
        check(not skipped, f"skipped: {skipped}")
    check((results / "rows/report=sched/fleet=doors/serial=17").is_dir(), "no partition")
    names = {path.stem for path in (test.source / "contrib/fleet/queries").glob("*.sql")}
    known = {name: f for name, f in globals().items() if name in names}
    check(len(names) >= 20 and names == set(known), f"no check of {names - set(known)}")
    wrong = []
    for name, expect in known.items():
        rows = query(test, name)
        if not expect(rows):
            wrong.append(f"{name}: {rows}")
    check(not wrong, "\n".join(wrong))


def one_is_damaged(test):
    """It is skipped, and named. Values of other types are null, the rest of their file counts."""
    results = test.dir / "results"
    results.mkdir()
    fill(results)
    good = reports({"sched": [task("odd", {1000: 1}), task("odd", {1000: 1}, runtime="long")]}, origin=origin(28))
    put_rows(results, "odd", good.replace(b'"events": 1000', b'"events": {}'), order=18)
    lines = as_lines(good)
    first, *_, last = lines.splitlines(keepends=True)
    damaged = [put(results, f"damaged-{n:02}", packed(data), order=18, suffix="ndjson.zst") for n, data in enumerate(
        (lines[:-40], b"", b"\n", b"[]", b'"x"', b"\xff" + lines, b"[" * 100000, lines + b"}", lines + last, first + lines,
         lines.replace(b"traced-report", b"other"), lines.replace(b'"odd"', b'"\xff"'), lines[len(first):]))]
    test.duckdb = duckdb(test)
    skipped = run(test, (test.source / "contrib/fleet/parquet.sql").read_text())
    check(sorted(r["skipped"] for r in skipped) == [str(path.relative_to(results)) for path in damaged], f"{skipped}")
    rows = run(test, (test.source / "contrib/fleet/rows.sql").read_text() + "SELECT * FROM rows WHERE serial = 18 ORDER BY runtime_ns;")
    check([(r["board"], r["task"], r["runtime_ns"], r["events"]) for r in rows] == [
        ("odd", "odd", "1000", None), ("odd", "odd", None, None)], f"{rows}")
    check(answers_by_order(query(test, "answers_by_order")[:2]), "the others' answers")


def names_of_its_own(test):
    """A board that invents reports makes no folders of them; its file is skipped, and named. All known ones are taken."""
    results = test.dir / "results"
    results.mkdir()
    text = (test.source / "contrib/fleet/parquet.sql").read_text()
    hint = test.run("record", "-t", "1ms", "--report", "nope").err
    known = set(re.findall("[a-z]+", hint.split("there are ")[1])) - {"hist", "critpath"}
    check(len(known) > 15 and known == set(re.findall("'([a-z]+)'", text.split("r.report IN (")[1].split(")")[0])),
          f"{sorted(known)}: {hint}")
    fill(results)
    lines = as_lines(reports({"sched": [task("odd", {1000: 1})]}, origin=origin(28)))
    odd = [put(results, f"odd-{n}", packed(lines.replace(b'"sched"', b'"%s"' % name)), suffix="ndjson.zst")
           for n, name in enumerate((b"q1", b"hist", b"..", b"sched/x", b"Sched"))]
    test.duckdb = duckdb(test)
    skipped = run(test, text)
    check([r["skipped"] for r in skipped] == [str(path.relative_to(results)) for path in odd], f"{skipped}")
    check({path.name for path in (results / "rows").iterdir()} == {
        f"report={name}" for name in ("sched", "irq", "syscalls", "block", "timer", "workqueue")}, "other folders")


def rows_alone(test):
    """The query of docs/fleet.md that reads rows without Parquet."""
    results = test.dir / "results"
    results.mkdir()
    fill(results)
    test.duckdb = duckdb(test)
    text = (test.source / "docs/fleet.md").read_text()
    sql = re.search(r"^    (SELECT filename, .*?;)$", text, re.M | re.S)[1]
    rows = run(test, sql)
    check(len(rows) == 10 and rows[0]["task"] == "door" and "board=door-6/" in rows[0]["filename"], rows)


def other_readers(test):
    """What DuckDB writes is Parquet for others, too: a map, lists, and distributions as lists of structures."""
    results = test.dir / "results"
    results.mkdir()
    fill(results)
    test.duckdb = duckdb(test)
    run(test, (test.source / "contrib/fleet/parquet.sql").read_text())
    rows = []
    for path in (results / "rows/report=sched/fleet=doors/serial=17").glob("*.parquet"):
        done = subprocess.run(["node", test.source / "tests/integration/parquet.mjs", test.duckdb, path], check=True,
                              capture_output=True)
        rows += json.loads(done.stdout)
    check(len(rows) == 10, rows)
    row = next(r for r in rows if r["board"] == "door-6" and r["task"] == "door")
    check(row["groups"] == ["canary"] and row["kernel"] == "6.1.0" and row["name"] is None, row)
    check({"key": "type", "value": "lift"} in row["labels"] if isinstance(row["labels"], list) else
          row["labels"] == {"type": "lift"}, row)
    check(row["delay"]["count"] == 101 and [b["n"] for b in row["delay"]["buckets"]] == [99, 2], row["delay"])
    check(all(near(b["ns"], ns) for b, ns in zip(row["delay"]["buckets"], (500000, 1000000))), row["delay"])


# A check for each query, under its name.

def p99_delay_by_kernel(rows):
    old, new = sorted(rows, key=lambda r: r["kernel"])
    return old["kernel"] == "5.10.0" and old["boards"] == 1 and near(old["p99_ns"], 20000) and new["boards"] == 5 and (
        near(new["p99_ns"], 500000) and new["max_ns"] == 1_000_000 and rows[0] == new)


def p99_delay_by_label(rows):
    return [r["type"] for r in rows] == ["lift", "door"] and near(rows[1]["p99_ns"], 20000) and rows[1]["boards"] == 5


def p99_delay_by_group(rows):
    return [r["group"] for r in rows] == ["canary", "rest"] and near(rows[1]["p99_ns"], 20000)


def p99_delay_by_day(rows):
    return [(r["day"], r["boards"]) for r in rows] == [("2026-11-27", 6), ("2026-11-28", 5)] and (
        near(rows[0]["p99_ns"], 20000) and near(rows[1]["p99_ns"], 500000))


def delayed_tasks(rows):
    return [r["task"] for r in rows] == ["door", "kworker/0:1"] and rows[0]["boards"] == 6 and (
        near(rows[1]["p99_ns"], 1006) and rows[0]["max_ns"] == 1_000_000)


def busiest_tasks(rows):
    return rows == [{"task": "door", "boards": 6, "runtime_ns": 11 * 5000 + 2 * 21 - 5},
                    {"task": "kworker/0:1", "boards": 6, "runtime_ns": 11 * 900}]


def migrations_by_board(rows):
    return rows[0] == {"board": "door-6", "per_second": 18} and len(rows) == 11


def worst_irqs(rows):
    return (rows[0]["name"], rows[0]["kind"], rows[0]["max_ns"], rows[0]["boards"]) == ("eth0", "irq", 540000, 6) and (
        len(rows) == 2)


def irq_load_by_board(rows):
    return rows[0] == {"board": "door-6", "percent": 6} and len(rows) == 11


def irq_storms(rows):
    return rows[0] == {"board": "door-2", "name": "eth0", "per_second": 1000}


def softirq_raise(rows):
    return [(r["name"], r["max_ns"]) for r in rows] == [("NET_RX", 3000)]


def syscall_errors(rows):
    errors = 2 * (3 + 4 + 5 + 6) - 5
    return rows == [{"call": "openat", "errors": errors, "percent": round(100 * errors / 110, 1), "boards": 4}]


def slow_syscalls(rows):
    return [(r["call"], r["calls"]) for r in rows] == [("futex", 55), ("openat", 110)] and near(rows[0]["p99_ns"], 2e6)


def slow_disks(rows):
    return rows[0]["board"] == "door-1" and rows[0]["requests"] == 8 and near(rows[0]["p99_ns"], 3e6) and len(rows) == 6


def disk_errors(rows):
    return rows == [{"board": "door-1", "device": "179:0", "errors": 4}]


def late_timers(rows):
    return [r["function"] for r in rows] == ["tick"] and near(rows[0]["p99_ns"], 70000) and rows[0]["max_ns"] == 70000


def slow_work(rows):
    return len(rows) == 1 and rows[0]["total_ns"] == 11 * 400 and near(rows[0]["p99_ns"], 200)


def losses_by_board(rows):
    return rows == [{"board": "door-4", "lost": 500, "percent": 20}]


def cut_by_losses(rows):
    return rows == [{"report": "workqueue", "cut": 2, "boards": 1}]


def answers_by_order(rows):
    return [(r["serial"], r["boards"], r["events"], r["lost"], r["incomplete"]) for r in rows] == [
        (16, 6, 6000, 250, 1), (17, 6, 6000, 250, 1)]


def boards_by_kernel(rows):
    return rows == [{"kernel": "6.1.0", "arch": "arm64", "boards": 6}, {"kernel": "5.10.0", "arch": "arm64", "boards": 1}]


def silent_boards(rows):
    return rows == [{"fleet": "doors", "board": "door-5", "last_answer": 16}]


def regressed_boards(rows):
    return [r["board"] for r in rows] == ["door-6"] and near(rows[0]["times"], 50)


def far_boards(rows):
    return [r["board"] for r in rows] == ["door-6"] and near(rows[0]["p99_ns"], 1e6) and rows[0]["deviations"] > 100


def main():
    test = Test("fleet_sql", root=False)
    test.case("each query finds what was put there", queries)
    test.case("one is damaged", one_is_damaged)
    test.case("reports that a board invents", names_of_its_own)
    test.case("rows without Parquet", rows_alone)
    test.case("another reader has the same rows", other_readers)
    test.end()


if __name__ == "__main__":
    main()
