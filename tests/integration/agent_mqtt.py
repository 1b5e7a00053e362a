#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent with a broker: orders of several topics, withdrawals, the status, what the broker lets a board do, and
brokers that go, come, hang and lie."""

import contextlib
import json
import pathlib
import signal
import socket
import struct
import subprocess
import time

from board import Members, fleet
from broker import Broker
from false_broker import CONSENT, FalseBroker, length, packet, publish
from harness import Test, check, need, settled
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
        check(not list((agent.state / "recording").iterdir()) and not agent.waiting(), "something is left")
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
        check(not list((agent.state / "recording").iterdir()) and not json.loads(test.run("status", "--json").out)["sessions"], "a rest")
        numbers = sorted(int(path.name.split(".")[1]) for path in store.results(7))
        check(numbers == list(range(1, len(numbers) + 1)), numbers)


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


def orders_during_an_upload(test):
    """A store that hangs holds up neither orders, nor statuses, nor the connection, nor the agent's end."""
    def hang(connection, _):
        while connection.recv(1 << 16):
            pass

    with brokered(test) as (store, broker, agent):
        silent = FalseBroker(store.dir, hang)
        text = agent.config.read_text()
        agent.config.write_text(text.replace(f"{store.url}/results", silent.address.replace("mqtts", "https") + "/results"))
        connected(broker, agent)
        broker.publish(store.sign(order(7)))
        settled("a request", lambda: silent.count)
        began = time.monotonic()
        broker.publish(store.sign(order(8)))
        settled("order 8", lambda: (8, "uploading", None) in broker.outcomes())
        took = time.monotonic() - began
        check(took < 30, f"order 8 was recorded after {took:.1f} s")
        # Twice the keep-alive time, after which the broker ends a silent connection.
        time.sleep(max(0, 12 - took))
        check(silent.count == 1 and broker.status()["state"] == "alive", f"{silent.count} requests, {broker.status()}")
        began = time.monotonic()
        m = agent.metrics()
        check(time.monotonic() - began < 10, f"it ended after {time.monotonic() - began:.1f} s")
        check((m["broker_connections_total"], m["broker_failures_total"], m["recordings_total"]) == (1, 0, 2), m)
        check(len(agent.waiting()) == 2, agent.waiting())
        silent.stop()


def many_at_once(test):
    """As many as may wait do; more are refused, with a reason."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        for serial in range(10, 19):
            broker.publish(store.sign(some_day(serial)))
            agent.says("(took|refused) order", serial - 9)
        settled("the status", lambda: broker.outcomes()[-1:] == [(18, "refused", "full")])
        agent.stop()
        agent.start()
        agent.says("goes on waiting", 8)
        settled("the status", lambda: [o[1] for o in broker.outcomes()] == ["waiting"] * 8)
        # The broker keeps a withdrawal for a board that is off.
        agent.stop(signal.SIGKILL)
        broker.publish(b"")
        agent.start()
        settled("the status", lambda: [o[1] for o in broker.outcomes()] == ["withdrawn"] * 8)
        check(not list((agent.state / "orders").iterdir()), "they are kept")


def it_expires_before_its_turn(test):
    """An order that another one holds up for too long is refused, with a reason."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        broker.publish(store.sign(order(7, duration="20s")))
        settled("a session", lambda: '"recording"' in test.run("status", "--json").out)
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 12))
        broker.publish(store.sign(order(5, group="canary", expires=soon)), "canary")
        agent.says("took order 5")
        agent.says("refused order 5: it expired before its turn")
        settled("the status", lambda: sorted(broker.outcomes()) == [(5, "refused", "expired"), (7, "done", None)])
        m = agent.metrics()
        check((m['orders_refused_total{reason="expired"}'], m["recordings_total"], m["orders_interrupted_total"]) == (1, 1, 0), m)


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


