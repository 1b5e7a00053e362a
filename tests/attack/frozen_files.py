# SPDX-License-Identifier: LGPL-2.1-or-later
"""Outputs on a file system that hangs, as NFS does whose server is away: writers wait in the kernel, and
no signal ends them. A frozen ext4 stands in for it."""

import contextlib
import fcntl
import os
import select
import shutil
import subprocess
import time

from attack import SLOWER, Attack, Service, Victim, check, interrupt, limit, need, settled, wait_of_another
from harness import PATIENCE_S

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
IMAGE_BYTES = 16 << 20


class Folder:
    """Of an ext4 in a file, with freeze() and thaw()."""

    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.frozen = False

    def freeze(self):
        fcntl.ioctl(self.fd, FIFREEZE, 0)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            fcntl.ioctl(self.fd, FITHAW, 0)
            self.frozen = False


@contextlib.contextmanager
def freezable(test):
    for program in ("mkfs.ext4", "mount", "umount"):
        need(shutil.which(program), f"there is no {program}")
    image, path = test.dir / "image", test.dir / "frozen"
    with open(image, "wb") as f:
        f.truncate(IMAGE_BYTES)
    path.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, path], capture_output=True, text=True, check=False)
    need(mounted.returncode == 0, f"mount: {mounted.stderr.strip()}")
    try:
        folder = Folder(path)
        try:
            yield folder
        finally:
            folder.thaw()
            os.close(folder.fd)
    finally:
        settled("the folder is no longer used", lambda: subprocess.run(
            ["umount", path], capture_output=True, check=False).returncode == 0, 20)


def state_of(pid):
    with contextlib.suppress(FileNotFoundError):
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(") ")[2][0]
    return "-"


def in_kernel(name, parent):
    """The children of that name that hang in the kernel."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            if f"({name}) D {parent} " in f.read():
                found.append(int(pid))
    return found


def exporters(test):
    """Those of the daemon that hang in the kernel. A service's are children of the service manager."""
    return in_kernel("traced-export", 1 if isinstance(test.daemon, Service) else test.daemon.process.pid)


def hanging(test, folder, *options):
    """A recording into the folder, which freezes before anything is written."""
    name = f"{test.name}-hung"
    client = test.start("record", "--name", name, "-e", "sched:sched_switch", *options, "-o", folder.path / "out.txt")
    test.wait_for_recording(name)
    folder.freeze()
    return name, client


def stopped(test):
    """A streamed recording, which is stopped and then cancelled while its exporter hangs."""
    with freezable(test) as folder:
        with Victim(test) as v:
            name, client = hanging(test, folder, "-t", f"{SLOWER}s", "--stream")
            settled("the exporter hangs", lambda: exporters(test))
            waited = wait_of_another(test)
            settled("the instances go once it does not record any more", lambda: not [
                i for i in test.instances() if name in i] or '"recording"' in test.run("status", name, "--json").out)
            v.finish()
        r = test.run("stop", name, timeout=40 * SLOWER)
        check(r.status == 1 and "its output hangs" in r.err and f"tracectl cancel {name}" in r.err, f"stop: {r}")
        check(f"{name}: its output hangs: for 1" in test.daemon.words(), f"the journal: {test.daemon.words()}")
        began = time.monotonic()
        r = test.run("cancel", name)
        check(r.status == 0, f"cancel: {r}")
        limit(time.monotonic() - began < 5 * SLOWER, f"cancel took {time.monotonic() - began:.1f} s")
        check(not test.instances(), f"the instances stay: {test.instances()}")
        check(exporters(test), "nothing hangs any more")
        folder.thaw()
        r = test.finish(client)
        check(r.status == 1 and "cancelled" in r.err, f"the recording: {r}")
        check(not list(folder.path.glob("*.txt")), "a file was left")
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def goes_on(test):
    """Ctrl-C ends a recording whose exporter hangs. The file system answers again: the file is whole."""
    with freezable(test) as folder:
        with Victim(test) as v:
            name, client = hanging(test, folder, "--stream")
            settled("the exporter hangs", lambda: exporters(test))
            interrupt(client)
            waited = wait_of_another(test)
            v.finish()
        settled("the journal says so", lambda: f"{name}: its output hangs: for 1" in test.daemon.words(), 20)
        folder.thaw()
        r = test.finish(client)
        check(r.status == 0 and "its output hangs; Ctrl-C discards it" in r.err, f"the recording: {r}")
        check("sched_switch" in (folder.path / "out.txt").read_text(), "the file has no event")
        check("takes data again" in test.daemon.words() or "wrote" in test.daemon.words(), test.daemon.words())
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def killed(test):
    """The daemon is killed while an exporter hangs and another session records."""
    need(hasattr(test.daemon.process, "kill"), "the service manager restarts its service by itself")
    with freezable(test) as folder:
        name, client = hanging(test, folder, "-t", "500ms")
        settled("the exporter hangs", lambda: exporters(test))
        r = test.run("start", "--name", f"{test.name}-other", "-e", "sched:sched_switch")
        check(r.status == 0 and test.instances(), f"start: {r}")
        hung = exporters(test)
        test.daemon.process.kill()
        test.daemon.process.wait(20 * SLOWER)
        test.daemon.log.close()
        test.daemon = type(test.daemon)(test)
        settled("the instances go", lambda: not test.instances(), 20)
        check([state_of(pid) for pid in hung] == ["D"], "the exporter does not hang any more")
        check(any(name in line and "is left from an earlier run" in line for line in test.daemon.words().splitlines()),
              f"its recording is lost: {test.daemon.words()}")
        folder.thaw()
        settled("the exporter ends", lambda: state_of(hung[0]) in "-ZX", 20)
        r = test.finish(client)
        check(r.status == 1, f"the recording: {r}")


