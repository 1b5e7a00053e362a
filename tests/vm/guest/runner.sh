# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions for /checks. Each check prints its outcome on the console, which survives the guest's
# death, and its whole output goes to /out.
mkdir -p /out/logs

# The kernel command line may name the wanted checks.
wanted=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^traced\.checks=//p' | tr ',' ' ')

outcome() { # pass|fail|skip name reason
  echo "traced-vm: $*"
}

seconds() { # since began
  echo "($(($(cut -d. -f1 /proc/uptime) - began)) s)"
}

named() {
  case " $wanted " in *" $1 "*) ;; *) return 1 ;; esac
}

check_if_named() {
  ! named "$1" || check "$@"
}

# In one guest of several.
check_once() {
  if named "$1" || grep -q 'traced\.once' /proc/cmdline; then
    check "$@"
  fi
}

check() { # name, seconds, command...
  name=$1 limit=$2
  shift 2
  [ -z "$wanted" ] || named "$name" || return
  echo "traced-vm: begin $name"
  log=/out/logs/$name began=$(cut -d. -f1 /proc/uptime)
  (cd /tmp && exec timeout -k 5 "$limit" "$@") >"$log" 2>&1
  status=$?
  left=$(ls /sys/kernel/tracing/instances)
  if [ -n "$left" ]; then
    rmdir /sys/kernel/tracing/instances/* 2>/dev/null
    [ $status -ne 0 ] || { echo "left behind: instances $left" >>"$log" && status=left; }
  fi
  case $status in
    0)
      # Cases that can't run in this guest.
      sed -n "s/^skipped: /traced-vm: note $name /p" "$log"
      outcome pass "$name" "$(sed -n '$p' "$log") $(seconds)"
      ;;
    77) outcome skip "$name" "$(sed -n '$p' "$log")" ;;
    *)
      # The failed case may be far above the end.
      grep -n -A 4 '^FAILED' "$log" | head -n 40
      tail -n 60 "$log"
      outcome fail "$name" "status $status: $(sed -n '$p' "$log") $(seconds) $(grep -m 1 '^FAILED' "$log" | cut -c 1-300)"
      ;;
  esac
}

check_kernel_log() {
  dmesg >/out/logs/dmesg
  # The kernel warns by itself if a program is killed while it creates an instance.
  if grep -v trace_rb_cpu_prepare /out/logs/dmesg | grep -E '(WARNING|BUG|Oops|INFO: task .* blocked|rcu: INFO:)'; then
    outcome fail kernel-log "the kernel complains; see the lines above"
  else
    outcome pass kernel-log
  fi
}
