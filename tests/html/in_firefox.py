#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""in_firefox.py BUILD_DIRECTORY [CASE...]: the page in Firefox without a screen; 77 where there is none."""

import answers
import edges
import form
import keys
import packed
import pictures
import questions
import sums
from browser import run_cases
from firefox import Firefox, program
from viewer import CANVAS_COLOURS, equal

from harness import check, skip


def painted(test, browser):
    """A page with a strict policy loads from a file, and is painted."""
    browser.open(answers.page_with(test))
    check(browser.ask(CANVAS_COLOURS) > 5, "the trace is not painted")
    head = browser.ask("new Set(new Uint32Array(document.querySelector('#head').getContext('2d')"
                       ".getImageData(0, 0, 1400, 52).data.buffer)).size")
    check(head > 2, "the overview is not painted")
    equal(browser.said, [], "errors")


def foreign_script(test, browser):
    path = answers.page_with(test)
    path.write_text(path.read_text().replace("<body>", "<body><script>window.foreign = 1</script>"))
    browser.open(path)
    equal(browser.ask("window.foreign"), None, "a script that the policy does not name")


if __name__ == "__main__":
    if program() is None:
        skip("needs firefox-esr")
    run_cases("firefox", [painted, foreign_script, *answers.CASES, *edges.CASES, *questions.CASES, *form.CASES, *keys.CASES, *sums.CASES,
                          *packed.CASES, *pictures.CASES], Firefox)