def words_of(client, wanted):
    """Reads the client's standard error until it has said this."""
    text, until = b"", time.monotonic() + PATIENCE_S
    while wanted.encode() not in text:
        left = until - time.monotonic()
        check(left > 0, f"not within {PATIENCE_S} s: {wanted!r}, but {text.decode(errors='replace')}")
        if select.select([client.stderr], [], [], left)[0]:
            more = os.read(client.stderr.fileno(), 1 << 16)
            check(more, f"it ended without {wanted!r}: {text.decode(errors='replace')}")
            text += more
    return text.decode(errors="replace")


def left_alone(test, output, *options):
    """tracectl's own process writes the files, and hangs. tracectl says so; Ctrl-C twice ends it."""
    with freezable(test) as folder:
        with Victim(test) as v:
            name = f"{test.name}-hung"
            client = test.start("record", "--name", name, "-e", "sched:sched_switch", *options, "-o", folder.path / output)
            test.wait_for_recording(name)
            folder.freeze()
            if not options:  # what is no stream is written at the end
                interrupt(client)
            settled("the process that writes hangs", lambda: in_kernel("tracectl-files", client.pid))
            hung = in_kernel("tracectl-files", client.pid)
            waited = wait_of_another(test)
            v.finish()
        words_of(client, f"{folder.path / output}: the output hangs: for ")
        began = time.monotonic()
        # The first one only stops.
        interrupt(client)
        if options:
            settled("the first one is heard", lambda: not test.is_on(name))
            time.sleep(0.5 * SLOWER)
            interrupt(client)
        text = words_of(client, "cancelled: nothing was written")
        client.wait(PATIENCE_S)
        took = time.monotonic() - began
        check(client.returncode == 1 and [state_of(pid) for pid in hung] == ["D"] and
              f"process {hung[0]}, which writes there, ends when it does" in text, text)
        # Whoever reads its words is not kept waiting.
        settled("its standard error is closed", lambda: not client.stderr.read())
        settled("the instances go", lambda: not test.instances())
        folder.thaw()
        settled("the process ends", lambda: state_of(hung[0]) in "-ZX")
        check([p.name for p in folder.path.iterdir()] == ["lost+found"], f"left: {list(folder.path.iterdir())}")
        limit(took < 8 * SLOWER, f"it took {took:.1f} s to end")
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def rotated(test):
    return left_alone(test, "out.txt", "--rotate", "1h")


def directory(test):
    return left_alone(test, "out.ctf")


ATTACKS = (
    Attack("an output that hangs while it is written", stopped),
    Attack("an output that hangs, and goes on", goes_on),
    Attack("a killed daemon whose exporter hangs", killed),
    Attack("files of --rotate that hang", rotated),
    Attack("a directory that hangs", directory),
)
