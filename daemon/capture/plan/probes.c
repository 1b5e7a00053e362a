/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/probes.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/caret.h"
#include "base/nearest.h"
#include "daemon/capture/tracefs/events.h"
#include "daemon/capture/tracefs/feature.h"
#include "daemon/capture/tracefs/function_list.h"

#define NAME_LEN 48
/* The kernel accepts lines below 4096 bytes, including the group. */
#define DEFINITION_MAX 3000

struct definition {
	const struct probe_kind *kind;
	char type[12]; /* "p", "r", "r16" */
	char name[NAME_LEN];
	const char *place; /* place and arguments */
	size_t place_len;
};

static bool is_probe_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Length of "p", "r", "r16" or "f16" before a name or place; 0: the text has none. */
static size_t definition_type_len(const struct probe_kind *kind, const char *text)
{
	size_t len = 1;

	if (!*text || !strchr(kind->types, *text))
		return 0;
	while ((*text == 'r' || *text == 'f') && isdigit((unsigned char)text[len]))
		len++;
	return text[len] == ':' || text[len] == ' ' ? len : 0;
}

/* at: where the mistake is; NULL: no single place. */
static int probe_wrong_at(const char *text, const char *at, const char *what,
			  const struct probe_kind *kind, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	if (at)
		buf_put_caret(&place, text, at);
	error_set(err, -EINVAL, "the probe '%.200s' %s%s", text, what, buf_string(&place) ?: "");
	return error_hint(err, "write it as in --%s '%s'", kind->name, kind->usage);
}

static int probe_wrong(const char *text, const char *what, const struct probe_kind *kind,
		       struct error *err)
{
	return probe_wrong_at(text, NULL, what, kind, err);
}

static int definition_take_name(struct definition *d, const char *text, const char *name,
				size_t len, struct error *err)
{
	const char *slash = memchr(name, '/', len);

	if (slash)
		return probe_wrong_at(text, slash, "names a group, but each recording uses its own",
				      d->kind, err);
	if (!len || isdigit((unsigned char)*name))
		return probe_wrong_at(text, name,
				      "has no name after the colon that begins with a letter",
				      d->kind, err);
	if (len >= sizeof(d->name))
		return probe_wrong_at(text, name + sizeof(d->name) - 1, "has too long a name",
				      d->kind, err);
	for (size_t i = 0; i < len; i++)
		if (!is_probe_char(name[i]))
			return probe_wrong_at(
				text, name + i,
				"has a name with other characters than letters, digits and _",
				d->kind, err);
	memcpy(d->name, name, len);
	d->name[len] = '\0';
	return 0;
}

/*
 * Makes FUNCTION of "MODULE:FUNCTION+OFFSET" and "FUNCTION%return", EVENT of "SYSTEM:EVENT", and
 * b_0x1234 of "/a/b:0x1234".
 */
static void definition_make_name(struct definition *d)
{
	const char *from = d->place, *end = d->place + d->place_len;
	bool returns = *d->type == 'r' || memmem(from, d->place_len, "%return", strlen("%return"));
	const char *before = d->kind->user			     ? "/"
			     : d->kind == &probe_kinds[PROBE_EPROBE] ? ":./"
								     : ":";
	char *to = d->name;

	for (const char *p = from; p < end; p++)
		if (strchr(before, *p))
			from = p + 1;
	if (!d->kind->user)
		end = from + strcspn(from, "+% ");
	if (from < end && isdigit((unsigned char)*from))
		*to++ = '_';
	for (; from < end && to < d->name + NAME_LEN - 12; from++)
		*to++ = is_probe_char(*from) ? *from : '_';
	strcpy(to, returns ? "__return" : "");
}

