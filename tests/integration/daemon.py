#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""traced as a service on the live kernel: activation, several sessions, hostile clients, clients
and daemons that die, and what is left afterwards."""

import fcntl
import json
import os
import queue
import random
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from harness import PATIENCE_S, Daemon, Failure, Test, check, in_namespace, functions_refused, settled


def spools(test):
    return sorted(p for p in test.daemon.spool.iterdir())


def status(test):
    r = test.run("status", "--json")
    check(r.status == 0, f"status: {r}")
    return json.loads(r.out)


def start(test, name, *arguments):
    r = test.run("start", "--name", f"{test.name}-{name}", *arguments)
    check(r.status == 0, f"start: {r}")
    return f"{test.name}-{name}"


def stop(test, name, output):
    r = test.run("stop", name, "-o", output)
    check(r.status == 0, f"stop: {r}")
    return (test.dir / output).read_text(errors="replace")


def two_sessions(test):
    a = start(test, "a", "-e", "sched:sched_switch")
    b = start(test, "b", "-e", "irq")
    names = {s["name"] for s in status(test)["sessions"]}
    check({a, b} <= names, f"status lists {names}")
    check(test.run("start", "--name", a).status == 1, "a second session of the same name")
    check(test.run("mark", "both hear this").status == 0, "mark")
    time.sleep(0.5)
    text_a = stop(test, a, "a.txt")
    check(b in {s["name"] for s in status(test)["sessions"]}, "b ended together with a")
    text_b = stop(test, b, "b.txt")
    for text in (text_a, text_b):
        check("both hear this" in text, "the mark is missing")
    check("sched_switch:" in text_a and "irq_handler" not in text_a, "a's events are wrong")
    check("sched_switch:" not in text_b, "b has a's events")
    check(not spools(test), f"spool: {spools(test)}")


def listens(path):
    """A socket that is only bound refuses."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


def connected(test):
    """A client's end of a connection has no name; the daemon's has, from the client's connect() on."""
    with open("/proc/net/unix", encoding="ascii") as sockets:
        return sockets.read().count(f" {test.daemon.socket}\n") > 1


def killed_daemon(test):
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    converted = 0
    # From the middle of arming to well within the recording, on slow machines too.
    began = time.monotonic()
    test.run("record", "-t", "10ms", "-o", "warm.txt")
    span = 0.6 + 2 * (time.monotonic() - began)
    for attempt in range(8):
        for d in spools(test):
            d.unlink()
        client = test.start("record", "--name", f"{test.name}-kill", "-b", "256K", "-t", "120s",
                            "-e", "sched", "-e", "irq", "-e", "timer", "-o", "never.txt")
        # One that finds no daemon records without.
        settled("the command is connected", lambda: connected(test))
        if attempt == 7 and not converted:
            test.wait_for_recording("kill")
        time.sleep(rng.uniform(0, span))
        test.daemon.process.kill()
        test.daemon.process.wait()
        r = test.finish(client)
        check(r.status == 1, f"seed {seed}: the command of a dead daemon: {r}")
        check(not (test.dir / "never.txt").exists(), f"seed {seed}: a partial file")
        test.daemon.log.close()
        test.daemon = Daemon(test)
        check(not test.instances(), f"seed {seed}, {attempt}: stale {test.instances()}")
        for s in spools(test):
            if s.stat().st_size <= 8:
                continue
            check(s.name in test.daemon.words(), f"seed {seed}: {s} is not mentioned")
            r = test.run("convert", s, "left.txt")
            # 3: written, but something is missing; a stream may also be truncated within its head.
            check(r.status in (0, 3) or s.stat().st_size < 65536, f"seed {seed}: {s}: {r}")
            converted += r.status in (0, 3)
            (test.dir / "left.txt").unlink(missing_ok=True)
        check(status(test)["sessions"] == [], "sessions of the dead daemon")
    check(converted > 0, f"seed {seed}: no spool was ever left to convert")


def killed_client(test):
    client = test.start("record", "--name", f"{test.name}-gone", "-t", "30s", "-o", "gone.txt")
    test.wait_for_recording("gone")
    client.kill()
    test.finish(client)
    settled("the session goes", lambda: status(test)["sessions"] == [])
    test.check_no_instances()
    settled("the spool goes", lambda: not spools(test))


