/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/config.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <syslog.h>

#include "base/account.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "control/frame.h"
#include "daemon/capture/capture.h"
#include "settings/ini_reader.h"
#include "settings/setting.h"
#include "stream/poll_plan.h"

/* Until a configuration is read. Then this part of what is free, with a least. */
#define USER_SPOOL_AUTO UINT64_MAX
#define USER_SPOOL_PART 8
#define USER_SPOOL_MIN (UINT64_C(16) << 20)

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

bool user_list_has(const struct user_list *l, uid_t uid)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->uids[i] == uid)
			return true;
	return l->all;
}

static void user_list_deinit(struct user_list *l)
{
	free(l->uids);
	*l = (struct user_list){ 0 };
}

/* A name or a number. */
static int user_find(const char *word, uid_t *ret)
{
	size_t digits = strspn(word, "0123456789");
	unsigned long long number = strtoull(word, NULL, 10);

	if (account_user(word, ret) == 0)
		return 0;
	if (!digits || digits > 10 || word[digits] || number >= UINT32_MAX)
		return -ENOENT;
	*ret = (uid_t)number;
	return 0;
}

static int user_list_add(struct user_list *l, const char *word, struct error *err)
{
	uid_t uid, *grown;

	if (user_find(word, &uid) < 0)
		return error_set(err, -EINVAL, "there is no user \"%s\"", word);
	grown = reallocarray(l->uids, l->count + 1, sizeof(*grown));
	if (!grown)
		return error_errno(err, -ENOMEM, "configuration");
	l->uids = grown;
	l->uids[l->count++] = uid;
	return 0;
}

/* "yes", "no" or a list of users, which replaces an earlier one. */
static int config_set_users(void *field, const char *value, struct error *err)
{
	_cleanup_(string_list_deinit) struct string_list words = { 0 };
	struct user_list *l = field;
	int r = string_list_add_words(&words, value);

	if (r < 0)
		return error_errno(err, r, "configuration");
	if (!words.count)
		return error_set(err, -EINVAL, "it is empty: yes, no or names of users");
	user_list_deinit(l);
	if (words.count == 1 && (!strcmp(value, "yes") || !strcmp(value, "no"))) {
		l->all = value[0] == 'y';
		return 0;
	}
	for (size_t i = 0; i < words.count && r == 0; i++)
		r = user_list_add(l, words.items[i], err);
	return r;
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

static const struct setting keys[] = {
	{ "daemon", "socket", offsetof(struct config, socket), setting_path },
	{ "daemon", "spool_dir", offsetof(struct config, spool_dir), setting_path },
	{ "daemon", "state_dir", offsetof(struct config, state_dir), setting_path },
	{ "daemon", "metrics", offsetof(struct config, metrics), setting_path },
	{ "daemon", "hooks", offsetof(struct config, hooks), setting_path },
	{ "daemon", "log_level", offsetof(struct config, log_level), config_set_log_level },
	{ "daemon", "marks", offsetof(struct config, marks), setting_switch },
	{ "daemon", "spare", offsetof(struct config, spare), config_set_spare },
	{ "limits", "clients", offsetof(struct config, clients), setting_count },
	{ "limits", "sessions", offsetof(struct config, sessions), setting_count },
	{ "limits", "spool_max", offsetof(struct config, spool_max), setting_size_limit },
	{ "limits", "min_free", offsetof(struct config, min_free), setting_size_limit },
	{ "limits", "duration_max", offsetof(struct config, duration_max), setting_duration_limit },
	{ "limits", "mark_programs", offsetof(struct config, mark_programs), setting_count },
	{ "limits", "mark_rings", offsetof(struct config, mark_rings), setting_count },
	{ "limits", "mark_memory", offsetof(struct config, mark_memory), setting_size },
	{ "limits", "mark_rate", offsetof(struct config, mark_rate), setting_size_limit },
	{ "users", "clients", offsetof(struct config, users.clients), setting_count },
	{ "users", "sessions", offsetof(struct config, users.sessions), setting_count },
	{ "users", "buffer_memory", offsetof(struct config, users.buffer_memory),
	  setting_size_limit },
	{ "users", "spool_max", offsetof(struct config, users.spool_max), setting_size_limit },
	{ "users", "duration_max", offsetof(struct config, users.duration_max),
	  setting_duration_limit },
	{ "users", "raw_addresses", offsetof(struct config, users.raw_addresses),
	  config_set_users },
	{ "users", "top_level", offsetof(struct config, users.top_level), setting_switch },
	{ "users", "functions", offsetof(struct config, users.functions),
	  config_set_user_functions },
	{ "users", "events_allowed", offsetof(struct config, users.events_allowed), setting_words },
	{ "users", "events_denied", offsetof(struct config, users.events_denied), setting_words },
	{ "defaults", "buffer_size", offsetof(struct config, buffer_size), setting_size },
	{ "defaults", "clock", offsetof(struct config, clock), setting_word },
	{ "defaults", "reader", offsetof(struct config, reader), config_set_reader },
	{ "defaults", "events", offsetof(struct config, events), setting_words },
	{ "defaults", "poll", offsetof(struct config, poll), config_set_poll },
};

/* One file being read. */
struct source {
	struct ini_reader reader;
	struct config *config;
	struct buf *warnings;
};

static void config_warn_unknown(struct source *s, const char *section, const char *name)
{
	const char *names[ARRAY_SIZE(keys)], *best[NEAREST_MAX];
	const struct ini_reader *r = &s->reader;
	const struct setting *elsewhere = NULL;
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
		buf_printf(s->warnings, "%s:%u: \"%s\" belongs in [%s], ignored\n", r->path,
			   r->line, name, elsewhere->section);
		return;
	}
	if (!section_known) {
		buf_printf(s->warnings,
			   "%s:%u: unknown section [%s], ignored; there are [daemon], [limits], "
			   "[users] and [defaults]\n",
			   r->path, r->line, section);
		return;
	}
	buf_printf(s->warnings, "%s:%u: unknown key \"%s\" in [%s], ignored", r->path, r->line,
		   name, section);
	if (nearest_names(name, names, count, best))
		buf_printf(s->warnings, "; did you mean \"%s\"?", best[0]);
	buf_putc(s->warnings, '\n');
}

