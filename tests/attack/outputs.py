# SPDX-License-Identifier: LGPL-2.1-or-later
"""Outputs of root in folders where another user plants pipes and links. Bytes: what that user gets, or
what root writes where that user's link leads."""

import os
import pathlib
import subprocess

from attack import NOBODY, Attack, Figures, Stranger, check
from harness import in_namespace


def recording(test):
    """Also as one that a daemon has left."""
    r = test.run("record", "-t", "300ms", "-e", "sched", "-o", "x.traced")
    check(r.status in (0, 3), f"record: {r}")
    (test.dir / "20260102T030405Z-left-0123abcd.traced").write_bytes((test.dir / "x.traced").read_bytes())


def commands(test, path):
    """Each with what it runs in: only there /var/lib/traced has that recording."""
    left = in_namespace("mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/traced && "
                        f"cp {test.dir}/*-left-*.traced /var/lib/traced")
    recover = ()
    # The test in namespaces may not mount.
    if subprocess.run([*left, "true"], capture_output=True, check=False).returncode == 0:
        recover = ((left, "recover", "left", "-o", path),)
        r = test.run("recover", "left", "-o", "left.txt", wrap=left)
        check(r.status in (0, 3), f"recover: {r}")
    else:
        print("recover is left out: no mount")
    return (*recover, ((), "convert", "x.traced", path),
            ((), "record", "-t", "300ms", "-e", "sched", "-o", path),
            ((), "record", "-t", "300ms", "-e", "sched", "--stream", "-o", path),
            ((), "record", "-t", "300ms", "-e", "sched", "--rotate", "1M", "-o", path))


def read_pipe(pipe, to):
    os.mkfifo(pipe)
    os.chmod(pipe, 0o666)
    if os.fork() == 0:
        with open(pipe, "rb") as source, open(to, "wb") as target:
            while piece := source.read1():
                target.write(piece)
                target.flush()
        os._exit(0)


def pipe(test):
    """In a folder like /tmp."""
    recording(test)
    shared = test.dir / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    got = 0
    for n, (wrap, command, *arguments) in enumerate(commands(test, shared / "trace.txt")):
        with Stranger(read_pipe, shared / "trace.txt", shared / f"got{n}"):
            r = test.run(command, *arguments, wrap=wrap)
        got += (shared / f"got{n}").stat().st_size if (shared / f"got{n}").exists() else 0
        for p in shared.iterdir():
            p.unlink()
        # --rotate makes files of other names.
        check(r.status == 1 or "--rotate" in arguments or got, f"{arguments}: {r}")
    return Figures(bytes=got)


def make_link(link, target):
    os.symlink(target, link)


def link(test):
    """In a folder of the other user, who may make it sticky or not."""
    recording(test)
    theirs, secret = test.dir / "theirs", test.dir / "secret"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    secret.mkdir(mode=0o700)
    with Stranger(make_link, theirs / "link", secret):
        for wrap, command, *arguments in commands(test, theirs / "link" / "trace.txt"):
            r = test.run(command, *arguments, wrap=wrap)
            check(r.status == 1 or any(secret.iterdir()), f"{arguments}: {r}")
    return Figures(bytes=sum(p.stat().st_size for p in pathlib.Path(secret).iterdir()))


ATTACKS = (
    Attack("a planted pipe as root's output", pipe, bytes=0),
    Attack("a planted link on the way to root's output", link, bytes=0),
)
