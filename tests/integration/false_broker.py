# SPDX-License-Identifier: LGPL-2.1-or-later
"""A broker that does what no broker should: it speaks just enough MQTT 5 for that."""

import socket
import ssl
import struct
import threading


def length(n):
    out = b""
    while True:
        n, low = divmod(n, 128)
        out += bytes([low | (128 if n else 0)])
        if not n:
            return out


def packet(kind, body):
    return bytes([kind]) + length(len(body)) + body


def publish(topic, payload, qos=0, retain=False):
    """With the number 1, if it needs one, and without properties."""
    name = topic.encode()
    body = struct.pack("!H", len(name)) + name + (b"\x00\x01" if qos else b"") + b"\x00" + payload
    return packet(0x30 | qos << 1 | retain, body)


CONSENT = packet(0x20, b"\x00\x00\x00")


class FalseBroker:
    """Runs behave(connection, number) for each connection, one after another; then it ends that."""

    def __init__(self, folder, behave, tls=True):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self.tls = tls
        self.behave = behave
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"mqtts://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            try:
                with plain:
                    plain.settimeout(60)
                    if self.tls:
                        with self.context.wrap_socket(plain, server_side=True) as connection:
                            self.behave(connection, self.count)
                    else:
                        self.behave(plain, self.count)
            except OSError:
                pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
