#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: a member's outputs on NFS whose server hangs. Nobody else's recording suffers, the
member can stop and cancel, the daemon ends, and when the server answers all goes on."""

import pathlib
import sys
import time

from common import check, interrupt, of_a_guest, settled
from nfs_server import MS_SYNCHRONOUS, mounted, serve

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "attack"))
from attack import NOBODY, Victim, admit_everybody, wait_of_another  # noqa: E402
from frozen_files import exporters, in_kernel, state_of, words_of  # noqa: E402

MEMBER = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
# An emulated machine has no time for more.
LOAD = "import os, time\nopen('/proc/self/comm', 'w').write('attack-load')\nwhile True:\n os.getppid()\n time.sleep(0.002)\n"
VICTIM_S = 20


def hanging(test, folder, *options, output="out.txt"):
    """A member's recording into the folder, whose server hangs before anything is written."""
    admit_everybody(test)
    name = f"{test.name}-hung"
    client = test.start("record", "--name", name, "-e", "sched:sched_switch", *options, "-o",
                        folder.path / output, **MEMBER)
    test.wait_for_recording(name)
    folder.hang()
    return name, client


def beside(test, function):
    """Calls function beside root's recording, which must not lose anything."""
    with Victim(test, VICTIM_S, LOAD) as v:
        result = function()
        waited = wait_of_another(test)
        v.finish()
    check(v.figures.lost == 0, f"another's recording: {v.figures}")
    check(waited < 10, f"another waited for {waited:.1f} s")
    return result


def hangs(test, folder, *options):
    def begin():
        name, client = hanging(test, folder, *options)
        settled("the exporter hangs", lambda: exporters(test))
        return name, client

    name, client = beside(test, begin)
    settled("the journal says so", lambda: f"{name}: its output hangs: for 1" in test.daemon.words())
    return name, client


def check_whole(test, folder, client):
    r = test.finish(client)
    check(r.status == 0, f"the recording: {r}")
    check("sched_switch" in (folder.path / "out.txt").read_text(), "the file has no event")
    check(sorted(p.name for p in folder.path.iterdir()) == ["out.txt"], "something else was left")


def check_others_record(test):
    r = test.run("record", "-t", "1s", "-e", "sched:sched_switch", "-o", "another.txt")
    check(r.status == 0 and "sched_switch" in (test.dir / "another.txt").read_text(), f"another's recording: {r}")


def cancelled(test, flags, *options):
    with mounted(test, flags) as folder:
        name, client = hangs(test, folder, *options)
        if "--stream" in options:
            r = test.run("stop", name, **MEMBER)
            check(r.status == 1 and "its output hangs" in r.err and f"tracectl cancel {name}" in r.err, f"stop: {r}")
        r = test.run("cancel", name, **MEMBER)
        check(r.status == 0, f"cancel: {r}")
        settled("the instances go", lambda: not test.instances())
        check(exporters(test), "nothing hangs any more")
        folder.answer()
        r = test.finish(client)
        check(r.status == 1 and "cancelled" in r.err, f"the recording: {r}")
        # NFS keeps a file that is open under another name.
        settled("no file is left", lambda: not list(folder.path.iterdir()))


def while_written(test):
    """The exporter hangs in a write."""
    cancelled(test, MS_SYNCHRONOUS, "--stream")


def while_closed(test):
    """The kernel keeps what is written. The exporter hangs when it closes the file."""
    cancelled(test, 0, "-t", "6s")


def goes_on(test):
    with mounted(test, MS_SYNCHRONOUS) as folder:
        _, client = hangs(test, folder, "--stream")
        interrupt(client)
        time.sleep(2)
        folder.answer()
        check_whole(test, folder, client)


def goes_on_closing(test):
    with mounted(test) as folder:
        _, client = hangs(test, folder, "-t", "6s")
        folder.answer()
        check_whole(test, folder, client)


def network(test):
    """The packets get lost."""
    with mounted(test, MS_SYNCHRONOUS) as folder:
        folder.hang = folder.cut
        _, client = hangs(test, folder, "--stream")
        interrupt(client)
        folder.mend()
        check_whole(test, folder, client)


