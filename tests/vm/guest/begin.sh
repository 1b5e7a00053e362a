# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh
#
# How the guests begin that have nothing but busybox and the static programs.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /var/lib
/bin/busybox --install -s /bin
export PATH=/bin:/sbin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /out
echo "traced-vm: shell $(uname -r) $(uname -m)"
for pass in 1 2 3; do
  for module in /modules/*.ko; do
    insmod "$module" 2>/dev/null
  done
done
