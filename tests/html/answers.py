#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""answers.py BUILD_DIRECTORY [CASE...]: finding things in the page of a trace, and asking why a thread
waited, in Chromium without a screen; 77 where there is none."""

import collections
import json

from browser import run_cases
from viewer import BAR, HEAD, MORE_BEGIN, TEXT, equal, page_of

from harness import check

# 200 sleeps on CPU 0, is woken by 300 on CPU 1, waits for 400 on CPU 0, and runs. 300 is woken by an
# interrupt. 400 is preempted by 200. 500 of the same process as 200 sleeps all the time.
LINES = """\
# tracer: nop
#
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
             app-200   (    200) [000] d..2.   100.001000: sched_switch: prev_comm=app prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=400 next_prio=120
          <idle>-0     (      0) [001] d.h..   100.002000: irq_handler_entry: irq=7 name=disk
          <idle>-0     (      0) [001] d.h1.   100.002050: sched_waking: comm=server pid=300 prio=120 target_cpu=001
          <idle>-0     (      0) [001] d.h..   100.002100: irq_handler_exit: irq=7 ret=handled
          <idle>-0     (      0) [001] d..2.   100.002200: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=server next_pid=300 next_prio=120
          server-300   (    300) [001] .....   100.002500: tracing_mark_write: B|300|answer
          server-300   (    300) [001] d..2.   100.003000: sched_waking: comm=app pid=200 prio=120 target_cpu=000
          server-300   (    300) [001] d..2.   100.003001: sched_wakeup: comm=app pid=200 prio=120 target_cpu=000
          server-300   (    300) [001] .....   100.003500: tracing_mark_write: E|300
          server-300   (    300) [001] d..2.   100.004000: sched_switch: prev_comm=server prev_pid=300 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
             hog-400   (    400) [000] d..2.   100.005000: sched_switch: prev_comm=hog prev_pid=400 prev_prio=120 prev_state=R ==> next_comm=app next_pid=200 next_prio=120
             app-200   (    200) [000] .....   100.005500: tracing_mark_write: I|200|appears
             app-200   (    200) [000] d..2.   100.007000: sched_switch: prev_comm=app prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=400 next_prio=120
             hog-400   (    400) [000] d..2.   100.008000: sched_switch: prev_comm=hog prev_pid=400 prev_prio=120 prev_state=D ==> next_comm=worker next_pid=500 next_prio=120
          worker-500   (    200) [000] d..2.   100.008100: sched_switch: prev_comm=worker prev_pid=500 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          server-300   (    300) [001] .....   100.010000: tracing_mark_write: I|300|end
