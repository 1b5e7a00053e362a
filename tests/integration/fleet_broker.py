#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl fleet with a broker: orders that boards take and that are withdrawn, and what boards say of them."""

import contextlib
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

from board import Members, fleet
from broker import Broker
from false_broker import CONSENT, packet, publish
from fleet import ESCAPE, curl_file, order_of, succeeds
from fleet_data import put
from harness import PATIENCE_S, Test, check, need, settled
from store import order

MANY = 10000
DEAD = MANY // 1000


@contextlib.contextmanager
def operator(test, store):
    """A broker, and the environment in which an operator's programs reach it."""
    broker = Broker(store)
    home = test.dir / "home"
    home.mkdir()
    for name in ("mosquitto_pub", "mosquitto_sub"):
        (home / name).write_text(f"--cafile {store.dir}/ca.pem\n--cert {store.dir}/operator.pem\n"
                                 f"--key {store.dir}/operator.key\n")
    broker.start()
    try:
        yield broker, f"mqtts://127.0.0.1:{broker.operators_port}", test.environment(XDG_CONFIG_HOME=str(home))
    finally:
        broker.stop()


def an_order_by_a_broker(test):
    """It reaches a board of its group, whose words the operator sees."""
    with fleet(test) as (store, agent), operator(test, store) as (broker, url, env):
        store.start()
        agent.write(store, orders=(), broker=broker.address, certificate="door-17")
        agent.start()
        for serial, words, outcome in ((7, ["-e", "sched:sched_switch"], "done"),
                                       (9, ["-e", "sched:*", "-e", "syscalls:*"], "refused, events")):
            done = test.run("fleet", "order", "--secret-key", store.dir / "order.sec", "--fleet", "doors", "--group",
                            "canary", "--serial", serial, "-t", "300ms", "--report", "sched", *words, "--broker", url,
                            env=env)
            check(done.status == 0, f"{done}")
            words = ["fleet", "status", serial, "--fleet", "doors", "--broker", url]
            settled(f"{outcome}: {agent.words()}", lambda: f"{outcome}: 1\n  door-17\n" in test.run(*words, env=env).out)


def why_an_order_failed(test):
    """The outcome has the last message of the board's tracectl, bounded and without control characters."""
    with fleet(test) as (store, agent), operator(test, store) as (broker, url, env):
        def fails(serial, **keys):
            """Returns the reason, which `fleet status` shows as well."""
            broker.publish(store.sign(order(serial, **keys)))
            settled(f"order {serial}: {agent.words()}", lambda: (serial, "failed") in [o[:2] for o in broker.outcomes()])
            reason = [o[2] for o in broker.outcomes() if o[0] == serial][0]
            done = test.run("fleet", "status", serial, "--fleet", "doors", "--broker", url, env=env)
            check(done.out.startswith("1 of 1 board is through\nfailed, ") and done.out.endswith(": 1\n  door-17\n") and
                  "\x1b" not in done.out, f"{done}")
            check(reason.replace("\\", "") in done.out.replace("\\", ""), f"{reason}: {done}")
            return reason

        store.start()
        agent.write(store, orders=(), broker=broker.address, certificate="door-17")
        agent.start()
        why = fails(7, events="sched:no_such_event")
        check(why == "no event of this kernel matches 'sched:no_such_event'", why)
        agent.says("order 7: tracectl: no event of this kernel matches 'sched:no_such_event'")
        agent.stop()
        program = test.dir / "loud"
        program.write_text("#!/bin/sh\nexec >&2\nseq 100000\necho 'tracectl: the first message'\n"
                           "printf 'tracectl: \\033[31m\\001 no space in %0300d\\n  hint: buy some\\n' 0\nexit 1\n")
        program.chmod(0o755)
        agent.config.write_text(agent.config.read_text().replace(f"tracectl = {test.tracectl}", f"tracectl = {program}"))
        agent.start()
        why = fails(8)
        check(why.startswith("\\x1b[31m\\x01 no space in 000") and why.endswith("...") and len(why) <= 80, why)
        check(len(agent.log.read_bytes()) < 40000 and b"\x1b" not in agent.log.read_bytes(), "the journal has too much")
        program.write_text("#!/bin/sh\nkill -9 $$\n")
        check(fails(9) == "tracectl ended with signal 9", broker.outcomes())
        program.write_text("#!/bin/sh\nexit 7\n")
        check(fails(10) == "tracectl ended with status 7", broker.outcomes())


