#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenStack's Swift as the store: the agent uploads by a gateway that knows its certificate and has Swift's token, and
tracectl reads by Swift's s3api."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import re
import signal
import time
import urllib.parse

from board import GROUP, Members, fleet
from fleet_data import name_of, reports
from harness import PATIENCE_S, Test, check, settled
from store import order
from swift_store import Swift, configure_curl


@contextlib.contextmanager
def swift_fleet(test):
    """A fleet whose results are in Swift."""
    folder = test.dir / "swift"
    folder.mkdir()
    swift = Swift(folder)
    try:
        with fleet(test, results="/boards") as (store, agent):
            swift.start()
            token = swift.serve_by(store)
            store.start()
            yield swift, store, agent, token
    finally:
        swift.stop()


def from_a_board_to_its_operator(test):
    """Reports and a recording; the lists come in parts."""
    with swift_fleet(test) as (swift, store, agent, token):
        store.publish(store.sign(order(7, capture="yes")))
        agent.start()
        settled(f"two results: {agent.words()} {swift.words('proxy')}",
                lambda: "recorded order 7" in agent.words() and not agent.waiting())
        check(sorted(store.requests("PUT", "/boards/")) == [201, 201], store.requests("PUT", "/boards/"))
        for n in range(4):
            data = reports({"sched": [{"task": "door", "tid": 1, "runtime_ns": 1, "runs": 1, "delay": {n: 1}}]})
            swift.request("PUT", f"/v1/AUTH_test/fleet/results/fleet=doors/order=7/board=door-{n}/{name_of(data)}.json", data,
                          X_Auth_Token=token)
        words = ["--fleet", "doors", "--s3", "--url", f"{store.url}/fleet/results", "--curl",
                 configure_curl(test.dir, store, "testing")]
        done = test.run("fleet", "status", "7", *words)
        check(done.status == 0 and "answered: 5\n  door-0 door-1 door-17 door-2 door-3\n" in done.out, f"{done}")
        check(len([s for s in store.requests("GET", "/fleet?") if s == 200]) == 3, store.requests("GET", "/fleet?"))
        for more, told in (((), "5 fetched, 0 were there, 0 missing, 0 refused"),
                           (("--capture",), "1 fetched, 5 were there, 0 missing, 0 refused")):
            done = test.run("fleet", "fetch", "7", "got", *more, *words)
            check(done.status == 0 and told in done.err, f"{done}")
        done = test.run("fleet", "open", "got", "door-17", "-q")
        check(done.status == 0 and os.path.exists(done.out.strip()), f"{done}")
        configure_curl(test.dir, store, "guessed")
        done = test.run("fleet", "fetch", "7", "other", *words)
        check(done.status == 1 and "403" in done.err and not (test.dir / "other").exists(), f"{done}")


def with_a_key_of_its_own(test):
    """The agent signs what it sends; without the right key nothing is stored, and the key shows up nowhere."""
    with swift_fleet(test) as (swift, store, agent, _):
        key = test.dir / "s3-key"
        secret = "s3cret/with+signs="

        def give(text, mode=0o640):
            key.write_text(text)
            os.chown(key, 0, GROUP)
            key.chmod(mode)

        def keys(secret):
            return f"[default]\naws_access_key_id = test:boards\naws_secret_access_key = {secret}\n"

        def start():
            agent.write(store, results="/fleet/results", of_results=f"s3_region = eu-west-1\ns3_key = {key}")
            agent.start()

        give(keys("guessed"))
        store.publish(store.sign(order(7, capture="yes")))
        start()
        agent.says("no upload: HEAD .*: status 403")
        agent.stop()
        check(len(agent.waiting()) == 2 and not store.requests("PUT", "/fleet/"), f"{agent.waiting()}")
        for text, mode, why in ((keys(secret), 0o644, "can be read by everybody"), (keys(secret), 0o660, "can be changed"),
                                (keys(""), 0o640, "needs aws_access_key_id"), (keys(secret) + "other = x\n", 0o640, "no such key")):
            give(text, mode)
            start()
            agent.says(why)
            check(agent.process.wait(PATIENCE_S) == 1, agent.words())
            agent.process = None
        give(keys(secret))
        start()
        settled(f"two results: {agent.words()} {swift.words('proxy')}", lambda: not agent.waiting())
        check(secret.encode() not in open(f"/proc/{agent.process.pid}/cmdline", "rb").read(), "it is in the command line")
        m = agent.metrics()
        check((m["uploads_total"], m["uploads_present_total"]) == (2, 0), m)
        check(store.requests("PUT", "/fleet/") == [200, 200], store.requests("PUT", "/fleet/"))
        check(secret not in agent.log.read_text() and "guessed" not in agent.log.read_text(), "the key is in the journal")
        # The names are as without a key.
        words = ["--fleet", "doors", "--s3", "--url", f"{store.url}/fleet/results", "--curl", configure_curl(test.dir, store, "testing")]
        done = test.run("fleet", "fetch", "7", "got", "--capture", *words)
        check(done.status == 0 and "2 fetched, 0 were there, 0 missing, 0 refused" in done.err, f"{done}")


