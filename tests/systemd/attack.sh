#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Attacks the installed service, under the systemd that `run` boots, or that of a guest of tests/vm.
# attack.sh [attacks|restarts]: those of tests/attack, or what the service manager does meanwhile.
. "${0%/*}/lib.sh"
part=${1:-all}
attacks=${0%/*}/attack
[ -d "$attacks" ] || attacks=${0%/*}/../attack

# The attacks know a recording by its instance's name, and a spare instance has another one.
conf=$(traced --help | sed -n 's/.*read FILE and FILE.d.*(\(.*\))$/\1/p')
mkdir -p "$conf.d" /etc/systemd/system/traced.service.d
printf '[daemon]\nspare = no\n' >"$conf.d/50-attack.conf"
if [ "$part" != restarts ]; then
  # The attacks find programs where a build has them.
  mkdir -p build/cli build/daemon
  ln -s "$(command -v tracectl)" build/cli
  ln -s "$(command -v traced)" build/daemon
  # In a guest the console shows the progress, and the kernel reports no hung tasks: attacks make tasks hang.
  console=/dev/null
  if [ -n "${TRACED_VM-}" ]; then
    console=/dev/ttyS0
    echo 0 >/proc/sys/kernel/hung_task_timeout_secs
  fi
  python3 "$attacks/run" build --service 2>&1 | tee "$console" || failed=1
fi
[ "$part" != attacks ] || finish

# A daemon that hangs, dies or is restarted while a member asks without end, and another one records.
# A busy machine may keep a daemon that works from its CPU for seconds.
printf '[Service]\nWatchdogSec=20s\n' >/etc/systemd/system/traced.service.d/attack.conf
systemctl daemon-reload
check "the service starts" systemctl start traced.socket traced.service
while :; do
  in_group tracectl events
done >/dev/null 2>&1 &
asks=$!
while :; do
  other_in_group tracectl record -q -e sched -b 4M -t 100ms --format txt -o /dev/null
done >/dev/null 2>&1 &
records=$!
check "a session to hang in" tracectl start --name hang -e sched
daemon=$(daemon_pid)
check "the daemon hangs" kill -STOP "$daemon"
check "the watchdog ends it" eventually fails test -d "/proc/$daemon"
check "it is started again for that" eventually property NRestarts '^1$'
check "there is another" eventually tracectl status
check "nothing of the hanging one is left" eventually fails instances "$daemon"
check "the next one records" tracectl record -e sched -t 200ms -o after-hang.txt
daemon=$(daemon_pid)
check "it is killed" kill -9 "$daemon"
check "there is another again" eventually tracectl status
check "which records" tracectl record -e sched -t 200ms -o after-kill.txt
check "a session to restart in" tracectl start --name restart -e sched
daemon=$(daemon_pid)
check "it records" records "$daemon"
check "a restart" systemctl restart traced.service
check "ends the daemon" fails test -d "/proc/$daemon"
check "without an error" property Result '^success$'
check "and leaves none of its instances" fails instances "$daemon"
check "another one records" tracectl record -e sched -t 200ms -o after-restart.txt
check "the members attacked until now" kill "$asks" "$records"
wait "$asks" "$records" 2>/dev/null
check "the service stops" systemctl stop traced.socket traced.service
check "without an error" property Result '^success$'

finish
