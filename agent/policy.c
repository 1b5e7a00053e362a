/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/policy.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/hook.h"
#include "agent/state.h"
#include "agent/trusted.h"
#include "base/buf.h"
#include "base/io.h"
#include "fleet/keys.h"
#include "fleet/word.h"

#define SECOND NSEC_PER_SEC
#define DAY (86400 * SECOND)
#define INTERVAL_MIN (100 * NSEC_PER_MSEC)
#define KEEP_ALIVE_MIN (5 * SECOND)
#define KEEP_ALIVE_MAX (3600 * SECOND)

/*
 * https:// alone, and no user, query or fragment: names are appended to a URL, and it is shown in
 * messages.
 */
static bool policy_is_url(const char *value)
{
	static const char scheme[] = "https://";

	return strncmp(value, scheme, sizeof(scheme) - 1) == 0 && value[sizeof(scheme) - 1] &&
	       word_is_printable(value) && !strpbrk(value, "@?# \\\"<>");
}

static int policy_not_url(struct error *err)
{
	return error_set(err, -EINVAL,
			 "the value is not a URL https://HOST/PATH without user or query");
}

static int policy_set_url(void *field, const char *value, struct error *err)
{
	return policy_is_url(value) ? setting_string(field, value, err) : policy_not_url(err);
}

static int policy_set_urls(void *field, const char *value, struct error *err)
{
	struct string_list *list = field;

	if (string_list_add_words(list, value) < 0)
		return error_errno(err, -ENOMEM, "the URLs");
	if (list->count > POLICY_URLS_MAX)
		return error_set(err, -EINVAL, "there are more than %d URLs", POLICY_URLS_MAX);
	for (size_t i = 0; i < list->count; i++)
		if (!policy_is_url(list->items[i]))
			return policy_not_url(err);
	return 0;
}

/* mqtts://HOST or mqtts://HOST:PORT; HOST may be [ADDRESS]. */
static int policy_set_broker(void *field, const char *value, struct error *err)
{
	struct broker_address *broker = field;
	char host[254] = "";
	unsigned port = 8883;
	int end = 0;

	if (!HAVE_MOSQUITTO)
		return error_set(err, -EOPNOTSUPP, "this agent is built without libmosquitto");
	if (sscanf(value, "mqtts://[%253[0-9A-Fa-f:.]%n", host, &end) == 1 && value[end] == ']')
		end++;
	else if (sscanf(value, "mqtts://%253[A-Za-z0-9.-]%n", host, &end) != 1)
		end = -1;
	if (end > 0 && value[end] == ':') {
		size_t digits = strspn(value + ++end, "0123456789");

		port = digits && digits <= 5 ? (unsigned)atoi(value + end) : 0;
		end += (int)digits;
	}
	if (end <= 0 || value[end] || !port || port > UINT16_MAX)
		return error_set(err, -EINVAL, "the value is not mqtts://HOST:PORT");
	broker->port = (uint16_t)port;
	return setting_string(&broker->host, host, err);
}

static int policy_set_newest(void *field, const char *value, struct error *err)
{
	if (strcmp(value, "oldest") != 0 && strcmp(value, "newest") != 0)
		return error_set(err, -EINVAL, "the value is neither oldest nor newest");
	*(bool *)field = value[0] == 'n';
	return 0;
}

