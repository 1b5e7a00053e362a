# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server of NFS and its client in one guest: the kernel's nfsd, and a relay before it that can
be stopped. A stopped relay is a server that hangs: its connections live, and nothing is answered."""

import contextlib
import ctypes
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import time

from common import Failure, check, settled

MODULES = ("sunrpc", "grace", "auth_rpcgss", "lockd", "nfs_acl", "nfsd", "netfs", "fscache", "dns_resolver", "nfs", "nfsv4")
CONTROL = pathlib.Path("/proc/fs/nfsd")
CACHES = pathlib.Path("/proc/net/rpc")
PORT, RELAY_PORT = 2049, 2050
INSECURE_PORT, ASYNC, NO_SUBTREE_CHECK, FSID = 0x2, 0x10, 0x400, 0x2000  # nfsd/export.h
MS_SYNCHRONOUS = 16
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags=0, options=""):
    target.mkdir(exist_ok=True)
    done = libc.mount(os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode())
    check(done == 0, f"mount {kind}: {os.strerror(ctypes.get_errno())}")


def write(path, text):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    except OSError as e:
        raise Failure(f"{path}: {e}") from e
    finally:
        os.close(fd)


def load_modules():
    loaded = {line.split()[0] for line in open("/proc/modules", encoding="ascii")}
    for name in MODULES:
        file = pathlib.Path(f"/later/{name}.ko")
        if name not in loaded and file.exists():
            subprocess.run(["insmod", str(file)], check=True)


def export(folder):
    """What mountd would say: the client's name, what it may use, and where the root is."""
    until = int(time.time()) + 86400
    flags = INSECURE_PORT | ASYNC | NO_SUBTREE_CHECK | FSID
    write(CACHES / "auth.unix.ip/channel", f"nfsd 127.0.0.1 {until} guest\n")
    write(CACHES / "nfsd.export/channel", f"guest {folder} {until} {flags} 65534 65534 0\n")
    write(CACHES / "nfsd.fh/channel", f"guest 1 \\x00000000 {until} {folder}\n")


def serve(folder):
    """The guest serves it to its end: NFS 4 only, which needs no rpcbind."""
    load_modules()
    mount("export", folder, "tmpfs", options="mode=1777")
    mount("nfsd", CONTROL, "nfsd")
    export(folder)
    write(CONTROL / "versions", "-3 +4 +4.1 +4.2\n")
    # Files stay open while the server hangs.
    write(CONTROL / "nfsv4leasetime", "600\n")
    write(CONTROL / "nfsv4gracetime", "10\n")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", PORT))
        listening.listen()
        write(CONTROL / "portlist", f"{listening.fileno()}\n")
    write(CONTROL / "threads", "2\n")


def relay(listening):
    """Passes on bytes, both ways, until it is killed."""
    watch = selectors.DefaultSelector()
    watch.register(listening, selectors.EVENT_READ)
    while True:
        # One at a time: an end closes the other one.
        key, _ = watch.select()[0]
        if key.fileobj is listening:
            ends = listening.accept()[0], socket.create_connection(("127.0.0.1", PORT))
            watch.register(ends[0], selectors.EVENT_READ, ends[1])
            watch.register(ends[1], selectors.EVENT_READ, ends[0])
            continue
        with contextlib.suppress(OSError):
            data = key.fileobj.recv(1 << 16)
            if data:
                key.data.sendall(data)
                continue
        for end in key.fileobj, key.data:
            watch.unregister(end)
            end.close()


def start_relay():
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", RELAY_PORT))
    listening.listen()
    pid = os.fork()
    if pid == 0:
        try:
            relay(listening)
        finally:
            os._exit(1)
    listening.close()
    return pid


class Folder:
    """Of NFS, mounted."""

    def __init__(self, path, relay_pid):
        self.path = path
        self.relay = relay_pid

    def hang(self):
        os.kill(self.relay, signal.SIGSTOP)

    def answer(self):
        os.kill(self.relay, signal.SIGCONT)

    def cut(self):
        """The network is away, and not only the server."""
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)

    def mend(self):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextlib.contextmanager
def mounted(test, flags=0):
    """A folder of the server. flags: MS_SYNCHRONOUS writes at once, and not only when a file is closed."""
    path = test.dir / "nfs"
    pid = start_relay()
    folder = Folder(path, pid)
    try:
        mount("127.0.0.1:/", path, "nfs4", flags,
              f"vers=4.2,proto=tcp,port={RELAY_PORT},sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1")
        try:
            # A server that has just begun lets nobody open a file for ten seconds.
            (path / "first").touch()
            (path / "first").unlink()
            yield folder
        finally:
            folder.mend()
            folder.answer()
            for file in path.iterdir():
                file.unlink()
            settled("the folder is no longer used", lambda: libc.umount2(os.fsencode(path), 0) == 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