"""

ELEMENTS = [
    {"name": "process_name", "ph": "M", "cat": "__metadata", "pid": 200, "tid": 200, "args": {"name": "application"}},
    {"name": "send", "ph": "X", "cat": "x", "pid": 200, "tid": 200, "ts": 100005200, "dur": 300, "args": {"why": "because"}},
    {"name": "take", "ph": "X", "cat": "x", "pid": 300, "tid": 300, "ts": 100002300, "dur": 100},
    {"name": "take", "ph": "X", "cat": "x", "pid": 400, "tid": 400, "ts": 100007200, "dur": 500},
    {"name": "letter", "ph": "s", "cat": "x", "pid": 300, "tid": 300, "ts": 100002310, "id": "0x1"},
    {"name": "letter", "ph": "t", "cat": "x", "pid": 200, "tid": 200, "ts": 100005300, "id": "0x1"},
    {"name": "letter", "ph": "f", "cat": "x", "pid": 400, "tid": 400, "ts": 100007300, "id": "0x1"},
    {"name": "thing", "ph": "N", "cat": "x", "pid": 200, "tid": 200, "ts": 100005300, "id": "0x2"},
    {"name": "thing", "ph": "O", "cat": "x", "pid": 200, "tid": 200, "ts": 100005400, "id": "0x2", "args": {"snapshot": {}}},
    {"name": "thing", "ph": "D", "cat": "x", "pid": 200, "tid": 200, "ts": 100005600, "id": "0x2"},
    {"name": "memory", "ph": "v", "cat": "x", "pid": 200, "tid": 200, "ts": 100005700, "id": "0x3", "args": {"dumps": {}}},
    {"name": "clock_sync", "ph": "c", "cat": "x", "pid": 200, "tid": 200, "ts": 100005800, "args": {"sync_id": "a"}},
    {"name": "same", "ph": "=", "cat": "x", "pid": 200, "tid": 200, "ts": 100005800, "id": "0x3", "args": {"linked_id": "0x2"}},
]


def more_of(elements):
    lines = ",\n".join(json.dumps(e, ensure_ascii=False).replace("<", "\\u003c") for e in elements)
    other = json.dumps({"hostname": "here", "events": 20, "lost": 0, "incomplete": False, "warnings": []})
    return f'{{"form":1,\n"traceEvents":[\n{lines}],\n"otherData":{other}}}\n'


def page_with(test, lines=LINES, elements=ELEMENTS, name="x.html"):
    path = page_of(test, "6.12.107/graph.traced.gz", name)
    page = path.read_text()
    for begin, block in ((TEXT, lines), (MORE_BEGIN, more_of(elements))):
        at = page.index(begin) + len(begin)
        page = page[:at] + block + page[page.index("  </script>", at):]
    path.write_text(page)
    return path


def labels(browser, rows="traceViewer.rows"):
    return browser.ask(f"{rows}.all.map((r) => r.label)")


def details(browser):
    return browser.ask("document.querySelector('#details').innerText")


def type_into(browser, key, text):
    browser.key(key)
    browser.type(text)
    browser.ask("new Promise((done) => setTimeout(done, 200))")
    browser.frame()


def clear_search(browser):
    browser.ask("((input) => { input.value = ''; input.blur(); traceViewer.finder.find(''); })(document.querySelector('#search'))")


def mark_of(browser):
    return browser.ask("(({mark}) => mark && [mark.kind, mark.row.label, mark.from / 1e3])(traceViewer)")


def place_of(browser, tid, t, inside=3):
    """The place in the window of a thread's row at a time of the trace, in microseconds."""
    return browser.ask(f"""(() => {{ const v = traceViewer, row = v.rows.shown(v.rows.ofThread({tid}));
        return [v.painter.x({t} * 1e3), v.canvas.getBoundingClientRect().top + row.y - v.panel.top + {inside}]; }})()""")


def centred(browser):
    """Whether the selected row is in the middle, or as near as the first and the last rows allow."""
    return browser.ask("""(() => { const {panel, mark} = traceViewer, row = panel.rows.shown(mark.row);
        const middle = row.y + row.height / 2 - panel.top - panel.height / 2;
        const most = panel.element.scrollHeight - panel.height;
        return row.y >= panel.top && row.y + row.height <= panel.top + panel.height &&
            (Math.abs(middle) < 2 || (panel.top <= 1 && middle < 0) || (panel.top >= most - 1 && middle > 0)); })()""")


def search(test, browser):
    """Names come first; Enter goes to the row and centres it; results are in groups."""
    browser.open(page_with(test))
    type_into(browser, "/", "app")
    groups = browser.ask("[...document.querySelectorAll('#found h3')].map((h) => h.innerText)")
    equal(groups, ["threads 1", "processes 1", "slices 1", "events 9"], "groups of 'app'")
    equal(browser.ask("document.querySelector('.count').innerText"), "12 found", "the count")
    browser.key("Enter")
    equal(mark_of(browser)[:2], ["thread", "app 200"], "Enter goes to the thread")
    check(centred(browser), "the row is not centred")
    check(browser.ask("document.querySelector('#found').hidden"), "the list covers what was found")
    for kind, text in (("thread", "process\napplication 200"), ("slice", "appears"), ("event", "sched_switch")):
        browser.key("Enter")
        kind_is = mark_of(browser)[0]
        check(text in details(browser), f"'{text}' is not in {details(browser)}")
        equal(kind_is, kind, "what Enter goes to")
        check(centred(browser), f"{text}: not centred")
    browser.key("ArrowUp")
    equal(mark_of(browser)[0], "slice", "arrow up goes back")
    clear_search(browser)
    type_into(browser, "/", "because")
    equal(browser.ask("[...document.querySelectorAll('#found h3')].map((h) => h.innerText)"), ["args 1"], "arguments")
    browser.ask("document.querySelector('#found button').click()")
    check("send" in details(browser) and "why: because" in details(browser), details(browser))
    # A result that the filter hides is shown.
    clear_search(browser)
    browser.key("r")
    browser.type("cpu0")
    browser.key("Enter")
    browser.ask("traceViewer.go({tid: 300})")
    equal(browser.ask("traceViewer.bar.filter.value"), "", "the filter that hid a result")
    check(centred(browser), "the result is not in sight")
    equal(browser.said, [], "the browser complains")


