/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/events.h"

#include "daemon/capture/plan/probes.h"
#include "daemon/capture/plan/synthetic.h"

#include <strings.h>

#include "base/event_glob.h"
#include "base/nearest.h"
#include "daemon/capture/tracefs/feature.h"

#define NAME_MAX_LEN 256
#define LIBTRACED_EVENT "traced_mark" /* of system user_events */

void event_matches_deinit(struct event_matches *m)
{
	free(m->items);
	*m = (struct event_matches){ 0 };
}

void event_file(const char *name, const char *file, char *path, size_t size)
{
	const char *colon = strchr(name, ':');

	snprintf(path, size, "events/%.*s/%s/%s", (int)(colon - name), name, colon + 1, file);
}

bool event_glob_matches(const char *glob, const char *name)
{
	const char *colon = strchr(name, ':');
	char system[NAME_MAX_LEN];
	size_t len;

	if (!colon)
		return false;
	/*
	 * Globs skip the events of other recordings' probes and SQL: to use them would keep them
	 * from being removed.
	 */
	if (strncmp(name, PROBE_GROUP_PREFIX, strlen(PROBE_GROUP_PREFIX)) == 0 ||
	    (strncmp(name, SYNTHETIC_SYSTEM, strlen(SYNTHETIC_SYSTEM)) == 0 &&
	     synthetic_is_ours(colon + 1)))
		return strcmp(glob, name) == 0;
	len = (size_t)(colon - name);
	if (len >= sizeof(system))
		return false;
	memcpy(system, name, len);
	system[len] = '\0';
	return event_glob_has(glob, system, colon + 1);
}

/* Collects candidates for a mistyped glob without a colon: systems, and events' bare names. */
static size_t collect_words(const char *const *names, size_t count, struct buf *text,
			    const char ***ret)
{
	const char **words = calloc(count * 2 + 1, sizeof(*words));
	size_t n = 0;

	if (!words)
		return 0;
	for (size_t i = 0; i < count; i++)
		buf_append(text, names[i], strlen(names[i]) + 1);
	if (buf_error(text)) {
		free(words);
		return 0;
	}
	for (char *p = text->data; p < text->data + text->len;) {
		size_t len = strlen(p);
		char *colon = strchr(p, ':');

		if (colon) {
			*colon = '\0';
			if (!n || strcmp(words[n - 1], p) != 0)
				words[n++] = p;
		}
		p += len + 1;
	}
	for (size_t i = 0; i < count; i++) {
		const char *colon = strchr(names[i], ':');

		if (colon)
			words[n++] = colon + 1;
	}
	*ret = words;
	return n;
}

/* Looks among the events of the glob's system, or among all if there is no such system. */
static size_t nearest_full(const char *glob, const char *const *names, size_t count,
			   const char *best[static NEAREST_MAX])
{
	size_t system = strcspn(glob, ":") + 1, from = 0, to, n;
	const char **bare;

	while (from < count && strncmp(names[from], glob, system) != 0)
		from++;
	for (to = from; to < count && !strncmp(names[to], glob, system); to++)
		;
	bare = from < to ? calloc(to - from, sizeof(*bare)) : NULL;
	if (!bare)
		return nearest_names(glob, names, count, best);
	for (size_t i = from; i < to; i++)
		bare[i - from] = names[i] + system;
	n = nearest_names(glob + system, bare, to - from, best);
	for (size_t i = 0; i < n; i++)
		best[i] -= system;
	free(bare);
	return n ?: nearest_names(glob, names, count, best);
}

/* Recognizes other tools' ways to name events. */
static const char *event_other_way(const char *glob)
{
	if (strcasecmp(glob, "all") == 0)
		return "all events are '*:*'";
	if (strchr(glob, ','))
		return "use one -e for each: -e sched -e irq";
	if (strchr(glob, '/'))
		return "write a colon between system and event: sched:sched_switch";
	if (strstr(glob, LIBTRACED_EVENT))
		return "start a program with TRACED_USER_EVENTS=1 first: libtraced registers this "
		       "event if the kernel has user events ('tracectl doctor' says)";
	if (strncmp(glob, "user_events", strlen("user_events")) == 0)
		return "programs register these events, if the kernel has them "
		       "(CONFIG_USER_EVENTS, Linux 6.4)";
	return NULL;
}

/* The kernel has none of the system's events, for a known reason: that is the hint. */
static bool event_lacks_system(const char *glob, const char *const *names, size_t count,
			       struct error *err)
{
	size_t len = strcspn(glob, ":");
	_cleanup_free_ char *system = strndup(glob, len);

	if (!system || !feature_needs(FEATURE_EVENTS, system))
		return false;
	for (size_t i = 0; i < count; i++)
		if (strncmp(names[i], system, len) == 0 && names[i][len] == ':')
			return false;
	feature_hint(err, FEATURE_EVENTS, system, NULL);
	return true;
}

