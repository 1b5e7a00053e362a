# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenStack's Swift as a store for the tests and contrib/fleet/demo: s3api and tempauth, one replica."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import urllib.parse

from harness import PATIENCE_S, check, need, settled
from store import free_port, listens, run

SERVER = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = root
devices = {dir}/devices
mount_check = false
disable_fallocate = true
recon_cache_path = {dir}
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
# Lists come in parts of two names.
PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = root
[pipeline:main]
pipeline = catch_errors gatekeeper cache tempurl s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:tempurl]
use = egg:swift#tempurl
[filter:s3api]
use = egg:swift#s3api
location = eu-west-1
max_bucket_listing = 2
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_boards = s3cret/with+signs= .admin
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""
# Boards have no key of Swift; operators sign what they ask for.
GATEWAY = """
        location /boards/ {{
            proxy_pass http://127.0.0.1:{port}/v1/AUTH_test/fleet/results/;
            proxy_set_header X-Auth-Token {token};
        }}
        location /v1/ {{
            proxy_pass http://127.0.0.1:{port};
        }}
        location /fleet {{
            proxy_pass http://127.0.0.1:{port};
            proxy_set_header Host $http_host;
        }}
"""
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


class Swift:
    """One replica of all, with folders and ports of its own."""

    def __init__(self, folder):
        need(all(shutil.which(f"swift-{kind}-server") for kind in ("proxy", "account", "container", "object")) and
             shutil.which("memcached") and os.path.isdir("/etc/swift"),
             "swift-proxy, swift-account, swift-container, swift-object and memcached are needed")
        self.dir, self.etc = folder, folder / "etc"
        (folder / "devices/d").mkdir(parents=True)
        self.etc.mkdir()
        try:
            os.setxattr(folder / "devices/d", "user.test", b"x")
        except OSError as e:
            need(False, f"{folder} has no extended attributes: {e}")
        self.ports = {kind: free_port() for kind in ("proxy", "account", "container", "object", "memcached")}
        (self.etc / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = test\n")
        (self.etc / "proxy.conf").write_text(PROXY.format(port=self.ports["proxy"], memcached=self.ports["memcached"]))
        for kind in ("account", "container", "object"):
            (self.etc / f"{kind}.conf").write_text(SERVER.format(dir=folder, kind=kind, port=self.ports[kind]))
            self.make_ring(kind)
        self.processes = {}

    def make_ring(self, kind):
        builder = self.etc / f"{kind}.builder"
        run("swift-ring-builder", builder, "create", "2", "1", "1")
        run("swift-ring-builder", builder, "add", f"r1z1-127.0.0.1:{self.ports[kind]}/d", "1")
        run("swift-ring-builder", builder, "rebalance")

    def start(self):
        """Swift looks for its rings in /etc/swift: each server has this folder there."""
        self.launch("memcached", "memcached", "-l", "127.0.0.1", "-p", self.ports["memcached"], "-U", "0", "-u", "nobody")
        for kind in ("account", "container", "object", "proxy"):
            self.launch(kind, "unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/swift && exec "$@"', self.etc,
                        f"swift-{kind}-server", f"/etc/swift/{kind}.conf")
        for kind, process in self.processes.items():
            settled(f"{kind} listens", lambda: process.poll() is not None or listens(self.ports[kind]))
            check(process.poll() is None, f"{kind} ended: {self.words(kind)}")

    def launch(self, kind, *command):
        """A group of its own: at its end, a server of Swift signals its group."""
        with open(self.dir / f"{kind}.log", "wb") as log:
            self.processes[kind] = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                    start_new_session=True)

    def words(self, kind):
        return (self.dir / f"{kind}.log").read_text(errors="replace")[-2000:]

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait(PATIENCE_S)

    def request(self, verb, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["proxy"], timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(verb, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            answer.body = answer.read()
            check(answer.status in (200, 201, 204), f"{verb} {path}: {answer.status} {self.words('proxy')}")
            return answer

    def token(self):
        return self.request("GET", "/auth/v1.0", X_Storage_User="test:tester", X_Storage_Pass="testing").headers["X-Auth-Token"]

    def listing(self, token, prefix, after=""):
        """Of the container: at most 10,000 objects, as Swift describes them."""
        query = urllib.parse.urlencode({"format": "json", "prefix": prefix, "marker": after})
        return json.loads(self.request("GET", f"/v1/AUTH_test/fleet?{query}", X_Auth_Token=token).body)

    def serve_by(self, store):
        """A container, and the ways to it through nginx, which has yet to be started. Returns Swift's token."""
        token = self.token()
        self.request("PUT", "/v1/AUTH_test/fleet", X_Auth_Token=token)
        conf = store.dir / "nginx.conf"
        gateway = GATEWAY.format(port=self.ports["proxy"], token=token)
        conf.write_text(conf.read_text().replace("        location /orders/", f"{gateway}        location /orders/"))
        return token


def configure_curl(folder, store, secret="testing"):
    """The access key of tempauth has a colon, with which curl's `user` ends it."""
    netrc = folder / "netrc"
    netrc.write_text(f"machine {store.address} login test:tester password {secret}\n")
    path = folder / "curl.conf"
    path.write_text(f'cacert = "{store.dir}/ca.pem"\ncert = "{store.dir}/client.pem"\nkey = "{store.dir}/client.key"\n'
                    f'aws-sigv4 = "aws:amz:eu-west-1:s3"\nnetrc-file = "{netrc}"\nheader = "x-amz-content-sha256: {EMPTY}"\n')
    return path
