# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the integration tests: tracectl and traced of one build tree, in a folder of their own,
and the check that they leave nothing behind."""

import atexit
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from trace_event_rules import check_file

TRACEFS = pathlib.Path("/sys/kernel/tracing")
INSTANCES = TRACEFS / "instances"
NOBODY = 65534
# Under a sanitizer, beside other tests and compilers, a daemon may need this long for milliseconds
# of work; in an emulated machine the kernel alone takes seconds to trace all functions, and as many
# to stop that.
PATIENCE_S = 300 if "TRACED_VM" in os.environ else 60
# Larger ones would take minutes to check.
LARGE_TRACE = 64 << 20


class Failure(Exception):
    pass


class Skipped(Exception):
    """A case can't run here."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def need(condition, text):
    if not condition:
        raise Skipped(text)


def settled(what, condition, seconds=PATIENCE_S):
    """what: a text, or a function that makes it at the end."""
    until = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < until, f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.02)


def chunks(file):
    """The chunks of a capture stream: kind, flags, and the length of the payload, which is next in file."""
    file.seek(8)
    while len(header := file.read(24)) == 24:
        magic, kind, flags, length = struct.unpack_from("<4sHHI", header)
        check(magic == b"CHNK", "no chunk")
        end = file.tell() + (length + 7) // 8 * 8
        yield kind, flags, length
        file.seek(end)


def entry_of(path):
    """The offset in its file of the first instruction of a 64-bit program."""
    data = path.read_bytes()
    entry, table = struct.unpack_from("<QQ", data, 24)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == 1 and address <= entry < address + length:
            return entry - address + offset
    raise ValueError(f"{path} has no entry")


# On a busy machine a process that has nothing to do with a recording may be in a call that keeps the recorder from
# reading its command line. Where programs begin and end all the time, a pause of the recorder loses names.
OF_OTHERS = re.compile(r"^.*\b(command lines of \d+ process(es)? are missing|\d+ births? or names? of tasks (was|were) lost): .*\n?", re.M)


def without_others(text):
    return OF_OTHERS.sub("", text)


class Result:
    """err: without what is said of processes that are no test's."""

    def __init__(self, status, out, err):
        self.status = status
        self.stdout = out
        self.out = out.decode(errors="replace")
        self.all_err = err.decode(errors="replace")
        self.err = without_others(self.all_err)

    def __str__(self):
        return f"exit status {self.status}\n{self.out[-1500:]}{self.all_err[-3000:]}"


class Daemon:
    """A traced that listens on a socket of ours."""

    def __init__(self, test, *arguments, env=None, wrap=()):
        self.test = test
        self.socket = test.dir / "daemon" / "sock"
        self.spool = test.dir / "daemon" / "spool"
        self.state = test.dir / "daemon" / "state"
        for d in (self.spool, self.state):
            d.mkdir(parents=True, exist_ok=True)
        # A predecessor that was killed leaves its socket.
        self.socket.unlink(missing_ok=True)
        self.log = open(test.dir / "daemon" / "log", "ab")
        self.process = subprocess.Popen(
            [*wrap, test.traced, "--config", self.config(), "--socket", self.socket, "--spool-dir",
             self.spool, "--state-dir", self.state, *arguments],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)
        until = time.monotonic() + PATIENCE_S
        while not self.listens():
            code = self.process.poll()
            if code is not None or time.monotonic() > until:
                self.stop()
                what = "does not listen" if code is None else f"ended with {code}"
                raise Failure(f"traced {what}:\n{self.words()}")
            time.sleep(0.02)

    def config(self):
        """Without instances that wait for the next recording, because tests count what is left."""
        path = self.test.dir / "daemon" / "traced.conf"
        path.write_text("[daemon]\nspare = no\n")
        return path

    def listens(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(self.socket)) == 0

    def words(self):
        return (self.test.dir / "daemon" / "log").read_text(errors="replace")[-3000:]

    def stop(self):
        """Returns why this went wrong."""
        why = None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                why = f"traced does not end:\n{self.words()}"
                self.process.kill()
                self.process.wait()
        self.log.close()
        return why


