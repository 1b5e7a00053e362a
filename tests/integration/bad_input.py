#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything that a person can get wrong, and everything that a machine can refuse. Each time there
is a message that says what failed, a hint that says what to do, the right exit status, and nothing
left behind: no instance, no file, no temporary."""

import os
import re
import signal
import socket
import struct
import subprocess
import time

from harness import INSTANCES, Test, as_nobody, check, in_namespace, interrupt, settled

READ_ONLY = in_namespace("mkdir ro && mount -t tmpfs -o ro none ro || exit 99")
SMALL = in_namespace("mkdir small && mount -t tmpfs -o size=64k none small || exit 99")
# A pipe without end that begins like a trace.dat, and little room to store it.
ENDLESS = in_namespace("mkdir small && mount -t tmpfs -o size=1m none small || exit 99") + \
    ["sh", "-c", r"""{ printf '\027\010Dtracing'; cat /dev/zero; } | TMPDIR=small "$@" """, "sh"]
# Root without any capability, and with every tracefs out of sight.
NO_TRACEFS = in_namespace("for d in /sys/kernel/tracing /sys/kernel/debug; do "
                          "mount -t tmpfs none $d || exit 99; done") \
    + ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


def judge(test, result, status, says, hint, files=()):
    check(result.status == status, f"expected exit status {status}: {result}")
    for text in says:
        check(re.search(text, result.err, re.S), f"lacks /{text}/: {result}")
    if hint is not None:
        check(re.search(r"hint: [^\n]*" + hint, result.err), f"no hint /{hint}/: {result}")
    check(test.files() == sorted(files), f"left files: {test.files()}")
    test.check_no_instances()
    check("Traceback" not in result.err and "ERROR: AddressSanitizer" not in result.err,
          f"crashed: {result}")


def plain(test, arguments, status, says, hint, wrap=(), files=()):
    if arguments[0] == "record":
        arguments = ["record", "--name", test.name, *arguments[1:]]
    judge(test, test.run(*arguments, wrap=wrap), status, says, hint, files)


# systemctl can start it only where it is installed.
START = "systemctl start traced.socket" if any(
    os.path.exists(d + "/systemd/system/traced.socket")
    for d in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")) else r"start one as root: \S*traced &"

# label, arguments, exit status, part of the message, part of the hint
R = ["record", "-t", "200ms", "-o", "out.json"]
TABLE = [
    ("a command that isn't one", ["recrod"], 2, ["unknown command 'recrod'"], "'record'"),
    ("no command at all with options of another", ["list", "-t", "1s"], 2, ["unknown option -t"],
     "option of: record, start"),
    ("an option before its command", ["-t", "1s", "record"], 2, ["unknown option -t"],
     "tracectl record -t TIME"),
    ("a command's own options without --", ["record", "-o", "out.json", "ls", "-Z"], 2,
     ["unknown option -Z"], "-- ls"),
    ("a time in two words", ["record", "-t", "1", "s"], 2, ["'s'"], "-t 1s"),
    ("a buffer without a unit", ["record", "-b", "8192"], 2, ["no unit"], "8192K"),
    ("all events by another tool's word", R + ["-e", "all"], 1, ["'all'"], r"'\*:\*'"),
    ("an option that isn't one", R + ["--ouptut", "x"], 2, ["unknown option --ouptut"],
     "--output"),
    ("an option without its value", ["record", "-t"], 2, ["--time takes a value"], ""),
    ("a command without --", ["record", "-o", "out.json", "make"], 2, ["'make'"], "-- make"),
    ("a list of a session", ["list", "x"], 2, ["'x' is nothing to list"], "tracectl status x"),
    ("a list that is a command", ["list", "events"], 2, ["'events' is nothing to list"], "did you mean 'tracectl events'?"),
    ("a list of another name", ["list", "clock"], 2, ["'clock' is nothing to list"], "did you mean 'tracectl list clocks'?"),
    ("two lists", ["list", "clocks", "x"], 2, ["'x' is one argument too many"], ""),
    ("convert without output", ["convert", "in.traced"], 2, ["output file is missing"],
     "convert in.traced out.json"),
    ("a probe in a group", R + ["--kprobe", "p:mine/x vfs_open"], 1,
     [r"names a group[^\n]*\n +p:mine/x vfs_open\n {12}\^\n"], "--kprobe"),
    ("a probe with a name in other letters", R + ["--uprobe", "p:\u00e9 /bin/sh:0x10"], 1,
     [r"other characters[^\n]*\n +p:\u00e9 /bin/sh:0x10\n {8}\^\n"], "--uprobe"),
    ("a probe without a place", R + ["--kprobe", "p:x"], 1, ["no place"], "FUNCTION"),
    ("a program's probe without an offset", R + ["--uprobe", "p:x /bin/sh"], 1, ["no offset"],
     "readelf"),
    ("SQL on events that are not there", R + ["--sql", "SELECT x FROM y"], 1,
     [r"'sql1': event not found\n +SELECT x FROM y\n {20}\^\n"], "'tracectl events'"),
    ("SQL on one event", R + ["--sql", "SELECT pid FROM sched_waking"], 1, ["second event"], "JOIN"),
    ("SQL of nested conditions", R + ["--sql", "SELECT a FROM sched_waking WHERE " + "!(" * 1900], 1,
     [r"syntax error\n.*\n +\^\n"], "SELECT"),
    ("SQL in other letters", R + ["--sql", "SELECT \u00e9", "--as", "x"], 1,
     [r"SQL of 'x' .* not ASCII\n +SELECT \u00e9\n {13}\^\n"], "quotes"),
    ("SQL without end", R + ["--sql", "S" * 10000], 1, ["more than 4000 bytes"], "fewer conditions"),
    ("SQL with a control character", R + ["--sql", "SELECT\x01x"], 1,
     [r"has the control character 0x01\n +SELECT\\x01x\n {12}\^\n"], "leave it out"),
    ("SQL with a name without end", R + ["--sql", "SELECT start.pid AS " + "x" * 3000], 1,
     [r"SQL of 'sql1': a name has more than 80 characters\n +SELECT start.pid AS x+\n {26}\^\n"], "shorter"),
    ("SQL with a field twice", R + [
        "--sql", "SELECT start.pid AS a, start.pid AS b FROM sched_waking AS start JOIN sched_switch AS end "
        "ON start.pid = end.next_pid"], 1,
     [r"a field is selected twice\n +SELECT start.pid AS a, s[^\n]*\n {29}\^\n"], "once"),
    ("SQL of one event with a field twice", ["hist", "-t", "1s", "--sql",
                                             "SELECT CAST(common_pid AS comm), CAST(common_pid AS hex) "
                                             "FROM sched_waking"], 1,
     [r"a field is selected twice\n +SELECT CAST\(common_pid AS comm\), C[^\n]*\n {44}\^\n"], "once"),
    ("SQL of one event without the field", ["hist", "-t", "1s", "--sql",
                                            "SELECT prio, CAST(nofield AS hex) FROM sched_waking"], 1,
     [r"there is no such field\n +SELECT prio, CAST\(n[^\n]*\n {24}\^\n"], "'tracectl events -v"),
    ("SQL of one event on a field that isn't there", ["hist", "-t", "1s", "--sql",
                                                      "SELECT prio FROM sched_waking WHERE nofield == 1"], 1,
     [r"there is no such field\n +SELECT prio FROM[^\n]*\n {42}\^\n"], "'tracectl events -v"),
    ("SQL with a name twice", R + [
        "--sql", "SELECT start.pid AS a, start.prio AS a FROM sched_waking AS start JOIN sched_switch AS end "
        "ON start.pid = end.next_pid"], 1, ["two fields have the same name: 'a'"], "AS OTHER"),
    ("SQL of a stack", R + [
        "--sql", "SELECT start.pid, end.STACKTRACE AS stack FROM sched_waking AS start JOIN sched_switch AS end "
        "ON start.pid = end.next_pid"], 1,
     [r"events by SQL have no stacks\n +SELECT start.pid, end.STACK[^\n]*\n {28}\^\n"],
     "--trigger 'EVENT: stacktrace if FILTER'"),
    ("SQL of a stack of one event", ["hist", "-t", "1s", "--sql", "SELECT STACKTRACE FROM kmalloc"], 1,
     [r"events by SQL have no stacks\n +SELECT STACKTRACE FROM kmalloc\n {13}\^\n"], "--key stacktrace"),
    ("SQL of a text with a double quote", R + ["--sql", "SELECT a FROM b WHERE c = 'x\"y'"], 1,
     [r"no text with a double quote\n +SELECT a FROM b WHERE c = 'x\"y'\n {34}\^\n"], "write \\? in its place"),
    ("SQL of a number that isn't one", R + ["--sql", "SELECT a FROM b WHERE c > -1e3"], 1,
     [r"no number of the kernel's\n +SELECT a FROM b WHERE c > -1e3\n {33}\^\n"], "decimal or 0x"),
    ("SQL of nothing", R + ["--sql", " \n"], 1, ["the SQL of 'sql1' is empty"], "SELECT"),
    ("SQL with an open quote", R + [
        "--sql", "SELECT start.pid, 'x FROM sched_waking AS start"], 1,
     [r"syntax error: a quote has no end\n +SELECT[^\n]*\n {24}\^\n"], "SELECT"),
    ("SQL of a field that isn't there", R + [
        "--sql", "SELECT start.nofield FROM sched_waking AS start JOIN sched_switch AS end "
        "ON start.pid = end.next_pid"], 1, [r"Field 'nofield' not part of event sched_waking\n.*\n {13}\^\n"],
     "'tracectl events -v sched_waking'"),
    ("a command of a histogram", ["hist", "sched:sched_switch", "--key", "next_pid", "--", "true"], 2,
     ["tracectl: hist: it runs no command, but 'true' follows --"], "tracectl record --"),
    ("a histogram of an event without a name", ["hist", ""], 2, ["the event's name is empty"], "'tracectl events'"),
    ("SQL of the second event alone", R + [
        "--sql", "SELECT end.next_pid FROM sched_waking AS start JOIN sched_switch AS end "
        "ON start.pid = end.next_pid"], 1, ["nothing of the first event"], "select a field"),
    ("SQL with a name of two words", R + ["--sql", "SELECT x FROM y", "--as", "a b"], 1,
     [r"'a b' is not a valid name [^\n]*\n +a b\n {7}\^\n"], "letters, digits"),
    ("SQL with a name in other letters", R + ["--sql", "SELECT x FROM y", "--as", "ab\u00e9"], 1,
     [r"is not a valid name [^\n]*\n +ab\u00e9\n {8}\^\n"], "letters, digits"),
    ("SQL with a name of quotes", R + ["--sql", "SELECT x FROM y", "--as", "a\"'"], 1,
     [r"is not a valid name [^\n]*\n +a\"'\n {7}\^\n"], "letters, digits"),
    ("SQL with a name of 10 kB", R + ["--sql", "SELECT x FROM y", "--as", "x" * 10000], 1,
     [r"is not a valid name [^\n]*\n +x{100}\n {46}\^\n"], "letters, digits"),
    ("a session whose name begins with a dot", R + ["--name", ".x"], 2, [r'"\.x" is not a valid name of a session'],
     "not . or - first"),
    ("a probe of another kind", R + ["--eprobe", "p:x vfs_read"], 1, ["'p:x vfs_read' begins with p:", "but --eprobe begins with e:"],
     "e:NAME SYSTEM:EVENT"),
    ("roots of a graph beside another tracer", R + ["-g", "vfs_read", "-p", "function"], 1, ["-g needs the function_graph"],
     r"leave out -p function\n"),
    ("a histogram of nothing", ["hist", "--key", "a"], 2, ["no event to count"], "hist EVENT --key FIELD"),
    ("a histogram of two things", ["hist", "sched_switch", "--sql", "SELECT x FROM y"], 2,
     ["EVENT and --sql exclude each other"], "--sql"),
    ("buckets of no key", ["hist", "sched_switch", "--buckets", "log2"], 2, ["--buckets has no key before it"], "--key"),
    ("a histogram of SQL on no event", ["hist", "--sql", "SELECT x FROM y", "-t", "1s"], 1,
     [r"'sql1': event not found\n +SELECT x FROM y\n {20}\^\n"], "'tracectl events'"),
    ("a name without SQL", R + ["--as", "x"], 2, ["no --sql before it"], "--sql before it"),
    ("a view that isn't one", R + ["--function-view=slice"], 2, ["'slice'", "instants, slices"], ""),
    ("a view of functions in a text",
     ["record", "-t", "200ms", "-o", "out.txt", "--function-view=slices"], 2,
     ["--function-view: this option is for JSON"], r"\.json"),
    ("convert with two outputs", ["convert", "in.traced", "a.json", "-o", "b.json"], 2,
     ["two outputs"], None),
    ("convert of too many", ["convert", *(f"{i}.traced" for i in range(65)), "-o", "out.json"], 2,
     ["65 inputs", "at most 64 machines"], None),
    ("too many reports to merge", ["report", "--merge", *(f"{i}.json" for i in range(257))], 1, ["at most 256 reports"],
     None),
    ("an event that isn't one", R + ["-e", "sched:sched_swich"], 1, ["sched:sched_swich"],
     "sched:sched_switch"),
    ("a system that isn't one", R + ["-e", "shced"], 1, ["shced"], "sched"),
    ("a glob that matches nothing", R + ["-e", "irq:nothing_*_here"], 1,
     ["irq:nothing_\\*_here"], ""),
    ("a good event beside a bad one", R + ["-e", "irq", "-e", "sched:sched_wakup"], 1,
     ["sched:sched_wakup"], "sched:sched_wakeup"),
    ("a filter on a field that isn't there",
     R + ["-e", "sched:sched_switch", "-f", "next_pri < 100"], 1,
     ["next_pri < 100", r"\n[^\n]*\^", "Field not found"], "'next_prio'.* fields are prev_comm"),
    ("a filter that is no expression", R + ["-e", "sched:sched_switch", "-f", "next_prio <"], 1,
     ["next_prio <", r"\n[^\n]*\^"], ""),
    ("a filter with an open quote", R + ["-e", "sched:sched_switch", "-f", 'next_comm == "x'], 1,
     ["kernel refuses the filter 'next_comm == \"x'", r"\n[^\n]*\^", "uote"], "its fields are prev_comm"),
    ("a filter with a parenthesis too many", R + ["-e", "sched:sched_switch", "-f", "next_pid == 1)"], 1,
     [r"kernel refuses the filter 'next_pid == 1\)'", r"\n[^\n]*\^", r"Too few '\('"], "its fields are prev_comm"),
    ("a trigger with an open quote",
     R + ["-e", "sched:sched_switch", "--trigger", "traceoff if next_comm == 'x"], 1,
     ["kernel refuses the trigger 'traceoff if next_comm == 'x'", r"\n[^\n]*\^"], "its fields are prev_comm"),
    ("a trigger with a parenthesis too many",
     R + ["-e", "sched:sched_switch", "--trigger", "traceoff if next_pid == 1)"], 1,
     [r"kernel refuses the trigger 'traceoff if next_pid == 1\)'"], "its fields are prev_comm"),
    ("a filter without end", R + ["-e", "sched:sched_switch", "-f", "x" * 10000], 1,
     ["'sched:sched_switch' has more than 4000 bytes"], "fewer conditions"),
    ("a trigger without end", R + ["-e", "sched:sched_switch", "--trigger", "traceoff if " + "x" * 10000], 1,
     [r"'traceoff if x{88}\.\.\.' has more than 3900 bytes"], "fewer conditions"),
    ("a trigger of an event without a name", R + ["-e", "sched:sched_switch", "--trigger", ": traceoff"], 1,
     ["the trigger 'traceoff' has no event"], "'sched:sched_switch: stacktrace'"),
    ("a trigger of nothing at nothing", R + ["--trigger", ""], 2, ["'' has no event before it"],
     "'sched:sched_switch: stacktrace'"),
    ("a trigger without end at nothing", R + ["--trigger", "x" * 10000], 2, [r"'x{200}' has no event before it"],
     r"'sched:sched_switch: x{200}'"),
    ("a trigger that counts", R + ["-e", "sched:sched_switch", "--trigger", "hist:keys=next_pid"], 1,
     ["would not be in the recording"], "--hist 'EVENT:keys=FIELD'"),
    ("a trigger in other letters", R + ["-e", "sched:sched_switch", "--trigger", "\u2603"], 1,
     ["events have no trigger '\u2603'"], "traceon, traceoff, stacktrace"),
    ("a histogram without end", ["hist", "sched:sched_switch", "--key", "x" * 10000, "-t", "1s"], 1,
     [r"the histogram is longer than 4096 bytes: 'sched:sched_switch:keys=x{16}\.\.\.'"], "shorter"),
    ("a function without end", R + ["-p", "function", "-l", "x" * 10000], 1,
     [r"the name of a function is longer than 1024 bytes: 'x{40}\.\.\.'"], "shorter"),
    ("a tracer without end", R + ["-p", "x" * 10000], 1,
     [r"the name of the tracer is longer than 4096 bytes: 'x{40}\.\.\.'"], "shorter"),
    ("a filter before any event", ["record", "-f", "next_prio < 1", "-e", "sched"], 2,
     ["no event before it"], "-e sched:sched_switch -f"),
    ("two filters for one event", R + ["-e", "sched:sched_switch", "-f", "a<1", "-f", "b<1"], 2,
     ["two filters"], "&&"),
    ("a duration in words", ["record", "-t", "ten"], 2, ["'ten' is not a duration"], "10s"),
    ("a duration of nothing", ["record", "-t", "0s"], 2, ["'0s' is not a duration"],
     "above zero"),
    ("a duration in the past", ["record", "-t", "-5s"], 2, ["'-5s' is not a duration"], "10s"),
    ("a duration beyond the ages", ["record", "-t", "999999999999h"], 2, ["too long"], "at most"),
    ("a size in words", R + ["-b", "huge"], 2, ["'huge' is not a size"], ""),
    ("a size that no machine has", R + ["-b", "900T"], 1, ["."], ""),
    ("a clock that isn't one", R + ["-C", "sundial"], 1,
     ["no trace clock 'sundial'"], "it has: .*boot"),
    ("a clock that the format can't have", R + ["-C", "counter"], 1, ["counter"], "boot"),
    ("a list of CPUs that isn't one", R + ["--cpus", "0-"], 2, ["'0-' is not a list"], "0-3,8"),
    ("a list of CPUs backwards", R + ["--cpus", "3-1"], 2, ["'3-1' is not a list"], "0-3,8"),
    ("a CPU that the machine lacks", R + ["--cpus", "4000"], 1, ["no CPU 4000"], "it has 0"),
    ("a process id in words", R + ["-P", "bash"], 2, ["'bash' is not a process id"], "-P 1234"),
    ("a process that isn't there", R + ["-P", "4194303"], 1, ["4194303"], "pgrep"),
    ("--status without a command", R + ["--status", "ours"], 2, ["--status needs a command"], "-- COMMAND"),
    ("-F without a command", R + ["-F"], 2, ["-F needs a command or a process"], "-P PID"),
    ("a command that isn't there", R + ["--", "no-such-program-here"], 1,
     ["no-such-program-here"], "sh -c"),
    ("a profile that isn't one", R + ["--profile", "no-such-profile"], 1, ["no-such-profile"],
     ""),
    ("a name that can't be", ["record", "-t", "200ms", "-o", "out.json", "--name", "a/../b"], 2,
     ["a/../b"], ""),
    ("an output in no folder", ["record", "-t", "200ms", "-o", "absent/out.json"], 1,
     ["absent/out.json", "directory absent does not exist"], "mkdir"),
    ("an output that is a folder", ["record", "-t", "200ms", "-o", "/tmp"], 1,
     ["/tmp is a directory"], "/tmp/trace.json"),
    ("an output that is a folder, with a format",
     ["record", "-t", "200ms", "--format", "json", "-o", "/tmp"], 1, ["/tmp is a directory"],
     "/tmp/trace.json"),
    ("an ending that tells no format", ["record", "-t", "200ms", "-o", "out.xyz"], 2,
     ["out.xyz", "cannot tell the format"], r"\.json.*\.txt.*--format"),
    ("a format that isn't one", ["record", "-t", "200ms", "--format", "jsn", "-o", "x"], 2,
     ["'jsn'"], "json"),
    ("--json and -o - at once", ["record", "-t", "200ms", "--json", "-o", "-"], 2,
     ["standard output"], None),
    ("stop without a daemon", ["stop", "x", "-o", "out.json"], 1, ["no traced is running"],
     START),
    ("status without a daemon", ["status"], 1, ["no traced is running"], START),
    ("start without a daemon", ["start", "-e", "sched"], 1, ["no traced is running"], START),
    ("extract of an instance without a name", ["extract", "--instance", "", "-o", "out.json"], 2,
     ["the value is empty"], "omit"),
    ("extract of an instance that isn't there",
     ["extract", "--instance", "no-such-instance", "-o", "out.json"], 1, ["no-such-instance"],
     ""),
    ("events that aren't there", ["events", "sched:sched_swich"], 1, ["sched:sched_swich"],
     "sched:sched_switch"),
    ("convert of what isn't there", ["convert", "absent.traced", "out.json"], 1,
     ["absent.traced: No such file"], None),
    ("convert of a device", ["convert", "/dev/zero", "out.json"], 1, ["/dev/zero is a device"], None),
    ("a folder of symbols that isn't there", ["convert", "--symbols", "absent", __file__, "out.json"], 1,
     ["--symbols: absent: No such file"], None),
    ("a folder of symbols that is none",
     ["convert", "--symbols", "/dev/null", __file__, "out.json"], 1,
     ["--symbols: /dev/null: Not a directory"], None),
    ("files of an event that isn't one, and a command",
     ["record", "--rotate", "1s", "-o", "out.pftrace", "-e", "sched:sched_swich", "--", "true"], 1,
     ["sched_swich"], "sched:sched_switch"),
    ("a directory of an event that isn't one, and a command",
     ["record", "-o", "out.ctf", "-e", "sched:sched_swich", "--", "true"], 1, ["sched_swich"],
     "sched:sched_switch"),
    ("files of a command that can't be run",
     ["record", "--rotate", "1s", "-o", "out.pftrace", "--", "/tmp"], 1, ["/tmp: "], None),
    ("a stream of a command that can't be run",
     ["record", "--stream", "-o", "out.pftrace", "--", "/tmp"], 1, ["/tmp: "], None),
    ("a directory of a process that isn't there, and a command",
     ["record", "-o", "out.ctf", "-P", "4194303", "--", "true"], 1, ["4194303"], "pgrep"),
    ("a histogram without a key", ["hist", "sched:sched_switch", "-t", "1s"], 2, ["no field to count by"], "--key"),
    ("a histogram of an event that isn't one", ["hist", "sched:sched_swich", "--key", "next_pid", "-t", "1s"], 1,
     ["sched:sched_swich"], "sched_switch"),
    ("a histogram with an action",
     ["record", "-t", "1s", "--hist", "sched_switch:keys=next_pid:onmax($a).snapshot()", "-o", "out.traced"], 1,
     ["its parts are keys=, vals= and size=", r"\^"], "next_comm"),
    ("a histogram of some tasks", R + ["--hist", "sched_switch:keys=next_pid", "--cpus", "0"], 1,
     ["histograms cannot be combined"], "common_pid"),
    ("the last boot of a kernel without a ring", ["extract", "--last-boot", "--instance", "no-such-ring", "-o",
                                                  "out.json"], 1,
     ["the kernel made no instance 'no-such-ring' at its start"], "tracectl boot-recorder enable"),
    ("a ring's name that can't be", ["boot-recorder", "status", "--instance", "../x"], 1,
     [r"--instance: '\.\./x' is not a name"], "1 to 64 letters, digits"),
    ("a ring's name without end", ["boot-recorder", "enable", "--instance", "x" * 10000], 2,
     ["--instance: 'x{100}' is not a name"], "1 to 64 letters, digits"),
    ("a ring's tracer in other letters", ["boot-recorder", "enable", "--tracer", "\u2603"], 2,
     ["--tracer: '\u2603' is not a name"], "letters, digits"),
    ("a ring that is too large", ["boot-recorder", "enable", "--size", "2T"], 2,
     ["--size: a ring has between 1M and 1T"], "32M"),
    ("a ring that is larger than the machine's memory", ["boot-recorder", "enable", "--size", "1T"], 2,
     [r"--size: this machine has [0-9.]+ [GM]B of memory"], "32M"),
    ("a ring that takes half of the machine's memory", [
        "boot-recorder", "enable", "--size", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 21}M"], 0,
     [r"--size: the ring takes (49|50) % of this machine's memory \([0-9.]+ [GM]B\)\n"], None),
    ("a ring's event with a quote", ["boot-recorder", "enable", "-e", "a'b"], 2,
     ["-e: 'a'b' is no pattern of events' names"], "'sched:sched_switch'"),
    ("a ring's event without end", ["boot-recorder", "enable", "-e", "x" * 10000], 2,
     ["-e: 'x{100}' is no pattern of events' names"], "up to 128 characters"),
    ("a boot recorder of what is not there", ["boot-recorder", "enable", "-e", "sched", "-e", "irq:nothing_*", "-p",
                                              "timerlatt"], 0,
     ["no event or tracer of this kernel matches: irq:nothing_\\* timerlatt\n"], None),
    ("an action of the boot recorder with an argument", ["boot-recorder", "status", "x"], 2,
     ["'x' is one argument too many"], r"tracectl boot-recorder enable\|"),
    ("an event for the boot recorder's state", ["boot-recorder", "status", "--json", "-e", "sched"], 2,
     ["boot-recorder status takes no --event"], "'boot-recorder enable' takes it"),
    ("JSON of what arms the boot recorder", ["boot-recorder", "arm", "--json"], 2,
     ["boot-recorder arm takes no --json"], "'boot-recorder status' takes it"),
    ("a boot recorder disabled by writing", ["boot-recorder", "disable", "--write"], 2,
     ["boot-recorder disable takes no --write"], "'boot-recorder enable' takes it"),
    ("no action of the boot recorder", ["boot-recorder", "x" * 10000], 2, ["'x{100}' is no action"], "enable, disable"),
    ("a device to be merged", R + ["--merge", "/dev/zero"], 1, ["--merge: /dev/zero is a device"], None),
]

WRAPPED = [
    ("an output in a folder that can't be written", READ_ONLY,
     ["record", "-t", "60s", "-o", "ro/out.json"], 1, ["ro/out.json", "cannot write to the directory"],
     "another output", ["ro"]),
    ("no space left for the output", SMALL,
     ["record", "-t", "500ms", "-e", "*:*", "-o", "small/out.json"], 1, ["[Nn]o space"], "",
     ["small"]),
    ("a pipe without an end", ENDLESS, ["convert", "-", "out.json"], 1, ["-: not enough space in small"],
     "TMPDIR", ["small"]),
    ("neither root nor a daemon", as_nobody(),
     ["record", "-t", "200ms", "-o", "/dev/null", "--format", "json"], 1,
     ["no traced is running"], "sudo", []),
    ("a boot recorder of somebody else", as_nobody(), ["boot-recorder", "enable", "--write"], 1,
     ["only root may use the boot recorder"], "sudo tracectl boot-recorder enable --write", []),
    ("a kernel without tracefs, for all one can see", NO_TRACEFS,
     ["record", "-t", "200ms", "-o", "out.json"], 1, ["tracefs"], "mount", []),
]


def zero_events(test):
    result = test.run("record", "--name", test.name, "-t", "300ms", "-e", "sched:sched_switch",
                      "-f", "next_pid == 2147483646", "-o", "out.json")
    judge(test, result, 3, ["out.json: NOT ONE EVENT"], "doctor", ["out.json"])
    check(len(re.findall(r"(?i)events?\b.* recorded|none lost", result.err)) == 1, f"{result}")


def pipe_to_be_merged(test):
    """Recording into a FIFO would wait for a reader."""
    os.mkfifo(test.dir / "fifo")
    result = test.run("record", "-t", "200ms", "-o", "out.json", "--merge", "fifo")
    judge(test, result, 1, ["--merge: fifo is a pipe"], "file", ["fifo"])


def previous_file_stays(test):
    (test.dir / "out.json").write_text("precious")
    result = test.run("record", "--name", test.name, "-t", "200ms", "-e", "nothing:at_all", "-o",
                      "out.json")
    judge(test, result, 1, ["nothing:at_all"], "", ["out.json"])
    check((test.dir / "out.json").read_text() == "precious", "the old file is lost")


def foreign_socket(test):
    """Another process listens there, and hangs up."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(test.dir / "no-daemon"))
    server.listen()
    process = test.start("status")
    connection, _ = server.accept()
    connection.recv(64)
    connection.close()
    result = test.finish(process)
    server.close()
    os.unlink(test.dir / "no-daemon")
    judge(test, result, 1, ["."], "")