def check_ended_early(test, result, output):
    check(result.status == 3 and "ended early: traced was stopped" in result.err and "INCOMPLETE" in result.err,
          f"{result}")
    check("sched_switch" in (test.dir / output).read_text(), f"nothing in {output}")


def terminated_daemon(test):
    """A client that waits for a recording gets what there is of it."""
    sleeps = "echo $$ >pid; exec sleep 120 >/dev/null 2>&1"
    outputs = {"timed": ["-t", "120s"], "ring": ["--ring"], "command": ["--", "sh", "-c", sleeps], "streamed": ["--stream"]}
    clients = {name: test.start("record", "--name", f"{test.name}-{name}", "-e", "sched", "-o", f"{name}.txt", *more)
               for name, more in outputs.items()}
    for name in outputs:
        test.wait_for_recording(name)
    settled("the command runs", lambda: (test.dir / "pid").exists() and (test.dir / "pid").read_text())
    time.sleep(0.3)
    test.daemon.process.terminate()
    for name, client in clients.items():
        check_ended_early(test, test.finish(client), f"{name}.txt")
    os.kill(int((test.dir / "pid").read_text()), signal.SIGKILL)
    check(test.daemon.process.wait(30) == 0, "the daemon's exit status")
    test.check_no_instances()
    check(not test.daemon.socket.exists(), "the socket is left")
    check(not spools(test), f"spool: {spools(test)}")


def terminated_twice(test):
    """Its clients don't fetch their recordings: the log names what the second signal leaves."""
    clients = [test.start("record", "--name", f"{test.name}-slow", "-e", "sched", "-o", "slow.txt"),
               test.start("record", "--name", f"{test.name}-ring", "--ring", "-e", "sched", "-o", "ring.txt")]
    for name in ("slow", "ring"):
        test.wait_for_recording(name)
    for client in clients:
        client.send_signal(signal.SIGSTOP)
    try:
        test.daemon.process.terminate()
        settled("the recordings end", lambda: test.daemon.words().count("traced was stopped") == 2)
        test.daemon.process.terminate()
        check(test.daemon.process.wait(30) == 0, "the daemon's exit status")
    finally:
        for client in clients:
            client.kill()
            test.finish(client)
    left = spools(test)
    check(len(left) == 2, f"spool: {left}")
    for path in left:
        check(f"its recording is in {path}" in test.daemon.words(), f"{path}: {test.daemon.words()}")


def full_state_folder(test):
    """Named as what it is: the recording's own disk may have room."""
    folder = test.dir / "daemon4"
    folder.mkdir()
    (folder / "state").mkdir()
    wrap = in_namespace(f"mount -t tmpfs -o size=4k,nr_inodes=4 none {folder}/state && "
                        f"dd if=/dev/zero of={folder}/state/fill bs=4k count=1 2>/dev/null")
    with open(folder / "log", "wb") as log:
        daemon = subprocess.Popen(
            [*wrap, test.traced, "--config", test.daemon.config(), "--socket", folder / "sock",
             "--spool-dir", test.daemon.spool, "--state-dir", folder / "state"],
            stdin=subprocess.DEVNULL, stderr=log)
    try:
        settled("it listens", lambda: listens(folder / "sock"))
        r = subprocess.run([test.tracectl, "--socket", folder / "sock", "record", "--name",
                            f"{test.name}-state", "-t", "1s", "-o", "x.txt"], cwd=test.dir,
                           capture_output=True, text=True, timeout=50, check=False)
        check(r.returncode == 1 and f"the state folder {folder}/state is full" in r.stderr and
              "state_dir" in r.stderr, f"{r}")
    finally:
        daemon.terminate()
        daemon.wait(30)


def terminated_private_daemon(test):
    client = test.start("record", "--name", f"{test.name}-private", "-t", "30s", "-e", "sched", "-o", "private.txt")
    test.wait_for_recording("private")
    time.sleep(0.3)
    pid = subprocess.run(["ps", "-o", "pid=", "--ppid", str(client.pid)], capture_output=True, check=True).stdout
    os.kill(int(pid), signal.SIGTERM)
    check_ended_early(test, test.finish(client), "private.txt")


