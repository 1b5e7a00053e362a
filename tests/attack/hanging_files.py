# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of FUSE whose server never answers a FLUSH, a WRITE or a READ: each close(), write() or read() of them hangs, and no signal
ends it."""

import contextlib
import ctypes
import mmap
import os
import re
import signal
import socket
import stat
import struct
import time
import zlib

from attack import (NOBODY, SLOWER, Attack, Figures, Stranger, Victim, admit_everybody, check, connect, frame, hello, limit, need,
                    report_attack, settled, wait_of_another)
from descriptors import UNKNOWN_MESSAGE, send_with

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FLUSH, INIT, OPENDIR, READDIR, CREATE, INTERRUPT, POLL = \
    1, 2, 3, 4, 14, 15, 16, 18, 25, 26, 27, 28, 35, 36, 40
DIRECT, KEEP_CACHE = 1, 2  # flags of an open file
PAGE = 4096
ROOT = 1
# Start, 2: events "sched:sched_switch", and held
START_HELD = b"\x08\x02\x1a\x19\x12\x14\x0a\x12sched:sched_switch\xd0\x02\x01"
FOREVER = 1 << 30
# The daemon refuses a user with as many that hang.
EXPORTERS, CLOSING_THREADS = 8, 4
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    mode = stat.S_IFDIR | 0o777 if node == ROOT else stat.S_IFREG | 0o666
    return struct.pack("<6Q10I", node, 0 if node == ROOT else PAGE, 0, 0, 0, 0, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)


def answer(opcode, node, body):
    """The reply's payload; an int: an errno; None: no reply."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 16, 0, 12, 9, 1 << 16, 1, 16, 0, *([0] * 8))
    if opcode in (LOOKUP, CREATE):
        node = 2 + zlib.crc32(body[16 if opcode == CREATE else 0:])
        entry = struct.pack("<4Q2I", node, 0, FOREVER, FOREVER, 0, 0) + attributes(node)
        return entry + (struct.pack("<QII", 1, 0, 0) if opcode == CREATE else b"")
    if opcode in (GETATTR, SETATTR):
        return struct.pack("<QII", FOREVER, 0, 0) + attributes(node)
    if opcode == OPENDIR:
        return struct.pack("<QII", 1, 0, 0)
    if opcode == OPEN:
        # With DIRECT, a file's pages are dropped when it is mapped: that waits for a page that is being read.
        writable = struct.unpack_from("<I", body)[0] & os.O_ACCMODE
        return struct.pack("<QII", 1, KEEP_CACHE if writable else DIRECT | KEEP_CACHE, 0)
    if opcode == WRITE:
        return struct.pack("<II", struct.unpack_from("<QQI", body)[2], 0)
    if opcode == READDIR:
        return b""
    if opcode in (FORGET, INTERRUPT):
        return None
    return 0 if opcode in (FLUSH, RELEASE) else 38


def serve(device, unanswered, asked):
    with contextlib.suppress(OSError):
        while True:
            request = os.read(device, 1 << 18)
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            reply = answer(opcode, node, request[40:])
            if opcode == unanswered:
                asked[0] += 1
            if reply is None or opcode == unanswered:
                continue
            error, payload = (-reply, b"") if isinstance(reply, int) else (0, reply)
            os.write(device, struct.pack("<IiQ", 16 + len(payload), error, unique) + payload)


@contextlib.contextmanager
def hanging_folder(test, unanswered=FLUSH, asked=None):
    """A mount of FUSE. Its server counts in asked[0] what it does not answer, and ends with the
    context: then all that hangs goes on."""
    need(os.path.exists("/dev/fuse"), "there is no /dev/fuse")
    folder = test.dir / "hanging"
    folder.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
    mounted = libc.mount(b"hanging", os.fsencode(folder), b"fuse.hanging", 6, options.encode())
    need(mounted == 0, f"mount: {os.strerror(ctypes.get_errno())}")
    server = os.fork()
    if server == 0:
        serve(device, unanswered, asked or [0])
        os._exit(0)
    os.close(device)
    try:
        yield folder
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        libc.umount2(os.fsencode(folder), 2)
        folder.rmdir()


