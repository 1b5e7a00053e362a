/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of options, and the parsing of their values. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/parse.h"
#include "base/vec.h"
#include "cli.h"
#include "control/frame.h"
#include "formats/formats.h"
#include "hosts/phc.h"
#include "merge.h"
#include "stream/poll_plan.h"

static int set_duration(struct options *o, const char *value, struct error *err)
{
	return parse_duration(value, &o->duration_ns, err);
}

static int set_output(struct options *o, const char *value, struct error *err)
{
	if (!*value)
		return error_set(err, -EINVAL, "the output name is empty");
	if (o->output && strcmp(o->output, value) != 0) {
		error_set(err, -EINVAL, "one output only: %s, or %s", o->output, value);
		return error_hint(err, "'tracectl convert' makes other formats of a .traced");
	}
	o->output = value;
	return 0;
}

static int option_add_word(struct word_list *list, const char *value, struct error *err)
{
	const char **item;

	if (!*value)
		return error_set(err, -EINVAL, "the name is empty");
	item = vec_add_exact(list->items, list->count);
	if (!item)
		return error_errno(err, -ENOMEM, "%s", value);
	*item = value;
	return 0;
}

static int add_host(struct options *o, const char *value, struct error *err)
{
	return option_add_word(&o->hosts, value, err);
}

static int add_host_file(struct options *o, const char *value, struct error *err)
{
	return option_add_word(&o->host_files, value, err);
}

static int add_label(struct options *o, const char *value, struct error *err)
{
	return option_add_word(&o->labels, value, err);
}

static int add_cpu_profile(struct options *o, const char *value, struct error *err)
{
	if (o->cpu_profiles.count == EXPORT_MERGES_MAX)
		return error_set(err, -EINVAL, "more than %d profiles to merge", EXPORT_MERGES_MAX);
	return option_add_word(&o->cpu_profiles, value, err);
}

static int set_sample(struct options *o, const char *value, struct error *err)
{
	unsigned long hz;
	char *end;

	errno = 0;
	hz = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || errno || !hz || hz > UINT32_MAX ||
	    (*end && strcasecmp(end, "hz") != 0)) {
		error_set(err, -EINVAL, "'%s' is not a rate", value);
		return error_hint(err, "give samples per second: 997hz");
	}
	o->sample_hz = (uint32_t)hz;
	return 0;
}

static int add_poll(struct options *o, const char *value, struct error *err)
{
	struct poll_plan unused = { 0 };
	int r = poll_plan_add(&unused, value, err);

	return r < 0 ? r : option_add_word(&o->polls, value, err);
}

/* A number from 1 to max. what: for the message. */
static int option_set_number(const char *value, const char *what, unsigned long max,
			     unsigned long *ret, struct error *err)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !number || number > max)
		return error_set(err, -EINVAL, "'%s' is not a number of %s", value, what);
	*ret = number;
	return 0;
}

static int set_graph_depth(struct options *o, const char *value, struct error *err)
{
	unsigned long depth = 0;
	int r = option_set_number(value, "calls", INT_MAX, &depth, err);

	o->graph_depth = (uint32_t)depth;
	return r;
}

static int set_stop_us(struct options *o, const char *value, struct error *err)
{
	unsigned long us = 0;
	int r = option_set_number(value, "microseconds", INT_MAX, &us, err);

	o->stop_us = (uint32_t)us;
	return r;
}

/* An empty value is usually an unset shell variable. */
static int option_set_string(const char **field, const char *value, struct error *err)
{
	if (!*value) {
		error_set(err, -EINVAL, "the value is empty");
		return error_hint(err, "omit the option, or give it a value");
	}
	*field = value;
	return 0;
}

#define DEFINE_SET_STRING(field)                                                                   \
	static int set_##field(struct options *o, const char *value, struct error *err)            \
	{                                                                                          \
		return option_set_string(&o->field, value, err);                                   \
	}
#define DEFINE_SET_FLAG(field)                                                                     \
	static int set_##field(struct options *o, const char *value _unused_,                      \
			       struct error *err _unused_)                                         \
	{                                                                                          \
		o->field = true;                                                                   \
		return 0;                                                                          \
	}
#define DEFINE_ADD_WORD(field)                                                                     \
	static int add_##field(struct options *o, const char *value, struct error *err)            \
	{                                                                                          \
		return option_add_word(&o->field, value, err);                                     \
	}
DEFINE_ADD_WORD(functions)
DEFINE_ADD_WORD(not_functions)
DEFINE_ADD_WORD(graph_roots)
DEFINE_ADD_WORD(trace_options)
DEFINE_ADD_WORD(hists)
DEFINE_ADD_WORD(vals)
DEFINE_ADD_WORD(tracer_options)
DEFINE_ADD_WORD(shed)
DEFINE_ADD_WORD(reports)
DEFINE_SET_STRING(symbols)
DEFINE_SET_STRING(comm)
DEFINE_SET_STRING(tracer)
DEFINE_SET_FLAG(top_level)
DEFINE_SET_STRING(format)
DEFINE_SET_STRING(clock)
DEFINE_SET_STRING(profile)
DEFINE_SET_STRING(name)
DEFINE_SET_STRING(socket)
DEFINE_SET_STRING(begin)
DEFINE_SET_STRING(end)
DEFINE_SET_STRING(counter)
DEFINE_SET_STRING(id)
DEFINE_SET_STRING(by)
DEFINE_SET_STRING(session)
DEFINE_SET_STRING(hook)
DEFINE_ADD_WORD(on)
DEFINE_SET_STRING(sort)
DEFINE_SET_STRING(task)
DEFINE_SET_FLAG(summary)
DEFINE_SET_STRING(fleet)
DEFINE_SET_STRING(group)
DEFINE_SET_STRING(share)
DEFINE_SET_STRING(salt)
DEFINE_SET_STRING(window)
DEFINE_SET_STRING(not_before)
DEFINE_SET_STRING(expires)
DEFINE_SET_STRING(serial)
DEFINE_SET_STRING(secret_key)
DEFINE_SET_STRING(presign)
DEFINE_SET_STRING(url)
DEFINE_SET_STRING(curl)
DEFINE_SET_STRING(broker)
DEFINE_SET_FLAG(capture)
DEFINE_SET_FLAG(s3)