def an_order_is_withdrawn(test):
    """A board that waits never begins, one that records ends, and what the topic shows counts."""
    with fleet(test) as (store, agent), operator(test, store) as (broker, url, env):
        def publish(serial, *words):
            succeeds(order_of(test, "--fleet", "doors", "--serial", serial, "--report", "sched", "--broker", url, *words,
                              key="store/order.sec", env=env))

        def withdraw(serial, *words):
            return test.run("fleet", "withdraw", serial, "--fleet", "doors", "--broker", url, *words, env=env)

        def refuses(why, *words):
            done = withdraw(*words)
            check(done.status == 1 and why in done.err, f"{words}: {done}")

        store.start()
        agent.write(store, orders=(), broker=broker.address, certificate="door-17")
        agent.start()
        publish(7, "-t", "1s", "--window", "6h")
        publish(8, "-t", "9m", "--group", "canary")
        both = [(7, "waiting", None), (8, "recording", None)]
        settled(f"both: {agent.words()}", lambda: sorted(broker.outcomes()) == both)
        refuses("traced/doors/all/orders shows order 7, not 8", 8)
        refuses("traced/doors/canary/orders shows order 8, not 7", 7, "--group", "canary")
        refuses("traced/doors/us/orders shows no order", 7, "--group", "us")
        check(withdraw(7, "--group", "a/b").status == 2 and withdraw("all").status == 2, "it is no usage error")
        check(sorted(broker.outcomes()) == both, broker.outcomes())
        check("order 7 is withdrawn" in succeeds(withdraw(7)).err, "nothing is said")
        check((8, "recording", None) in broker.outcomes(), broker.outcomes())
        succeeds(withdraw(8, "--group", "canary"))
        for serial in (7, 8):
            words = ["fleet", "status", serial, "--fleet", "doors", "--broker", url]
            settled(f"order {serial}: {agent.words()}", lambda: test.run(*words, env=env).out ==
                    "1 of 1 board is through\nwithdrawn: 1\n  door-17\n")
        settled("no session", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
        check(not store.results(7) and not store.results(8) and not agent.waiting(), "there are results")
        refuses("shows no order", 7)
        # Texts that are none, and a broker that lets an operator only read.
        for text in (b"x", b"x\ny\n", b"x\ny\n[order]\nserial = 7\n", b"x\ny\n" + ESCAPE.encode() + b"\n", b"x" * 17000):
            broker.publish(text)
            done = withdraw(7)
            check(done.status == 1 and "\x1b" not in done.err, f"{text[:50]}: {done}")
            check(broker.client("sub", "-C", "1", "-N", "-t", "traced/doors/all/orders").stdout == text, "it is gone")
        publish(9, "-t", "300ms")
        broker.stop()
        acl = broker.dir / "operators.acl"
        acl.write_text(acl.read_text().replace("pattern write traced/doors/all/end/+\n", ""))
        broker.start()
        refuses("the broker did not say in time whether traced/doors/all/orders shows an order", 9)
        publish(9, "-t", "300ms")
        broker.stop()
        acl.write_text(acl.read_text().replace("pattern write", "pattern read"))
        broker.start()
        refuses("the broker still shows the order on traced/doors/all/orders", 9)
        done = order_of(test, "--fleet", "doors", "--serial", 10, "-t", "300ms", "--report", "sched",
                        "--broker", url, key="store/order.sec", env=env)
        check(done.status == 1 and "does not show the order on traced/doors/all/orders" in done.err, f"{done}")


@contextlib.contextmanager
def chatter(broker, board):
    """Twenty statuses a second: order 17 failed."""
    client = subprocess.Popen(["mosquitto_pub", "-V", "5", "-h", broker.host, "-p", str(broker.port), "--cafile", broker.dir / "ca.pem",
                               "--cert", broker.dir / f"{board}.pem", "--key", broker.dir / f"{board}.key", "-l", "-t",
                               f"traced/doors/all/status/{board}"], stdin=subprocess.PIPE)

    def talk():
        with contextlib.suppress(BrokenPipeError):
            while not over.wait(0.05):
                client.stdin.write(b'{"state":"alive","orders":[{"serial":17,"outcome":"failed"}]}\n')
                client.stdin.flush()

    over = threading.Event()
    thread = threading.Thread(target=talk)
    thread.start()
    try:
        settled("the broker hears it", lambda: broker.words().count(f"Received PUBLISH from {board} ") >= 5)
        yield
    finally:
        over.set()
        thread.join()
        client.kill()
        client.communicate()


def words_of_boards(test):
    """What boards say of an order is shown, and nothing that they can't say."""
    with fleet(test) as (store, _), operator(test, store) as (broker, url, env):
        def publish_status(board, data):
            if not (store.dir / f"{board}.pem").exists():
                store.certify(board)
            done = broker.client("pub", "-q", "1", "-r", "-t", f"traced/doors/all/status/{board}", "-s", name=board,
                                 port=broker.port, input=data)
            check(done.returncode == 0, f"{board}: {done.stderr}")

        def says(board, *orders, state="alive"):
            publish_status(board, json.dumps({"agent": "1", "state": state, "time": 1, "orders": [*orders]}).encode())

        words = ["fleet", "status", "17", "--fleet", "doors", "--broker", url]
        # The fleet has that name, if something comes.
        publish_status("door-7", b"[[[[")
        done = test.run(*words, env=env)
        check(done.status == 3 and "refused: 1 word" in done.err and "shows no board" not in done.err, f"{done}")
        says("door-1", {"serial": 16, "outcome": "failed", "reason": "old"}, {"serial": 17, "outcome": "done"})
        says("door-2", {"serial": 17, "outcome": "refused", "reason": "expired"})
        says("door-3", {"outcome": "refused", "reason": "expired", "serial": 17})
        says("door-4", {"serial": 17, "outcome": "recording"})
        says("door-5", {"serial": 16, "outcome": "done"}, state="dead")
        says("door-6", {"serial": 17, "outcome": "failed", "reason": ESCAPE + "\ndoor-1"})
        publish_status("door-7", b"[[[[")
        publish_status("door-8", b"{" + b" " * 4000 + b"}")
        publish_status("door%9", b"{}")
        done = test.run(*words, env=env)
        check(done.status == 3 and "refused: 3 words" in done.err and "\x1b" not in done.out, f"{done}")
        for line in ("4 of 6 boards are through; the broker lost some", "done: 1\n  door-1\n",
                     "refused, expired: 2\n  door-2 door-3\n", "recording: 1\n  door-4\n", "silent: 1\n  door-5\n"):
            check(line in done.out, f"{line}: {done}")
        # Boards that never are quiet do not make it listen to the end of its time.
        with chatter(broker, "door-6"):
            began = time.monotonic()
            done = test.run(*words, "-t", "50s", env=env)
            check("4 of 6 boards are through" in done.out and time.monotonic() - began < 40, f"{time.monotonic() - began} s, {done}")
        # A broker that takes no mark: it says that boards may be missing. It counts what comes while it listens, and each
        # board once.
        broker.stop()
        acl = store.dir / "operators.acl"
        acl.write_text(acl.read_text().replace("pattern write traced/doors/all/end/+\n", ""))
        broker.start()
        for _ in range(5):
            listeners = (store.dir / "broker.log").read_text().count("traced/doors/all/status/+")
            began = time.monotonic()
            process = test.start(*words, "--json", "-t", "4s", env=env)
            settled("it listens", lambda: (store.dir / "broker.log").read_text().count("traced/doors/all/status/+") > listeners)
            says("door-4", {"serial": 17, "outcome": "uploading"})
            says("door-4", {"serial": 17, "outcome": "done"})
            heard = process.poll() is None
            done = test.finish(process)
            if heard:
                break
            says("door-4", {"serial": 17, "outcome": "recording"})
        boards = json.loads(done.out)["boards"]
        check(len(boards) == 6 and "Timed out" not in done.err and "boards may be missing" in done.err, f"{done}")
        check(done.status == 3 and 4 <= time.monotonic() - began < 20, f"{time.monotonic() - began} s, {done}")
        check({b["board"]: b["outcome"] for b in boards} == {
            "door-1": "done", "door-2": "refused", "door-3": "refused", "door-4": "done", "door-5": "silent",
            "door-6": "failed"}, boards)
        done = test.run(*words[:-1], "mqtt://127.0.0.1:1")
        check(done.status == 1 and "no broker with TLS" in done.err, f"{done}")
        # A store only knows who answered.
        put(store.dir / "www/results", "door-1", b"{}")
        store.start()
        done = test.run(*words[:-2], "--url", f"{store.url}/results", "--curl", curl_file(test, store))
        check(done.status == 0 and "answered: 1\n  door-1\n" in done.out, f"{done}")
        # A broker that hangs has perhaps all boards.
        broker.process.send_signal(signal.SIGSTOP)
        done = test.run("fleet", "status", "--fleet", "doors", "--broker", url, "-t", "2s", env=env)
        check(done.status == 3 and "boards may be missing" in done.err, f"{done}")


def many_boards(test):
    """More of them than mosquitto keeps for a client by default. Without an order, their states are shown."""
    with fleet(test) as (store, _), operator(test, store) as (broker, url, env):
        done = test.run("fleet", "status", "--fleet", "doors", "--broker", url, env=env)
        check(done.status == 3 and done.out == "0 boards\n" and "shows no board of the fleet doors" in done.err, f"{done}")
        broker.stop()
        config = store.dir / "conf.d/fleet.conf"
        check("\nmax_queued_messages 100000\n" in config.read_text(), f"{config}")
        config.write_text(config.read_text().replace("max_queued_messages 100000\n", ""))
        acl = store.dir / "operators.acl"
        acl.write_text(acl.read_text() + "pattern write traced/doors/all/status/+\n")
        broker.start()
        context = ssl.create_default_context(cafile=store.dir / "ca.pem")
        context.load_cert_chain(store.dir / "operator.pem", store.dir / "operator.key")
        with socket.create_connection((broker.host, broker.operators_port)) as plain, \
                context.wrap_socket(plain, server_hostname=broker.host) as connection:
            connection.sendall(packet(0x10, b"\0\4MQTT\5\2\0\x3c\0\0\5crowd"))
            check(connection.recv(1) == CONSENT[:1], "no consent")
            for n in range(MANY):
                status = {"state": "dead" if n % 1000 == 7 else "alive", "orders": [{"serial": 17, "outcome": "done"}]}
                connection.sendall(publish(f"traced/doors/all/status/door-{n}", json.dumps(status).encode(), qos=1, retain=True))
            connection.sendall(packet(0xe0, b""))
            # Its end: the broker has read all.
            while connection.recv(4096):
                pass
        began = time.monotonic()
        done = test.run("fleet", "status", "17", "--fleet", "doors", "--broker", url, "-t", "50s", env=env)
        print(f"{MANY} boards in {time.monotonic() - began:.1f} s", flush=True)
        check(done.status == 0 and f"{MANY} of {MANY} boards are through; the broker lost some\n" in done.out, f"{done}")
        # The broker says when it has sent all, so nobody waits until the end.
        check(time.monotonic() - began < 30, f"{time.monotonic() - began} s")
        done = test.run("fleet", "status", "--fleet", "doors", "--broker", url, env=env)
        dead = " ".join(sorted(f"door-{n}" for n in range(7, MANY, 1000)))
        check(done.status == 0 and done.out.startswith(f"{MANY} boards\nalive: {MANY - DEAD}\n") and
              done.out.endswith(f"\ndead: {DEAD}\n  {dead}\n"), f"{done}")
        done = test.run("fleet", "status", "--fleet", "doors", "--broker", url, "--json", env=env)
        boards = json.loads(done.out)["boards"]
        check(len(boards) == MANY and {"board": "door-7", "state": "dead"} in boards, boards[:3])
        done = test.run("fleet", "status", "--fleet", "doors", "--broker", url, "--watch", env=env)
        check(done.status == 2 and "takes an order" in done.err, f"{done}")


class Watch:
    """fleet status --watch of order 17, as the leader of a terminal."""

    def __init__(self, test, env, *words):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(test.dir)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            command = test.arguments("fleet", "status", "17", "--fleet", "doors", "--watch", *words)
            os.execve(command[0], command, env)
        self.text = b""

    def read_until(self, words, seconds=PATIENCE_S):
        """Returns what came up to them."""
        until = time.monotonic() + seconds
        while words not in self.text:
            check(time.monotonic() < until and self.read(0.1), f"no {words} in {self.text}")
        before, _, self.text = self.text.partition(words)
        return before + words

    def read(self, seconds):
        """False at the end."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        with contextlib.suppress(OSError):
            new = os.read(self.terminal, 4096)
            self.text += new
            return bool(new)
        return False

    def end(self):
        """Its status."""
        until = time.monotonic() + PATIENCE_S
        while self.read(0.1):
            check(time.monotonic() < until, "it does not end")
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def watched(test):
    """Each answer replaces the one before, at once, until no board is at work; a silent one is not waited for."""
    with fleet(test) as (store, _), operator(test, store) as (broker, url, env):
        def says(board, *orders):
            if not (store.dir / f"{board}.pem").exists():
                store.certify(board)
            done = broker.client("pub", "-q", "1", "-r", "-t", f"traced/doors/all/status/{board}", "-s", name=board,
                                 port=broker.port, input=json.dumps({"state": "alive", "orders": [*orders]}).encode())
            check(done.returncode == 0, f"{board}: {done.stderr}")

        clear = b"\x1b[H\x1b[2J"
        says("door-1")
        says("door-2")
        watch = Watch(test, env, "--broker", url)
        before = watch.read_until(clear)
        check(before == clear, before)
        # The terminal shows an answer all the time: this one needs no broker any more.
        broker.process.send_signal(signal.SIGSTOP)
        text = watch.read_until(b"  door-1 door-2\r\n")
        broker.process.send_signal(signal.SIGCONT)
        check(text == b"[" + b"." * 40 + b"] 0 of 2 boards are through\r\nsilent: 2\r\n  door-1 door-2\r\n", text)
        says("door-1", {"serial": 17, "outcome": "waiting"})
        text = watch.read_until(b"waiting: 1\r\n  door-1\r\n")
        check(text.startswith(clear), text)
        says("door-1", {"serial": 17, "outcome": "done"})
        text = watch.read_until(b"silent: 1\r\n  door-2\r\n")
        check(b"[" + b"#" * 20 + b"." * 20 + b"] 1 of 2 boards are through\r\ndone: 1\r\n  door-1\r\n" in text, text)
        check(watch.end() == 0, watch.text)
        # A pipe gets the answers one behind another.
        says("door-2", {"serial": 17, "outcome": "recording"})
        process = test.start("fleet", "status", "17", "--fleet", "doors", "--watch", "--broker", url, env=env)
        first = b"".join(process.stdout.readline() for _ in range(5))
        check(first == b"1 of 2 boards are through\ndone: 1\n  door-1\nrecording: 1\n  door-2\n", first)
        says("door-2", {"serial": 17, "outcome": "failed", "reason": "no space"})
        done = test.finish(process)
        check(done.status == 0 and done.out.endswith("2 of 2 boards are through\ndone: 1\n  door-1\nfailed, no space: 1\n"
                                                     "  door-2\n") and "\x1b" not in done.out, f"{done}")
        # Ctrl-C ends it, and the program that listens.
        says("door-2", {"serial": 17, "outcome": "recording"})
        watch = Watch(test, env, "--broker", url)
        watch.read_until(b"recording: 1\r\n  door-2\r\n")
        os.write(watch.terminal, b"\x03")
        check(watch.end() == -signal.SIGINT, watch.text)
        # A broker that goes ends it with an error.
        watch = Watch(test, env, "--broker", url)
        watch.read_until(b"recording: 1\r\n  door-2\r\n")
        broker.stop()
        watch.read_until(b"mosquitto_sub ended")
        check(watch.end() == 1, watch.text)
        done = test.run("fleet", "status", "17", "--fleet", "doors", "--watch", "--url", store.url)
        check(done.status == 2 and "--watch needs --broker" in done.err, f"{done}")


def the_demo(test):
    """contrib/fleet/demo plays a fleet of five boards, and leaves nothing on the machine's network."""
    need(shutil.which("ip") and shutil.which("mosquitto", path="/usr/sbin:/usr/bin"), "ip and mosquitto are needed")
    demo = pathlib.Path(__file__).resolve().parents[2] / "contrib/fleet/demo"
    links = subprocess.run(["ip", "link"], capture_output=True, check=True).stdout
    done = subprocess.run([demo, test.build], capture_output=True, timeout=240, check=False, text=True, cwd=test.dir,
                          env=test.environment(TMPDIR=str(test.dir)))
    check(done.returncode == 0, f"{done}")
    kind = "Swift, behind nginx" if shutil.which("swift-proxy-server") and shutil.which("memcached") else "nginx"
    for text in (f"the store is {kind}\n", "5 boards in 5 network namespaces of their own\n", "5 of 5 boards are through\n", "10 fetched, 0 were there"):
        check(text in done.stdout + done.stderr, f"no {text!r}: {done}")
    check(not list(test.dir.iterdir()), f"left: {list(test.dir.iterdir())}")
    check(subprocess.run(["ip", "link"], capture_output=True, check=True).stdout == links, "the machine's network is changed")


def main():
    Test.make_daemon = Members
    test = Test("fleet_broker")
    test.case("an order by a broker", an_order_by_a_broker, daemon=True)
    test.case("why an order failed", why_an_order_failed, daemon=True)
    test.case("an order is withdrawn", an_order_is_withdrawn, daemon=True)
    test.case("what boards say of an order", words_of_boards, daemon=True)
    test.case("many boards", many_boards, daemon=True)
    test.case("what boards say is watched", watched, daemon=True)
    test.case("the demo", the_demo)
    test.end()


if __name__ == "__main__":
    main()
