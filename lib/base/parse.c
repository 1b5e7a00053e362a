/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/parse.h"

#include <ctype.h>
#include <strings.h>

#include "base/io.h"
#include "base/vec.h"
#include "base/wide.h"

/*
 * "12" or "1.5" with at most nine decimals: exact, unlike a double. A larger number is UINT64_MAX,
 * which no time or size can be.
 */
struct decimal {
	uint64_t whole, nano;
};

static const char *decimal_scan(const char *p, struct decimal *ret)
{
	uint64_t unit = NSEC_PER_SEC / 10;

	*ret = (struct decimal){ 0 };
	if (!isdigit((unsigned char)*p))
		return NULL;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(ret->whole, 10, &ret->whole) ||
		    __builtin_add_overflow(ret->whole, (uint64_t)(*p - '0'), &ret->whole))
			ret->whole = UINT64_MAX;
	if (*p != '.')
		return p;
	p++;
	if (!isdigit((unsigned char)*p))
		return NULL;
	for (; isdigit((unsigned char)*p); p++, unit /= 10)
		ret->nano += (uint64_t)(*p - '0') * unit;
	return p;
}

/* Computes d * factor. False: overflow. */
static bool decimal_scale(const struct decimal *d, uint64_t factor, uint64_t *ret)
{
	uint64_t whole;

	return !__builtin_mul_overflow(d->whole, factor, &whole) &&
	       !__builtin_add_overflow(whole, mul_div(d->nano, factor, NSEC_PER_SEC), ret);
}

int parse_duration(const char *text, uint64_t *ret_ns, struct error *err)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", NSEC_PER_SEC },	      { "s", NSEC_PER_SEC },
		{ "sec", NSEC_PER_SEC },      { "ms", NSEC_PER_MSEC },
		{ "us", NSEC_PER_USEC },      { "ns", 1 },
		{ "m", 60 * NSEC_PER_SEC },   { "min", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC }, { "d", 24 * 3600 * NSEC_PER_SEC },
	};
	struct decimal number;
	const char *unit = decimal_scan(text, &number);
	uint64_t ns;

	for (size_t i = 0; unit && i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		if (!decimal_scale(&number, units[i].ns, &ns) || ns > INT64_MAX) {
			error_set(err, -ERANGE, "the duration '%s' is too long", text);
			return error_hint(err, "give at most 106751d (292 years)");
		}
		if (!ns)
			break;
		*ret_ns = ns;
		return 0;
	}
	error_set(err, -EINVAL, "'%s' is not a duration", text);
	error_hint(err, "give a number above zero and a unit: 10s, 500ms, 2m, 1h");
	return -EINVAL;
}

int parse_size(const char *text, uint64_t *ret_bytes, struct error *err)
{
	static const char prefixes[] = "KMGT";
	struct decimal number;
	const char *unit = decimal_scan(text, &number);
	uint64_t factor = 1, bytes;

	if (unit && *unit) {
		const char *prefix = strchr(prefixes, toupper((unsigned char)*unit));

		if (prefix) {
			factor = UINT64_C(1) << (10 * (prefix - prefixes + 1));
			unit++;
			if (strcasecmp(unit, "iB") == 0)
				unit += 2;
		}
		if (strcasecmp(unit, "B") == 0)
			unit++;
	}
	if (unit && !*unit) {
		if (!decimal_scale(&number, factor, &bytes) || bytes > INT64_MAX)
			return error_set(err, -ERANGE, "the size '%s' is too large", text);
		if (bytes) {
			*ret_bytes = bytes;
			return 0;
		}
	}
	error_set(err, -EINVAL, "'%s' is not a size", text);
	error_hint(err,
		   "give a number of bytes above zero; K, M and G are powers of 1024: 1408K, 16M");
	return -EINVAL;
}

int parse_percent(const char *text, unsigned *ret_permille, struct error *err)
{
	unsigned long whole = 0, tenth = 0;
	const char *p = text;
	char *end = (char *)(uintptr_t)p;

	errno = 0;
	if (*p >= '0' && *p <= '9')
		whole = strtoul(p, &end, 10);
	if (*end == '.' && end[1] >= '0' && end[1] <= '9') {
		tenth = (unsigned long)(end[1] - '0');
		end += 2;
	}
	end += *end == '%';
	if (end == p || *end || errno || whole > 100 || whole * 10 + tenth == 0 ||
	    whole * 10 + tenth > 1000) {
		error_set(err, -EINVAL, "'%s' is not a percentage of a CPU", text);
		return error_hint(err, "use 0.1%% to 100%%, in steps of 0.1%%");
	}
	*ret_permille = (unsigned)(whole * 10 + tenth);
	return 0;
}