def frame(payload):
    return struct.pack("<I", len(payload)) + payload


HELLO = frame(b"\x08\x01\x12\x02\x08\x03")  # of the protocol's version 3


def connect(test):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE_S)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            s.connect(str(test.daemon.socket))
            return s
        except BlockingIOError:  # so many clients at once that the queue is full
            time.sleep(0.02)
    raise Failure("the daemon accepts nobody")


def ends(s):
    """The daemon closes the connection some time later."""
    try:
        while s.recv(65536):
            pass
    except ConnectionResetError:
        pass
    s.close()


def profiles(test):
    """Each profile in the package records something on this kernel, or says that it has no event
    here."""
    found = sorted((test.source / "systemd" / "profiles").glob("*.profile"))
    check(len(found) >= 6, f"profiles: {found}")
    for p in found:
        r = test.run("start", "--name", f"{test.name}-profile", "--profile", p.stem)
        if p.stem == "function" and functions_refused():
            check(r.status == 1 and "refuses function tracing" in r.err, f"{r}")
            check(not test.instances(), f"left: {test.instances()}")
            continue
        check(r.status == 0, f"{p.stem}: {r}")
        s = status(test)["sessions"][0]
        check(p.stem in str(s), f"{p.stem}: {s}")
        check(test.run("cancel", f"{test.name}-profile").status == 0, "cancel")
    r = test.run("start", "--profile", "latencies")
    check(r.status == 1 and '"latency"' in r.err, f"{r}")


def hostile_clients(test):
    name = start(test, "victim", "-e", "sched:sched_switch")
    rng = random.Random(1)
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4096, frame(b""), frame(b"\xff" * 30),
                 struct.pack("<I", 0x7fffffff), HELLO + frame(b"\x08"),
                 HELLO + struct.pack("<I", 1 << 20),
                 frame(b"\x08\x01\x42\x00")):  # Status before Hello
        s = connect(test)
        s.sendall(data)
        ends(s)
    half = [connect(test) for _ in range(8)]
    for i, s in enumerate(half):
        s.sendall((HELLO + HELLO)[:i * 2 + 1])
    for _ in range(60):
        s = connect(test)
        s.sendall(HELLO)
        try:
            for _ in range(5):
                s.sendall(frame(rng.randbytes(rng.randrange(1, 400))))
        except (BrokenPipeError, ConnectionResetError):
            pass
        s.close()
    many = []
    for _ in range(100):
        many.append(connect(test))
    for s in many + half:
        s.close()
    settled("clients are let in again", lambda: test.run("list").status == 0)
    check("sched_switch" in stop(test, name, "victim.txt"), "the victim's recording")
    check(test.daemon.process.poll() is None, "the daemon has died")


def greeting_in_time(test):
    s = connect(test)
    begin = time.monotonic()
    ends(s)
    check(5 < time.monotonic() - begin < 30, "a silent client is kept, or dropped at once")


