# SPDX-License-Identifier: LGPL-2.1-or-later
"""A board for traced-agent's tests: the agent, as a user without rights, beside a daemon, a store and perhaps a broker."""

import contextlib
import os
import re
import signal
import subprocess

from harness import NOBODY, PATIENCE_S, Daemon, check, settled
from store import Store

GROUP = 23456


class Members(Daemon):
    """The agent's user may see reports."""

    def config(self):
        path = super().config()
        path.write_text(path.read_text() + f"[users]\nraw_addresses = {NOBODY}\n")
        return path


class Agent:
    """An agent, its policy and its folder, for the board door-17."""

    def __init__(self, test, store, **places):
        self.test = test
        # The variable names another agent, with words before it.
        own = test.build / "agent" / (os.environ.get("PROGRAM_PREFIX", "") + "traced-agent")
        self.program = os.environ["AGENT"].split() if "AGENT" in os.environ else [own]
        self.config = test.dir / "agent.conf"
        self.state = test.dir / "agent"
        self.metrics_file = self.state / "agent.prom"
        self.log = test.dir / "agent.log"
        self.process = None
        self.more_environment = {}
        self.before = []
        self.state.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.state, NOBODY, NOBODY)
        self.write(store, **places)
        test.daemon.socket.parent.chmod(0o755)
        os.chown(test.daemon.socket, 0, GROUP)
        test.daemon.socket.chmod(0o660)

    def write(self, store, orders=("/orders/doors",), results="/results", broker=None, certificate="client", further="", of_results=""):
        """orders: paths of URLs. broker: its address. further: lines of [orders], of_results: of [results]."""
        urls = " ".join(store.url + path for path in orders)
        os.chown(store.dir / f"{certificate}.key", NOBODY, NOBODY)
        self.config.write_text(f"""
[board]
id = door-17
fleet = doors
groups = canary
labels = type=door-3
[orders]
{f"url = {urls}" if orders else ""}
{f"broker = {broker}" if broker else ""}
{further}
keys = {store.dir}/keys
interval = 400ms
[results]
url = {store.url}{results}
{of_results}
[tls]
ca = {store.dir}/ca.pem
certificate = {store.dir}/{certificate}.pem
key = {store.dir}/{certificate}.key
[limits]
duration_max = 10m
window_max = 30d
events = sched:*
reports = sched irq
captures = yes
[agent]
state_dir = {self.state}
metrics = {self.metrics_file}
socket = {self.test.daemon.socket}
tracectl = {self.test.tracectl}
""")

    def start(self):
        self.process = subprocess.Popen(
            [*self.before, "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(GROUP), *self.program,
             "--config", self.config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"),
            env=self.test.environment(**self.more_environment))

    def stop(self, how=signal.SIGTERM):
        if not self.process:
            return
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE_S)
        self.process = None
        check(status == (0 if how == signal.SIGTERM else -how), f"the agent ended with {status}: {self.words()}")

    def words(self):
        return self.log.read_text(errors="replace")[-3000:]

    def says(self, text, count=1):
        settled(lambda: f"{text!r} {count} times in {self.words()}", lambda: len(re.findall(text, self.words())) >= count)

    def metrics(self):
        """The last ones: they are written at the end."""
        self.stop()
        return self.metrics_so_far()

    def metrics_so_far(self):
        """At most ten seconds old."""
        lines = [line for line in self.metrics_file.read_text().splitlines() if not line.startswith("#")]
        return {name.removeprefix("traced_agent_"): int(value) for name, value in map(str.split, lines)}

    def waiting(self):
        return sorted(p.name for p in (self.state / "spool").glob("*-*"))


@contextlib.contextmanager
def fleet(test, **kwargs):
    """A store and an agent, neither of them started."""
    (test.dir / "store").mkdir()
    store = Store(test.dir / "store")
    agent = Agent(test, store, **kwargs)
    try:
        yield store, agent
    finally:
        with contextlib.suppress(Exception):
            agent.stop()
        if agent.process:
            agent.process.kill()
            agent.process.wait()
        store.stop()