def filter_and_order(test, browser):
    browser.open(page_with(test))
    for text, wanted in (("/^ser/", ["server 300"]), ("300", ["server 300"]), ("cpu1", ["CPU 1", "irq", "events"]),
                         ("CPU:0 hog", ["CPU 0", "events", "hog 400"]), ("500", ["worker 500"]), ("nothing", []),
                         ("200", ["app 200", "worker 500", "instants", "x objects", "x snapshots"])):
        type_into(browser, "r", text)
        rows = browser.ask("traceViewer.rows.all.filter((r) => r.kind !== 'group').map((r) => r.label)")
        equal(rows, wanted, f"rows of the filter '{text}'")
        browser.key("Escape")
    type_into(browser, "r", "/(/")
    equal(browser.ask("document.querySelector('#filter').getAttribute('aria-invalid')"), "true", "a wrong expression")
    browser.key("Escape")
    type_into(browser, "r", " ")
    browser.key("Escape")
    for order, wanted in (("run time", [400, 200, 300, 500]), ("delay", [200, 400, 300, 500]), ("pid", [200, 300, 400, 500])):
        browser.ask(f"(() => {{ const {{bar}} = traceViewer; bar.order.value = '{order}'; bar.sort(); }})()")
        equal(browser.ask("traceViewer.rows.all.filter((r) => r.thread).map((r) => r.thread.tid)"), wanted, f"by {order}")
        if order == "run time":
            equal(browser.ask("traceViewer.rows.ofThread(400).note"), "5 ms", "the run time")
        if order == "delay":
            equal(browser.ask("traceViewer.rows.ofThread(200).note"), "2 ms", "the delay")
    browser.ask("(() => { const {bar} = traceViewer; bar.order.value = ''; bar.sort(); })()")
    check("app 200" in labels(browser) and not browser.ask("traceViewer.rows.ofThread(400).note"), "by process")
    browser.ask("traceViewer.show(8.5e6, 9.5e6)")
    browser.key("b")
    check("server 300" not in labels(browser) and "hog 400" in labels(browser), f"blank rows: {labels(browser)}")
    browser.ask("traceViewer.show(2e6, 4e6)")
    browser.ask("new Promise((done) => setTimeout(done, 400))")
    check("server 300" in labels(browser) and "worker 500" not in labels(browser), f"blank rows: {labels(browser)}")
    browser.key("b")
    check("worker 500" in labels(browser), "blank rows are shown again")
    equal(browser.said, [], "the browser complains")


