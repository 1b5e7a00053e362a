#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl fleet: orders that boards take, and results that come back, from stores that are honest and from others.
fleet_broker.py has brokers."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from board import Members, fleet
from false_store import FalseStore
from fleet_data import HIST, as_lines, lines_of, name_of, packed, put, put_rows, reports
from harness import PATIENCE_S, Test, check, settled
from store import free_port

ESCAPE = "\x1b]0;owned\x07"
# Runs a command, and prints the most memory that it had, in KiB.
PEAK = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], check=False).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)"""


def sched(delay, tid=1, name="door"):
    return {"sched": [{"task": name, "tid": tid, "runtime_ns": 1000, "runs": 2, "delay": delay}]}


def curl_file(test, store):
    """Its paths are relative, to the folder in which tracectl runs."""
    path = test.dir / "curl.conf"
    folder = store.dir.relative_to(test.dir)
    path.write_text(f'cacert = "{folder}/ca.pem"\ncert = "{folder}/client.pem"\nkey = "{folder}/client.key"\n')
    return path


def order_of(test, *words, key="order.sec", **kwargs):
    return test.run("fleet", "order", "--secret-key", test.dir / key, "-q", *words, **kwargs)


def make_keys(test):
    subprocess.run(["signify-openbsd", "-G", "-n", "-p", test.dir / "order.pub", "-s", test.dir / "order.sec"], check=True)


def succeeds(result):
    check(result.status == 0, f"{result}")
    return result


def what_an_order_says(test):
    make_keys(test)
    succeeds(order_of(test, "--fleet", "doors", "--group", "canary", "--share", "0.25", "--salt", "autumn", "--serial",
                      "17", "--not-before", "2098-12-31T00:00:00Z", "--expires", "2099-01-01T00:00:00Z", "--window", "10m", "-t", "1.5s", "-e", "sched:*", "-e",
                      "irq:*", "--report", "sched,irq", "--label", "type=door*", "--label", "arch=arm64", "--capture",
                      "--sql", "SELECT start.pid\n FROM sched_waking AS start", "--as", "wakeup", "--on", "irq.max > 1ms", "--hist",
                      "wakeup:keys=pid", "--max-size", "4M", "-o", "doors"))
    signed = (test.dir / "doors").read_text()
    check(signed.split("\n", 2)[2] == """[order]
serial = 17
fleet = doors
group = canary
not_before = 2098-12-31T00:00:00Z
expires = 2099-01-01T00:00:00Z
share = 0.25
salt = autumn
labels = type=door*
  arch=arm64
window = 10m
duration = 1.5s
events = sched:*
  irq:*
