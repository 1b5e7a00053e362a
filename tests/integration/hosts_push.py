#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl -H by ssh, and --push: hosts without tracectl get a program for the time of a command."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from harness import PATIENCE_S, Result, Test, check, need, settled
from hosts import LINE, RELAY, check_clean, command_line, far, left_at, of_hosts, run, run_cases
from store import free_port


def by_ssh(test):
    sshd = shutil.which("sshd", path="/usr/sbin:" + os.environ["PATH"])
    need(sshd and shutil.which("ssh"), "it needs openssh-server and openssh-client")
    keys = test.dir / "daemon"
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    port = free_port()
    (keys / "user.pub").chmod(0o600)
    (keys / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv PATH={test.tracectl.parent}:/usr/bin:/bin TMPDIR={keys}/tmp\n")
    (keys / "tmp").mkdir()
    (keys / "known").write_text(f"[127.0.0.1]:{port} " + (keys / "host.pub").read_text())
    # ssh reads its own options from a configuration; a wrapper names ours.
    wrapper = keys / "ssh"
    wrapper.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F none -i {keys}/user -o IdentitiesOnly=yes "
                       f"-o UserKnownHostsFile={keys}/known \"$@\"\n")
    wrapper.chmod(0o755)
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with open(keys / "sshd.log", "wb") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", keys / "sshd_config"], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log)
        try:
            def answers():
                with socket.socket() as s:
                    return s.connect_ex(("127.0.0.1", port)) == 0
            settled("sshd listens", answers)
            env = test.environment(PATH=f"{keys}:{os.environ['PATH']}")
            for words in (("-H", f"root@127.0.0.1:{port}", "status", "--json"),
                          ("-H", f"root@127.0.0.1:{port}", push(test), "status", "--json"),
                          ("-H", f"root@127.0.0.1:{port}", push(test), "record", "-t", "300ms", "-o", "pushed.txt"),
                          ("--label", f"board=root@[127.0.0.1]:{port}", "--label", f"here={far(test)}", "record", "-t",
                           "500ms", "-f", "prev_prio < 200", "-o", "out.txt")):
                if "-f" in words:
                    at = words.index("-f")
                    words = (*words[:at], "-e", "sched:sched_switch", *words[at:])
                done = subprocess.run([test.tracectl, "--socket", test.daemon.socket, *words], cwd=test.dir, env=env,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
                r = Result(done.returncode, done.stdout, done.stderr)
                check(r.status == 0, f"{words}: {r}\nsshd: {(keys / 'sshd.log').read_text()}")
        finally:
            server.terminate()
            server.wait()
    check(not list((keys / "tmp").iterdir()), f"left in TMPDIR: {list((keys / 'tmp').iterdir())}")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"board", "here"}, f"hosts in the text: {seen}")


# The shell script of cli/hosts/push.c uses no other tools.
TOOLS = ("sh", "mktemp", "chmod", "rm", "uname", "head", "wc", "sleep")
SLOW_HEAD = """#!/usr/bin/python3
import os, sys, time
left = int(sys.argv[2])
while left and (piece := os.read(0, min(left, 4096))):
    os.write(1, piece)
    left -= len(piece)
    time.sleep(0.01)
"""