static int event_no_match(const char *glob, const char *const *names, size_t count,
			  struct error *err)
{
	_cleanup_free_ const char **words = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT, hint = BUF_INIT;
	const char *best[NEAREST_MAX];
	size_t n;

	error_set(err, -ENOENT, "no event of this kernel matches '%s'", glob);
	if (event_lacks_system(glob, names, count, err))
		return -ENOENT;
	if (event_other_way(glob))
		return error_hint(err, "%s", event_other_way(glob));
	if (strchr(glob, ':')) {
		n = nearest_full(glob, names, count, best);
	} else {
		size_t word_count = collect_words(names, count, &text, &words);

		n = word_count ? nearest_names(glob, words, word_count, best) : 0;
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(&hint, "%s'%s'", i ? ", " : "did you mean ", best[i]);
	buf_puts(&hint, n ? "? " : "");
	buf_puts(&hint, "'tracectl events' lists all events");
	error_hint(err, "%s", buf_string(&hint) ?: "'tracectl events' lists all events");
	return -ENOENT;
}

static size_t system_len(const char *name)
{
	return strcspn(name, ":");
}

static bool same_system(const char *a, const char *b)
{
	size_t len = system_len(a);

	return len == system_len(b) && memcmp(a, b, len) == 0;
}

/* Both lists are sorted, so a system's events are adjacent. */
static void mark_whole_systems(struct event_match *items, size_t count, const char *const *names,
			       size_t name_count)
{
	size_t next = 0, at = 0;

	while (at < count) {
		size_t end = at, from;

		while (end < count && same_system(items[end].name, items[at].name))
			end++;
		while (next < name_count && !same_system(names[next], items[at].name))
			next++;
		from = next;
		while (next < name_count && same_system(names[next], items[at].name))
			next++;
		for (size_t i = at; i < end; i++)
			items[i].whole_system = next - from == end - at;
		at = end;
	}
}

static bool event_any_matches(const struct capture_words *globs, const char *name)
{
	for (size_t i = 0; i < globs->count; i++)
		if (event_glob_matches(globs->items[i], name))
			return true;
	return false;
}

bool event_is_within(const struct capture_event_bounds *bounds, const char *name)
{
	if (!bounds)
		return true;
	return (!bounds->only.count || event_any_matches(&bounds->only, name)) &&
	       !event_any_matches(&bounds->never, name);
}

/*
 * libtraced's user event has marks that a recording gets from the rings, too. So only its own name
 * matches it.
 */
static bool event_spec_matches(const struct capture_event_spec *spec, const char *name)
{
	return event_glob_matches(spec->glob, name) &&
	       (strcmp(name, "user_events:" LIBTRACED_EVENT) != 0 ||
		strstr(spec->glob, LIBTRACED_EVENT));
}

static int event_none_within(const char *glob, struct error *err)
{
	error_set(err, -EPERM, "only root may record '%s' here", glob);
	return error_hint(err, "run as root, or let root allow it: events_allowed and "
			       "events_denied in [users] of traced.conf");
}

int event_matches_find(struct event_matches *ret, const struct capture_event_spec *specs,
		       size_t spec_count, const struct capture_event_bounds *bounds,
		       const char *const *names, size_t name_count, struct error *err)
{
	_cleanup_free_ bool *beyond = calloc(name_count + 1, sizeof(*beyond));
	_cleanup_free_ const struct capture_event_spec **by_name =
		calloc(name_count + 1, sizeof(*by_name));
	struct event_matches m = { 0 };

	if (!by_name || !beyond)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < name_count; i++)
		beyond[i] = !event_is_within(bounds, names[i]);
	for (size_t s = 0; s < spec_count; s++) {
		size_t found = 0, refused = 0;

		for (size_t i = 0; i < name_count; i++) {
			if (!event_spec_matches(&specs[s], names[i]))
				continue;
			refused += beyond[i];
			found += !beyond[i];
			m.left_out += !by_name[i] && beyond[i];
			m.count += !by_name[i] && !beyond[i];
			by_name[i] = &specs[s];
		}
		if (!found)
			return refused ? event_none_within(specs[s].glob, err)
				       : event_no_match(specs[s].glob, names, name_count, err);
	}
	m.items = calloc(m.count + 1, sizeof(*m.items));
	if (!m.items)
		return error_set(err, -ENOMEM, "out of memory");
	m.count = 0;
	for (size_t i = 0; i < name_count; i++)
		if (by_name[i] && !beyond[i])
			m.items[m.count++] = (struct event_match){ .name = names[i],
								   .filter = by_name[i]->filter,
								   .spec = by_name[i] };
	mark_whole_systems(m.items, m.count, names, name_count);
	*ret = m;
	return 0;
}