def the_clock_is_set(test):
    """Forth by a day, then to 1970, then right: no connection ends, and no order is taken that should not."""
    library = test.build / "tests/integration/moved_clock.so"
    need(library.exists(), "not with sanitizers")
    with brokered(test) as (store, broker, agent):
        ahead = test.dir / "ahead"
        ahead.write_text("0")
        agent.more_environment = {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(ahead)}
        connected(broker, agent)
        broker.publish(store.sign(order(7)))
        settled("order 7", lambda: len(store.results(7)) == 1)
        ahead.write_text("86400")
        broker.publish(store.sign(order(8)))
        settled("a refusal", lambda: (8, "refused", "expired") in broker.outcomes())
        check(broker.status()["time"] > time.time() + 80000, broker.status())
        ahead.write_text(str(-int(time.time()) + 100))
        broker.publish(store.sign(order(9)))
        settled("a refusal", lambda: (9, "refused", "validity") in broker.outcomes())
        # Longer than the keep-alive time.
        time.sleep(8)
        ahead.write_text("0")
        broker.publish(store.sign(order(10)))
        settled("order 10", lambda: len(store.results(10)) == 1)
        m = agent.metrics()
        check((m["broker_connections_total"], m["broker_failures_total"], m["orders_taken_total"]) == (1, 0, 2), m)


def what_a_board_may_do(test):
    """Another board's certificate writes neither this one's status nor orders, and does not end its connection."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)

        def other(topic, *words):
            return broker.client("pub", "-q", "1", "-r", "-m", "forged", "-t", topic, *words, name="door-18", port=broker.port)

        other("traced/doors/all/status/door-17")
        other("traced/doors/all/orders")
        other("traced/doors/all/status/door-17", "-i", "door-17")
        check(other("traced/doors/all/status/door-18").returncode == 0, broker.words())
        done = broker.client("sub", "-q", "1", "-C", "1", "-W", "30", "-t", "traced/doors/all/status/door-18")
        check(done.stdout == b"forged\n", done)
        check(broker.status()["state"] == "alive", broker.status())
        # A board reads no status, and is no operator.
        done = broker.client("sub", "-C", "1", "-W", "2", "-t", "traced/doors/all/status/+", name="door-18", port=broker.port)
        check(not done.stdout, done)
        check(broker.client("pub", "-m", "x", "-t", "traced/doors/all/orders", name="door-18").returncode != 0, "it may")
        # A board whose id is not its certificate's name.
        text = agent.config.read_text()
        m = agent.metrics()
        check(m["broker_connections_total"] == 1 and m["orders_taken_total"] == 0, m)
        check(not any(value for name, value in m.items() if "refused" in name), m)
        agent.config.write_text(text.replace("id = door-17", "id = door-19"))
        agent.start()
        agent.says("it refuses the status")
        agent.stop()
        check(broker.status("door-19", 2) is None, "there is a status")


def certificates_are_refused(test):
    """The broker's by us, ours by the broker; both more than once, with waits."""
    with brokered(test) as (store, broker, agent):
        agent.write(store, orders=(), broker=broker.address, certificate="operator")
        agent.start()
        agent.says("broker: mqtts://", 3)
        m = agent.metrics()
        check(m["broker_connections_total"] == 0 and m["broker_failures_total"] >= 3, m)
        agent.write(store, orders=(), broker=broker.address, certificate="door-17")
        text = agent.config.read_text()
        agent.config.write_text(text.replace("/door-17.key", "/absent.key"))
        agent.start()
        agent.says("/absent.key: No such file")
        agent.stop()
        agent.config.write_text(text.replace("/ca.pem", "/operators-ca.pem"))
        agent.start()
        agent.says("certificate verify failed")
        agent.stop()
        # A certificate for another host.
        agent.config.write_text(text.replace("127.0.0.1:" + str(broker.port), "localhost:" + str(broker.port)))
        agent.start()
        agent.says("certificate verify failed", 2)
        m = agent.metrics()
        check(m["broker_connections_total"] == 0 and m["orders_taken_total"] == 0, m)
        agent.config.write_text(text)
        connected(broker, agent)


