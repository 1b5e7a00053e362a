#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent's connections whose packets are dropped in both directions, so that neither side learns of it: to the
broker, to the server of orders, and to the store in the middle of an upload. All run in a network namespace of their
own, whose packet filter drops them. HALF_OPEN_S=3600 makes the broker's outage an hour with the default keep_alive;
the agent's waits have grown meanwhile, so that its next try may take another hour."""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from agent_mqtt import QUICK, brokered, connected
from board import Members, fleet
from harness import NOBODY, Test, check, need, settled
from store import order, run

INSIDE = "TRACED_HALF_OPEN"
OUTAGE_S = int(os.environ.get("HALF_OPEN_S", 40))
# agent/http.c: for a connection, and for a request without a body or a transfer without progress.
CONNECT_S, ANSWER_S = 30, 60


@contextlib.contextmanager
def packets_lost(port, after=""):
    """Drops all packets of a port; after: words of nft, for those to the port."""
    run("nft", "add", "table", "inet", "loss")
    run("nft", "add", "chain", "inet", "loss", "in", "{ type filter hook input priority 0; }")
    run("nft", "add", "rule", "inet", "loss", "in", "tcp", "dport", port, *after.split(), "drop")
    if not after:
        run("nft", "add", "rule", "inet", "loss", "in", "tcp", "sport", port, "drop")
    try:
        yield
    finally:
        run("nft", "delete", "table", "inet", "loss")


class Upkeep:
    """What the agent takes while it waits: wake-ups, memory that is its own, descriptors."""

    def __init__(self, agent):
        self.proc = pathlib.Path(f"/proc/{agent.process.pid}")
        self.woken, self.memory, self.fds = self.numbers()
        self.began = time.monotonic()

    def numbers(self):
        switches = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (self.proc / "status").read_text(), re.M)
        dirty = re.search(r"^Private_Dirty:\s*(\d+)", (self.proc / "smaps_rollup").read_text(), re.M)
        return int(switches[1]), int(dirty[1]), len(list((self.proc / "fd").iterdir()))

    def verify(self, test, what, most_woken):
        woken, memory, fds = self.numbers()
        seconds = time.monotonic() - self.began
        print(f"{what}: {woken - self.woken} wake-ups in {seconds:.0f} s, {self.memory} KiB private before, {memory} KiB after",
              flush=True)
        check(woken - self.woken <= most_woken(seconds), f"{woken - self.woken} wake-ups in {seconds:.0f} s")
        check(test.is_sanitized() or memory < 4096 and memory - self.memory < 512, f"{self.memory} KiB, then {memory} KiB")
        # One of a try, and one of its resolver.
        check(fds <= self.fds + 2, f"{self.fds} descriptors, then {fds}")


def quiet(agent):
    """Metrics are written every ten seconds."""
    agent.config.write_text(re.sub("metrics = .*\n", "", agent.config.read_text()))


def packets_of_the_broker(test):
    """The agent notices by its keep-alive, tries again with growing waits, and takes the order that waits there."""
    keep_alive = 5 if OUTAGE_S < 600 else 60
    with brokered(test, further=QUICK if keep_alive == 5 else "") as (store, broker, agent):
        def failures():
            return agent.log.read_text(errors="replace").count("broker: mqtts://")

        quiet(agent)
        connected(broker, agent)
        upkeep, began = Upkeep(agent), time.monotonic()
        with packets_lost(broker.port):
            settled("the end of the connection", failures, 2 * keep_alive + 10)
            print(f"noticed after {time.monotonic() - began:.0f} s", flush=True)
            settled("the last will", lambda: broker.status()["state"] == "dead", 2 * keep_alive)
            # The agent's next try may come as long after the outage as that was.
            later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600 + 3 * OUTAGE_S))
            broker.publish(store.sign(order(7, expires=later)))
            time.sleep(max(0, began + OUTAGE_S - time.monotonic()))
            # A try has some wake-ups: a wait for TCP of ten seconds, and the failure.
            upkeep.verify(test, f"{failures()} failures", lambda seconds: 10 + seconds / keep_alive + 10 * failures())
            check(1 <= failures() <= 16 and not store.results(7), f"{failures()} failures: {agent.words()}")
        settled(f"order 7: {agent.words()}", lambda: len(store.results(7)) == 1, 60 + 2 * OUTAGE_S)
        print(f"order 7 came {time.monotonic() - began - OUTAGE_S:.0f} s after the outage", flush=True)
        settled("its end", lambda: broker.status()["state"] == "alive" and broker.outcomes() == [(7, "done", None)])


