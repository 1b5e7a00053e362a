#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""machines.py BUILD_DIRECTORY [CASE...]: the page of two machines, in Chromium without a screen; 77 where there is none."""

import subprocess

from browser import run_cases
from viewer import equal

from harness import check

ROWS = "traceViewer.rows"
LABELS = f"{ROWS}.all.filter((row) => row.kind === 'group').map((row) => row.label)"


def open_page(test, browser):
    """Twice the same recording: what both machines have is easy to compare."""
    for name in ("pump", "valve"):
        subprocess.run([test.build / "tests/unit/generate", "mixed", "20000", test.dir / f"{name}.traced", "64le", name],
                       check=True)
    r = test.run("convert", "-q", "pump.traced", "valve.traced", "-o", "x.html")
    check(r.status == 0, f"convert: {r}")
    browser.open(test.dir / "x.html")
    equal(browser.said, [], "the browser complains")
    equal(browser.ask("traceViewer.model.strange"), 0, "lines that could not be read")
    equal(browser.ask("document.title"), "pump, valve", "the title")


def shown(browser, host):
    """Labels of the rows of a host that are visible, without its heading."""
    return browser.ask(f"{ROWS}.all.filter((row) => row.host && row.host.label === '{host}').map((row) => row.label)")


def sections(test, browser):
    """A section for each, with the same rows and numbers."""
    open_page(test, browser)
    labels = browser.ask(LABELS)
    check(labels[:2] == ["pump", "CPUs"] and labels.count("valve") == 1, f"groups: {labels}")
    valve = labels.index("valve")
    # The second one's groups may be closed, as they are far below.
    browser.ask(f"{ROWS}.groups.forEach((group) => (group.open = true)); traceViewer.placeAgain()")
    one, other = shown(browser, "pump"), shown(browser, "valve")
    own = lambda rows, name: [row.replace(f"{name}: ", "") for row in rows]
    check(len(one) > 10 and own(one, "pump") == own(other, "valve"), f"{one} {other}")
    check("CPU 0" in one and not any(row.startswith("CPU 1") and len(row) > 5 for row in other), f"CPUs: {other}")
    y = browser.ask(f"{ROWS}.all.map((row) => row.y)")
    equal(y, sorted(y), "the rows' places")
    check(valve > 1, f"{labels}")


def fold(test, browser):
    open_page(test, browser)
    place = f"""(() => {{ const row = {ROWS}.all.find((r) => r.kind === 'group' && r.label === 'pump');
        traceViewer.panel.top = 0;
        const box = traceViewer.canvas.getBoundingClientRect();
        return [box.left + 40, box.top + row.y + row.height / 2]; }})()"""
    before = shown(browser, "pump"), shown(browser, "valve")
    browser.click(*browser.ask(place))
    equal((shown(browser, "pump"), shown(browser, "valve")), ([], before[1]), "rows while pump is folded")
    check("pump" in browser.ask(LABELS), "its heading is gone")
    # A jump unfolds it.
    browser.ask("traceViewer.goToThread([...traceViewer.rows.byThread.keys()].find((tid) => tid < 2e7))")
    equal(shown(browser, "pump"), before[0], "rows after a jump")


def words(test, browser):
    """Filter and search know labels and a machine's own numbers."""
    open_page(test, browser)

    def filtered(text):
        browser.ask(f"traceViewer.bar.filter.value = '{text}'; traceViewer.bar.apply()")
        return [len(shown(browser, host)) for host in ("pump", "valve")]
    tid, own = browser.ask("""(() => { const tid = [...traceViewer.rows.byThread.keys()].find((t) => t > 2e7);
        return [tid, tid % 1e7]; })()""")
    pump, valve = filtered("valve")
    check(pump == 0 and valve > 10, f"rows: {pump} and {valve}")
    pump, valve = filtered(str(own))
    check(pump == valve and pump > 0, f"rows of {own}: {pump} and {valve}")
    equal(filtered(f"valve:{own}"), [0, valve], f"rows of {own} of valve")
    equal(filtered("cpu0"), [filtered("pump:cpu0")[0]] * 2, "rows of CPU 0")
    equal(filtered(str(tid)), [0, 0], "rows of a number that only the file has")
    filtered("")
    found = browser.ask(f"""(async () => {{ await traceViewer.finder.find('valve: ');
        const {{threads, processes}} = traceViewer.finder.search.groups;
        return [threads.length, processes.length, threads.every(({{tid}}) => tid >= 2e7),
            traceViewer.finder.describe(threads[0]).title]; }})()""")
    check(found[0] > 10 and found[1] and found[2] and found[3].startswith("valve: "), f"found: {found}")


def pane(test, browser):
    """What is selected is told with its machine, and that one's numbers."""
    open_page(test, browser)
    facts = """(() => { const facts = {};
        for (const name of document.querySelectorAll('#details dt')) facts[name.textContent] = name.nextSibling.textContent;
        return facts; })()"""
    for host, first in (("pump", 1e7), ("valve", 2e7)):
        tid, cpu = browser.ask(f"""(() => {{ const {{model, rows}} = traceViewer;
            for (const cpu of model.cpus.values())
                for (let i = 0; i < cpu.running.length; i++) {{
                    const tid = cpu.running.ref.data[i];
                    if (tid > {first} && tid < {first} + 1e7 && rows.ofThread(tid)) {{
                        traceViewer.goToRun(tid, cpu.running.start.data[i], {{onCpu: true}});
                        return [tid, cpu.number];
                    }}
                }}
        }})()""")
        told = browser.ask(facts)
        check(told["host"].startswith(f"{host} · clock tied within"), f"{told}")
        check(told["thread"].endswith(f" {tid - int(first)}") and told["process"].startswith(f"{host}: "), f"{told}")
        first_cpu = browser.ask(f"traceViewer.model.hosts.all.find((h) => h.label === '{host}').firstCpu")
        check(told["CPU"] == str(cpu - first_cpu) and told["row"] == f"CPU {cpu - first_cpu}", f"{told}")
        tip = browser.ask("traceViewer.hover.tell(traceViewer.mark, {pageX: 0, pageY: 0}), traceViewer.hover.tip.textContent")
        check(f"{host}: CPU {cpu - first_cpu}" in tip, f"the tooltip: {tip}")


if __name__ == "__main__":
    run_cases("machines", [sections, fold, words, pane])