static const struct setting settings[] = {
	{ "board", "id", offsetof(struct policy, id), keys_set_name },
	{ "board", "fleet", offsetof(struct policy, fleet), keys_set_name },
	{ "board", "groups", offsetof(struct policy, groups), keys_set_names },
	{ "board", "labels", offsetof(struct policy, labels), keys_set_labels },
	{ "orders", "url", offsetof(struct policy, orders_urls), policy_set_urls },
	{ "orders", "broker", offsetof(struct policy, broker), policy_set_broker },
	{ "orders", "keys", offsetof(struct policy, keys), setting_path },
	{ "orders", "interval", offsetof(struct policy, interval_ns), keys_set_duration },
	{ "orders", "keep_alive", offsetof(struct policy, keep_alive_ns), keys_set_duration },
	{ "orders", "validity_max", offsetof(struct policy, validity_ns), keys_set_duration },
	{ "results", "url", offsetof(struct policy, results_url), policy_set_url },
	{ "results", "s3_region", offsetof(struct policy, s3_region), keys_set_name },
	{ "results", "s3_key", offsetof(struct policy, s3_key_file), setting_path },
	{ "results", "presigned", offsetof(struct policy, presigned), setting_switch },
	{ "results", "spool_max", offsetof(struct policy, spool_max), setting_size },
	{ "results", "send_first", offsetof(struct policy, sends_newest), policy_set_newest },
	{ "results", "drop_first", offsetof(struct policy, drops_newest), policy_set_newest },
	{ "tls", "ca", offsetof(struct policy, ca), setting_path },
	{ "tls", "certificate", offsetof(struct policy, certificate), setting_path },
	{ "tls", "key", offsetof(struct policy, key), setting_path },
	{ "limits", "duration_max", offsetof(struct policy, duration_ns), keys_set_duration },
	{ "limits", "window_max", offsetof(struct policy, window_ns), keys_set_duration },
	{ "limits", "events", offsetof(struct policy, events), keys_set_events },
	{ "limits", "profiles", offsetof(struct policy, profiles), keys_set_names },
	{ "limits", "reports", offsetof(struct policy, reports), keys_set_names },
	{ "limits", "sql", offsetof(struct policy, sql), setting_switch },
	{ "limits", "hist", offsetof(struct policy, hist), keys_set_events },
	{ "limits", "triggers", offsetof(struct policy, triggers), setting_switch },
	{ "limits", "captures", offsetof(struct policy, captures), setting_switch },
	{ "limits", "cpu_max", offsetof(struct policy, cpu_permille), keys_set_percent },
	{ "limits", "result_max", offsetof(struct policy, result_max), setting_size },
	{ "limits", "segments_max", offsetof(struct policy, segments_max), setting_count },
	{ "limits", "orders_a_day", offsetof(struct policy, orders_a_day), setting_count },
	{ "limits", "uploads_a_day", offsetof(struct policy, uploads_a_day), setting_count },
	{ "limits", "bytes_a_day", offsetof(struct policy, bytes_a_day), setting_size },
	{ "limits", "only_if", offsetof(struct policy, only_if), setting_path },
	{ "agent", "state_dir", offsetof(struct policy, state_dir), setting_path },
	{ "agent", "metrics", offsetof(struct policy, metrics), setting_path },
	{ "agent", "socket", offsetof(struct policy, socket), setting_path },
	{ "agent", "tracectl", offsetof(struct policy, tracectl), setting_path },
};

static int policy_init(struct policy *p)
{
	*p = (struct policy){
		.keys = strdup(TRACED_SYSCONFDIR "/traced/agent-keys"),
		.interval_ns = 300 * SECOND,
		.keep_alive_ns = 60 * SECOND,
		.validity_ns = 31 * DAY,
		.spool_max = UINT64_C(64) << 20,
		.duration_ns = 60 * SECOND,
		.window_ns = 3600 * SECOND,
		.result_max = UINT64_C(16) << 20,
		.segments_max = 60,
		.orders_a_day = 24,
		.uploads_a_day = 100,
		.bytes_a_day = UINT64_C(64) << 20,
		.state_dir = strdup(AGENT_STATE_DIR),
		.tracectl = strdup(TRACECTL_PATH),
	};
	return p->keys && p->state_dir && p->tracectl ? 0 : -ENOMEM;
}