def socket_without_permission(test):
    test.daemon.socket.chmod(0o600)
    # Only the socket must be in the way.
    test.daemon.socket.parent.chmod(0o755)
    result = test.run("status", wrap=as_nobody())
    judge(test, result, 1, ["ermi"], "group|sudo")


def daemon_gone(test):
    process = test.start("record", "--name", test.name, "-t", "60s", "-o", "out.json")
    test.wait_for_recording(test.name)
    os.kill(test.daemon.process.pid, signal.SIGKILL)
    test.daemon.process.wait()
    result = test.finish(process)
    check(result.status == 1, f"{result}")
    check("lost the connection to traced" in result.err and "hint:" in result.err, f"{result}")
    check(test.files() == [], f"left files: {test.files()}")
    spooled = [p for p in test.daemon.spool.iterdir() if p.suffix == ".traced"]
    check(len(spooled) == 1, f"no spool file of the recording: {spooled}")
    # The next daemon removes what this one left; the spool is still a trace.
    test.daemon.stop()
    test.daemon = type(test.daemon)(test)
    check(not test.instances(), f"instances left after a restart: {test.instances()}")
    converted = test.run("convert", spooled[0], "out.txt")
    check(converted.status == 3 and "INCOMPLETE" in converted.err, f"{converted}")
    check((test.dir / "out.txt").stat().st_size > 0, "the spool gives an empty file")


