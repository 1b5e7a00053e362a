# SPDX-License-Identifier: LGPL-2.1-or-later
"""A store for traced-agent's tests: nginx on loopback with TLS, certificates of its own authority, and signed orders."""

import datetime
import os
import pathlib
import shutil
import socket
import subprocess
import time

from harness import PATIENCE_S, check, need, settled

CONFIGURATION = """
daemon off;
master_process off;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format verbs '$request_method $request_uri $status';
    map $args $part {{ ~continuation-token=a%2B%2Fb 2; default 1; }}
    access_log {dir}/access.log verbs;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/temp;
    fastcgi_temp_path {dir}/temp;
    uwsgi_temp_path {dir}/temp;
    scgi_temp_path {dir}/temp;
    client_max_body_size 64m;
    server {{
        listen {address}:{port} ssl;
        ssl_certificate {dir}/server.pem;
        ssl_certificate_key {dir}/server.key;
        ssl_client_certificate {dir}/ca.pem;
        ssl_verify_client on;
        root {dir}/www;
        location /results/ {{ dav_methods PUT; create_full_put_path on; autoindex on; autoindex_format json; }}
        location /orders/ {{ dav_methods PUT; }}
        # Lists that are none.
        location /bombs/ {{ return 200 "[[[[[["; }}
        location = /bucket {{ rewrite ^ /list$part.xml last; }}
        # Accepts everything, and keeps nothing.
        location /lies/ {{
            if ($request_method = PUT) {{ return 201; }}
            return 404;
        }}
        # Has all, and gives nothing.
        location /empty/ {{ return 200; }}
        # ETags that say nothing of the content.
        location /same/ {{ alias {dir}/www/orders/; etag off; add_header ETag '"same"'; }}
        location /fresh/ {{ alias {dir}/www/orders/; etag off; add_header ETag '"$request_id"'; }}
        location /partly/ {{
            location ~ order=7/ {{ return 403; }}
            dav_methods PUT;
            create_full_put_path on;
        }}
        location /busy {{ add_header Retry-After 600 always; return 429; }}
        location /moved {{ return 302 /orders/doors; }}
    }}
}}
"""


def run(*command, **kwargs):
    done = subprocess.run([*map(str, command)], capture_output=True, check=False, **kwargs)
    check(done.returncode == 0, f"{command}: {done.stderr.decode(errors='replace')}")


# Each keeps its port for a server that sets SO_REUSEADDR: others, which get any free port, do not get it, also while the
# server is stopped.
held = []


def free_port(address="127.0.0.1"):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, 0))
    held.append(s)
    return s.getsockname()[1]


def listens(port, address="127.0.0.1"):
    with socket.socket() as s:
        return s.connect_ex((address, port)) == 0


class Store:
    """nginx, in a folder of its own."""

    def __init__(self, folder, address="127.0.0.1"):
        self.nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        self.signify = shutil.which("signify-openbsd")
        need(self.nginx and self.signify and shutil.which("openssl"), "nginx, signify-openbsd and openssl are needed")
        self.dir = folder
        for name in ("www/orders", "www/results", "keys"):
            (folder / name).mkdir(parents=True)
        self.address = address
        self.port = free_port(address)
        self.url = f"https://{address}:{self.port}"
        (folder / "nginx.conf").write_text(CONFIGURATION.format(dir=folder, address=address, port=self.port))
        (folder / "san").write_text(f"subjectAltName = IP:{address}\n")
        self.authorize("ca")
        self.certify("server")
        self.certify("client")
        run(self.signify, "-G", "-n", "-p", folder / "keys/order.pub", "-s", folder / "order.sec")
        run(self.signify, "-G", "-n", "-p", folder / "other.pub", "-s", folder / "other.sec")
        self.process = None

    def openssl(self, *words):
        run("openssl", *words, cwd=self.dir)

    def authorize(self, name):
        """Makes an authority: NAME.pem and NAME.key."""
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", f"/CN=test authority {name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")

    def certify(self, name, authority="ca", days=2):
        """Makes NAME.pem and NAME.key, for the common name NAME. days: -1: it has expired."""
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.req")
        self.openssl("x509", "-req", "-in", f"{name}.req", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                     "-CAcreateserial", "-days", str(days), "-extfile", "san", "-out", f"{name}.pem")

    def start(self):
        self.process = subprocess.Popen([self.nginx, "-p", self.dir, "-c", self.dir / "nginx.conf"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settled("nginx listens", lambda: self.process.poll() is not None or self.listens())
        check(self.process.poll() is None, f"nginx ended: {(self.dir / 'error.log').read_text()}")

    def listens(self):
        return listens(self.port, self.address)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE_S)
            self.process = None

    def requests(self, verb, word=""):
        """Status of each request so far."""
        lines = (self.dir / "access.log").read_text().splitlines()
        return [int(status) for v, uri, status in map(str.split, lines) if v == verb and word in uri]

    def results(self, serial, board="door-17"):
        folder = self.dir / f"www/results/fleet=doors/order={serial}/board={board}"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def sign(self, text, key="order"):
        """The file with the signature."""
        plain, signed = self.dir / "plain", self.dir / "signed"
        plain.write_text(text)
        run(self.signify, "-S", "-e", "-s", self.dir / f"{key}.sec", "-m", plain, "-x", signed)
        return signed.read_bytes()

    def publish(self, data, name="doors"):
        """Each file has a time of its own: nginx makes ETags of time, in seconds, and size."""
        path = pathlib.Path(self.dir / "www/orders" / name)
        before = path.stat().st_mtime if path.exists() else time.time() - 10000
        path.with_suffix(".new").write_bytes(data)
        os.utime(path.with_suffix(".new"), (before + 2, before + 2))
        path.with_suffix(".new").rename(path)


def order(serial, **keys):
    """The text of an order that the tests' board follows; further keys replace its own."""
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    lines = {"serial": serial, "fleet": "doors", "expires": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
             "duration": "300ms", "events": "sched:sched_switch", "reports": "sched", **keys}
    return "[order]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


def some_day(serial):
    """One that waits: its moment comes within 30 days."""
    return order(serial, window="30d", expires=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30 * 86400)))
