# SPDX-License-Identifier: LGPL-2.1-or-later
"""A broker for traced-agent's tests: mosquitto on loopback, with the configuration and the ACLs of contrib/fleet."""

import json
import pathlib
import shutil
import signal
import subprocess

from harness import PATIENCE_S, check, need, settled
from store import free_port, listens

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib/fleet"
# As Debian's own file, with the folders of a test.
MAIN = """user root
pid_file {dir}/mosquitto.pid
persistence true
persistence_location {dir}/
log_dest file {dir}/broker.log
log_type all
include_dir {dir}/conf.d
"""


class Broker:
    """mosquitto, with the store's authority for boards, and one of its own for operators."""

    def __init__(self, store):
        self.program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin")
        need(self.program and shutil.which("mosquitto_pub"), "mosquitto and its clients are needed")
        self.store = store
        self.dir = store.dir
        self.host = store.address
        self.port, self.operators_port = free_port(self.host), free_port(self.host)
        self.address = f"mqtts://{self.host}:{self.port}"
        store.authorize("operators-ca")
        store.certify("operator", "operators-ca")
        for name in ("broker", "door-17", "door-18"):
            store.certify(name)
        (self.dir / "boards-ca.pem").write_bytes((self.dir / "ca.pem").read_bytes())
        text = (CONTRIB / "mosquitto.conf").read_text()
        for name in ("boards.acl", "operators.acl"):
            (self.dir / name).write_bytes((CONTRIB / name).read_bytes())
            (self.dir / name).chmod(0o600)
        for old, new in (("/etc/mosquitto/", f"{self.dir}/"),
                         ("listener 8883", f"listener {self.port} {self.host}"),
                         ("listener 8884", f"listener {self.operators_port} {self.host}")):
            check(old in text, f"no {old} in {CONTRIB}")
            text = text.replace(old, new)
        (self.dir / "conf.d").mkdir()
        (self.dir / "conf.d/fleet.conf").write_text(text)
        (self.dir / "mosquitto.conf").write_text(MAIN.format(dir=self.dir))
        self.process = None

    def start(self):
        self.process = subprocess.Popen([self.program, "-c", self.dir / "mosquitto.conf"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settled("mosquitto listens", lambda: self.process.poll() is not None or
                listens(self.port, self.host) and listens(self.operators_port, self.host))
        check(self.process.poll() is None, f"mosquitto ended: {self.words()}")

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(PATIENCE_S)
            self.process = None

    def words(self):
        log = self.dir / "broker.log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""

    def client(self, program, *words, name="operator", port=None, **kwargs):
        ca = self.dir / "ca.pem"
        return subprocess.run([f"mosquitto_{program}", "-V", "5", "-h", self.host, "-p", str(port or self.operators_port),
                               "--cafile", ca, "--cert", self.dir / f"{name}.pem", "--key", self.dir / f"{name}.key",
                               *words], capture_output=True, timeout=PATIENCE_S, check=False, **kwargs)

    def publish(self, data, group="all", fleet="doors"):
        """No data: withdraws the order."""
        path = self.dir / "payload"
        path.write_bytes(data)
        done = self.client("pub", "-q", "1", "-r", "-t", f"traced/{fleet}/{group}/orders", *(["-f", path] if data else ["-n"]))
        check(done.returncode == 0, f"{done.stderr} {self.words()}")

    def status(self, board="door-17", seconds=30):
        """The retained one; None: there is none."""
        done = self.client("sub", "-q", "1", "-C", "1", "-W", str(seconds), "-t", f"traced/doors/all/status/{board}")
        return json.loads(done.stdout) if done.stdout else None

    def outcomes(self, board="door-17"):
        """Of each order of the status: serial, outcome, reason."""
        return [(o["serial"], o["outcome"], o.get("reason")) for o in (self.status(board) or {}).get("orders", [])]

    def pings(self, board="door-17"):
        return (self.dir / "broker.log").read_text(errors="replace").count(f"Received PINGREQ from {board}")
