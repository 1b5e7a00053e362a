#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""viewer.py BUILD_DIRECTORY [CASE...]: the page of a trace, in Chromium without a screen; 77 where there is none.

viewer.py --picture PAGE OUT [SCRIPT]: what the page looks like, light in OUT-light.png, dark in OUT-dark.png, after
the script has run in it. viewer.py --measure PAGE...: what it costs to load pages and to paint their frames;
--peer-trace-viewer before a page: catapult's trace2html made it."""

import base64
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from browser import Browser, program, run_cases
from measure import OURS, TRACE_VIEWER, measure

from harness import check, skip

TEXT = '  <script class="trace-data" type="application/text">\n'
MORE_BEGIN = '  <script class="trace-more" type="application/json">\n'
FRAME_MS = 1000 / 60
LABELS, HEAD, BAR = 230, 52, 38  # as they are laid out: pixels of the names, the ruler, the bar above it

# One of each: two CPUs, a gap on the second, marks of each kind, text that would end the block, and
# a line that is no event.
LINES = """\
# tracer: nop
#
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0     (      0) [000] d..2.   100.000000: sched_waking: comm=app pid=200 prio=120 target_cpu=000
          <idle>-0     (      0) [000] d..2.   100.001000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=200 next_prio=120
             app-200   (    200) [000] .....   100.001500: tracing_mark_write: B|200|outer
             app-200   (    200) [000] .....   100.002000: tracing_mark_write: B|200|<\\/script><\\!-- in it
             app-200   (    200) [000] .....   100.002500: irq_handler_entry: irq=7 name=disk
             app-200   (    200) [000] .....   100.002600: irq_handler_exit: irq=7 ret=handled
             app-200   (    200) [000] .....   100.002600: softirq_entry: vec=4 [action=BLOCK]
             app-200   (    200) [000] .....   100.002700: softirq_exit: vec=4 [action=BLOCK]
             app-200   (    200) [000] .....   100.003000: tracing_mark_write: C|200|depth|5
             app-200   (    200) [000] .....   100.003500: tracing_mark_write: S|200|load|1
             app-200   (    200) [000] .....   100.004000: tracing_mark_write: E|200
             app-200   (    200) [000] .....   100.005000: tracing_mark_write: E|200
             app-200   (    200) [000] .....   100.005500: tracing_mark_write: C|200|depth|2
             app-200   (    200) [000] .....   100.006000: tracing_mark_write: F|200|load|1
             app-200   (    200) [000] d..2.   100.007000: sched_switch: prev_comm=app prev_pid=200 prev_prio=120 prev_state=D ==> next_comm=a ==> b-9 [1] next_pid=201 next_prio=120
     a ==> b-9 [-201   (    200) [001] .....   100.007500: cpu_frequency: state=2400000 cpu_id=1
     a ==> b-9 [-201   (    200) [001] d..2.   100.008000: sched_switch: prev_comm=other prev_pid=300 prev_prio=120 prev_state=S ==> next_comm=app next_pid=202 next_prio=120
             app-202   (    200) [001] .....   100.008500: sys_enter: NR 1 (1, 2)
# CPU:1 [LOST 1234 EVENTS]
             app-202   (    200) [001] .....   100.010000: sys_exit: NR 1 = 1
this is no event
             app-202   (    200) [001] d..2.   100.011000: sched_switch: prev_comm=app prev_pid=202 prev_prio=120 prev_state=R ==> next_comm=swapper/1 next_pid=0 next_prio=120
     a ==> b-9 [-201   (    200) [000] d..2.   100.012000: sched_switch: prev_comm=a ==> b-9 [1] prev_pid=201 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
"""