/* '' is the top-level buffer of a trace.dat. */
static int set_push(struct options *o, const char *value, struct error *err _unused_)
{
	o->push = true;
	o->push_from = value;
	return 0;
}

static int set_control(struct options *o, const char *value, struct error *err)
{
	o->control = true;
	o->packs = value;
	if (value && strcmp(value, "zstd") != 0)
		return error_set(err, -EINVAL, "'%s' is not zstd", value);
	return 0;
}

static int set_instance(struct options *o, const char *value, struct error *err _unused_)
{
	o->instance = value;
	return 0;
}

/* Parse now, so that the error names the option; the value is applied once the format is known. */
#define DEFINE_SET_PERFETTO(field, name)                                                           \
	static int set_##field(struct options *o, const char *value, struct error *err)            \
	{                                                                                          \
		struct perfetto_options unused = { 0 };                                            \
                                                                                                   \
		o->field = value;                                                                  \
		return perfetto_options_set(&unused, name, value, err);                            \
	}
DEFINE_SET_PERFETTO(generic, "generic")
DEFINE_SET_PERFETTO(compact_sched, "compact-sched")
DEFINE_SET_PERFETTO(compress, "compress")

static int set_function_view(struct options *o, const char *value, struct error *err)
{
	return function_view_find(value, &o->function_view, err);
}

DEFINE_SET_STRING(sample_event)
DEFINE_SET_FLAG(call_graph)
DEFINE_SET_FLAG(last_boot)
DEFINE_SET_FLAG(write)
DEFINE_SET_FLAG(follow)
DEFINE_SET_FLAG(ring)
DEFINE_SET_FLAG(stream)
DEFINE_SET_FLAG(tgid)
DEFINE_SET_FLAG(net_arrows)
DEFINE_SET_FLAG(watch)
DEFINE_SET_FLAG(batch)
DEFINE_SET_FLAG(decay)
DEFINE_SET_FLAG(csv)
DEFINE_SET_FLAG(fields)
DEFINE_SET_FLAG(probe)
DEFINE_SET_FLAG(raw_addresses)
DEFINE_SET_FLAG(json_array)
DEFINE_SET_FLAG(fail_on_loss)
DEFINE_SET_FLAG(json)
DEFINE_SET_FLAG(quiet)
DEFINE_SET_FLAG(require_all)

static int set_phc(struct options *o, const char *value, struct error *err)
{
	o->phc = value;
	return phc_parse(value, &(uint64_t){ 0 }, err);
}

DEFINE_SET_FLAG(help)
DEFINE_SET_FLAG(version)

static int set_verbose(struct options *o, const char *value _unused_, struct error *err _unused_)
{
	o->verbose++;
	return 0;
}

static int set_event(struct options *o, const char *value, struct error *err)
{
	struct event_option *event;

	if (!*value)
		return error_set(err, -EINVAL, "-e takes the name of an event or a glob");
	event = vec_add_exact(o->events, o->event_count);
	if (!event)
		return error_errno(err, -ENOMEM, "-e %s", value);
	*event = (struct event_option){ .glob = value };
	o->filter_is_probes = false;
	return 0;
}

static int option_add_probe(struct options *o, enum probe_kind_id kind, const char *definition,
			    struct error *err)
{
	struct probe_option *probe = vec_add_exact(o->probes, o->probe_count);

	if (!probe)
		return error_errno(err, -ENOMEM, "%s", definition);
	*probe = (struct probe_option){ .kind = kind, .definition = definition };
	o->filter_is_probes = true;
	return 0;
}

#define DEFINE_ADD_PROBE(name, kind)                                                               \
	static int add_##name(struct options *o, const char *value, struct error *err)             \
	{                                                                                          \
		return option_add_probe(o, kind, value, err);                                      \
	}
DEFINE_ADD_PROBE(kprobe, PROBE_KPROBE)
DEFINE_ADD_PROBE(uprobe, PROBE_UPROBE)
DEFINE_ADD_PROBE(fprobe, PROBE_FPROBE)
DEFINE_ADD_PROBE(tprobe, PROBE_TPROBE)
DEFINE_ADD_PROBE(eprobe, PROBE_EPROBE)

static int add_sql(struct options *o, const char *value, struct error *err)
{
	struct sql_option *sql = vec_add_exact(o->sql, o->sql_count);

	if (!sql)
		return error_errno(err, -ENOMEM, "--sql");
	*sql = (struct sql_option){ .text = value };
	return 0;
}

static int set_as(struct options *o, const char *value, struct error *err)
{
	struct sql_option *sql = o->sql_count ? &o->sql[o->sql_count - 1] : NULL;

	if (!sql || sql->name) {
		error_set(err, -EINVAL, "--as %s has no --sql before it", value);
		return error_hint(err, "it names the event of the --sql before it");
	}
	sql->name = value;
	return 0;
}

/* "EVENTS: EXPRESSION"; a filter of the kernel has no colon, but in a text. */
static bool option_names_events(const char *filter)
{
	return filter[strcspn(filter, ":\"'<>=!&|~")] == ':';
}

static int add_key(struct options *o, const char *value, struct error *err)
{
	struct key_option *key = *value ? vec_add_exact(o->keys, o->key_count) : NULL;

	if (!key)
		return *value ? error_errno(err, -ENOMEM, "%s", value)
			      : error_set(err, -EINVAL, "the name is empty");
	*key = (struct key_option){ .field = value };
	return 0;
}

