# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by the scripts here.

vm_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm_source=$(cd "$vm_here/../.." && pwd)
vm_cache=${TRACED_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traced-vm}

# The name here, and Debian's suite. Releases move within a suite; the index that fetch writes has
# the one found.
vm_kernels=(bookworm trixie sid)

vm_fail() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 1
}

# Status 77 tells meson that this machine can't.
vm_skip() {
  printf '%s\n' "$1"
  exit 77
}

# The directory of the kernel that tests/vm/kernel builds, or has built.
vm_own() {
  echo "$vm_cache/own-$(cksum <"$vm_here/kernel.config" | cut -d' ' -f1)"
}

# vm_indexed KEY...: the rest of the index's line that begins with these words. The kernel "own" is
# not fetched: TRACED_VM_OWN is its directory, or tests/vm/kernel has built it.
vm_indexed() {
  [ "$*" != "kernel own" ] || { echo "own ${TRACED_VM_OWN:-$(vm_own)}" && return; }
  awk -v key="$*" 'index($0, key " ") == 1 { print substr($0, length(key) + 2); exit }' \
    "$vm_cache/index" 2>/dev/null
}