static int policy_check(const struct policy *p, const char *path, struct error *err)
{
	bool has_source = p->orders_urls.count || p->broker.host;
	const char *missing = !p->id		? "id in [board]"
			      : !p->fleet	? "fleet in [board]"
			      : !has_source	? "url or broker in [orders]"
			      : !p->results_url ? "url in [results]"
						: NULL;

	if (missing)
		return error_set(err, -EINVAL, "%s: the key %s is missing", path, missing);
	if (!p->certificate != !p->key)
		return error_set(err, -EINVAL, "%s: [tls] has a certificate or a key alone", path);
	if (!p->s3_region != !p->s3_key_file)
		return error_set(err, -EINVAL, "%s: [results] has s3_region or s3_key alone", path);
	if (p->presigned && p->s3_region)
		return error_set(err, -EINVAL, "%s: presigned and s3_key exclude each other", path);
	/* Results whose signature has run out would keep the spool full for ever. */
	if (p->presigned && p->drops_newest)
		return error_set(err, -EINVAL,
				 "%s: presigned and drop_first = newest exclude each other", path);
	if (p->interval_ns < INTERVAL_MIN)
		return error_set(err, -EINVAL, "%s: interval is shorter than 100ms", path);
	if (p->keep_alive_ns < KEEP_ALIVE_MIN || p->keep_alive_ns > KEEP_ALIVE_MAX)
		return error_set(err, -EINVAL, "%s: keep_alive is not from 5s to 1h", path);
	/* The broker knows a board by its certificate. libmosquitto wants the authority. */
	if (p->broker.host && (!p->ca || !p->certificate))
		return error_set(err, -EINVAL,
				 "%s: a broker needs ca, certificate and key in [tls]", path);
	for (size_t i = 0; i < p->groups.count; i++)
		if (strcmp(p->groups.items[i], STATE_ALL) == 0)
			return error_set(err, -EINVAL, "%s: no group can be called %s", path,
					 STATE_ALL);
	/* It would wait forever. */
	if (p->result_max > p->bytes_a_day || p->result_max > p->spool_max)
		return error_set(err, -EINVAL, "%s: result_max exceeds bytes_a_day or spool_max",
				 path);
	return 0;
}

/* The first label of a name counts: an administrator's own comes before ours. */
static int policy_add_labels(struct policy *p, struct error *err)
{
	_cleanup_buf_ struct buf words = BUF_INIT;
	struct utsname name;
	int r;

	if (uname(&name) < 0)
		return error_errno(err, -errno, "uname");
	buf_printf(&words, "kernel=%s arch=%s", name.release, name.machine);
	r = buf_string(&words) ? string_list_add_words(&p->labels, words.data) : -ENOMEM;
	return r < 0 ? error_errno(err, r, "labels") : 0;
}

int policy_load(struct policy *ret, const char *path, uid_t owner, struct error *err)
{
	_cleanup_policy_ struct policy p = { 0 };
	_cleanup_fclose_ FILE *file = NULL;
	int r = policy_init(&p);

	if (r < 0)
		return error_errno(err, r, "%s", path);
	r = trusted_open(AT_FDCWD, path, owner, &file, err);
	if (r >= 0)
		r = keys_read(file, path, settings, ARRAY_SIZE(settings), &p, err);
	if (r >= 0)
		r = policy_check(&p, path, err);
	if (r >= 0)
		r = policy_add_labels(&p, err);
	if (r >= 0 && p.s3_key_file)
		r = s3_key_load(&p.s3_key, p.s3_key_file, owner, err);
	if (r >= 0 && p.only_if)
		r = hook_check(p.only_if, owner, err);
	if (r < 0)
		return r;
	p.owner = owner;
	*ret = p;
	p = (struct policy){ 0 };
	return 0;
}

const char *policy_find_unreadable(const struct policy *p)
{
	const char *const files[] = { p->ca, p->certificate, p->key };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i] && access(files[i], R_OK) < 0)
			return files[i];
	return NULL;
}

void policy_deinit(struct policy *p)
{
	free(p->id);
	free(p->fleet);
	string_list_deinit(&p->groups);
	string_list_deinit(&p->labels);
	string_list_deinit(&p->orders_urls);
	free(p->broker.host);
	free(p->keys);
	free(p->results_url);
	free(p->s3_region);
	free(p->s3_key_file);
	s3_key_deinit(&p->s3_key);
	free(p->ca);
	free(p->certificate);
	free(p->key);
	string_list_deinit(&p->events);
	string_list_deinit(&p->profiles);
	string_list_deinit(&p->reports);
	string_list_deinit(&p->hist);
	free(p->only_if);
	free(p->state_dir);
	free(p->metrics);
	free(p->socket);
	free(p->tracectl);
	*p = (struct policy){ 0 };
}
