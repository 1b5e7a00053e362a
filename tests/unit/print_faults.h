/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where libtraceevent 1.7 prints something else than the kernel. Each row was checked in the
 * kernel's lib/vsprintf.c, kernel/trace/trace_output.c or the format itself. The first row that
 * matches counts.
 */
#define NOBODY_TOLD "nothing where an enumerator isn't known, ours has a \"?\""

static struct fault faults[] = {
	{ "ras:arm_event", NULL, CRASHES, "crashes where a field is an array's length", 0 },
	{ "ras:non_standard_event", NULL, CRASHES, "crashes likewise", 0 },
	{ "btrfs:raid56_*", NULL, WILD_ZERO, "a - b + 1 counts as a - (b + 1)", 0 },
	{ "timer:timer_start", NULL, AGREES_NEVER, "x & (a | b) counts as (x & a) | b", 0 },
	{ "timer:itimer_state", NULL, WILD_SMALL, "negative numbers divide as unsigned", 0 },
	{ "kvm:kvm_nested_vmenter", NULL, AGREES_NEVER, "!a ? b : c ? d : e goes wrong", 0 },
	{ "kvm:kvm_userspace_exit", NULL, WILD_SMALL, "a field below 0 is not", 0 },
	{ "kvm:kvm_wait_lapic_expire", NULL, WILD_SMALL, "a field below 0 is not", 0 },
	{ "sock:sock_*_length", NULL, WILD_SMALL, "a field below 0 is not", 0 },
	{ "kvm:kvm_emulate_insn", NULL, WILD_SMALL, "reads beyond an array, ours cuts", 0 },
	{ "neigh:*", "lladdr_len", WILD_SMALL, "reads beyond an array, ours cuts", 0 },
	{ "devlink:devlink_hwmsg", NULL, WILD_ZERO, "an array's own length, not what is asked", 0 },
	{ "ipi:ipi_send_cpumask", NULL, AGREES_NEVER, "a list of CPUs, the kernel words in hex",
	  0 },
	{ "kmem:mm_page_alloc_extfrag", NULL, AGREES_NEVER, "a < b counts as b", 0 },
	{ "xfs:xfs_force_shutdown", NULL, WILD_ZERO, "a flag of 0 is set, where some is", 0 },
	{ "fs_dax:*", NULL, AGREES_NEVER, NOBODY_TOLD, 0 },
	{ "cxl:*", NULL, AGREES_NEVER, NOBODY_TOLD, 0 },
	{ "nvme:*", NULL, AGREES_NEVER, NOBODY_TOLD, 0 },
	{ "intel_iommu:*", NULL, AGREES_NEVER, NOBODY_TOLD, 0 },
	{ "sunrpc:*", "RPC_TASK_RUNNING", WILD_ZERO, NOBODY_TOLD, 0 },
	{ "sunrpc:*", "\"NONPRIVPORT\"", WILD_ZERO, NOBODY_TOLD, 0 },
	{ "sunrpc:rpc_tls_un*", NULL, WILD_ZERO, NOBODY_TOLD, 0 },
	{ "sunrpc:rpc_tls_not_started", NULL, WILD_ZERO, NOBODY_TOLD, 0 },
	{ "xfs_scrub:xchk_*", "\tfield:int type;", WILD_BIT, "-1 of 32 bits is 0xffffffff", 0 },
	{ "*:*", "\tfield:const char * ", CRASHES, "reads a string in the kernel's memory", 0 },
	{ "*:*", "%c%c%c", AGREES_NEVER, "a character that is chosen by ?: as \">c<\"", 0 },
	{ "*:*", "__print_array(", CRASHES, "reads as far as a field says; and decimals", 0 },
	{ "*:*", "%*pb", AGREES_NEVER, "no bitmap", 0 },
	{ "*:*", "=%-8s", WILD_ZERO, "no width of what a helper prints", 0 },
	{ "*:*", "%.*s", WILD_SMALL, "the format itself for a negative precision", 0 },
	{ "*:*", "vmemmap_base", WILD_ZERO, "a pointer plus a number counts bytes", 0 },
	{ "*:*", "size:1;\tsigned:1;", WILD_SMALL, "signed characters count as unsigned", 0 },
	{ "*:*", "\"staging\"", WILD_BIT, "-1 of 32 bits is not -1", 0 },
	{ "*:*", "\"RPM_INVALID\"", WILD_BIT, "-1 of 32 bits is not -1", 0 },
	{ "*:*", "\"TREE_LOG\"", WILD_BIT, "-6ULL counts as -1", 0 },
	{ "*:*", "1 << REC->", WILD_SMALL, "1 << 32 has no bit, the processor's first one", 0 },
	{ "*:*", "\"INO2_SF\"", AGREES_NEVER, "no sizeof: 1ULL << 63 counts as 0", 0 },
	{ "*:*", "\"CMTIME1\"", AGREES_NEVER, "no sizeof: 1ULL << 63 counts as 0", 0 },
};
