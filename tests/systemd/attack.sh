#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Attacks the installed service, under the systemd that `run` boots.
. "${0%/*}/lib.sh"

# The attacks find programs where a build has them.
mkdir -p build/cli build/daemon
ln -s "$(command -v tracectl)" build/cli
ln -s "$(command -v traced)" build/daemon
# The attacks know a recording by its instance's name, and a spare instance has another one.
conf=$(traced --help | sed -n 's/.*read FILE and FILE.d.*(\(.*\))$/\1/p')
mkdir -p "$conf.d" /etc/systemd/system/traced.service.d
printf '[daemon]\nspare = no\n' >"$conf.d/50-attack.conf"
python3 "${0%/*}/attack/run" build --service || failed=1

# A daemon that hangs or dies while a member asks without end.
printf '[Service]\nWatchdogSec=2s\n' >/etc/systemd/system/traced.service.d/attack.conf
systemctl daemon-reload
check "the service starts" systemctl start traced.socket traced.service
while :; do
  in_group tracectl events
done >/dev/null 2>&1 &
member=$!
check "a session to hang in" tracectl start --name hang -e sched
daemon=$(daemon_pid)
check "the daemon hangs" kill -STOP "$daemon"
check "the watchdog ends it" eventually fails test -d "/proc/$daemon"
check "it is started again for that" eventually property NRestarts '^1$'
check "there is another" eventually tracectl status
check "nothing of the hanging one is left" eventually fails instances "$daemon"
check "the next one records" tracectl record -e sched -t 200ms -o /tmp/next.txt
daemon=$(daemon_pid)
check "it is killed" kill -9 "$daemon"
check "there is another again" eventually tracectl status
check "which records" tracectl record -e sched -t 200ms -o /tmp/again.txt
check "the member asked until now" kill "$member"
wait "$member" 2>/dev/null
check "the service stops" systemctl stop traced.socket traced.service
check "without an error" property Result '^success$'

finish
