/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/profiles.h"

#include <dirent.h>
#include <ini.h>
#include <string.h>

#include "base/nearest.h"
#include "base/place.h"

#define SUFFIX ".profile"

const char *const *profile_search_path(void)
{
	static const char *dirs[3];

	if (dirs[0])
		return dirs;
	dirs[0] = secure_getenv("TRACED_PROFILES");
	if (dirs[0])
		return dirs;
	dirs[0] = TRACED_SYSCONFDIR "/traced/profiles";
	dirs[1] = place_beside("../systemd/profiles") ?: TRACED_DATADIR "/traced/profiles";
	return dirs;
}

struct profile *profile_free(struct profile *p)
{
	if (!p)
		return NULL;
	free(p->name);
	free(p->summary);
	free(p->path);
	string_list_deinit(&p->events);
	string_list_deinit(&p->optional);
	string_list_deinit(&p->functions);
	free(p->tracer);
	free(p->poll);
	free(p);
	return NULL;
}

static int profile_take_assignment(void *userdata, const char *section, const char *key,
				   const char *value)
{
	struct profile *p = userdata;

	if (strcmp(section, "profile") != 0)
		return 0;
	if (strcmp(key, "events") == 0)
		return string_list_add_words(&p->events, value) >= 0;
	if (strcmp(key, "optional") == 0)
		return string_list_add_words(&p->optional, value) >= 0;
	if (strcmp(key, "functions") == 0)
		return string_list_add_words(&p->functions, value) >= 0;
	if (strcmp(key, "tracer") == 0) {
		free(p->tracer);
		p->tracer = strdup(value);
		return p->tracer != NULL;
	}
	if (strcmp(key, "poll") == 0) {
		free(p->poll);
		p->poll = strdup(value);
		return p->poll != NULL;
	}
	if (strcmp(key, "summary") == 0) {
		free(p->summary);
		p->summary = strdup(value);
		return p->summary != NULL;
	}
	return 0;
}

static int profile_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int profile_names(struct string_list *ret, const char *const *dirs)
{
	size_t kept = 0;
	int r = 0;

	for (; *dirs && r >= 0; dirs++) {
		DIR *d = opendir(*dirs);
		struct dirent *e;

		if (!d)
			continue;
		while (r >= 0 && (e = readdir(d))) {
			char *dot = strrchr(e->d_name, '.');

			if (!dot || dot == e->d_name || strcmp(dot, SUFFIX) != 0)
				continue;
			*dot = '\0';
			r = string_list_add_words(ret, e->d_name);
		}
		closedir(d);
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), profile_compare_names);
	for (size_t i = 0; i < ret->count; i++) {
		if (kept && strcmp(ret->items[kept - 1], ret->items[i]) == 0)
			free(ret->items[i]);
		else
			ret->items[kept++] = ret->items[i];
	}
	if (ret->items)
		ret->items[kept] = NULL;
	ret->count = kept;
	return r;
}

static int profile_not_found(const char *const *dirs, const char *name, struct error *err)
{
	_cleanup_(string_list_deinit) struct string_list names = { 0 };
	_cleanup_buf_ struct buf list = BUF_INIT;
	const char *best[NEAREST_MAX];
	size_t n;

	error_set(err, -ENOENT, "there is no profile \"%s\"", name);
	if (profile_names(&names, dirs) < 0 || !names.count)
		return error_hint(err, "profiles are files NAME%s in %s%s%s", SUFFIX, dirs[0],
				  dirs[1] ? " or " : "", dirs[1] ?: "");
	n = nearest_names(name, (const char *const *)names.items, names.count, best);
	for (size_t i = 0; i < names.count; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", names.items[i]);
	if (n)
		return error_hint(err, "did you mean \"%s\"? There are: %s", best[0],
				  buf_string(&list) ?: "");
	return error_hint(err, "there are: %s", buf_string(&list) ?: "");
}

int profile_load(struct profile **ret, const char *const *dirs, const char *name, struct error *err)
{
	_cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	_cleanup_fclose_ FILE *file = NULL;
	int line;

	if (!p)
		return error_errno(err, -ENOMEM, "profile");
	if (!*name || name[0] == '.' || strchr(name, '/'))
		return profile_not_found(dirs, name, err);
	for (const char *const *dir = dirs; *dir && !file; dir++) {
		_cleanup_buf_ struct buf path = BUF_INIT;

		buf_printf(&path, "%s/%s" SUFFIX, *dir, name);
		if (!buf_string(&path))
			return error_errno(err, -ENOMEM, "profile");
		file = fopen(path.data, "re");
		if (file)
			p->path = TAKE_PTR(path.data);
		else if (errno != ENOENT && errno != ENOTDIR)
			return error_errno(err, -errno, "%s", path.data);
	}
	if (!file)
		return profile_not_found(dirs, name, err);
	line = ini_parse_file(file, profile_take_assignment, p);
	if (line < 0)
		return error_errno(err, -ENOMEM, "%s", p->path);
	if (line > 0) {
		error_set(err, -EINVAL, "%s:%d: not understood", p->path, line);
		return error_hint(err, "a profile has a section [profile] with summary, events "
				       "and optional");
	}
	if (!p->events.count && !p->optional.count && !p->tracer)
		return error_set(err, -EINVAL, "%s: names no events", p->path);
	p->name = strdup(name);
	if (!p->name)
		return error_errno(err, -ENOMEM, "profile");
	*ret = TAKE_PTR(p);
	return 0;
}