def the_broker_goes_and_comes(test):
    """It ends, is killed, hangs, and is not there at first."""
    with brokered(test) as (store, broker, agent):
        broker.stop()
        agent.start()
        agent.says("Connection refused", 2)
        broker.start()
        settled("a connection", lambda: (broker.status() or {}).get("state") == "alive")
        broker.stop(signal.SIGKILL)
        agent.says("broker: mqtts", 3)
        broker.start()
        settled("a second one", lambda: (broker.status() or {}).get("state") == "alive")
        # It answers no more, but the kernel keeps its connections.
        count = agent.words().count("broker: mqtts")
        broker.process.send_signal(signal.SIGSTOP)
        before = time.monotonic()
        settled("the end of the connection", lambda: agent.words().count("broker: mqtts") > count)
        check(time.monotonic() - before < 5 * 2 + 10, f"noticed after {time.monotonic() - before} s")
        broker.process.send_signal(signal.SIGCONT)
        broker.publish(store.sign(order(7)))
        settled("order 7", lambda: len(store.results(7)) == 1)
        m = agent.metrics()
        check(m["broker_connections_total"] >= 3 and m["orders_taken_total"] == 1, m)


def brokers_that_lie(test):
    """They send what nobody asked for, too much of it, nonsense, or end in the middle. The agent goes on, idle."""
    with fleet(test) as (store, agent):
        store.start()
        store.certify("door-17")
        good = store.sign(order(7))
        orders = "traced/doors/all/orders"
        lies = [
            # Nothing may come before the consent.
            publish(orders, good),
            # Topics that nobody asked for; one that is no topic.
            CONSENT + publish("traced/doors/canary/status", good) + publish("traced/+/+/orders", good) + publish("", good),
            # Far above the largest packet, and one that never ends.
            CONSENT + publish(orders, good + b"\n" * 200000, qos=1),
            CONSENT + bytes([0x30]) + length(250 << 20) + b"x" * 100000,
            CONSENT + publish(orders, b"\xff" * 100, qos=3),
            CONSENT + b"\xff" * 100,
            packet(0x20, b"\x00\x87\x00"),
            packet(0x20, b""),
            b"\x00" * 10,
        ]

        def lie(connection, number):
            connection.recv(1 << 16)
            if number <= len(lies):
                connection.sendall(lies[number - 1])
                connection.settimeout(3)
                with contextlib.suppress(OSError):
                    while connection.recv(1 << 16):
                        pass

        def reset(connection, _):
            connection.recv(1 << 16)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        for behave, tls, count in ((lie, True, len(lies) + 1), (reset, False, 4), (lambda *_: None, False, 4)):
            broker = FalseBroker(store.dir, behave, tls)
            agent.write(store, orders=(), broker=broker.address, certificate="door-17", further=QUICK)
            text = agent.config.read_text()
            agent.config.write_text(text.replace("interval = 400ms", "interval = 100ms"))
            agent.start()
            # Waits grow: each number of connections is reached, but not soon.
            settled(f"{count} connections, not {broker.count}: {agent.words()}", lambda: broker.count >= count, 240)
            used = sum(map(int, pathlib.Path(f"/proc/{agent.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
            check(used < 200, f"{used} ticks of CPU time")
            m = agent.metrics()
            broker.stop()
            check(m["orders_taken_total"] == m["recordings_total"] == 0, m)
            check(m['orders_refused_total{reason="size"}'] == (behave is lie), m)
            check(m['orders_refused_total{reason="signature"}'] == 0, m)


def statuses_are_few(test):
    """At most one in two seconds, however often an order changes."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        seen = subprocess.Popen(
            ["mosquitto_sub", "-V", "5", "-h", "127.0.0.1", "-p", str(broker.operators_port), "--cafile", broker.dir / "ca.pem",
             "--cert", broker.dir / "operator.pem", "--key", broker.dir / "operator.key", "-t", "traced/doors/all/status/door-17",
             "-W", "9"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for serial in range(10, 30):
            broker.publish(store.sign(order(serial, key="x")))
        out, _ = seen.communicate(timeout=60)
        check(2 <= len(out.splitlines()) <= 6, f"{len(out.splitlines())} in 9 s")
        settled("the last one", lambda: [o[0] for o in broker.outcomes()][-1:] == [0])


def main():
    test = Test("agent_mqtt")
    test.make_daemon = Members
    for function in (orders_of_topics, outcomes_outlive_it, url_and_broker, withdrawn, withdrawn_before_its_time,
                     segments_are_withdrawn, refused, orders_during_an_upload, many_at_once,
                     it_expires_before_its_turn, it_waits_for_the_board, nothing_happened, the_clock_is_set, what_a_board_may_do, certificates_are_refused,
                     the_broker_goes_and_comes, brokers_that_lie, statuses_are_few):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
