# SPDX-License-Identifier: LGPL-2.1-or-later
"""A store that says and sends what no store should."""

import http.server
import ssl
import threading
import urllib.parse

ENDLESS = 1 << 30
PIECE = b"x" * (1 << 16)


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            self.server.store.answer(self)
        except OSError:
            self.close_connection = True

    def do_HEAD(self):
        self.lack()

    # send_error() needs Python's module html, and html.py of these tests is found first.
    def lack(self, status=404):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_PUT(self):
        try:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.give_endlessly()
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass

    def give(self, body, length=None):
        """length: what the header claims."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def give_endlessly(self, begin=b""):
        """Without a length."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        while sent < ENDLESS:
            piece, begin = begin or PIECE, b""
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            sent += len(piece)
            self.server.store.sent += len(piece)


class Server(http.server.ThreadingHTTPServer):
    # Clients that end a connection are no error.
    def handle_error(self, *_):
        pass


class FalseStore:
    """answers: by path, without a slash at the end and without parameters: bytes, or what is called with the request."""

    def __init__(self, folder, answers):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self.answers = answers
        self.sent = 0  # endlessly
        self.server = Server(("127.0.0.1", 0), Request)
        self.server.store = self
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def answer(self, request):
        answer = self.answers.get(urllib.parse.unquote(request.path.split("?")[0].rstrip("/")))
        if answer is None:
            request.lack()
        elif callable(answer):
            answer(request)
        else:
            request.give(answer)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