sql = SELECT start.pid FROM sched_waking AS start
as = wakeup
until = irq.max > 1ms
hist = wakeup:keys=pid
reports = sched,irq
capture = yes
bytes_max = 4M
""", signed)
    subprocess.run(["signify-openbsd", "-V", "-e", "-q", "-p", test.dir / "order.pub", "-x", test.dir / "doors", "-m",
                    test.dir / "plain"], check=True)
    check(signed.endswith((test.dir / "plain").read_text()), "another text is signed")
    text = succeeds(order_of(test, "--fleet", "doors", "-t", "1s", "--report", "sched", "--max-cpu", "2%", "-o", "-")).out
    check(text.endswith("reports = sched\ncpu_max = 2%\n"), text)
    # How long from now.
    text = succeeds(order_of(test, "--fleet", "doors", "-t", "1s", "--report", "sched", "--not-before", "+2h", "--expires",
                             "150m", "-o", "-")).out
    times = [datetime.datetime.fromisoformat(re.search(f"^{key} = (.*)Z$", text, re.M)[1]) for key in ("not_before", "expires")]
    ahead = times[0] - datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    check(times[1] - times[0] == datetime.timedelta(minutes=30) and 7000 < ahead.total_seconds() <= 7200, text)
    # By default the serial is the time, and a later order has a higher one.
    first = succeeds(order_of(test, "--fleet", "doors", "-t", "1s", "--report", "sched", "-o", "-")).out
    check(14 == len(first.split("serial = ")[1].split("\n")[0]), first)


def what_is_no_order(test):
    make_keys(test)
    usual = ["--fleet", "doors", "-t", "1s", "--report", "sched", "-o", "bad"]
    for words, why in ((["-t", "1s", "--report", "sched", "-o", "bad"], "fleet is missing"),
                       ([*usual, "-e", "sched"], "SYSTEM:EVENT"),
                       ([*usual, "--share", "0"], "--share: a share is above 0 and at most 100 per cent"),
                       ([*usual, "--share", "101"], "--share: "),
                       ([*usual, "--serial", "0"], "--serial: "),
                       ([*usual, "--window", "x"], "--window: 'x' is not a duration"),
                       ([*usual, "--group", "a b"], "--group: "),
                       ([*usual, "--group", "a\ncapture = yes"], "new line"),
                       ([*usual, "-e", "sched:b", "-f", 'comm == "x ; y"'], "new line"),
                       ([*usual, "--expires", "2020-01-01T00:00:00Z"], "expired"),
                       ([*usual, "--not-before", "x"], "--not-before: 'x' is not a duration"),
                       ([*usual, "--not-before", "2026T"], "--not-before: the value is not a time"),
                       ([*usual, "--not-before", "24h"], "the order expires before it may be followed"),
                       ([*usual, "--label", "door"], "--label: a word is not NAME=VALUE"),
                       ([*usual, "--group", "é"], "--group: '"),
                       ([*usual, "--salt", "é"], "--salt: '"),
                       ([*usual, "--sql", "SELECT 1", "--sql", "SELECT 2"], "one --sql at most"),
                       ([*usual, "--on", "irq.max > 1ms", "--on", "irq.max > 2ms"], "one --on at most"),
                       ([*usual, "--on", "irq.max > 1"], "--on"),
                       ([*usual, "--on", "lost > 0"], "can't wait for losses"),
                       ([*usual, "--hist", "a:b:keys=c"], "needs the report hist"),
                       ([*usual, "--report", "hist", "--hist", "sched_switch:keys=c"], "begins with SYSTEM:EVENT"),
                       *(([*usual, "--report", "hist", "--hist", f"a:b:{parts}"], f"--hist: the histogram: {why}") for parts, why in (
                           ("keys=c,d,e,f", "a histogram has three keys at most"), ("keys=c:sort=c", "the report sorts the entries"),
                           ("keys=c:onmatch(x)", "its parts are keys="), ("keys=c:size=1", "a histogram has 128 to 131072 entries"),
                           ("vals=c", "it has no keys"), ("keys=c if", "'if' and a filter are missing"))),
                       ([*usual, "--report", "irq,nope"], "nope"),
                       ([*usual, "-e", "sched:*", "--report", "irq"], "no events for the report irq\n  hint: add them"),
                       ([*usual, "-e", "sched:*", "--report", "timerlat"], "no events for the report timerlat"),
                       ([*usual, "--report", "critpath"], "the report critpath is of one thread"),
                       (usual[:-2], "no place")):
        done = order_of(test, *words)
        check(done.status == 2 and why in done.err and not (test.dir / "bad").exists(), f"{words}: {done}")
    # An order that does not come to the boards has no file, either.
    done = order_of(test, *usual, "--url", "https://127.0.0.1:1/order")
    check(done.status == 1 and not (test.dir / "bad").exists(), f"{done}")
    done = order_of(test, *usual, key="nothing.sec")
    check(done.status == 1 and not (test.dir / "bad").exists(), f"{done}")


def which_boards_are_far(test):
    """Threads of one name are one row, whatever their tids; the board that is slow comes first."""
    for n in range(1, 6):
        put(test.dir, f"door-{n}", reports(sched({20000 * (50 if n == 3 else 1): 100, 10000 + n: 7}, tid=100 + n),
                                           lost=3 if n == 2 else 0, origin={"kernel": "6.1.0"}))
    done = test.run("fleet", "report", test.dir, "--json")
    check(done.status == 0 and "events were lost on the boards: 3" in done.err, f"{done}")
    outliers, table = json.loads(done.out)["reports"]
    check([(r["board"], r["report"], r["value"]) for r in outliers["rows"]] == [("door-3", "sched", "delay")], outliers)
    check(abs(outliers["rows"][0]["p99_ns"] - 10**6) < 10**4 and outliers["rows"][0]["deviations"] > 1000, outliers)
    check(len(table["rows"]) == 1 and table["rows"][0]["runs"] == 10 and "tid" not in table["rows"][0], table["rows"])
    check(table["rows"][0]["delay"]["count"] == 5 * 107, table["rows"])
    text = succeeds(test.run("fleet", "report", test.dir / "fleet=doors/order=17")).out
    check(text.index("door-3") < text.index("\nsched"), text)
    put(test.dir, "door-1", reports(sched({1: 1})), order=18)
    done = test.run("fleet", "report", test.dir)
    check(done.status == 1 and "several orders" in done.err, f"{done}")
    succeeds(test.run("fleet", "report", test.dir / "fleet=doors/order=18"))


def stray_words(test):
    """An option that the action does not take is refused, and so is an argument too many."""
    place = ("--fleet", "doors", "--url", "https://store.invalid")
    for words, why, hint in (
            (("status", 17, *place, "--share", 1), "fleet status: unknown option --share", "--share is an option of: fleet order"),
            (("fetch", 17, "to", *place, "-e", "sched:*"), "fleet fetch: unknown option --event", "fleet order"),
            (("report", test.dir, "--group", "a"), "fleet report: unknown option --group", "fleet order, fleet withdraw"),
            (("open", test.dir, "door-1", "--json"), "fleet open: unknown option --json", "fleet status, fleet report"),
            (("withdraw", 17, "--fleet", "doors", "--broker", "mqtt://store.invalid", "--s3"),
             "fleet withdraw: unknown option --s3", "fleet status, fleet fetch"),
            (("order", *place, "--secret-key", "no.sec", "-t", "1s", "--report", "sched", "--watch"),
             "fleet order: unknown option --watch", "fleet status"),
            (("status", 17, 18, *place), "fleet status takes an order", "tracectl fleet status 17"),
            (("status", *place), "for all boards it needs --broker", "tracectl fleet status 17"),
            (("status", 17, "--broker", "mqtts://store.invalid"), "--fleet is missing", "--broker URL"),
            (("report", test.dir, test.dir), "fleet report takes one folder", "tracectl fleet report"),
            (("open", test.dir, "door-1", "door-2"), "'door-2' is no number of a segment", ""),
            (("open", test.dir, "door-1", 2, 3), "'3' is one argument too many", "")):
        done = test.run("fleet", *words)
        check(done.status == 2 and why in done.err and hint in done.err and not done.out, f"{words}: {done}")
    # Options before the command are others.
    put(test.dir, "door-1", reports(sched({1: 1})))
    succeeds(test.run("--socket", "/nowhere", "fleet", "report", test.dir, "--top", 1))


def files_that_lie(test):
    """What is not what its name says is refused, and so is what no board's name can be; the rest is reported."""
    for n in range(1, 5):
        put(test.dir, f"door-{n}", reports(sched({20000: 10})))
    good = reports(sched({30000: 10}))
    folder = test.dir / "fleet=doors/order=17"
    other = put(test.dir, "liar", good)
    other.write_bytes(good.replace(b"30000", b"30001"))
    (folder / "liar2").mkdir()
    (folder / "liar2" / f"{name_of(good)}.json").write_bytes(good)
    evil = folder / f"board={ESCAPE}"
    evil.mkdir()
    (evil / f"{name_of(good)}.json").write_bytes(good)
    (folder / "board=link").mkdir()
    (folder / "board=link" / f"{name_of(good)}.json").symlink_to(other)
    for board, data in (("deep", b"[" * 100000), ("bomb", b'{"format":"traced-report","version":1,"x":' + b"[" * 5000),
                        ("long", b'{"format":"' + b"a" * (1 << 20) + b'"}'), ("none", b""),
                        ("text", reports({"sched": [{"task": ESCAPE, "tid": 1, "runs": 1, "delay": {5: 1}}]}))):
        put(test.dir, board, data)
    done = test.run("fleet", "report", test.dir)
    check(done.status == 3, f"{done}")
    check("\x1b" not in done.out + done.err and "\x07" not in done.out + done.err, f"{done!s}")
    check("is not the hash of its content" in done.err and done.err.count("refused") == 3, f"{done}")
    for board in ("deep", "bomb", "long", "none"):
        check(f"left out: {board}: " in done.out, f"{board}: {done}")
    check("boards: 5" in done.out and "30.00 us" not in done.out, f"{done}")
    # Skipped are a link to a file, one to a folder, a pipe, rows that nobody compressed. A page is no result.
    (folder / "board=away").symlink_to(other.parent)
    place = folder / "board=door-1"
    os.mkfifo(place / f"{name_of(b'x')}.json")
    (place / f"{name_of(b'x')}.ndjson").write_text("{}")
    (place / f"{name_of(b'x')}.html").write_text("")
    done = test.run("fleet", "report", folder)
    check(done.status == 3 and f"skipped in {folder}, as links or no results: 4\n" in done.err, f"{done}")


