/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet withdraw`: empties the topic of an order, if that shows it. An empty message
 * withdraws whatever boards have taken from the topic, so another order there is left alone.
 */
#include <inttypes.h>
#include <string.h>

#include "confined.h"
#include "fleet.h"
#include "fleet/order.h"
#include "fleet/word.h"
#include "fleet_broker.h"
#include "fleet_store.h"

struct withdrawing {
	const struct options *o;
	uint64_t serial;
	struct buf topic, text; /* text: what the topic shows */
};

static void withdrawing_deinit(struct withdrawing *w)
{
	buf_deinit(&w->topic);
	buf_deinit(&w->text);
}

/* Anybody may have written the text: for root, another process does this. */
static int withdrawing_compare(void *userdata, struct export_result *ret _unused_,
			       struct error *err)
{
	const struct withdrawing *w = userdata;
	_cleanup_order_ struct order order = { 0 };
	const char *at = w->text.data, *end = at + w->text.len;
	int r;

	/* The signature has two lines. */
	for (int i = 0; i < 2 && at; i++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at += at != NULL;
	}
	r = at ? order_parse(&order, at, (size_t)(end - at), err)
	       : error_set(err, -EBADMSG, "it is not signed");
	if (r < 0)
		return error_prefix(err, "%s shows no order", w->topic.data);
	if (order.serial == w->serial)
		return 0;
	error_set(err, -ESTALE, "%s shows order %" PRIu64 ", not %" PRIu64, w->topic.data,
		  order.serial, w->serial);
	return error_hint(err, "its withdrawal also withdraws those before it on that topic");
}

static int withdrawing_ask(const struct withdrawing *w, struct buf *ret, struct error *err)
{
	int r = broker_order(w->o->broker, w->o->fleet, w->topic.data, ret, err);

	if (r)
		return MIN(r, 0);
	error_set(err, -ETIMEDOUT, "the broker did not say in time whether %s shows an order",
		  w->topic.data);
	return error_hint(err, "may your certificate not write traced/%s/all/end/+?", w->o->fleet);
}

static int withdrawing_check(struct withdrawing *w, struct error *err)
{
	_cleanup_export_result_ struct export_result unused = { 0 };
	int r = withdrawing_ask(w, &w->text, err);

	if (r < 0)
		return r;
	if (!w->text.len) {
		error_set(err, -ENOENT, "%s shows no order", w->topic.data);
		return error_hint(err, "--group says whose order it is; without, that of all");
	}
	return confined_run(withdrawing_compare, w, &unused, err);
}

/* A broker that lets nobody write there says so to its own log only. */
static int withdrawing_run(struct withdrawing *w, struct error *err)
{
	_cleanup_buf_ struct buf after = BUF_INIT;
	int r = broker_publish(w->o->broker, w->topic.data, -EBADF, err);

	if (r == 0)
		r = withdrawing_ask(w, &after, err);
	if (r < 0 || after.len != w->text.len || memcmp(after.data, w->text.data, after.len) != 0)
		return r;
	error_set(err, -EACCES, "the broker still shows the order on %s", w->topic.data);
	return error_hint(err, "its ACL may let others write there");
}

static int withdrawing_check_options(const struct options *o, struct error *err)
{
	if (o->arg_count != 2 || !o->broker) {
		error_set(err, -EINVAL, "fleet withdraw takes an order, and needs --broker");
		return error_hint(err, "tracectl fleet withdraw 17 --fleet doors --group canary "
				       "--broker mqtts://broker.example:8884");
	}
	if (o->group && !word_is_name(o->group))
		return error_set(err, -EINVAL, "'%s' is no name of a group", o->group);
	return 0;
}

int fleet_withdraw(const struct options *o)
{
	_cleanup_(withdrawing_deinit) struct withdrawing w = { .o = o };
	_cleanup_fleet_store_ struct fleet_store store = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (withdrawing_check_options(o, &err) < 0 ||
	    fleet_store_init(&store, o, o->args[1], &err) < 0)
		return cli_usage(&err);
	w.serial = store.order;
	broker_put_topic(o->fleet, o->group, &w.topic);
	if (!buf_string(&w.topic))
		error_errno(&err, -ENOMEM, "the topic");
	else if (withdrawing_check(&w, &err) == 0 && withdrawing_run(&w, &err) == 0 && !o->quiet)
		fprintf(stderr, "order %" PRIu64 " is withdrawn\n", w.serial);
	return err.code ? cli_fail(&err) : CLI_WHOLE;
}
