#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent, as a user without rights, between a store and the daemon: what it follows, what it refuses, what it
sends, and what remains when it or the store ends in between."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from board import Members, fleet
from false_store import ENDLESS, FalseStore
from harness import NOBODY, PATIENCE_S, Result, Test, check, settled
from fleet_data import lines_of
from store import order, some_day


def sessions(test):
    return json.loads(test.run("status", "--json").out)["sessions"]


def order_to_store(test):
    """Report and capture arrive once, under names that are their content; the same order is not asked for twice."""
    with fleet(test) as (store, agent):
        store.start()
        agent.start()
        settled("a poll", lambda: 404 in store.requests("GET"))
        store.publish(store.sign(order(7, group="canary", labels="type=door* arch=*", share=100, window="200ms",
                                       capture="yes", duration="1s", filter="prev_pid != 0")))
        settled(f"two results: {agent.words()}", lambda: len(store.results(7)) == 2 and not agent.waiting())
        for path in store.results(7):
            check(path.name.split(".")[0] == hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest(), path)
        capture, report = sorted(store.results(7), key=lambda p: p.suffix)
        check(report.name.endswith(".ndjson.zst"), report)
        lines = lines_of(report)
        rows = [line for line in lines if line.get("report") == "sched"]
        check(rows and all("task" in row and "delay" in row for row in rows), f"rows: {rows[:3]}")
        check(lines[0]["format"] == "traced-report" and lines[1]["table"] == "sched" and lines[-2]["end"] == "sched" and (
            lines[-1]["origin"]["order"] == 7) and len(lines) == len(rows) + 4, [lines[0], lines[1], lines[-2:]])
        again = json.loads(test.run("report", "sched", "--json", capture).out)["reports"][0]["rows"]
        check(len(again) == len(rows), f"{len(again)} rows of the capture, {len(rows)}")
        lines = test.run("convert", capture, "-o", "-", "--format", "txt").out.splitlines()
        events = [line for line in lines if "sched_switch:" in line]
        check(events and not any("prev_pid=0 " in line for line in events), events[:3])
        # With the third request the agent has counted the second answer.
        settled("answers that nothing changed", lambda: store.requests("GET").count(304) >= 3)
        check(store.requests("GET").count(200) == 1, store.requests("GET"))
        check(store.requests("PUT") == [201, 201], store.requests("PUT"))
        m = agent.metrics()
        check((m["orders_taken_total"], m["recordings_total"], m["uploads_total"], m["last_serial"]) == (1, 1, 2, 7), m)
        check(m["polls_unchanged_total"] >= 2 and m["upload_failures_total"] == m["spool_bytes"] == m["up"] == 0, m)
        check(abs(m["last_poll_time_seconds"] - time.time()) < PATIENCE_S, m)


def names_of_hosts(test):
    """A static agent looks up names without the modules of nsswitch.conf, which are for another C library."""
    with fleet(test) as (store, agent):
        is_static = b"/ld-" not in pathlib.Path(agent.program[-1]).read_bytes()[:4096]
        (test.dir / "nsswitch.conf").write_text(f"hosts: {'traced_no_such_module' if is_static else 'files'}\n")
        (test.dir / "hosts").write_text(f"{store.address} store.test\n")
        (store.dir / "san").write_text("subjectAltName = DNS:store.test\n")
        store.certify("server")
        store.url = f"https://store.test:{store.port}"
        agent.write(store)
        agent.before = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/nsswitch.conf && mount --bind "$1" /etc/hosts && '
                        'shift && exec "$@"', test.dir / "nsswitch.conf", test.dir / "hosts"]
        store.publish(store.sign(order(7)))
        store.start()
        agent.start()
        settled("a result", lambda: len(store.results(7)) == 1 and not agent.waiting())


