# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small model of what Perfetto's trace processor (v58) infers from a trace: one row per thread
that it tells apart (its utid), the slices and the scheduling of each, and states of tasks.

It has the rules of its sorter, of its tables of processes and threads, of its trackers of
scheduling and thread states, and of its descriptors of tracks. Times are the trace's: the model
converts clock 64 only, by the offset of its snapshot."""

from perfetto_decode import compact_events, is_unreported, plain_events, wire_fields

CLONE_THREAD = 0x10000
IN_INTERRUPT = 0x18  # of common_flags: in an interrupt, in a softirq
SWAPPER = 0
BEGIN, END = 1, 2


class Thread:
    def __init__(self, utid, tid, start_ts):
        self.utid, self.tid, self.start_ts = utid, tid, start_ts
        self.process, self.end_ts, self.name = None, None, None
        self.names, self.slices, self.states, self.scheds, self.samples = [], [], [], [], 0


class Process:
    def __init__(self, upid, pid):
        self.upid, self.pid, self.end_ts = upid, pid, None
        self.cmdline, self.threads = None, []


class State:
    def __init__(self, ts, state, irq_context=None, waker=None):
        self.ts, self.state, self.dur = ts, state, None
        self.irq_context, self.waker = irq_context, waker


class Sched:
    def __init__(self, ts, cpu, thread):
        self.ts, self.cpu, self.thread, self.dur = ts, cpu, thread, None


class Tracker:
    """The tables of processes and threads."""

    def __init__(self):
        self.threads, self.processes = [], []
        self.tids, self.live, self.pids = {}, {}, {}
        self.pending = []
        idle = self.new_thread(0, None)
        self.processes.append(Process(0, 0))
        self.pids[0] = self.processes[0]
        self.bind(idle, self.processes[0])

    def new_thread(self, tid, ts):
        thread = Thread(len(self.threads), tid, ts)
        self.threads.append(thread)
        self.tids.setdefault(tid, []).append(thread)
        self.live[tid] = thread
        return thread

    def bind(self, thread, process):
        thread.process = process
        process.threads.append(thread)

    def is_alive(self, thread):
        if thread.end_ts is not None:
            return False
        if thread.process is None:
            return True
        if thread.process.end_ts is not None:
            return False
        return self.pids.get(thread.process.pid, thread.process) is thread.process

    def refresh(self, tid):
        self.live.pop(tid, None)
        for thread in reversed(self.tids.get(tid, [])):
            if self.is_alive(thread):
                self.live[tid] = thread
                return

    def thread_of(self, tid):
        return self.live.get(tid) or self.new_thread(tid, None)

    def thread_in(self, tid, process):
        found = None
        for thread in reversed(self.tids.get(tid, [])):
            if self.is_alive(thread) and (not thread.process or thread.process.pid == process.pid):
                found = thread
                break
        if found:
            self.live[tid] = found
            self.tids[tid].remove(found)
            self.tids[tid].append(found)
        thread = found or self.new_thread(tid, None)
        if not thread.process:
            self.bind(thread, process)
        self.resolve(thread)
        return thread

    def process_of(self, pid):
        if pid in self.pids:
            return self.pids[pid]
        process = Process(len(self.processes), pid)
        self.processes.append(process)
        self.pids[pid] = process
        self.update(pid, pid)
        return process

    def update(self, tid, pid):
        return self.thread_in(tid, self.process_of(pid))

    def new_process(self, ts, pid):
        recycled = self.pids.pop(pid, None)
        self.tids.pop(pid, None)
        self.live.pop(pid, None)
        self.new_thread(pid, ts)
        process = self.process_of(pid)
        for thread in recycled.threads if recycled else ():
            self.refresh(thread.tid)
        return process

    def resolve(self, thread):
        todo = [thread]
        while todo:
            known = todo.pop()
            for pair in [p for p in self.pending if known in p]:
                other = pair[0] if pair[1] is known else pair[1]
                self.pending.remove(pair)
                if not other.process:
                    self.bind(other, known.process)
                    todo.append(other)

    def associate(self, a, b):
        if bool(a.process) != bool(b.process):
            known, other = (a, b) if a.process else (b, a)
            self.bind(other, known.process)
            self.resolve(other)
        elif not a.process:
            self.pending.append((a, b))

    def end(self, tid, ts):
        thread = self.live.get(tid)
        if not thread:
            return
        thread.end_ts = ts
        self.tids[tid].remove(thread)
        self.refresh(tid)
        if thread.process and thread.process.pid == tid:
            thread.process.end_ts = ts
            self.pids.pop(tid, None)
            for other in thread.process.threads:
                self.refresh(other.tid)


class Reader:
    """Reads a trace. Afterwards: threads, processes, scheds; mismatched switches and compact events
    that it had to skip; orphans: ends of slices without a begin; how many switches are marked as not
    reported by the kernel; bundles after a loss; plain events (time, CPU, name, values);
    process trees. latest: the largest time of the machines before this one in the file."""

    def __init__(self, data, trace, latest=0):
        self.tracker = Tracker()
        self.scheds, self.pending, self.last = [], {}, {}
        self.mismatched, self.skipped, self.orphans = [], 0, 0
        self.losses = 0
        self.unreported = []  # (previous tid, next tid) of switches that the kernel left out
        self.before = set()  # tids that a CPU's first switch ends: nothing says when they began to run
        self.events, self.trees = [], []
        self.reserved, self.resolved, self.by_thread, self.by_process = {}, {}, {}, {}
        self.clock_offset = 0
        self.queues, self.max_ts = {}, latest
        raws = [value for number, value in wire_fields(data) if number == 1]
        for packet, raw in zip(trace.packet, raws):
            self.tokenize(packet, raw)
        for ts, what, *rest in self.sorted():
            getattr(self, what)(ts, *rest)
        self.threads, self.processes = self.tracker.threads, self.tracker.processes

    def push(self, queue, ts, *what):
        self.queues.setdefault(queue, []).append((ts, *what))
        self.max_ts = max(self.max_ts, ts)

    def tokenize(self, packet, raw):
        kind = packet.WhichOneof("data")
        if kind == "clock_snapshot":
            clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
            if 64 in clocks:
                self.clock_offset = clocks[6] - clocks[64]
            return
        if kind == "ftrace_events":
            self.tokenize_bundle(packet.ftrace_events, dict(wire_fields(raw))[1])
            return
        ts = packet.timestamp if packet.HasField("timestamp") else self.max_ts
        if packet.timestamp_clock_id == 64:
            ts += self.clock_offset
        if kind == "track_descriptor":
            self.reserved.setdefault(packet.track_descriptor.uuid, packet.track_descriptor)
        if kind in ("process_tree", "track_descriptor", "track_event", "perf_sample"):
            self.push(0, ts, kind, getattr(packet, kind))
        else:
            self.max_ts = max(self.max_ts, ts)

    def tokenize_bundle(self, bundle, raw):
        self.losses += bundle.lost_events
        cpu, offset = bundle.cpu, self.clock_offset if bundle.ftrace_clock in (2, 3) else 0
        compact = list(compact_events(bundle.compact_sched))
        flags = iter(bundle.compact_sched.waking_common_flags)
        for ts, _, name, values in compact:
            if name == "sched_switch":
                self.push(cpu + 1, ts + offset, "compact_switch", cpu, values)
            else:
                self.push(cpu + 1, ts + offset, "compact_waking", cpu, values, next(flags))
        raws = [value for number, value in wire_fields(raw) if number == 2]
        self.unreported += [(event.sched_switch.prev_pid, event.sched_switch.next_pid)
                            for event, value in zip(bundle.event, raws)
                            if is_unreported(dict(wire_fields(value)))]
        for ts, pid, name, values in plain_events(raw, bundle, reported=False):
            self.push(cpu + 1, ts + offset, "event", cpu, pid, name, values)

    def sorted(self):
        """The sorter's order: at equal times it stays in the queue in which it is."""
        queues = {q: sorted(events, key=lambda e: e[0]) for q, events in self.queues.items()}
        at = dict.fromkeys(queues, 0)
        while True:
            heads = sorted((events[at[q]][0], q) for q, events in queues.items() if at[q] < len(events))
            if not heads:
                return
            queue, limit = heads[0][1], heads[1][0] if len(heads) > 1 else None
            events = queues[queue]
            while at[queue] < len(events) and (limit is None or events[at[queue]][0] <= limit):
                at[queue] += 1
                yield events[at[queue] - 1]

    # Process trees, tracks, samples

    def process_tree(self, ts, tree):
        self.trees.append(tree)
        for p in tree.processes:
            self.tracker.process_of(p.ppid)
            self.tracker.process_of(p.pid).cmdline = list(p.cmdline)
            if p.cmdline_is_comm:
                self.name(self.tracker.thread_of(p.pid), ts, " ".join(p.cmdline))
        for t in tree.threads:
            self.tracker.update(t.tid, t.tgid)
            if t.name:
                self.name(self.tracker.thread_of(t.tid), ts, t.name)

    def name(self, thread, ts, name):
        thread.name = name
        thread.names.append((ts, name))

    def resolve(self, uuid):
        """The thread or process of a track; None: neither."""
        if uuid in self.resolved:
            return self.resolved[uuid]
        track = self.reserved[uuid]
        parent = self.resolve(track.parent_uuid) if track.parent_uuid else None
        if track.HasField("thread"):
            tid, pid = track.thread.tid, track.thread.pid
            owner = self.tracker.update(tid, pid)
            if self.by_thread.setdefault(owner.utid, uuid) != uuid:
                self.tracker.new_thread(tid, None)
                owner = self.tracker.update(tid, pid)
                self.by_thread[owner.utid] = uuid
        elif track.HasField("process"):
            owner = self.tracker.process_of(track.process.pid)
            if self.by_process.setdefault(owner.upid, uuid) != uuid:
                owner = self.tracker.new_process(None, track.process.pid)
                self.by_process[owner.upid] = uuid
        else:
            owner = parent
        self.resolved[uuid] = owner
        return owner

    def track_descriptor(self, ts, track):
        self.resolve(track.uuid)
        if track.HasField("thread"):
            self.tracker.update(track.thread.tid, track.thread.pid)
        elif track.HasField("process"):
            self.tracker.process_of(track.process.pid)

    def track_event(self, ts, event):
        owner = self.resolve(event.track_uuid)
        if not isinstance(owner, Thread) or not self.reserved[event.track_uuid].HasField("thread"):
            return
        if event.type == BEGIN:
            owner.slices.append([ts, None])
        elif event.type == END:
            still_open = next((s for s in reversed(owner.slices) if s[1] is None), None)
            if still_open:
                still_open[1] = ts
            else:
                self.orphans += 1

    def perf_sample(self, ts, sample):
        self.tracker.update(sample.tid, sample.pid).samples += 1

    # Ftrace

    def event(self, ts, cpu, pid, name, values):
        self.events.append((ts, cpu, name, values))
        handler = getattr(self, "on_" + name, None)
        if handler:
            handler(ts, cpu, pid, values)

    def on_task_newtask(self, ts, cpu, pid, values):
        tid = values["pid"]
        if values.get("clone_flags", 0) & CLONE_THREAD:
            source = self.tracker.thread_of(pid)
            thread = self.tracker.new_thread(tid, ts)
            self.tracker.associate(source, thread)
        else:
            self.tracker.new_process(ts, tid)
            source, thread = self.tracker.thread_of(pid), self.tracker.thread_of(tid)
        self.name(thread, ts, values.get("comm", ""))
        self.open_state(ts, thread, "R", 0, source)

    def on_sched_process_free(self, ts, cpu, pid, values):
        self.tracker.end(values["pid"], ts)

    def on_print(self, ts, cpu, pid, values):
        self.tracker.thread_of(pid)

    def on_sched_switch(self, ts, cpu, pid, values):
        following = self.tracker.thread_of(values.get("next_pid", 0))
        before, prev_pid = self.pending.get(cpu), values.get("prev_pid", 0)
        if before:
            if self.last[cpu].tid == prev_pid:
                before.dur = ts - before.ts
            else:
                self.mismatched.append((ts, cpu))
        previous = self.tracker.thread_of(prev_pid)
        if not before:
            self.before.add(prev_pid)
        self.start(ts, cpu, previous, following, values)

    def compact_switch(self, ts, cpu, values):
        following = self.tracker.thread_of(values["next_pid"])
        if cpu not in self.last:
            self.skipped += 1
            self.last[cpu] = following
            return
        if self.pending.get(cpu):
            self.pending[cpu].dur = ts - self.pending[cpu].ts
        self.start(ts, cpu, self.last[cpu], following, values)

    def start(self, ts, cpu, previous, following, values):
        self.last[cpu] = following
        self.pending[cpu] = Sched(ts, cpu, following)
        self.scheds.append(self.pending[cpu])
        following.scheds.append(self.pending[cpu])
        state = values.get("prev_state", 0) & 0xFFFF
        lost = previous.states and previous.states[-1].state != "Running"
        if not lost:
            self.close_state(ts, previous)
        self.open_state(ts, previous, "S" if state & 0xFF else "R")
        self.close_state(ts, following)
        self.open_state(ts, following, "Running")

    def on_sched_waking(self, ts, cpu, pid, values):
        self.wake(ts, self.tracker.thread_of(values["pid"]), self.tracker.thread_of(pid), None)

    def compact_waking(self, ts, cpu, values, flags):
        if cpu not in self.last:
            self.skipped += 1
            return
        self.wake(ts, self.tracker.thread_of(values["pid"]), self.last[cpu],
                  int(bool(flags & IN_INTERRUPT)))

    def wake(self, ts, thread, waker, irq_context):
        if thread.states and thread.states[-1].state != "S":
            return
        self.close_state(ts, thread)
        self.open_state(ts, thread, "R", irq_context, waker)

    def close_state(self, ts, thread):
        if thread.states:
            thread.states[-1].dur = ts - thread.states[-1].ts

    def open_state(self, ts, thread, state, irq_context=None, waker=None):
        if thread.tid:
            thread.states.append(State(ts, state, irq_context, waker))

    # Judgements

    def used(self):
        """Threads on which something hangs."""
        return [t for t in self.threads if t.scheds or t.slices or t.states or t.samples]

    def open_scheds(self):
        """Slices of scheduling that never end, but for the last one of each CPU."""
        return [s for s in self.scheds if s.dur is None and s is not self.pending[s.cpu]]

    def open_states(self):
        """States of tasks that never end, though another follows."""
        return [(t.tid, s) for t in self.threads for s in t.states[:-1] if s.dur is None]

    def most_active(self):
        """The largest number of tasks that ran at one time."""
        edges = sorted(e for s in self.scheds if s.thread.tid
                       for e in ((s.ts, 1), (s.ts + s.dur if s.dur is not None else 1 << 63, -1)))
        active = most = 0
        # At equal times ends come before begins.
        for _, step in edges:
            active += step
            most = max(most, active)
        return most