def pins(test, browser):
    """Pinned rows stay at the top, and are the same rows."""
    browser.open(page_with(test))
    x, y = place_of(browser, 300, 0)
    browser.click(230 - 14, y)
    browser.frame()
    equal(labels(browser, "traceViewer.pins.rows"), ["server 300"], "the pinned row")
    browser.ask("[traceViewer.rows.ofCpu(1), traceViewer.rows.all.find((r) => r.label === 'irq')].forEach((r) => traceViewer.pin(r))")
    browser.frame()
    equal(labels(browser, "traceViewer.pins.rows"), ["server 300", "CPU 1", "CPU 1 irq"], "pinned rows")
    browser.ask("traceViewer.panel.top = 1e6")
    browser.frame()
    top, height = browser.ask("(({top, height}) => [top, height])(document.querySelector('#pins').getBoundingClientRect())")
    check(abs(top - BAR - HEAD) < 1 and height > 50, f"pins at {top}, {height} high")
    x = browser.ask("traceViewer.painter.x(3.2e6)")
    browser.click(x, top + 3)
    equal(mark_of(browser), ["state", "server 300", 2200], "a click on a pinned row")
    check(browser.ask("traceViewer.mark.row === traceViewer.rows.ofThread(300)"), "the pinned row is another one")
    browser.drag(browser.ask("traceViewer.painter.x(1e6)"), top + 3, browser.ask("traceViewer.painter.x(6e6)"), top + 3)
    browser.ask("new Promise((done) => { const look = () => (traceViewer.sums ? done(1) : setTimeout(look, 10)); look(); })")
    check("answer" in details(browser) and "app" not in details(browser), f"a drag over pins: {details(browser)}")
    browser.ask("traceViewer.clear()")
    browser.ask("traceViewer.goToThread(300)")
    browser.key("k")
    equal(labels(browser, "traceViewer.pins.rows"), ["CPU 1", "CPU 1 irq"], "k takes the row down")
    equal(browser.said, [], "the browser complains")