static int config_take_assignment(struct ini_reader *reader, const char *section, const char *name,
				  const char *value)
{
	struct source *s = container_of(reader, struct source, reader);
	const struct setting *key = setting_find(keys, ARRAY_SIZE(keys), section, name);

	if (key)
		return key->set((char *)s->config + key->offset, value, reader->err);
	config_warn_unknown(s, section, name);
	return 0;
}

static int config_load_file(struct config *c, const char *path, bool must_exist,
			    struct buf *warnings, struct error *err)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct source s = { .reader = { .file = file,
					.path = path,
					.take = config_take_assignment,
					.err = err },
			    .config = c,
			    .warnings = warnings };

	if (!file) {
		if (errno == ENOENT && !must_exist)
			return 0;
		return error_errno(err, -errno, "%s", path);
	}
	return ini_read(&s.reader);
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

static int config_load_files(struct config *c, const char *path, bool must_exist,
			     struct buf *warnings, struct error *err)
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

/* The folder may be made later: then those above it tell. 0: unknown. */
static uint64_t config_free_bytes(const char *folder)
{
	_cleanup_free_ char *path = strdup(folder);
	struct statvfs st;
	char *end;

	while (path && statvfs(path, &st) < 0) {
		end = strrchr(path, '/');
		if (!end || !path[1])
			return 0;
		end[end == path] = '\0';
	}
	return path ? (uint64_t)st.f_bavail * st.f_frsize : 0;
}

int config_load(struct config *c, const char *path, bool must_exist, struct buf *warnings,
		struct error *err)
{
	int r = config_load_files(c, path, must_exist, warnings, err);

	if (r >= 0 && c->users.spool_max == USER_SPOOL_AUTO)
		c->users.spool_max =
			MAX(config_free_bytes(c->spool_dir) / USER_SPOOL_PART, USER_SPOOL_MIN);
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
		.mark_rate = UINT64_C(32) << 20,
		.min_free = UINT64_C(64) << 20,
		.users = {
			.clients = 16,
			.sessions = 4,
			.buffer_memory = machine_memory() / 4,
			.spool_max = USER_SPOOL_AUTO,
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
	user_list_deinit(&c->users.raw_addresses);
	string_list_deinit(&c->users.events_allowed);
	string_list_deinit(&c->users.events_denied);
	*c = (struct config){ 0 };
}