def service_manager(test):
    """Activation and notification, as systemd does it."""
    folder = test.dir / "daemon2"
    folder.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "sock"))
    listener.listen()
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(folder / "notify"))
    # The kernel queues ten messages. The daemon waits for a service manager that reads none.
    said = queue.SimpleQueue()

    def listen():
        while message := notify.recv(4096).decode():
            said.put(message)

    listening = threading.Thread(target=listen)
    listening.start()

    def hears(text):
        until = time.monotonic() + PATIENCE_S
        while text not in (message := said.get(timeout=PATIENCE_S)):
            check(time.monotonic() < until, f"the output lacks {text}")
        return message

    env = test.environment(NOTIFY_SOCKET=str(folder / "notify"), LISTEN_FDS="1",
                           WATCHDOG_USEC="2000000")
    command = [str(test.traced), "--config", "/dev/null", "--spool-dir", str(folder / "spool"),
               "--state-dir", str(folder / "state"), "--socket", str(folder / "never-made"),
               "--metrics", str(folder / "metrics")]
    # The activation's descriptor is 3, and its process number is not known in advance.
    daemon = subprocess.Popen(["sh", "-c", 'exec 3<&%d; LISTEN_PID=$$ exec "$@"'
                               % listener.fileno(), "sh", *command], env=env,
                              pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
    try:
        hears("STATUS=Idle")
        hears("READY=1")
        check("traced_up 1" in (folder / "metrics").read_text(), "ready without its metrics")
        hears("WATCHDOG=1")
        name = f"{test.name}-notified"
        tracectl = [str(test.tracectl), "--socket", str(folder / "sock")]
        subprocess.run([*tracectl, "start", "--name", name], check=True, cwd=test.dir,
                       capture_output=True, timeout=30)
        check(name in hears("STATUS=Recording"), "the status does not name it")
        subprocess.run([*tracectl, "cancel", name], check=True, cwd=test.dir,
                       capture_output=True, timeout=30)
        hears("STATUS=Idle")
        daemon.terminate()
        hears("STOPPING=1")
        check(daemon.wait(20) == 0, "exit status")
        check((folder / "sock").exists(), "it removed the service manager's socket")
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        daemon.stderr.close()
        listener.close()
        notify.shutdown(socket.SHUT_RD)
        listening.join()
        notify.close()


def configuration(test):
    config = test.dir / "traced.conf"
    (test.dir / "traced.conf.d").mkdir()
    config.write_text("[limits]\nsessions = 4\nsesions = 5\n[defaults]\nevents = irq\n")
    drop_in = test.dir / "traced.conf.d" / "50-less.conf"
    drop_in.write_text("[limits]\nsessions = 1\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", str(config))
    words = test.daemon.words()
    check("traced.conf:3:" in words and '"sessions"' in words, f"no warning: {words}")
    # Root may have four more.
    names = [start(test, f"one{n}") for n in range(5)]
    r = test.run("start", "--name", f"{test.name}-two")
    check(r.status == 1 and "limit" in r.err, f"{r}")
    drop_in.write_text("[limits]\nsessions = many\n")
    test.daemon.process.send_signal(signal.SIGHUP)
    settled("complaint", lambda: "50-less.conf:2:" in test.daemon.words())
    drop_in.write_text("[limits]\nsessions = 2\n")
    test.daemon.process.send_signal(signal.SIGHUP)
    settled("reload", lambda: "read again" in test.daemon.words())
    names.append(start(test, "two", "-e", "sched"))
    check("irq" in str(status(test)["sessions"][0]), "the configured events")
    for s in names:
        check(test.run("cancel", s).status == 0, "cancel")
    drop_in.write_text("[limits]\nsessions = many\n")
    bad = subprocess.run([test.traced, "--config", config, "--socket", test.dir / "s"],
                         capture_output=True, text=True, timeout=20, check=False)
    check(bad.returncode == 1 and "50-less.conf:2: sessions" in bad.stderr, bad.stderr)
    second = subprocess.run([test.traced, "--config", "/dev/null", "--socket", test.daemon.socket,
                             "--state-dir", test.dir / "state2"],
                            capture_output=True, text=True, timeout=20, check=False)
    check(second.returncode == 1 and "another traced listens" in second.stderr, second.stderr)


def no_room(test):
    config = test.dir / "traced.conf"
    config.write_text("[limits]\nmin_free = 1000T\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", str(config))
    r = test.run("record", "--name", f"{test.name}-full", "-t", "1s", "-o", "out.txt")
    check(r.status == 1 and "spool" in r.err and "hint" in r.err, f"{r}")
    check(not test.files() or test.files() == ["traced.conf"], f"{test.files()}")
    config.write_text("[limits]\nmin_free = 0\nspool_max = 300K\n")
    test.daemon.process.send_signal(signal.SIGHUP)
    settled("reload", lambda: "read again" in test.daemon.words())
    r = test.run("record", "--name", f"{test.name}-small", "-t", "30s", "-b", "128K",
                 "-e", "*:*", "-o", "out.traced")
    check(r.status in (0, 3), f"{r}")
    check("spool_max" in r.err, f"the message lacks the reason: {r}")


def full_spool(test):
    """The file system is full before the daemon expects it."""
    folder = test.dir / "daemon3"
    (folder / "spool").mkdir(parents=True)
    (folder / "conf").write_text("[limits]\nmin_free = 0\n")
    wrap = in_namespace(f"mount -t tmpfs -o size=600k none {folder}/spool")
    with open(folder / "log", "wb") as log:
        daemon = subprocess.Popen(
            [*wrap, test.traced, "--config", folder / "conf", "--socket", folder / "sock",
             "--spool-dir", folder / "spool", "--state-dir", folder / "state"],
            stdin=subprocess.DEVNULL, stderr=log)
    try:
        settled("it listens", lambda: listens(folder / "sock"))
        r = subprocess.run([test.tracectl, "--socket", folder / "sock", "record", "--name",
                            f"{test.name}-enospc", "-t", "60s", "-b", "128K", "-e", "*:*", "-o",
                            "full.txt"], cwd=test.dir, capture_output=True, text=True, timeout=50,
                           check=False)
        check("No space" in r.stderr, f"the message lacks the reason: {r}")
        # The part that fitted is written and reported as incomplete; or the head alone filled the
        # spool.
        if r.returncode == 3:
            check((test.dir / "full.txt").stat().st_size > 0, "nothing in it")
        else:
            check(r.returncode == 1 and not (test.dir / "full.txt").exists(), f"{r}")
        check(daemon.poll() is None, "the daemon has died")
    finally:
        daemon.terminate()
        daemon.wait(20)


def exporter_has_no_rights(test):
    """An exporter can be inspected while it writes into a pipe that nobody empties."""
    name = start(test, "slow", "-e", "raw_syscalls")
    # More than a pipe holds; few formats, so that even a slow build soon writes.
    for _ in range(20000):
        os.getppid()
    reader, writer = os.pipe()
    client = test.start("stop", name, "-o", f"/dev/fd/{writer}", "--format", "json",
                        pass_fds=[writer])
    os.close(writer)
    try:
        children = lambda: [int(p) for p in open(
            f"/proc/{test.daemon.process.pid}/task/{test.daemon.process.pid}/children",
            encoding="ascii").read().split()]
        # Only a full pipe shows that it is in its sandbox by now.
        settled("an exporter", lambda: children() and "traced-export" in open(
            f"/proc/{children()[0]}/comm", encoding="ascii").read())
        settled("it writes", lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0])
        time.sleep(0.5)
        lines = dict(line.split(":\t", 1) for line in open(
            f"/proc/{children()[0]}/status", encoding="ascii").read().splitlines())
        check("0" not in lines["Uid"].split(), f"Uid {lines['Uid']}")
        check("0" not in lines["Gid"].split(), f"Gid {lines['Gid']}")
        check(lines["Groups"].strip() == "", f"Groups {lines['Groups']}")
        for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            check(int(lines[caps], 16) == 0, f"{caps} {lines[caps]}")
        check(lines["NoNewPrivs"] == "1", "NoNewPrivs")
        check(len(os.listdir(f"/proc/{children()[0]}/fd")) <= 6, "descriptors")
    finally:
        while os.read(reader, 1 << 20):
            pass
        os.close(reader)
        test.finish(client)


