#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""agent.py CONFIGURATION_FOLDER: orders through traced-agent.service, with a store and a broker beside it. inside.sh
runs it under the systemd that `run` boots."""

import os
import pathlib
import pwd
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "integration"))
from broker import Broker  # noqa: E402
from harness import check, settled  # noqa: E402
from store import Store, order  # noqa: E402

CONFIGURATION = """
[board]
id = door-17
fleet = doors
[orders]
url = {url}/orders/doors
broker = {broker}
interval = 500ms
[results]
url = {url}/results
[tls]
ca = {folder}/ca.pem
certificate = {folder}/door-17.pem
key = {folder}/door-17.key
[limits]
events = sched:*
reports = sched
captures = yes
"""


def systemctl(*words):
    subprocess.run(["systemctl", *words], check=True)


def journal():
    return subprocess.run(["journalctl", "-q", "-u", "traced-agent", "-n", "20"], capture_output=True, text=True,
                          check=False).stdout


def main():
    folder = pathlib.Path(sys.argv[1]) / "traced"
    unit = subprocess.run(["systemctl", "show", "-P", "ActiveState", "traced-agent"], capture_output=True, text=True,
                          check=True).stdout.strip()
    check(unit == "inactive", f"it is {unit} without a configuration")
    # nginx and the agent's user both have to reach the folder.
    store = Store(pathlib.Path(tempfile.mkdtemp(dir="/var/lib")))
    broker = Broker(store)
    keys = folder / "agent-keys"
    keys.mkdir(parents=True)
    for name in ("ca.pem", "door-17.pem", "door-17.key"):
        (folder / name).write_bytes((store.dir / name).read_bytes())
    os.chown(folder / "door-17.key", pwd.getpwnam("traced-agent").pw_uid, 0)
    (keys / "order.pub").write_bytes((store.dir / "keys/order.pub").read_bytes())
    (folder / "agent.conf").write_text(CONFIGURATION.format(url=store.url, broker=broker.address, folder=folder))
    try:
        store.start()
        broker.start()
        systemctl("start", "traced-agent")
        store.publish(store.sign(order(7, capture="yes")))
        settled(f"two results: {journal()}", lambda: len(store.results(7)) == 2, 30)
        broker.publish(store.sign(order(8)))
        settled(f"another result: {journal()}", lambda: len(store.results(8)) == 1, 30)
        settled(f"the status: {journal()}", lambda: (8, "done", None) in broker.outcomes(), 30)
        status = pathlib.Path("/proc", subprocess.run(
            ["systemctl", "show", "-P", "MainPID", "traced-agent"], capture_output=True, text=True, check=True).stdout.strip(),
            "status").read_text()
        check("\nCapBnd:\t0000000000000000\n" in status and "\nSeccomp:\t2\n" in status, status)
    finally:
        print(journal())
        systemctl("stop", "traced-agent")
        store.stop()
        broker.stop()


if __name__ == "__main__":
    main()
