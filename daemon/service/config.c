/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/config.h"

#include <dirent.h>
#include <ini.h>
#include <string.h>
#include <syslog.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "base/vec.h"
#include "control/frame.h"
#include "daemon/capture/capture.h"
#include "stream/poll_plan.h"

void string_list_deinit(struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){ 0 };
}

int string_list_add_words(struct string_list *list, const char *text)
{
	static const char separators[] = " \t\n\r,";

	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		size_t len = strcspn(text, separators);

		if (vec_reserve_exact(list->items, list->count, 2) < 0)
			return -ENOMEM;
		list->items[list->count] = strndup(text, len);
		if (!list->items[list->count])
			return -ENOMEM;
		list->items[++list->count] = NULL;
		text += len;
	}
	return 0;
}

int string_list_copy(struct string_list *ret, const struct string_list *from)
{
	struct string_list copy = { 0 };
	int r = 0;

	for (size_t i = 0; i < from->count && r >= 0; i++)
		r = string_list_add_words(&copy, from->items[i]);
	if (r < 0) {
		string_list_deinit(&copy);
		return r;
	}
	*ret = copy;
	return 0;
}

int log_level_parse(const char *text)
{
	static const char *const names[] = { "emergency", "alert",  "critical", "error",
					     "warning",	  "notice", "info",	"debug" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i]) == 0)
			return (int)i;
	if (text[0] >= '0' && text[0] <= '7' && !text[1])
		return text[0] - '0';
	return -EINVAL;
}

static int config_set_path(void *field, const char *value, struct error *err)
{
	char *copy;

	if (value[0] != '/')
		return error_set(err, -EINVAL, "\"%s\" is not an absolute path", value);
	copy = strdup(value);
	if (!copy)
		return error_errno(err, -ENOMEM, "configuration");
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static int config_set_log_level(void *field, const char *value, struct error *err)
{
	int level = log_level_parse(value);

	if (level < 0)
		return error_set(err, -EINVAL,
				 "\"%s\" is not a log level: debug, info, notice, warning or error",
				 value);
	*(int *)field = level;
	return 0;
}

#define COUNT_MAX 4096

static int config_set_count(void *field, const char *value, struct error *err)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || value[0] == '-' || n < 1 || n > COUNT_MAX)
		return error_set(err, -EINVAL, "\"%s\" is not a number from 1 to %d", value,
				 COUNT_MAX);
	*(unsigned *)field = (unsigned)n;
	return 0;
}

static int config_set_switch(void *field, const char *value, struct error *err)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return error_set(err, -EINVAL, "\"%s\" is neither yes nor no", value);
	*(bool *)field = value[0] == 'y';
	return 0;
}

static int config_set_spare(void *field, const char *value, struct error *err)
{
	static const char *const words[] = {
		[SPARE_AUTO] = "auto", [SPARE_NO] = "no", [SPARE_YES] = "yes"
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(value, words[i]) == 0) {
			*(int *)field = (int)i;
			return 0;
		}
	return error_set(err, -EINVAL, "\"%s\" is not yes, no or auto", value);
}

static int config_set_size(void *field, const char *value, struct error *err)
{
	int r = parse_size(value, field, err);

	/* Require a unit: a guess would be wrong by a factor of 1000 for some users. */
	if (r == 0 && strchr("0123456789", value[strlen(value) - 1]))
		return error_set(err, -EINVAL, "'%s' has no unit: B, K, M or G", value);
	return r;
}

/* True for a value that means "no limit", stored as 0. */
static bool config_is_none(const char *value)
{
	return strcmp(value, "none") == 0 || strcmp(value, "0") == 0;
}

static int config_set_size_limit(void *field, const char *value, struct error *err)
{
	*(uint64_t *)field = 0;
	return config_is_none(value) ? 0 : config_set_size(field, value, err);
}

static int config_set_duration_limit(void *field, const char *value, struct error *err)
{
	*(uint64_t *)field = 0;
	return config_is_none(value) ? 0 : parse_duration(value, field, err);
}

static int config_set_word(void *field, const char *value, struct error *err)
{
	char *copy;

	if (!*value || strpbrk(value, " \t/"))
		return error_set(err, -EINVAL, "\"%s\" is not one word", value);
	copy = strdup(value);
	if (!copy)
		return error_errno(err, -ENOMEM, "configuration");
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static int config_set_reader(void *field, const char *value, struct error *err)
{
	static const char *const readers[] = {
		[CAPTURE_READER_AUTO] = "auto",
		[CAPTURE_READER_MMAP] = "mmap",
		[CAPTURE_READER_SPLICE] = "splice",
		[CAPTURE_READER_READ] = "read",
	};

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (strcmp(value, readers[i]) == 0) {
			*(int *)field = (int)i;
			return 0;
		}
	}
	error_set(err, -EINVAL, "\"%s\" is not a way to read a ring buffer", value);
	return error_hint(err, "use auto, mmap, splice or read");
}

