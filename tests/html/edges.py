#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""edges.py BUILD_DIRECTORY [CASE...]: what the page of a trace tells where the trace does not tell everything: at its
edges, around gaps, and in names with characters that the file escapes; in Chromium without a screen; 77 where there is
none. in_firefox.py runs it, too."""

import json
import time

from answers import clear_search, details, mark_of, page_with, place_of, type_into
from browser import run_cases
from sums import select, table
from viewer import equal

from harness import check


def line(comm, tid, cpu, us, text):
    return f"{comm:>16}-{tid:<6} ({tid:>7}) [{cpu:03}] d..2.   100.{us:06}: {text}\n"


def switch(cpu, us, prev, state, following):
    """A task is ("name", tid)."""
    return line(*prev, cpu, us, f"sched_switch: prev_comm={prev[0]} prev_pid={prev[1]} prev_prio=120 prev_state={state} ==> "
                                f"next_comm={following[0]} next_pid={following[1]} next_prio=120")


def waking(cpu, us, by, woken, target):
    return line(*by, cpu, us, f"sched_waking: comm={woken[0]} pid={woken[1]} prio=120 target_cpu={target:03}")


def mark(cpu, us, task, text):
    return line(*task, cpu, us, f"tracing_mark_write: {text}")


def lost(cpu, count=5):
    return f"# CPU:{cpu} [LOST {count} EVENTS]\n"


IDLE, A, B, T, HOG = ("<idle>", 0), ("alpha", 200), ("beta", 300), ("target", 5), ("hog", 400)


def open_lines(test, browser, *lines, elements=()):
    browser.open(page_with(test, "# tracer: nop\n#\n" + "".join(lines), list(elements)))


def states(browser, tid):
    """A thread's states: begin in microseconds, and its number."""
    return browser.ask(f"(({{state, stateStart, state: {{length}}}}) => Array.from({{length}}, (_, i) => "
                       f"[stateStart.data[i] / 1e3, state.data[i]]))(traceViewer.model.threads.get({tid}))")


def runs(browser, cpu):
    return browser.ask(f"(({{running: r}}) => Array.from({{length: r.length}}, (_, i) => "
                       f"[r.ref.data[i], r.start.data[i] / 1e3, r.end.data[i] / 1e3]))(traceViewer.model.cpus.get({cpu}))")


UNKNOWN, RUNNING, RUNNABLE, SLEEPING = range(4)


def wake_for_a_silent_cpu(test, browser):
    """The pane of a thread that was woken for a CPU of which the trace has no event."""
    open_lines(test, browser, waking(0, 1000, A, T, 3), mark(0, 9000, A, "I|200|end"))
    browser.click(*place_of(browser, 5, 4000))
    said = details(browser)
    check("Woken by alpha 200 on CPU 0" in said and "meanwhile" not in said, said)
    equal(browser.ask("[...traceViewer.model.cpus.keys()]"), [0], "CPUs")
    browser.ask("traceViewer.head.overview = null, traceViewer.dirty()")
    browser.frame()
    equal(browser.said, [], "the browser complains")


def meanwhile(browser):
    return browser.ask("[...([...document.querySelectorAll('#details table')].find((t) => t.caption.innerText.includes('meanwhile')) "
                       "|| {rows: []}).rows].slice(1).map((r) => [...r.cells].slice(0, 2).map((c) => c.innerText))")


def first_run(test, browser):
    """The task of a CPU's first switch ran since the CPU's first event. Nothing is told of the time before."""
    open_lines(test, browser, waking(1, 1000, A, T, 0), mark(0, 3000, HOG, "I|400|here"), switch(0, 5000, HOG, "R", T),
               switch(0, 7000, T, "S", IDLE), mark(0, 9000, IDLE, "I|0|end"))
    equal(runs(browser, 0), [[400, 3000, 5000], [5, 5000, 7000]], "runs")
    equal(states(browser, 400), [[3000, RUNNING], [5000, RUNNABLE]], "states of the first task")
    browser.click(*place_of(browser, 5, 2000))
    equal(meanwhile(browser), [["hog 400", "2 ms"], ["unknown", "2 ms"]], "the CPU meanwhile")
    # A wake-up of a thread that runs is no wait.
    open_lines(test, browser, mark(0, 1000, HOG, "I|400|here"), waking(1, 2000, A, HOG, 0), switch(0, 5000, HOG, "S", IDLE),
               mark(0, 9000, IDLE, "I|0|end"))
    equal(states(browser, 400), [[1000, RUNNING], [5000, SLEEPING]], "states of a thread that is woken while it runs")
    # Whether a thread that was woken before the CPU's first event waited until then is not told.
    open_lines(test, browser, waking(1, 1000, A, HOG, 0), mark(0, 3000, HOG, "I|400|here"), switch(0, 5000, HOG, "S", IDLE),
               mark(0, 9000, IDLE, "I|0|end"))
    equal(states(browser, 400)[-2:], [[3000, RUNNING], [5000, SLEEPING]], "states of a thread that was woken before")
    browser.ask("traceViewer.selectView()")
    equal(table(browser, "delays", "(tid) => tid"), {}, "delays")
    # Not after a gap: events of the CPU's first task are lost.
    open_lines(test, browser, waking(1, 1000, A, T, 0), mark(0, 2000, HOG, "I|400|here"), lost(0), mark(0, 3000, HOG, "I|400|on"),
               switch(0, 5000, HOG, "S", IDLE), switch(0, 6000, IDLE, "R", T), mark(0, 9000, T, "I|5|end"))
    equal(runs(browser, 0), [[5, 6000, 9000]], "runs after a gap")
    browser.click(*place_of(browser, 5, 2000))
    equal(meanwhile(browser), [["idle", "1 ms"], ["unknown", "4 ms"]], "the CPU meanwhile, with a gap")
    equal(browser.said, [], "the browser complains")