def what_is_refused(test):
    """Each refusal has its reason in the log and in the metrics, and leads to no recording."""
    with fleet(test) as (store, agent):
        store.publish(store.sign(order(7)))
        store.start()
        agent.start()
        settled("order 7", lambda: len(store.results(7)) == 1)
        refused = [
            ("replayed", store.sign(order(6))),
            ("replayed", store.sign(order(7, duration="200ms"))),
            ("signature", store.sign(order(8), key="other")),
            ("signature", store.sign(order(8)).replace(b"serial = 8", b"serial = 9")),
            ("signature", order(8).encode()),
            ("signature", store.sign(order(8))[:-20]),
            ("signature", store.sign(order(8))[:100]),
            ("syntax", store.sign(order(8, command="reboot"))),
            ("syntax", store.sign(order(8, reports="-o/etc/passwd"))),
            ("expired", store.sign(order(8, expires="2020-01-01T00:00:00Z"))),
            ("validity", store.sign(order(8, expires="2099-01-01T00:00:00Z"))),
            ("duration", store.sign(order(8, duration="11m"))),
            ("events", store.sign(order(8, events="syscalls:*"))),
            ("reports", store.sign(order(8, reports="syscalls"))),
            ("triggers", store.sign(order(8, until="irq.max > 1ms"))),
            ("hist", store.sign(order(8, hist="sched:sched_switch:keys=next_comm", capture="yes"))),
            ("sql", store.sign(order(8, **{"sql": "SELECT 1", "as": "x"}))),
        ]
        for i, (_, data) in enumerate(refused, 1):
            store.publish(data)
            agent.says("refused order", i)
        store.publish(store.sign(order(8, fleet="lifts")))
        settled("an order of others", lambda: store.requests("GET").count(200) == len(refused) + 2)
        store.publish(store.sign(order(9)))
        settled("order 9", lambda: len(store.results(9)) == 1 and not agent.waiting())
        m = agent.metrics()
        reasons = {reason for reason, _ in refused}
        for reason in reasons:
            count = sum(reason == r for r, _ in refused)
            check(m[f'orders_refused_total{{reason="{reason}"}}'] == count, f"{reason}: {m}")
        check(m["orders_taken_total"] == m["recordings_total"] == 2 and m["orders_of_others_total"] == 1, m)
        # A restarted agent gets the last order again, and knows it.
        agent.start()
        settled("another poll", lambda: store.requests("GET").count(200) == len(refused) + 4)
        m = agent.metrics()
        check(m["orders_taken_total"] == 0 and not any(v for k, v in m.items() if "refused" in k), m)


def the_store_goes_and_comes(test):
    with fleet(test, results="/results/") as (store, agent):
        # Long enough to stop the store meanwhile.
        store.publish(store.sign(order(7, duration="10s")))
        store.start()
        agent.start()
        agent.says("took order 7")
        store.stop()
        agent.says("no upload")
        check(len(agent.waiting()) == 1, agent.waiting())
        store.start()
        settled("the upload", lambda: len(store.results(7)) == 1 and not agent.waiting())
        m = agent.metrics()
        check(m["upload_failures_total"] >= 1 and m["uploads_total"] == 1 and m["uploads_present_total"] == 0, m)


def let_a_result_wait(store, agent):
    """The store goes while the order is followed."""
    store.publish(store.sign(order(7, duration="10s")))
    store.start()
    agent.start()
    agent.says("took order 7")
    store.stop()
    settled("a result", lambda: len(agent.waiting()) == 1)


def a_full_disk(test):
    """Uploads make room, although nothing can be noted before."""
    with fleet(test) as (store, agent):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=16m,mode=700,uid={NOBODY},gid={NOBODY}", "none", agent.state], check=True)
        try:
            let_a_result_wait(store, agent)
            # A file that the agent replaces at that moment makes room once more.
            for _ in range(3):
                with contextlib.suppress(OSError), open(agent.state / "filler", "ab", buffering=0) as filler:
                    while filler.write(bytes(4096)):
                        pass
                time.sleep(0.3)
            store.start()
            settled("the upload", lambda: len(store.results(7)) == 1 and not agent.waiting())
            agent.says("the upload of order 7 is not noted")
            agent.stop()
        finally:
            subprocess.run(["umount", "-l", agent.state], check=True)


