/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "daemon/capture/names/btf.h"

static int constants_compare(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

static bool constants_has(const char *name, const char *const *names, size_t count)
{
	return count && bsearch(name, names, count, sizeof(*names), constants_compare);
}

int constants_resolve_hz(const char *const *names, size_t count, struct buf *out)
{
	struct timespec res;

	if (!constants_has("HZ", names, count))
		return 0;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &res) < 0)
		return -errno;
	if (!res.tv_sec && res.tv_nsec > 0)
		buf_printf(out, "HZ %ld\n", (1000000000 + res.tv_nsec / 2) / res.tv_nsec);
	return buf_error(out);
}

/* Documentation/arch/x86/boot.rst: offset of loadflags, and its KASLR_FLAG. */
#define LOADFLAGS_OFFSET 0x211
#define LOADFLAGS_KASLR 0x02

static bool constants_are_randomized(const char *sys)
{
	_cleanup_buf_ struct buf params = BUF_INIT;
	char path[256];

	snprintf(path, sizeof(path), "%s/kernel/boot_params/data", sys);
	return read_file_at(AT_FDCWD, path, 4096, &params) < 0 || params.len <= LOADFLAGS_OFFSET ||
	       (params.data[LOADFLAGS_OFFSET] & LOADFLAGS_KASLR);
}

/* The kernel clears the CPU flag la57 if it does not use five-level page tables. */
static int has_five_levels(const char *proc, bool *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *flags;
	char path[256], *end;
	int r;

	snprintf(path, sizeof(path), "%s/cpuinfo", proc);
	r = read_file_at(AT_FDCWD, path, 16U << 20, &text);
	if (r < 0 || !buf_string(&text))
		return r < 0 ? r : -ENOMEM;
	flags = strstr(text.data, "\nflags");
	end = flags ? strchr(flags + 1, '\n') : NULL;
	if (!end)
		return -ENODATA;
	*end = '\0';
	*ret = strstr(flags, " la57") != NULL;
	return 0;
}

int constants_resolve_vmemmap(const char *sys, const char *proc, const char *const *names,
			      size_t count, struct buf *out)
{
	bool five;

	if (!constants_has("vmemmap_base", names, count) || constants_are_randomized(sys) ||
	    has_five_levels(proc, &five) < 0)
		return 0;
	/* __VMEMMAP_BASE_L4 and _L5 of arch/x86/include/asm/pgtable_64_types.h. */
	buf_puts(out,
		 five ? "vmemmap_base 0xffd4000000000000\n" : "vmemmap_base 0xffffea0000000000\n");
	return buf_error(out);
}