static int definition_check_place(const struct definition *d, const char *text, struct error *err)
{
	const char *colon = d->place;

	if (!d->place_len)
		return probe_wrong(text, "has no place", d->kind, err);
	if (d->kind == &probe_kinds[PROBE_EPROBE] && !memchr(d->place, ':', d->place_len) &&
	    !memchr(d->place, '.', d->place_len) && !memchr(d->place, '/', d->place_len))
		return probe_wrong(text, "needs an event with its system", d->kind, err);
	if (!d->kind->user)
		return 0;
	if (*d->place != '/')
		return probe_wrong(text, "needs the whole path of a program or library", d->kind,
				   err);
	while ((size_t)(colon - d->place) < d->place_len && strncmp(colon, ":0x", 3) != 0)
		colon++;
	if ((size_t)(colon - d->place) == d->place_len) {
		error_set(err, -EINVAL, "the probe '%.200s' has no offset in its file", text);
		return error_hint(
			err,
			"write /PATH:0x1234, or /PATH:FUNCTION, which tracectl converts; the "
			"offset is the function's value in 'readelf -sW /PATH', minus its "
			"segment's VirtAddr, plus that segment's Offset ('readelf -lW /PATH')");
	}
	return 0;
}

/* Refuses "p:x vfs_read" as an eprobe: the first letter is that of another kind. */
static int definition_check_kind(const char *text, const struct probe_kind *kind, struct error *err)
{
	char what[64];

	for (size_t i = 0; i < PROBE_KINDS; i++) {
		size_t len = definition_type_len(&probe_kinds[i], text);

		if (!len || text[len] != ':')
			continue;
		snprintf(what, sizeof(what),
			 "begins with %.*s:, but --%s begins with %c:", (int)MIN(len, (size_t)8),
			 text, kind->name, *kind->types);
		return probe_wrong(text, what, kind, err);
	}
	return 0;
}

static int definition_parse(struct definition *d, const struct capture_probe *probe,
			    struct error *err)
{
	const struct probe_kind *kind = &probe_kinds[probe->kind];
	const char *text = probe->definition;
	const char *p = text + strspn(text, " "), *name = NULL;
	size_t len = definition_type_len(kind, p), name_len = 0;
	int r = 0;

	d->kind = kind;
	if (strlen(text) > DEFINITION_MAX)
		return probe_wrong(text, "is too long", kind, err);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '#')
			return probe_wrong(text, "has a character that the kernel does not accept",
					   kind, err);
	if (!len && (r = definition_check_kind(p, kind, err)) < 0)
		return r;
	if (len >= sizeof(d->type))
		return probe_wrong(text, "has too many digits after its first letter", kind, err);
	snprintf(d->type, sizeof(d->type), "%.*s", len ? (int)len : 1, len ? p : kind->types);
	p += len;
	if (len && *p == ':') {
		name = ++p;
		name_len = strcspn(p, " ");
		p += name_len;
	}
	d->place = p + strspn(p, " ");
	d->place_len = strcspn(d->place, " ");
	r = definition_check_place(d, text, err);
	if (r == 0 && name)
		r = definition_take_name(d, text, name, name_len, err);
	else if (r == 0)
		definition_make_name(d);
	return r;
}

/* The event of an eprobe exists. Its name is "SYSTEM:EVENT", or has a dot or a slash there. */
static int definition_check_event(const struct definition *d, struct tracefs *fs, struct error *err)
{
	_cleanup_event_matches_ struct event_matches matches = { 0 };
	_cleanup_free_ char *name = strndup(d->place, d->place_len);
	const struct capture_event_spec spec = { .glob = name };
	const char *const *names;
	size_t count;
	int r;

	if (!name)
		return error_set(err, -ENOMEM, "out of memory");
	name[strcspn(name, ":./")] = ':';
	if (strpbrk(name, "*?["))
		return error_set(err, -EINVAL, "'%s' is not the name of one event", name);
	r = tracefs_events(fs, &names, &count, err);
	return r < 0 ? r : event_matches_find(&matches, &spec, 1, NULL, names, count, err);
}

/*
 * The tracepoint of a tprobe exists: Linux 6.12 takes any name, for modules that come later. Not
 * known where the functions can't be listed.
 */
static int definition_check_tracepoint(const struct definition *d, const struct tracefs *fs,
				       struct error *err)
{
	static const char prefix[] = TRACEPOINT_FUNCTION;
	_cleanup_function_list_ struct function_list list = { 0 };
	_cleanup_free_ char *name = strndup(d->place, d->place_len);
	_cleanup_free_ const char **names = NULL;
	const char *best[NEAREST_MAX];
	size_t count = 0;