def killed_before_the_upload(test):
    """Nothing is recorded, nor sent, twice."""
    with fleet(test) as (store, agent):
        let_a_result_wait(store, agent)
        agent.stop(signal.SIGKILL)
        store.start()
        agent.start()
        settled("the upload", lambda: len(store.results(7)) == 1 and not agent.waiting())
        settled("another poll", lambda: 200 in store.requests("GET")[1:])
        m = agent.metrics()
        check((m["orders_taken_total"], m["recordings_total"], m["uploads_total"]) == (0, 0, 1), m)
        check(store.requests("PUT") == [201], store.requests("PUT"))


def killed_after_the_upload(test):
    """The store has the file, but the agent doesn't know: it asks, and sends nothing."""
    with fleet(test) as (store, agent):
        store.publish(store.sign(order(7)))
        store.start()
        agent.start()
        settled("the upload", lambda: len(store.results(7)) == 1 and not agent.waiting())
        agent.stop()
        sent = store.results(7)[0]
        name = agent.state / "spool" / f"{7:020}-{sent.name}"
        name.write_bytes(sent.read_bytes())
        agent.start()
        settled("the file goes", lambda: not agent.waiting())
        m = agent.metrics()
        check(m["uploads_present_total"] == 1 and store.requests("PUT") == [201], m)
        # A part is replaced.
        name.write_bytes(sent.read_bytes())
        whole = sent.read_bytes()
        sent.write_bytes(whole[:-1])
        agent.start()
        settled("the file goes", lambda: not agent.waiting())
        check(sent.read_bytes() == whole, "a part remains")


def killed_while_it_records(test):
    """The recording ends, the order is reported as interrupted, and is not taken again."""
    with fleet(test) as (store, agent):
        store.publish(store.sign(order(7, duration="10m")))
        store.start()
        agent.start()
        settled("a session", lambda: '"recording"' in test.run("status", "--json").out)
        agent.stop(signal.SIGKILL)
        settled("no session", lambda: not sessions(test))
        agent.start()
        agent.says("order 7 was interrupted")
        settled("a poll", lambda: store.requests("GET").count(200) == 2)
        m = agent.metrics()
        check(m["orders_interrupted_total"] == 1 and m["orders_taken_total"] == 0, m)
        check(not list((agent.state / "recording").iterdir()) and not store.requests("PUT"), "something is left")


def a_store_that_lies(test):
    """It answers 201 to PUT, and 404 to HEAD; or 200 to both, and has no data. The result stays until a store really has
    it."""
    with fleet(test, results="/lies") as (store, agent):
        store.publish(store.sign(order(7)))
        store.start()
        for place in ("/lies", "/empty"):
            agent.log.write_text("")
            agent.write(store, results=place)
            agent.start()
            agent.says(f"{place}/.*: the store accepted it, but does not have it", 2)
            check(len(agent.waiting()) == 1, agent.waiting())
            m = agent.metrics()
            check(m["uploads_unconfirmed_total"] == m["upload_failures_total"] >= 2 and m["uploads_total"] == 0, m)
        agent.write(store)
        agent.start()
        settled("the upload", lambda: len(store.results(7)) == 1 and not agent.waiting())


def wrong_etags(test):
    """One that stays when the order changes, and one that changes when the order stays: the content counts."""
    with fleet(test, orders=("/same/doors",)) as (store, agent):
        store.start()
        for serial, place in ((7, "/same"), (8, "/same"), (9, "/fresh"), (10, "/fresh")):
            if serial == 9:
                agent.stop()
                agent.write(store, orders=("/fresh/doors",))
            store.publish(store.sign(order(serial)))
            if not agent.process:
                agent.start()
            settled(f"order {serial}: {agent.words()}", lambda: len(store.results(serial)) == 1)
            asked = store.requests("GET", f"{place}/doors").count(200)
            settled("more polls", lambda: store.requests("GET", f"{place}/doors").count(200) >= asked + 3)
        m = agent.metrics()
        check(m["orders_taken_total"] == m["recordings_total"] == 2 and len(store.requests("PUT")) == 4, m)
        check(not any(value for name, value in m.items() if "refused" in name), m)