def presign(test, store):
    """What tracectl signs with. The URL is the boards' one."""
    path = test.dir / "presign.conf"
    path.write_text(f"[swift]\nurl = {store.url}/v1/AUTH_test/fleet/results\nkey = tempurl s3cret\n")
    path.chmod(0o600)
    return path


def query_of(signed):
    """The query that an order brings, and the words."""
    words = re.findall(rb"^(?:presigned =|  ?)\s*(temp_url_[a-z]+=\S+)$", signed, re.M)
    return b"&".join(words).decode()


def answer_of(swift, verb, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", swift.ports["proxy"], timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request(verb, path, body)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def urls_that_the_order_signs(test):
    """Boards without a key and without a gateway: one signature is good for all names of one order, and for nothing else."""
    with swift_fleet(test) as (swift, store, agent, token):
        swift.request("POST", "/v1/AUTH_test/fleet", X_Auth_Token=token, X_Container_Meta_Temp_URL_Key="tempurl s3cret")
        place = "/v1/AUTH_test/fleet/results"

        def give(serial, *words):
            done = test.run("fleet", "order", "--fleet", "doors", "--serial", serial, "-t", "300ms", "-e", "sched:sched_switch",
                            "--secret-key", store.dir / "order.sec", "--presign", presign(test, store), "-o", "doors", *words)
            check(done.status == 0, f"{done}")
            signed = (test.dir / "doors").read_bytes()
            store.publish(signed)
            return query_of(signed)

        give(6, "--report", "sched")
        agent.write(store, results=place)
        agent.start()
        agent.says("refused order 6: URLs by an order are not allowed")
        agent.stop()
        agent.write(store, results=place, of_results="presigned = yes")
        agent.start()
        query = give(7, "--report", "sched", "--capture")
        settled(f"two results: {agent.words()} {swift.words('proxy')}",
                lambda: "recorded order 7" in agent.words() and not agent.waiting())
        check(sorted(store.requests("PUT", "/v1/")) == [201, 201], store.requests("PUT", "/v1/"))
        # The board is killed while the store is off, and sends with the same signature afterwards.
        swift.processes["proxy"].send_signal(signal.SIGSTOP)
        give(8, "--capture", "--rotate", "1s")
        agent.says("recorded order 8")
        agent.stop(signal.SIGKILL)
        check(agent.waiting() and (agent.state / "orders/8").exists(), agent.waiting())
        swift.processes["proxy"].send_signal(signal.SIGCONT)
        agent.start()
        settled(f"the segments: {agent.words()}", lambda: not agent.waiting())
        settled("the order is forgotten", lambda: not list((agent.state / "orders").iterdir()))
        words = ["--fleet", "doors", "--s3", "--url", f"{store.url}/fleet/results", "--curl", configure_curl(test.dir, store, "testing")]
        for serial, least in ((7, 2), (8, 1)):
            done = test.run("fleet", "fetch", serial, "got", "--capture", *words)
            check(done.status == 0 and int(done.err.split()[0]) >= least and "0 missing, 0 refused" in done.err, f"{done}")
        below = f"{place}/fleet=doors/order="
        check(answer_of(swift, "PUT", f"{below}7/board=other/x?{query}", b"x") == 201, "another board of the order")
        check(answer_of(swift, "HEAD", f"{below}7/board=other/x?{query}") == 200, "HEAD")
        for verb, path in (("GET", f"{below}7/board=other/x?{query}"), ("DELETE", f"{below}7/board=other/x?{query}"),
                           ("PUT", f"{below}8/board=other/x?{query}"), ("PUT", f"{below}77/x?{query}"),
                           ("PUT", f"{below}7/x?{query.replace('order%3D7', 'order%3D')}"),
                           ("PUT", f"{below}7/x?{re.sub('expires=1', 'expires=2', query)}"), ("PUT", f"{below}7/x")):
            check(answer_of(swift, verb, path, b"x" if verb == "PUT" else None) == 401, f"{verb} {path}")
        # One that has run out: the result waits.
        late = order(9) + "".join(f"{'presigned = ' if i == 0 else '  '}{word}\n" for i, word in enumerate(
            re.sub("expires=[0-9]+", "expires=1", query).split("&")))
        store.publish(store.sign(late))
        agent.says("no upload: HEAD .*: status 401")
        check(len(agent.waiting()) == 1 and (agent.state / "orders/9").exists(), agent.waiting())
        # Messages of failures show no signature.
        log = agent.log.read_text(errors="replace")
        check("status 401" in log and "temp_url" not in log, log)


def what_s3api_signs(test):
    """Why the signature is Swift's own: a URL signed for S3 is good for one name, and s3api takes no policy for a prefix."""
    with swift_fleet(test) as (swift, *_):
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = f"{now[:8]}/eu-west-1/s3/aws4_request"
        key = b"AWS4testing"
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        host = f"127.0.0.1:{swift.ports['proxy']}"

        def signed(verb, path):
            query = (f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={urllib.parse.quote(f'test:tester/{scope}', safe='')}"
                     f"&X-Amz-Date={now}&X-Amz-Expires=600&X-Amz-SignedHeaders=host")
            text = f"{verb}\n{urllib.parse.quote(path)}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
            text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(text.encode()).hexdigest()}"
            return f"{query}&X-Amz-Signature={hmac.new(key, text.encode(), 'sha256').hexdigest()}"

        put = signed("PUT", "/fleet/a/1")
        check(answer_of(swift, "PUT", f"/fleet/a/1?{put}", b"x") == 200, swift.words("proxy"))
        check(answer_of(swift, "PUT", f"/fleet/a/2?{put}", b"x") == 403, "another name")
        check(answer_of(swift, "HEAD", f"/fleet/a/1?{put}") == 403, "HEAD by a URL for PUT")
        check(answer_of(swift, "HEAD", f"/fleet/a/1?{signed('HEAD', '/fleet/a/1')}") == 200, "HEAD")
        policy = base64.b64encode(json.dumps({"conditions": [["starts-with", "$key", "a/"]]}).encode()).decode()
        form = {"key": "a/3", "policy": policy, "x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-credential": f"test:tester/{scope}",
                "x-amz-date": now, "x-amz-signature": hmac.new(key, policy.encode(), "sha256").hexdigest(), "file": "x"}
        body = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form.items())
        connection = http.client.HTTPConnection("127.0.0.1", swift.ports["proxy"], timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("POST", "/fleet", body + "--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"})
            status = connection.getresponse().status
        check(status == 412, f"a policy for a prefix, which s3api does not look at: {status}")
        check(answer_of(swift, "POST", f"/fleet?{signed('POST', '/fleet')}", b"") == 501, "POST")


def main():
    Test.make_daemon = Members
    test = Test("fleet_swift")
    for function in (from_a_board_to_its_operator, with_a_key_of_its_own, urls_that_the_order_signs, what_s3api_signs):
        test.case(function.__name__.replace("_", " "), function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