/* "log2", "64", or "100us" for a field in ns. */
static int set_buckets(struct options *o, const char *value, struct error *err)
{
	struct key_option *key = o->key_count ? &o->keys[o->key_count - 1] : &o->lone_buckets;
	bool is_number = *value && !value[strspn(value, "0123456789")];
	uint64_t ns = 0;
	char *text;
	int n;

	if (key->modifier) {
		error_set(err, -EINVAL, "the key %s has buckets already",
			  key->field ?: "that SQL selects last");
		return error_hint(err, "--key latency --buckets 100us");
	}
	if (!is_number && strcmp(value, "log2") != 0 && parse_duration(value, &ns, NULL) < 0) {
		error_set(err, -EINVAL, "'%s' is no size of buckets", value);
		return error_hint(err, "give log2, a number, or a time for a field in ns: 100us");
	}
	n = ns		? asprintf(&text, "buckets=%" PRIu64, ns)
	    : is_number ? asprintf(&text, "buckets=%s", value)
			: asprintf(&text, "%s", value);
	if (n < 0)
		return error_errno(err, -ENOMEM, "--buckets");
	key->modifier = text;
	key->bucket_ns = ns;
	return 0;
}

static int set_entries(struct options *o, const char *value, struct error *err)
{
	unsigned long entries = 0;
	int r = option_set_number(value, "entries", INT_MAX, &entries, err);

	o->entries = (uint32_t)entries;
	return r;
}

static int set_filter(struct options *o, const char *value, struct error *err)
{
	const char *of, **filter;
	char option[16] = "-e";

	if (o->of_recording || option_names_events(value))
		return option_add_word(&o->event_filters, value, err);
	if (!o->event_count && !o->probe_count) {
		if (o->lone_filter) {
			error_set(err, -EINVAL, "there are two filters");
			return error_hint(err, "join them: --filter '(%s) && (%s)'", o->lone_filter,
					  value);
		}
		return option_set_string(&o->lone_filter, value, err);
	}
	if (o->filter_is_probes) {
		struct probe_option *probe = &o->probes[o->probe_count - 1];

		snprintf(option, sizeof(option), "--%s", probe_kinds[probe->kind].name);
		of = probe->definition;
		filter = &probe->filter;
	} else {
		of = o->events[o->event_count - 1].glob;
		filter = &o->events[o->event_count - 1].filter;
	}
	if (*filter) {
		error_set(err, -EINVAL, "%s %s has two filters", option, of);
		return error_hint(err, "join them: -f '(%s) && (%s)'", *filter, value);
	}
	if (!*value)
		return error_set(err, -EINVAL, "the filter of %s %s is empty", option, of);
	*filter = value;
	return 0;
}

/* The colon between an event and an action: a blank follows it. NULL: there is none. */
static const char *option_find_action(const char *value)
{
	const char *word = value + strcspn(value, " \t\"'");

	return word > value && word[-1] == ':' && (*word == ' ' || *word == '\t') ? word - 1 : NULL;
}

/* "EVENT: ACTION", or an action of the event or probe before it. */
static int add_trigger(struct options *o, const char *value, struct error *err)
{
	const char *colon = option_find_action(value);
	struct trigger_option *t;

	if (!colon && !o->event_count && !o->probe_count) {
		error_set(err, -EINVAL, "'%.200s' has no event before it", value);
		return error_hint(err,
				  "a trigger applies to the -e or the probe before it, or "
				  "names its event: 'sched:sched_switch: %.200s'",
				  *value ? value : "stacktrace");
	}
	t = vec_add_exact(o->triggers, o->trigger_count);
	if (!t)
		return error_errno(err, -ENOMEM, "%s", value);
	*t = (struct trigger_option){ .action = value };
	if (colon) {
		t->text = strndup(value, (size_t)(colon - value));
		t->action = colon + 1 + strspn(colon + 1, " \t");
		t->event = t->text;
		return t->text ? 0 : error_errno(err, -ENOMEM, "%s", value);
	}
	if (o->filter_is_probes)
		t->probe = o->probe_count;
	else
		t->event = o->events[o->event_count - 1].glob;
	return 0;
}

static int set_sync_bound(struct options *o, const char *value, struct error *err)
{
	return parse_duration(value, &o->sync_bound_ns, err);
}

struct pid_option {
	const char *name, *what;
	int32_t **items;
	size_t *count;
};

static int option_add_pid(const struct pid_option *p, const char *text, size_t len,
			  struct error *err)
{
	char *end;
	unsigned long pid;
	int32_t *own;

	errno = 0;
	pid = strtoul(text, &end, 10);
	if (!len || text[0] < '0' || text[0] > '9' || end != text + len || errno || !pid ||
	    pid > INT_MAX) {
		error_set(err, -EINVAL, "'%.*s' is not a %s id", (int)len, text, p->what);
		return error_hint(err, "%s takes numbers: %s 1234 or %s 1234,5678", p->name,
				  p->name, p->name);
	}
	own = vec_add_exact(*p->items, *p->count);
	if (!own)
		return error_errno(err, -ENOMEM, "%s", p->name);
	*own = (int32_t)pid;
	return 0;
}

static int option_add_pids(const struct pid_option *p, const char *value, struct error *err)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		int r = option_add_pid(p, value, len, err);

		if (r < 0 || !value[len])
			return r;
		value += len + 1;
	}
}

static int set_pid(struct options *o, const char *value, struct error *err)
{
	const struct pid_option p = { "-P", "process", &o->pids, &o->pid_count };

	return option_add_pids(&p, value, err);
}

static int set_thread(struct options *o, const char *value, struct error *err)
{
	const struct pid_option p = { "--thread", "thread", &o->threads, &o->thread_count };

	return option_add_pids(&p, value, err);
}

static int set_from(struct options *o, const char *value, struct error *err)
{
	return moment_parse(value, &o->from, err);
}

static int set_to(struct options *o, const char *value, struct error *err)
{
	return moment_parse(value, &o->to, err);
}

static int set_cpus(struct options *o, const char *value, struct error *err)
{
	struct cpu_set set = { 0 };
	int r;

	r = parse_cpu_list(value, &set, err);
	if (r < 0)
		return r;
	r = cpu_set_count(&set) ? 0 : error_set(err, -EINVAL, "the list of CPUs is empty");
	cpu_set_deinit(&set);
	o->cpus = value;
	return r;
}