def give(folder, control, marks):
    """Files to both sockets. Our own stay open: to close one would hang."""
    kept = []
    for path, kind, message in ((control, socket.SOCK_STREAM, hello()),
                                (marks, socket.SOCK_SEQPACKET, UNKNOWN_MESSAGE)):
        for n in range(6):
            fd = os.open(folder / f"file{n}", os.O_RDWR | os.O_CREAT)
            s = connect(path, kind)
            with contextlib.suppress(OSError):
                send_with(s, message, [open(fd, "rb", buffering=0, closefd=False)])
            kept += [s, fd]
            # The daemon receives one after the other.
            time.sleep(0.06)
    return kept


def received(test):
    admit_everybody(test)
    with hanging_folder(test) as folder, Victim(test) as v:
        with Stranger(give, folder, test.daemon.socket, test.daemon.socket.parent / "marks.sock", wait=False):
            time.sleep(2.2)
            waited = wait_of_another(test)
            for _ in range(20):  # the stranger may be late
                r = test.run("list", user=NOBODY, group=NOBODY, extra_groups=[])
                if r.status == 1:
                    break
                time.sleep(0.2)
            v.finish()
    if v.figures.lost is not None:
        check(r.status == 1 and "do not close" in r.err, f"the stranger is served: {r}")
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def hold_command(folder, path):
    """A held command of which the kernel can't be asked whether it has ended."""
    go, _ = pair = socket.socketpair()
    fd = os.open(folder / "command", os.O_RDWR | os.O_CREAT)
    s = connect(path)
    s.sendall(hello())
    s.recv(1 << 16)
    send_with(s, frame(START_HELD), [go, open(fd, "rb", buffering=0, closefd=False)])
    check(b"pidfd" in s.recv(1 << 16), "the file is not refused")
    return pair, fd, s


def as_command(test):
    admit_everybody(test)
    with hanging_folder(test, POLL) as folder, Victim(test) as v:
        with Stranger(hold_command, folder, test.daemon.socket):
            waited = wait_of_another(test)
            v.finish()
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def hold_memory(folder):
    """Maps a file while another process reads it, for ever: the kernel has the lock of this one's memory then."""
    fd = os.open(folder / "mapped", os.O_RDWR)
    if os.fork() == 0:
        os.pread(fd, PAGE, 0)
    time.sleep(0.3)
    direct = os.open(folder / "mapped", os.O_RDONLY)
    report_attack()
    mmap.mmap(direct, PAGE, mmap.MAP_PRIVATE, mmap.PROT_READ)


def map_unread(folder):
    """Maps a file that was never read: the kernel reads its build id when it is asked for."""
    return mmap.mmap(os.open(folder / "mapped", os.O_RDWR), PAGE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def beside_held(test, hold, *options):
    """Another's recording beside processes of three users about which the kernel can't be asked. Also another test's `ps` may
    hang, so it is short."""
    with contextlib.ExitStack() as strangers:
        folder = strangers.enter_context(hanging_folder(test, READ))
        for uid in (NOBODY, NOBODY - 1, NOBODY - 2):
            strangers.enter_context(Stranger(hold, folder, uid=uid))
        began = time.monotonic()
        r = test.run("record", "-q", "-e", "sched:sched_switch", *options, "-o", "other.traced", "--", "true")
        waited = time.monotonic() - began
        # The unit does not permit it by default.
        need("does not permit sampling" not in r.err, "the daemon may not sample")
        check(r.status == 0, f"another's recording: {r}")
        # They may not have begun yet.
        limit(re.search(r"of \d+ processes are missing", r.all_err), f"nothing was held up: {r}")
    return Figures(delay_s=waited)


def as_memory(test):
    """Command lines that can't be read."""
    return beside_held(test, hold_memory)


def as_build_id(test):
    """Build ids that can't be read."""
    need(tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 11), "build ids are read from the files")
    return beside_held(test, map_unread, "--sample", "100hz")