MORE = """\
{"form":1,
"traceEvents":[
{"name":"process_name","ph":"M","cat":"__metadata","pid":200,"tid":200,"args":{"name":"\\u003c/script>"}},
{"name":"thread_name","ph":"M","cat":"__metadata","pid":200,"tid":200,"args":{"name":"app"}},
{"name":"late","ph":"X","cat":"x","pid":200,"tid":203,"ts":100003000,"dur":1000,"args":{"why":"because"}},
{"name":"early","ph":"X","cat":"x","pid":200,"tid":203,"ts":100001000.5,"dur":500},
{"name":"inner","ph":"B","cat":"x","pid":200,"tid":203,"ts":100003500},
{"ph":"E","cat":"x","pid":200,"tid":203,"ts":100003700},
{"name":"now","ph":"i","cat":"x","pid":200,"tid":203,"ts":100006000,"s":"t"}],
"samples":[
{"cpu":0,"tid":200,"ts":100004000,"name":"cycles","sf":"2","weight":1}],
"stackFrames":{
"1":{"category":"app","name":"main"},
"2":{"category":"app","name":"f","parent":"1"}},
"otherData":{"hostname":"here","events":21,"lost":1234,"incomplete":false,"warnings":[]}}
"""


def page_of(test, capture, name):
    data = test.source / "tests/data" / capture
    (test.dir / "x.traced").write_bytes(gzip.decompress(data.read_bytes()))
    result = test.run("convert", "-q", "x.traced", name)
    check(result.status == 0, f"{result}")
    return test.dir / name


def page_with(test, lines, name="x.html", more=MORE):
    """The page of a recording, with other lines."""
    path = page_of(test, "6.12.107/graph.traced.gz", name)
    page = path.read_text()
    for begin, block in ((TEXT, lines), (MORE_BEGIN, more)):
        at = page.index(begin) + len(begin)
        page = page[:at] + block + page[page.index("  </script>", at):]
    path.write_text(page)
    return path


def lane(browser, nest):
    """Slices of a nest, by lanes, in microseconds of the trace."""
    return browser.ask(f"""{nest}.lanes.map((lane) => Array.from({{length: lane.length}}, (_, i) =>
        [traceViewer.model.names[lane.name.data[i]], lane.start.data[i] / 1e3, lane.end.data[i] / 1e3]))""")


def equal(is_, should, what):
    check(is_ == should, f"{what}: {is_}, not {should}")


def the_model(test, browser):
    """Each kind of event is in its place."""
    browser.open(page_with(test, LINES))
    model = "traceViewer.model"
    equal(browser.said, [], "the browser complains")
    equal(browser.ask(f"[{model}.time.length, {model}.strange, {model}.cut, {model}.base]"), [21, 1, False, 100], "events")
    running = browser.ask(f"""[0, 1].map((n) => {{ const {{running}} = {model}.cpu(n);
        return Array.from({{length: running.length}}, (_, i) =>
            [running.ref.data[i], running.start.data[i] / 1e3, running.end.data[i] / 1e3]); }})""")
    # After the gap the running task is unknown: 202 is not drawn into it.
    equal(running, [[[200, 1000, 7000], [201, 7000, 12000]], [[202, 8000, 8500]]], "who ran")
    loss = browser.ask(f"{model}.cpu(1).losses.map((l) => [l.from / 1e3, l.to / 1e3, l.count])")
    equal(loss, [[8500, 10000, 1234]], "the gap")
    thread = f"{model}.thread(200)"
    equal(lane(browser, f"{thread}.nest"),
          [[["outer", 1500, 5000]], [["</script><!-- in it", 2000, 4000]]], "marks")
    equal(browser.ask(f"Array.from({thread}.state.data.slice(0, {thread}.state.length))"), [2, 1, 4], "states of 200")
    equal(browser.ask(f"Array.from({model}.thread(202).state.data.slice(0, {model}.thread(202).state.length))"),
          [1, 0, 2], "states of 202: running, not known, runnable")
    equal(browser.ask(f"{model}.thread(201).name"), "a ==> b-9 [1]", "a name that looks like more")
    equal(lane(browser, f"{model}.cpu(0).irq"), [[["disk (irq 7)", 2500, 2600]]], "irqs")
    equal(lane(browser, f"{model}.cpu(0).softirq"), [[["BLOCK", 2600, 2700]]], "softirqs")
    equal(lane(browser, f"{model}.process(200).async.get('load')"), [[["load", 3500, 6000]]], "asynchronous")
    counters = browser.ask(f"""[...{model}.counters.values()].map((c) =>
        [c.label, Array.from(c.value.data.slice(0, c.value.length))])""")
    equal(counters, [["depth", [5, 2]], ["CPU 1 frequency (kHz)", [2400000]]], "counters")
    check("</script><!-- in it" in browser.ask(f"{model}.eventText(3)"), "the event's text keeps the backslash")
    equal(lane(browser, f"{model}.thread(203).nest"),
          [[["early", 1000.5, 1500.5], ["late", 3000, 4000], ["now", 6000, 6000]], [["inner", 3500, 3700]]], "elements")
    equal(browser.ask(f"{model}.element({model}.thread(203).nest.lanes[0].ref.data[1]).args.why"), "because", "an argument")
    equal(browser.ask(f"{model}.stack('2')"), ["f", "main"], "a stack")
    equal(browser.ask(f"Array.from({model}.thread(200).samples.time.data.slice(0, 1))"), [4e6], "samples")
    equal(browser.ask(f"{model}.process(200).name"), "</script>", "a name")