def histograms_add_up(test):
    """Those that the kernel made."""
    for n in range(1, 4):
        put_rows(test.dir, f"door-{n}", reports({HIST: [{"next_comm": "door", "hitcount": n},
                                                        {"next_comm": f"own-{n}", "hitcount": 10}]}))
    tables = json.loads(succeeds(test.run("fleet", "report", test.dir, "--json")).out)["reports"]
    check([t["name"] for t in tables[1:]] == [HIST], tables)
    rows = {row["next_comm"]: row["hitcount"] for row in tables[1]["rows"]}
    check(rows == {"door": 6, "own-1": 10, "own-2": 10, "own-3": 10}, rows)


def boards_that_differ(test):
    """Reports of other columns leave out their boards, not the others, and wherever they are in the order."""
    for n in range(1, 25):
        put(test.dir, f"door-{n}", reports(sched({20000: 10})))
    odd = json.loads(reports(sched({20000: 10})))
    odd["reports"][0]["sort"] = "runs"
    for name in ["a", "door-25", *(f"odd-{n}" for n in range(20))]:
        put(test.dir, name, json.dumps(odd).encode())
    done = test.run("fleet", "report", test.dir)
    check(done.status == 3 and done.out.count("left out: ") == 22 and "boards: 24" in done.out, f"{done}")
    check("left out: a: its reports have other columns" in done.out, f"{done}")
    done = test.run("fleet", "report", test.dir, "--csv")
    check(done.status == 3 and done.err.count("left out: ") == 22 and "left out" not in done.out, f"{done}")


