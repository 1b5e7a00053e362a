#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs after a meson install, as a service under the systemd that `run` boots.
. "${0%/*}/lib.sh"

journalctl --update-catalog
check "sysusers made the group" getent group traced
check "the socket unit starts" systemctl start traced.socket
check "the socket is the group's" test "$(stat -c %G:%a /run/traced/traced.sock)" = traced:660
check "no daemon runs before it is needed" fails systemctl -q is-active traced.service

check "root records" tracectl record -t 500ms -o root.json
check "that is a whole trace" whole_json root.json
check "it was the daemon that was activated" systemctl -q is-active traced.service
check "with one capability, to see the kernel's symbols" grep -qx 'CapBnd:	0000000400000000' \
  "/proc/$(daemon_pid)/status"
units=$(systemctl show -P FragmentPath traced.service)
for unit in traced.service traced-export@.service; do
  check "$unit is exposed to 1.5 of 10 at most" systemd-analyze security --offline=true --threshold=15 \
    "${units%/*}/$unit"
done
check "it told that it is ready" property Type '^notify'
check "a member of the group records" in_group tracectl record -t 300ms -o /tmp/member.json
check "that is a whole trace too" whole_json member.json
check "the file is the member's" test "$(stat -c %u member.json)" = 65534
check "another user is refused" refused in_no_group tracectl record -t 100ms -o /tmp/other.json
check "and told why" grep -q 'hint:.*traced' <(in_no_group tracectl status 2>&1)
check "and gets no file" test ! -e other.json

# Sessions have owners.
check "a member starts a session" in_group tracectl start --name mine -e sched
check "another member can't end it" told "another user's" other_in_group tracectl cancel mine
check "nor read it" told "another user's" other_in_group tracectl stop mine -o /tmp/stolen.json
check "nor snapshot it" told "another user's" other_in_group tracectl snapshot mine -o /tmp/stolen.json
check "nor see it" fails grep -q mine <(other_in_group tracectl status)
check "nor put marks into it" told "nothing is recording" other_in_group tracectl mark 'not mine'
check "and has no file of it" test ! -e stolen.json
check "root sees it" grep -q mine <(tracectl list)
check "its owner ends it" in_group tracectl cancel mine

# Rights of users, and where they are set.
conf=$(traced --help | sed -n 's/.*read FILE and FILE.d.*(\(.*\))$/\1/p')
check "no kernel addresses for users" told "raw_addresses = yes" in_group tracectl record -t 30s -o /tmp/raw.traced
check "no functions of others" told "functions = yes" in_group tracectl record -p function -t 100ms -o /tmp/f.json
check "no probes" told "only root" in_group tracectl record --kprobe 'p:x do_exit' -t 100ms -o /tmp/p.json
check "no top-level buffer" told "top_level = yes" in_group tracectl record --top-level -t 100ms -o /tmp/t.json
check "no more memory than is theirs" told "buffer_memory" in_group tracectl record -b 1T -t 100ms -o /tmp/b.json
check "a session to reload in" tracectl start --name through -e sched
mkdir -p "$conf.d"
printf '[users]\nsessions = 1\nduration_max = 1s\nevents_denied = sched:sched_switch timer\n' >"$conf.d/50-users.conf"
check "a reload" systemctl reload traced
check "is done" journal --grep 'configuration read again'
check "and the session goes on" records "$(daemon_pid)"
check "it is whole" tracectl stop through -o through.json
check "a denied event is left out, and that is said" partly in_group tracectl record -e sched -t 200ms -o /tmp/denied.txt
check "indeed" fails grep -q 'sched_switch:' denied.txt
check "the others are there" grep -q 'sched_wak' denied.txt
check "what is denied alone is refused" told "events_denied" in_group tracectl record -e timer -t 100ms -o /tmp/d.txt
check "a longer recording is refused" told "duration_max" in_group tracectl record -t 2s -o /tmp/long.txt
check "root is not bound" tracectl record -e timer -t 1100ms -o root.txt
check "a user's one session" in_group tracectl start --name one -e irq
check "is the only one" told "limit" in_group tracectl start --name two -e irq
check "until it ends" in_group tracectl cancel one
printf '[users]\nsessions = many\n' >"$conf.d/50-users.conf"
check "a reload of nonsense" systemctl reload traced
check "is told of" journal MESSAGE_ID=d4763e03935a4f09b614e10e67080811
check "and changes nothing" told "duration_max" in_group tracectl record -t 2s -o /tmp/long.txt
rm "$conf.d/50-users.conf"
check "back to what it was" systemctl reload traced
check "as it is" eventually in_group tracectl record -t 1100ms -o /tmp/again.txt
check "the journal knows who recorded" journal CLIENT_UID=65534 MESSAGE_ID=b80e1af434d045ba8f095a86eee018a6
check "and how long" journal CLIENT_UID=65534 MESSAGE_ID=0f6da06ef77e4e4bb3b46a6d7ef7399b --grep 'recorded (1\.[1-9]|[2-9]\.|[1-9][0-9]+\.)'
check "and who was refused" journal MESSAGE_ID=95f84be9c6a94b09b747d6084164a788 --grep 'uid 65534.*limit'
check "the catalog explains it" grep -q 'asked for what this user may not do' \
  <(journalctl -q -x -u traced.service MESSAGE_ID=95f84be9c6a94b09b747d6084164a788 -n 1)