DELAY = "const {model, tools} = traceViewer, d = tools.delayOf(model, model.threads.get(tid))"


def delays(browser):
    browser.ask("traceViewer.selectView()")
    return {tid: row[:2] for tid, row in table(browser, "delays", "(tid) => tid").items()}


def waits_with_gaps(test, browser):
    """A wait in which events are lost on any CPU counts as no delay; the pane tells of the loss."""
    lines = [switch(0, 1000, T, "S", HOG), switch(2, 1000, A, "S", IDLE), waking(1, 2000, B, T, 0), mark(2, 2500, IDLE, "I|0|x"), lost(2),
             mark(2, 3000, IDLE, "I|0|y"), switch(0, 6000, HOG, "R", T), waking(1, 7000, B, A, 2), switch(2, 7500, IDLE, "R", A),
             switch(0, 8000, T, "R", HOG), mark(0, 9000, HOG, "I|400|end")]
    open_lines(test, browser, *lines)
    equal(delays(browser), {200: [1, 500e3], 400: [1, 2e6]}, "delays")
    equal(browser.ask(f"[5, 200].map((tid) => {{ {DELAY}; return [d.ns, d.longest]; }})"), [[1e6, 3], [500e3, 1]], "delays of threads")
    browser.ask("traceViewer.clear()")
    browser.click(*place_of(browser, 5, 4000))
    check("Events are lost in this time" in details(browser), details(browser))
    browser.click(*place_of(browser, 200, 7200))
    check("Events are lost" not in details(browser), details(browser))
    # After a gap another wake-up begins another wait.
    open_lines(test, browser, switch(0, 1000, T, "S", HOG), waking(1, 2000, B, T, 0), mark(0, 2500, HOG, "I|400|x"), lost(0),
               mark(0, 3000, HOG, "I|400|y"), waking(1, 5000, B, T, 0), switch(0, 6000, HOG, "R", T), mark(0, 9000, T, "I|5|end"))
    equal(delays(browser), {5: [1, 1e6]}, "the delay after a gap")
    equal(browser.said, [], "the browser complains")


def many_gaps(test, browser):
    """The sums of many threads take no longer with many gaps."""
    lines = []
    for i in range(15000):
        lines += [waking(0, 10 * i, A, (f"t{i % 10000}", 1000 + i % 10000), 0), lost(1), mark(1, 10 * i + 5, B, "I|300|x")]
    open_lines(test, browser, *lines)
    before = time.monotonic()
    browser.ask(f"[...traceViewer.model.threads.keys()].forEach((tid) => {{ {DELAY}; return d; }})")
    check(time.monotonic() - before < 5, f"delays: {time.monotonic() - before} s")