def private_daemon_gone(test):
    # A case before this one may have left a recording and reported it.
    before = set((test.top / "spool").glob("*.traced"))
    process = test.start("record", "--name", test.name, "-t", "60s", "-o", "out.json")
    test.wait_for_recording(test.name)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                              capture_output=True, check=True).stdout.split()
    check(len(children) == 1, f"one child expected: {children}")
    os.kill(int(children[0]), signal.SIGKILL)
    result = test.finish(process)
    check(result.status == 1, f"{result}")
    check("lost the connection to traced" in result.err, f"{result}")
    check(test.files() == [], f"left files: {test.files()}")
    # The next recorder cleans up; its user is told once about leftovers.
    (spool,) = set((test.top / "spool").glob("*.traced")) - before
    left = re.escape(str(spool))
    again = test.run("record", "--name", test.name + "-again", "-t", "200ms", "-o", "out.json")
    check(again.status == 0, f"{again}")
    check(re.search(f"{left} .* is left .*tracectl convert {left} FILE", again.err), f"{again}")
    check(not test.instances(), f"stale: {test.instances()}")
    again = test.run("record", "--name", test.name + "-again", "-t", "200ms", "-o", "out.json")
    check(again.status == 0 and "is left" not in again.err, f"{again}")
    # The doctor looks where traced.conf says: here, in the usual place.
    there = in_namespace(f"mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/traced && "
                         f"cp -p {spool} /var/lib/traced || exit 99")
    doctor = test.run("doctor", wrap=there)
    command = re.search(r"-> (tracectl convert /var/lib/traced/\S+ )out.json", doctor.out)
    check(command, f"{doctor}")
    spool.unlink()


