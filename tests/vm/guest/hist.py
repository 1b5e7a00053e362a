#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: histograms in the kernel. They count what is recorded at the same time, no event crosses
for them, nothing of them is left, and members of the group count by open fields only."""

import json
import os
import pathlib
import re
import select
import time

from common import INSTANCES, TRACEFS, check, of_a_guest, put_back, record, settings, text_of
from harness import NOBODY, chunks, settled
from board import Members  # the path is common's

GROUP = 23456
CHUNK_SUBBUFS, CHUNK_HISTOGRAM = 10, 24  # traced/stream.h
CALLS = "raw_syscalls:sys_enter"
WRONG = ("may be wrong", "rows have")


def member():
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(GROUP)]


def calls():
    """System calls that nobody else of this process makes. First tracectl learns that it records."""
    time.sleep(2)
    for _ in range(500):
        os.getppid()
    for _ in range(200):
        os.getpgrp()


def report(test, name, *arguments):
    done = test.run("report", "hist", name, "--json", *arguments)
    check(done.status == 0, f"report hist {name}: {done}")
    return json.loads(done.out)["reports"]


def whole(table):
    """The rows add up to the kernel's own counts."""
    check(not any(w in note for note in table["notes"] for w in WRONG), f"{table['name']}: {table['notes']}")
    check(len(table["rows"]) == table["totals"]["entries"], f"{table}")
    check(sum(r["hitcount"] for r in table["rows"]) == table["totals"]["hits"], f"{table}")
    return table["rows"]


