// SPDX-License-Identifier: LGPL-2.1-or-later
// The machines of a trace of several. Each has its own range of the trace's pids and CPU numbers; people see the
// machine's own numbers.

const HOST_PIDS = 1e7; // in each range of pids

class Hosts {
  // list: otherData.hosts
  constructor(list) {
    this.all = list.map((h) => ({
      label: String(h.label),
      clock: String(h.clock),
      firstPid: +h.first_pid,
      firstCpu: +h.first_cpu,
      cpus: +h.cpus,
      syscalls: h.recording && h.recording.syscalls,
      note: Number.isFinite(h.bound_ns) ? `± ${duration(h.bound_ns)}` : 'clock unknown',
      open: true,
    }));
  }

  // The machine of a pid or tid; null: none, as of idle.
  ofPid(pid) {
    return this.all.find(({firstPid}) => pid >= firstPid && pid < firstPid + HOST_PIDS) || null;
  }

  ofCpu(number) {
    return this.all.find(({firstCpu, cpus}) => number >= firstCpu && number < firstCpu + cpus) || null;
  }
}

// `host` is null in a trace of one machine.
function ownPid(host, pid) {
  return host ? pid - host.firstPid : pid;
}

function ownCpu(host, number) {
  return host ? number - host.firstCpu : number;
}

function withHost(host, text) {
  return host ? `${host.label}: ${text}` : text;
}