def functions(test, browser):
    """Slices of functions, as the JSON's elements tell them."""
    browser.open(page_of(test, "6.12.107/graph.traced.gz", "x.html"))
    elements = (test.dir / "x.html").read_text().count('"cat":"func"')
    sums = browser.ask("""(() => { const nests = [...traceViewer.model.threads.values()].map((t) => t.nest.lanes);
        return [nests.flat().reduce((n, lane) => n + lane.length, 0), Math.max(...nests.map((l) => l.length))]; })()""")
    check(elements / 2 <= sums[0] <= elements and sums[1] > 2, f"{sums} of {elements} elements")
    equal(browser.said, [], "the browser complains")


def click_and_type(test, browser):
    browser.open(page_with(test, LINES))
    row = browser.ask("traceViewer.rows.all.find((r) => r.thread && r.thread.tid === 200).y")
    x = browser.ask("traceViewer.painter.x(3e6)")
    middle = BAR + HEAD + row + 7 + 16 + 8
    browser.click(x, middle)
    details = browser.ask("document.querySelector('#details').innerText")
    check("</script><!--" in details and "2 ms" in details and "app-200" in details, f"clicked: {details}")
    browser.drag(browser.ask("traceViewer.painter.x(1.5e6)"), BAR + HEAD + 25, browser.ask("traceViewer.painter.x(8e6)"), middle)
    browser.ask("new Promise((done) => { const look = () => (traceViewer.sums ? done(1) : setTimeout(look, 10)); look(); })")
    details = browser.ask("document.querySelector('#details').innerText")
    for word in ("selected", "app 200", "run time by thread", "outer", "3.5 ms", "blocked", "irq_handler_entry"):
        check(word in details, f"'{word}' is missing from the selection: {details}")
    check("depth" not in details, f"a row outside of the selection: {details}")
    span = "traceViewer.painter.to - traceViewer.painter.from"
    before = browser.ask(span)
    browser.key("w", up=False)
    for _ in range(5):
        browser.frame()
    browser.key("w")
    check(browser.ask(span) < before, "W does not zoom")
    browser.key("0")
    browser.frame()
    equal(browser.ask(span), before, "0 shows all")
    browser.key("/")
    browser.call("Input.insertText", text="MARK_WRITE")
    browser.ask("new Promise((done) => setTimeout(done, 300))")
    browser.key("Enter")
    equal(browser.ask("document.querySelector('.count').innerText"), "1 of 8 found", "search")
    check("B|200|outer" in browser.ask("document.querySelector('#details').innerText"), "the first match")
    equal(browser.said, [], "the browser complains")