def slices_and_counters_of_a_shell(test):
    name = start(test, "shell", "-e", "sched:sched_process_exit")
    for words in (["--begin", "work"], ["--begin", "work", "--id", "7", "-P", "4242"], ["--counter", "a queue=-3"],
                  ["--end", "work", "--id", "7", "-P", "4242"], ["--end", "work"], ["--name", name, "--counter", "n=0"],
                  ["two", "words"], ["-P", "4242", "a|b"], ["C|4242|raw|1"]):
        r = test.run("mark", *words)
        check(r.status == 0, f"mark {words}: {r}")
    for words in ([], ["--begin", ""], ["--begin", "a|b"], ["--begin", "a\nb"], ["--counter", "a"], ["--counter", "a=1x"],
                  ["--counter", "=1"], ["--begin", "a", "--end", "a"], ["text", "--begin", "a"], ["--end", "a", "--id", "x"]):
        r = test.run("mark", *words)
        check(r.status == 2, f"mark {words}: {r}")
    text = stop(test, name, "shell.txt")
    me = os.getpid()
    marks = [line.split("tracing_mark_write: ")[1] for line in text.splitlines() if "tracing_mark_write: " in line]
    # A long recording has more than one sync.
    marks = [mark for mark in marks if not mark.startswith("trace_event_clock_sync")]
    check(marks == [f"S|{me}|work|0", "S|4242|work|7", f"C|{me}|a queue|-3", "F|4242|work|7", f"F|{me}|work|0",
                    f"C|{me}|n|0", f"N|{me}|marks|two words", "N|4242|marks|a|b", "C|4242|raw|1"], f"{marks}")