def an_answer_without_end(test):
    """The agent reads little of it, and tries again."""
    with fleet(test) as (store, agent):
        false = FalseStore(store.dir, {})
        try:
            agent.config.write_text(agent.config.read_text().replace(f"url = {store.url}/results", f"url = {false.url}/results"))
            store.publish(store.sign(order(7)))
            store.start()
            agent.start()
            agent.says("no upload: .*[Ff]ail", 2)
            check(len(agent.waiting()) == 1 and 0 < false.sent < ENDLESS // 8, f"{false.sent} {agent.words()}")
        finally:
            agent.stop()
            false.stop()


def one_result_is_refused(test):
    """It holds up no other."""
    with fleet(test, results="/partly") as (store, agent):
        store.start()
        agent.start()
        for serial in (7, 8):
            store.publish(store.sign(order(serial)))
            agent.says(f"recorded order {serial}")
        settled("order 8", lambda: list(store.dir.glob("www/partly/*/order=8/*/*.ndjson.zst")))
        settled("more tries", lambda: store.requests("HEAD", "order=7").count(403) >= 2)
        settled("only order 7 waits", lambda: [name[:20] for name in agent.waiting()] == [f"{7:020}"])


def quotas_hold(test):
    with fleet(test) as (store, agent):
        text = agent.config.read_text().replace("captures = yes", "uploads_a_day = 1\norders_a_day = 2")
        agent.config.write_text(text)
        store.start()
        agent.start()
        for serial in (7, 8):
            store.publish(store.sign(order(serial)))
            agent.says(f"recorded order {serial}")
        settled("the upload", lambda: len(store.results(7)) == 1)
        store.publish(store.sign(order(9)))
        agent.says("orders_a_day is reached")
        agent.stop()
        agent.start()
        settled("two polls", lambda: len(store.requests("GET")) >= 8)
        m = agent.metrics()
        check(len(agent.waiting()) == 1 and store.requests("PUT") == [201] and m["uploads_total"] == 0, m)


def the_order_has_a_budget(test):
    """Reports come first, and what does not fit stays here."""
    with fleet(test) as (store, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "captures = yes\ncpu_max = 50%"))
        store.start()
        agent.start()
        store.publish(store.sign(order(7, capture="yes", bytes_max="100B", duration="300ms")))
        agent.says("order 7: .*reports.ndjson.zst exceeds the order's bytes_max")
        store.publish(store.sign(order(8, cpu_max="50.1%", duration="300ms")))
        agent.says("cpu_max exceeds the policy's")
        # A few kB of rows; a capture has formats and tasks alone of 40 kB.
        store.publish(store.sign(order(9, capture="yes", bytes_max="20K", cpu_max="40%", duration="300ms")))
        agent.says("order 9: .*capture.traced exceeds the order's bytes_max")
        settled("one result", lambda: [p.name.partition(".")[2] for p in store.results(9)] == ["ndjson.zst"])
        check(not store.results(7) and not store.results(8), "results")
        m = agent.metrics()
        check(m['orders_refused_total{reason="cpu"}'] == 1, m)


def recorders(test):
    """Processes of tracectl record with the test's daemon."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes()
            if words.startswith(bytes(test.tracectl)) and b"\0record\0" in words and str(test.daemon.socket).encode() in words:
                yield int(path.parent.name)


def messages_come_while_it_records(test):
    """Once each, and not with the recording's end only."""
    with fleet(test) as (store, agent):
        store.start()
        agent.start()
        store.publish(store.sign(order(7, reports="irq", duration="10m")))
        said = "order 7: tracectl: there will be no events for the report irq"
        agent.says(said)
        check(sessions(test), f"the recording has ended: {agent.words()}")
        os.kill(min(recorders(test)), signal.SIGINT)
        agent.says("order 7: .*no events for the report irq", 2)
        settled("the order ends", lambda: not sessions(test))
        check(agent.words().count(said) == 1, agent.words())


