#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""checks.py BUILD_DIRECTORY GUEST_DIRECTORY: prints the shell script that runs all
checks in a guest: the build's integration tests and the guest's own."""

import json
import pathlib
import shlex
import subprocess
import sys

# In seconds of the host: an emulated machine is that much slower.
SLOWER = 5
# Tests that depend on the kernel. The build's other integration tests run in a guest if they are
# named.
OF_THE_KERNEL = {"capture", "lacking", "ledger", "lists", "order", "oracle_text", "processes"}
ONCE = {"crash"}
# Numbers for tests that take long on an emulated machine: still dozens of times what the rings
# hold.
FEWER = {"ledger": ["20000"]}
OF_GUESTS = ("kernel", "clocks", "reading", "functions", "probes", "sql", "tracers", "hist", "killed", "user_events", "nfs",
             "phc", "restricted")
FIXTURES = ("fixtures", "function_fixtures", "hist_fixtures", "report_fixtures")


def main(build, guest):
    done = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True)
    print(f". {shlex.quote(guest)}/runner.sh")
    for test in json.loads(done.stdout):
        if not any(s.endswith(":integration") for s in test["suite"]):
            continue
        command = [*test["cmd"], *FEWER.get(test["name"], [])]
        # A script's interpreter here may be elsewhere in the guest.
        if pathlib.Path(command[0]).name.startswith("python"):
            command[0] = "python3"
        env = [f"{k}={v}" for k, v in test["env"].items()]
        if env:
            command = ["env", *env, *command]
        word = ("check" if test["name"] in OF_THE_KERNEL else
                "check_once" if test["name"] in ONCE else "check_if_named")
        print(word, test["name"], test["timeout"] * SLOWER, shlex.join(command))
    for word, name, seconds, script in (("check", "booted", 300, ["inside.sh"]),
                                        ("check", "restarts", 600, ["attack.sh", "restarts"]),
                                        ("check_if_named", "attacks", 5000, ["attack.sh", "attacks"])):
        path = str(pathlib.Path(guest).parents[1] / "systemd" / script[0])
        print(f"[ ! -d /run/systemd/system ] || {word} {name} {seconds}", shlex.join(["bash", path, *script[1:]]))
    for name in (*FIXTURES, *OF_GUESTS):
        word = "check_if_named" if name in FIXTURES else "check"
        print(f"{word} {name} 1200", shlex.join(["python3", f"{guest}/{name}.py", build]))
    # Only tests/vm/run gives processors frequencies, where this is named.
    print("check_if_named cpufreq 600", shlex.join(["python3", f"{guest}/cpufreq.py", build]))
    bench = pathlib.Path(guest).parents[1] / "bench/timerlat"
    print("check_if_named timerlat_bench 900", shlex.join(["python3", str(bench), "--build", build, "--seconds", "20"]))
    bench = bench.with_name("wakeups")
    print("check_if_named wakeups_bench 1500", shlex.join(["python3", str(bench), "--build", build]))
    # An emulator that does not wake up would hold up the guest to its end.
    print("check_if_named sleep 600", shlex.join(["python3", f"{guest}/clocks.py", build, "sleep"]))
    print("check_kernel_log")


if __name__ == "__main__":
    main(*sys.argv[1:3])
