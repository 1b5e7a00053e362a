#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian's packages through their life on a machine: runs as a service under the systemd that `run`
# boots.
. "${0%/*}/lib.sh"
export DEBIAN_FRONTEND=noninteractive
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/traced-test
cd /traced-test || exit
useradd --no-create-home --shell /bin/sh alice

traces() { # of this project, on this machine
  find /etc /lib /usr/bin /usr/sbin /usr/lib /usr/include /usr/share/{bash-completion,doc,man,traced} \
    /var/lib /var/cache /run -xdev -regextype egrep -regex '.*/[^/]*(traced|tracectl)[^/]*' \
    ! -path '/run/systemd/*' ! -path '/run/log/*' 2>/dev/null | sort
  getent passwd traced
  getent group traced
  getent passwd traced-agent
  getent group traced-agent
  find /etc/systemd/system -type l | sort
}
alice() {
  runuser -u alice -- "$@"
}
version() {
  dpkg-query -W -f '${Status} ${Version}' "$1"
}
spool() {
  compgen -G "/var/lib/traced/*$1*.traced"
}

traces >/tmp/before
first=(*_0.1.0_*.deb)
check "the packages are installed" dpkg -i "${first[@]}"
check "the user's group is there" getent group traced
check "the agent has a user" getent passwd traced-agent
check "and waits for its configuration" fails systemctl -q is-active traced-agent
check "without an error" fails systemctl -q is-failed traced-agent
check "the socket is enabled" systemctl -q is-enabled traced.socket
check "and listens" systemctl -q is-active traced.socket
check "for the group" test "$(stat -c %G:%a /run/traced/traced.sock)" = traced:660
check "no daemon runs before it is needed" fails systemctl -q is-active traced.service
check "the service starts" systemctl start traced
check "and is ready" systemctl -q is-active traced.service
check "another user is refused" refused alice tracectl record -t 100ms -o /tmp/other.json
usermod -aG traced alice
check "an ordinary user of the group records" alice tracectl record -t 300ms -o /tmp/alice.json
check "that is a whole trace" whole_json /tmp/alice.json
check "the file is the user's" test "$(stat -c %U /tmp/alice.json)" = alice
check "the profiles are there" grep -q '^latency' <(tracectl profiles)
check "what is refused is explained" told "raw_addresses" alice tracectl record -t 100ms -o /tmp/x.traced
check "in the journal too" journal MESSAGE_ID=95f84be9c6a94b09b747d6084164a788
check "with what it means" grep -q 'may not do' <(journalctl -q -x -u traced MESSAGE_ID=95f84be9c6a94b09b747d6084164a788)
read -ra libs < <(pkg-config --cflags --libs libtraced)
check "a program is linked with the library" cc example.c "${libs[@]}" -lpthread -o /tmp/example
check "and runs" /tmp/example
check "Python finds the module and the library" /usr/bin/python3 -c 'import traced; traced.instant("here")'

check "Perfetto can't be installed beside it" fails dpkg -i perfetto.deb
dpkg --purge perfetto >/dev/null 2>&1

# An upgrade while somebody records: the recording ends, and is kept.
echo '# ours' >>/etc/traced.conf
check "a session starts" alice tracectl start --name across -e sched
daemon=$(daemon_pid)
check "and is recorded" records "$daemon"
check "the service is stopped and started by an upgrade" dpkg -i upgrade/*.deb
check "to the other version" grep -q 'ok installed 0.1.0+1' <(version traced)
check "the configuration stays" grep -qx '# ours' /etc/traced.conf
check "the kernel is as it was" eventually fails records "$daemon"
check "somebody is there again" eventually alice tracectl status
check "the recording was kept" spool across
check "as its user's" spool "-$(id -u alice)+across"
check "and converts" tracectl convert "$(spool across)" /tmp/across.json
check "to a whole trace" whole_json /tmp/across.json
check "recording goes on" alice tracectl record -t 200ms -o /tmp/after.json

check "a session starts before the removal" alice tracectl start --name last -e sched
daemon=$(daemon_pid)
check "and has its instances" instances "$daemon"
check "they are removed" dpkg --remove traced-agent traced tracectl python3-traced libtraced-dev libtraced1
check "no daemon is left" fails pgrep -x traced
check "no socket" test ! -e /run/traced/traced.sock
check "no instance" fails instances "$daemon"
check "what was configured is kept" test -e /etc/traced.conf
check "what was recorded, too" spool last
check "they are purged" dpkg --purge traced-agent traced tracectl python3-traced libtraced-dev libtraced1
traces >/tmp/after
check "nothing is left behind" diff /tmp/before /tmp/after

finish
