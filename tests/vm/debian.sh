# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced, with lib.sh before it: Debian's packages, unpacked and never installed. Wants
# $work, a directory below $vm_cache.

mirror() {
  [ -z "${TRACED_VM_MIRROR:-}" ] || { echo "$TRACED_VM_MIRROR" && return; }
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    grep -v '^ *#' | grep -oE '[a-z+]+:/[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' '
}

# apt SUITE[/ARCHITECTURE] COMMAND...: apt with its own configuration, lists and archive, to which
# nothing is installed; so that every dependency of a package counts as missing and is named. The
# architecture "source" has the sources of all packages.
apt() {
  local suite=${1%/*} architecture=amd64 kind=deb root=$vm_cache/apt/${1//\//-} command=$2
  [ "$suite" = "$1" ] || architecture=${1#*/}
  [ "$architecture" != source ] || architecture=amd64 kind=deb-src
  shift 2
  if [ ! -f "$root/conf" ]; then
    mkdir -p "$root/lists/partial" "$root/archives/partial" "$root"/etc/{apt.conf.d,preferences.d}
    : >"$root/status"
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $suite main" \
      >"$root/sources"
    cat >"$root/conf" <<END
Dir::State "$root";
Dir::State::lists "$root/lists";
Dir::State::status "$root/status";
Dir::Cache "$root";
Dir::Cache::archives "$root/archives";
Dir::Etc "$root/etc";
Dir::Etc::sourcelist "$root/sources";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Get::List-Cleanup "false";
# A mirror that is kept at one day is good enough: signatures are still checked.
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::GzipIndexes "true";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Debug::NoLocking "true";
END
    # The machine's own proxies and credentials.
    apt-config dump --format '%F "%v";%n' | grep -iE '^Acquire::(http|https|ftp)::[^ ]*prox' >>"$root/conf" || true
  fi
  APT_CONFIG=$root/conf "$command" -q "$@"
}

# quietly WHAT COMMAND...
quietly() {
  local what=$1
  shift
  "$@" >"$work/log" 2>&1 </dev/null || {
    tail -n 20 "$work/log" >&2
    vm_fail "cannot $what; the last lines are above"
  }
}

# closure SUITE PACKAGE...: name=version of each package that an install would bring
closure() {
  local suite=$1
  shift
  apt "$suite" apt-get -s install -y "$@" | awk '/^Inst / { gsub(/[()]/, ""); sub(/:.*/, "", $2); print $2 "=" $3 }'
}

# unpack SUITE DIRECTORY PACKAGE=VERSION...
unpack() {
  local suite=$1 to=$2 archive
  shift 2
  mkdir -p "$work/debs" "$to"
  quietly "download from Debian's $suite" in_debs apt "$suite" apt-get download "$@"
  for archive in "$work/debs"/*.deb; do
    quietly "unpack ${archive##*/}" dpkg-deb -x "$archive" "$to"
  done
  rm -rf "$work/debs"
}

in_debs() {
  (cd "$work/debs" && "$@")
}

# Nothing unfinished is ever visible under its final name.
finish() { # made directory, final name
  chmod -R u+rwX "$1"
  rm -rf "$2"
  mv "$1" "$2"
}

# The suite that this machine runs.
own_suite() {
  local suite
  # A subshell keeps os-release's many names out of this script.
  suite=$(. /etc/os-release 2>/dev/null && [ "${ID-}" = debian ] && echo "${VERSION_CODENAME-}")
  echo "${suite:-sid}"
}

# Refreshes the lists of these suites.
update_suites() {
  local suite
  [ -n "$(mirror)" ] || vm_fail "no Debian mirror in this machine's apt sources; name one: TRACED_VM_MIRROR"
  [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || vm_fail "install debian-archive-keyring first"
  for suite; do
    quietly "read what Debian's $suite has" apt "$suite" apt-get update
  done
}