def until_something_happens(test):
    """A flight recorder ends with the first time that a condition is met. Without that there is no result."""
    with fleet(test) as (store, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "captures = yes\ntriggers = yes"))
        store.publish(store.sign(order(7, until="event sched:sched_process_exit if comm == 'happens'", duration="5m", capture="yes")))
        store.start()
        agent.start()
        agent.says("took order 7")
        test.wait_for_sessions(2)
        program = test.dir / "happens"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        time.sleep(1)
        subprocess.run([program], check=True)
        settled(f"two results: {agent.words()}", lambda: len(store.results(7)) == 2)
        capture, report = sorted(store.results(7), key=lambda p: p.suffix)
        last = lines_of(report)[-1]
        check(2 * 10**9 <= last["span_ns"] < 60 * 10**9, last)
        check("sched_switch: prev_comm=happens" in test.run("convert", capture, "-o", "-", "--format", "txt").out, "it is missing")
        store.publish(store.sign(order(8, until="irq.max > 1h", duration="1s")))
        agent.says("order 8: nothing happened")
        store.publish(store.sign(order(9, until="sched.delay > 1ms for nonsense=1", duration="1s")))
        # The journal has all that tracectl says; the outcome is its last message but that `wait` failed.
        agent.says("order 9: tracectl: .* ended with exit status 2")
        agent.says("order 9: --on: this is not a key")
        # Nothing of it outlives the agent.
        store.publish(store.sign(order(10, until="irq.max > 1h", duration="5m")))
        settled("two sessions", lambda: any("-watch" in str(s) for s in sessions(test)))
        agent.stop(signal.SIGKILL)
        settled("no session", lambda: not sessions(test))
        agent.start()
        agent.says("order 10 was interrupted")
        m = agent.metrics()
        check(not agent.waiting() and not store.results(8) and not list((agent.state / "recording").iterdir()), "a result")


def the_newest_first(test):
    """Results that wait are sent from the newest on, and a full spool keeps what it has."""
    with fleet(test, results="/lies", of_results="send_first = newest\ndrop_first = newest\nspool_max = 1000k") as (store, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "result_max = 900k"))
        spool = agent.state / "spool"
        spool.mkdir(mode=0o700)
        os.chown(spool, NOBODY, NOBODY)
        names = [f"{serial:020}-{serial:064}.traced" for serial in (4, 5, 6)]
        for name in names:
            (spool / name).write_bytes(bytes(341200))
            os.chown(spool / name, NOBODY, NOBODY)
        store.start()
        agent.start()
        settled("tries", lambda: len(store.requests("PUT")) >= 3)
        tried = re.findall("PUT .*order=([0-9])", (store.dir / "access.log").read_text())
        check(tried[:3] == ["6", "5", "4"], tried)
        store.publish(store.sign(order(8)))
        agent.says("order 8: reports.ndjson.zst: the spool is full")
        check(agent.waiting() == names, agent.waiting())
        m = agent.metrics()
        check(m["spool_dropped_total"] == m["recording_failures_total"] == 1, m)


def only_when_the_board_may(test):
    """only_if's program holds up recordings and uploads, each until it says yes; orders expire meanwhile."""
    with fleet(test) as (store, agent):
        program = test.dir / "may"
        program.write_text(f'#!/bin/sh\ntest $# = 1 -a -e "{test.dir}/may-$1"\n')
        program.chmod(0o755)
        agent.config.write_text(agent.config.read_text().replace("captures = yes", f"only_if = {program}"))
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 12))
        store.publish(store.sign(order(7, expires=soon)))
        store.start()
        agent.start()
        agent.says("took order 7")
        agent.says("only_if: no record now: the program ended with status 1")
        agent.says("refused order 7: it expired before its turn")
        store.publish(store.sign(order(8)))
        agent.says("took order 8")
        # It is asked more than once.
        time.sleep(1.5)
        check(not agent.waiting() and "recorded" not in agent.words(), agent.words())
        (test.dir / "may-record").touch()
        agent.says("recorded order 8")
        agent.says("only_if: no upload now")
        time.sleep(1.5)
        check(len(agent.waiting()) == 1 and not store.requests("HEAD"), store.requests("HEAD"))
        (test.dir / "may-upload").touch()
        settled("the upload", lambda: len(store.results(8)) == 1 and not agent.waiting())
        m = agent.metrics()
        check((m["orders_taken_total"], m["recordings_total"], m["uploads_total"]) == (2, 1, 1), m)
        check(m["only_if_denials_total"] >= 3 and m['orders_refused_total{reason="expired"}'] == 1, m)