	if (name && function_list_read(&list, fs, NULL) < 0)
		return 0;
	names = calloc(list.count + 1, sizeof(*names));
	if (!name || !names)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < list.count; i++) {
		if (strncmp(list.names[i], prefix, strlen(prefix)) != 0)
			continue;
		names[count++] = list.names[i] + strlen(prefix);
		if (strcmp(names[count - 1], name) == 0)
			return 0;
	}
	if (!count || strchr(name, ':'))
		return 0;
	error_set(err, -ENOENT, "this kernel has no tracepoint '%.100s'", name);
	if (nearest_names(name, names, count, best))
		return error_hint(err, "did you mean '%s'?", best[0]);
	return error_hint(err, "'tracectl events --probe' lists them; a module's are there while "
			       "it is loaded");
}

int probes_check(const struct capture_request *request, struct tracefs *fs, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < request->probe_count && r == 0; i++) {
		struct definition d;

		r = definition_parse(&d, &request->probes[i], err);
		if (r == 0 && d.kind == &probe_kinds[PROBE_EPROBE])
			r = definition_check_event(&d, fs, err);
		if (r == 0 && d.kind == &probe_kinds[PROBE_TPROBE])
			r = definition_check_tracepoint(&d, fs, err);
	}
	return r;
}

void probe_list_deinit(struct probe_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free((void *)(uintptr_t)l->specs[i].glob);
	free(l->specs);
	*l = (struct probe_list){ 0 };
}

static int probe_list_add(struct probe_list *l, const char *group, const struct definition *d,
			  const struct capture_probe *probe, struct error *err)
{
	char *glob;

	if (asprintf(&glob, "%s:%s", group, d->name) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->specs[i].glob, glob) != 0)
			continue;
		free(glob);
		error_set(err, -EINVAL, "two probes are called '%s'", d->name);
		return error_hint(err, "rename one of them: '%s:OTHER ...' for '%.200s'", d->type,
				  probe->definition);
	}
	l->specs[l->count++] = (struct capture_event_spec){ .glob = glob, .filter = probe->filter };
	return 0;
}

static int probe_plan(struct plan *plan, const struct definition *d, const char *group,
		      struct error *err)
{
	_cleanup_free_ char *line = NULL, *undo = NULL;

	if (asprintf(&line, "%s:%s/%s %s\n", d->type, group, d->name, d->place) < 0)
		line = NULL;
	if (asprintf(&undo, "-:%s/%s\n", group, d->name) < 0)
		undo = NULL;
	if (!line || !undo)
		return error_set(err, -ENOMEM, "out of memory");
	/* The kernel separates system and event by a dot. */
	if (d->kind == &probe_kinds[PROBE_EPROBE]) {
		char *place = strchr(line, ' ') + 1, *colon = memchr(place, ':', d->place_len);

		if (colon)
			*colon = '.';
	}
	plan_add(plan, d->kind->file, line, undo);
	return 0;
}

int probes_plan(struct plan *plan, const struct capture_request *request, const char *group,
		struct probe_list *ret, struct error *err)
{
	int r = 0;

	ret->specs = calloc(request->probe_count + 1, sizeof(*ret->specs));
	if (!ret->specs)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < request->probe_count && r == 0; i++) {
		const struct capture_probe *probe = &request->probes[i];
		struct definition d;

		r = definition_parse(&d, probe, err);
		if (r == 0)
			r = probe_list_add(ret, group, &d, probe, err);
		if (r == 0)
			r = probe_plan(plan, &d, group, err);
	}
	return r;
}

bool probes_are_in(const char *file)
{
	for (size_t i = 0; i < PROBE_KINDS; i++)
		if (strcmp(file, probe_kinds[i].file) == 0)
			return true;
	return false;
}

/*
 * Removes our group from the kernel's message, since the user did not type it. The caret on the
 * next line moves left by the same width.
 */