# Counts for Prometheus, as docs/service.md says.
metrics=/var/lib/prometheus/traced.prom
mkdir -p "${metrics%/*}" /etc/systemd/system/traced.service.d
printf '[Service]\nReadWritePaths=%s\n' "${metrics%/*}" >/etc/systemd/system/traced.service.d/metrics.conf
printf '[daemon]\nmetrics = %s\n' "$metrics" >"$conf.d/60-metrics.conf"
check "a unit that may write metrics" systemctl daemon-reload
check "starts with them" systemctl restart traced
check "they tell of the daemon" grep -qx 'traced_up 1' "$metrics"
check "to everybody" test "$(stat -c %a "$metrics")" = 644
check "a member's session" in_group tracectl record -t 200ms -o /tmp/counted.txt
check "is counted" eventually grep -Eq '^traced_session_events_total\{session="[^"]+",user="65534"\} [1-9]' "$metrics"

check "a session starts detached" tracectl start --name lab -e sched
daemon=$(daemon_pid)
check "it has its instance" records "$daemon"
check "the loop comes before other programs" test "$(ps -o ni= -p "$daemon")" -eq -5
# Some sandboxes of whole machines let nobody raise a limit.
! prlimit --nice=30:30 true 2>/dev/null ||
  check "and the thread that reads the rings before the loop" grep -qx ' *-10' <(ps -L -o ni= -p "$daemon")
check "the status names it" eventually property StatusText 'lab|[1-9]'
check "a mark is taken" tracectl mark 'half way'
check "it stops and is written" tracectl stop lab -o lab.json
check "with the mark" grep -q 'half way' lab.json
check "its instance goes" eventually fails records "$daemon"

# An order of a fleet, if the agent is built, and its store and broker are here: guests have none.
if systemctl cat traced-agent.service >/dev/null 2>&1 && [ -d "${0%/*}/integration" ]; then
  check "the agent is exposed to 1.5 of 10 at most" systemd-analyze security --offline=true --threshold=15 \
    "${units%/*}/traced-agent.service"
  printf '[users]\nraw_addresses = traced-agent\n' >"$conf.d/70-reports.conf"
  check "its reports are allowed" systemctl reload traced
  check "an order is recorded and sent" python3 "${0%/*}/agent.py" "${conf%/*}"
  rm "$conf.d/70-reports.conf"
  check "and no longer" systemctl reload traced
fi

# An export that nobody reads stands still.
stalled_export() { # session; sets client and exporter
  tracectl start --name "$1" -e raw_syscalls >/dev/null 2>&1
  find /usr/share >/dev/null
  tracectl stop "$1" --format json -o - >&9 2>"$1.err" &
  client=$!
  eventually pgrep -x traced-export >/dev/null
  sleep 0.3
  exporter=$(pgrep -x traced-export)
}
of_exporter() { # regular expression for a line of its status
  grep -Eqx "$1" "/proc/$exporter/status"
}
mkfifo pipe && exec 9<>pipe
stalled_export stalled
check "it is the user traced's" of_exporter "Uid:(	$(id -u traced)){4}"
check "in no group that matters" of_exporter "Gid:(	65534){4}"
check "without a capability" of_exporter 'CapBnd:	0+'
check "with filters of system calls" of_exporter 'Seccomp:	2'
check "which leave it Landlock" grep -q landlock_restrict_self <(systemctl show -P SystemCallFilter traced-export@1.service)
daemon=$(daemon_pid)
check "it is killed" kill -9 "$exporter"
wait $client
check "its client is told" test $? = 1
check "in words" grep -q 'exporter ended without a result' stalled.err
check "what it had recorded is kept" grep -q 'tracectl convert' stalled.err
check "the daemon lives" test "$(daemon_pid)" = "$daemon"
exec 9>&-
rm pipe && mkfifo pipe && exec 9<>pipe
stalled_export left
check "its client is killed" kill -9 $client
check "it ends with it" eventually fails pgrep -x traced-export
exec 9>&-

# The same as in the guests of tests/vm; other kernels may refuse these to everybody.
if head -c 1 /sys/kernel/tracing/available_filter_functions >/dev/null 2>&1; then
  check "the service traces functions" tracectl record -p function -l 'vfs_*' -o functions.txt -- ls -l /proc/self/
  check "by name" grep -q 'vfs_[a-z]* <-' functions.txt
  check "and graphs of calls" tracectl record -p function_graph -g vfs_read -l 'vfs_*' -l '*_read*' -o graph.txt -- ls -l /proc/self/
  check "by name, too" grep -q '|  vfs_read()' graph.txt
  check "and makes probes" tracectl record --kprobe 'p:opened vfs_open' -o probes.txt -- ls -l /proc/self/
  check "that hit" grep -q ': opened: (vfs_open+' probes.txt
  check "and are gone" fails grep -q /opened /sys/kernel/tracing/kprobe_events
fi

check "a session to crash in" tracectl start --name crash -e sched
daemon=$(daemon_pid)
check "the daemon is killed" kill -9 "$daemon"
check "a request brings it back" eventually tracectl status
check "it is another one" test "$(daemon_pid)" != "$daemon"
check "nothing of the crashed session is left" eventually fails instances "$daemon"

check "a session to stop in" tracectl start --name end -e sched
daemon=$(daemon_pid)
check "the service stops" systemctl stop traced.socket traced.service
check "without an error" property Result '^success$'
check "nothing of the session is left" fails instances "$daemon"
check "nor of the socket's daemon" fails pgrep -x traced
check "the journal knows the sessions" journal SESSION=lab

# Without the service, root's tracectl starts a daemon of its own.
check "a recording without a service" tracectl record --name alone -e sched -t 200ms -o alone.txt
check "is in the journal" recorded SESSION=alone CLIENT_UID=0 MESSAGE_ID=b80e1af434d045ba8f095a86eee018a6
check "and how long" recorded SESSION=alone MESSAGE_ID=0f6da06ef77e4e4bb3b46a6d7ef7399b

finish
