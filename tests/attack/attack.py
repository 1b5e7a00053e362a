# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the attacks: the recording of a victim, its figures, and processes of other users."""

import contextlib
import dataclasses
import encodings.idna  # noqa: F401: a stranger may not read Python's own folder
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
from harness import NOBODY, Failure, check, interrupt, need  # noqa: E402

VICTIM_S = 3
# System calls, some hundred per millisecond: a ring of 4 MiB per CPU takes them for about a second.
LOAD = "import os, time\nopen('/proc/self/comm', 'w').write('attack-load')\nwhile True:\n for _ in range(100): os.getppid()\n time.sleep(0.0005)\n"
# A million events a second, before all others: a ring of 4 MiB takes them for 80 ms.
MILLION = """import os, time
os.nice(-10)
open('/proc/self/comm', 'w').write('attack-load')
due = time.monotonic()
while True:
    for _ in range(500):
        os.getppid()
    due = max(due + 0.001, time.monotonic() - 0.01)
    time.sleep(max(0, due - time.monotonic()))
"""
PROTOCOL = 3  # of the build under attack
# In an emulated machine a command takes seconds. Delays say nothing there.
EMULATED = "TRACED_VM" in os.environ
SLOWER = 10 if EMULATED else 1
TIMEOUT_S = 30 * SLOWER  # of the victim, which takes three seconds


class Exceeded(Failure):
    """A figure beyond its limit. On a machine that others use, it counts only if it comes again."""


def limit(holds, why):
    if not holds:
        raise Exceeded(why)


def limit_delay(holds, why):
    limit(holds or EMULATED, why)


def settled(what, condition, seconds=harness.PATIENCE_S):
    harness.settled(what, condition, min(seconds * SLOWER, harness.PATIENCE_S))


@dataclasses.dataclass
class Figures:
    """What an attack costs its victim. None: not measured."""
    lost: int | None = None     # events
    events: int | None = None   # in the victim's file
    delay_s: float | None = None  # beyond the time that the victim's command takes by itself
    bytes: int | None = None    # of memory or disk that the attack gets

    def cells(self):
        share = ""
        if self.lost and self.events is not None:
            share = f" ({100 * self.lost / (self.lost + self.events):.0f} %)"
        return ["-" if self.lost is None else f"{self.lost:,}{share}",
                "-" if self.delay_s is None else f"{self.delay_s:.1f} s",
                "-" if self.bytes is None else f"{self.bytes:,}"]


@dataclasses.dataclass
class Attack:
    """run(test) attacks test.daemon, and returns Figures. The limits are what a victim may notice;
    run() itself checks everything else, and raises Failure, or Exceeded by a figure of its own."""
    name: str
    run: callable
    lost: int = 0
    delay_s: float = 1.5
    bytes: int | None = None
    daemon: bool = True

    def check(self, f):
        for what, most, check_it in (("lost", self.lost, limit), ("delay_s", self.delay_s, limit_delay), ("bytes", self.bytes, limit)):
            value = getattr(f, what)
            check_it(value is None or most is None or value <= most, f"{what}: {value}, the limit is {most}")


class Service:
    """The installed service, in place of a daemon that a test starts."""

    class Process:
        """What attacks do with a daemon's process."""

        def __init__(self):
            self.pid = int(systemctl("show", "-P", "MainPID", "traced.service"))

        def terminate(self):
            systemctl("stop", "--no-block", "traced.socket", "traced.service")
            # It may have ended already.
            subprocess.run(["systemctl", "kill", "--kill-who=main", "-s", "TERM", "traced.service"], check=False)

        def wait(self, seconds):
            settled("the service ends", lambda: systemctl("show", "-P", "ActiveState", "traced.service") in
                    ("inactive\n", "failed\n"), seconds)

    socket = pathlib.Path("/run/traced/traced.sock")

    drop_in = pathlib.Path("/run/systemd/system/traced.service.d/subuid.conf")

    def __init__(self, _test):
        systemctl("start", "traced.socket", "traced.service")
        self.process = Service.Process()
        self.invocation = systemctl("show", "-P", "InvocationID", "traced.service").strip()

    def words(self):
        """Of this daemon: earlier ones had sessions of the same names."""
        return subprocess.run(["journalctl", "-q", "--no-pager", "-o", "cat", "-n", "40", f"_SYSTEMD_INVOCATION_ID={self.invocation}"],
                              capture_output=True, text=True, check=True).stdout

    def stop(self):
        systemctl("stop", "traced.service", "traced.socket")


@contextlib.contextmanager
def subordinate_ids(test, text):
    """Another daemon, which sees this text as /etc/subuid."""
    seen = pathlib.Path("/etc/subuid")
    need(seen.exists(), f"there is no {seen} to mount another on")
    file = test.dir / "subuid"
    file.write_text(text)
    why = test.daemon.stop()
    check(not why, why)
    if test.make_daemon is not Service:
        test.daemon = test.make_daemon(test, wrap=("unshare", "--mount", "sh", "-c", f'mount --bind "$0" {seen} && exec "$@"', file))
        yield
        return
    Service.drop_in.parent.mkdir(parents=True, exist_ok=True)
    Service.drop_in.write_text(f"[Service]\nBindReadOnlyPaths={file}:{seen}\n")
    try:
        systemctl("daemon-reload")
        test.daemon = Service(test)
        yield
    finally:
        Service.drop_in.unlink()
        systemctl("daemon-reload")


