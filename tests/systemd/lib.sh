#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions of the scripts that run as a service under the systemd that `run` boots.
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
daemon_pid() {
  systemctl show -P MainPID traced.service
}
# Other tests record at the same time: a daemon's instances bear its pid.
records() { # pid; its spare instances are off
  grep -qsx 1 /sys/kernel/tracing/instances/traced-"$1"-*/tracing_on
}
instances() { # pid
  compgen -G "/sys/kernel/tracing/instances/traced-$1-*"
}
in_group() {
  setpriv --reuid=65534 --regid=65534 --groups "$(getent group traced | cut -d: -f3)" "$@"
}
other_in_group() {
  setpriv --reuid=65533 --regid=65534 --groups "$(getent group traced | cut -d: -f3)" "$@"
}
told() { # text, command...: the command must be refused with that text
  local text=$1
  shift
  [[ $("$@" 2>&1) == *"$text"* ]] && refused "$@"
}
# Another process writes the log, perhaps later.
recorded() { # field=value..., by any daemon
  eventually in_journal "$@"
}
in_journal() {
  [ -n "$(journalctl -q "$@" -n 1)" ]
}
journal() { # field=value...
  recorded -u traced.service "$@"
}
in_no_group() {
  setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
refused() { # as tracectl fails, and in no other way
  "$@"
  [ $? = 1 ]
}
partly() { # written, but something is missing
  local said
  said=$("$@" 2>&1)
  [ $? = 3 ] && [[ $said == *"left out"* ]]
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
  for _ in $(seq 600); do
    "$@" && return 0
    sleep 0.1
  done
  return 1
}

# The last line is PASS or FAIL.
finish() {
  if [ $failed != 0 ]; then
    journalctl -q -u traced.service -u traced.socket --no-pager -n 30
    echo FAIL
    exit 1
  fi
  echo PASS
  exit
}