def packets_of_a_poll(test):
    """A poll ends by its time limit, and the next one takes the order that waits there."""
    with fleet(test) as (store, agent):
        store.publish(store.sign(order(6, fleet="others")))
        store.start()
        quiet(agent)
        agent.start()
        settled("polls by one connection", lambda: len(store.requests("GET", "/orders/")) >= 2)
        upkeep, began = Upkeep(agent), time.monotonic()
        with packets_lost(store.port):
            store.publish(store.sign(order(7)))
            settled(f"the end of the poll: {agent.words()}", lambda: "no poll: " in agent.words(), ANSWER_S + 20)
            print(f"noticed after {time.monotonic() - began:.0f} s", flush=True)
            # The next one does not get a connection.
            settled(f"another one: {agent.words()}", lambda: agent.words().count("no poll: ") == 2, CONNECT_S + 20)
            # libcurl looks at its limits each second.
            upkeep.verify(test, "two polls", lambda seconds: 20 + 3 * seconds)
        settled(f"order 7: {agent.words()}", lambda: len(store.results(7)) == 1, CONNECT_S + 60)
        check(len(store.requests("PUT")) == 1, store.requests("PUT"))


def let_a_large_result_wait(agent):
    """Returns its content and its name."""
    data = os.urandom(3 << 20)
    name = hashlib.blake2b(data, digest_size=32).hexdigest() + ".traced"
    spool = agent.state / "spool"
    spool.mkdir(mode=0o700)
    (spool / f"{7:020}-{name}").write_bytes(data)
    for path in (spool, *spool.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    return data, name


@contextlib.contextmanager
def half_way(store, agent):
    """The agent runs, and a part of its result is at the store."""
    with packets_lost(store.port, "quota over 1000 kbytes"):
        agent.start()
        settled("a part of it", lambda: any((store.dir / "body").glob("*")) and
                max(p.stat().st_size for p in (store.dir / "body").glob("*")) > 500000)
        yield


def arrived_once(store, agent, data, name):
    settled(f"the result: {agent.words()}", lambda: not agent.waiting(), CONNECT_S + 60)
    check([path.name for path in store.results(7)] == [name] and store.results(7)[0].read_bytes() == data, store.results(7))
    check(store.requests("PUT").count(201) == 1, store.requests("PUT"))


def killed_in_an_upload(test):
    """kill -9 half way: the next life of the agent sends the whole result, once, under its one name."""
    with fleet(test) as (store, agent):
        data, name = let_a_large_result_wait(agent)
        store.start()
        with half_way(store, agent):
            agent.stop(signal.SIGKILL)
            check(not store.results(7) and len(agent.waiting()) == 1, f"{store.results(7)} {agent.waiting()}")
        agent.start()
        arrived_once(store, agent, data, name)


def packets_of_an_upload(test):
    """It hangs half way and ends; then the whole result comes, once, under its one name."""
    with fleet(test) as (store, agent):
        data, name = let_a_large_result_wait(agent)
        store.start()
        quiet(agent)
        with half_way(store, agent):
            upkeep, began = Upkeep(agent), time.monotonic()
            settled(f"its end: {agent.words()}", lambda: "no upload: " in agent.words(), ANSWER_S + 20)
            print(f"noticed after {time.monotonic() - began:.0f} s", flush=True)
            upkeep.verify(test, "an upload", lambda seconds: 20 + 3 * seconds)
            check(not store.results(7) and len(agent.waiting()) == 1, f"{store.results(7)} {agent.waiting()}")
        arrived_once(store, agent, data, name)


def main():
    if INSIDE not in os.environ and shutil.which("nft") and shutil.which("ip"):
        done = subprocess.run(["unshare", "-n", "sh", "-c", "ip link set lo up && nft list ruleset"], capture_output=True,
                              check=False)
        if done.returncode == 0:
            os.execvpe("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, *sys.argv],
                       {**os.environ, INSIDE: "1"})
    test = Test("agent_half_open")
    test.make_daemon = Members
    for function in (packets_of_the_broker, packets_of_a_poll, packets_of_an_upload, killed_in_an_upload):
        test.case(function.__name__.replace("_", " "), within_namespace(function), daemon=True)
    test.end()


def within_namespace(function):
    def case(test):
        need(INSIDE in os.environ, "nft, ip and network namespaces are needed")
        function(test)

    return case


if __name__ == "__main__":
    main()
