/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet status`: how far an order is. A broker knows each board's word; a store only has
 * the results, so it shows who answered, and not who refused. Without an order: which boards the
 * broker knows, and how they are.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "document.h"
#include "fleet.h"
#include "fleet_broker.h"
#include "fleet_store.h"

#define BAR_WIDTH 40
#define WATCH_S 2
/* Boards that a line names; --json has all. */
#define BOARDS_SHOWN 20

static const char *status_outcome(const struct board_status *s)
{
	return *s->outcome ? s->outcome : "silent";
}

/* By outcome, reason and board. */
static int compare_statuses(const void *a, const void *b)
{
	const struct board_status *x = a, *y = b;
	int r = strcmp(status_outcome(x), status_outcome(y));

	r = r ?: strcmp(x->reason, y->reason);
	return r ?: strcmp(x->board, y->board);
}

static bool status_is_alike(const struct board_status *a, const struct board_status *b)
{
	return !strcmp(status_outcome(a), status_outcome(b)) && !strcmp(a->reason, b->reason);
}

/* Nothing more will come of the order from that board. */
static bool status_is_final(const struct board_status *s)
{
	static const char *const final[] = { "done",  "answered",  "failed",	 "refused",
					     "ended", "withdrawn", "interrupted" };

	for (size_t i = 0; i < ARRAY_SIZE(final); i++)
		if (!strcmp(s->outcome, final[i]))
			return true;
	return false;
}

static int compare_answers(const void *a, const void *b)
{
	const struct listing_item *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Boards that have a result in the store, each once. */
static int status_take_answers(struct board_statuses *all, const struct listing *names)
{
	all->items = calloc(names->count + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (size_t i = 0; i < names->count; i++) {
		struct board_status *s = &all->items[all->count];

		if (i && !strcmp(names->items[i].name, names->items[i - 1].name))
			continue;
		*s = (struct board_status){ .outcome = "answered" };
		strcpy(s->board, names->items[i].name);
		all->count++;
	}
	return 0;
}

static int status_ask_store(struct fleet_store *store, struct board_statuses *all,
			    struct error *err)
{
	_cleanup_listing_ struct listing names = { 0 };
	int r = fleet_store_boards(store, &names, err);

	if (r == 0 && names.count) {
		qsort(names.items, names.count, sizeof(*names.items), compare_answers);
		if (status_take_answers(all, &names) < 0)
			r = error_errno(err, -ENOMEM, "the boards");
	}
	all->refused = store->refused;
	return r;
}

/* Boards of one outcome, from the first one on. Returns their count. */
static size_t status_print_some(const struct board_status *first, size_t max)
{
	size_t count = 1;

	while (count < max && status_is_alike(first, &first[count]))
		count++;
	cli_line(stdout, "%s%s%s: %zu", status_outcome(first), *first->reason ? ", " : "",
		 first->reason, count);
	for (size_t i = 0; i < count && i < BOARDS_SHOWN; i++)
		printf("%s%s", i ? " " : "  ", first[i].board);
	puts(count > BOARDS_SHOWN ? " ..." : "");
	return count;
}

/* Without an order, a board's state stands for an outcome. */
static void status_take_states(struct board_statuses *all)
{
	for (size_t i = 0; i < all->count; i++) {
		memcpy(all->items[i].outcome, all->items[i].state, sizeof(all->items[i].outcome));
		all->items[i].reason[0] = '\0';
	}
}

static void status_print_through(const struct board_statuses *all)
{
	size_t final = 0, dead = 0, done;

	for (size_t i = 0; i < all->count; i++) {
		final += status_is_final(&all->items[i]);
		dead += !strcmp(all->items[i].state, "dead");
	}
	done = all->count ? final * BAR_WIDTH / all->count : 0;
	if (isatty(STDOUT_FILENO))
		printf("[%.*s%.*s] ", (int)done, "########################################",
		       (int)(BAR_WIDTH - done), "........................................");
	printf("%zu of %zu board%s %s through%s\n", final, all->count, plural_s(all->count),
	       plural(all->count, "is", "are"), dead ? "; the broker lost some" : "");
}

static void status_print(const struct board_statuses *all, uint64_t order)
{
	if (order)
		status_print_through(all);
	else
		printf("%zu board%s\n", all->count, plural_s(all->count));
	for (size_t i = 0; i < all->count;)
		i += status_print_some(&all->items[i], all->count - i);
}

static int status_put_json(const struct board_statuses *all, uint64_t order)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct document j = DOCUMENT_INIT(&text);

	document_open(&j, NULL, '{');
	if (order)
		document_uint(&j, "order", order);
	document_open(&j, "boards", '[');
	for (size_t i = 0; i < all->count; i++) {
		const struct board_status *s = &all->items[i];

		document_open(&j, NULL, '{');
		document_string(&j, "board", s->board);
		if (order)
			document_string(&j, "outcome", status_outcome(s));
		if (*s->reason)
			document_string(&j, "reason", s->reason);
		if (*s->state)
			document_string(&j, "state", s->state);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	document_close(&j, '}');
	return document_print(&j) < 0 ? CLI_FAILED : CLI_WHOLE;
}

/* Some have answered, and none is at work. Others may never get the order. */
static bool answers_are_over(const struct board_statuses *all)
{
	size_t final = 0, silent = 0;

	for (size_t i = 0; i < all->count; i++) {
		final += status_is_final(&all->items[i]);
		silent += !*all->items[i].outcome;
	}
	return final && final + silent == all->count;
}

/* Asks once, and shows the answer; on a terminal, it replaces the one before. */
static int answers_show(const struct options *o, struct fleet_store *store, bool *ret_is_over,
			struct error *err)
{
	_cleanup_board_statuses_ struct board_statuses all = { 0 };
	int r = o->broker ? broker_statuses(o->broker, o->fleet, store->order, o->duration_ns, &all,
					    err)
			  : status_ask_store(store, &all, err);

	if (r < 0)
		return r;
	if (!store->order)
		status_take_states(&all);
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), compare_statuses);
	*ret_is_over = answers_are_over(&all);
	if (o->watch && isatty(STDOUT_FILENO))
		fputs("\x1b[H\x1b[2J", stdout);
	fflush(stdout);
	if (all.refused)
		cli_warn("refused: %zu word%s that no board can say", all.refused,
			 plural_s(all.refused));
	if (o->broker && !all.count && !all.refused)
		cli_warn("the broker shows no board of the fleet %s: is that its name, and may "
			 "your certificate read traced/%s/all/status/+?",
			 o->fleet, o->fleet);
	if (all.is_cut)
		cli_warn("the broker did not say in time that it has sent all: boards may be "
			 "missing. Is -t too short, or may your certificate not write "
			 "traced/%s/all/end/+?",
			 o->fleet);
	if (o->json)
		r = status_put_json(&all, store->order);
	else
		status_print(&all, store->order);
	return all.refused || all.is_cut || (o->broker && !all.count) ? CLI_MISSING : r;
}

static int answers_watch(const struct options *o, struct fleet_store *store, struct error *err)
{
	bool is_over = false;
	int r;

	do {
		r = answers_show(o, store, &is_over, err);
		fflush(stdout);
		if (r >= 0 && !is_over)
			sleep(WATCH_S);
	} while (r >= 0 && !is_over);
	return r;
}

static int status_check(const struct options *o, struct error *err)
{
	if (o->arg_count > 2 || (o->arg_count < 2 && (!o->broker || o->watch))) {
		error_set(err, -EINVAL,
			  o->arg_count == 1 && !o->watch
				  ? "fleet status takes an order; for all boards it needs --broker"
				  : "fleet status takes an order");
		return error_hint(err, "tracectl fleet status 17 --fleet doors --broker "
				       "mqtts://broker.example:8884");
	}
	/* A store does not know which boards are missing. */
	if (o->watch && !o->broker)
		return error_set(err, -EINVAL, "--watch needs --broker");
	return 0;
}

int fleet_status(const struct options *o)
{
	_cleanup_fleet_store_ struct fleet_store store = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	bool unused;
	int r;

	if (status_check(o, &err) < 0 ||
	    fleet_store_init(&store, o, o->arg_count > 1 ? o->args[1] : NULL, &err) < 0)
		return cli_usage(&err);
	r = o->watch ? answers_watch(o, &store, &err) : answers_show(o, &store, &unused, &err);
	return r < 0 ? cli_fail(&err) : r;
}
