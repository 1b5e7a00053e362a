#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent's connection to a broker: what the broker lets a board do, and brokers that go, come, hang and lie."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

from agent_mqtt import QUICK, brokered, connected
from board import Members, fleet
from false_broker import CONSENT, FalseBroker, length, packet, publish
from harness import NOBODY, Test, check, need, settled
from store import order


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


def the_clock_is_behind_at_boot(test):
    """A board without a battery starts in 1970: an order that waited does not wait for decades."""
    library = test.build / "tests/integration/moved_clock.so"
    need(library.exists(), "not with sanitizers")
    with brokered(test) as (store, broker, agent):
        program, ahead = test.dir / "may", test.dir / "ahead"
        program.write_text(f'#!/bin/sh\ntest -e "{test.dir}/mains"\n')
        program.chmod(0o755)
        agent.config.write_text(agent.config.read_text().replace("captures = yes", f"only_if = {program}"))
        connected(broker, agent)
        broker.publish(store.sign(order(7, window="2s")))
        settled("it waits", lambda: broker.outcomes() == [(7, "waiting", "only_if")])
        agent.stop()
        (test.dir / "mains").touch()
        ahead.write_text(str(-int(time.time()) + 100))
        agent.more_environment = {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(ahead)}
        agent.start()
        settled(f"order 7: {agent.words()}", lambda: len(store.results(7)) == 1)


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
        agent.log.write_text("")
        agent.start()
        agent.says("certificate verify failed")
        m = agent.metrics()
        check(m["broker_connections_total"] == 0 and m["orders_taken_total"] == 0, m)
        agent.config.write_text(text)
        connected(broker, agent)


def certificates_expire(test):
    """Those of the board, then of the broker and of the server: there is no connection. With new certificates in the same
    files all goes on, without a restart of the agent."""
    def renew(store, name, **kwargs):
        store.certify(name, **kwargs)
        os.chown(store.dir / f"{name}.key", NOBODY, NOBODY)

    with brokered(test, orders=("/orders/doors",)) as (store, broker, agent):
        def restart():
            for server in (store, broker):
                server.stop()
                server.start()

        renew(store, "door-17", days=-1)
        store.publish(store.sign(order(7)))
        agent.start()
        # The broker may close the connection before its reason has been read.
        agent.says("broker: mqtts://")
        agent.says("no poll: .*status 400")
        check(not store.results(7) and not broker.status(seconds=2), "there is a connection")
        renew(store, "door-17")
        settled(f"order 7: {agent.words()}", lambda: (7, "done", None) in broker.outcomes())
        for name in ("server", "broker"):
            store.certify(name, days=-1)
        restart()
        agent.says("no poll: .*certificate has expired")
        agent.says("broker: mqtts://.*certificate verify failed")
        store.publish(store.sign(order(8)))
        for name in ("server", "broker"):
            store.certify(name)
        restart()
        settled(f"order 8: {agent.words()}", lambda: (8, "done", None) in broker.outcomes(), 120)
        m = agent.metrics()
        check(m["orders_taken_total"] == m["uploads_total"] == 2, m)


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
             "--cert", broker.dir / "operator.pem", "--key", broker.dir / "operator.key", "-t", "traced/doors/all/status/door-17"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            # The broker keeps the one before.
            check(b"alive" in seen.stdout.readline(), broker.words())
            began = time.monotonic()
            for serial in range(10, 30):
                broker.publish(store.sign(order(serial, key="x")))
            settled("the last one", lambda: [o[0] for o in broker.outcomes()][-1:] == [0])
            took = time.monotonic() - began
        finally:
            seen.terminate()
            count = len(seen.communicate()[0].splitlines())
        check(1 <= count <= took / 2 + 2, f"{count} in {took:.1f} s")


def main():
    test = Test("agent_broker")
    test.make_daemon = Members
    for function in (orders_during_an_upload, the_clock_is_set, the_clock_is_behind_at_boot, what_a_board_may_do, certificates_are_refused, certificates_expire,
                     the_broker_goes_and_comes, brokers_that_lie, statuses_are_few):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