def delay_alone(test):
    """What the victim's command takes beyond its recording when nobody attacks: most of it is the export."""
    with Victim(test) as v:
        v.finish()
    return v.figures.delay_s


def systemctl(*words):
    return subprocess.run(["systemctl", *words], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout


class Victim:
    """Root's recording of a busy program. `with Victim(test) as v:` attacks it; v.figures follow."""

    def __init__(self, test, seconds=VICTIM_S, load=LOAD, timeout_s=TIMEOUT_S):
        self.test, self.seconds, self.program, self.timeout_s = test, seconds, load, timeout_s
        self.figures = self.client = self.load = self.span_s = None
        self.words = ""  # what its command printed

    def __enter__(self):
        self.load = subprocess.Popen([sys.executable, "-c", self.program])
        self.began = time.monotonic()
        self.client = self.test.start("record", "--json", "-q", "--name", f"{self.test.name}-victim", "-t",
                                      f"{self.seconds}s", "-b", "4M", "-e", "raw_syscalls", "-f",
                                      'comm == "attack-load"', "-o", "victim.traced")
        self.test.wait_for_recording("victim")
        self.armed = time.monotonic()
        return self

    def finish(self):
        """Waits for the recording's end, and takes the figures."""
        try:
            out, err = self.client.communicate(timeout=self.timeout_s)
        except subprocess.TimeoutExpired:
            self.client.kill()
            self.client.communicate()
            self.figures = Figures(delay_s=self.timeout_s)
            return
        finally:
            self.load.kill()
            self.load.wait()
        took = time.monotonic() - self.armed
        check(self.client.returncode in (0, 3), f"the victim's recording: {self.client.returncode}: "
              f"{err.decode(errors='replace')}")
        told, self.words = json.loads(out), out.decode() + err.decode(errors="replace")
        check(told["events"] > 0, f"the victim recorded nothing: {told}")
        self.span_s = told["span_ns"] / 1e9
        self.figures = Figures(lost=told["lost"], events=told["events"], delay_s=max(0.0, took - self.seconds))

    def __exit__(self, kind, value, trace):
        if kind:
            self.client.kill()
            self.client.communicate()
            self.load.kill()
            self.load.wait()
        elif not self.figures:
            self.finish()
        return False


class Stranger:
    """A process of another user that runs function(*arguments), then waits until it is killed. wait:
    until the function has returned or called report_attack(). Such a stranger must live until the end."""

    report = None  # in the stranger: where it reports

    def __init__(self, function, *arguments, uid=NOBODY, wait=True):
        self.wait = wait
        ready, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(ready)
                os.setpgid(0, 0)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                Stranger.report = theirs
                kept = function(*arguments)
                report_attack()
                while kept is not self:
                    time.sleep(60)
            except BaseException as e:  # the parent must not run on twice
                print(f"the stranger: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
            finally:
                os._exit(1)
        os.close(theirs)
        done = not wait or os.read(ready, 1)
        os.close(ready)
        if not done:
            self.end()
        check(done, "the stranger could not attack")

    def end(self):
        """Kills it and its children. A stranger that hangs in the kernel is reaped later."""
        if self.pid:
            for kill in (os.kill, os.killpg):
                with contextlib.suppress(ProcessLookupError):
                    kill(self.pid, 9)
            until = time.monotonic() + 1
            while not os.waitpid(self.pid, os.WNOHANG)[0] and time.monotonic() < until:
                time.sleep(0.01)
            self.pid = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        lives = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        self.end()
        check(kind or lives or not self.wait, "the stranger did not attack until the end")
        return False


def report_attack():
    """For a stranger that attacks without end: the attack works."""
    os.write(Stranger.report, b"1")


def admit_everybody(test):
    """Makes every user a member: all may use the daemon's socket."""
    test.daemon.socket.chmod(0o666)


def hello():
    """The first message of a client."""
    return frame(b"\x08\x01\x12\x02\x08" + bytes([PROTOCOL]))


def frame(message):
    return struct.pack("<I", len(message)) + message


def connect(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(5 * SLOWER)
    s.connect(str(path))
    return s


def memory_kb(test):
    for line in open(f"/proc/{test.daemon.process.pid}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def wait_of_another(test):
    """Seconds that another client waits for a reply. tracectl gives up after ten."""
    began = time.monotonic()
    test.run("list")
    return time.monotonic() - began


__all__ = ["Attack", "Exceeded", "Figures", "hello", "MILLION", "NOBODY", "Service", "Stranger", "Victim",
           "admit_everybody", "check", "connect", "delay_alone", "frame", "interrupt", "limit", "limit_delay", "memory_kb", "need",
           "report_attack", "settled", "SLOWER", "subordinate_ids", "wait_of_another"]
