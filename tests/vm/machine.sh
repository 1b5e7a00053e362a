# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
#
# Sourced, with lib.sh and debian.sh before it: emulated machines of other architectures, with
# nothing in them but busybox and the static programs of build-cross-ARCHITECTURE. Wants $work.

# cached SUITE[/ARCHITECTURE] NAME PACKAGE...: unpacks them and what they need, prints where. A mirror
# may list a version that it does not have: then the last one that was unpacked will do.
cached() {
  local suite=$1 name=$2 wanted dir
  shift 2
  wanted=$(closure "$suite" "$@" | grep -E "${packages_kept:-.}")
  dir=$vm_cache/$name-$(cksum <<<"$wanted" | cut -d' ' -f1)
  if [ ! -d "$dir" ]; then
    echo "fetching $name" >&2
    # shellcheck disable=SC2086
    if (unpack "$suite" "$work/unpacked" $wanted); then
      rm -rf "$work/unpacked"/usr/share/{doc,man,locale,info,icons}
      finish "$work/unpacked" "$dir"
    else
      rm -rf "$work/unpacked" "$work/debs"
      dir=$(find "$vm_cache" -maxdepth 1 -name "$name-*" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
      [ -n "$dir" ] || exit 1
      echo "using ${dir##*/}" >&2
    fi
  fi
  echo "$dir"
}

# machine_find ARCHITECTURE: what its machine needs, in $machine, $console, $devices, $qemu,
# $kernel, $busybox and $build
machine_find() {
  local architecture=$1 flavour emulator=arm
  console=ttyAMA0 devices=(-serial stdio -device "virtio-blk-pci,drive=out")
  case $architecture in
    arm64) flavour=cloud-arm64 machine=(qemu-system-aarch64 -M virt -cpu cortex-a57) ;;
    armhf) flavour=armmp machine=(qemu-system-arm -M virt,highmem=off -cpu cortex-a7) ;;
    s390x)
      flavour=s390x machine=(qemu-system-s390x -M s390-ccw-virtio) emulator=s390x console=ttysclp0
      devices=(-chardev "stdio,id=console" -device "sclpconsole,chardev=console" -device "virtio-blk-ccw,drive=out")
      ;;
    *) vm_fail "no such architecture: $architecture (arm64, armhf, s390x)" ;;
  esac
  build=$vm_source/build-cross-$architecture
  [ -x "$build/daemon/traced" ] || vm_fail "$build/daemon/traced is not built; run scripts/cross $architecture"
  update_suites trixie "trixie/$architecture"
  qemu=$(cached trixie "qemu-$emulator" "qemu-system-$emulator")
  kernel=$(packages_kept='^linux-image-[0-9]' cached "trixie/$architecture" "linux-$architecture" "linux-image-$flavour")
  busybox=$(packages_kept='^busybox-static=' cached "trixie/$architecture" "busybox-$architecture" busybox-static)
}

# machine_image INIT FILE: an initrd with this first program. Tries to find insmod's order; the
# other modules are not needed.
machine_image() {
  local root name file
  root=$(mktemp -d "$work/root.XXXXXX")
  chmod 0755 "$root"
  mkdir -p "$root"/{bin,sbin,proc,sys,dev,out,modules}
  cp "$busybox/usr/bin/busybox" "$build/cli/tracectl" "$build/daemon/traced" "$root/bin"
  cp "$build/cli/traced-multi" "$root"
  for name in virtio virtio_ring virtio_mmio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_ccw \
    virtio_blk virtio_console; do
    file=$(find "$kernel" -name "$name.ko*" | head -n 1)
    case $file in
      *.xz) xz -dc "$file" >"$root/modules/$name.ko" ;;
      *.ko) cp "$file" "$root/modules/$name.ko" ;;
    esac
  done
  install -m 0755 "$vm_here/guest/$1" "$root/init"
  cp "$vm_here/guest/crash.sh" "$vm_here/guest/begin.sh" "$root"
  (cd "$root" && find . | "$(vm_indexed busybox | cut -d' ' -f2)" cpio -o -H newc -R 0:0 2>/dev/null) >"$2"
  rm -rf "$root"
}

# machine_boot SECONDS MEGABYTES INITRD DISK CONSOLE WORDS OPTION...: until it powers off
machine_boot() {
  local seconds=$1 memory=$2 initrd=$3 disk=$4 to=$5 words=$6 libraries=$qemu/usr/lib/x86_64-linux-gnu
  shift 6
  truncate -s 256M "$disk"
  timeout -k 5 "$seconds" "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" \
    "$qemu/usr/bin/${machine[0]}" "${machine[@]:1}" -L "$qemu/usr/share/qemu" \
    -accel tcg,thread=multi -smp 2 -m "$memory" -nodefaults -no-user-config -display none -monitor none "$@" \
    -kernel "$(find "$kernel" -name 'vmlinuz-*' | head -n 1)" -initrd "$initrd" \
    -append "console=$console loglevel=4 nokaslr no_hash_pointers rcupdate.rcu_cpu_stall_timeout=150 $words" \
    -drive "if=none,id=out,format=raw,file=$disk" "${devices[@]}" </dev/null >"$to" 2>&1
}