static int config_set_user_functions(void *field, const char *value, struct error *err)
{
	static const char *const words[] = {
		[USER_FUNCTIONS_NO] = "no",
		[USER_FUNCTIONS_OWN] = "own",
		[USER_FUNCTIONS_YES] = "yes",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(value, words[i]) == 0) {
			*(int *)field = (int)i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "\"%s\" is not no, own or yes", value);
}

static int config_set_words(void *field, const char *value, struct error *err)
{
	int r;

	if (!*value) {
		string_list_deinit(field);
		return 0;
	}
	r = string_list_add_words(field, value);
	return r < 0 ? error_errno(err, r, "configuration") : 0;
}

static int config_set_poll(void *field, const char *value, struct error *err)
{
	struct poll_plan unused = { 0 };
	char *copy = NULL;

	if (*value && poll_plan_add(&unused, value, err) < 0)
		return -err->code;
	copy = *value ? strdup(value) : NULL;
	if (*value && !copy)
		return error_errno(err, -ENOMEM, "configuration");
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static const struct key {
	const char *section, *name;
	size_t offset;
	int (*set)(void *field, const char *value, struct error *err);
} keys[] = {
	{ "daemon", "socket", offsetof(struct config, socket), config_set_path },
	{ "daemon", "spool_dir", offsetof(struct config, spool_dir), config_set_path },
	{ "daemon", "state_dir", offsetof(struct config, state_dir), config_set_path },
	{ "daemon", "metrics", offsetof(struct config, metrics), config_set_path },
	{ "daemon", "hooks", offsetof(struct config, hooks), config_set_path },
	{ "daemon", "log_level", offsetof(struct config, log_level), config_set_log_level },
	{ "daemon", "marks", offsetof(struct config, marks), config_set_switch },
	{ "daemon", "spare", offsetof(struct config, spare), config_set_spare },
	{ "limits", "clients", offsetof(struct config, clients), config_set_count },
	{ "limits", "sessions", offsetof(struct config, sessions), config_set_count },
	{ "limits", "spool_max", offsetof(struct config, spool_max), config_set_size_limit },
	{ "limits", "min_free", offsetof(struct config, min_free), config_set_size_limit },
	{ "limits", "duration_max", offsetof(struct config, duration_max),
	  config_set_duration_limit },
	{ "limits", "mark_programs", offsetof(struct config, mark_programs), config_set_count },
	{ "limits", "mark_rings", offsetof(struct config, mark_rings), config_set_count },
	{ "limits", "mark_memory", offsetof(struct config, mark_memory), config_set_size },
	{ "limits", "mark_rate", offsetof(struct config, mark_rate), config_set_size_limit },
	{ "users", "clients", offsetof(struct config, users.clients), config_set_count },
	{ "users", "sessions", offsetof(struct config, users.sessions), config_set_count },
	{ "users", "buffer_memory", offsetof(struct config, users.buffer_memory),
	  config_set_size_limit },
	{ "users", "spool_max", offsetof(struct config, users.spool_max), config_set_size_limit },
	{ "users", "duration_max", offsetof(struct config, users.duration_max),
	  config_set_duration_limit },
	{ "users", "raw_addresses", offsetof(struct config, users.raw_addresses),
	  config_set_switch },
	{ "users", "top_level", offsetof(struct config, users.top_level), config_set_switch },
	{ "users", "functions", offsetof(struct config, users.functions),
	  config_set_user_functions },
	{ "users", "events_allowed", offsetof(struct config, users.events_allowed),
	  config_set_words },
	{ "users", "events_denied", offsetof(struct config, users.events_denied),
	  config_set_words },
	{ "defaults", "buffer_size", offsetof(struct config, buffer_size), config_set_size },
	{ "defaults", "clock", offsetof(struct config, clock), config_set_word },
	{ "defaults", "reader", offsetof(struct config, reader), config_set_reader },
	{ "defaults", "events", offsetof(struct config, events), config_set_words },
	{ "defaults", "poll", offsetof(struct config, poll), config_set_poll },
};

/* One file being read. libinih's handler does not get the line number. */
struct source {
	FILE *file;
	const char *path;
	unsigned line;
	bool ends_within_line;
	struct config *config;
	struct buf *warnings;
	struct error *err; /* the first error ends the reading */
	int failed;
};

static char *config_read_line(char *buffer, int size, void *stream)
{
	struct source *s = stream;
	size_t len;

	if (s->failed || !fgets(buffer, size, s->file))
		return NULL;
	if (!s->ends_within_line)
		s->line++;
	len = strlen(buffer);
	s->ends_within_line = len && buffer[len - 1] != '\n' && !feof(s->file);
	if (s->ends_within_line)
		s->failed =
			error_set(s->err, -EINVAL, "%s:%u: the line is too long", s->path, s->line);
	return s->failed ? NULL : buffer;
}

static void config_warn_unknown(struct source *s, const char *section, const char *name)
{
	const char *names[ARRAY_SIZE(keys)], *best[NEAREST_MAX];
	const struct key *elsewhere = NULL;
	bool section_known = false;
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].section, section) == 0) {
			section_known = true;
			names[count++] = keys[i].name;
		} else if (!elsewhere && strcmp(keys[i].name, name) == 0) {
			elsewhere = &keys[i];
		}
	}
	if (elsewhere) {
		buf_printf(s->warnings, "%s:%u: \"%s\" belongs in [%s], ignored\n", s->path,
			   s->line, name, elsewhere->section);
		return;
	}
	if (!section_known) {
		buf_printf(s->warnings,
			   "%s:%u: unknown section [%s], ignored; there are [daemon], [limits], "
			   "[users] and [defaults]\n",
			   s->path, s->line, section);
		return;
	}
	buf_printf(s->warnings, "%s:%u: unknown key \"%s\" in [%s], ignored", s->path, s->line,
		   name, section);
	if (nearest_names(name, names, count, best))
		buf_printf(s->warnings, "; did you mean \"%s\"?", best[0]);
	buf_putc(s->warnings, '\n');
}