def what_waits_outlives_the_agent(test):
    """An order that waits for only_if is followed by a later life, once. Its signature and the policy are asked again."""
    with fleet(test) as (store, agent):
        program = test.dir / "may"
        program.write_text(f'#!/bin/sh\ntest "$1" = upload -o -e "{test.dir}/yes"\n')
        program.chmod(0o755)
        text = agent.config.read_text().replace("captures = yes", f"only_if = {program}")
        agent.config.write_text(text)
        key, other = store.dir / "keys/order.pub", store.dir / "other.pub"

        def waits(serial):
            store.publish(store.sign(order(serial)))
            agent.says(f"took order {serial}")
            agent.stop(signal.SIGKILL)

        store.publish(store.sign(order(7)))
        store.start()
        for count, how in enumerate((signal.SIGTERM, signal.SIGKILL)):
            agent.start()
            agent.says("order 7", count + 1)
            agent.says("only_if: no record now", count + 1)
            agent.stop(how)
        agent.start()
        agent.says("order 7 goes on waiting", 2)
        (test.dir / "yes").touch()
        settled(f"the result: {agent.words()}", lambda: len(store.results(7)) == 1 and not agent.waiting())
        settled("it is forgotten", lambda: not list((agent.state / "orders").iterdir()))
        agent.stop(signal.SIGKILL)
        (test.dir / "yes").unlink()
        agent.start()
        waits(8)
        check(agent.words().count("recorded order 7") == 1 and "interrupted" not in agent.words(), agent.words())
        agent.config.write_text(text.replace("events = sched:*", "events = irq:*"))
        agent.start()
        agent.says("refused order 8: event sched:sched_switch is not allowed")
        agent.stop()
        agent.config.write_text(text)
        agent.start()
        waits(9)
        good = key.read_bytes()
        key.write_bytes(other.read_bytes())
        agent.start()
        agent.says("refused order 9: it is signed with a key")
        agent.stop()
        key.write_bytes(good)
        agent.start()
        waits(10)
        (agent.state / "orders/10").write_bytes(b"1 -")
        agent.start()
        agent.says("refused order 10: the file orders/10: Bad message")
        m = agent.metrics()
        check((m["orders_interrupted_total"], m['orders_refused_total{reason="state"}']) == (0, 1), m)
        check(not list((agent.state / "orders").iterdir()), "an order is kept")


def orders_at_several_urls(test):
    """Two at once are followed one after the other, each once."""
    with fleet(test, orders=("/orders/doors", "/orders/canary")) as (store, agent):
        store.publish(store.sign(order(7, duration="1s")))
        store.publish(store.sign(order(5, duration="1s", group="canary")), "canary")
        store.start()
        agent.start()
        settled("both", lambda: len(store.results(7)) == 1 and len(store.results(5)) == 1 and not agent.waiting())
        store.publish(store.sign(order(5, duration="2s", group="canary")), "canary")
        agent.says("its serial is not above that of its group's last order")
        # While one waits for its time, others come.
        store.publish(store.sign(some_day(8)))
        agent.says("took order 8")
        store.publish(store.sign(order(9)))
        settled("order 9", lambda: len(store.results(9)) == 1)
        agent.stop()
        agent.start()
        agent.says("order 8 goes on waiting")
        m = agent.metrics()
        check((m["orders_interrupted_total"], m["orders_taken_total"], m["last_serial"]) == (0, 0, 9), m)


def a_busy_server(test):
    """429 with Retry-After of ten minutes."""
    with fleet(test, orders=("/busy",)) as (store, agent):
        store.start()
        agent.start()
        agent.says("status 429")
        time.sleep(2)
        check(store.requests("GET") == [429], store.requests("GET"))
        check(agent.metrics()["poll_failures_total"] == 1, agent.words())