void cpu_set_deinit(struct cpu_set *set)
{
	free(set->bits);
	*set = (struct cpu_set){ 0 };
}

bool cpu_set_has(const struct cpu_set *set, unsigned cpu)
{
	return cpu / 64 < set->words && (set->bits[cpu / 64] >> cpu % 64 & 1);
}

unsigned cpu_set_count(const struct cpu_set *set)
{
	unsigned count = 0;

	for (unsigned i = 0; i < set->words; i++)
		count += (unsigned)__builtin_popcountll(set->bits[i]);
	return count;
}

static int cpu_set_add_range(struct cpu_set *set, uint64_t first, uint64_t last)
{
	unsigned words = (unsigned)last / 64 + 1;

	if (words > set->words) {
		if (vec_reserve_exact(set->bits, set->words, words - set->words) < 0)
			return -ENOMEM;
		memset(set->bits + set->words, 0, (words - set->words) * sizeof(*set->bits));
		set->words = words;
	}
	for (uint64_t cpu = first; cpu <= last; cpu++)
		set->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	return 0;
}

static const char *cpu_number_scan(const char *p, uint64_t *ret)
{
	uint64_t cpu = 0;

	if (!isdigit((unsigned char)*p))
		return NULL;
	for (; isdigit((unsigned char)*p); p++)
		cpu = MIN(cpu * 10 + (uint64_t)(*p - '0'), (uint64_t)CPU_LIST_MAX);
	*ret = cpu;
	return p;
}

int parse_cpu_list(const char *text, struct cpu_set *ret, struct error *err)
{
	_cleanup_(cpu_set_deinit) struct cpu_set set = { 0 };
	const char *p = text + strspn(text, " \t\n");

	while (*p) {
		uint64_t first, last;
		int r;

		p = cpu_number_scan(p, &first);
		if (!p)
			goto invalid;
		last = first;
		if (*p == '-') {
			p = cpu_number_scan(p + 1, &last);
			if (!p || last < first)
				goto invalid;
		}
		if (last >= CPU_LIST_MAX)
			return error_set(err, -ERANGE, "'%s' has a CPU number that is too high",
					 text);
		r = cpu_set_add_range(&set, first, last);
		if (r < 0)
			return error_errno(err, r, "cannot parse the list of CPUs '%s'", text);
		p += strspn(p, " \t\n");
		if (*p == ',' && p[1])
			p++;
		else if (*p)
			goto invalid;
	}
	*ret = set;
	set = (struct cpu_set){ 0 };
	return 0;

invalid:
	error_set(err, -EINVAL, "'%s' is not a list of CPUs", text);
	error_hint(err, "give numbers and ranges separated by commas: 0-3,8");
	return -EINVAL;
}

void cpu_set_format(const struct cpu_set *set, struct buf *out)
{
	const char *comma = "";

	for (unsigned cpu = 0; cpu < set->words * 64; cpu++) {
		unsigned last = cpu;

		if (!cpu_set_has(set, cpu))
			continue;
		while (cpu_set_has(set, last + 1))
			last++;
		buf_printf(out, last > cpu ? "%s%u-%u" : "%s%u", comma, cpu, last);
		comma = ",";
		cpu = last;
	}
}

void cpu_set_format_mask(const struct cpu_set *set, struct buf *out)
{
	bool begun = false;

	for (unsigned half = set->words * 2; half-- > 0;) {
		uint32_t bits = (uint32_t)(set->bits[half / 2] >> half % 2 * 32);

		if (!begun && !bits && half)
			continue;
		buf_printf(out, begun ? ",%08x" : "%x", bits);
		begun = true;
	}
	if (!begun)
		buf_puts(out, "0");
}

void format_bytes(uint64_t bytes, struct buf *out)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 999.5 && unit < ARRAY_SIZE(units) - 1) {
		value /= 1000;
		unit++;
	}
	buf_printf(out, unit && value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void format_count(uint64_t count, struct buf *out)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf_putc(out, ',');
		buf_putc(out, digits[i]);
	}
}

void format_duration(uint64_t ns, struct buf *out)
{
	if (ns < NSEC_PER_MSEC)
		buf_printf(out, "%llu us", (unsigned long long)(ns / NSEC_PER_USEC));
	else if (ns < NSEC_PER_SEC)
		buf_printf(out, "%llu ms", (unsigned long long)(ns / NSEC_PER_MSEC));
	else if (ns < 120 * NSEC_PER_SEC)
		buf_printf(out, "%.2f s", (double)ns / (double)NSEC_PER_SEC);
	else
		buf_printf(out, "%llu min %02llu s", (unsigned long long)(ns / NSEC_PER_SEC / 60),
			   (unsigned long long)(ns / NSEC_PER_SEC % 60));
}
