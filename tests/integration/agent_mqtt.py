#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent with a broker: orders of several topics, withdrawals, and the status. agent_broker.py has the connection."""

import contextlib
import json
import signal
import time

from board import Members, fleet
from broker import Broker
from harness import Test, check, settled
from store import order, some_day

# A quick one, so that a hanging broker is noticed soon.
QUICK = "keep_alive = 5s"


@contextlib.contextmanager
def brokered(test, further=QUICK, orders=()):
    """A store and a broker that run, and an agent that does not."""
    with fleet(test) as (store, agent):
        broker = Broker(store)
        agent.write(store, orders=orders, broker=broker.address, certificate="door-17", further=further)
        store.start()
        broker.start()
        try:
            yield store, broker, agent
        finally:
            broker.stop(signal.SIGKILL)


def connected(broker, agent):
    agent.start()
    settled(f"a status: {agent.words()} {broker.words()}", lambda: (broker.status() or {}).get("state") == "alive")


def orders_of_topics(test):
    """Each is followed once, whatever the broker repeats; the status says what became of it."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        check(broker.status()["orders"] == [], broker.status())
        broker.publish(store.sign(order(7, duration="1s")))
        broker.publish(store.sign(order(5, duration="1s", group="canary", capture="yes")), "canary")
        settled(f"both: {agent.words()}", lambda: len(store.results(7)) == 1 and len(store.results(5)) == 2)
        settled("their end", lambda: sorted(broker.outcomes()) == [(5, "done", None), (7, "done", None)])
        status = broker.status()
        check(status["agent"] and abs(status["time"] - time.time()) < 60 and status["spool_bytes"] == 0, status)
        # Orders for others lead to nothing.
        broker.publish(store.sign(order(8)), "us")
        broker.publish(store.sign(order(9, group="us")))
        settled("the other order", lambda: agent.metrics_so_far()["orders_of_others_total"] == 1)
        agent.stop()
        check(broker.status()["state"] == "stopped", broker.status())
        m = agent.metrics()
        check((m["orders_taken_total"], m["orders_of_others_total"], m["broker_connections_total"]) == (2, 1, 1), m)
        check(not any(value for name, value in m.items() if "refused" in name), m)
        # A restarted agent knows them.
        connected(broker, agent)
        settled("the last order of each group", lambda: sorted(broker.outcomes()) == [(5, "done", None), (7, "done", None)])
        agent.stop(signal.SIGKILL)
        settled("the last will", lambda: broker.status()["state"] == "dead")
        m = agent.metrics()
        check(store.requests("PUT") == [201, 201, 201], store.requests("PUT"))


def outcomes_outlive_it(test):
    """An agent that was killed tells again what became of its orders, until the last eight; none is taken twice."""
    with brokered(test) as (store, broker, agent):
        def restart():
            agent.stop(signal.SIGKILL)
            settled("the last will", lambda: broker.status()["state"] == "dead")
            connected(broker, agent)

        connected(broker, agent)
        broker.publish(store.sign(order(5)))
        settled("order 5", lambda: broker.outcomes() == [(5, "done", None)])
        broker.publish(store.sign(some_day(6)), "canary")
        agent.says("took order 6")
        broker.publish(b"", "canary")
        settled("order 6", lambda: broker.outcomes()[-1:] == [(6, "withdrawn", None)])
        broker.publish(store.sign(order(7, events="sched:no_such_event")))
        settled("order 7", lambda: broker.outcomes()[-1:] and broker.outcomes()[-1][:2] == (7, "failed"))
        check(broker.outcomes()[-1][2], "no reason")
        broker.publish(store.sign(order(4)))
        settled("order 4", lambda: broker.outcomes()[-1][:2] == (4, "refused"))
        known = broker.outcomes()
        restart()
        settled("what it knew", lambda: broker.outcomes() == known)
        # One that it records when it is killed.
        broker.publish(store.sign(order(8, duration="10m")))
        settled("order 8", lambda: (8, "recording", None) in broker.outcomes())
        for _ in range(2):
            restart()
            settled("that, too", lambda: broker.outcomes() == [*known, (8, "interrupted", None)])
        # One whose results wait, then are gone.
        store.stop()
        broker.publish(store.sign(order(9)))
        settled("order 9", lambda: (9, "uploading", None) in broker.outcomes() and agent.waiting())
        restart()
        settled("it waits", lambda: (9, "uploading", None) in broker.outcomes())
        store.start()
        settled("it is done", lambda: (9, "done", None) in broker.outcomes())
        restart()
        settled("it is still done", lambda: sorted(broker.outcomes()) == sorted([*known, (8, "interrupted", None), (9, "done", None)]))
        # Damage is said, and stops nothing.
        agent.stop(signal.SIGKILL)
        (agent.state / "outcomes").write_bytes(b"\0\xff nonsense\n")
        connected(broker, agent)
        agent.says("the file outcomes is damaged")
        settled("the last order", lambda: broker.outcomes() == [(9, "ended", None)])
        m = agent.metrics()
        check(m["orders_taken_total"] == m["recordings_total"] == 0 and len(store.results(5)) == len(store.results(9)) == 1, m)


def url_and_broker(test):
    """The same order by both ways is followed once, and withdrawn by the broker."""
    with brokered(test, orders=("/orders/doors",)) as (store, broker, agent):
        signed = store.sign(some_day(7))
        store.publish(signed)
        agent.start()
        agent.says("took order 7")
        broker.publish(signed)
        settled("the broker's", lambda: broker.outcomes() == [(7, "waiting", None)])
        broker.publish(b"")
        settled("its end", lambda: broker.outcomes() == [(7, "withdrawn", None)])
        store.publish(store.sign(order(8)))
        settled("order 8", lambda: len(store.results(8)) == 1)
        m = agent.metrics()
        check((m["orders_taken_total"], m["orders_withdrawn_total"]) == (2, 1), m)


def withdrawn(test):
    """One that waits is dropped, one that runs is ended, others go on. None of them comes back."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        waiting, running = store.sign(some_day(7)), store.sign(order(8, group="canary", duration="10m"))
        broker.publish(waiting)
        broker.publish(running, "canary")
        settled("a session", lambda: '"recording"' in test.run("status", "--json").out)
        settled("both", lambda: sorted(broker.outcomes()) == [(7, "waiting", None), (8, "recording", None)])
        broker.publish(b"")
        settled("the one that waits", lambda: (7, "withdrawn", None) in broker.outcomes())
        check((8, "recording", None) in broker.outcomes(), broker.outcomes())
        broker.publish(b"", "canary")
        settled("the one that runs", lambda: (8, "withdrawn", None) in broker.outcomes())
        settled("no session", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
        settled("nothing is left", lambda: not list((agent.state / "recording").iterdir()) and not agent.waiting())
        broker.publish(waiting)
        broker.publish(store.sign(order(9)))
        settled("order 9", lambda: len(store.results(9)) == 1)
        # The broker keeps a withdrawal for a board that is away for a while.
        broker.publish(store.sign(some_day(10)))
        agent.says("took order 10")
        broker.process.send_signal(signal.SIGSTOP)
        agent.says("broker", 1)
        broker.process.send_signal(signal.SIGCONT)
        broker.publish(b"")
        settled("the one that waited", lambda: (10, "withdrawn", None) in broker.outcomes())
        m = agent.metrics()
        check((m["orders_taken_total"], m["orders_withdrawn_total"], m["recordings_total"]) == (4, 3, 1), m)
        check(m["orders_interrupted_total"] == m["recording_failures_total"] == 0, m)


def withdrawn_at_the_end(test):
    """A withdrawal that the agent has acknowledged outlives it."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        broker.publish(store.sign(some_day(7)))
        agent.says("took order 7")
        broker.publish(b"")
        time.sleep(0.2)
        agent.stop()
        connected(broker, agent)
        settled("it is withdrawn", lambda: broker.outcomes() == [(7, "withdrawn", None)])


def withdrawn_before_its_time(test):
    """An order for later is dropped by a withdrawal, and by what comes in its place."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1800))
        for serial, instead in ((7, b""), (8, store.sign(order(9))), (10, b"\n" * 17000)):
            broker.publish(store.sign(order(serial, not_before=later)))
            settled(f"order {serial}", lambda: (serial, "later", None) in broker.outcomes())
            broker.publish(instead)
            settled(f"no order {serial}", lambda: (serial, "withdrawn", None) in broker.outcomes())
        # It does not come back.
        broker.publish(store.sign(order(10, not_before=later)))
        broker.publish(store.sign(order(11, not_before=later)), "canary")
        settled("order 11", lambda: (11, "later", None) in broker.outcomes())
        check((10, "withdrawn", None) in broker.outcomes(), broker.outcomes())
        settled("order 9", lambda: (9, "done", None) in broker.outcomes())
        m = agent.metrics()
        check((m["orders_taken_total"], m["orders_withdrawn_total"]) == (1, 0), m)


def segments_are_withdrawn(test):
    """What is in the spool comes; the rest is dropped."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        cut = order(7, capture="yes", segments="1s", duration="50s")
        broker.publish(store.sign("".join(line for line in cut.splitlines(True) if not line.startswith("reports"))))
        settled(f"two segments: {agent.words()}", lambda: len(store.results(7)) >= 2)
        broker.publish(b"")
        settled("the end", lambda: broker.outcomes() == [(7, "withdrawn", None)])
        settled("all are sent", lambda: not agent.waiting())
        settled("no rest", lambda: not list((agent.state / "recording").iterdir()) and
                not json.loads(test.run("status", "--json").out)["sessions"])
        numbers = sorted(int(path.name.split(".")[1]) for path in store.results(7))
        check(numbers == list(range(1, len(numbers) + 1)), numbers)
        # The segment that its end makes whole.
        cut = cut.replace("serial = 7", "serial = 8").replace("1s", "30s")
        broker.publish(store.sign("".join(line for line in cut.splitlines(True) if not line.startswith("reports"))))
        settled("a segment", lambda: list((agent.state / "recording").glob("8.*")))
        broker.publish(b"")
        settled("the end", lambda: not list((agent.state / "recording").iterdir()) and "8 withdrawn " in
                (agent.state / "outcomes").read_text())
        check(not agent.waiting() and not store.results(8), f"{agent.waiting()} {store.results(8)}")


def refused(test):
    """Each once, although each connection shows it again."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        broker.publish(store.sign(order(7)))
        settled("order 7", lambda: len(store.results(7)) == 1)
        cases = [("signature", store.sign(order(8), key="other")),
                 ("signature", store.sign(order(8)).replace(b"serial = 8", b"serial = 9")),
                 ("syntax", store.sign(order(8, command="reboot"))),
                 ("replayed", store.sign(order(6))),
                 ("expired", store.sign(order(8, expires="2020-01-01T00:00:00Z"))),
                 ("size", store.sign(order(8)) + b"\n" * 16384)]
        for i, (_, data) in enumerate(cases, 1):
            broker.publish(data)
            agent.says("refused order", i)
        settled("the status", lambda: broker.outcomes() == [
            (7, "done", None), (6, "refused", "replayed"), (8, "refused", "expired"), (0, "refused", "size")])
        # The broker knows that the board takes no such packet.
        broker.publish(b"x" * 19000, "canary")
        broker.stop()
        agent.says("broker: mqtts")
        broker.start()
        settled("another connection", lambda: broker.status()["state"] == "alive")
        broker.publish(store.sign(order(9)))
        settled("order 9", lambda: len(store.results(9)) == 1)
        m = agent.metrics()
        for reason in {reason for reason, _ in cases}:
            count = sum(reason == r for r, _ in cases)
            check(m[f'orders_refused_total{{reason="{reason}"}}'] == count, f"{reason}: {m}")
        check(m["orders_taken_total"] == 2 and m["broker_connections_total"] >= 2, m)


def many_at_once(test):
    """As many as may wait do; more are refused, with a reason."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        for serial in range(10, 19):
            broker.publish(store.sign(some_day(serial)))
            agent.says("(took|refused) order", serial - 9)
        settled(lambda: f"the ninth is refused: {broker.outcomes()} {agent.words()}", lambda: broker.outcomes()[-1:] == [(18, "refused", "full")])
        agent.stop()
        agent.start()
        agent.says("goes on waiting", 8)

        def all_wait():
            """The status has the last eight: the broker shows the ninth again, which is refused again."""
            status = broker.status()
            of = [o["outcome"] for o in status["orders"] if o["serial"] < 18]
            return status["state"] == "alive" and len(of) >= 7 and set(of) == {"waiting"}

        settled(lambda: f"they wait: {broker.outcomes()} {agent.words()}", all_wait)
        # The broker keeps a withdrawal for a board that is off.
        agent.stop(signal.SIGKILL)
        broker.publish(b"")
        agent.start()
        settled(lambda: f"none waits: {broker.outcomes()} {agent.words()}", lambda: [o[1] for o in broker.outcomes()] == ["withdrawn"] * 8)
        check(not list((agent.state / "orders").iterdir()), "they are kept")


def it_waits_for_the_board(test):
    """The status says so, and what waits can be withdrawn."""
    with brokered(test) as (store, broker, agent):
        program = test.dir / "may"
        program.write_text(f'#!/bin/sh\ntest -e "{test.dir}/mains"\n')
        program.chmod(0o755)
        agent.config.write_text(agent.config.read_text().replace("captures = yes", f"only_if = {program}"))
        connected(broker, agent)
        broker.publish(store.sign(order(7)))
        broker.publish(store.sign(order(8, group="canary")), "canary")
        settled("both", lambda: sorted(broker.outcomes()) == [(7, "waiting", "only_if"), (8, "waiting", None)])
        broker.publish(b"")
        settled("the first", lambda: sorted(broker.outcomes()) == [(7, "withdrawn", None), (8, "waiting", "only_if")])
        (test.dir / "mains").touch()
        settled("the other one", lambda: (8, "done", None) in broker.outcomes())
        check(not store.results(7) and len(store.results(8)) == 1, agent.words())


def nothing_happened(test):
    """An order that waits for something: that nothing came is no failure. It can be withdrawn."""
    with brokered(test) as (store, broker, agent):
        agent.config.write_text(agent.config.read_text().replace("captures = yes", "triggers = yes"))
        connected(broker, agent)
        broker.publish(store.sign(order(7, until="irq.max > 1h", duration="1s")))
        settled("order 7", lambda: broker.outcomes() == [(7, "done", "nothing happened")])
        broker.publish(store.sign(order(8, until="irq.max > 1h", duration="5m")))
        settled("order 8", lambda: (8, "recording", None) in broker.outcomes())
        settled("two sessions", lambda: len(json.loads(test.run("status", "--json").out)["sessions"]) == 2)
        broker.publish(b"")
        settled("it is withdrawn", lambda: (8, "withdrawn", None) in broker.outcomes())
        settled("no session", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
        check(not store.requests("PUT"), store.requests("PUT"))


def main():
    test = Test("agent_mqtt")
    test.make_daemon = Members
    for function in (orders_of_topics, outcomes_outlive_it, url_and_broker, withdrawn, withdrawn_at_the_end,
                     withdrawn_before_its_time, segments_are_withdrawn,
                     refused, many_at_once, it_waits_for_the_board, nothing_happened):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
