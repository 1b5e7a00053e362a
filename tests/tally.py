#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns a meson testlog.json into lines "pass|fail|skip <TAB> name <TAB> reason"."""

import json
import sys

OUTCOME = {
    "OK": "pass",
    "EXPECTEDFAIL": "pass",
    "SKIP": "skip",
}


def reason(result):
    """The last thing that a test said is why it skipped or failed."""
    said = (result.get("stdout", "") + "\n" + result.get("stderr", "")).strip()
    last = said.splitlines()[-1].strip() if said else "it said nothing"
    return last.replace("\t", " ")


def main(path, prefix):
    with open(path, encoding="utf-8") as log:
        for line in log:
            result = json.loads(line)
            outcome = OUTCOME.get(result["result"], "fail")
            why = ""
            if outcome == "skip":
                why = reason(result)
            elif outcome == "fail":
                why = result["result"].lower() + ": " + reason(result)
            name = result["name"].removeprefix("traced:")
            print(outcome, prefix + " " + name, why, sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:3])