def report(test, browser):
    """The tables are the report's; a time leads to its place in the picture."""
    capture = test.source / "tests" / "data" / "6.12.107/mixed.traced.gz"
    for r in (test.run("convert", "-q", "--report", "sched,timehist", capture, "x.html"),
              test.run("report", "--json", "--top", "200", "sched,timehist", capture)):
        check(r.status == 0, r)
    wanted = json.loads(r.out)["reports"]
    browser.open(test.dir / "x.html")
    check(browser.ask("traceViewer.report.hidden"), "the report is shown without being asked for")
    browser.key("t")
    tables = browser.ask("[...traceViewer.report.querySelectorAll('table')].map((t) => [...t.rows].map((r) => "
                         "[...r.cells].map((c) => c.innerText)))")
    equal([len(t) - 1 for t in tables], [len(t["rows"]) for t in wanted], "rows")
    for table, report in zip(tables, wanted, strict=True):
        at = table[0].index("task")
        equal([row[at] for row in table[1:]], [row["task"] for row in report["rows"]], f"tasks of {report['name']}")
    row = next(i for i, r in enumerate(wanted[0]["rows"]) if r["max_at_ns"] and r["tid"])
    at = tables[0][0].index("max at")
    browser.ask(f"traceViewer.report.querySelector('table').rows[{row + 1}].cells[{at}].querySelector('button').click()")
    middle, base, tid = browser.ask("""(() => { const v = traceViewer, p = v.painter;
        return [(p.from + p.to) / 2, v.model.base, v.rows.at(v.selection.top).thread.tid]; })()""")
    wanted = wanted[0]["rows"][row]
    check(abs(middle + base * 1e9 - wanted["max_at_ns"]) < 1000, f"centred at {middle + base * 1e9}, not {wanted['max_at_ns']}")
    equal(tid, wanted["tid"], "the row")
    links_of_cells(browser, wanted)
    browser.key("t")
    check(browser.ask("traceViewer.report.hidden"), "the report is not hidden again")
    # A page without one has no such button.
    browser.open(page_with(test, LINES))
    check("report" not in browser.ask("document.querySelector('header').innerText"), "a button without a report")
    equal(browser.said, [], "the browser complains")


def links_of_cells(browser, row):
    """A click on a task, a thread's id or a CPU goes to its row, and does not choose the table's row for the plots."""
    cell = "traceViewer.report.querySelectorAll('table')[{}].rows[{}].cells[{}].querySelector('button')"
    heads = browser.ask("[...traceViewer.report.querySelectorAll('table')].map((t) => [...t.rows[0].cells].map((c) => c.innerText))")
    for name in ("task", "tid"):
        browser.ask("traceViewer.clear()")
        i = browser.ask("[...traceViewer.report.querySelector('table').rows].findIndex((tr) => [...tr.cells].some((c, i) => "
                        f"i === {heads[0].index('tid')} && c.innerText === '{row['tid']}'))")
        browser.ask(f"{cell.format(0, i, heads[0].index(name))}.click()")
        equal(browser.ask("[traceViewer.mark.kind, traceViewer.mark.row.thread.tid]"), ["thread", row["tid"]], f"a click on {name}")
    cpu = browser.ask(f"(() => {{ const b = {cell.format(1, 1, heads[1].index('cpu'))}; b.click(); return +b.innerText; }})()")
    is_ = browser.ask("(({selection: s, rows, whole, model}) => [rows.at(s.top).cpu.number, rows.at(s.top).height === s.bottom - s.top, "
                      "s.from === model.firstTime && s.to === model.lastTime])(traceViewer)")
    equal(is_, [cpu, True, True], "a click on a CPU")
    check(not browser.ask("traceViewer.report.querySelector('.chosen')"), "a link chooses the row")
    # The idle task has no row of its own: no link.
    idle = browser.ask("[...traceViewer.report.querySelectorAll('td')].filter((td) => td.innerText === '-1' && td.querySelector('button')).length")
    equal(idle, 0, "links without a thread")


def names_of_system_calls(test, browser):
    """They have the machine's names, and a mark keeps its own."""
    lines = LINES.replace("B|200|outer", "B|200|NR 1")
    for syscalls, name in (('{"0":"read","1":"write"}', "write"), ('{"0":"read"}', "NR 1"), ("[]", "NR 1"), ("null", "NR 1")):
        more = MORE.replace('"otherData":{', f'"otherData":{{"syscalls":{syscalls},')
        browser.open(page_with(test, lines, more=more))
        nest = "traceViewer.model.threads.get({}).nest"
        equal([slice[0] for lane_ in lane(browser, nest.format(202)) for slice in lane_], [name], "the system call")
        check("NR 1" in str(lane(browser, nest.format(200))), "the mark")
    equal(browser.said, [], "the browser complains")


