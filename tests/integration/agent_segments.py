#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings that boards send in segments: while they last, in sequence, each once, also if the agent is killed."""

import contextlib
import gzip
import hashlib
import json
import re
import signal
import subprocess

from board import Members, fleet
from harness import Test, check, settled
from store import order


def segmented(serial, **keys):
    """Segments exclude reports."""
    text = order(serial, **{"capture": "yes", "segments": "1s", "duration": "4500ms", **keys})
    return re.sub("reports = .*\n", "", text)


def numbers(paths):
    """HASH.0001.pftrace: in sequence. Each name is the content's."""
    for path in paths:
        check(path.name.split(".")[0] == hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest(), path)
    return sorted(int(path.name.split(".")[1]) for path in paths)


def numbers_of_waiting(agent):
    return sorted(int(name.split(".")[1]) for name in agent.waiting())


def sessions(test):
    return json.loads(test.run("status", "--json").out)["sessions"]


@contextlib.contextmanager
def busy():
    """Many events."""
    process = subprocess.Popen(["sh", "-c", "while :; do sleep 0.001; done"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def outcomes(agent):
    """They are saved after the log says that a recording has ended."""
    path = agent.state / "outcomes"
    return path.read_text().splitlines() if path.exists() else []


def words_of(store, test):
    curl = test.dir / "curl.conf"
    curl.write_text(f'cacert = "{store.dir}/ca.pem"\ncert = "{store.dir}/client.pem"\nkey = "{store.dir}/client.key"\n')
    return ["--fleet", "doors", "--url", f"{store.url}/results", "--curl", curl]


def from_order_to_segments(test):
    """The first ones are in the store while the recording lasts; the operator gets all and opens each."""
    with fleet(test) as (store, agent):
        store.start()
        agent.start()
        done = test.run("fleet", "order", "--fleet", "doors", "--serial", "7", "-t", "10s", "--capture", "--rotate", "1s", "--rotate",
                        "1M", "--format", "json.gz", "-e", "sched:sched_switch", "--secret-key", store.dir / "order.sec", "-o", "doors")
        check(done.status == 0, f"{done}")
        text = (test.dir / "doors").read_text()
        check("segments = 1s 1M\nformat = json.gz\n" in text, text)
        store.publish((test.dir / "doors").read_bytes())
        settled(f"a segment: {agent.words()}", lambda: store.results(7))
        check(sessions(test) and "recorded order" not in agent.words(), "the recording is over")
        agent.says("recorded order 7")
        settled("all are sent", lambda: not agent.waiting())
        sent = store.results(7)
        count = len(sent)
        check(count >= 4 and numbers(sent) == list(range(1, count + 1)), sent)
        check(store.requests("PUT") == [201] * count, store.requests("PUT"))
        words = words_of(store, test)
        done = test.run("fleet", "fetch", "7", "got", *words)
        check(done.status == 0 and "0 fetched, 0 were there, 0 missing, 0 refused" in done.err, f"{done}")
        done = test.run("fleet", "fetch", "7", "got", "--capture", *words)
        check(done.status == 0 and f"{count} fetched, 0 were there" in done.err, f"{done}")
        done = test.run("fleet", "open", "got", "door-17")
        paths = done.out.splitlines()
        check(done.status == 0 and [int(p.split(".")[-3]) for p in paths] == list(range(1, count + 1)), f"{done}")
        first = None
        for path in paths:
            text = json.loads(gzip.open(test.dir / path).read())["systemTraceEvents"]
            times = [float(at) for at in re.findall(r" ([0-9.]+): sched_switch:", text)]
            check(times and (first is None or min(times) > first), f"{path}: {times[:4]} {first}")
            first = min(times)
        done = test.run("fleet", "open", "got", "door-17", "2")
        check(done.status == 0 and done.out.splitlines() == [paths[1]], f"{done}")
        done = test.run("fleet", "open", "got", "door-17", "99")
        check(done.status == 1 and "has no segment 99" in done.err, f"{done}")
        done = test.run("fleet", "open", "got", "door-17", "-o", "page.html")
        check(done.status == 2 and "segments have no page" in done.err, f"{done}")
        (test.dir / paths[1]).unlink()
        done = test.run("fleet", "open", "got", "door-17")
        check(done.status == 3 and "segments are missing before number 3" in done.err and len(done.out.splitlines()) == count - 1, f"{done}")
        m = agent.metrics()
        check((m["recordings_total"], m["uploads_total"], m["uploads_present_total"]) == (1, count, 0), m)


def has_grown(agent, sizes):
    """Whether a segment behind those that wait has more than it had when it was first seen: not its head alone."""
    for path in (agent.state / "recording").glob("7.*.part"):
        with contextlib.suppress(FileNotFoundError):
            size = path.stat().st_size
            if sizes.setdefault(path.name, size) < size and int(path.name.split(".")[1]) > max(numbers_of_waiting(agent)):
                return True
    return False


def killed_in_between(test):
    """Segments that wait, and those that tracectl ends after the agent's death, come with the next agent, each once."""
    sizes = {}
    with fleet(test, results="/lies") as (store, agent):
        store.publish(store.sign(segmented(7, duration="1m")))
        store.start()
        agent.start()
        settled(f"two segments: {agent.words()}", lambda: len(agent.waiting()) >= 2 and has_grown(agent, sizes))
        agent.stop(signal.SIGKILL)
        settled("no session", lambda: not sessions(test))
        left = [p.name for p in (agent.state / "recording").iterdir()]
        agent.write(store)
        agent.start()
        agent.says("order 7 was interrupted")
        settled(f"all are sent: {agent.words()}", lambda: store.results(7) and not agent.waiting())
        count = len(store.results(7))
        check(count >= 3 and numbers(store.results(7)) == list(range(1, count + 1)), f"{store.results(7)} {left}")
        check(len(store.requests("PUT", "/results/")) == count, store.requests("PUT", "/results/"))
        check(not list((agent.state / "recording").iterdir()), "something is left")


def the_policy_bounds_them(test):
    """Too many by their time are refused; too many by their size end the recording. Large ones are cut."""
    with fleet(test) as (store, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "captures = yes\nsegments_max = 3\nresult_max = 400k"))
        store.start()
        agent.start()
        store.publish(store.sign(segmented(7)))
        agent.says("refused order 7: its segments exceed segments_max")
        with busy():
            store.publish(store.sign(segmented(8, segments="64K", duration="1m", events="sched:*")))
            agent.says("recorded order 8")
            settled(f"three: {agent.words()}", lambda: len(store.results(8)) == 3 and not agent.waiting())
            check(numbers(store.results(8)) == [1, 2, 3], store.results(8))
            settled("a reason", lambda: "8 done segments_max is reached" in outcomes(agent))
            store.publish(store.sign(segmented(9, segments="20s", duration="60s", events="sched:*")))
            agent.says("recorded order 9")
            settled(f"three: {agent.words()}", lambda: len(store.results(9)) == 3 and not agent.waiting())
        sizes = [p.stat().st_size for p in store.results(9)]
        check(all(64000 < size <= 400 << 10 for size in sizes), sizes)
        m = agent.metrics()
        check(m["recording_failures_total"] == 0 and m['orders_refused_total{reason="segments"}'] == 1, m)


def a_store_that_asks_for_a_rest(test):
    """It gets no request for each segment."""
    with fleet(test, results="/busy") as (store, agent):
        store.start()
        agent.start()
        store.publish(store.sign(segmented(7)))
        agent.says("recorded order 7")
        check(len(agent.waiting()) >= 3 and store.requests("HEAD") == [429], f"{store.requests('HEAD')} {agent.waiting()}")


def they_give_way(test):
    """The outcome says that some are missing."""
    with fleet(test, results="/lies", of_results="spool_max = 200k") as (store, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "captures = yes\nresult_max = 200k"))
        store.start()
        agent.start()
        with busy():
            store.publish(store.sign(segmented(7, segments="64K", duration="10s", events="sched:*")))
            agent.says("recorded order 7")
        first = numbers_of_waiting(agent)[0]
        check(first > 1, first)
        settled(f"the outcome of {first - 1}", lambda: outcomes(agent) == [f"7 uploading results that gave way: {first - 1}"])


def main():
    test = Test("agent_segments")
    test.make_daemon = Members
    for function in (from_order_to_segments, killed_in_between, the_policy_bounds_them, a_store_that_asks_for_a_rest,
                     they_give_way):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