static int config_take_assignment(void *userdata, const char *section, const char *name,
				  const char *value)
{
	struct source *s = userdata;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !s->failed; i++) {
		void *field = (char *)s->config + keys[i].offset;

		if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
			continue;
		s->failed = keys[i].set(field, value, s->err);
		if (s->failed)
			error_prefix(s->err, "%s:%u: %s", s->path, s->line, name);
		return !s->failed;
	}
	if (!s->failed)
		config_warn_unknown(s, section, name);
	return !s->failed;
}

static int config_load_file(struct config *c, const char *path, bool must_exist,
			    struct buf *warnings, struct error *err)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct source s = {
		.file = file, .path = path, .config = c, .warnings = warnings, .err = err
	};
	int line;

	if (!file) {
		if (errno == ENOENT && !must_exist)
			return 0;
		return error_errno(err, -errno, "%s", path);
	}
	line = ini_parse_stream(config_read_line, &s, config_take_assignment, &s);
	if (s.failed)
		return s.failed;
	if (ferror(file))
		return error_errno(err, -EIO, "%s", path);
	if (line < 0)
		return error_errno(err, -ENOMEM, "%s", path);
	if (line > 0)
		return error_set(err, -EINVAL, "%s:%d: neither a [section] nor \"key = value\"",
				 path, line);
	return 0;
}

static int config_is_drop_in(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && strcmp(d->d_name + len - 5, ".conf") == 0;
}

static int config_compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int config_load(struct config *c, const char *path, bool must_exist, struct buf *warnings,
		struct error *err)
{
	_cleanup_buf_ struct buf folder = BUF_INIT, drop_in = BUF_INIT;
	struct dirent **entries = NULL;
	int r, count;

	r = config_load_file(c, path, must_exist, warnings, err);
	if (r < 0)
		return r;
	buf_printf(&folder, "%s.d", path);
	if (!buf_string(&folder))
		return error_errno(err, -ENOMEM, "configuration");
	count = scandir(folder.data, &entries, config_is_drop_in, config_compare_names);
	if (count < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : error_errno(err, -errno, "%s", folder.data);
	for (int i = 0; i < count; i++) {
		buf_clear(&drop_in);
		buf_printf(&drop_in, "%s/%s", folder.data, entries[i]->d_name);
		if (r >= 0)
			r = buf_string(&drop_in)
				    ? config_load_file(c, drop_in.data, true, warnings, err)
				    : error_errno(err, -ENOMEM, "configuration");
		free(entries[i]);
	}
	free(entries);
	return r;
}

int config_load_usual(struct config *ret)
{
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	int r = config_init(ret);

	if (r < 0 || config_load(ret, CONFIG_FILE, false, &warnings, NULL) == 0)
		return r;
	config_deinit(ret);
	return config_init(ret);
}

uint64_t machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

int config_init(struct config *c)
{
	*c = (struct config){
		.socket = strdup(CONTROL_SOCKET),
		.spool_dir = strdup(TRACED_SPOOL_DIR),
		.state_dir = strdup(TRACED_RUN_DIR),
		.log_level = LOG_INFO,
		.clients = 64,
		.sessions = 16,
		.marks = true,
		.mark_programs = 1024,
		.mark_rings = 1024,
		.mark_memory = UINT64_C(256) << 20,
		.mark_rate = UINT64_C(256) << 20,
		.min_free = UINT64_C(64) << 20,
		.users = {
			.clients = 16,
			.sessions = 4,
			.buffer_memory = machine_memory() / 4,
			.functions = USER_FUNCTIONS_OWN,
		},
		.buffer_size = UINT64_C(4) << 20,
		.clock = strdup("boot"),
	};
	if (!c->socket || !c->spool_dir || !c->state_dir || !c->clock) {
		config_deinit(c);
		return -ENOMEM;
	}
	return 0;
}

void config_deinit(struct config *c)
{
	free(c->socket);
	free(c->spool_dir);
	free(c->state_dir);
	free(c->metrics);
	free(c->hooks);
	free(c->clock);
	string_list_deinit(&c->events);
	free(c->poll);
	string_list_deinit(&c->users.events_allowed);
	string_list_deinit(&c->users.events_denied);
	*c = (struct config){ 0 };
}