def dark_and_light(test, browser):
    """The gap is hatched, the slices have their colours, and the background is right."""
    browser.open(page_with(test, LINES))
    seen = []
    for dark in (False, True):
        browser.dark(dark)
        pixels = browser.ask("""(() => { const v = traceViewer, p = v.painter;
            const at = (t, kind, n) => { const row = v.rows.all.find((r) => r.kind === kind && r.cpu.number === n);
                return Array.from(p.context.getImageData(p.x(t), row.y + 3, 40, 12).data); };
            return [at(3e6, 'running', 0), at(8.6e6, 'running', 1), at(11.5e6, 'running', 1)]; })()""")
        colours = [{tuple(p[i:i + 4]) for i in range(0, len(p), 4)} for p in pixels]
        busy, gap, free = colours
        check(len(free) == 1, f"the running task is unknown, but the page shows {free}")
        check(not free & busy, f"the slice has the background's colour {free}")
        check(any(r > 150 and g < 160 and b < 160 for r, g, b, _ in gap), f"the gap is not hatched: {gap}")
        seen += free
    check(sum(seen[0][:3]) > 700 and sum(seen[1][:3]) < 150, f"the backgrounds are {seen}")


def cut_anywhere(test, browser):
    """Events before the cut are shown, with a message that the rest is missing."""
    whole = page_of(test, "6.12.107/mixed.traced.gz", "x.html").read_bytes()
    begin = whole.index(TEXT.encode()) + len(TEXT)
    end = whole.index(b"  </script>", begin)
    for at in (begin + (end - begin) // 2, end - 3, end + 5, end + 60, end + (len(whole) - end) // 2, len(whole) - 400):
        (test.dir / "cut.html").write_bytes(whole[:at])
        browser.open(test.dir / "cut.html")
        lines = whole[begin:min(at, end)].decode(errors="replace").split("\n")[:-1]
        events = sum(not line.startswith("#") for line in lines)
        equal(browser.ask("traceViewer.model.time.length"), events, f"events of a page cut at {at - end} from the text's end")
        check("was cut" in browser.ask("document.querySelector('.about').innerText"), f"cut at {at - end}: it does not say so")
    browser.open(test.dir / "x.html")
    check("cut" not in browser.ask("document.querySelector('.about').innerText"), "the whole page says that it is cut")


def cut_functions(test, browser):
    """A page whose elements come first may have these alone, or nothing."""
    whole = page_of(test, "6.12.107/graph.traced.gz", "x.html").read_bytes()
    more = whole.index(MORE_BEGIN.encode()) + len(MORE_BEGIN)
    text = whole.index(TEXT.encode()) + len(TEXT)
    check(more < text, "the text comes first")
    for at in (more, more + 5, (more + text) // 2, text - 3, text, text + 3, (text + len(whole)) // 2,
               whole.rindex(b"\n  </script>") + 1):
        (test.dir / "cut.html").write_bytes(whole[:at])
        browser.open(test.dir / "cut.html")
        equal(browser.said, [], f"the browser complains of a page cut at {at - text} from the text's begin")
        check("was cut" in browser.ask("document.querySelector('.about').innerText"), f"cut at {at - text}: it does not say so")
    browser.open(test.dir / "x.html")
    check("cut" not in browser.ask("document.querySelector('.about').innerText"), "the whole page says that it is cut")


def many(test, browser):
    """No frame does more work than the visible pixels and rows need."""
    count = 100000
    subprocess.run([test.build / "tests/unit/generate", "sched", str(count), test.dir / "x.traced"], check=True)
    check(test.run("convert", "-q", "x.traced", "x.html").status == 0, "convert")
    browser.open(test.dir / "x.html")
    equal(browser.ask("traceViewer.model.time.length"), count, "events")
    painted = browser.ask("""(() => { const v = traceViewer; v.show(v.whole.from, v.whole.to); v.painter.paint(0, {});
        return [v.painter.painted.slices, v.rows.all.length * v.painter.pixels]; })()""")
    check(500 < painted[0] < painted[1], f"painted {painted[0]} slices, of {painted[1]} pixels at most")
    # Repeated, no longer than a frame may take at 60 a second; CPU time, so that a busy machine
    # does no harm.
    browser.ask("traceViewer.show(traceViewer.whole.from, traceViewer.whole.to); 0")
    costs = [browser.frames("traceViewer.zoom(n % 2 ? 1.02 : 1 / 1.02, 900)", 30)[0] for _ in range(4)]
    check(min(costs) < FRAME_MS, f"a frame's scripts take {costs} ms")
    again = browser.ask("""(() => { const v = traceViewer; v.painter.paint(0, {}); const {painted} = v.painter;
        v.painter.paint(0, {hover: v.painter.hit(700, 10, 0)}); return painted === v.painter.painted; })()""")
    check(again, "a visible part was painted again")
    # Each CPU's busy time is the sum of its slices, in the table too.
    sums = browser.ask("""(async () => { const v = traceViewer; await v.select({...v.whole, top: 0, bottom: 1e9});
        const all = [...v.sums.tables.cpu.values()].reduce((n, s) => n + s.ns, 0);
        return [all, [...v.model.cpus.values()].reduce((n, c) => n + c.running.busy.at(-1), 0)]; })()""")
    check(sums[0] > 0 and abs(sums[0] - sums[1]) < 1, f"the sums are {sums}")


def pixels(test, browser):
    """A pixel has the colour of the longest slice that begins in it, filled as far as all slices
    together fill it. For states it has the colour of the most important state, and the share for
    which the thread ran. Each pixel is checked separately."""
    subprocess.run([test.build / "tests/unit/generate", "sched", "100000", test.dir / "x.traced"], check=True)
    check(test.run("convert", "-q", "x.traced", "x.html").status == 0, "convert")
    browser.open(test.dir / "x.html")
    wrong = browser.ask("""(() => { const v = traceViewer, p = v.painter, seen = {slices: 0, states: 0, wrong: []};
        const {pixels, theme} = p;
        for (const part of [1, 0.31, 0.05]) {
            v.show(v.whole.from, v.whole.from + (v.whole.to - v.whole.from) * part);
            p.paint(0, {});
            const scale = pixels / (p.to - p.from);
            // Compares the line of the image at y, where everything is narrower than a pixel.
            const compare = (kind, y, start, end, shadeOf) => {
                const line = p.lines.findIndex(([top]) => top === y);
                const starts = Array.from({length: pixels + 1}, () => []);
                const wide = new Set();
                start.forEach((t, i) => {
                    const x = Math.floor((t - p.from) * scale);
                    if (x < 0 || x >= pixels) return;
                    starts[x].push(i);
                    if ((end[i] - t) * scale >= 0.99) for (let k = x - 1; (k - 1) / scale + p.from < end[i]; k++) wide.add(k);
                });
                for (let x = 1; x < pixels; x++) {
                    if (!starts[x].length || wide.has(x)) continue;
                    const is = p.words[line * pixels + x];
                    const should = shadeOf(starts[x], p.from + (x + 1) / scale, scale);
                    seen[kind]++;
                    // Sums of many numbers are rounded.
                    if (![-1, 0, 1].some((d) => should(d) === is)) seen.wrong.push([kind, y, x, is, should(0)]);
                }
            };
            for (const row of v.rows.all) {
                if (row.y + row.height > p.height) break;
                if (row.kind === 'running') {
                    const [{start, end, ref, length: n}] = row.lanes;
                    const [s, e] = [start, end].map((column) => Array.from(column.data.slice(0, n)));
                    compare('slices', row.y, s, e, (own, until, scale) => {
                        const longest = own.reduce((a, i) => (e[i] - s[i] > e[a] - s[a] ? i : a), own[0]);
                        const part = own.reduce((sum, i) => sum + Math.min(e[i], until) - s[i], 0) * scale;
                        return (d) => theme.shadesOf(ref.data[longest])[Math.max(72, Math.min(255, (part * 255) | 0) + d)];
                    });
                } else if (row.strip) {
                    const {stateStart, state} = row.thread, n = state.length;
                    const s = Array.from(stateStart.data.slice(0, n)), e = [...s.slice(1), v.model.lastTime];
                    const order = ['exited', 'running', 'not known', 'sleeping', 'stopped', 'runnable', 'blocked'];
                    const names = ['not known', 'running', 'runnable', 'sleeping', 'blocked', 'stopped', 'exited'];
                    const rank = (i) => order.indexOf(names[state.data[i]]);
                    compare('states', row.y, s, e, (own, until, scale) => {
                        const first = own.reduce((a, i) => (rank(i) > rank(a) ? i : a), own[0]);
                        const ran = own.reduce((sum, i) => sum + (state.data[i] === 1 ? Math.min(e[i], until) - s[i] : 0), 0) * scale;
                        return (d) => theme.states[state.data[first]][ran > 0 ? Math.round(Math.max(0.25, Math.min(1, ran)) * 255) + d : 0];
                    });
                }
            }
        }
        return [seen.slices, seen.states, seen.wrong.length, seen.wrong.slice(0, 5)]; })()""")
    check(wrong[0] > 500 and wrong[1] > 5000, f"{wrong[:2]} pixels to look at")
    equal(wrong[2:], [0, []], f"of {wrong[:2]} pixels")


CANVAS_COLOURS = """(() => { const {canvas, context} = traceViewer.painter;
    return new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size; })()"""


def painted_at_once(test, browser):
    """Not a frame later: until then the canvas is black, also for one who takes a picture."""
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source="window.requestAnimationFrame = () => 0")
    try:
        browser.open(page_with(test, LINES), frame=False)
        check(browser.ask(CANVAS_COLOURS) > 5, "the trace is not painted")
        browser.ask("traceViewer.resize()")
        check(browser.ask(CANVAS_COLOURS) > 5, "a new size is not painted")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def picture_of_the_document(test, browser):
    """The command of docs/html.md, with each program that is there."""
    text = (test.source / "docs/html.md").read_text()
    command, = re.findall(r"^    (chromium-headless-shell (?:.*\\\n)*.*)$", text, re.MULTILINE)
    page_with(test, LINES).rename(test.dir / "out.html")
    for name, start in (("chromium-headless-shell", "chromium-headless-shell"), ("chromium", "chromium --headless")):
        if not shutil.which(name):
            continue
        check(start in text, f"{start}: not in docs/html.md")
        mine = command.replace("chromium-headless-shell", start + (" --no-sandbox" if os.geteuid() == 0 else ""))
        (test.dir / "out.png").unlink(missing_ok=True)
        done = subprocess.run(["bash", "-c", f"{mine} --user-data-dir=$PWD/profile"], cwd=test.dir, timeout=120,
                              capture_output=True, check=False)
        check(done.returncode == 0 and (test.dir / "out.png").is_file(), f"{mine}: {done}")
        data = base64.b64encode((test.dir / "out.png").read_bytes()).decode()
        browser.call("Page.navigate", url="about:blank")
        colours = browser.ask(f"""new Promise((done) => {{ const image = new Image();
            image.onload = () => {{
                const canvas = new OffscreenCanvas(image.width, image.height), c = canvas.getContext('2d');
                c.drawImage(image, 0, 0);
                const {{data}} = c.getImageData(0, {BAR + HEAD}, image.width, 200);
                done([image.width, image.height, new Set(new Uint32Array(data.buffer)).size]);
            }};
            image.src = 'data:image/png;base64,{data}'; }})""")
        check(colours[:2] == [1600, 1000] and colours[2] > 5, f"{mine}: {colours}")


def picture(path, out, script=None):
    with Browser(1600, 1000) as browser:
        browser.open(pathlib.Path(path).resolve())
        if script:
            browser.ask(script)
        for name in ("light", "dark"):
            browser.dark(name == "dark")
            browser.picture(f"{out}-{name}.png")


def main():
    if sys.argv[1:2] not in (["--picture"], ["--measure"]):
        run_cases("viewer", [the_model, functions, click_and_type, report, names_of_system_calls, dark_and_light, cut_anywhere, cut_functions, many,
                             pixels, painted_at_once, picture_of_the_document])
    elif program() is None:
        skip("needs chromium-headless-shell (scripts/deps test)")
    elif sys.argv[1] == "--picture":
        picture(*sys.argv[2:])
    else:
        kind = OURS
        for word in sys.argv[2:]:
            if word != "--peer-trace-viewer":
                measure(word, kind)
            kind = TRACE_VIEWER if word == "--peer-trace-viewer" else OURS


if __name__ == "__main__":
    main()