def servers_that_are_not_ours(test):
    """No answer of theirs leads to an order."""
    with fleet(test) as (store, agent):
        store.start()
        good = store.sign(order(7))
        # A redirect, even to our order.
        store.publish(good)
        agent.write(store, orders=("/moved",))
        agent.start()
        agent.says("status 302")
        agent.stop()
        check(store.requests("GET", "/orders") == [], store.requests("GET"))
        # An order without end.
        store.publish(good + b"\n" * 20000)
        agent.write(store)
        agent.log.write_text("")
        agent.start()
        agent.says("no poll", 2)
        agent.stop()
        # Another authority than the server's, then no certificate of our own.
        store.publish(good)
        text = agent.config.read_text()
        agent.config.write_text(re.sub("ca = .*", "ca = /etc/ssl/certs/ca-certificates.crt", text))
        agent.start()
        agent.says("certificate", 1)
        agent.stop()
        agent.config.write_text(re.sub("(certificate|key) = .*\n", "", text))
        agent.start()
        agent.says("status 400", 1)
        m = agent.metrics()
        check(m["orders_taken_total"] == 0 and not store.requests("PUT"), m)


def who_may_start_it(test):
    """Not root, and nobody with a policy that others can change."""
    with fleet(test) as (store, agent):
        def tried(*wrap):
            done = subprocess.run([*wrap, *agent.program, "--config", agent.config, "--check"], capture_output=True,
                                  timeout=PATIENCE_S, check=False)
            return Result(done.returncode, done.stdout, done.stderr)

        nobody = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
        check(store and tried(*nobody).status == 0, tried(*nobody))
        # An agent that runs would say so with each request only.
        key = pathlib.Path(re.search(r"^key = (.*)$", agent.config.read_text(), re.M)[1])
        owner = key.stat().st_uid
        os.chown(key, 0, 0)
        r = tried(*nobody)
        check(r.status == 1 and f"{key}: Permission denied" in r.err and
              f"chmod g+r {key}; the folders above it need x, too" in r.err, r)
        os.chown(key, owner, -1)
        r = tried()
        check(r.status == 1 and "does not run as root" in r.err, r)
        text = agent.config.read_text()
        for old, new, wrong in (("captures = yes", "sql = yes\nhist = sched:* kmem:kmalloc\ntriggers = yes", None),
                                ("captures = yes", "hist = kmalloc", "SYSTEM:EVENT"),
                                ("[tls]", "send_first = newest\ndrop_first = newest\n[tls]", None),
                                ("[tls]", "presigned = yes\n[tls]", None),
                                ("[tls]", "presigned = yes\ns3_region = x\ns3_key = /x\n[tls]", "presigned and s3_key exclude"),
                                ("[tls]", "send_first = largest\n[tls]", "neither oldest nor newest"),
                                ("captures = yes", "only_if = /nonexistent/may", "/nonexistent: No such file")):
            agent.config.write_text(text.replace(old, new))
            r = tried(*nobody)
            check(r.status == (1 if wrong else 0) and (wrong or "") in r.err, f"{new}: {r}")
        program = test.dir / "may"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o775)
        agent.config.write_text(text.replace("captures = yes", f"only_if = {program}"))
        r = tried(*nobody)
        check(r.status == 1 and f"{program} can be changed by others than root" in r.err, r)
        agent.config.write_text(text)
        agent.config.chmod(0o664)
        r = tried(*nobody)
        check(r.status == 1 and "can be changed by others than root" in r.err, r)
        agent.config.chmod(0o644)
        os.chown(agent.config, NOBODY, NOBODY)
        r = tried(*nobody)
        check(r.status == 1 and "can be changed by others than root" in r.err, r)


def main():
    test = Test("agent")
    test.make_daemon = Members
    for function in (order_to_store, names_of_hosts, what_is_refused, the_store_goes_and_comes, a_full_disk, killed_before_the_upload,
                     killed_after_the_upload, killed_while_it_records, a_store_that_lies, wrong_etags, an_answer_without_end,
                     one_result_is_refused, quotas_hold, the_order_has_a_budget, messages_come_while_it_records, until_something_happens, the_newest_first, only_when_the_board_may,
                     what_waits_outlives_the_agent, orders_at_several_urls, a_busy_server,
                     servers_that_are_not_ours, who_may_start_it):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