class Test:
    """One run of a test script: cases, each with a folder, and their sum."""

    make_daemon = Daemon

    def __init__(self, name, root=True):
        if len(sys.argv) < 2:
            sys.exit(f"usage: {sys.argv[0]} BUILD_DIRECTORY [CASE...]")
        build = pathlib.Path(sys.argv[1]).resolve()
        self.wanted = sys.argv[2:]
        self.build = build
        prefix = os.environ.get("PROGRAM_PREFIX", "")
        self.tracectl = build / "cli" / (prefix + "tracectl")
        self.traced = build / "daemon" / (prefix + "traced")
        self.source = pathlib.Path(__file__).resolve().parents[2]
        if root and os.geteuid() != 0:
            skip(f"{name} needs root")
        if root and not (TRACEFS / "instances").is_dir():
            skip(f"{name} needs tracefs at {TRACEFS} (mount -t tracefs nodev {TRACEFS})")
        self.name = f"{name}-{os.getpid()}"
        self.top = pathlib.Path(tempfile.mkdtemp(prefix=f"traced-{name}."))
        atexit.register(shutil.rmtree, self.top, ignore_errors=True)
        # The tests run programs as other users, which must reach the programs' output.
        self.top.chmod(0o755)
        # A private daemon keeps recordings whose export failed: here, not in the machine's folder.
        # A folder's marks go to one daemon at a time, and other tests record meanwhile.
        self.private = self.top / "traced"
        self.private.write_text(f'#!/bin/sh\nexec "{self.traced}" "$@" --spool-dir "{self.top}/spool" '
                                f'--socket "{self.top}/private/sock"\n')
        self.private.chmod(0o755)
        (self.top / "spool").mkdir(mode=0o700)
        self.passed = self.failed = self.skipped = 0
        self.daemon = None

    def environment(self, **more):
        env = dict(os.environ, LC_ALL="C.UTF-8", TRACED_DAEMON=str(self.private),
                   TRACED_PROFILES=str(self.source / "systemd" / "profiles"), TMPDIR=str(self.dir))
        env.update(more)
        return env

    def arguments(self, command, *arguments):
        """tracectl's own, with a socket where only our daemon may be."""
        path = self.daemon.socket if self.daemon else self.dir / "no-daemon"
        return [str(self.tracectl), "--socket", str(path), command, *map(str, arguments)]

    def build_option(self, name):
        options = json.loads((self.build / "meson-info/intro-buildoptions.json").read_text("utf-8"))
        return next(o["value"] for o in options if o["name"] == name)

    def is_sanitized(self):
        return self.build_option("b_sanitize") != "none"

    def run(self, command, *arguments, timeout=PATIENCE_S, wrap=(), stdin=b"", env=None, cwd=None, **kwargs):
        done = subprocess.run([*map(str, wrap), *self.arguments(command, *arguments)],
                              cwd=cwd or self.dir, env=env or self.environment(), input=stdin,
                              capture_output=True, timeout=timeout, check=False, **kwargs)
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, command, *arguments, wrap=(), env=None, **kwargs):
        """The same as run, but in the background; finish() waits for it."""
        return subprocess.Popen([*map(str, wrap), *self.arguments(command, *arguments)],
                                cwd=self.dir, env=env or self.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **kwargs)

    def finish(self, process, timeout=PATIENCE_S):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise Failure(f"does not end:\n{err.decode(errors='replace')}") from None
        return Result(process.returncode, out, err)

    def instances(self):
        """Our own only: others may record at the same time."""
        if not INSTANCES.is_dir():
            return []
        return sorted(p.name for p in INSTANCES.iterdir() if self.name in p.name)

    def instances_of(self, pid):
        """All instances of one daemon, whatever their names."""
        if not INSTANCES.is_dir():
            return []
        return sorted(p.name for p in INSTANCES.iterdir() if p.name.startswith(f"traced-{pid}-"))

    def remove_instances(self, names=None):
        """Removes the instances of a killed daemon: ours by name, or these. Any other daemon that
        starts meanwhile does so, too."""
        for i in self.instances() if names is None else names:
            with contextlib.suppress(OSError):
                (INSTANCES / i).rmdir()

    def check_no_instances(self):
        """At once; but a daemon that goes on removes instances after its reply."""
        until = time.monotonic() + (PATIENCE_S if self.daemon else 0)
        while self.instances():
            check(time.monotonic() < until, f"left instances: {self.instances()}")
            time.sleep(0.02)

    def is_on(self, name):
        """Whether the session's main instance records. An instance is on from its birth, and is
        turned off before its events are enabled: tracing_on means something only once there are
        events."""
        for i in self.instances():
            if name not in i or i.endswith("-tasks"):
                continue
            try:
                if ((INSTANCES / i / "set_event").read_text().strip() and
                        (INSTANCES / i / "tracing_on").read_text().strip() == "1"):
                    return True
            except OSError:
                pass
        return False

    def is_told(self):
        """Whether a daemon, if there is one, reports that all sessions of its callers record."""
        if not self.daemon:
            return True
        sessions = json.loads(self.run("status", "--json").out)["sessions"]
        return all(s["state"] != "arming" for s in sessions)

    def wait_for_sessions(self, count):
        """Waits until the daemon reports so many sessions, and that all of them record."""
        settled(f"{count} sessions record", lambda: [s["state"] for s in json.loads(
            self.run("status", "--json").out)["sessions"]] == ["recording"] * count)

    def wait_for_recording(self, name, seconds=PATIENCE_S):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.is_on(name) and self.is_told():
                return
            time.sleep(0.02)
        raise Failure(f"{name} does not record")

    def files(self):
        """Files in the case's folder, hidden ones too, without the daemon's.

        ThreadSanitizer makes tsan.rodata.PID when a program starts, and removes it at once, unless
        the program is killed in between."""
        return sorted(p.name for p in self.dir.iterdir()
                      if p.name != "daemon" and not p.name.startswith("tsan.rodata."))

    def check_traces(self):
        """Each JSON trace that a case left is one that its readers take whole."""
        for path in sorted(self.dir.rglob("*.json*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGE_TRACE:
                found = check_file(path)
                check(not found, f"{path.name}: {len(found)} problems: {found[:3]}")

    def case(self, label, function, *arguments, daemon=False):
        if self.wanted and not any(w in label for w in self.wanted):
            return
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=self.top))
        self.dir.chmod(0o755)
        why = skipped = None
        began, cpu_began = time.monotonic(), cpu_seconds()
        try:
            if daemon:
                self.daemon = self.make_daemon(self)
            function(self, *arguments)
            self.check_traces()
        except Skipped as e:
            skipped = str(e)
        except Exception as e:  # a test that stumbles has failed; the others go on
            why = f"{type(e).__name__}: {e}" if not isinstance(e, Failure) else str(e)
            if self.daemon:
                why += "\ntraced: " + self.daemon.words()
        finally:
            pid = None
            if self.daemon:
                why = self.daemon.stop() or why
                pid = self.daemon.process.pid
        left = {*self.instances(), *self.instances_of(pid)}
        if left and why is None:
            why = f"left behind: {left}"
            if self.daemon:
                why += "\ntraced: " + self.daemon.words()
        self.daemon = None
        self.remove_instances(left)
        if why is None and skipped:
            self.skipped += 1
            print(f"skipped: {label}: {skipped}", flush=True)
        elif why is None:
            self.passed += 1
            # tests/tally.py reads it.
            print(f"ok: {label} ({time.monotonic() - began:.1f} s, CPU {cpu_seconds() - cpu_began:.1f} s)", flush=True)
        else:
            self.failed += 1
            print(f"FAILED: {label}: {why}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        if self.skipped and not self.passed and not self.failed:
            sys.exit(77)
        sys.exit(1 if self.failed or not self.passed else 0)


def cpu_seconds():
    """Of this process, and of its children that have ended."""
    return sum(os.times()[:4])


def need_tracefs():
    need(os.geteuid() == 0 and INSTANCES.is_dir(), "it needs root, and tracefs")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


@contextlib.contextmanager
def top_level():
    """One test at a time may use the top-level buffer. Restores what the test changes in it."""
    lock = os.open(TRACEFS, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    clock = (TRACEFS / "trace_clock").read_text().split("[")[1].split("]")[0]
    try:
        yield
    finally:
        (TRACEFS / "trace_clock").write_text(clock)
        os.close(lock)


def as_nobody():
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


def in_namespace(script):
    """A command prefix that first runs script in a mount namespace of its own."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script + '\nexec "$@"', "sh"]


def functions_refused():
    """Whether this kernel refuses its function tracers to everybody, as in lockdown."""
    try:
        (TRACEFS / "available_filter_functions").open("rb").close()
    except OSError:
        return True
    return False


def interrupt(process):
    process.send_signal(signal.SIGINT)