def daemon_stopped(test, flags, *options, twice=False):
    """SIGTERM ends the daemon within a minute, two at once, although its exporter hangs. A thread that
    closes the file stays until the server answers."""
    with mounted(test, flags) as folder:
        name, client = hanging(test, folder, *options)
        settled("the exporter hangs", lambda: exporters(test))
        old = test.daemon.process
        old.terminate()
        if twice:
            time.sleep(2)
            old.terminate()
        settled("the daemon ends", lambda: state_of(old.pid) in "-ZX", 20 if twice else 90)
        check(not test.instances(), f"the instances stay: {test.instances()}")
        check(f"{name}: the daemon stops: its recording is in" in test.daemon.words(), test.daemon.words())
        test.daemon.log.close()
        test.daemon = type(test.daemon)(test)
        check_others_record(test)
        folder.answer()
        old.wait(60)
        check(old.returncode == 0, f"traced ended with {old.returncode}")
        r = test.finish(client)
        check(r.status in (1, 3), f"the recording: {r}")


def stopped_while_written(test):
    daemon_stopped(test, MS_SYNCHRONOUS, "-t", "6s")


def stopped_while_closed(test):
    daemon_stopped(test, 0, "-t", "6s", twice=True)


def killed(test):
    """A killed daemon's process stays until the server answers: it closes the file. So its instances, its
    locks and its recordings stay, too. The next daemon serves everybody meanwhile; the one after it
    finds them."""
    with mounted(test, MS_SYNCHRONOUS) as folder:
        name, client = hanging(test, folder, "-t", "6s")
        settled("the exporter hangs", lambda: exporters(test))
        r = test.run("start", "--name", f"{test.name}-other", "-e", "sched:sched_switch")
        check(r.status == 0 and test.instances(), f"start: {r}")
        hung, old = exporters(test), test.daemon.process
        old.kill()
        time.sleep(2)
        test.daemon.log.close()
        test.daemon = type(test.daemon)(test)
        check_others_record(test)
        folder.answer()
        old.wait(60)
        settled("the exporter ends", lambda: state_of(hung[0]) in "-ZX")
        r = test.finish(client)
        check(r.status == 1, f"the recording: {r}")
        check(not test.daemon.stop(), "the daemon does not stop")
        test.daemon = type(test.daemon)(test)
        settled("the instances go", lambda: not test.instances())
        check(any(name in line and "is left from an earlier run" in line for line in test.daemon.words().splitlines()),
              f"its recording is lost: {test.daemon.words()}")


def rotated(test):
    """The process of tracectl that writes the files hangs. Ctrl-C twice leaves it."""
    with mounted(test, MS_SYNCHRONOUS) as folder:
        _, client = hanging(test, folder, "--rotate", "1h")
        settled("the process that writes hangs", lambda: in_kernel("tracectl-files", client.pid))
        hung = in_kernel("tracectl-files", client.pid)
        words_of(client, f"{folder.path / 'out.txt'}: the output hangs: for 1")
        interrupt(client)
        time.sleep(2)
        interrupt(client)
        text = words_of(client, "cancelled: nothing was written")
        client.wait(20)
        check(client.returncode == 1 and "ends when it does" in text, text)
        settled("the instances go", lambda: not test.instances())
        check([state_of(pid) for pid in hung] == ["D"], "nothing hangs any more")
        folder.answer()
        settled("the process ends", lambda: state_of(hung[0]) in "-ZX")
        settled("it leaves nothing", lambda: not list(folder.path.iterdir()))


def main():
    test = of_a_guest("nfs")
    serve(test.top / "export")
    test.case("a file that is written", while_written, daemon=True)
    test.case("a file that is closed", while_closed, daemon=True)
    test.case("a file that is written, and goes on", goes_on, daemon=True)
    test.case("a file that is closed, and goes on", goes_on_closing, daemon=True)
    test.case("no network", network, daemon=True)
    test.case("a daemon that stops while a file is written", stopped_while_written, daemon=True)
    test.case("a daemon that stops while a file is closed", stopped_while_closed, daemon=True)
    test.case("a killed daemon", killed, daemon=True)
    test.case("files of --rotate", rotated, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
