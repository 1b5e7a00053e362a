#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs as a service under the systemd that `run` boots. The last line is PASS or FAIL.
set -uo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:$PATH
failed=0
cd /tmp || exit

check() { # what, command...
  local what=$1 said
  shift
  if said=$("$@" 2>&1); then
    echo "ok: $what"
  else
    echo "FAILED: $what: $*"
    printf '%s\n' "$said" | tail -n 12 | sed 's/^/    /'
    failed=1
  fi
}
fails() {
  ! "$@"
}
property() { # property, regular expression
  systemctl show -P "$1" traced.service | grep -Eq "$2"
}
instances() { # of the session of this name
  compgen -G "/sys/kernel/tracing/instances/traced*$1*"
}
in_group() {
  setpriv --reuid=65534 --regid=65534 --groups "$(getent group traced | cut -d: -f3)" "$@"
}
in_no_group() {
  setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
refused() { # as tracectl fails, and not otherwise
  "$@"
  [ $? = 1 ]
}
whole_json() {
  python3 -c '
import json, sys
trace = json.load(open(sys.argv[1]))
assert trace["systemTraceEvents"].startswith("# tracer:"), "no kernel text"
assert len(trace["systemTraceEvents"].splitlines()) > 20, "hardly an event"
assert trace["traceEvents"], "no names"' "$1"
}
eventually() {
  for _ in $(seq 50); do
    "$@" && return 0
    sleep 0.1
  done
  return 1
}

check "sysusers made the group" getent group traced
check "the socket unit starts" systemctl start traced.socket
check "the socket is the group's" test "$(stat -c %G:%a /run/traced/traced.sock)" = traced:660
check "no daemon runs before it is needed" fails systemctl -q is-active traced.service

check "root records" tracectl record -t 500ms -o root.json
check "that is a whole trace" whole_json root.json
check "it was the daemon that was activated" systemctl -q is-active traced.service
check "it told that it is ready" property Type '^notify'
check "a member of the group records" in_group tracectl record -t 300ms -o /tmp/member.json
check "that is a whole trace too" whole_json member.json
check "the file is the member's" test "$(stat -c %u member.json)" = 65534
check "another user is refused" refused in_no_group tracectl record -t 100ms -o /tmp/other.json
check "and told why" grep -q 'hint:.*traced' <(in_no_group tracectl status 2>&1)
check "and gets no file" test ! -e other.json

check "a session starts detached" tracectl start --name lab -e sched
check "it has its instance" instances lab
check "the status names it" eventually property StatusText 'lab|[1-9]'
check "a mark is taken" tracectl mark 'half way'
check "it stops and is written" tracectl stop lab -o lab.json
check "with the mark" grep -q 'half way' lab.json
check "its instance goes" eventually fails instances lab

check "a session to crash in" tracectl start --name crash -e sched
daemon=$(systemctl show -P MainPID traced.service)
check "the daemon is killed" kill -9 "$daemon"
check "a request brings it back" eventually tracectl status
check "it is another one" test "$(systemctl show -P MainPID traced.service)" != "$daemon"
check "nothing of the crashed session is left" eventually fails instances crash

check "a session to stop in" tracectl start --name end -e sched
check "the service stops" systemctl stop traced.socket traced.service
check "without an error" property Result '^success$'
check "nothing of the session is left" fails instances end
check "nor of the socket's daemon" fails pgrep -x traced
check "the journal knows the sessions" test -n "$(journalctl -q -u traced.service SESSION=lab -n 1)"

if [ $failed != 0 ]; then
  journalctl -q -u traced.service -u traced.socket --no-pager -n 30
  echo FAIL
  exit 1
fi
echo PASS