def who_woke_it(test, browser):
    """The pane tells that the waker is unknown, and that a thread was preempted, without a state before it."""
    open_lines(test, browser, switch(0, 1000, HOG, "R", T), switch(0, 4000, T, "S", IDLE), switch(0, 6000, IDLE, "R", HOG),
               mark(0, 9000, HOG, "I|400|end"))
    browser.click(*place_of(browser, 5, 2000))
    check("No event in the trace tells who woke it." in details(browser), details(browser))
    browser.click(*place_of(browser, 400, 3000))
    check("Preempted by target 5 on CPU 0" in details(browser), details(browser))
    browser.click(*place_of(browser, 400, 7000))
    check("Preempted by target 5 on CPU 0" in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def reused_id(test, browser):
    """The runs of a thread that exited are not those of the next one with its id."""
    open_lines(test, browser, switch(0, 1000, A, "S", T), switch(0, 2000, T, "X", IDLE), waking(1, 4000, B, T, 0),
               switch(0, 5000, IDLE, "R", T), mark(0, 9000, T, "I|5|end"))
    browser.click(*place_of(browser, 5, 7000))
    check("Previous run: none" in details(browser), details(browser))
    browser.click(*place_of(browser, 5, 1500))
    check("Next run: none" in details(browser), details(browser))
    # The exited thread is not woken: the next one is.
    browser.click(*place_of(browser, 5, 3000))
    said = details(browser)
    check("Woken by" not in said and "Runnable" not in said and "meanwhile" not in said, said)
    equal(browser.said, [], "the browser complains")


def losses_between_lines(test, browser):
    """Losses without a line between them are one gap, with the sum of what they lost, at times before the base, too."""
    first = {"name": "f", "ph": "B", "cat": "func", "pid": 200, "tid": 200, "ts": 101000000}
    # Our functions' ends have no category.
    last = {"ph": "E", "pid": 200, "tid": 200, "ts": 101000010}
    for elements in ((), (first, last)):
        open_lines(test, browser, mark(0, 1000, A, "I|200|a"), mark(0, 2000, A, "I|200|b"), lost(0, 10), lost(0, 20), lost(0, 30),
                   mark(0, 4000, A, "I|200|c"), lost(1), lost(1), mark(0, 9000, A, "I|200|d"), elements=elements)
        gaps = browser.ask("[...traceViewer.model.cpus.values()].map(({losses}) => losses.map(({from, to, count}) => "
                           "[(from - traceViewer.model.firstTime) / 1e3, (to - traceViewer.model.firstTime) / 1e3, count]))")
        end = 1000010 - 1000 if elements else 8000
        equal(gaps, [[[1000, 3000, 60]], [[0, end, 10]]], f"gaps of a trace with {len(elements)} functions")
    equal(browser.said, [], "the browser complains")


def slices_with_losses(test, browser):
    """A system call whose end may be lost is told as such."""
    call = lambda us, what: line(*A, 0, us, what)
    open_lines(test, browser, call(1000, "sys_enter: NR 1 (1, 2)"), call(2000, "sys_exit: NR 1 = 1"), call(3000, "sys_enter: NR 2 (1, 2)"),
               lost(0), call(7000, "sys_enter: NR 3 (1, 2)"), call(8000, "sys_exit: NR 3 = 1"),
               elements=[{**element("X", "whole", 3500), "dur": 2000, "tid": 300}])
    browser.ask("traceViewer.goToLane(traceViewer.model.threads.get(300).nest.lanes[0], 0)")
    check("Events are lost" not in details(browser), f"an element with its duration: {details(browser)}")
    for i, is_cut in enumerate((False, True, False)):
        browser.ask(f"traceViewer.goToLane(traceViewer.model.threads.get(200).nest.lanes[0], {i})")
        check(("Events are lost in this time" in details(browser)) == is_cut, f"{i}: {details(browser)}")
    browser.ask("traceViewer.selectView()")
    check("Events are lost in this time" in details(browser), f"sums: {details(browser)}")
    equal(browser.said, [], "the browser complains")


def missing_switches(test, browser):
    """A kernel left out the switch from idle: the task's events tell since when it ran; before, nothing is known."""
    open_lines(test, browser, switch(0, 1000, HOG, "S", IDLE), mark(0, 1500, IDLE, "I|0|a"), waking(1, 2000, A, T, 0),
               mark(0, 4000, T, "I|5|b"), mark(0, 5000, T, "I|5|c"), switch(0, 6000, T, "S", IDLE), mark(0, 8000, IDLE, "I|0|d"),
               switch(0, 9000, B, "S", HOG), mark(0, 9500, HOG, "I|400|end"))
    equal(runs(browser, 0), [[5, 4000, 6000], [400, 9000, 9500]], "runs")
    equal(states(browser, 5), [[2000, UNKNOWN], [4000, RUNNING], [6000, SLEEPING]], "states of the woken task")
    equal(states(browser, 300), [[9000, SLEEPING]], "states of a task whose run is not known")
    equal(browser.ask("traceViewer.model.cpus.get(0).unknown.slice(1).map(({from, to}) => [from / 1e3, to / 1e3])"),
          [[1500, 4000], [8000, 9000]], "times without a task")
    equal(delays(browser), {}, "delays")
    equal(browser.ask(f"((tid) => {{ {DELAY}; return [d.ns, d.longest]; }})(5)"), [0, -1], "the thread's delay")
    check("2 switches between tasks are not in the trace" in browser.ask("document.querySelector('header .about').title"), "the account")
    # Without an event of its own, nothing is known of when it ran.
    open_lines(test, browser, switch(0, 1000, HOG, "S", IDLE), waking(1, 2000, A, T, 0), switch(0, 6000, T, "S", IDLE), mark(0, 9000, IDLE, "I|0|a"))
    equal(states(browser, 5), [[2000, UNKNOWN], [6000, SLEEPING]], "states of a task without events")
    # The task that leaves has events a little longer.
    open_lines(test, browser, switch(0, 1000, A, "S", T), mark(0, 1001, A, "I|200|leaves"), switch(0, 6000, T, "S", IDLE), mark(0, 9000, IDLE, "I|0|a"))
    equal(runs(browser, 0), [[5, 1000, 6000]], "a run whose switch was followed by an event of the task before")
    equal(browser.ask("traceViewer.model.missed"), 0, "missing switches")
    equal(browser.said, [], "the browser complains")


def marks_behind_the_recording(test, browser):
    """A mark after the kernel's last event: what the kernel did until then is not known."""
    for late in ({"name": "late", "ph": "i", "s": "t"}, {"name": "late", "ph": "X", "dur": 9e5}):
        open_lines(test, browser, switch(0, 1000, IDLE, "R", A), waking(0, 3000, A, T, 1), line(*A, 0, 4000, "sys_enter: NR 1 (1, 2)"),
                   elements=[{**late, "cat": "x", "pid": 200, "tid": 200, "ts": 100000000 + (900000 if "s" in late else 3500)}])
        equal(runs(browser, 0), [[200, 1000, 4000]], "runs")
        equal([states(browser, tid) for tid in (200, 5)], [[[1000, RUNNING], [4000, UNKNOWN]], [[3000, RUNNABLE], [4000, UNKNOWN]]], "states")
        equal(browser.ask("traceViewer.model.cpus.get(0).unknown.at(-1).from"), 4e6, "from when on the task is not known")
        browser.ask("traceViewer.selectView()")
        equal(table(browser, "cpu", "(tid) => tid")[200][1], 3e6, "run time")
        equal(table(browser, "syscalls", "(i) => traceViewer.model.names[i]")["NR 1"][1], 0, "the system call")
    equal(browser.said, [], "the browser complains")


def odd_arguments(test, browser):
    """Objects as a return value and as arguments are spelled; a long name is cut."""
    open_lines(test, browser, mark(0, 1000, A, "I|200|a"), mark(0, 9000, A, "I|200|end"), elements=[
        {**element("X", "odd", 2000, {"ret": {"toString": 1}, "arguments": {"x": {"toString": 2}}}), "dur": 100},
        element("b", "a", 3000, id="0x1", cat="long" * 20000), element("e", "a", 4000, id="0x1", cat="long" * 20000)])
    browser.ask("traceViewer.goToLane(traceViewer.model.threads.get(200).nest.lanes[0], 1)")
    check('returned {"toString":1}' in details(browser) and 'x = {"toString":2}' in details(browser), details(browser))
    browser.ask("traceViewer.goToLane([...traceViewer.model.processes.get(200).async.values()][0].lanes[0], 0)")
    row = browser.ask("[...document.querySelectorAll('#details dt')].find((e) => e.innerText === 'row').nextSibling.innerText")
    check(row.startswith("longlong") and len(row) < 1000, f"{len(row)} characters")
    equal(browser.said, [], "the browser complains")


def a_run_within_a_microsecond(test, browser):
    """It counts, and so does the wait before it."""
    open_lines(test, browser, waking(1, 1000, A, T, 0), switch(0, 3000, HOG, "R", T), switch(0, 3000, T, "S", IDLE), mark(0, 9000, IDLE, "I|0|end"))
    equal(runs(browser, 0), [[5, 3000, 3000]], "runs")
    equal(delays(browser)[5], [1, 2e6], "the wait")
    browser.ask("traceViewer.goToHit({row: traceViewer.rows.ofCpu(0), kind: 'running', lane: traceViewer.model.cpu(0).running, index: 0, ref: 5, "
                "from: 3e6, to: 3e6})")
    check("Woken by alpha 200" in details(browser), details(browser))
    # Two runs begin in one microsecond.
    open_lines(test, browser, switch(0, 3000, HOG, "S", T), switch(0, 3000, T, "S", B), switch(0, 6000, B, "S", IDLE), mark(0, 9000, IDLE, "I|0|end"))
    browser.ask("traceViewer.goToRun(300, 3e6, {onCpu: true})")
    equal(browser.ask("[traceViewer.mark.kind, traceViewer.mark.ref]"), ["running", 300], "the second of two runs")
    # No time is selected, and nothing is a part of it.
    browser.ask("traceViewer.select({from: 4e6, to: 4e6, top: 0, bottom: 1e9})")
    browser.frame()
    check("NaN" not in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def wakers_that_leave_at_once(test, browser):
    """The waker's next state may begin in the microsecond in which it wakes; the path goes on from its run."""
    open_lines(test, browser, switch(1, 100, IDLE, "R", B), waking(1, 500, B, A, 0), switch(0, 1000, IDLE, "R", A), waking(0, 3000, A, T, 1),
               switch(0, 3000, A, "S", IDLE), switch(1, 4000, B, "S", T), waking(1, 6000, T, A, 0), mark(0, 9000, IDLE, "I|0|end"))
    wait = place_of(browser, 5, 3500)
    browser.click(*wait)
    browser.key("[")
    equal(mark_of(browser), ["state", "alpha 200", 1000], "[ goes to the waker's run")
    browser.key("[")
    equal(mark_of(browser), ["state", "beta 300", 100], "[ again goes back in time")
    browser.click(*wait)
    browser.ask("[...document.querySelectorAll('#details button')].find((b) => b.innerText === 'alpha 200').click()")
    equal(mark_of(browser), ["state", "alpha 200", 1000], "the link goes there, too")
    # The idle task is a waker, too, where the path ends.
    open_lines(test, browser, waking(0, 3000, IDLE, T, 1), switch(1, 4000, IDLE, "R", T), mark(0, 9000, A, "I|200|end"))
    browser.click(*place_of(browser, 5, 3500))
    browser.key("[")
    browser.key("[")
    check("The idle task woke it: the path ends here." in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def many_flows(test, browser):
    """A slice with many flows, and many steps of a long one: the pane, the arrows and the path are bounded."""
    at = lambda phase, us, tid, id: {"name": "letter", "ph": phase, "cat": "x", "pid": 200, "tid": tid, "ts": 100000000 + us, "id": hex(id)}
    one = lambda name, us, dur, tid: {"name": name, "ph": "X", "cat": "x", "pid": 200, "tid": tid, "ts": 100000000 + us, "dur": dur}
    elements = [one("before", 500, 100, 300), one("loop", 1000, 5000, 200), one("end", 7000, 1000, 300), at("s", 550, 300, 8888)]
    elements += [at("s", 1000 + i / 100, 200, i) for i in range(5000)]
    elements += [at("t", 1060, 200, 8888), at("s", 1100, 200, 9999), *(at("t", 1200 + i / 100, 200, 9999) for i in range(20000)), at("f", 7500, 300, 9999)]
    open_lines(test, browser, mark(0, 9000, A, "I|200|end"), elements=elements)
    browser.ask("traceViewer.goToLane(traceViewer.model.threads.get(200).nest.lanes[0], 0)")
    check("The first 30 of 5002 flows" in details(browser), details(browser)[:500])
    equal(browser.ask("document.querySelectorAll('#details table').length"), 30, "tables")
    check(browser.ask("traceViewer.arrows.length") < 500, "too many arrows")
    began = browser.ask("performance.now()")
    browser.key("[")
    equal(mark_of(browser)[2], 500, "[ goes to the flow that began before")
    browser.key("]")
    check(browser.ask("performance.now()") - began < 10000, "a step along flows takes long")
    equal(browser.said, [], "the browser complains")


def odd_links(test, browser):
    """A moment's name is cut between characters, so that the link can be made again."""
    path = page_with(test, "# tracer: nop\n#\n" + mark(0, 1000, A, "I|200|a") + mark(0, 9000, A, "I|200|end"), [])
    browser.open(path)
    browser.ask(f"location.hash = '#m=0,{59 * 'a'}%F0%9F%98%80b', new Promise((done) => setTimeout(done, 50))")
    browser.key("m")
    equal(browser.ask("traceViewer.moments.all.map(({name}) => name.length)").count(61), 1, "the name")
    equal(browser.said, [], "the browser complains")


def links_with_a_filter(test, browser):
    """A link has the filter and the order; one with others shows all rows, by process."""
    lines = [switch(0, 1000, A, "S", T), switch(0, 3000, T, "S", HOG), switch(0, 4000, HOG, "S", A), mark(0, 9000, A, "I|200|end")]
    open_lines(test, browser, *lines)
    seen = "traceViewer.rows.all.filter((row) => row.thread).map((row) => row.label)"
    browser.ask("(({filter, order}) => { filter.value = '/a/ target'; filter.dispatchEvent(new Event('input')); "
                "order.value = 'run time'; order.dispatchEvent(new Event('change')); })(traceViewer.bar)")
    wanted = browser.ask(seen)
    equal(wanted, ["alpha 200", "target 5"], "filtered and sorted")
    link = browser.ask("traceViewer.moments.spell()")
    for fragment, rows, words in ((link, wanted, ["/a/ target", "run time"]), ("#v=0,9000000&f=%E0%A4%A&o=bogus", None, ["", ""]),
                                  ("#v=0,9000000&f=/(/", None, None)):
        open_lines(test, browser, *lines)
        browser.ask(f"location.hash = {json.dumps(fragment)}, new Promise((done) => setTimeout(done, 50))")
        if rows:
            equal(browser.ask(seen), rows, f"rows of {fragment}")
        if words:
            equal(browser.ask("[traceViewer.bar.filter.value, traceViewer.bar.order.value]"), words, f"the bar of {fragment}")
    equal(browser.said, [], "the browser complains")


def search_for_a_time(test, browser):
    """A time since the begin, or as the text has it; the place is shown. Others are not found."""
    open_lines(test, browser, switch(0, 1000, A, "S", T), switch(0, 3000, T, "S", HOG), mark(0, 901000, A, "I|200|end"))
    for query, t in (("2.5ms", 2.5e6), ("+0.5 s", 500e6), ("1200 us", 1.2e6), ("100.0035", 2.5e6), ("100.600000", 599e6), ("100.003500000 s", 2.5e6), ("2 s", None), ("99.9", None)):
        type_into(browser, "/", query)
        times = browser.ask("traceViewer.finder.search.groups.times.map(({t}) => t - traceViewer.model.firstTime)")
        equal([round(x) for x in times], [t] if t else [], query)
        if t:
            browser.key("Enter")
            equal(browser.ask("(({painter: p, model: m, selection: s}) => [Math.round((p.from + p.to) / 2 - m.firstTime), s.from - m.firstTime])(traceViewer)"),
                  [round(t), t], f"the place of {query}")
        clear_search(browser)
    equal(browser.said, [], "the browser complains")


def facts_of_a_thread(test, browser):
    """Its states have sums, and the whole trace is no CPU's. The keys that the pane names are buttons. A slice has no waker."""
    open_lines(test, browser, switch(0, 1000, A, "S", T), waking(0, 2000, T, A, 0), switch(0, 3000, T, "D", A), switch(0, 4000, A, "S", IDLE),
               line(*A, 0, 4000, "sys_enter: NR 1 (1, 2)"), mark(0, 9000, IDLE, "I|0|end"))
    browser.ask("traceViewer.goToThread(5)")
    facts = browser.ask("Object.fromEntries([...document.querySelectorAll('#details dt')].map((e) => [e.innerText, e.nextSibling.innerText]))")
    equal(facts.get("blocked (uninterruptible)"), "6 ms", f"facts: {facts}")
    check("CPU" not in facts and "time" not in facts and "sleeping" not in facts, f"facts: {facts}")
    browser.click(*place_of(browser, 200, 2500))
    browser.ask("[...document.querySelectorAll('#details .hint button')][0].click()")
    equal(mark_of(browser), ["state", "target 5", 1000], "the button [ goes to the waker")
    browser.ask("traceViewer.goToLane(traceViewer.model.threads.get(200).nest.lanes[0], 0)")
    browser.key("[")
    check("Select a state of a thread" in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def said_without_a_pane(test, browser):
    """A match that no row shows is answered."""
    open_lines(test, browser, switch(0, 1000, A, "S", IDLE), switch(0, 9000, IDLE, "R", A))
    browser.ask("traceViewer.goToThread(200), traceViewer.clear(), traceViewer.go({tid: 0})")
    check("alpha" not in details(browser), f"what was selected before: {details(browser)}")
    check(browser.ask("document.querySelector('#details').offsetHeight > 0") and "no row" in details(browser), details(browser))
    equal(browser.said, [], "the browser complains")


def many_pins(test, browser):
    """More pinned rows than they have room for, and another height of the window."""
    tasks = [(f"task{i}", 1000 + i) for i in range(60)]
    open_lines(test, browser, *(mark(0, 1000 + i, task, f"I|{task[1]}|a") for i, task in enumerate(tasks)),
               *(mark(0, 2000 + i, task, f"I|{task[1]}|b") for i, task in enumerate(tasks)))
    browser.ask("traceViewer.rows.all.filter((row) => row.thread).forEach((row) => traceViewer.pin(row))")
    for height in (700, 500, 900):
        browser.resize(1200, height)
        browser.frame()
        browser.frame()
    equal(browser.ask("[...document.querySelectorAll('.error, #error')].map((e) => e.innerText)"), [], "an error is shown")


def element(phase, name, us, args=None, **more):
    return {"name": name, "ph": phase, "cat": "x", "pid": 200, "tid": 200, "ts": 100000000 + us, **({"args": args} if args else {}), **more}


FOUND = [
    element("X", "slice", 2000, {"type": "std::vector<int>"}, dur=100),
    element("X", "slice", 2200, {"path": "C:\\new\\table"}, dur=100),
    element("X", "slice", 2400, {"says": 'a "word"'}, dur=100),
    element("X", "slice", 2600, {"inner": {"list": [1, "deep<er>"]}}, dur=100),
    element("B", "pair", 3000),
    element("E", "pair", 3500, {"ret": "needle of E"}),
    element("C", "level", 4000, {"value": 5, "unit": "needle of C"}),
    element("s", "letter", 2050, {"why": "needle of s"}, id="0x1"),
    element("f", "letter", 5000, {"why": "needle of f"}, id="0x1"),
    element("c", "clock_sync", 4500, {"sync_id": "needle of c"}),
    element("=", "same", 4600, {"linked_id": "needle of ="}, id="0x3"),
    element("E", "lone", 4700, {"ret": "needle of a lone E"}),
]


def arguments(test, browser):
    """Search finds arguments as they are shown, and lists those that it can go to."""
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"), mark(0, 9000, A, "I|200|end"), elements=FOUND)
    for query in ("vector<int>", "VECTOR<", "C:\\new\\t", 'a "word"', "deep<er>"):
        type_into(browser, "/", query)
        equal(browser.ask("traceViewer.finder.search.groups.args.length"), 1, f"arguments with {query}")
        browser.key("Enter")
        equal(mark_of(browser)[0], "slice", f"Enter for {query}")
        clear_search(browser)
    type_into(browser, "/", "needle")
    goes = []
    for _ in range(browser.ask("traceViewer.finder.search.count")):
        browser.ask("traceViewer.setMark(null)")
        browser.key("Enter")
        goes.append(mark_of(browser))
    # The elements' order is that of the file.
    equal(goes, [["slice", "alpha 200", 3000], ["counter", "level", 4000], ["slice", "alpha 200", 2000]], "what Enter goes to")
    equal(browser.said, [], "the browser complains")


def search_for_a_loss(test, browser):
    """A line that is no event is not the event before it."""
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"), lost(0), mark(0, 2000, A, "I|200|LOST [again]"), lost(0), "EVENTS are lost\n",
               mark(0, 9000, A, "I|200|end"))
    for query, wanted in (("LOST", [2e6]), ("EVENTS", []), ("end", [9e6])):
        equal(browser.ask(f"(() => {{ const {{search}} = traceViewer.finder; for (const _ of search.run({json.dumps(query)})); "
                          "return search.groups.events.map(({t}) => t); })()"), wanted, f"events with {query}")


def search_in_steps(test, browser):
    """A search that matches each element stops for the next frame."""
    elements = [element("X", "slice", 10 * i, {"why": f"because{i}"}, dur=5) for i in range(4000)]
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"), elements=elements)
    most, found = browser.ask("""(() => { const {search} = traceViewer.finder; let most = 0, before = 0;
        for (const _ of search.run('because')) { most = Math.max(most, search.count - before); before = search.count; }
        return [most, search.count]; })()""")
    equal(found, 4000, "matches")
    check(most <= 256, f"{most} matches at a time")


def instants_at_the_edges(test, browser):
    """A selection has the instants at its begin and at its end, and no slice that ends as it begins."""
    elements = [element("X", "before", 1000, dur=1000), element("i", "instant", 2000), element("i", "instant", 2000),
                element("X", "within", 2000, dur=500), element("i", "instant", 5000), element("X", "after", 5000, dur=500)]
    open_lines(test, browser, mark(0, 500, A, "I|200|begin"), mark(0, 9000, A, "I|200|end"), elements=elements)
    select(browser, "{from: 2e6, to: 5e6, top: 0, bottom: 1e9}")
    found = table(browser, "slices", "(i) => traceViewer.model.names[i]")
    equal({name: row[:2] for name, row in found.items()}, {"instant": [3, 0], "within": [1, 500e3]}, "slices")
    select(browser, "{from: 1.5e6, to: 5.2e6, top: 0, bottom: 1e9}")
    found = table(browser, "slices", "(i) => traceViewer.model.names[i]")
    equal({name: row[:2] for name, row in found.items()},
          {"before": [1, 500e3], "instant": [3, 0], "within": [1, 500e3], "after": [1, 200e3]}, "slices that the edges cut")


def rounded_times(test, browser):
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"))
    equal(browser.ask("[999999999.7, 1e9, 1234567.4].map((t) => traceViewer.tools.absolute(traceViewer.model, t))"),
          ["101.000000000 s", "101.000000000 s", "100.001234567 s"], "times")


def deep_marks(test, browser):
    """Marks that never end: each system call ends its own slice at once, and so many lanes are drawn."""
    count = 30000
    lines = []
    for i in range(count):
        lines += [mark(0, 1000 + i * 20, A, "B|200|open"), line(*A, 0, 1005 + i * 20, "sys_enter: NR 1 (1, 2)"),
                  line(*A, 0, 1010 + i * 20, "sys_exit: NR 1 = 1")]
    began = time.monotonic()
    open_lines(test, browser, *lines)
    drawn = browser.ask("(({nest}) => nest.lanes.reduce((sum, {length}) => sum + length, 0))(traceViewer.model.threads.get(200))")
    left = browser.ask("traceViewer.model.notDrawn.get('B')")
    equal([browser.ask("traceViewer.model.threads.get(200).nest.lanes.length"), drawn + left], [256, 2 * count], "lanes, slices")
    check(time.monotonic() - began < 60, "the page takes too long")
    equal(browser.said, [], "the browser complains")


def a_flow_of_many_steps(test, browser):
    """A slice that has all steps of a flow shows the flow once."""
    common = {"pid": 200, "tid": 200, "cat": "x"}
    steps = [{"name": "flow", "ph": "s" if i == 0 else "t", "id": "0x1", "ts": 100001100 + i, **common} for i in range(3000)]
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"), mark(0, 9000, A, "I|200|end"),
               elements=[{"name": "all", "ph": "X", "ts": 100001000, "dur": 7000, **common}, *steps])
    browser.ask("(({nest}) => traceViewer.setMark({kind: 'slice', row: traceViewer.rows.ofThread(200), lane: nest.lanes[0], index: 0, "
                "ref: nest.lanes[0].ref.data[0], name: nest.lanes[0].name.data[0], from: nest.lanes[0].start.data[0], "
                "to: nest.lanes[0].end.data[0], top: 0, height: 9}))(traceViewer.model.threads.get(200))")
    equal(browser.ask("traceViewer.steps.length"), 3000, "steps")
    equal(browser.ask("[traceViewer.arrows.length, [...document.querySelectorAll('#details caption')]"
                      ".filter((c) => c.innerText.startsWith('flow')).length]"), [1000, 1], "arrows, tables")
    equal(browser.said, [], "the browser complains")


def a_name_behind_a_label(test, browser):
    """With a machine's label the text has no columns: a name must not pass for the rest of a line."""
    for name in ("controller:abcde-5[xx 9.:", "controller-01:ab-5[0]x 9.9:", "controller-012:a-5[0]x 9.9:", "controller-012:x-5 [0] f 9.9:",
                 "controller-012:x-5(1)[0]x 9.9:", "controller-0123:-5 (1) [0] 9.9:"):
        open_lines(test, browser, f"{name}-77     (     77) [000] d..2.   100.001000: tracing_mark_write: I|77|x\n")
        equal(browser.ask("[...traceViewer.model.threads.keys()].filter((tid) => tid)"), [77], "threads")
        equal(browser.ask("traceViewer.model.threads.get(77).name"), name, "the name")


def a_gap_at_the_begin(test, browser):
    """It begins with the trace. Many gaps within a pixel are painted once."""
    open_lines(test, browser, lost(1), mark(0, 900000, A, "I|200|begin"), mark(1, 950000, B, "I|300|end"))
    equal(browser.ask("traceViewer.model.cpus.get(1).losses.map(({from, to}) => [from, to].map((t) => t - traceViewer.model.firstTime))"),
          [[0, 50e6]], "the gap")
    open_lines(test, browser, *(text for i in range(4000) for text in (mark(0, 1000 + i * 20, A, "I|200|x"), lost(0))),
               mark(0, 90000, A, "I|200|end"))
    fills = browser.ask("""(() => { const v = traceViewer, c = v.painter.context, fill = c.fillRect; let fills = 0;
        c.fillRect = (...a) => { fills++; fill.apply(c, a); };
        const row = v.rows.ofCpu(0); v.painter.paintLosses(row, row.y); c.fillRect = fill; return fills; })()""")
    check(0 < fills < 2000, f"{fills} rectangles")
    equal(browser.said, [], "the browser complains")


GAP = """(() => { const {all} = traceViewer.rows; const i = all.findIndex((row, k) => k && row.y > all[k - 1].y + all[k - 1].height + 1);
    return [i, all[i].y - 2]; })()"""


def between_groups(test, browser):
    """There is no row: a drag that begins or ends there has the rows that it was over, and the view stays there."""
    threads = [line(f"task{n}", 500 + n, 0, 1000 + n, "tracing_mark_write: I|500|x").replace(f"({500 + n:>7})", f"({500 + n // 2 * 2:>7})")
               for n in range(160)]
    open_lines(test, browser, *threads, mark(0, 9000, A, "I|200|end"))
    i, gap = browser.ask(GAP)
    edge = browser.ask("traceViewer.canvas.getBoundingClientRect().top - traceViewer.panel.top")
    middle = browser.ask(f"traceViewer.rows.all.map((row) => row.y + row.height / 2).slice({i - 1}, {i + 1})")
    for begin, end, wanted in ((middle[0], gap, [i - 1, i - 1]), (gap, middle[1], [i, i]), (gap, middle[0], [i - 1, i - 1])):
        browser.drag(500, edge + begin, 700, edge + end)
        equal(browser.ask("[traceViewer.selection.first, traceViewer.selection.last].map((row) => traceViewer.rows.all.indexOf(row))"),
              wanted, f"selected rows from {begin} to {end}")
    for hide in ("", "v.rows.all.find((row) => row.y > v.panel.top).thread && (v.rows.inSight = {from: 0, to: 0}); "):
        tops = browser.ask(f"(() => {{ const v = traceViewer; v.clear(); v.panel.top = {gap}; {hide}v.placeAgain(); return v.panel.top; }})()")
        equal(tops, gap, "the view")
    equal(browser.said, [], "the browser complains")


def blank_rows_at_the_top(test, browser):
    """The row at the top goes, because it has nothing in sight: the next one is at the top then, not the page's first."""
    tasks = [(f"task{n}", 500 + n) for n in range(300)]
    open_lines(test, browser, *(mark(0, 1000 + n * 1000, task, f"I|{task[1]}|x") for n, task in enumerate(tasks)))
    top = browser.ask("""(() => { const v = traceViewer, rows = v.rows.all.filter(({thread}) => thread && thread.tid >= 540);
        v.panel.top = rows[0].y; v.rows.inSight = {from: v.model.firstTime + 60e6, to: v.model.firstTime + 299e6}; v.placeAgain();
        const tid = (row) => row.thread?.tid;
        return [v.rows.shown(rows[0]) !== undefined, tid(v.rows.firstBelow(v.panel.top)), tid(v.rows.all.find(tid))]; })()""")
    check(not top[0] and top[1] == top[2] > 540, f"the row at the top: {top}")


def a_path_ends_by_hand(test, browser):
    """A link in the pane, and following a thread, begin a new path: "]" does not lead back into the old one."""
    open_lines(test, browser, waking(0, 1000, A, T, 0), switch(0, 2000, A, "S", T), switch(0, 4000, T, "S", A), switch(0, 5000, A, "S", T),
               mark(0, 9000, A, "I|200|end"))
    for go in ("document.querySelector('#details button.link').click()", "traceViewer.walk.follow(1)"):
        browser.click(*place_of(browser, 5, 3000))
        browser.ask("void (traceViewer.walk.path = [traceViewer.mark])")
        browser.ask(go)
        equal(browser.ask("traceViewer.walk.path"), [], f"the path after {go}")


def asyncs_of_two_processes(test, browser):
    """An id is of all processes, unless it is a local one."""
    def one(phase, pid, us, **ident):
        return {"name": "job", "cat": "c", "ph": phase, "ts": 100000000 + us, "pid": pid, "tid": pid, **ident}
    open_lines(test, browser, mark(0, 1000, A, "I|200|begin"), mark(0, 9000, B, "I|300|end"),
               elements=[one("b", 200, 2000, id="0x1"), one("e", 300, 4000, id="0x1"),
                         one("b", 200, 5000, id2={"local": "0x2"}), one("e", 300, 6000, id2={"local": "0x2"}),
                         one("b", 200, 7000, id2={"global": "0x3"}), one("e", 300, 8000, id2={"global": "0x3"})])
    ends = browser.ask("[...traceViewer.model.nests()].flatMap((nest) => nest.lanes.flatMap(({start, end, name}) => "
                       "Array.from({length: start.length}, (_, i) => traceViewer.model.names[name.data[i]] === 'job' "
                       "? [[start.data[i], end.data[i]].map((t) => Math.round((t - traceViewer.model.firstTime) / 1e3))] : []).flat()))")
    equal(sorted(ends)[0::2], [[1000, 3000], [6000, 7000]], f"ended slices of {ends}")


CASES = [between_groups, blank_rows_at_the_top, a_path_ends_by_hand, asyncs_of_two_processes, wake_for_a_silent_cpu, first_run, waits_with_gaps, many_gaps, who_woke_it, reused_id, losses_between_lines,
         slices_with_losses, missing_switches, marks_behind_the_recording, odd_arguments, a_run_within_a_microsecond, wakers_that_leave_at_once, many_flows, odd_links, links_with_a_filter, search_for_a_time,
         facts_of_a_thread, said_without_a_pane, many_pins, arguments, search_for_a_loss,
         search_in_steps, instants_at_the_edges, rounded_times, deep_marks, a_flow_of_many_steps, a_name_behind_a_label,
         a_gap_at_the_begin]

if __name__ == "__main__":
    run_cases("edges", CASES)
