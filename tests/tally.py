#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns a meson testlog.json into lines "pass|fail|skip <TAB> name <TAB> reason". A test that
passes with some cases skipped counts as passed, and each of these cases as skipped. A line
"took <TAB> name <TAB> seconds <TAB> CPU seconds" says what a case took."""

import json
import re
import sys

OUTCOME = {
    "OK": "pass",
    "EXPECTEDFAIL": "pass",
    "SKIP": "skip",
}
CASES = 3
CASE_CHARS = 250


def output(result):
    return result.get("stdout", "") + "\n" + result.get("stderr", "")


def reason(result):
    """The last line of a test's output is the reason why it was skipped or failed."""
    said = output(result).strip()
    return said.splitlines()[-1].strip() if said else "it said nothing"


def failed_cases(result):
    """What the harness, a script and cmocka say of the first failed cases: a log may be far away, or cut."""
    said = re.findall(r"^(?:FAILED: |\[  FAILED  \] )(.+)$", output(result), re.M)
    return "".join(f"; {case[:CASE_CHARS]}" for case in said[:CASES])


def skipped_cases(result):
    """{name: reason}, from the output of tests/integration/harness.py and cmocka."""
    said = output(result)
    cases = dict(re.findall(r"^skipped: ([^:\n]+): (.+)$", said, re.M))
    for name in re.findall(r"^\[ +SKIPPED +\] (\w+)$", said, re.M):
        cases[name] = "not on this machine, or in this build"
    return cases


def times_of_cases(result):
    """(case, seconds, CPU seconds), from the output of tests/integration/harness.py."""
    return re.findall(r"^ok: (.+) \(([\d.]+) s, CPU ([\d.]+) s\)$", output(result), re.M)


def main(path, prefix):
    with open(path, encoding="utf-8") as log:
        for line in log:
            result = json.loads(line)
            outcome = OUTCOME.get(result["result"], "fail")
            # cmocka's exit status is 0 even if every case was skipped.
            if outcome == "pass" and re.search(r"^\[ +PASSED +\] 0 test", output(result), re.M):
                outcome = "skip"
            why = ""
            if outcome == "skip":
                why = reason(result)
            elif outcome == "fail":
                why = result["result"].lower() + ": " + reason(result) + failed_cases(result)
            name = result["name"].removeprefix("traced:")
            print(outcome, prefix + " " + name, why.replace("\t", " "), sep="\t")
            if outcome == "pass":
                for case, reason_of_it in skipped_cases(result).items():
                    print("skip", f"{prefix} {name}, {case}", reason_of_it.replace("\t", " "), sep="\t")
            for case, seconds, cpu in times_of_cases(result):
                print("took", f"{prefix} {name}, {case}", seconds, cpu, sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:3])