static int option_set_size(uint64_t *field, const char *option, const char *value,
			   struct error *err)
{
	size_t len = strlen(value);
	int r = parse_size(value, field, err);

	/* Other tools mean kilobytes: guessing could be wrong by a factor of 1000. */
	if (r < 0 || !strchr("0123456789", value[len - 1]))
		return r;
	error_set(err, -EINVAL, "'%s' has no unit", value);
	return error_hint(err, "add one: %s %sK, %s %sM, or %s %sB for bytes", option, value,
			  option, value, option, value);
}

static int set_buffer(struct options *o, const char *value, struct error *err)
{
	return option_set_size(&o->buffer_bytes, "-b", value, err);
}

static int set_max_memory(struct options *o, const char *value, struct error *err)
{
	return option_set_size(&o->max_memory, "--max-memory", value, err);
}

static int set_size(struct options *o, const char *value, struct error *err)
{
	return option_set_size(&o->size, "--size", value, err);
}

static int set_max_cpu(struct options *o, const char *value, struct error *err)
{
	return parse_percent(value, &o->max_cpu_permille, err);
}

static int option_rotate_twice(const char *what, const char *value, struct error *err)
{
	error_set(err, -EINVAL, "'%s' is a second %s", value, what);
	return error_hint(err, "give one size, one time, or one of each");
}

/* "10m" is minutes, as for all times; "10M" and anything that is no time are sizes. */
static int set_rotate(struct options *o, const char *value, struct error *err)
{
	const size_t len = strlen(value), zeros = strspn(value, "0");

	if (zeros && !strchr(".123456789", value[zeros] ?: ' ')) {
		error_set(err, -EINVAL, "'%s' is not above zero", value);
		return error_hint(err, "use a size or a time: 100M or 10m");
	}
	if (len && strchr("0123456789", value[len - 1])) {
		error_set(err, -EINVAL, "'%s' has no unit", value);
		return error_hint(err, "use a size or a time: %sM or %ss", value, value);
	}
	if (o->rotate_ns && parse_duration(value, &o->rotate_ns, NULL) == 0)
		return option_rotate_twice("time", value, err);
	if (parse_duration(value, &o->rotate_ns, NULL) == 0) {
		if (o->rotate_ns >= EXPORT_ROTATE_NS_MIN)
			return 0;
		error_set(err, -EINVAL, "'%s' is too short: each file has a header", value);
		return error_hint(err, "use at least 1ms");
	}
	if (o->rotate_bytes && parse_size(value, &o->rotate_bytes, NULL) == 0)
		return option_rotate_twice("size", value, err);
	if (parse_size(value, &o->rotate_bytes, NULL) < 0) {
		error_set(err, -EINVAL, "'%s' is neither a size nor a time", value);
		return error_hint(err, "for example: 100M, 1G, 30s, 10m or 1h");
	}
	if (o->rotate_bytes >= EXPORT_ROTATE_BYTES_MIN)
		return 0;
	error_set(err, -EINVAL, "'%s' is too small: each file has a header", value);
	return error_hint(err, "use at least %uK", EXPORT_ROTATE_BYTES_MIN >> 10);
}

/* A size, or a number of events. */
static int set_html_max(struct options *o, const char *value, struct error *err)
{
	uint64_t number = 0;
	bool events = !value[strspn(value, "0123456789")];

	if (parse_size(value, &number, NULL) < 0) {
		error_set(err, -EINVAL, "'%s' is neither a size nor a number of events", value);
		return error_hint(err, "for example: 200M, or 1000000");
	}
	o->page =
		(struct export_page){ .events = events ? number : 0, .bytes = events ? 0 : number };
	if (number >= (events ? EXPORT_PAGE_EVENTS_MIN : EXPORT_PAGE_BYTES_MIN))
		return 0;
	error_set(err, -EINVAL, "'%s' is too little for a page", value);
	return error_hint(err, "use at least 1M, or 1000 events");
}

static int set_before(struct options *o, const char *value, struct error *err)
{
	return parse_duration(value, &o->before_ns, err);
}

static int set_after(struct options *o, const char *value, struct error *err)
{
	return parse_duration(value, &o->after_ns, err);
}

static int set_max_size(struct options *o, const char *value, struct error *err)
{
	return option_set_size(&o->max_size, "--max-size", value, err);
}

#define AT_MOST_MAX 1000

/* "1/10m" */
static int set_at_most(struct options *o, const char *value, struct error *err)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || errno || !n || n > AT_MOST_MAX || *end != '/') {
		error_set(err, -EINVAL, "'%s' is not a number of snapshots in a time", value);
		return error_hint(err, "for example: 1/10m, one in ten minutes; at most %d",
				  AT_MOST_MAX);
	}
	o->at_most = (unsigned)n;
	return parse_duration(end + 1, &o->at_most_ns, err);
}

static int set_status(struct options *o, const char *value, struct error *err)
{
	o->own_status = !strcmp(value, "ours");
	if (o->own_status || !strcmp(value, "command"))
		return 0;
	error_set(err, -EINVAL, "'%s' is no exit status to end with", value);
	return error_hint(err, "give ours or command");
}

static int set_min(struct options *o, const char *value, struct error *err)
{
	return parse_duration(value, &o->min_ns, err);
}

static int set_top(struct options *o, const char *value, struct error *err)
{
	unsigned long rows = 0;
	int r = option_set_number(value, "rows", ULONG_MAX, &rows, err);

	o->top = rows;
	return r;
}

static int set_keep(struct options *o, const char *value, struct error *err)
{
	unsigned long keep = 0;
	int r = option_set_number(value, "files", INT_MAX, &keep, err);

	o->keep = (unsigned)keep;
	return r;
}