def counts_are_of_the_events(test):
    mine = f"common_pid == {os.getpid()}"
    record(test, "-e", CALLS, "-f", mine, "-e", "sched:sched_switch", "--hist", f"{CALLS}:keys=id if {mine}",
           "--hist", f"{CALLS}:keys=id.syscall if {mine}", "--hist", "sched_switch:keys=next_comm,next_pid",
           "-o", "out.traced", during=calls)
    done = test.run("convert", "out.traced", "out.txt")
    check(done.status == 0, f"{done}")
    text = text_of(test)
    tables = report(test, "out.traced")
    check(len(tables) == 3, f"{len(tables)} tables")
    for number, wanted in (110, 500), (111, 200):
        events = len(re.findall(rf" sys_enter: NR {number} \(", text))
        row = [r for r in whole(tables[0]) if r["id"] == number]
        check(events == wanted and len(row) == 1 and row[0]["hitcount"] == wanted,
              f"call {number}: {events} events, {row}")
    names = {r["id"]: r["hitcount"] for r in whole(tables[1])}
    check(names.get("sys_getppid") == 500 and names.get("sys_getpgrp") == 200, f"{names}")
    # The ring goes on and off a moment before or after the histogram.
    switches = len(re.findall(r" sched_switch: ", text))
    counted = sum(r["hitcount"] for r in whole(tables[2]))
    check(abs(switches - counted) <= max(20, switches // 20), f"{switches} switches, and {counted} counted")
    done = test.run("report", "out.traced")
    check(done.status == 0 and "hist sched:sched_switch by next_comm, next_pid" in done.out, f"{done}")


def events_of(instance):
    """Events that its ring buffers have, had and lost."""
    sums = 0
    for path in (INSTANCES / instance / "per_cpu").glob("cpu*/stats"):
        sums += sum(int(n) for n in re.findall(r"^(?:entries|overrun|dropped events|read events): (\d+)$",
                                               path.read_text(), re.M))
    return sums


def no_event_crosses(test):
    process = test.start("hist", CALLS, "--key", "id", "--filter", f"common_pid == {os.getpid()}", "--name", test.name,
                         "-t", "8s", "--json")
    until, crossed = time.monotonic() + 120, []
    while process.poll() is None and time.monotonic() < until:
        for instance in test.instances():
            try:
                if "[active]" in (INSTANCES / instance / "events/raw_syscalls/sys_enter/hist").read_text():
                    for _ in range(10):
                        os.getppid()
                    for _ in range(5):
                        os.getpgrp()
                    crossed.append(events_of(instance))
            except OSError:
                pass
        time.sleep(0.2)
    done = test.finish(process)
    check(done.status == 0, f"{done}")
    document = json.loads(done.out)
    rows = {r["id"]: r["hitcount"] for r in whole(document["reports"][0])}
    check(len(crossed) >= 3 and not any(crossed), f"events crossed: {crossed}")
    check(document["events"] == 0 and rows[110] == 2 * rows[111] == 10 * len(crossed), f"{rows}, {len(crossed)} times")
    test.check_no_instances()


def every_modifier(test):
    hists = ("kmem:kmalloc:keys=bytes_req.log2:vals=bytes_alloc", "kmem:kmalloc:keys=bytes_req.buckets=100,gfp_flags.hex",
             "kmem:kmalloc:keys=call_site.sym:vals=bytes_req", "kmem:kmalloc:keys=call_site.sym-offset",
             "kmem:kmalloc:keys=stacktrace:vals=bytes_req", "sched:sched_waking:keys=common_pid.execname,comm:size=4096",
             "sched:sched_waking:keys=common_timestamp.usecs:size=131072", "sched:sched_waking:keys=cpu,target_cpu")
    words = [w for h in hists for w in ("--hist", h)]
    record(test, *words, "-o", "out.traced", during=lambda: time.sleep(3))
    tables = report(test, "out.traced")
    check(len(tables) == len(hists), f"{[t['name'] for t in tables]}")
    found = {}
    for table in tables:
        check(whole(table), f"no rows in {table}")
        found.setdefault(",".join(c["name"] for c in table["columns"]), []).append(table["rows"])
    check("bytes_req,bytes_req-to,hitcount,bytes_alloc,share" in found, f"{list(found)}")
    rows = found["bytes_req,bytes_req-to,hitcount,bytes_alloc,share"][0]
    for row in rows:
        check(row["bytes_req"] <= row["bytes_req_to"] and
              row["bytes_alloc"] >= row["hitcount"] * row["bytes_req"], f"{row}")
    function = r"[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+( \[\w+\])?"
    for columns, wanted in (("call_site,hitcount,bytes_req,share", r"[\w.]+( \[\w+\])?"),
                            ("call_site,hitcount,share", function),
                            ("common_stacktrace,hitcount,bytes_req,share", rf"{function}( < {function})+"),
                            ("stacktrace,hitcount,bytes_req,share", rf"{function}( < {function})+"),
                            ("common_pid,comm,hitcount,share", r".+ \(\d+\)")):
        for row in found.get(columns, [[]])[0]:
            text = row[columns.partition(",")[0]]
            check(re.fullmatch(wanted, text), f"{columns}: {text}")
    check(sum("stacktrace" in columns for columns in found) == 1, f"{list(found)}")
    check("ffffffff" not in test.run("report", "hist", "out.traced").out, "an address is shown")
    csv = test.run("report", "hist", "out.traced", "--csv")
    check(csv.status == 0 and "bytes_req,bytes_req_to,hitcount,bytes_alloc,share_permille" in csv.out, f"{csv}")


def what_does_not_fit(test):
    record(test, "--hist", f"{CALLS}:keys=common_timestamp:size=128 if common_pid == {os.getpid()}", "-o", "out.traced",
           during=calls)
    table = report(test, "out.traced")[0]
    check(table["totals"]["dropped"] > 0 and any("in no row" in n for n in table["notes"]), f"{table['totals']}")
    check(table["totals"]["hits"] + table["totals"]["dropped"] >= 700, f"{table['totals']}")
    whole(table)


def of_a_probe(test):
    record(test, "--kprobe", "p:opened vfs_open", "--hist", f"opened:keys=common_pid if common_pid == {os.getpid()}",
           "-o", "out.traced", during=lambda: [time.sleep(0.1) or pathlib.Path("/proc/self/stat").read_text() for _ in range(30)])
    rows = whole(report(test, "out.traced")[0])
    check([r["common_pid"] for r in rows] == [os.getpid()] and rows[0]["hitcount"] >= 30, f"{rows}")


WAKEUP = ("SELECT {}(end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat FROM sched_waking AS start "
          "JOIN sched_switch AS end ON start.pid = end.next_pid")


def synthetic_is_gone():
    settled("no synthetic event is left", lambda: not (TRACEFS / "synthetic_events").read_text())


def hist_sql(test, *arguments):
    """A table of `hist --sql`, and what crossed meanwhile."""
    process = test.start("hist", "-t", "10s", "--json", "--name", test.name, *arguments)
    until, crossed, made = time.monotonic() + 120, [], ""
    while process.poll() is None and time.monotonic() < until:
        for instance in test.instances():
            try:
                crossed.append(events_of(instance))
                made = made or (TRACEFS / "synthetic_events").read_text()
            except OSError:
                pass
        time.sleep(0.05)
    done = test.finish(process)
    check(done.status == 0, f"{arguments}: {done}")
    synthetic_is_gone()
    test.check_no_instances()
    document = json.loads(done.out)
    check(len(document["reports"]) == 1, f"{document}")
    return document, crossed, made


def of_two_events(test):
    """The ring has the recorder's mark and nothing else; the table has what the events would say."""
    before = settings()
    document, crossed, made = hist_sql(test, "--buckets", "log2", "--sql", WAKEUP.format(""), "--as", "wakeup")
    table = document["reports"][0]
    rows = whole(table)
    check(re.match(r"sql_[0-9a-f]{8}_wakeup", made), f"the kernel has {made!r}")
    check(table["name"] == "hist synthetic:wakeup by lat", table["name"])
    check(table["definition"] == "keys=lat.log2:vals=hitcount", table["definition"])
    check(len(crossed) >= 3 and max(crossed) <= 1, f"events crossed: {crossed}")
    check(document["events"] == 0, f"{document['events']} events in the recording")
    check(table["totals"]["hits"] >= 50 and all(r["lat"] <= r["lat_to"] for r in rows), f"{table}")
    check(max(r["lat_to"] for r in rows) < 2 ** 27, f"a time of another clock: {rows}")
    put_back(before)
    document, _, _ = hist_sql(test, "--key", "comm", "--key", "lat", "--buckets", "100us", "--val", "lat", "--filter",
                              "lat > 0", "--sql", WAKEUP.format("end.next_comm AS comm, "))
    table = document["reports"][0]
    check(table["definition"] == "keys=comm,lat.buckets=100:vals=hitcount,lat if lat > 0", table["definition"])
    # Its second column has the same name as its value.
    check(table["totals"]["hits"] > 0 and len({r["comm"] for r in table["rows"]}) >= 2, f"{table}")


def of_two_events_and_the_events(test):
    """record --sql --hist has both: as many events as hits."""
    record(test, "--sql", WAKEUP.format("end.next_comm AS comm, "), "--as", "wakeup", "--hist", "wakeup:keys=comm", "-o",
           "out.traced", during=lambda: time.sleep(5))
    table = report(test, "out.traced")[0]
    rows = {r["comm"]: r["hitcount"] for r in whole(table)}
    check(test.run("convert", "out.traced", "out.txt").status == 0, "convert")
    events = re.findall(r": wakeup: comm=(.*) lat=\d+$", text_of(test), re.M)
    check(len(events) >= 50, f"{len(events)} events")
    check(abs(len(events) - sum(rows.values())) <= max(20, len(events) // 20), f"{len(events)} events, {rows}")
    check(set(events) >= {c for c, n in rows.items() if n > 20}, f"{rows}")
    synthetic_is_gone()


def as_sqlhist(test):
    """SQL of one event is a histogram; of an event by SQL, too."""
    document, crossed, _ = hist_sql(test, "--sql", "SELECT CAST(common_pid AS comm), CAST(id AS syscall) "
                                    f"FROM sys_enter WHERE common_pid = {os.getpid()}")
    table = document["reports"][0]
    check(table["name"] == f"hist raw_syscalls:sys_enter by common_pid, id if common_pid == {os.getpid()}", table["name"])
    check(crossed and not any(crossed) and document["events"] == 0, f"events crossed: {crossed}")
    check(whole(table) and all(str(os.getpid()) in r["common_pid"] for r in table["rows"]), f"{table}")
    document, crossed, _ = hist_sql(test, "--sql", WAKEUP.format("end.next_prio AS prio, "), "--as", "wakeup", "--sql",
                                    "SELECT prio, CAST(lat AS _COUNTER_) FROM wakeup WHERE lat > 0")
    table = document["reports"][0]
    check(table["definition"] == "keys=prio:vals=hitcount,lat if lat > 0", table["definition"])
    check(any(r["prio"] == 120 and r["lat"] >= r["hitcount"] for r in whole(table)), f"{table}")
    check(max(crossed) <= 1 and document["events"] == 0, f"events crossed: {crossed}")
    document, _, _ = hist_sql(test, "--sql", "SELECT CAST(bytes_req AS log2), CAST(bytes_alloc AS _COUNTER_) FROM kmalloc")
    table = document["reports"][0]
    check(all(r["bytes_alloc"] >= r["hitcount"] * r["bytes_req"] for r in whole(table)) and table["rows"], f"{table}")
    for arguments, words in (
            (["--sql", WAKEUP.format("CAST(start.prio AS log2), ")], "CAST is of SQL without JOIN"),
            (["--sql", WAKEUP.format("start.pid, start.prio, start.comm, ")], "choose with --key"),
            (["--sql", "SELECT prio FROM sched_waking", "--key", "prio"], "--key is not of SQL without JOIN"),
            (["--sql", WAKEUP.format(""), "--key", "lad"], "did you mean 'lat'"),
            (["--sql", WAKEUP.format(""), "--buckets", "100ns"], "lat is in microseconds"),
            (["--sql", "SELECT CAST(prio AS COUNTER) FROM sched_waking"], "to unknown type 'counter'")):
        done = test.run("hist", "-t", "1s", *arguments)
        check(done.status != 0 and words in done.err, f"{arguments}: {done}")
    synthetic_is_gone()


def on_hosts(test):
    """-H counts on all hosts at once, by SQL, too; record -H takes SQL as it is."""
    hosts = [w for n in "ab" for w in ("--label", f"{n}=exec:env N={n} PATH={test.tracectl.parent}:{os.environ['PATH']}")]
    process = test.start(*hosts, "hist", CALLS, "--key", "id", "--filter", f"common_pid == {os.getpid()}", "-t", "8s", "--json")
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        os.getppid()
        time.sleep(0.001)
    done = test.finish(process)
    check(done.status == 0, f"{done}")
    documents = json.loads(done.out)["hosts"]
    check([d["label"] for d in documents] == ["a", "b"], f"{done}")
    for document in documents:
        rows = {r["id"]: r["hitcount"] for r in document["output"]["reports"][0]["rows"]}
        check(rows.get(110, 0) > 100, f"{rows}")
    done = test.run(*hosts[:2], "hist", "-t", "5s", "--json", "--sql", WAKEUP.format(""))
    check(done.status == 0 and json.loads(done.out)["reports"][0]["rows"], f"hist --sql: {done}")
    done = test.run(*hosts[:2], "record", "-t", "5s", "-o", "out.txt", "--sql", WAKEUP.format(""), "--as", "wakeup")
    check(done.status == 0 and re.search(r": wakeup: lat=\d+$", text_of(test), re.M), f"record --sql: {done}")
    synthetic_is_gone()


def killed_while_it_counts(test):
    before = settings()
    process = test.start("hist", "-t", "60s", "--name", "x", "--sql", WAKEUP.format(""))
    settled("the event is made", lambda: (TRACEFS / "synthetic_events").read_text())
    time.sleep(2)
    done = test.run("mark", "lost")
    check(done.status == 1 and "takes no marks" in done.err, f"{done}")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.finish(process)
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    synthetic_is_gone()
    put_back(before)


def chunks_of(test, name, kind):
    """How many chunks of a kind a .traced has."""
    with open(test.dir / name, "rb") as file:
        return sum(chunk[0] == kind for chunk in chunks(file))


def knows_change():
    """Whether the kernel tells if a histogram counted: else each hist file is always readable."""
    poll = select.poll()
    with open(TRACEFS / "events/sched/sched_process_hang/hist", encoding="ascii") as file:
        poll.register(file, select.POLLIN)
        return not poll.poll(0)


def an_idle_one_is_not_read(test):
    """Linux 6.14, and some before it, say whether a histogram has counted since it was read. Others
    are read each second: docs/hist.md."""
    for idle in True, False:
        whose = 1 if idle else os.getpid()
        process = test.start("record", "--stream", "-o", "out.traced", "-t", "15s", "--name", "s", "--hist",
                             f"{CALLS}:keys=id if common_pid == {whose}")
        while process.poll() is None:
            os.getpgrp()
            time.sleep(0.1)
        done = test.finish(process)
        check(done.status == 0, f"record: {done}")
        texts = chunks_of(test, "out.traced", CHUNK_HISTOGRAM)
        asked = idle and knows_change()
        check(2 <= texts <= 4 if asked else texts > 5, f"{texts} texts, idle: {idle}, known: {knows_change()}")
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    check(knows_change() or release < (6, 14), "the kernel does not tell")


def merged(test):
    """Rows of two recordings add up."""
    mine, hits = f"if common_pid == {os.getpid()}", []
    for name in ("one", "two"):
        record(test, "--hist", f"{CALLS}:keys=id.log2 {mine}", "--hist", f"{CALLS}:keys=id {mine}", "-o", f"{name}.traced",
               during=calls)
        done = test.run("report", "hist", f"{name}.traced", "--json")
        check(done.status == 0, f"{done}")
        (test.dir / f"{name}.json").write_text(done.out)
        hits.append([{tuple(v for k, v in r.items() if k.startswith("id")): r["hitcount"] for r in t["rows"]}
                     for t in json.loads(done.out)["reports"]])
    done = test.run("report", "--merge", "one.json", "two.json", "--json")
    check(done.status == 0, f"{done}")
    tables = json.loads(done.out)["reports"]
    check(len(tables) == 2, f"{tables}")
    for i, table in enumerate(tables):
        rows = {tuple(v for k, v in r.items() if k.startswith("id")): r["hitcount"] for r in whole(table)}
        wanted = {k: hits[0][i].get(k, 0) + hits[1][i].get(k, 0) for k in hits[0][i] | hits[1][i]}
        check(rows == wanted, f"{rows}\n{wanted}")
    check(rows[(110,)] == 1000 and rows[(111,)] == 400, f"{rows}")


def a_flight_recorder(test):
    done = test.run("start", "--ring", "-e", "sched:sched_switch", "--hist", "sched_switch:keys=next_pid",
                    "--name", "r")
    check(done.status == 0, f"{done}")
    sums = []
    for name in ("one.traced", "two.traced"):
        time.sleep(2)
        done = test.run("snapshot", "r", "-o", name)
        check(done.status == 0, f"{done}")
        sums.append(report(test, name)[0]["totals"]["hits"])
    check(0 < sums[0] < sums[1], f"{sums}")
    check(test.run("cancel", "r").status == 0, "cancel")


def watched(test):
    for name, arguments in (("sched:sched_switch by next_comm", ["sched_switch", "--key", "next_comm"]),
                            ("synthetic:sql1 by comm", ["--key", "comm", "--sql", WAKEUP.format("end.next_comm AS comm, ")])):
        done = test.run("hist", *arguments, "--watch", "--batch", "-t", "12s", timeout=180)
        tables = done.out.split(f"hist {name}\n")[1:]
        check(done.status == 0 and len(tables) >= 3, f"{done}")
        sums = [sum(int(n.replace(",", "")) for n in re.findall(r"^.{2,60}?  +([\d,]+)  +#*$", t, re.M)) for t in tables]
        check(sums == sorted(sums) and sums[-1] > sums[0], f"{name}: {sums}")
    synthetic_is_gone()


def killed(test):
    before = settings()
    done = test.run("start", "--hist", "sched_switch:keys=next_comm", "--hist", "kmem:kmalloc:keys=bytes_req",
                    "--name", "x")
    check(done.status == 0, f"start: {done}")
    ours = [i for i in INSTANCES.iterdir() if "sched_switch" in (i / "set_event").read_text() or
            "hist:" in (i / "events/sched/sched_switch/trigger").read_text()]
    check(ours, "no instance has the histogram")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    put_back(before)
    check(not any(i.exists() for i in ours), "an instance is left")


def refusals(test):
    for hist, status, words in (
            ("sched_switch:keys=next_com", 1, "did you mean 'next_comm'"),
            ("sched_switch:keys=next_comm.log3", 1, "there is no such modifier"),
            ("sched_switch:keys=next_comm.log2", 1, ".log2 is of numbers"),
            ("sched_switch:keys=next_pid.execname", 1, "common_pid"),
            ("sched_switch:keys=next_pid.buckets", 1, "no such modifier"),
            ("sched_switch:keys=next_pid:vals=next_comm", 1, "a value is a number"),
            ("sched_*:keys=next_pid", 1, "name one of them"),
            ("sched_switch:keys=next_pid if no_such == 1", 1, "no_such"),
            ("sched_switch:keys=next_pid:onmax($x).snapshot()", 1, "its parts are"),
            ("sched_switch:keys=" + "x" * 900, 1, "there is no such field"),
            ("sched_switch:keys=" + "x" * 9000, 1, "longer than 4096 bytes"),
            ('sched_switch:keys=next_pid if next_comm == "\u00e9" && (', 1, "refuses")):
        done = test.run("record", "-t", "100ms", "--hist", hist, "-o", "out.traced")
        check(done.status == status and words in done.err, f"{hist[:100]}: {done}")
        check("^" in done.err or words in ("name one of them", "no_such", "refuses", "longer than 4096 bytes"),
              f"{hist[:100]}: {done}")
    done = test.run("record", "-t", "100ms", "--hist", "sched_switch:keys=next_pid", "-P", str(os.getpid()),
                    "-o", "out.traced")
    check(done.status == 1 and "a choice of tasks" in done.err, f"{done}")
    check(not (test.dir / "out.traced").exists(), "a file was written")
    check("histograms" in test.run("doctor").out, "doctor is silent")


def members(test):
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, GROUP)
    test.daemon.socket.chmod(0o660)
    test.dir.chmod(0o777)
    for hist, words in (
            ("kmem:kmalloc:keys=call_site", "is an address"), ("kmem:kmalloc:keys=ptr", "is a pointer"),
            ("kmem:kmalloc:keys=call_site.sym", "names of addresses"), ("kmem:kmalloc:keys=bytes_req.sym", "names of addresses"),
            ("kmem:kmalloc:keys=stacktrace", "holds addresses"), ("kmem:kmalloc:keys=bytes_req:vals=call_site", "is an address"),
            ("kmem:kmalloc:keys=bytes_req if call_site > 5", "is an address"),
            ("timer:hrtimer_start:keys=function", "pointer"),
            ("sched_switch:keys=next_comm:size=131072", "16384")):
        done = test.run("record", "-t", "100ms", "--hist", hist, "-o", "out.json", wrap=member())
        check(done.status == 1 and "only root may" in done.err and words in done.err, f"{hist}: {done}")
    done = test.run("hist", "sched_switch", "--key", "next_comm", "-t", "2s", "--json", wrap=member())
    check(done.status == 0 and whole(json.loads(done.out)["reports"][0]), f"{done}")
    done = test.run("record", "--hist", "sched_switch:keys=next_comm", "-t", "2s", "-o", "mine.traced", wrap=member(),
                    timeout=120)
    check(done.status == 0 and b"ffffffff" not in (test.dir / "mine.traced").read_bytes(), f"{done}")
    done = test.run("hist", "--sql", WAKEUP.format(""), "--buckets", "log2", "-t", "3s", "-o", "sql.traced", wrap=member(),
                    timeout=120)
    check(done.status == 0 and "hist synthetic:wakeup" not in done.out and "hist synthetic:sql1 by lat" in done.out,
          f"{done}")
    # A mark has an address of the kernel.
    check(not chunks_of(test, "sql.traced", CHUNK_SUBBUFS), "the recording has parts of the ring")
    synthetic_is_gone()
    done = test.run("record", "--hist", "sched_switch:keys=next_comm", "-e", "sched", "-t", "2s", "-o", "both.traced",
                    wrap=member())
    check(done.status == 1 and "kernel addresses" in done.err, f"{done}")


def as_traced_agent_records(test):
    """Its unit hides tracefs, its user has rows of an event by SQL without the event, and may count beside a report."""
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, GROUP)
    test.daemon.socket.chmod(0o660)
    test.dir.chmod(0o777)
    hidden = test.dir / "hidden"
    hidden.mkdir(mode=0)
    agent = ["unshare", "-m", "sh", "-c", f'mount --bind {hidden} {TRACEFS} && exec "$@"', "sh", *member()]
    done = test.run("--version", wrap=agent)
    check(done.status == 0 and INSTANCES.is_dir(), f"the others' tracefs is hidden: {done}")
    done = test.run("record", "--quiet", "-t", "3s", "--sql", WAKEUP.format(""), "--as", "wakeup", "--hist",
                    "wakeup:keys=lat.log2 if lat > 0", "--report", "hist", "--json", wrap=agent, timeout=120)
    check(done.status == 0, f"{done}")
    document = json.loads(done.out)
    check(whole(document["reports"][0]) and "events" in document, f"{document}")
    synthetic_is_gone()
    done = test.run("record", "--quiet", "-t", "3s", "--hist", "sched:sched_switch:keys=next_comm", "--report", "sched,hist",
                    "--json", wrap=agent, timeout=120)
    check(done.status == 0 and all(table["rows"] for table in json.loads(done.out)["reports"]), f"{done}")


def main():
    test = of_a_guest("hist")
    check((TRACEFS / "events/sched/sched_switch/hist").exists(), "the kernel has no histograms")
    test.case("counts are those of the events", counts_are_of_the_events)
    test.case("no event crosses", no_event_crosses)
    test.case("no event crosses, with a daemon", no_event_crosses, daemon=True)
    test.case("every modifier", every_modifier)
    test.case("what does not fit", what_does_not_fit)
    test.case("of a probe", of_a_probe)
    test.case("a flight recorder", a_flight_recorder, daemon=True)
    test.case("watched", watched)
    test.case("killed", killed, daemon=True)
    test.case("of two events", of_two_events)
    test.case("of two events, with a daemon", of_two_events, daemon=True)
    test.case("of two events and the events", of_two_events_and_the_events, daemon=True)
    test.case("as sqlhist", as_sqlhist, daemon=True)
    test.case("on hosts", on_hosts, daemon=True)
    test.case("killed while it counts", killed_while_it_counts, daemon=True)
    test.case("an idle one is not read", an_idle_one_is_not_read, daemon=True)
    test.case("merged", merged, daemon=True)
    test.case("refusals", refusals, daemon=True)
    test.case("members", members, daemon=True)
    test.make_daemon = Members
    test.case("as traced-agent records", as_traced_agent_records, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