def be_stdout(path):
    """Opens path as standard output, without any close of it, which would hang."""
    os.close(1)
    check(os.open(path, os.O_WRONLY) == 1, "it is not standard output")
    os.set_inheritable(1, True)


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(") ")[2][0] in "ZX"
    except FileNotFoundError:
        return True


def as_output(test):
    """A member's own recording into such a file, beside the victim's. Then the daemon is stopped."""
    admit_everybody(test)
    with hanging_folder(test) as folder:
        with Victim(test) as v:
            member = test.start("record", "--name", f"{test.name}-member", "-t", "500ms", "-e", "sched:sched_switch",
                                "--format", "txt", "-o", "-", user=NOBODY, group=NOBODY, extra_groups=[],
                                preexec_fn=lambda: be_stdout(folder / "out.txt"))
            time.sleep(1.5)
            waited = wait_of_another(test)
            settled("the member's recording ends", lambda: member.poll() is not None or
                    "member: its duration is over" in test.daemon.words())
            check(member.poll() is None, f"the member's recording is not held up: {member.poll() is not None and member.stderr.read()}")
            v.finish()
        # The hanging threads end with the server; the instances must go earlier.
        test.daemon.process.terminate()
        time.sleep(0.5)
        test.daemon.process.terminate()
        settled("the instances go", lambda: not test.instances(), 20)
        # A thread that closes such a file stays.
        settled("the daemon ends", lambda: has_ended(test.daemon.process.pid), 20)
    test.daemon.process.wait(20 * SLOWER)
    member.kill()
    member.communicate()
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def given_up(test):
    """A member's recordings are cancelled while their exporters hang. The daemon starts no ninth one. Where the daemon's threads
    that close such files hang, too, as on Linux 6.12, the member is refused after four."""
    admit_everybody(test)
    members = []
    asked = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the server
    hung = refused = 0

    def begin():
        # A file of its own: the kernel lets nobody open one that is being written.
        n = len(members)
        members.append(test.start("record", "--name", f"{test.name}-{n}", "-t", "100ms", "-e", "sched:sched_switch",
                                  "--format", "txt", "-o", "-", user=NOBODY, group=NOBODY, extra_groups=[],
                                  preexec_fn=lambda: be_stdout(folder / f"out{n}.txt")))
        return members[-1]

    def check_refused(member):
        _, err = member.communicate()
        # The daemon refuses it when it connects, or drops it while it records.
        check(b"do not close" in err or b"lost the connection to traced" in err,
              f"the member's recording: {err.decode(errors='replace')}")

    with hanging_folder(test, WRITE, asked) as folder:
        while hung < EXPORTERS:
            member = begin()
            settled("its exporter hangs, or it is refused", lambda: asked[0] > hung or member.poll() is not None)
            if asked[0] > hung:
                name = f"{NOBODY}/{test.name}-{len(members) - 1}"
                settled("it is cancelled", lambda: test.run("cancel", name).status == 0)
                hung += 1
                refused = 0
                continue
            check_refused(member)
            # On a slow machine, files that close slowly refuse the member for a while.
            refused += 1
            if hung >= CLOSING_THREADS and refused >= 25:
                break
            check(len(members) < 100, "the member is refused for ever")
            time.sleep(0.2)
        with Victim(test) as v:
            member = begin()
            settled("it is refused", lambda: f"{EXPORTERS} of your exporters do not end" in test.daemon.words()
                    if hung == EXPORTERS else member.poll() is not None)
            if hung < EXPORTERS:
                check_refused(member)
            waited = wait_of_another(test)
            v.finish()
    for member in members:
        member.kill()
        member.communicate()
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


ATTACKS = (
    Attack("files that hang when closed", received),
    Attack("a command that hangs when polled", as_command),
    Attack("an output that hangs when closed", as_output),
    Attack("outputs that hang, and are given up", given_up),
    Attack("command lines that can't be read", as_memory, delay_s=3),
    Attack("build ids that can't be read", as_build_id, delay_s=3),
)