def mark_time(text, what):
    """In ns, to the microsecond that the text has."""
    line, = [line for line in text.split("\n") if what in line]
    s, us = re.search(r" (\d+)\.(\d{6}): ", line).groups()
    return int(s) * 10**9 + int(us) * 1000


def synced_clocks(test):
    """A controller whose clock begins at another time and is 200 ppm fast."""
    def clock():
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begin) * 1.0002 / 1000 + 5e6

    def sync(identity):
        asked = clock()
        r = test.run("sync", "--id", identity, "--json")
        check(r.status == 0, f"sync: {r}")
        ties.append({"name": "clock_sync", "ph": "c", "ts": clock(),
                     "args": {"sync_id": identity, "issue_ts": asked}})
        answers[identity] = json.loads(r.out)

    begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    name = start(test, "synced", "-e", "sched:sched_process_exit")
    ties, answers = [], {}
    sync("first")
    time.sleep(0.3)
    at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    happened, apart = clock(), time.clock_gettime_ns(time.CLOCK_BOOTTIME) - at
    time.sleep(0.3)
    sync("last")
    again = test.run("sync", "--id", "last")
    check(again.status == 1 and "already" in again.err, f"an id twice: {again}")
    check(test.run("sync", "--id", "a b").status == 1, "an id with a blank")
    made = test.run("sync").out.strip()
    check(len(made) == 36, f"invented events: {made!r}")
    r = test.run("stop", name, "-o", "synced.traced")
    check(r.status == 0, f"stop: {r}")
    (test.dir / "meter.json").write_text(json.dumps([{"name": "peak", "ph": "i", "ts": happened, "pid": 1, "tid": 1}]))
    (test.dir / "ties.json").write_text(json.dumps(ties))
    r = test.run("convert", "synced.traced", "synced.json", "--merge", "meter.json", "--sync-file", "ties.json")
    check(r.status == 0 and "meter.json: its clock is tied to the trace only within" in r.err, f"convert: {r}")
    r = test.run("convert", "synced.traced", "synced.json", "--merge", "meter.json", "--sync-file", "ties.json",
                 "--sync-bound", "20s")
    check(r.status == 0 and "tied" not in r.err, f"convert: {r}")
    trace = json.loads((test.dir / "synced.json").read_text())
    kernel = {row["sync_id"]: row for row in trace["otherData"]["kernel_syncs"]}
    check(len(kernel) == 4, f"{kernel}")
    for identity, answer in answers.items():
        row = kernel[identity]
        check(answer["sessions"] == 1 and row["issue_boottime_ns"] == answer["before_boottime_ns"] and
              row["answer_boottime_ns"] == answer["after_boottime_ns"], f"{row} {answer}")
        check(row["issue_boottime_ns"] <= row["trace_ns"] <= row["answer_boottime_ns"], f"{row}")
        check(abs(row["trace_ns"] - mark_time(trace["systemTraceEvents"], f"name={identity}")) <= 1000, f"{row}")
    ids = [e["args"]["sync_id"] for e in trace["traceEvents"] if e["name"] == "clock_sync"]
    # Since Linux 6.16 the mark of a recording of the top level, which another test may make, is in ours, too.
    ids = [i for i in ids if i in kernel or not i.startswith("traced_")]
    check(sorted(ids) == sorted(kernel), f"{ids}")
    merged, = trace["otherData"]["merged"]
    check(merged["ties"] == 2 and merged["clock"] == "clock_sync", f"{merged}")
    peak, = [e for e in trace["traceEvents"] if e["name"] == "peak"]
    off = peak["ts"] * 1000 - at
    # Our two readings are a moment apart, too.
    check(abs(off) <= merged["bound_ns"] + apart + 5_000_000, f"{off} ns off: {merged}")


