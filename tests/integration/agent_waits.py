#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced-agent with a broker, over minutes: orders for later, and what an idle agent takes."""

import pathlib
import re
import time

from agent_mqtt import brokered, connected
from board import Members
from harness import Test, check, settled
from store import order


def for_later(test):
    """not_before: the order is looked at again, not refused, and not lost."""
    with brokered(test) as (store, broker, agent):
        connected(broker, agent)
        broker.publish(store.sign(order(7, not_before="2099-01-01T00:00:00Z", expires="2099-01-02T00:00:00Z")))
        settled("a refusal", lambda: broker.outcomes() == [(7, "refused", "validity")])
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 20))
        broker.publish(store.sign(order(8, not_before=soon)))
        settled("a look", lambda: (8, "later", None) in broker.outcomes())
        settled("order 8", lambda: len(store.results(8)) == 1, 120)


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


def an_idle_agent_is_quiet(test):
    """In two minutes it sends two packets, wakes up for these and their answers, and has little memory of its own."""
    with brokered(test, further="") as (store, broker, agent):
        text = agent.config.read_text()
        agent.config.write_text(re.sub("metrics = .*\n", "", text))
        connected(broker, agent)
        broker.publish(store.sign(order(7)))
        settled("order 7", lambda: broker.outcomes() == [(7, "done", None)])
        time.sleep(3)
        status = pathlib.Path(f"/proc/{agent.process.pid}/status")

        def wakeups():
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1])

        before, pings = wakeups(), broker.pings()
        time.sleep(121)
        woken, sent = wakeups() - before, broker.pings() - pings
        rollup = pathlib.Path(f"/proc/{agent.process.pid}/smaps_rollup").read_text()
        clean, dirty = (int(re.search(rf"^Private_{kind}:\s*(\d+)", rollup, re.M)[1]) for kind in ("Clean", "Dirty"))
        print(f"{woken} wake-ups and {sent} packets in 121 s, {dirty} KiB private, and {clean} KiB of files that nobody "
              "else has mapped")
        check(sent in (2, 3), f"{sent} packets: {broker.words()}")
        check(woken <= 8, f"{woken} wake-ups")
        check(test.is_sanitized() or dirty < 4096, rollup)
        check(broker.status()["state"] == "alive", broker.status())


def main():
    test = Test("agent_waits")
    test.make_daemon = Members
    for function in (for_later, it_expires_before_its_turn, an_idle_agent_is_quiet):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
