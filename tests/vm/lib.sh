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

# vm_indexed KEY...: the rest of the index's line that begins with these words. The kernel "own" is
# not fetched: TRACED_VM_OWN is its directory.
vm_indexed() {
  [ "$*" != "kernel own" ] || { echo "own ${TRACED_VM_OWN:-}" && return; }
  awk -v key="$*" 'index($0, key " ") == 1 { print substr($0, length(key) + 2); exit }' \
    "$vm_cache/index" 2>/dev/null
}