def syncs_of_a_flight_recorder(test):
    name = start(test, "ring", "--ring", "-e", "sched:sched_process_exit")
    check(test.run("sync", "--id", "in-the-ring").status == 0, "sync")
    for output in ("one.json", "two.json"):
        check(test.run("snapshot", name, "-o", output).status in (0, 3), "snapshot")
        rows = json.loads((test.dir / output).read_text())["otherData"]["kernel_syncs"]
        check(("in-the-ring" in [r["sync_id"] for r in rows]) == (output == "one.json"), f"{output}: {rows}")
    check(test.run("cancel", name).status == 0, "cancel")


def metrics(test):
    """The file for Prometheus agrees with status, and is written along with other writes."""
    test.daemon.stop()
    path = test.dir / "traced.prom"
    test.daemon = Daemon(test, "--metrics", path)

    def values():
        lines = [line.rsplit(" ", 1) for line in path.read_text("ascii").splitlines() if line[0] != "#"]
        check(len(lines) == len({name for name, _ in lines}), "a series occurs twice")
        return {name: float(value) for name, value in lines}

    settled("the first counts", path.exists)
    check(values()["traced_up"] == 1 and values()["traced_sessions_total"] == 0, f"{values()}")
    name = start(test, "metrics", "-e", "sched", "-b", "256K")
    labels = f'{{session="{name}",user="{os.geteuid()}"}}'
    # A client may learn of it first.
    settled("the session's counts", lambda: values().get("traced_session_recording" + labels) == 1)
    check(values()["traced_session_buffer_bytes" + labels] >= 256 << 10, f"{values()}")
    s = status(test)
    check(s["sessions"][0]["memory_bytes"] == values()["traced_session_buffer_bytes" + labels], f"{s}")
    settled("bytes in the spool", lambda: status(test)["sessions"][0]["spool_bytes"] > 0 and status(test)["spool_bytes"] > 0)
    stop(test, name, "out.txt")
    settled("the session is gone", lambda: values()["traced_sessions"] == 0)
    after = values()
    check(after["traced_session_recording" + labels] == 0, f"{after}")
    check(after["traced_session_events_total" + labels] > 0, f"{after}")
    check(after["traced_session_events_total" + labels] == after["traced_events_total"], f"{after}")
    check(after["traced_session_cpu_seconds_total" + labels] > 0, f"{after}")

    def unwritten():
        written = path.stat().st_mtime_ns
        time.sleep(1.2)
        return path.stat().st_mtime_ns == written

    settled("an idle daemon writes nothing", unwritten)
    test.daemon.stop()
    check(values()["traced_up"] == 0, f"{values()}")
    check(not list(test.dir.glob("*.new")), "a temporary file is left")
    path.unlink()


def main():
    test = Test("daemon")
    os.environ["TRACED_PROFILES"] = str(test.source / "systemd" / "profiles")
    for label, function in (("two sessions at once", two_sessions),
                            ("slices and counters of a shell", slices_and_counters_of_a_shell),
                            ("another machine's clock", synced_clocks),
                            ("syncs of a flight recorder", syncs_of_a_flight_recorder),
                            ("the daemon is killed", killed_daemon),
                            ("the client is killed", killed_client),
                            ("the daemon is terminated", terminated_daemon),
                            ("the daemon is terminated twice", terminated_twice),
                            ("the state folder is full", full_state_folder),
                            ("profiles", profiles),
                            ("hostile clients", hostile_clients),
                            ("a client that never greets", greeting_in_time),
                            ("activation and notification", service_manager),
                            ("configuration and reload", configuration),
                            ("counts for Prometheus", metrics),
                            ("no room for the spool", no_room),
                            ("the spool fills up", full_spool),
                            ("the exporter has no rights", exporter_has_no_rights)):
        test.case(label, function, daemon=True)
    test.case("a private daemon is terminated", terminated_private_daemon)
    test.end()


if __name__ == "__main__":
    try:
        main()
    except Failure as e:
        raise SystemExit(f"FAILED: {e}") from e