class Bare:
    """A far side without tracectl: a few tools, and a temporary folder."""

    def __init__(self, test, before="", name="bare", **tools):
        self.dir = test.dir / "daemon" / name
        self.tmp = self.dir / "tmp"
        self.tools = self.dir / "tools"
        for d in (self.tmp, self.tools):
            d.mkdir(parents=True)
        # Folders of the same name as those beside a program in a build tree.
        profiles = self.tmp / "systemd" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "planted.profile").write_text("[profile]\nsummary = planted\nevents = sched\n")
        for tool in TOOLS:
            if tool in tools:
                (self.tools / tool).write_text(tools[tool])
                (self.tools / tool).chmod(0o755)
            else:
                (self.tools / tool).symlink_to(tools.get("all") or shutil.which(tool))
        self.host = (f"exec:{before} env -u TRACED_DAEMON -u TRACED_PROFILES PATH={self.tools} "
                     f"TMPDIR={self.tmp}")

    def processes(self):
        """The far processes that have the pushed file open, or run it."""
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                links = [f"/proc/{pid}/exe", *(f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd"))]
                for link in links:
                    with contextlib.suppress(OSError):
                        if os.readlink(link).startswith(f"{self.tmp}/tracectl."):
                            found.add(pid)
        return found

    def check_clean(self):
        settled("no pushed program runs", lambda: not self.processes())
        left = [p.name for p in self.tmp.iterdir()]
        check(left == ["systemd"], f"left in the temporary folder: {left}")


def push(test, path="cli/traced-multi"):
    """The option, with a program that has no debugging information, as users push it: 12 MB take long."""
    program, small = test.build / path, test.top / pathlib.Path(path).name
    if path == "cli/traced-multi":
        if not small.exists():
            subprocess.run(["strip", "-o", small, program], check=True)
        program = small
    return f"--push={program}"


def pushed(test):
    busybox = shutil.which("busybox")
    # A folder that runs nothing: the next one is used.
    barred = "unshare -m --propagation private sh -c 'mount -t tmpfs -o noexec none {} && exec \"$@\"' sh"
    bares = [Bare(test, name="system"), Bare(test, name="bash", sh="#!/bin/sh\nexec /bin/bash \"$@\"\n")]
    if busybox:
        bares.append(Bare(test, name="busybox", all=busybox))
    bares.append(Bare(test, barred.format(test.dir / "daemon" / "noexec" / "tmp"), name="noexec"))
    for bare in bares:
        without = run(test, {"a": bare.host}, "status")
        check(without.status == 127, f"tracectl is there: {without}")
        status = run(test, {"a": bare.host}, push(test), "status", "--json")
        check(status.status == 0 and "sessions" in json.loads(status.out), f"status: {status}")
        both = run(test, {"a": bare.host, "b": bare.host + " A=b"}, push(test), "list", "clocks")
        check(both.status == 0 and both.out.startswith("a:\n") and "\nb:\n" in both.out, f"list: {both}")
        r = run(test, {"a": bare.host}, push(test), "profiles")
        check("planted" not in r.out, f"a profile from the temporary folder: {r}")
        r = run(test, {"a": bare.host, "b": bare.host + " A=b"}, push(test), "record", "-t", "300ms", "-o", "out.txt")
        check(r.status == 0, f"record: {r}")
        seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
        check(seen == {"a", "b"}, f"hosts in the text: {seen} {r}")
        failed = run(test, {"a": bare.host}, push(test), "cancel", "no-such-session")
        check(failed.status == 1 and "no-such-session" in failed.err, f"a failure: {failed}")
        bare.check_clean()


MEETING_HEAD = """#!/bin/sh
: >{folder}/meets.$$
n=0
while [ $(/bin/ls {folder} | {grep} -c meets) -lt 4 ]; do [ $((n += 1)) -lt 150 ] || exit 1; {sleep} 0.1; done
exec {head} "$@"
"""


def pushed_at_once(test):
    """No host is pushed to alone, and one that hangs then holds no other."""
    folder = test.dir / "daemon"
    head = MEETING_HEAD.format(folder=folder, **{tool: shutil.which(tool) for tool in ("grep", "sleep", "head")})
    bares = {f"h{n}": Bare(test, name=f"h{n}", head=head) for n in range(4)}
    r = run(test, {name: bare.host for name, bare in bares.items()}, push(test), "status", "--json")
    for host in json.loads(r.out)["hosts"]:
        check(r.status == 0 and "sessions" in host["output"], f"{host['label']}: {r}")
    bare = Bare(test)
    rest = {"b": f'{bare.host.removeprefix("exec:")} "$@"'}
    for asks in ("", f"echo @push {os.uname().machine} >&2; "):
        r = left_at(test, asks, rest, push(test), "list", "clocks")
        check(r.status == -signal.SIGINT and not r.err, f"'{asks}': {r}")
        check("boot" in of_hosts(r.out, ["hung", "b"])["b"], f"'{asks}': {r}")
    for bare in (*bares.values(), bare):
        bare.check_clean()


def pushed_alone(test):
    """As root, without a daemon; nothing else is changed there, neither."""
    script = test.dir / "daemon" / "alone"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\nmount -t tmpfs none /run && mount -t tmpfs none /var/lib || exit\n\"$@\"\ns=$?\n"
                      f"find /run /var/lib -mindepth 1 ! -path '/run/mount*' >{test.dir}/daemon/found\nexit $s\n")
    bare = Bare(test, f"unshare -m --propagation private sh {script}")
    labels = ("--label", f"a={bare.host}", push(test))
    for words in (("-t", "300ms"), ("--", "/bin/sh", "-c", "ls -l /proc/self/fd; cat /proc/self/comm")):
        done = subprocess.run([test.tracectl, "--socket", test.dir / "none", *labels, "record", "-o", "out.txt", *words],
                              cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE_S, check=False)
        r = Result(done.returncode, done.stdout, done.stderr)
        check(r.status == 0 and "sched_switch" in (test.dir / "out.txt").read_text(errors="replace"), f"record: {r}")
        check("deleted" not in r.err, f"the command has the program open: {r}")
        found = (test.dir / "daemon" / "found").read_text()
        check(not found, f"left there: {found}")
        bare.check_clean()


def pushed_unprivileged(test):
    bare = Bare(test, "setpriv --reuid 65534 --regid 65534 --clear-groups")
    bare.tmp.chmod(0o1777)
    r = run(test, {"a": bare.host}, push(test), "--socket", test.dir / "none", "record", "-t", "1s", "-o", "out.txt")
    check(r.status == 1 and "be root there" in r.err, f"record: {r}")
    bare.check_clean()
    check(not test.files(), f"files: {test.files()}")


def pushed_refused(test):
    r = test.run("--push", "status")
    check(r.status == 2, f"no host: {r}")
    empty = test.dir / "daemon" / "empty"
    empty.mkdir()
    for number, (machine, path, why) in enumerate((
            ("mips", "cli/traced-multi", "no program for its machine, mips"),
            ("../../../../etc/passwd", empty, "no program for its machine, ../.."),
            ("", empty, "no program for its machine"),
            ("aarch64", empty, "scripts/cross arm64"),
            ("aarch64", "cli/traced-multi", "is no program for its machine, aarch64"),
            ("x86\r_64", "cli/traced-multi", "no program for its machine"),
            ("x86_64", "nowhere", "No such file"),
            ("x86_64", "build.ninja", "is no program"))):
        bare = Bare(test, name=f"bare{number}", uname=f"#!/bin/sh\nprintf '%s\\n' '{machine}'\n")
        for words in (("status",), ("record", "-t", "300ms", "-o", "out.txt")):
            r = run(test, {"a": bare.host}, push(test, path), *words)
            check(r.status == 1 and why in r.err, f"'{machine}' {path}: {r}")
            bare.check_clean()
    nowhere = Bare(test, name="nowhere", mktemp="#!/bin/sh\nexit 1\n")
    wrong = Bare(test, name="wrong", head="#!/bin/sh\nexit 1\n")
    for bare, why in ((nowhere, "TMPDIR"), (wrong, "in part")):
        for words in (("status",), ("record", "-t", "300ms", "-o", "out.txt")):
            r = run(test, {"a": bare.host}, push(test), *words)
            check(r.status == 1 and why in r.err, f"{why}: {r}")
            bare.check_clean()
    check(not test.files(), f"files: {test.files()}")


def begin_pushed(test, bare, host=None):
    return subprocess.Popen(command_line(test, {"a": host or bare.host}, push(test), "record", "-o", "out.txt"),
                            cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def pushed_killed(test):
    """Or interrupted: while the program is sent, and while it records."""
    for number, how in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)):
        slow = Bare(test, name=f"slow{number}", head=SLOW_HEAD)
        p = begin_pushed(test, slow)
        settled("the program is sent", slow.processes)
        p.send_signal(how)
        r = test.finish(p)
        check(r.status != 0, f"{how}: {r}")
        slow.check_clean()
        bare = Bare(test, name=f"quick{number}")
        p = begin_pushed(test, bare)
        settled("it records", lambda: json.loads(test.run("status", "--json").out)["sessions"])
        settled("and that counts", lambda: how == signal.SIGKILL or b"until Ctrl-C" in p.stderr.readline())
        time.sleep(0.3)
        p.send_signal(how)
        r = test.finish(p)
        check((r.status == 0) == (how != signal.SIGKILL), f"{how}: {r}")
        bare.check_clean()
        check_clean(test)


def pushed_cut(test):
    bare = Bare(test, name="recording")
    way = " ".join(["/usr/bin/python3", str(RELAY), "--cut", "2", "--"])
    p = begin_pushed(test, bare, f"exec:{way} {bare.host.removeprefix('exec:')}")
    r = test.finish(p)
    check(r.status == 3 and "incomplete" in r.err, f"while it records: {r}")
    bare.check_clean()
    check_clean(test)
    slow = Bare(test, name="slow", head=SLOW_HEAD)
    way = " ".join(["/usr/bin/python3", str(RELAY), "--cut-early", "1", "--"])
    p = begin_pushed(test, slow, f"exec:{way} {slow.host.removeprefix('exec:')}")
    r = test.finish(p)
    check(r.status == 1 and "before the start" in r.err, f"while the program is sent: {r}")
    slow.check_clean()


def main():
    test = Test("hosts_push")
    run_cases(test, by_ssh, pushed, pushed_at_once, pushed_alone, pushed_unprivileged, pushed_refused, pushed_killed, pushed_cut)
    test.end()


if __name__ == "__main__":
    main()