static void probes_put_log(char *log, struct buf *out)
{
	size_t moved = 0;
	char *save = NULL;

	for (char *p = strtok_r(log, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		char *group = strstr(p, PROBE_GROUP_PREFIX);
		size_t blanks = strspn(p, " ");

		if (group && strlen(group) > PROBE_GROUP_LEN && group[PROBE_GROUP_LEN] == '/') {
			moved = PROBE_GROUP_LEN + 1;
			buf_printf(out, "\n%.*s%s", (int)(group - p), p, group + moved);
			continue;
		}
		if (p[blanks] == '^' && blanks > moved + strlen("  Command: p:"))
			p += moved;
		buf_printf(out, "\n%s", p);
	}
}

/* Reports an unknown function: the PLACE in a line "p:GROUP/NAME PLACE ...". */
static int probe_no_function(const struct plan_step *s, const struct tracefs *fs, struct error *err)
{
	_cleanup_function_list_ struct function_list list = { 0 };
	_cleanup_error_ struct error found = ERROR_INIT;
	const char *place = strchr(s->value, ' ');
	struct function_word word = { 0 };

	if (!place || !isalpha((unsigned char)place[1]) || function_list_read(&list, fs, NULL) < 0)
		return -ENOENT;
	snprintf(word.glob, sizeof(word.glob), "%.*s", (int)strcspn(place + 1, " +%\n"), place + 1);
	if (strpbrk(word.glob, ":*?[") || function_any_matches(&list, &word))
		return -ENOENT;
	function_no_match(&list, &word, &found);
	return found.hint ? error_hint(err, "%s", found.hint) : -ENOENT;
}

int probes_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err)
{
	const struct probe_kind *kind = probe_kind_of(s->file, s->value);
	_cleanup_free_ char *last = tracefs_last_error(fs, NULL);
	_cleanup_buf_ struct buf text = BUF_INIT, log = BUF_INIT;
	const char *name = strchr(s->value, '/'), *type = strchr(s->value, ':');

	if (!kind)
		return error_errno(err, code, "cannot write to %s", s->file);
	if (!probe_kind_exists(fs, NULL, kind)) {
		error_set(err, -EOPNOTSUPP, "this kernel has no %ss (%s)", kind->name,
			  feature_needs(FEATURE_PROBE, kind->name));
		return error_hint(err, "'tracectl doctor' tells which probes it has");
	}
	if (code == -EPERM || code == -EACCES) {
		error_set(err, code, "the kernel refuses probes from this program");
		return error_hint(err, "it may be locked down (see 'tracectl doctor'); events can "
				       "still be recorded, with -e");
	}
	/*
	 * Compare without the group, which the user did not type. An older error_log entry is not
	 * about this probe.
	 */
	buf_printf(&text, "%.*s%.*s", (int)(type + 1 - s->value), s->value,
		   (int)strcspn(name + 1, "\n"), name + 1);
	if (last && memmem(last, strlen(last), type + 1, (size_t)(name - type)))
		probes_put_log(last, &log);
	error_set(err, code, "the kernel refuses the probe '%.200s': %s%s", buf_string(&text) ?: "",
		  strerror(-code), buf_string(&log) ?: "");
	if (strstr(buf_string(&log) ?: "", "BTF is not available"))
		return feature_hint(err, FEATURE_PART, "types", NULL);
	if (kind->readme && code == -EINVAL && !log.len)
		return error_hint(err, "the kernel gives no reason; one without %s says the same",
				  feature_needs(FEATURE_PROBE, kind->name));
	if (kind == &probe_kinds[PROBE_TPROBE])
		return error_hint(err, "'tracectl events --probe' lists the tracepoints");
	if (strcmp(kind->name, "kprobe") == 0 || strcmp(kind->name, "fprobe") == 0)
		probe_no_function(s, fs, err);
	return code;
}

int probe_enable_explain(const struct plan_step *s, int code, struct error *err)
{
	const char *name = strchr(s->file + strlen("events/"), '/');
	size_t len = name ? strcspn(name + 1, "/") : 0;

	error_errno(err, code, "the kernel cannot insert the probe '%.*s'", (int)len,
		    len ? name + 1 : "");
	return error_hint(
		err, "its address must be the start of an instruction, in code that may be probed");
}