def boards_that_hide_others(test):
    """The first board by name has another clock, names of its own, or rows without an end: it is left out, not the others."""
    def left_out(data, why, by="a"):
        path = put(test.dir, by, data)
        done = test.run("fleet", "report", test.dir / "fleet=doors")
        path.unlink()
        check(done.status == 3 and f"left out: {by}: {why}" in done.out and done.out.count("left out: ") == 1 and
              "boards: 20" in done.out, f"{done}")
        # Nor does it count in the comparison.
        check("\na " not in done.out and "fewer than 4" not in done.out, f"{done}")

    for n in range(20):
        put(test.dir, f"door-{n:02}", reports(sched({20000: 10})))
    left_out(reports(sched({10**9: 10})).replace(b'"clock": "mono"', b'"clock": "x86-tsc"'), "its times are on another clock")
    own = json.loads(reports(sched({10**9: 10})))
    own["reports"] = [{**own["reports"][0], "name": f"hist {n}"} for n in range(16)]
    left_out(json.dumps(own).encode(), "it has a report that few boards have")
    # The names of one file are bounded, and so is the memory that its rows take.
    left_out(reports({}).replace(b'"first_ns"', b'"clock": "mono", ' * 300000 + b'"first_ns"').replace(
        b'"reports": [', b'"reports": [{"name": "x", ' + b'"by": "y", ' * 300000 + b'"rows": []}'), "it has too many names")
    row = '{"task": "%d", "n": 1}'
    columns = '[{"name": "task", "kind": "text", "adds": "key"}, {"name": "n", "kind": "count", "adds": "sum"}]'

    def with_rows(first, count):
        rows = ",".join(row % n for n in range(first, first + count))
        counts = f'{{"name": "counts", "columns": {columns}, "rows": [{rows}]}}'
        return reports({}).replace(b'"reports": []', b'"reports": [%s]' % counts.encode())

    left_out(with_rows(0, 250000), "its reports take more than 16 MiB of memory")
    # Few rows with long names: they are written with each row.
    names = [f"{n:0590}" for n in range(15)]
    wide = json.loads(reports({}))
    wide["reports"] = [{"name": "counts", "columns": [{"name": "task", "kind": "text", "adds": "key"},
                                                      *({"name": n, "kind": "count", "adds": "sum"} for n in names)],
                        "rows": [{"task": str(n), **dict.fromkeys(names, 1)} for n in range(2000)]}]
    left_out(json.dumps(wide).encode(), "its reports take more than 16 MiB of memory")
    # If all boards have names of their own, the first one's count.
    for n in range(20):
        own["reports"] = [{**own["reports"][0], "name": f"hist {n} {m}"} for m in range(16)]
        put(test.dir / "own", f"door-{n:02}", json.dumps(own).encode())
    done = test.run("fleet", "report", test.dir / "own")
    check(done.status == 3 and "boards: 1\n" in done.out and "left out: door-00" not in done.out, f"{done}")
    # Boards that fill the memory of all: the smallest ones come first.
    for n in range(6):
        put(test.dir, f"a-{n}", with_rows(n * 1000000, 170000))
    # A sanitizer keeps freed memory, and puts red zones around the rest.
    env = test.environment(ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1")
    done = test.run("fleet", "report", test.dir / "fleet=doors", wrap=(sys.executable, "-c", PEAK), env=env)
    names = re.findall("left out: (.*): with its reports, those of all boards would take too much memory", done.out)
    check(done.status == 3 and names and all(name.startswith("a-") for name in names), f"{done}")
    check(f"boards: {26 - len(names)}\n" in done.out and done.out.count("left out") == len(names), f"{done}")
    # Their bound is 64 MiB, and one board more is read.
    check(int(done.err.split()[-1]) < (160 if test.is_sanitized() else 80) << 10, f"{done}")


def from_order_to_page(test):
    """The way of an order and back, with everything that a fleet has."""
    with fleet(test) as (store, agent):
        store.start()
        curl = curl_file(test, store)
        url = store.url
        done = test.run("fleet", "order", "--secret-key", store.dir / "order.sec", "--fleet", "doors", "--serial", "7", "-t",
                        "500ms", "-e", "sched:sched_switch", "--report", "sched", "--capture", "--url",
                        f"{url}/orders/doors", "--curl", curl)
        check(done.status == 0 and "order 7" in done.err, f"{done}")
        agent.start()
        settled(f"two results: {agent.words()}", lambda: len(store.results(7)) == 2 and not agent.waiting())
        fetch = ["fleet", "fetch", "7", "got", "--fleet", "doors", "--url", f"{url}/results/", "--curl", curl]
        done = test.run(*fetch)
        check(done.status == 0 and "1 fetched, 0 were there, 0 missing, 0 refused" in done.err, f"{done}")
        done = test.run(*fetch, "--capture")
        check(done.status == 0 and "1 fetched, 1 were there" in done.err, f"{done}")
        got = sorted((test.dir / "got/fleet=doors/order=7/board=door-17").iterdir())
        check([p.read_bytes() for p in got] == [p.read_bytes() for p in store.results(7)], got)
        origin = lines_of(next(p for p in got if p.name.endswith(".ndjson.zst")))[-1]["origin"]
        check(origin["board"] == "door-17" and origin["order"] == 7 and origin["kernel"] == os.uname().release and (
            origin["labels"]["type"] == "door-3" and origin["groups"] == ["canary"]), origin)
        done = succeeds(test.run("fleet", "report", "got"))
        check("boards: 1" in done.out and "\nsched\n" in done.out, f"{done}")
        page = succeeds(test.run("fleet", "open", "got", "door-17", "-q")).out.strip()
        check(open(page, encoding="utf-8").read(15).lower().startswith("<!doctype html"), page)
        done = test.run("fleet", "open", "got", "door-18")
        check(done.status == 1 and "no recording of door-18" in done.err, f"{done}")
        done = test.run("fleet", "open", "got", "door-17", "--serial", 99)
        check(done.status == 1 and "no recording of door-17 by order 99" in done.err, f"{done}")


def contributed_store(store):
    """The store has the configuration of contrib/fleet. Returns the operators' URL."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "contrib/fleet/nginx.conf").read_text()
    port = free_port()
    (store.dir / "boards-ca.pem").write_bytes((store.dir / "ca.pem").read_bytes())
    store.authorize("operators-ca")
    store.certify("operator", "operators-ca")
    for name in ("door-17", "door-18", "x,CN=door-17"):
        store.certify(name)
    for old, new in (("/etc/nginx/fleet", store.dir), ("/srv/fleet", store.dir), ("listen 443", f"listen 127.0.0.1:{store.port}"),
                     ("listen 8443", f"listen 127.0.0.1:{port}")):
        check(old in text, f"no {old}")
        text = text.replace(old, str(new))
    before, after = (store.dir / "nginx.conf").read_text().split("    server {")
    # Settings for all sites stay.
    (store.dir / "nginx.conf").write_text(before + text + "}\n")
    check(after, "no server")
    return f"https://127.0.0.1:{port}"


def status_of(store, name, url, *words):
    done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", store.dir / "ca.pem", "--cert",
                           store.dir / f"{name}.pem", "--key", store.dir / f"{name}.key", *words, url], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    return int(done.stdout)


def store_of_contrib(test):
    """nginx as docs/fleet.md has it: a board writes below its own name only, an operator elsewhere."""
    with fleet(test, certificate="client") as (store, agent):
        operators = contributed_store(store)
        agent.write(store, certificate="door-17")
        store.start()
        # The folder of other sites: neither orders nor results come through it.
        (store.dir / "body").rmdir()
        curl = test.dir / "curl.conf"
        curl.write_text(f'cacert = "{store.dir}/ca.pem"\ncert = "{store.dir}/operator.pem"\nkey = "{store.dir}/operator.key"\n')
        succeeds(order_of(test, "--fleet", "doors", "--serial", 7, "-t", "300ms", "-e", "sched:sched_switch", "--report", "sched",
                          "--url", f"{operators}/orders/doors", "--curl", curl, key="store/order.sec"))
        agent.start()
        settled(f"a result: {agent.words()}", lambda: len(store.results(7)) == 1 and not agent.waiting())
        done = test.run("fleet", "fetch", 7, "got", "--fleet", "doors", "--url", f"{operators}/results", "--curl", curl)
        check(done.status == 0 and "1 fetched" in done.err, f"{done}")
        own, put_it = "results/fleet=doors/order=7/board=door-17", ("-T", store.dir / "ca.pem")
        for name, url, words, want in (
                ("door-17", f"{store.url}/{own}/a.json", put_it, 201), ("door-18", f"{store.url}/{own}/a.json", put_it, 403),
                ("x,CN=door-17", f"{store.url}/{own}/a.json", put_it, 403), ("door-18", f"{store.url}/{own}/a.json", (), 403),
                ("door-17", f"{store.url}/{own}/../board=door-18/a.json", (*put_it, "--path-as-is"), 403),
                ("door-17", f"{store.url}/{own}/", (), 403), ("door-17", f"{store.url}/orders/doors", (), 200),
                ("door-17", f"{store.url}/orders/doors", put_it, 405), ("door-17", f"{operators}/{own}/", (), 400),
                ("operator", f"{store.url}/orders/doors", (), 400), ("operator", f"{operators}/{own}/b.json", put_it, 405),
                ("operator", f"{operators}/keys/order.pub", (), 403)):
            got = status_of(store, name, url, *words)
            check(got == want, f"{name}: {words[:1]} {url}: {got}, not {want}")


def rows_are_merged(test):
    """report --merge adds up rows as it does JSON, from a file; a damaged one is named."""
    good = [reports(sched({20000 * n: 10}, tid=n), lost=n) for n in range(1, 4)]
    for n, data in enumerate(good):
        (test.dir / f"{n}.json").write_text(json.dumps(json.loads(data), separators=(",", ":")))
        (test.dir / f"{n}.zst").write_bytes(packed(as_lines(data)))
    want = succeeds(test.run("report", "--merge", "0.json", "1.json", "2.json", "--json"))
    for names in (("0.zst", "1.zst", "2.zst"), ("0.zst", "1.json", "2.zst")):
        done = test.run("report", "--merge", *names, "--json")
        check(done.status == 0 and (done.out, done.err) == (want.out, want.err), f"{names}: {done}")
    with open(test.dir / "0.zst", "rb") as file:
        done = subprocess.run(test.arguments("report", "--merge", "-", "1.json", "2.zst", "--json"), cwd=test.dir, stdin=file,
                              capture_output=True, text=True, check=True, env=test.environment())
    check(done.stdout == want.out, done)
    for data, why in ((packed(as_lines(good[0]))[:-5], "bad.zst: it is cut"), (packed(good[0]), "bad.zst: it is no report")):
        (test.dir / "bad.zst").write_bytes(data)
        done = test.run("report", "--merge", "0.zst", "bad.zst")
        check(done.status == 1 and why in done.err and not done.out, f"{done}")
    # Other commands name the one that takes it.
    for words in (("report", "sched", "0.zst"), ("report", "0.json"), ("convert", "0.zst", "out.json")):
        done = test.run(*words)
        check(done.status == 1 and "this is a report, not a recording" in done.err and "report --merge" in done.err, f"{done}")
    done = test.run("fleet", "report", "0.zst")
    check(done.status == 1 and "Not a directory" in done.err and "fleet=F/order=N" in done.err, f"{done}")


def rows_are_reports(test):
    """A board's rows are what its report in JSON says; damaged ones leave out their board, and are not fetched."""
    good = [reports(sched({20000 * n: 10}, tid=n), lost=n) for n in range(1, 4)]
    for n, data in enumerate(good):
        put(test.dir / "json", f"door-{n}", data)
        put_rows(test.dir / "rows", f"door-{n}", data)
    said = [succeeds(test.run("fleet", "report", test.dir / name, "--json")) for name in ("json", "rows")]
    check(said[0].out == said[1].out and said[0].err == said[1].err, f"{said}")
    lines, damaged, reasons = as_lines(good[0]), [], []
    for data, why in ((packed(lines)[:-5], "it is cut"), (packed(lines[:-5]), "its last line is missing"),
                      (lines, "zstd: Unknown frame descriptor"), (b"", "it is cut"),
                      (packed(b"\n" * (65 << 20)), "it is no report: line 1"),
                      (packed(b"x" * (65 << 20)), "its rows have more than 65536 KiB"),
                      (packed(lines.replace(b'"task"', b'task')), "at byte"), (packed(lines) + b"x", "zstd: Unknown frame descriptor"),
                      (packed(lines)[:-1] + b"\0", "zstd: Restored data doesn't match checksum")):
        reasons.append(why)
        damaged.append(put(test.dir / "rows", f"odd-{len(damaged)}", data, suffix="ndjson.zst"))
    done = test.run("fleet", "report", test.dir / "rows", "--json")
    check(done.status == 3 and json.loads(done.out)["reports"][1:] == json.loads(said[0].out)["reports"][1:], f"{done}")
    notes = json.loads(done.out)["reports"][0]["notes"]
    told = [note for note in notes if note.startswith("left out: odd-")]
    check(len(told) == len(damaged) and all(why in note for why, note in zip(reasons, told)), told)
    with fleet(test) as (store, _):
        shutil.copytree(test.dir / "rows", store.dir / "www/results", dirs_exist_ok=True)
        store.start()
        done = test.run("fleet", "fetch", 17, "got", "--fleet", "doors", "--url", f"{store.url}/results", "--curl",
                        curl_file(test, store))
        # A later check reads the JSON.
        refused = [path.name for path in damaged if path.name not in (damaged[6].name,)]
        check(done.status == 3 and "4 fetched, 0 were there, 0 missing, 8 refused" in done.err and all(
            name in done.err for name in refused), f"{done}")
        check(not list((test.dir / "got").rglob("*.part")), "a part stays")


def a_store_that_lists_lies(test):
    """Names that lead elsewhere, files with another content, lists that are none."""
    with fleet(test) as (store, _):
        results = store.dir / "www/results"
        good = [put(results, f"door-{n}", reports(sched({20000: 10 + n}))) for n in range(3)]
        good[1].write_bytes(b"another content")
        (good[0].parent / "x..json").write_text("{}")
        (good[0].parents[1] / "board=a b").mkdir()
        (good[0].parents[1] / f"board={ESCAPE}").mkdir()
        store.start()
        words = ["fleet", "fetch", "17", "got", "--fleet", "doors", "--curl", curl_file(test, store), "--url"]
        done = test.run(*words, f"{store.url}/results")
        check(done.status == 3 and "2 fetched, 0 were there, 0 missing, 4 refused" in done.err, f"{done}")
        check("\x1b" not in done.err and "is not the hash of its content" in done.err, f"{done}")
        # The rest comes with the next run.
        good[1].unlink()
        (good[0].parent / "x..json").unlink()
        done = test.run(*words, f"{store.url}/results")
        check("0 fetched, 2 were there" in done.err, f"{done}")
        # A file that was damaged since, or is a link, is fetched again.
        here = [test.dir / "got" / path.relative_to(results) for path in (good[0], good[2])]
        here[0].write_bytes(here[0].read_bytes()[:-1])
        here[1].unlink()
        here[1].symlink_to(good[2])
        done = test.run(*words, f"{store.url}/results")
        check("2 fetched, 0 were there" in done.err and done.err.count("fetched again: ") == 2, f"{done}")
        check(all(not path.is_symlink() and name_of(path.read_bytes()) == path.stem for path in here), here)
        files = sorted(p.name for p in (test.dir / "got").rglob("*") if p.is_file())
        check(files == sorted(p.name for p in (good[0], good[2])), files)
        for place in ("moved", "bombs"):
            done = test.run(*words, f"{store.url}/{place}")
            check(done.status == 1 and "list" in done.err, f"{place}: {done}")
        # The reason comes once, with the URL.
        done = test.run(*words, f"{store.url}/lies")
        url = f"{store.url}/lies/fleet=doors/order=17/"
        check(done.status == 1 and done.err.count("404") == 1 and done.err.count("\n") == 2 and "autoindex" in done.err and
              done.err.startswith(f"tracectl: {url}: The requested URL returned error: 404\n"), f"{done}")
        done = test.run(*words, "https://127.0.0.1:1/results")
        check(done.status == 1 and done.err.count("\n") == 1 and "order=17/: " in done.err, f"{done}")
        # A run without any file leaves no folder.
        done = test.run(*words[:3], "new", *words[4:], f"{store.url}/moved")
        check(done.status == 1 and not (test.dir / "new").exists(), f"{done}")
        done = test.run(*words, "http://127.0.0.1:1/results")
        check(done.status == 1 and "no URL of HTTPS" in done.err, f"{done}")


def lists_of_s3(test):
    """In parts, and with keys that lead elsewhere."""
    with fleet(test) as (store, _):
        good = [put(store.dir / "www/bucket/prefix", f"door-{n}", reports(sched({20000: 10 + n}))) for n in range(3)]
        keys = [str(p.relative_to(store.dir / "www/bucket")) for p in good]
        keys.insert(1, "prefix/fleet=doors/order=17/board=../../../etc/passwd")
        keys.insert(1, "prefix/fleet=doors/order=18/" + keys[0].split("/", 3)[3])
        for name, part, more in (("1", keys[:3], "<NextContinuationToken>a+/b=</NextContinuationToken>"), ("2", keys[3:], "")):
            (store.dir / f"www/list{name}.xml").write_text(
                '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' + more +
                "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in part) + "</ListBucketResult>")
        store.start()
        done = test.run("fleet", "fetch", "17", "got", "--fleet", "doors", "--curl", curl_file(test, store), "--url",
                        f"{store.url}/bucket/prefix", "--s3")
        check(done.status == 3 and "3 fetched, 0 were there, 0 missing, 2 refused" in done.err, f"{done}")
        check("prefix=prefix%2Ffleet%3Ddoors%2Forder%3D17%2F" in (store.dir / "access.log").read_text(), "no prefix")
        # A list without an end, and one whose next part can't be asked for: neither is whole.
        last = store.dir / "www/list2.xml"
        text = last.read_text()
        for token, why in (("a+/b=", "gives the same part again"), (f"a&amp;{ESCAPE}", "its token for the next part is none")):
            last.write_text(text.replace("<Contents>", f"<NextContinuationToken>{token}</NextContinuationToken><Contents>", 1))
            done = test.run("fleet", "fetch", "17", "got", "--fleet", "doors", "--curl", curl_file(test, store), "--url",
                            f"{store.url}/bucket/prefix", "--s3")
            check(done.status == 1 and why in done.err and "\x1b" not in done.err, f"{done}")


@contextlib.contextmanager
def false_store(test):
    """A store with good results of three boards, and a way to fetch them; index and lists are made of `sizes`."""
    with fleet(test) as (store, _):
        place, results = "fleet=doors/order=17", [reports(sched({20000: 10 + n})) for n in range(3)]
        names = [f"board=door-{n}/{name_of(data)}.json" for n, data in enumerate(results)]
        answers = {f"/results/{place}/{name}": data for name, data in zip(names, results)}
        false = FalseStore(store.dir, answers)
        false.paths = list(answers)

        def claim(*sizes):
            answers[f"/results/{place}"] = json.dumps([{"name": f"board=door-{n}"} for n in range(3)]).encode()
            for name, size in zip(names, sizes):
                board, file = name.split("/")
                answers[f"/results/{place}/{board}"] = json.dumps([{"name": file, "size": size}]).encode()
            answers["/results"] = b"<ListBucketResult>" + b"".join(
                f"<Key>{place}/{name}</Key><Size>{size}</Size>".encode() for name, size in zip(names, sizes))

        def fetch(*words):
            done = test.run("fleet", "fetch", "17", "got", "--fleet", "doors", "--url", f"{false.url}/results", "--curl",
                            curl_file(test, store), *words, timeout=240)
            left = sorted(path for path in (test.dir / "got").rglob("*") if path.is_file() and path.suffix != ".json")
            check(not left, f"{left}: {done}")
            return done

        claim(*map(len, results))
        false.claim, false.fetch = claim, fetch
        try:
            yield false, answers
        finally:
            false.stop()


def sizes_of_lists(test):
    """More than --max-size is not begun, by either list; sizes that no result has are refused."""
    with false_store(test) as (false, _):
        for more in ((), ("--s3",)):
            false.claim(1 << 30, 1 << 20, 1)
            done = false.fetch("--max-size", "1G", *more)
            check(done.status == 1 and "3 results have 1049664 KiB, and --max-size is 1048576 KiB" in done.err, f"{done}")
            check("--max-size 1049664K fetches them" in done.err and not (test.dir / "got/fleet=doors").exists(), f"{done}")
            # Each of these counts as 64 KiB.
            false.claim(1, 1, 1)
            done = false.fetch("--max-size", "191K", *more)
            check(done.status == 1 and "3 results have 192 KiB, and --max-size is 191 KiB" in done.err, f"{done}")
            for size in ((1 << 30) + 1, -1, 1.5, None, "7 8", 1 << 64):
                false.claim(size, 1, size)
                done = false.fetch("--max-size", "63K", *more)
                check(done.status == 1 and done.err.count("has no size of a result in the store's list") == 2, f"{done}")
        false.claim(1 << 30, 1 << 30, 1 << 30)
        done = false.fetch()
        check(done.status == 0 and "3 fetched" in done.err, f"{done}")
        done = false.fetch("--max-size", "1B")
        check(done.status == 0 and "0 fetched, 3 were there" in done.err, f"{done}")


def bodies_without_end(test):
    """What is larger than the list says is cut, whether a header says so or not; the other results come."""
    with false_store(test) as (false, answers):
        good = answers[false.paths[1]]
        answers[false.paths[0]] = lambda request: request.give_endlessly()
        answers[false.paths[1]] = lambda request: request.give(good, length=1 << 40)
        done = false.fetch()
        check(done.status == 3 and "1 fetched, 0 were there, 2 missing, 0 refused" in done.err, f"{done}")
        check(done.err.count("curl:") >= 2 and false.sent < 32 << 20, f"{false.sent} bytes: {done}")
        # All of them, as large as the list lets them be.
        false.sent = 0
        for path in false.paths:
            answers[path] = lambda request: request.give_endlessly()
        false.claim(2 << 20, 1 << 20, 1 << 20)
        done = false.fetch("--max-size", "4M")
        check(done.status == 3 and "0 fetched, 1 were there, 2 missing, 0 refused" in done.err, f"{done}")
        check(false.sent < 64 << 20, f"{false.sent} bytes: {done}")
        # A board's list: the others' come. The list of all: nothing does.
        answers[false.paths[0].rsplit("/", 1)[0]] = lambda request: request.give_endlessly(b"[")
        answers[false.paths[1]] = good
        done = false.fetch()
        check(done.status == 3 and "refused: the list of board=door-0" in done.err and "1 fetched" in done.err, f"{done}")
        for path, more in (("/results/fleet=doors/order=17", ()), ("/results", ("--s3",))):
            for give in (lambda request: request.give_endlessly(b"<ListBucketResult>"),
                         lambda request: request.give(b"[", length=1 << 40)):
                false.sent = 0
                answers[path] = give
                done = false.fetch(*more)
                check(done.status == 1 and "the answer has more than 16777216 bytes" in done.err and false.sent < 64 << 20,
                      f"{false.sent} bytes: {done}")


def answers_of_lists(test):
    """Only an answer that there is nothing, or that it is not shown, may mean that no board has answered."""
    with false_store(test) as (false, answers):
        for status in (400, 401, 403, 404, 503):
            answers["/results/fleet=doors/order=17"] = lambda request: request.lack(status)
            done = false.fetch()
            check(done.status == 1 and f"The requested URL returned error: {status}\n" in done.err, f"{done}")
            check(("no board has answered order 17" in done.err) == (status in (403, 404)), f"{status}: {done}")


def more_than_the_list_says(test):
    """A store that fills what its list leaves is ended at --max-size."""
    with false_store(test) as (false, answers):
        for path in false.paths:
            answers[path] = b"x" * (1 << 20)
        false.claim(1 << 20, 1, 1)
        done = false.fetch("--max-size", "1200K")
        check(done.status == 3 and "0 fetched, 0 were there, 2 missing, 1 refused" in done.err, f"{done}")
        check("is not the hash of its content" in done.err, f"{done}")
        # The first two may each have as much as the larger one.
        false.claim(1 << 20, 1000000, 100000)
        done = false.fetch("--max-size", "2099K")
        check(done.status == 1 and "the store sends more than its list says" in done.err, f"{done}")


def lists_without_end(test):
    """Each part is another one."""
    with false_store(test) as (false, answers):
        def give(request):
            parts.append(request.path)
            request.give(b"<ListBucketResult><NextContinuationToken>t%d</NextContinuationToken>" % len(parts) +
                         b"<Key>a</Key>" * 400000)

        parts = []
        answers["/results"] = give
        done = false.fetch("--s3")
        check(done.status == 1 and "it has more than 1000000 names" in done.err and len(parts) == 3, f"{parts}: {done}")


def segments_that_come_twice(test):
    """A number that two files have is no clean sequence. A number may have zeros before it."""
    for number, data in ((1, b"one"), (2, b"two"), (2, b"another"), (3, b"three")):
        put(test.dir, "door-1", data, suffix=f"{number:04}.txt")
    done = test.run("fleet", "open", test.dir, "door-1")
    check(done.status == 3 and "several segments have number 2" in done.err and len(done.out.splitlines()) == 4, f"{done}")
    for number in ("3", "0003"):
        done = test.run("fleet", "open", test.dir, "door-1", number)
        check(done.status == 0 and done.out.splitlines()[0].endswith(".0003.txt") and not done.err, f"{done}")
    done = test.run("fleet", "open", test.dir, "door-1", "2")
    check(done.status == 3 and len(done.out.splitlines()) == 2, f"{done}")
    done = test.run("fleet", "open", test.dir, "door-1", "18446744073709551617")
    check(done.status == 1 and "has no segment" in done.err, f"{done}")


def many_segments(test):
    """A board's list may have a day's segments."""
    with fleet(test) as (store, _):
        store.start()
        for number in range(1, 701):
            put(store.dir / "www/results", "door-17", b"%d" % number, suffix=f"{number:04}.txt")
        done = test.run("fleet", "fetch", "17", "got", "--capture", "--fleet", "doors", "--url", f"{store.url}/results", "--curl",
                        curl_file(test, store))
        check(done.status == 0 and "700 fetched, 0 were there, 0 missing, 0 refused" in done.err, f"{done}")


def a_key_that_signs_uploads(test):
    """Nobody else may read it, and no part of it may pass for a comment."""
    make_keys(test)
    path = test.dir / "presign.conf"
    words = ("--fleet", "doors", "--serial", "17", "-t", "1s", "--report", "sched", "--presign", path, "-o", "doors")
    head = "; a key\n[swift]\nurl = https://swift.invalid/v1/AUTH_fleet/doors\n"
    for text, mode, why in ((head + "key = s3cret\n", 0o600, None), (head + "key = s3cret;x\n", 0o640, None),
                            (head + "key = s3cret\n", 0o644, "can be read by everybody"),
                            (head + "key = s3 ;cret\n", 0o600, "begins a comment"),
                            (head + "key = s3\t;cret\n", 0o600, "begins a comment")):
        path.write_text(text)
        path.chmod(mode)
        done = order_of(test, *words)
        check(why in done.err if why else done.status == 0, f"{text}: {done}")
        check(done.status == (1 if why else 0), f"{text}: {done}")


def main():
    Test.make_daemon = Members
    test = Test("fleet")
    test.case("an order has the words of record", what_an_order_says)
    test.case("what is no order is not signed", what_is_no_order)
    test.case("boards that are far from the rest come first", which_boards_are_far)
    test.case("stray words are refused", stray_words)
    test.case("files that are not what their names say are refused", files_that_lie)
    test.case("histograms of the kernel add up", histograms_add_up)
    test.case("a board with other columns is left out", boards_that_differ)
    test.case("a board does not hide the others", boards_that_hide_others)
    test.case("from an order to a page", from_order_to_page, daemon=True)
    test.case("a store by nginx", store_of_contrib, daemon=True)
    test.case("rows are merged", rows_are_merged)
    test.case("segments that come twice", segments_that_come_twice)
    test.case("many segments of a board", many_segments, daemon=True)
    test.case("a key that signs uploads", a_key_that_signs_uploads)
    test.case("rows are reports", rows_are_reports, daemon=True)
    test.case("a store's lists are checked", a_store_that_lists_lies, daemon=True)
    test.case("lists of S3", lists_of_s3, daemon=True)
    test.case("sizes of a store's lists are checked", sizes_of_lists, daemon=True)
    test.case("bodies without an end are cut", bodies_without_end, daemon=True)
    test.case("answers instead of lists", answers_of_lists, daemon=True)
    test.case("a store may not send more than its list says", more_than_the_list_says, daemon=True)
    test.case("lists without an end", lists_without_end, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