const struct option_spec option_specs[OPT_COUNT] = {
	[OPT_DURATION] = { 't', "time", "TIME", "duration: 10s, 500ms, 2m, 1h", GROUP_WHEN,
			   COMPLETE_NOTHING, set_duration },
	[OPT_OUTPUT] = { 'o', "output", "FILE", "output file (- is standard output)", GROUP_WHERE,
			 COMPLETE_FILE, set_output },
	[OPT_FORMAT] = { 0, "format", "FORMAT", "output format; default: by FILE's extension",
			 GROUP_WHERE, COMPLETE_FORMAT, set_format },
	[OPT_EVENT] = { 'e', "event", "GLOB", "an event, a system or a glob; may be repeated",
			GROUP_WHAT, COMPLETE_EVENT, set_event },
	[OPT_FILTER] = { 'f', "filter", "FILTER",
			 "the kernel's filter for the -e or probe before it", GROUP_WHAT,
			 COMPLETE_NOTHING, set_filter },
	[OPT_TRIGGER] = { 0, "trigger", "TRIGGER",
			  "what the kernel does at the -e or probe before it, or at EVENT: "
			  "'EVENT: stacktrace:3 if FILTER'",
			  GROUP_WHAT, COMPLETE_EVENT, add_trigger },
	[OPT_PROFILE] = { 0, "profile", "NAME", "also the events of a profile (tracectl profiles)",
			  GROUP_WHAT, COMPLETE_PROFILE, set_profile },
	[OPT_TRACER] = { 'p', "tracer", "TRACER",
			 "function, function_graph, timerlat, osnoise or hwlat", GROUP_WHAT,
			 COMPLETE_NOTHING, set_tracer },
	[OPT_FUNCTION] = { 'l', "function", "GLOB",
			   "only these functions, or /REGEX/; may be repeated", GROUP_WHAT,
			   COMPLETE_NOTHING, add_functions },
	[OPT_NOT_FUNCTION] = { 'n', "not-function", "GLOB", "not these functions; may be repeated",
			       GROUP_WHAT, COMPLETE_NOTHING, add_not_functions },
	[OPT_GRAPH_ROOT] = { 'g', "graph-root", "GLOB", "graphs of what these functions call",
			     GROUP_WHAT, COMPLETE_NOTHING, add_graph_roots },
	[OPT_GRAPH_DEPTH] = { 0, "max-graph-depth", "N", "largest depth of nested calls",
			      GROUP_WHAT, COMPLETE_NOTHING, set_graph_depth },
	[OPT_TRACER_OPTION] = { 0, "tracer-option", "NAME=VALUE",
				"a setting of timerlat, osnoise or hwlat: period=1ms", GROUP_WHAT,
				COMPLETE_NOTHING, add_tracer_options },
	[OPT_STOP_US] = { 0, "stop-us", "N", "end at a latency above N us: timerlat, osnoise",
			  GROUP_WHAT, COMPLETE_NOTHING, set_stop_us },
	[OPT_TRACE_OPTION] = { 'O', "option", "OPTION", "a trace option of the kernel, or noOPTION",
			       GROUP_RARE, COMPLETE_NOTHING, add_trace_options },
	[OPT_SQL] = { 0, "sql", "SELECT",
		      "an event made of two: 'SELECT ... FROM A JOIN B ON ...'; may be repeated",
		      GROUP_WHAT, COMPLETE_NOTHING, add_sql },
	[OPT_AS] = { 0, "as", "NAME", "name of the event that the --sql before it makes",
		     GROUP_WHAT, COMPLETE_NOTHING, set_as },
	[OPT_KPROBE] = { 0, "kprobe", "PROBE",
			 "an event in the kernel's code: 'p:NAME FUNCTION ARGUMENTS'", GROUP_WHAT,
			 COMPLETE_NOTHING, add_kprobe },
	[OPT_UPROBE] = { 0, "uprobe", "PROBE",
			 "an event in a program: 'p:NAME /PATH:FUNCTION ARGUMENTS'", GROUP_WHAT,
			 COMPLETE_NOTHING, add_uprobe },
	[OPT_HIST] = { 0, "hist", "HIST",
		       "a histogram in the kernel: 'EVENT:keys=FIELD:vals=FIELD if FILTER'",
		       GROUP_WHAT, COMPLETE_NOTHING, add_hists },
	[OPT_KEY] = { 0, "key", "FIELD", "count by this field; may be repeated", GROUP_WHAT,
		      COMPLETE_NOTHING, add_key },
	[OPT_VAL] = { 0, "val", "FIELD", "also add up this field; may be repeated", GROUP_WHAT,
		      COMPLETE_NOTHING, add_vals },
	[OPT_BUCKETS] = { 0, "buckets", "SIZE",
			  "ranges of the key before it, or of the last one of --sql: log2, 64, "
			  "100us",
			  GROUP_WHAT, COMPLETE_NOTHING, set_buckets },
	[OPT_ENTRIES] = { 0, "entries", "N", "room for so many rows: 128 to 131072, usually 2048",
			  GROUP_COST, COMPLETE_NOTHING, set_entries },
	[OPT_FPROBE] = { 0, "fprobe", "PROBE",
			 "a function of the kernel: 'f:NAME FUNCTION[%return] ARGUMENTS'",
			 GROUP_WHAT, COMPLETE_NOTHING, add_fprobe },
	[OPT_TPROBE] = { 0, "tprobe", "PROBE",
			 "a tracepoint of the kernel: 't:NAME TRACEPOINT ARGUMENTS'", GROUP_WHAT,
			 COMPLETE_NOTHING, add_tprobe },
	[OPT_EPROBE] = { 0, "eprobe", "PROBE",
			 "an event made of another: 'e:NAME SYSTEM:EVENT ARGUMENTS'", GROUP_WHAT,
			 COMPLETE_NOTHING, add_eprobe },
	[OPT_TOP_LEVEL] = { 0, "top-level", NULL, "record in the top-level buffer", GROUP_RARE,
			    COMPLETE_NOTHING, set_top_level },
	[OPT_PID] = { 'P', "pid", "PID", "only this process, with its threads; may be repeated",
		      GROUP_WHAT, COMPLETE_NOTHING, set_pid },
	[OPT_THREAD] = { 0, "thread", "TID", "only this thread; may be repeated", GROUP_WHAT,
			 COMPLETE_NOTHING, set_thread },
	[OPT_FOLLOW] = { 'F', "follow", NULL,
			 "only COMMAND and its children; with -P, also the process's children",
			 GROUP_WHAT, COMPLETE_NOTHING, set_follow },
	[OPT_CPUS] = { 0, "cpus", "LIST", "only these CPUs: 0-3,8", GROUP_WHAT, COMPLETE_NOTHING,
		       set_cpus },
	[OPT_CLOCK] = { 'C', "clock", "CLOCK", "the kernel's trace clock (boot)", GROUP_RARE,
			COMPLETE_CLOCK, set_clock },
	[OPT_BUFFER] = { 'b', "buffer-size", "SIZE", "size of each CPU's buffer: 1408K, 16M (4M)",
			 GROUP_COST, COMPLETE_NOTHING, set_buffer },
	[OPT_SAMPLE] = { 0, "sample", "RATE", "sample what the CPUs run, beside the trace: 997hz",
			 GROUP_WHAT, COMPLETE_NOTHING, set_sample },
	[OPT_SAMPLE_EVENT] = { 0, "sample-event", "EVENT",
			       "with --sample: trigger: cpu-clock, cycles, ... (cpu-clock)",
			       GROUP_WHAT, COMPLETE_NOTHING, set_sample_event },
	[OPT_POLL] = { 0, "poll", "FILES", "read files of /proc at intervals: meminfo,psi@1s",
		       GROUP_WHAT, COMPLETE_POLL, add_poll },
	[OPT_CALL_GRAPH] = { 0, "call-graph", NULL, "with --sample: stacks, by frame pointers",
			     GROUP_WHAT, COMPLETE_NOTHING, set_call_graph },
	[OPT_MAX_CPU] = { 0, "max-cpu", "PERCENT", "limit of the recorder's CPU time, of one CPU",
			  GROUP_COST, COMPLETE_NOTHING, set_max_cpu },
	[OPT_SHED] = { 0, "shed", "GLOB", "events to turn off before --max-cpu is exceeded",
		       GROUP_COST, COMPLETE_EVENT, add_shed },
	[OPT_MAX_MEMORY] = { 0, "max-memory", "SIZE",
			     "limit for the buffers of all CPUs and the recorder", GROUP_COST,
			     COMPLETE_NOTHING, set_max_memory },
	[OPT_RING] = { 0, "ring", NULL, "flight recorder: keep the latest, overwrite the oldest",
		       GROUP_WHEN, COMPLETE_NOTHING, set_ring },
	[OPT_STREAM] = { 0, "stream", NULL, "write while recording, not at the end", GROUP_WHERE,
			 COMPLETE_NOTHING, set_stream },
	[OPT_ROTATE] = { 0, "rotate", "LIMIT", "a new file after each 100M, 10m; may be both",
			 GROUP_WHERE, COMPLETE_NOTHING, set_rotate },
	[OPT_SPLIT] = { 0, "split", "LIMIT", "the same as --rotate", GROUP_WHERE, COMPLETE_NOTHING,
			set_rotate },
	[OPT_KEEP] = { 0, "keep", "N", "keep only the last N files", GROUP_WHERE, COMPLETE_NOTHING,
		       set_keep },
	[OPT_ON] = { 0, "on", "CONDITION",
		     "take a snapshot when 'sched.delay > 5ms'; may be repeated", GROUP_WHEN,
		     COMPLETE_NOTHING, add_on },
	[OPT_BEFORE] = { 0, "before", "TIME", "with --on: time that a snapshot should reach back",
			 GROUP_WHEN, COMPLETE_NOTHING, set_before },
	[OPT_AFTER] = { 0, "after", "TIME", "with --on: time until the snapshot (1s)", GROUP_WHEN,
			COMPLETE_NOTHING, set_after },
	[OPT_AT_MOST] = { 0, "at-most", "N/TIME", "with --on: most snapshots in a time (1/10m)",
			  GROUP_WHEN, COMPLETE_NOTHING, set_at_most },
	[OPT_MAX_SIZE] = { 0, "max-size", "SIZE", "with --on: size of all snapshots (1G)",
			   GROUP_WHERE, COMPLETE_NOTHING, set_max_size },
	[OPT_HOOK] = { 0, "hook", "NAME", "with --on: a program to start with each snapshot",
		       GROUP_WHERE, COMPLETE_NOTHING, set_hook },
	[OPT_NAME] = { 0, "name", "NAME", "name of the session", GROUP_RARE, COMPLETE_NOTHING,
		       set_name },
	[OPT_STATUS] = { 0, "status", "command|ours",
			 "exit status: COMMAND's (the default), or tracectl's", GROUP_RARE,
			 COMPLETE_NOTHING, set_status },
	[OPT_INSTANCE] = { 0, "instance", "NAME",
			   "read only this buffer of a trace.dat; '' is the top-level one",
			   GROUP_WHAT, COMPLETE_INSTANCE, set_instance },
	[OPT_LAST_BOOT] = { 0, "last-boot", NULL,
			    "what boot-recorder recorded before the machine started anew",
			    GROUP_WHAT, COMPLETE_NOTHING, set_last_boot },
	[OPT_SIZE] = { 0, "size", "SIZE", "memory of the ring, of all CPUs (32M)", GROUP_COST,
		       COMPLETE_NOTHING, set_size },
	[OPT_WRITE] = { 0, "write", NULL, "write the files, instead of printing them", GROUP_WHERE,
			COMPLETE_NOTHING, set_write },
	[OPT_TGID] = { 0, "tgid", NULL, "show each thread's process in the text", GROUP_RARE,
		       COMPLETE_NOTHING, set_tgid },
	[OPT_NET_ARROWS] = { 0, "net-arrows", NULL,
			     "JSON, HTML, Perfetto: arrows from TCP sends to receipts", GROUP_RARE,
			     COMPLETE_NOTHING, set_net_arrows },
	[OPT_RAW_ADDRESSES] = { 0, "raw-addresses", NULL, "kernel pointers as they are, not hashed",
				GROUP_RARE, COMPLETE_NOTHING, set_raw_addresses },
	[OPT_FUNCTION_VIEW] = { 0, "function-view", "instants|slices",
				"JSON, HTML: the function tracer's calls (instants), or runs of "
				"them",
				GROUP_RARE, COMPLETE_NOTHING, set_function_view },
	[OPT_GENERIC] = { 0, "generic", "FORM", "Perfetto: legacy, for readers before v53",
			  GROUP_RARE, COMPLETE_NOTHING, set_generic },
	[OPT_COMPACT_SCHED] = { 0, "compact-sched", "on|off",
				"Perfetto: scheduling in a third of the bytes (on)", GROUP_RARE,
				COMPLETE_NOTHING, set_compact_sched },
	[OPT_COMPRESS] = { 0, "compress", "HOW",
			   "compression within the file: zstd; Perfetto: deflate, too", GROUP_RARE,
			   COMPLETE_NOTHING, set_compress },
	[OPT_FAIL_ON_LOSS] = { 0, "fail-on-loss", NULL,
			       "exit with 3 if an event or a mark was lost", GROUP_RARE,
			       COMPLETE_NOTHING, set_fail_on_loss },
	[OPT_BEGIN] = { 0, "begin", "NAME", "begin a slice of the calling process", GROUP_WHAT,
			COMPLETE_NOTHING, set_begin },
	[OPT_END] = { 0, "end", "NAME", "end such a slice", GROUP_WHAT, COMPLETE_NOTHING, set_end },
	[OPT_COUNTER] = { 0, "counter", "NAME=NUMBER", "a counter of the calling process",
			  GROUP_WHAT, COMPLETE_NOTHING, set_counter },
	[OPT_ID] = { 0, "id", "ID", "a number that tells slices of one name apart", GROUP_RARE,
		     COMPLETE_NOTHING, set_id },
	[OPT_MERGE] = { 0, "merge", "FILE",
			"marks that an application wrote itself (Trace Event Format); may be "
			"repeated",
			GROUP_WHERE, COMPLETE_FILE, merge_set_file },
	[OPT_CPU_PROFILE] = { 0, "cpu-profile", "FILE",
			      "samples of gperftools' CPU profiler; may be repeated", GROUP_WHERE,
			      COMPLETE_FILE, add_cpu_profile },
	[OPT_FROM] = { 0, "from", "TIME", "only from 12.345678, +1.5s, -500ms (end) or a mark on",
		       GROUP_WHAT, COMPLETE_NOTHING, set_from },
	[OPT_TO] = { 0, "to", "TIME", "only what is before that time", GROUP_WHAT, COMPLETE_NOTHING,
		     set_to },
	[OPT_COMM] = { 0, "comm", "GLOB", "only tasks of this name, or of a process of it",
		       GROUP_WHAT, COMPLETE_NOTHING, set_comm },
	[OPT_SYMBOLS] = { 0, "symbols", "FOLDER",
			  "folder to search first for programs, to name functions", GROUP_WHERE,
			  COMPLETE_FILE, set_symbols },
	[OPT_JSON_ARRAY] = { 0, "json-array", NULL, "JSON: the array of events alone, without text",
			     GROUP_RARE, COMPLETE_NOTHING, set_json_array },
	[OPT_HTML_MAX] = { 0, "html-max", "SIZE|EVENTS",
			   "HTML: what one page holds at most; the rest gets further pages",
			   GROUP_RARE, COMPLETE_NOTHING, set_html_max },
	[OPT_MERGE_CLOCK] = { 0, "merge-clock", "CLOCK",
			      "clock of the preceding --merge: monotonic, boottime or realtime",
			      GROUP_RARE, COMPLETE_NOTHING, merge_set_clock },
	[OPT_SYNC_FILE] = { 0, "sync-file", "FILE",
			    "clock_sync events that tie the preceding --merge's clock", GROUP_RARE,
			    COMPLETE_FILE, merge_set_syncs },
	[OPT_SYNC_BOUND] = { 0, "sync-bound", "TIME",
			     "warn of clock ties with a larger error (10us)", GROUP_RARE,
			     COMPLETE_NOTHING, set_sync_bound },
	[OPT_REPORT] = { 0, "report", "NAMES", "print these reports at the end; -o is not needed",
			 GROUP_REPORTS, COMPLETE_NOTHING, add_reports },
	[OPT_SESSION] = { 0, "session", "SESSION", "look at this running session", GROUP_WHAT,
			  COMPLETE_SESSION, set_session },
	[OPT_BY] = { 0, "by", "WHAT", "what a row stands for: thread, comm, process, cpu",
		     GROUP_REPORTS, COMPLETE_NOTHING, set_by },
	[OPT_SORT] = { 0, "sort", "COLUMN", "sort by this column; delay-p99 is a part of delay",
		       GROUP_REPORTS, COMPLETE_NOTHING, set_sort },
	[OPT_TOP] = { 0, "top", "N", "only the first N rows of a table", GROUP_REPORTS,
		      COMPLETE_NOTHING, set_top },
	[OPT_MIN] = { 0, "min", "TIME", "only rows whose sorted time is at least this",
		      GROUP_REPORTS, COMPLETE_NOTHING, set_min },
	[OPT_TASK] = { 0, "task", "TID|NAME", "critpath: the thread", GROUP_REPORTS,
		       COMPLETE_NOTHING, set_task },
	[OPT_SUMMARY] = { 's', "summary", NULL, "timehist: sums of each task, as sched has them",
			  GROUP_REPORTS, COMPLETE_NOTHING, set_summary },
	[OPT_WATCH] = { 0, "watch", NULL, "show it anew each second, until Ctrl-C", GROUP_WHEN,
			COMPLETE_NOTHING, set_watch },
	[OPT_BATCH] = { 0, "batch", NULL, "print lines, also on a terminal", GROUP_WHERE,
			COMPLETE_NOTHING, set_batch },
	[OPT_DECAY] = { 0, "decay", NULL, "with --batch: means over some seconds, not of each one",
			GROUP_WHERE, COMPLETE_NOTHING, set_decay },
	[OPT_PROBE] = { 0, "probe", NULL,
			"list functions and tracepoints that probes can be made of", GROUP_WHAT,
			COMPLETE_NOTHING, set_probe },
	[OPT_FIELDS] = { 0, "fields", NULL, "also fields, types, and operators for filters",
			 GROUP_WHAT, COMPLETE_NOTHING, set_fields },
	[OPT_CSV] = { 0, "csv", NULL, "print comma-separated values", GROUP_REPORTS,
		      COMPLETE_NOTHING, set_csv },
	[OPT_JSON] = { 0, "json", NULL, "print JSON", GROUP_GENERAL, COMPLETE_NOTHING, set_json },
	[OPT_QUIET] = { 'q', "quiet", NULL, "print only problems", GROUP_GENERAL, COMPLETE_NOTHING,
			set_quiet },
	[OPT_VERBOSE] = { 'v', "verbose", NULL, "print more", GROUP_GENERAL, COMPLETE_NOTHING,
			  set_verbose },
	[OPT_CONTROL] = { 0, "control", "[=zstd]",
			  "take orders on standard input, as `tracectl -H` gives them", GROUP_RARE,
			  COMPLETE_NOTHING, set_control },
	[OPT_PHC] = { 0, "phc", "CLOCK,TIME",
		      "the hosts' PTP clocks and ours differ by at most TIME: /dev/ptp0,200ns",
		      GROUP_RARE, COMPLETE_NOTHING, set_phc },
	[OPT_HOST] = { 'H', "host", "HOST",
		       "on [user@]host[:port] by ssh, adb:SERIAL or exec:COMMAND; may be repeated",
		       GROUP_GENERAL, COMPLETE_NOTHING, add_host },
	[OPT_HOSTS] = { 0, "hosts", "FILE",
			"on the hosts in FILE: a line each, 'NAME=HOST' or HOST", GROUP_GENERAL,
			COMPLETE_FILE, add_host_file },
	[OPT_LABEL] = { 0, "label", "NAME=HOST", "call that host NAME in messages and files",
			GROUP_GENERAL, COMPLETE_NOTHING, add_label },
	[OPT_REQUIRE_ALL] = { 0, "require-all", NULL, "record: fail if one of the hosts fails",
			      GROUP_GENERAL, COMPLETE_NOTHING, set_require_all },
	[OPT_PUSH] = { 0, "push", "[=PATH]",
		       "send the hosts a program that runs the command, from PATH", GROUP_GENERAL,
		       COMPLETE_FILE, set_push },
	[OPT_FLEET] = { 0, "fleet", "NAME", "the boards' fleet", GROUP_WHERE, COMPLETE_NOTHING,
			set_fleet },
	[OPT_GROUP] = { 0, "group", "NAME", "only boards of this group", GROUP_WHERE,
			COMPLETE_NOTHING, set_group },
	[OPT_SHARE] = { 0, "share", "PERCENT", "only this part of the boards: 1, 0.25", GROUP_WHERE,
			COMPLETE_NOTHING, set_share },
	[OPT_SALT] = { 0, "salt", "NAME", "chooses the boards of a share; default: the serial",
		       GROUP_RARE, COMPLETE_NOTHING, set_salt },
	[OPT_WINDOW] = { 0, "window", "TIME", "boards begin at random times within it", GROUP_WHEN,
			 COMPLETE_NOTHING, set_window },
	[OPT_NOT_BEFORE] = { 0, "not-before", "TIME",
			     "boards do not begin before it: 2h, 2026-11-29T00:00:00Z", GROUP_WHEN,
			     COMPLETE_NOTHING, set_not_before },
	[OPT_EXPIRES] = { 0, "expires", "TIME",
			  "until when boards take the order: 2h, 2026-11-29T00:00:00Z; default: "
			  "24h",
			  GROUP_WHEN, COMPLETE_NOTHING, set_expires },
	[OPT_SERIAL] = { 0, "serial", "N",
			 "the order's number, above all before it; default: the time", GROUP_RARE,
			 COMPLETE_NOTHING, set_serial },
	[OPT_CAPTURE] = { 0, "capture", NULL,
			  "order: boards also send the recording; fetch: copy it, too", GROUP_WHAT,
			  COMPLETE_NOTHING, set_capture },
	[OPT_SECRET_KEY] = { 0, "secret-key", "FILE", "signify's secret key, which signs the order",
			     GROUP_WHERE, COMPLETE_FILE, set_secret_key },
	[OPT_PRESIGN] = { 0, "presign", "FILE", "URL and key of Swift, to sign boards' uploads",
			  GROUP_WHERE, COMPLETE_FILE, set_presign },
	[OPT_URL] = { 0, "url", "URL", "order: where boards look for it; fetch: of the results",
		      GROUP_WHERE, COMPLETE_NOTHING, set_url },
	[OPT_CURL] = { 0, "curl", "FILE", "configuration for curl: certificates, keys", GROUP_WHERE,
		       COMPLETE_FILE, set_curl },
	[OPT_S3] = { 0, "s3", NULL, "the store lists as S3 does; otherwise as nginx, in JSON",
		     GROUP_WHERE, COMPLETE_NOTHING, set_s3 },
	[OPT_BROKER] = { 0, "broker", "URL",
			 "order, withdraw, status: the boards' broker: mqtts://HOST:8884",
			 GROUP_WHERE, COMPLETE_NOTHING, set_broker },
	[OPT_SOCKET] = { 0, "socket", "PATH", "where traced listens (" CONTROL_SOCKET ")",
			 GROUP_GENERAL, COMPLETE_FILE, set_socket },
	[OPT_VERSION] = { 0, "version", NULL, "print the version", GROUP_GENERAL, COMPLETE_NOTHING,
			  set_version },
	[OPT_HELP] = { 'h', "help", NULL, "print this help", GROUP_GENERAL, COMPLETE_NOTHING,
		       set_help },
};
