/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet order`. The agent's own parser checks the text before it is signed. signify
 * signs: it knows the format of its secret keys, and asks for their passphrase on the terminal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/parse.h"
#include "curl.h"
#include "daemon/capture/plan/hist_spec.h"
#include "fleet.h"
#include "fleet/order.h"
#include "fleet_broker.h"
#include "fleet_presign.h"
#include "input.h"
#include "output/name.h"
#include "report/watch_condition.h"
#include "reports/named_reports.h"
#include "reports/report_events.h"
#include "sql/sql.h"
#include "tool.h"

#define EXPIRES "24h"

struct ordering {
	const struct options *o;
	struct buf text;    /* what the boards read */
	struct buf signed_; /* the text with its signature in front */
	char serial[24];
	bool is_sent; /* boards may have it */
};

static void ordering_deinit(struct ordering *r)
{
	buf_deinit(&r->text);
	buf_deinit(&r->signed_);
}

/* The value as it was typed: the order has the same words. NULL: the option is absent. */
static const char *ordering_typed(const struct options *o, int id)
{
	const char *value = NULL;

	for (size_t i = 0; i < o->typed_count; i++)
		if (o->typed[i].id == id)
			value = o->typed[i].value;
	return value;
}

static int ordering_name_option(int e, int option, struct error *err)
{
	return e < 0 ? error_prefix(err, "--%s", option_specs[option].name) : 0;
}

static int ordering_put(struct ordering *r, int option, const char *key, const char *value,
			struct error *err)
{
	return ordering_name_option(order_put(&r->text, key, value, err), option, err);
}

static int ordering_put_text(struct ordering *r, int option, const char *key, const char *value,
			     struct error *err)
{
	return ordering_name_option(order_put_text(&r->text, key, value, err), option, err);
}

static int ordering_put_words(struct ordering *r, int option, const char *key,
			      const char *const *words, size_t count, struct error *err)
{
	return ordering_name_option(order_put_words(&r->text, key, words, count, err), option, err);
}

static struct tm ordering_utc(uint64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm = { 0 };

	gmtime_r(&t, &tm);
	return tm;
}

/* value: a time, or how long from now, perhaps with a plus. NULL: the key is absent. */
static int ordering_put_time(struct ordering *r, int option, const char *key, const char *value,
			     uint64_t now, struct error *err)
{
	char text[32];
	struct tm tm;
	uint64_t ns;

	if (!value || strchr(value, 'T'))
		return ordering_put(r, option, key, value, err);
	if (parse_duration(value + (*value == '+'), &ns, err) < 0)
		return ordering_name_option(-EINVAL, option, err);
	tm = ordering_utc(now + ns / NSEC_PER_SEC);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return ordering_put(r, option, key, text, err);
}

static int ordering_put_events(struct ordering *r, struct error *err)
{
	const struct options *o = r->o;
	_cleanup_free_ const char **words = calloc(o->event_count + 1, sizeof(*words));
	int e = words ? 0 : error_errno(err, -ENOMEM, "events");

	for (size_t i = 0; i < o->event_count && e == 0; i++) {
		words[i] = o->events[i].glob;
		if (strchr(words[i], ':'))
			continue;
		error_set(err, -EINVAL, "-e %s: boards need SYSTEM:EVENT", words[i]);
		return error_hint(err, "a whole system is %s:*, an event *:%s", words[i], words[i]);
	}
	if (e == 0)
		e = ordering_put_words(r, OPT_EVENT, "events", words, o->event_count, err);
	for (size_t i = 0; i < o->event_count && e == 0; i++)
		e = ordering_put(r, OPT_FILTER, "filter", o->events[i].filter, err);
	return e;
}

static int ordering_put_until(struct ordering *r, const char *condition, struct error *err)
{
	struct watch_condition unused = { 0 };
	int e = watch_condition_parse(condition, &unused, err);

	if (e < 0)
		return error_prefix(err, "--on");
	watch_condition_deinit(&unused);
	return ordering_put_text(r, OPT_ON, "until", condition, err);
}

/* SQL and histogram: the kernel makes them of events. */
static int ordering_put_made(struct ordering *r, struct error *err)
{
	const struct options *o = r->o;
	int e = 0;

	if (o->sql_count > 1 || o->hists.count > 1 || o->on.count > 1)
		return error_set(err, -EINVAL, "an order has one --%s at most",
				 o->sql_count > 1     ? "sql"
				 : o->hists.count > 1 ? "hist"
						      : "on");
	if (o->sql_count && sql_check_option_name(o->sql[0].name ?: "sql1", err) < 0)
		return error_prefix(err, "--as");
	if (o->sql_count)
		e = ordering_put_text(r, OPT_SQL, "sql", o->sql[0].text, err);
	if (e == 0 && o->sql_count)
		e = ordering_put(r, OPT_AS, "as", o->sql[0].name ?: "sql1", err);
	if (e == 0 && o->on.count)
		e = ordering_put_until(r, o->on.items[0], err);
	if (e == 0 && o->hists.count)
		e = ordering_put_text(r, OPT_HIST, "hist", o->hists.items[0], err);
	return e;
}

static int ordering_put_segments(struct ordering *r, struct error *err)
{
	_cleanup_buf_ struct buf limits = BUF_INIT;
	const struct options *o = r->o;
	int e;

	for (size_t i = 0; i < o->typed_count; i++)
		if (o->typed[i].id == OPT_ROTATE)
			buf_printf(&limits, "%s%s", limits.len ? " " : "", o->typed[i].value);
	if (!buf_string(&limits))
		return error_errno(err, -ENOMEM, "the segments");
	e = ordering_put(r, OPT_ROTATE, "segments", limits.len ? limits.data : NULL, err);
	if (e == 0)
		e = ordering_put(r, OPT_FORMAT, "format", ordering_typed(o, OPT_FORMAT), err);
	return e;
}

static int ordering_compose(struct ordering *r, struct error *err)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	const struct options *o = r->o;
	const struct tm tm = ordering_utc(now);
	struct buf *text = &r->text;
	int e;

	/* A later order has a higher serial. */
	strftime(r->serial, sizeof(r->serial), "%Y%m%d%H%M%S", &tm);
	order_begin(text);
	e = ordering_put(r, OPT_SERIAL, "serial", o->serial ?: r->serial, err);
	if (e == 0)
		e = ordering_put(r, OPT_FLEET, "fleet", o->fleet, err);
	if (e == 0)
		e = ordering_put(r, OPT_GROUP, "group", o->group, err);
	if (e == 0)
		e = ordering_put_time(r, OPT_NOT_BEFORE, "not_before", o->not_before, now, err);
	if (e == 0)
		e = ordering_put_time(r, OPT_EXPIRES, "expires", o->expires ?: EXPIRES, now, err);
	if (e == 0)
		e = ordering_put(r, OPT_SHARE, "share", o->share, err);
	if (e == 0)
		e = ordering_put(r, OPT_SALT, "salt", o->salt, err);
	if (e == 0)
		e = ordering_put_words(r, OPT_LABEL, "labels", o->labels.items, o->labels.count,
				       err);
	if (e == 0)
		e = ordering_put(r, OPT_WINDOW, "window", o->window, err);
	if (e == 0)
		e = ordering_put(r, OPT_DURATION, "duration", ordering_typed(o, OPT_DURATION), err);
	if (e == 0)
		e = ordering_put(r, OPT_PROFILE, "profile", o->profile, err);
	if (e == 0)
		e = ordering_put_events(r, err);
	if (e == 0)
		e = ordering_put_made(r, err);
	if (e == 0)
		e = ordering_put_words(r, OPT_REPORT, "reports", o->reports.items, o->reports.count,
				       err);
	if (e == 0 && o->capture)
		e = ordering_put(r, OPT_CAPTURE, "capture", "yes", err);
	if (e == 0)
		e = ordering_put(r, OPT_MAX_CPU, "cpu_max", ordering_typed(o, OPT_MAX_CPU), err);
	if (e == 0)
		e = ordering_put(r, OPT_MAX_SIZE, "bytes_max", ordering_typed(o, OPT_MAX_SIZE),
				 err);
	if (e == 0)
		e = ordering_put_segments(r, err);
	return e == 0 && !buf_string(text) ? error_errno(err, -ENOMEM, "the order") : e;
}

/* Reads the text as boards do. */
static int ordering_check(struct ordering *r, struct error *err)
{
	_cleanup_order_ struct order order = { 0 };
	int e = order_parse(&order, r->text.data, r->text.len, err);
	struct hist_spec hist;

	if (e == 0 && order.hist)
		e = ordering_name_option(hist_spec_parse(&hist, order.hist, err), OPT_HIST, err);
	if (e == 0 && order.expires <= now_ns(CLOCK_REALTIME) / NSEC_PER_SEC)
		e = error_set(err, -EINVAL, "the order has expired already");
	if (e == 0 && order.expires <= order.not_before) {
		e = error_set(err, -EINVAL, "the order expires before it may be followed");
		error_hint(err, "--expires, by default " EXPIRES ", has to be after --not-before");
	}
	if (e == 0)
		snprintf(r->serial, sizeof(r->serial), "%" PRIu64, order.serial);
	return e;
}

static int ordering_presign(struct ordering *r, struct error *err)
{
	_cleanup_order_ struct order order = { 0 }, again = { 0 };
	int e = order_parse(&order, r->text.data, r->text.len, err);

	if (e == 0)
		e = fleet_presign(r->o->presign, &order, &r->text, err);
	return e == 0 ? order_parse(&again, r->text.data, r->text.len, err) : e;
}

static int ordering_temp(struct error *err)
{
	int fd = input_create_temp();

	return fd < 0 ? error_errno(err, fd, "%s", input_temp_place()) : fd;
}

static int ordering_sign(struct ordering *r, struct error *err)
{
	/* Debian's package signify is another program. */
	static const char *const names[] = { "signify-openbsd", "signify" };
	_cleanup_close_ int in = ordering_temp(err), out = in < 0 ? in : ordering_temp(err);
	int e = in < 0 || out < 0 ? MIN(in, out) : write_full(in, r->text.data, r->text.len);

	if (in < 0 || out < 0)
		return e;
	if (e < 0)
		return error_errno(err, e, "%s", input_temp_place());
	e = -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(names) && e == -ENOENT; i++) {
		const char *const argv[] = { names[i], "-S", "-e", "-s", r->o->secret_key,
					     "-m",     "-",  "-x", "-",	 NULL };

		lseek(in, 0, SEEK_SET);
		e = tool_run(argv, in, out, -EBADF, 0, err);
	}
	if (e == -ENOENT)
		return error_hint(err, "the package signify-openbsd has it");
	if (e != 0)
		return e < 0 ? e : error_set(err, -EIO, "signify ended with status %d", e);
	lseek(out, 0, SEEK_SET);
	e = read_to_end(out, ORDER_MAX, &r->signed_);
	if (e < 0)
		return error_errno(err, e, "the signed order");
	if (r->signed_.len <= r->text.len ||
	    memcmp(r->signed_.data + r->signed_.len - r->text.len, r->text.data, r->text.len) != 0)
		return error_set(err, -EIO, "signify did not sign the order");
	return 0;
}

static int ordering_write(const struct ordering *r, struct output_name *name, struct error *err)
{
	int e = output_name_open(name, r->o->output, OUTPUT_FILE, err);

	if (e < 0)
		return e;
	e = write_full(name->fd, r->signed_.data, r->signed_.len);
	return e < 0 ? error_errno(err, e, "%s", r->o->output) : 0;
}

/* A file of the signed order. */
static int ordering_temp_signed(const struct ordering *r, struct error *err)
{
	_cleanup_close_ int fd = ordering_temp(err);
	int e = fd < 0 ? fd : write_full(fd, r->signed_.data, r->signed_.len);

	if (fd >= 0 && e < 0)
		error_errno(err, e, "%s", input_temp_place());
	return e < 0 ? e : TAKE_FD(fd);
}

static bool ordering_is_signed(const struct ordering *r, const struct buf *back)
{
	return back->len == r->signed_.len && !memcmp(back->data, r->signed_.data, back->len);
}

/* Whoever stores it is asked for it afterwards: an answer of PUT alone is not believed. */
static int ordering_publish(struct ordering *r, struct error *err)
{
	_cleanup_close_ int fd = ordering_temp_signed(r, err);
	_cleanup_buf_ struct buf back = BUF_INIT;
	int e = fd < 0 ? fd : curl_put(r->o->curl, r->o->url, fd, err);

	r->is_sent |= e == 0;
	if (e == 0)
		e = curl_get(r->o->curl, r->o->url, ORDER_MAX, &back, err);
	if (e == 0 && !ordering_is_signed(r, &back))
		e = error_set(err, -EIO, "%s: the store accepted the order, but has another one",
			      r->o->url);
	return e;
}

/* A broker that lets nobody write there says so to its own log only. */
static int ordering_tell_broker(struct ordering *r, struct error *err)
{
	_cleanup_close_ int fd = ordering_temp_signed(r, err);
	_cleanup_buf_ struct buf topic = BUF_INIT, back = BUF_INIT;
	int e = fd;

	broker_put_topic(r->o->fleet, r->o->group, &topic);
	if (!buf_string(&topic))
		return error_errno(err, -ENOMEM, "the topic");
	if (fd >= 0)
		e = broker_publish(r->o->broker, topic.data, fd, err);
	r->is_sent |= e == 0;
	if (e == 0)
		e = broker_order(r->o->broker, r->o->fleet, topic.data, &back, err);
	if (e < 0 || ordering_is_signed(r, &back))
		return MIN(e, 0);
	error_set(err, -EACCES, "the broker does not show the order on %s", topic.data);
	return error_hint(err, "its ACL may let others write there");
}

static bool ordering_needs_task(const char *name)
{
	size_t count;
	const struct report_about *all = report_all(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return all[i].needs_task;
	return false;
}

/* Without events and a profile, boards record what the reports need. */
static int ordering_check_events(const struct options *o, const char *report, struct error *err)
{
	if (!o->event_count || o->profile || !report_events_missing(o, report))
		return 0;
	error_set(err, -EINVAL, "the order has no events for the report %s", report);
	return error_hint(err,
			  "add them, or leave out -e: then boards record what the reports need");
}

/* A board finds out only once it has recorded. */
static int ordering_check_reports(const struct options *o, struct error *err)
{
	_cleanup_named_reports_ struct named_reports reports = { 0 };
	int e = named_reports_init(&reports, o, (const char *const *)o->reports.items,
				   o->reports.count, err);

	for (size_t i = 0; i < reports.options.count && e == 0; i++) {
		e = ordering_check_events(o, reports.names[i], err);
		if (e == 0 && ordering_needs_task(reports.names[i]))
			e = error_set(err, -EINVAL,
				      "the report %s is of one thread, which an order can't name",
				      reports.names[i]);
	}
	return e < 0 ? e : report_options_check(&reports.options, err);
}

static int ordering_check_options(const struct options *o, struct error *err)
{
	if (o->arg_count > 1)
		return error_set(err, -EINVAL, "fleet order: '%s' is one argument too many",
				 o->args[1]);
	if (!o->fleet || !ordering_typed(o, OPT_DURATION)) {
		error_set(err, -EINVAL, "fleet order: --%s is missing",
			  option_specs[o->fleet ? OPT_DURATION : OPT_FLEET].name);
		return error_hint(err, "tracectl fleet order --fleet doors -t 10s --report sched "
				       "--secret-key order.sec --url URL");
	}
	if (!o->secret_key) {
		error_set(err, -EINVAL, "fleet order: --secret-key is missing");
		return error_hint(err, "signify-openbsd -G -p order.pub -s order.sec makes one; "
				       "the boards need order.pub");
	}
	if (!o->output && !o->url && !o->broker) {
		error_set(err, -EINVAL, "fleet order: there is no place for the order");
		return error_hint(err, "-o FILE, --url URL or --broker BROKER");
	}
	return ordering_check_reports(o, err);
}

/* Only its file withdraws an order: boards that may have it do not get it without one. */
static int ordering_give(struct ordering *r, struct output_name *name, struct error *err)
{
	const struct options *o = r->o;
	int e = o->url ? ordering_publish(r, err) : 0;

	if (e == 0 && o->broker)
		e = ordering_tell_broker(r, err);
	if (e < 0 && r->is_sent)
		cli_warn("order %s may have reached boards", r->serial);
	if (o->output && e == 0)
		return output_name_commit(name, err);
	if (o->output && r->is_sent)
		output_name_commit(name, NULL);
	return e;
}

int fleet_order(const struct options *o)
{
	_cleanup_(ordering_deinit) struct ordering r = { .o = o };
	_cleanup_output_name_ struct output_name name = OUTPUT_NAME_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (ordering_check_options(o, &err) < 0 || ordering_compose(&r, &err) < 0 ||
	    ordering_check(&r, &err) < 0)
		return cli_usage(&err);
	if (o->presign && ordering_presign(&r, &err) < 0)
		return cli_fail(&err);
	if (ordering_sign(&r, &err) < 0 || (o->output && ordering_write(&r, &name, &err) < 0) ||
	    ordering_give(&r, &name, &err) < 0)
		return cli_fail(&err);
	if (!o->quiet)
		fprintf(stderr, "order %s\n", r.serial);
	return CLI_WHOLE;
}