def why(test, browser):
    """A runnable or sleeping thread: who woke it, where, how long it waited, and who ran meanwhile."""
    browser.open(page_with(test))
    browser.click(*place_of(browser, 200, 4000))
    said = details(browser)
    equal(mark_of(browser), ["state", "app 200", 3000], "the runnable stretch")
    for text in ("runnable", "Woken by server 300 on CPU 1", "Runnable for 2 ms, then it ran on CPU 0", "CPU 0 meanwhile",
                 "hog 400\t2 ms\t1", "Previous run: none in the trace", "Next run: CPU 0, 2 ms", "process\napplication 200"):
        check(text in said, f"'{text}' is not in {said}")
    arrows = browser.ask("traceViewer.arrows.map(({kind, from, to}) => [kind, from.row.label, from.t / 1e3, to.row.label, to.t / 1e3])")
    equal(arrows, [["wake", "server 300", 3000, "app 200", 3000]], "the arrow of the wake-up")
    browser.frame()
    # The arrow is painted: between both rows at its time, in its colour.
    painted = browser.ask("""(() => { const v = traceViewer, p = v.painter, x = Math.round(p.x(3e6));
        const [a, b] = [200, 300].map((tid) => v.rows.shown(v.rows.ofThread(tid)).y - v.panel.top);
        const data = p.context.getImageData(x - 2, Math.min(a, b) + 24, 5, Math.abs(a - b) - 24).data, seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add([...data.slice(i, i + 3)].join());
        return [...seen]; })()""")
    # A line between two pixels is blue in both, but pale.
    check(any(b - r > 60 for r, _, b in (map(int, colour.split(",")) for colour in painted)), f"no blue arrow in {painted}")
    # A sleeping stretch is ended by the same wake-up.
    browser.click(*place_of(browser, 200, 2000))
    check("sleeping" in details(browser) and "Woken by server 300 on CPU 1" in details(browser), details(browser))
    # A running one had waited.
    browser.click(*place_of(browser, 200, 6000))
    said = details(browser)
    check("Ran for 2 ms on CPU 0" in said and "Runnable for 2 ms" in said, said)
    browser.click(*place_of(browser, 400, 6000))
    check("Preempted by app 200 on CPU 0" in details(browser), details(browser))
    browser.click(*place_of(browser, 300, 2100))
    check("Woken by an interrupt, disk (irq 7), on CPU 1" in details(browser), details(browser))
    # A link of the table goes to the run.
    browser.click(*place_of(browser, 200, 4000))
    browser.ask("[...document.querySelectorAll('#details td button')].find((b) => b.innerText === 'hog 400').click()")
    equal(mark_of(browser), ["state", "hog 400", 1000], "a link of the table")
    # A CPU's row tells the same.
    browser.click(browser.ask("traceViewer.painter.x(6e6)"), BAR + HEAD + 30)
    check("app 200" in details(browser) and "Woken by server 300" in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def walk(test, browser):
    """[ and ] walk along wake-ups, f along a thread's runs."""
    browser.open(page_with(test))
    browser.click(*place_of(browser, 200, 4000))
    browser.key("[")
    equal(mark_of(browser), ["state", "server 300", 2200], "[ goes to the waker")
    browser.key("[")
    equal(mark_of(browser), ["event", "events", 2050], "[ goes to the interrupt's event")
    browser.key("[")
    check("The interrupt disk (irq 7) woke it: the path ends here." in details(browser), details(browser))
    browser.key("]")
    browser.key("]")
    equal(mark_of(browser), ["state", "app 200", 3000], "] goes back")
    browser.click(*place_of(browser, 300, 3200))
    browser.key("]")
    equal(mark_of(browser), ["state", "app 200", 3000], "] goes to the woken thread")
    browser.click(*place_of(browser, 400, 2000))
    browser.key("f")
    equal(mark_of(browser), ["state", "hog 400", 7000], "f goes to the next run")
    browser.key("f")
    check("no later run" in details(browser), f"the last run: {details(browser)}")
    browser.key("F")
    equal(mark_of(browser), ["state", "hog 400", 7000], "F without Shift")
    equal(browser.said, [], "the browser complains")


def wakes(test, browser):
    """A selected event that wakes a thread has the wake-up's arrow, tells of the thread, and walks to both."""
    browser.open(page_with(test))
    browser.ask("traceViewer.show(2e6, 4e6)")
    arrows = "traceViewer.arrows.map(({kind, from, to}) => [kind, from.row.label, from.t / 1e3, to.row.label, to.t / 1e3])"
    event = """(() => { const v = traceViewer, row = v.rows.all.find((r) => r.kind === 'events' && r.cpu.number === 1);
        return [v.painter.x(%s), v.canvas.getBoundingClientRect().top + row.y - v.panel.top + 5]; })()"""
    browser.click(*browser.ask(event % "3e6"))
    check("sched_waking" in details(browser) and "Wakes app 200, for CPU 0." in details(browser), details(browser))
    equal(browser.ask(arrows), [["wake", "server 300", 3000, "app 200", 3000]], "the arrow of the wake-up")
    browser.key("[")
    equal(mark_of(browser), ["state", "server 300", 2200], "[ goes to the waker")
    browser.key("]")
    equal(mark_of(browser), ["event", "events", 3000], "] goes back")
    browser.key("]")
    equal(mark_of(browser), ["state", "app 200", 3000], "] goes to the woken thread")
    # An interrupt's comes from the CPU.
    browser.click(*browser.ask(event % "2.05e6"))
    equal(browser.ask(arrows), [["wake", "CPU 1", 2050, "server 300", 2050]], "the arrow of an interrupt's wake-up")
    browser.ask("[...document.querySelectorAll('#details .link')].find((b) => b.innerText === 'server 300').click()")
    equal(mark_of(browser), ["state", "server 300", 2050], "the link")
    # Other events have none.
    browser.click(*browser.ask(event % "2.5e6"))
    equal([mark_of(browser)[0], browser.ask(arrows)], ["event", []], "arrows of another event")
    equal(browser.said, [], "the browser complains")


def flows(test, browser):
    """Flows are arrows; what has no picture is listed by kind."""
    browser.open(page_with(test))
    x, y = place_of(browser, 200, 5350, 7 + 8)
    browser.click(x, y)
    check("send" in details(browser) and "flow letter" in details(browser), details(browser))
    arrows = browser.ask("traceViewer.arrows.map(({kind, from, to}) => [kind, from.row.label, from.t / 1e3, to.row.label, to.t / 1e3])")
    equal(arrows, [["flow", "server 300", 2310, "app 200", 5300], ["flow", "app 200", 5300, "hog 400", 7300]], "a flow's arrows")
    browser.key("[")
    equal(mark_of(browser), ["slice", "server 300", 2300], "[ goes to the flow's previous step")
    browser.key("]")
    browser.key("]")
    equal(mark_of(browser), ["slice", "hog 400", 7200], "] goes to the next step")
    about = browser.ask("document.querySelector('.about').innerText")
    check("1 without a picture" in about, f"elements without a picture: {about}")
    browser.ask("document.querySelector('.about').click()")
    listed = browser.ask("document.querySelector('dialog[open]').innerText")
    check("without a picture: links of ids, 1" in listed and "without a picture: clock syncs, 1" in listed, listed)
    browser.ask("document.querySelector('dialog[open]').click()")
    check(not browser.ask("document.querySelector('dialog[open]')"), "a click does not close the list")
    equal(browser.ask("traceViewer.model.process(200).async.get('x objects').lanes[0].length"), 1, "an object's life")
    equal(browser.said, [], "the browser complains")


def facts(browser):
    """The pane's facts by name."""
    return dict(browser.ask("[...document.querySelectorAll('#details dl div')].map((d) => [...d.children].map((c) => c.innerText))"))


def as_the_report(test, browser):
    """Run times and delays of threads are those of the report, but for the text's microseconds."""
    capture = test.source / "tests/data/6.18.44/sched.traced"
    made = (test.run("convert", "-q", capture, "x.html"), test.run("report", "--json", "--top", "1000", "sched", capture))
    for r in made:
        check(r.status == 0, r)
    rows = json.loads(made[1].out)["reports"][0]["rows"]
    browser.open(test.dir / "x.html")
    # A delay that goes on when the trace ends is in the page only.
    whole = [r for r in rows if not r["cut"] and not r["open"] and r["delay"]["count"]]
    check(len(whole) > 20, f"{len(whole)} of {len(rows)} tasks have only whole delays")
    for row in whole:
        browser.ask(f"traceViewer.goToThread({row['tid']})")
        said = facts(browser)
        ran, runs = said["ran"].split(", ")
        delay, delays = said["runnable"].split(", ")
        is_ = [in_ns(ran), in_ns(delay), in_ns(said["longest delay"])]
        should = [row["runtime_ns"], row["delay"]["sum_ns"], row["delay"]["max_ns"]]
        count = row["runs"] + row["delay"]["count"]
        check(all(abs(a - b) < 1000 * (count + 1) for a, b in zip(is_, should)), f"{row['task']}: {is_}, not {should}")
        equal(delays, f"{row['delay']['count']} times", f"{row['task']}: delays")
    equal(browser.said, [], "the browser complains")


def in_ns(text):
    number, unit = text.split(" ")
    return float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


# Names of tasks that look like parts of the kernel's text. The third line's column is wider than its bytes.
FORGED = """\
# tracer: nop
#
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
             hog-400   (    400) [001] d..2.   100.000500: sched_waking: comm=-1 (2) [3] t pid=601 prio=120 target_cpu=000
             hog-400   (    400) [001] d..2.   100.000600: sched_waking: comm=target_cpu=7 pid=602 prio=120 target_cpu=001
  \u00e9-1 (2) [3] t-603   (    603) [001] .....   100.000700: tracing_mark_write: I|603|here
  ==> next_comm=-600   (    600) [000] d..2.   100.001000: sched_switch: prev_comm= ==> next_comm= prev_pid=600 prev_prio=120 prev_state=S ==> next_comm= ==> next_comm= next_pid=601 next_prio=120
             hog-400   (    400) [001] .....   100.002000: tracing_mark_write: I|400|end
"""


def forged_names(test, browser):
    browser.open(page_with(test, FORGED))
    wakes = browser.ask("""((v) => [601, 602].map((tid) => {
        const {tid: by, cpu, target, woken} = v.why.parseWake(v.model.threads.get(tid).wakes.data[0]);
        return [by, cpu, target, woken]; }))(traceViewer)""")
    equal(wakes, [[400, 1, 0, 601], [400, 1, 1, 602]], "who woke whom")
    equal(browser.ask("(({threads}) => [603, 600, 601].map((t) => threads.get(t).name))(traceViewer.model)"),
          ["\u00e9-1 (2) [3] t", "==> next_comm=", " ==> next_comm="], "names")
    equal(browser.ask("[...traceViewer.model.threads.get(601).state.data.slice(0, 2)]"), [2, 1], "601 waits and runs")
    equal(browser.ask("traceViewer.model.strange"), 0, "lines that are no events")
    equal(browser.said, [], "the browser complains")


# The elements that have a place in a row, in a flow that is drawn, or in a slice as its end.
DRAWN = """(() => { const {model} = traceViewer, refs = new Set(), put = (column) => {
        for (const ref of column.data.subarray(0, column.length)) if (ref < 0) refs.add(ref); };
    for (const nest of model.nests()) for (const lane of nest.lanes) put(lane.ref);
    for (const counter of model.counters.values()) put(counter.ref);
    for (const thread of model.threads.values()) put(thread.samples.ref);
    return [model.elements.length, [...refs].map((ref) => model.element(ref).ph || 'P').sort(), Object.fromEntries(model.notDrawn)]; })()"""


def each_element_is_drawn_or_listed(test, browser):
    """Of all phases of the format, each element has a picture, names something, ends a slice, or is listed."""
    capture = test.source / "tests/data/6.18.44/sched.traced"
    merge = ["--merge", test.source / "tests/data/marks/phases.json", "--merge-clock", "boottime"]
    for name in ("m.html", "m.json"):
        r = test.run("convert", "-q", *merge, capture, name)
        check(r.status == 0, r)
    trace = json.loads((test.dir / "m.json").read_text())
    is_ = collections.Counter(e["ph"] for e in trace["traceEvents"]) + collections.Counter(P=len(trace["samples"]))
    browser.open(test.dir / "m.html")
    count, drawn, listed = browser.ask(DRAWN)
    equal(count, is_.total(), "elements")
    check(len(is_) > 18 and listed.get("=") == 1, f"{is_}, listed {listed}")
    seen = collections.Counter(drawn)
    steps = browser.ask("traceViewer.model.flows.count")
    equal(steps, is_["s"] + is_["t"] + is_["f"], "steps of flows")
    for phase, number in is_.items():
        if phase not in "MEeFD)stf":
            equal(seen[phase] + listed.get(phase, 0), number, f"phase {phase}")
    # Begins without an end go on until the trace's end; an end without a begin is listed.
    for begins, ends in (("B", "E"), ("bS", "eF"), ("N", "D"), ("(", ")")):
        begun = sum(is_[p] for p in begins)
        ended = sum(is_[p] - listed.get(p, 0) for p in ends)
        check(ended <= begun, f"{ended} ends of {begun} {begins}")
    # More than a process has rows for, lone ends, and a step of a flow outside of slices.
    crowd = [{"name": "many", "ph": "b", "cat": "many", "pid": 200, "tid": 200, "ts": 100002000 + i, "id": str(i)} for i in range(40)]
    lone = [{"ph": ph, "name": "lone", "cat": "lone", "pid": 200, "tid": 200, "ts": 100004000, "id": "7"} for ph in ("E", "e", ")", "f", "~")]
    browser.open(page_with(test, LINES, [*ELEMENTS, *crowd, *lone, {"name": "never", "ph": "X", "pid": 200, "tid": 200, "ts": None}]))
    browser.ask("document.querySelector('.about').click()")
    text = browser.ask("document.querySelector('dialog[open]').innerText")
    for line in ("asynchronous slices beyond 32 at a time, 8", "ends of slices without a begin, 3", "steps of flows outside of slices, 1",
                 "phase ~, 1", "phase X, 1"):
        check(f"without a picture: {line}" in text, f"'{line}' is not in {text}")
    equal(browser.said, [], "the browser complains")


CASES = [search, filter_and_order, pins, why, walk, wakes, flows, as_the_report, each_element_is_drawn_or_listed, forged_names]


if __name__ == "__main__":
    run_cases("answers", CASES)
