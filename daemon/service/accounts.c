/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A range counts as a user of its own, by its first id, if its owner is root or not in /etc/passwd.
 * So does the part that ranges of several owners share: one must not use up another's share. Only
 * root writes these files. Owners are looked up in /etc/passwd itself: other sources of users may
 * be servers, which the loop does not wait for.
 */
#include "daemon/service/accounts.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/search.h"
#include "base/vec.h"

#define SUBUID_BYTES_MAX (1U << 20)

struct account_range {
	const char *name;     /* valid while the files are read */
	uint32_t first, last; /* never 0 */
	uid_t owner;	      /* 0: none that may have the share */
};

/* newuidmap takes octal and hexadecimal numbers, too. */
static bool accounts_parse_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* NAME:FIRST:COUNT. The part of a range beyond all user ids is ignored. */
static bool accounts_parse(char *line, struct account_range *ret)
{
	const char *name = strsep(&line, ":"), *first_text = strsep(&line, ":");
	uint64_t first, count, owner, last;

	if (!*name || !first_text || !line || !accounts_parse_number(first_text, &first) ||
	    !accounts_parse_number(line, &count) || !count || first >= UINT32_MAX)
		return false;
	if (__builtin_add_overflow(first, count - 1, &last) || last >= UINT32_MAX)
		last = UINT32_MAX - 1;
	if (!last)
		return false;
	*ret = (struct account_range){ .name = name,
				       .first = (uint32_t)MAX(first, UINT64_C(1)),
				       .last = (uint32_t)last };
	if (!name[strspn(name, "0123456789")] && accounts_parse_number(name, &owner) &&
	    owner < UINT32_MAX)
		ret->owner = (uid_t)owner;
	return true;
}

static int accounts_compare_names(const void *a, const void *b)
{
	const struct account_range *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int accounts_find_owners(struct accounts *a)
{
	FILE *file = fopen(a->passwd, "re");
	const struct passwd *pw;

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	if (a->count)
		qsort(a->ranges, a->count, sizeof(*a->ranges), accounts_compare_names);
	while ((pw = fgetpwent(file))) {
		size_t at = lower_bound(i, a->count, strcmp(a->ranges[i].name, pw->pw_name) < 0);

		for (; at < a->count && strcmp(a->ranges[at].name, pw->pw_name) == 0; at++)
			a->ranges[at].owner = pw->pw_uid;
	}
	fclose(file);
	return 0;
}

static int accounts_read(struct accounts *a)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned number = 0, broken = 0, first_broken = 0;
	int r = read_file_at(AT_FDCWD, a->subuid, SUBUID_BYTES_MAX, &text);
	char *rest = r < 0 ? NULL : buf_string(&text), *line;

	a->count = 0;
	if (r >= 0 && !rest)
		r = -ENOMEM;
	/* A zero spoils its line only. */
	for (size_t i = 0; r >= 0 && i < text.len; i++)
		if (!rest[i])
			rest[i] = '?';
	while (r >= 0 && (line = strsep(&rest, "\n"))) {
		struct account_range range;

		number++;
		if (!*line || *line == '#')
			continue;
		if (accounts_parse(line, &range))
			r = vec_push(a->ranges, a->count, a->cap, range);
		else if (!broken++)
			first_broken = number;
	}
	if (broken)
		log_warning("%s: ignored line %u, which is not NAME:FIRST:COUNT, and %u more",
			    a->subuid, first_broken, broken - 1);
	if (r >= 0)
		r = accounts_find_owners(a);
	if (r < 0)
		a->count = 0;
	return r;
}

static void accounts_look_at(const char *path, struct accounts_file *ret)
{
	struct stat st;

	*ret = (struct accounts_file){ 0 };
	if (stat(path, &st) < 0)
		return;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->size = (uint64_t)st.st_size;
	ret->changed_ns = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
}

static void accounts_refresh(struct accounts *a)
{
	struct accounts_file seen[ARRAY_SIZE(a->seen)];
	int r;

	accounts_look_at(a->subuid, &seen[0]);
	accounts_look_at(a->passwd, &seen[1]);
	if (memcmp(seen, a->seen, sizeof(seen)) == 0)
		return;
	memcpy(a->seen, seen, sizeof(seen));
	r = accounts_read(a);
	if (r < 0 && r != -ENOENT && r != a->failed)
		log_warning("can't read %s or %s, so each subordinate id counts as a user of its "
			    "own: %s",
			    a->subuid, a->passwd, strerror(-r));
	a->failed = r;
	/* A lack of memory or of descriptors passes. */
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		memset(a->seen, 0xff, sizeof(a->seen));
}

uid_t accounts_of(struct accounts *a, uid_t uid)
{
	const struct account_range *found = NULL, *r;
	bool several = false;
	uint32_t first = 0;

	if (!uid)
		return 0;
	accounts_refresh(a);
	for (r = a->ranges; r < a->ranges + a->count; r++) {
		if (uid < r->first || uid > r->last)
			continue;
		several |= found && found->owner != r->owner;
		first = MAX(first, r->first);
		found = r;
	}
	if (!found)
		return uid;
	return several || !found->owner ? first : found->owner;
}

int accounts_new(struct accounts **ret)
{
	struct accounts *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->subuid = "/etc/subuid";
	a->passwd = "/etc/passwd";
	*ret = a;
	return 0;
}

struct accounts *accounts_free(struct accounts *a)
{
	if (!a)
		return NULL;
	free(a->ranges);
	free(a);
	return NULL;
}