def second_of_the_same_name(test):
    first = test.run("start", "--name", test.name, "-e", "sched:sched_switch")
    check(first.status == 0 and first.out.strip() == test.name, f"{first}")
    second = test.run("start", "--name", test.name, "-e", "irq")
    check(second.status == 1 and test.name in second.err and "hint:" in second.err, f"{second}")
    third = test.run("record", "--name", test.name, "-t", "1s", "-o", "out.json")
    check(third.status == 1 and test.files() == [], f"{third}")
    check(any(test.name in i for i in test.instances()), "the first recording failed")
    check(test.run("cancel", test.name).status == 0, "cancel")
    settled("the instances go", lambda: not test.instances())


def no_such_session(test):
    check(test.run("start", "--name", test.name, "-e", "sched:sched_switch").status == 0, "start")
    for command in ("stop", "snapshot", "cancel", "attach", "status"):
        arguments = ["-o", "out.json"] if command in ("stop", "snapshot", "attach") else []
        result = test.run(command, test.name[:-1], *arguments)
        check(result.status == 1 and "hint:" in result.err, f"{command}: {result}")
    check(test.files() == [], f"left files: {test.files()}")
    check(test.run("cancel", test.name).status == 0, "cancel")


def mark_without_session(test):
    judge(test, test.run("mark", "hello"), 1, ["nothing is recording"], "tracectl list")
    judge(test, test.run("stop", "-o", "out.json"), 1, ["no session is recording"], "start")


