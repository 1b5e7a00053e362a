# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh
# Functions for the guests of tests/vm/crash.
ring=/sys/kernel/tracing/instances/traced_boot

outcome() { # what command...
  what=$1
  shift
  if "$@" >/tmp/log 2>&1; then
    echo "traced-vm: pass $what"
  else
    sed 's/^/  /' /tmp/log
    echo "traced-vm: fail $what"
  fi
}

nothing_is_there() {
  tracectl extract --last-boot -o /tmp/cold.txt >/tmp/said 2>&1
  [ $? -eq 1 ] && grep -q 'there is nothing from the last boot' /tmp/said && [ ! -e /tmp/cold.txt ]
}

doctor_says() { # word
  tracectl doctor | grep 'boot recorder'
  tracectl doctor | grep 'boot recorder' | grep -q "^$1"
}

load_and_crash() {
  for k in 1 2 3 4 5 6 7 8 9 10; do
    ls -lR /sys/class >/dev/null
    echo "crash mark $k" >$ring/trace_marker
    echo "traced-vm: mark crash mark $k"
  done
  tracectl mark "late" 2>/dev/null
  grep ' _text$' /proc/kallsyms
  echo c >/proc/sysrq-trigger
}

# The very marks that the console showed, up to the last one.
marks_are_there() {
  for k in 1 2 3 4 5 6 7 8 9 10; do
    echo "crash mark $k"
  done >/tmp/wanted
  sed -n 's/.*tracing_mark_write: //p' /out/crash.txt >/tmp/found
  cat /tmp/found
  cmp /tmp/wanted /tmp/found && tail -n 3 /out/crash.txt
}

# No event of this boot, whose clock began anew.
times_are_of_one_boot() {
  grep -v '^#' /out/crash.txt | sed -n 's/.* \([0-9]*\.[0-9]*\): .*/\1/p' >/tmp/times
  sort -n -c /tmp/times && [ "$(wc -l </tmp/times)" -gt 1000 ]
}
