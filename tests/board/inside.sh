#!/bin/busybox sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Commands that tests/board/run runs in a root with busybox only.
busybox --install -s /bin

failed=0
check() { # what, command...
  local what="$1"
  shift
  if "$@" >/data/log.new 2>&1; then
    echo "ok: $what"
  else
    echo "FAILED: $what: $*"
    sed 's/^/    /' /data/log.new
    failed=1
  fi
  mv /data/log.new /data/log
}

refused() { # words, command...
  local words="$1"
  shift
  ! "$@" >/data/refused 2>&1 && grep -q "$words" /data/refused || {
    cat /data/refused
    return 1
  }
}

within() { # seconds command...
  local n=$(($1 * 10))
  shift
  while ! "$@"; do
    n=$((n - 1))
    [ $n -gt 0 ] || return 1
    usleep 100000
  done
}

tracing=/sys/kernel/debug/tracing
none_left() {
  ! ls $tracing/instances | grep -q "^traced-$pid-"
}
gone() {
  [ ! -e "$1" ]
}

mkdir /data/traced
cat >/data/traced/traced.conf <<EOF
[daemon]
socket = /data/traced/run/traced.sock
state_dir = /data/traced/run
spool_dir = /data/traced/spool
spare = no
[limits]
min_free = 1M
EOF
options="--config /data/traced/traced.conf --tracefs $tracing"
socket=/data/traced/run/traced.sock

check "it says what it is" traced --version
# The caller had a service manager; its variables do not apply here.
NOTIFY_SOCKET=/nowhere LISTEN_FDS=1 LISTEN_PID=1 traced --standalone $options 2>/data/daemon.log &
check "it listens where the configuration says" within 60 test -S $socket
pid=$(cat /data/traced/run/traced.pid)
check "its pid file is right" test "$(readlink /proc/$pid/exe)" = /sbin/traced
check "a second one is refused, by pid" refused "another traced runs here: pid $pid" \
  traced --standalone $options
check "and leaves the first one's files" test -S $socket -a -e /data/traced/run/traced.pid
check "it records" tracectl --socket $socket record -t 1s -o /data/first.json
check "and says how much" grep -q 'events of' /data/log
check "a session has its instance" tracectl --socket $socket start --name board
check "under debugfs" sh -c "ls $tracing/instances | grep -q ^traced-$pid-board"
check "status names it" sh -c "tracectl --socket $socket status | grep -q board"
check "it stops and is written" tracectl --socket $socket stop board -o /data/second.json
kill $pid
check "it ends, and its pid file with it" within 60 gone /data/traced/run/traced.pid
check "and its socket" gone $socket
check "no instance is left" within 60 none_left
check "without a daemon root still records" \
  tracectl record -t 300ms -o /data/third.json

# A board's init would do the same.
mkdir -p /usr/sbin /etc/default
ln -s /sbin/traced /usr/sbin/traced
cat >/etc/default/traced <<EOF
STATE_DIR=/data/init
OPTIONS="--socket /data/init/sock --spool-dir /data/init"
EOF
check "the init script starts it" S60traced start
check "and it listens" within 60 test -S /data/init/sock
pid=$(cat /data/init/traced.pid)
check "the init script starts it but once" sh -c '! S60traced start'
check "it is still the same" test "$(cat /data/init/traced.pid)" = "$pid"
check "it records as well" tracectl --socket /data/init/sock record -t 300ms -o /data/fourth.json
check "the init script stops it" S60traced stop
check "and it is gone" gone /proc/$pid
check "with its instances" within 60 none_left
[ $failed -eq 0 ] || cat /data/daemon.log
exit $failed