def no_space_in_spool(test, size):
    """A spool too small from the start, or full during the recording: the recorded part is written."""
    mount = test.dir / "daemon" / "spool"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", mount], check=True)
    try:
        result = test.run("record", "--name", test.name, "-t", "30s", "-e", "*:*", "-o",
                          "out.json.gz", timeout=120)
        if size == "2m":
            judge(test, result, 1, ["2.1 MB are free", "spool"], "spool_dir")
        else:
            judge(test, result, 3, ["ended early: no space", "INCOMPLETE"], None,
                  ["out.json.gz"])
            check((test.dir / "out.json.gz").stat().st_size > 100000, "too little was saved")
    finally:
        test.daemon.stop()
        subprocess.run(["umount", mount], check=True)


def record_stream(test, name="good.traced"):
    result = test.run("record", "--name", test.name, "-t", "500ms", "-o", name)
    check(result.status == 0, f"{result}")
    return (test.dir / name).read_bytes()


def damaged_streams(test):
    good = record_stream(test)
    os.unlink(test.dir / "good.traced")

    def convert(data, status, says, hint):
        (test.dir / "bad.traced").write_bytes(data)
        for suffix in (".json", ".txt"):
            result = test.run("convert", "bad.traced", "out" + suffix)
            check(result.status == status, f"expected {status}: {result}")
            check(re.search(says, result.err), f"lacks /{says}/: {result}")
            if hint:
                check("hint:" in result.err, f"no hint: {result}")
            files = ["bad.traced"] + (["out" + suffix] if status == 3 else [])
            check(test.files() == sorted(files), f"left files: {test.files()}")
            if status == 3:
                os.unlink(test.dir / ("out" + suffix))

    convert(b"", 1, "bad.traced", True)
    convert(b"\0" * 4096, 1, "bad.traced", True)
    convert(b'{"traceEvents":[]}', 1, "a JSON file cannot be read", True)
    (test.dir / "bad.traced").write_bytes(b'{"traceEvents":[]}')
    report = test.run("report", "bad.traced")
    check(report.status == 1 and "a JSON file cannot be read" in report.err, f"report of a JSON: {report}")
    convert(good[:5], 1, "bad.traced", True)
    convert(good[:40], 1, "bad.traced: the capture stream ends before its header does", True)
    convert(b"\x17\x08Dtracing6\0", 1, "bad.traced: it ends too early, within its first bytes", True)
    # No option of the command and no filter led to this.
    (test.dir / "bad.traced").write_bytes(good[:good.index(b"sched_switch")])
    result = test.run("convert", "bad.traced", "out.txt")
    check(result.status == 3 and "NOT ONE EVENT could be read" in result.err and "filter" not in result.err, f"{result}")
    os.unlink(test.dir / "out.txt")
    # Truncated in the middle: everything before is there, and a message says so.
    convert(good[:-1], 3, "INCOMPLETE", False)
    convert(good[:len(good) * 9 // 10], 3, "INCOMPLETE", False)
    # A changed bit in the header's chunk.
    turned = bytearray(good)
    turned[60] ^= 0x10
    convert(bytes(turned), 1, "bad.traced", True)


SUBBUFS = 10


def chunks(stream):
    """For each chunk: its offset, its type, its end, and the end of its padding."""
    at = 8
    while at < len(stream):
        kind, length = struct.unpack_from("=4xH2xI", stream, at)
        end = at + 24 + length
        yield at, kind, end, (end + 7) // 8 * 8
        at = (end + 7) // 8 * 8


def any_damage_is_survived(test):
    """Bytes changed anywhere: no crash, and a message about what is missing."""
    good = record_stream(test)
    os.unlink(test.dir / "good.traced")
    # Padding has no meaning.
    silent = {at for _, _, end, next_at in chunks(good) for at in range(end, next_at)}
    telling = [at for at in range(len(good)) if at not in silent]
    turned = [(telling[len(telling) * i // 40 + i], 1 << (i % 8)) for i in range(40)]
    # The number of their ring: data of an unknown ring is not decoded.
    turned += [(at + 24 + i, 0x80) for at, kind, _, _ in chunks(good) if kind == SUBBUFS for i in range(4)]
    for at, bit in turned[:100]:
        bad = bytearray(good)
        bad[at] ^= bit
        (test.dir / "bad.traced").write_bytes(bad)
        result = test.run("convert", "bad.traced", "out.txt")
        check(result.status in (1, 3), f"damage at {at} of {len(good)} goes unnoticed: {result}")


def converting_onto_itself(test):
    data = record_stream(test)
    os.symlink("good.traced", test.dir / "link.traced")
    for out in ("good.traced", "./good.traced", "link.traced"):
        result = test.run("convert", "good.traced", out)
        check(result.status == 2 and "is the input and would be overwritten" in result.err and "hint:" in result.err,
              f"{result}")
    check((test.dir / "good.traced").read_bytes() == data, "the input was changed")


def file_at_its_limit(test):
    """ulimit -f: an error message, not a signal."""
    record_stream(test)
    for out in ("out.json", "out.txt"):
        result = test.run("convert", "good.traced", out,
                          wrap=["sh", "-c", 'ulimit -f 8; exec "$@"', "sh"])
        judge(test, result, 1, ["File too large"], "ulimit -f", ["good.traced"])
    # A private daemon has the same limit.
    result = test.run("record", "--name", test.name, "-t", "60s", "-e", "*:*", "-o", "out.json.gz",
                      wrap=["sh", "-c", 'ulimit -f 8192; exec "$@"', "sh"])
    check(result.status == 3 and "(ulimit -f)" in result.err, f"{result}")
    check(result.err.count("ended early") == 1, f"the message came twice: {result}")


def output_name_goes(test):
    """During the recording the output's folder goes, or a folder takes its name: no data is lost."""
    for spoil in (lambda: (test.dir / "sub").rmdir(), lambda: (test.dir / "sub/out.txt").mkdir()):
        (test.dir / "sub").mkdir(exist_ok=True)
        process = test.start("record", "--name", test.name, "-t", "1s", "-o", "sub/out.txt")
        test.wait_for_recording(test.name)
        spoil()
        result = test.finish(process)
        check(result.status == 1 and "sub/out.txt: " in result.err, f"{result}")
        saved = re.search(r"hint: .*saved as (\S+)", result.err)
        check(saved, f"nothing is saved: {result}")
        with open(saved.group(1), encoding="utf-8", errors="replace") as f:
            check(f.read(8) == "# tracer", f"{saved.group(1)} is no trace")
        os.unlink(saved.group(1))


def control_characters(test):
    for arguments in (["-e", "sched:sched_switch", "-f", "next_pid\n== 1"], ["-e", "sched\033[2J"]):
        result = test.run("record", "--name", test.name, "-t", "200ms", "-o", "out.json",
                          *arguments)
        judge(test, result, 1, ["control character"], "0x")
        check("\033" not in result.err, f"raw: {result.err!r}")


def interrupted_while_arming_or_twice(test):
    process = test.start("record", "--name", test.name, "-t", "60s", "-o", "out.json")
    test.wait_for_recording(test.name)
    os.kill(process.pid, signal.SIGSTOP)
    interrupt(process)
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    os.kill(process.pid, signal.SIGCONT)
    result = test.finish(process)
    judge(test, result, 1, ["cancelled"], None)


def locked_down_kernel(test):
    """Only the doctor's output can be checked here: events record all the same."""
    lockdown = "/sys/kernel/security/lockdown"
    result = test.run("doctor")
    if os.path.exists(lockdown) and "[none]" not in open(lockdown, encoding="ascii").read():
        check("lockdown" in result.out, f"doctor is silent on lockdown: {result}")
    check(result.status == 0 and "tracefs" in result.out, f"{result}")
    blind = test.run("doctor", wrap=NO_TRACEFS)
    check(blind.status == 1 and "BAD" in blind.out and "->" in blind.out, f"{blind}")


PARSED_BY_LIBTRACEFS = {"SQL on events that are not there", "SQL on one event", "SQL of nested conditions",
                        "SQL of the second event alone", "a histogram of SQL on no event",
                        "SQL with an open quote", "SQL of a field that isn't there"}


def main():
    test = Test("bad-input")
    without_libtracefs = test.build_option("libtracefs") == "disabled"
    for label, arguments, status, says, hint in TABLE:
        if without_libtracefs and label in PARSED_BY_LIBTRACEFS:
            says, hint = ["this build of tracectl has no libtracefs"], "-Dlibtracefs=enabled"
        test.case(label, plain, arguments, status, says, hint)
    for label, wrap, arguments, status, says, hint, files in WRAPPED:
        test.case(label, plain, arguments, status, says, hint, wrap, files)
    test.case("zero events", zero_events)
    test.case("a pipe to be merged", pipe_to_be_merged)
    test.case("an old file survives a failure", previous_file_stays)
    test.case("a socket that isn't traced's", foreign_socket)
    test.case("no permission on the socket", socket_without_permission, daemon=True)
    test.case("the daemon is killed in mid-recording", daemon_gone, daemon=True)
    test.case("the private daemon is killed in mid-recording", private_daemon_gone)
    test.case("a second recording of the same name", second_of_the_same_name, daemon=True)
    test.case("sessions that aren't there", no_such_session, daemon=True)
    test.case("a mark for nobody", mark_without_session, daemon=True)
    test.case("no space in the spool", no_space_in_spool, "2m", daemon=True)
    test.case("the spool fills up", no_space_in_spool, "72m", daemon=True)
    test.case("corrupt and truncated streams", damaged_streams)
    test.case("any byte of a stream changed", any_damage_is_survived)
    test.case("converting a file onto itself", converting_onto_itself)
    test.case("a file at its limit", file_at_its_limit)
    test.case("the output's name goes away", output_name_goes)
    test.case("control characters", control_characters)
    test.case("interrupted twice", interrupted_while_arming_or_twice)
    test.case("a kernel in lockdown", locked_down_kernel)
    assert INSTANCES.is_dir()
    test.end()


if __name__ == "__main__":
    main()
