#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""questions.py BUILD_DIRECTORY [CASE...]: what a new user asks, answered by a few keys and clicks in the page alone, and
compared with the report on the same recording; in Chromium without a screen; 77 where there is none. in_firefox.py
runs it, too."""

import json

from answers import details, facts, in_ns
from browser import run_cases
from viewer import equal

from harness import check

# The page has the text's microseconds.
ROUNDING = 2000
SUMS = "new Promise((done) => { const look = () => (traceViewer.sums ? done(1) : setTimeout(look, 10)); look(); })"
TABLE = "[...document.querySelectorAll('#details table')].find((t) => t.caption.innerText.startsWith('{}'))"


class Hand:
    """A person's keys and clicks, which it counts."""

    def __init__(self, browser):
        self.browser = browser
        self.count = 0

    def key(self, key):
        self.count += 1
        self.browser.key(key)
        self.browser.frame()

    def click(self, x, y):
        self.count += 1
        self.browser.click(x, y)
        self.browser.frame()

    def click_on(self, element):
        """Clicks on the element that a script returns."""
        x, y = self.browser.ask(f"""(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}});
            const r = e.getBoundingClientRect(); return [r.x + Math.min(r.width, 40) / 2, r.y + r.height / 2]; }})()""")
        top = self.browser.ask(f"(() => {{ const e = {element}; return document.elementFromPoint({x}, {y}) === e; }})()")
        check(top, f"something covers {element}")
        self.click(x, y)

    def zoom_to(self, t, y):
        """Drags around a time, and zooms to that."""
        self.count += 2
        x = self.browser.ask(f"traceViewer.painter.x({t})")
        self.browser.drag(x - 20, y, x + 20, y)
        self.browser.key("z")
        self.browser.frame()


def open_with_report(test, browser, capture, reports):
    """Opens the page of a recording. Returns the reports on it, by name."""
    capture = test.source / "tests/data" / capture
    for r in (test.run("convert", "-q", capture, "x.html"), test.run("report", "--json", "--top", "10000", reports, capture)):
        check(r.status == 0, r)
    browser.open(test.dir / "x.html")
    document = json.loads(r.out)
    return document, {one["name"]: one["rows"] for one in document["reports"]}


def near(is_, should, what, rest=ROUNDING):
    check(abs(is_ - should) <= rest, f"{what}: {is_}, not {should}")


def the_longest_wait(test, browser):
    """Which thread waited longest for a CPU, and for whom?"""
    _, reports = open_with_report(test, browser, "6.18.44/sched.traced", "sched,timehist")
    worst = max((r for r in reports["sched"] if r["tid"]), key=lambda r: r["delay"]["max_ns"] or 0)
    hand = Hand(browser)
    hand.key("v")
    browser.ask(SUMS)
    waits = TABLE.format("waits for a CPU")
    hand.click_on(f"[...{waits}.querySelectorAll('th button')].find((b) => b.innerText === 'longest')")
    equal(browser.ask(f"{waits}.rows[1].cells[0].innerText"), f"{worst['task']} {worst['tid']}", "who waited longest")
    hand.click_on(f"{waits}.querySelector('td button')")
    x, y = browser.ask("""(({painter, panel, selection, canvas}) => [painter.x(selection.from) + 1,
        canvas.getBoundingClientRect().top + selection.top - panel.top + 3])(traceViewer)""")
    hand.click(x, y)
    said = details(browser)
    check("runnable" in said and facts(browser)["row"] == f"{worst['task']} {worst['tid']}", f"the state there: {said}")
    near(in_ns(facts(browser)["duration"]), worst["delay"]["max_ns"], "how long")
    # For whom: who ran on that CPU between the wait's begin and end.
    run = min((r for r in reports["timehist"] if r["tid"] == worst["tid"]), key=lambda r: abs((r["delay_ns"] or 0) - worst["delay"]["max_ns"]))
    end = run["at_ns"] - run["run_ns"]
    begin = end - run["delay_ns"]
    others = {}
    for r in reports["timehist"]:
        shared = min(r["at_ns"], end) - max(r["at_ns"] - (r["run_ns"] or 0), begin)
        if r["cpu"] == run["cpu"] and r["tid"] and shared > 0:
            name = f"{r['task']} {r['tid']}"
            others[name] = others.get(name, 0) + shared
    rows = browser.ask("""[...document.querySelectorAll('#details table')].flatMap((t) => [...t.rows].slice(1).map((r) =>
        [...r.cells].map((c) => c.innerText))).filter(([name]) => !/ /.test(name) || / \\d+$/.test(name))""")
    seen = {name: in_ns(ns) for name, ns, _ in rows if name in others}
    for name, ns in others.items():
        near(seen.get(name, 0), ns, f"for {name}")
    check(hand.count <= 4, f"{hand.count} keys and clicks")
    equal(browser.said, [], "the browser complains")


def what_a_cpu_did(test, browser):
    """What did CPU 1 do at 12.5 ms?"""
    document, reports = open_with_report(test, browser, "6.18.44/sched.traced", "timehist")
    t = document["first_ns"] + 12.5e6
    run, = [r for r in reports["timehist"] if r["cpu"] == 1 and r["at_ns"] - r["run_ns"] <= t < r["at_ns"]]
    hand = Hand(browser)
    place = "traceViewer.model.firstTime + 12.5e6"
    y = browser.ask("(({rows, panel, canvas}) => canvas.getBoundingClientRect().top + rows.ofCpu(1).y - panel.top + 9)(traceViewer)")
    for _ in range(2):
        hand.zoom_to(place, y)
    hand.click(browser.ask(f"traceViewer.painter.x({place})"), y)
    said = facts(browser)
    equal([said["thread"], said["CPU"]], [f"{run['task']} {run['tid']}", "1"], "who ran")
    near(in_ns(said["duration"]), run["run_ns"], "how long")
    check(hand.count <= 5, f"{hand.count} keys and clicks")
    equal(browser.said, [], "the browser complains")


def the_hottest_function(test, browser):
    """Which function burnt most?"""
    for capture in ("6.12.107/graph.traced.gz", "7.2.13/graph.traced.gz"):
        _, reports = open_with_report(test, browser, capture, "functions")
        wanted = sorted(reports["functions"], key=lambda r: -r["self_ns"])
        hand = Hand(browser)
        hand.key("v")
        browser.ask(SUMS)
        rows = browser.ask(f"[...{TABLE.format('slices by name')}.rows].slice(1, 9).map((r) => [...r.cells].map((c) => c.innerText))")
        equal(rows[0][0], wanted[0]["function"], "the function")
        for name, total, alone, count, *_ in rows:
            row, = [r for r in wanted if r["function"] == name]
            equal(int(count), row["count"], name)
            # The report has the times that the tracer took, the page those of its events.
            near(in_ns(total), row["total_ns"], name, 2 * ROUNDING * row["count"])
            near(in_ns(alone), row["self_ns"], f"{name} alone", 2 * ROUNDING * row["count"])
        check(len(rows) == 8 and hand.count == 1, f"{len(rows)} rows, {hand.count} keys and clicks")
    equal(browser.said, [], "the browser complains")


CASES = [the_longest_wait, what_a_cpu_did, the_hottest_function]

if __name__ == "__main__":
    run_cases("questions", CASES)
