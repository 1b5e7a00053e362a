#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""checks.py BUILD_DIRECTORY GUEST_DIRECTORY: prints the shell script that runs all
checks in a guest: the build's integration tests and the guest's own."""

import json
import pathlib
import shlex
import subprocess
import sys

# Of seconds on the host: an emulated machine is that much slower.
SLOWER = 5
# A real init system, protoc and its Python classes are there on the host only.
NOT_IN_GUESTS = {"systemd", "perfetto_trace"}
# What people type is the same for each kernel: these run if they are named.
IF_NAMED = {"bad_input", "cli", "examples"}


def main(build, guest):
    done = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True)
    print(f". {shlex.quote(guest)}/runner.sh")
    for test in json.loads(done.stdout):
        if not any(s.endswith(":integration") for s in test["suite"]) or test["name"] in NOT_IN_GUESTS:
            continue
        command = [*test["cmd"]]
        # A script's interpreter here may be elsewhere in the guest.
        if pathlib.Path(command[0]).name.startswith("python"):
            command[0] = "python3"
        env = [f"{k}={v}" for k, v in test["env"].items()]
        if env:
            command = ["env", *env, *command]
        word = "check_if_named" if test["name"] in IF_NAMED else "check"
        print(word, test["name"], test["timeout"] * SLOWER, shlex.join(command))
    for name in ("kernel", "functions", "probes"):
        print(f"check {name} 300", shlex.join(["python3", f"{guest}/{name}.py", build]))
    for name in ("fixtures", "function_fixtures"):
        print(f"check_if_named {name} 300", shlex.join(["python3", f"{guest}/{name}.py", build]))
    print("check_kernel_log")


if __name__ == "__main__":
    main(*sys.argv[1:3])
