/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <sys/random.h>

#include "cli.h"
#include "document.h"
#include "link.h"

/* 128 random bits in the form of a UUID. */
static int sync_make_id(char id[static 37])
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -EIO;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(id, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
	return 0;
}

static int sync_tell(const struct options *o, const char *id, const Traced__Control__Synced *synced)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct document j = DOCUMENT_INIT(&text);

	if (!o->json) {
		if (!o->id)
			puts(id);
		return CLI_WHOLE;
	}
	document_open(&j, NULL, '{');
	document_string(&j, "sync_id", id);
	document_uint(&j, "sessions", synced->count);
	document_uint(&j, "before_boottime_ns", synced->before_ns);
	document_uint(&j, "after_boottime_ns", synced->after_ns);
	document_close(&j, '}');
	return document_print(&j) < 0 ? CLI_FAILED : CLI_WHOLE;
}

static int sync_run(const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Sync sync = TRACED__CONTROL__SYNC__INIT;
	char made[37];

	if (!o->id && sync_make_id(made) < 0) {
		error_set(&err, -EIO, "cannot make a random id: give one with --id");
		return cli_fail(&err);
	}
	sync.id = o->id ? (char *)o->id : made;
	if (o->name)
		sync.session = (char *)o->name;
	if (link_open(&link, o, LINK_LISTENING, &err) < 0)
		return cli_fail(&err);
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_SYNC;
	request.sync = &sync;
	if (link_call(&link, &request, NULL, 0, &reply, &err) < 0)
		return cli_fail(&err);
	if (reply->body_case != TRACED__CONTROL__REPLY__BODY_SYNCED) {
		error_set(&err, -EPROTO, "unexpected reply from traced");
		return cli_fail(&err);
	}
	return sync_tell(o, sync.id, reply->synced);
}

static const struct option_text sync_texts[] = {
	{ OPT_NAME, "only this session" },
	{ OPT_ID, "id of the mark; without it, one is made" },
	{ 0 },
};

const struct command command_sync = {
	.name = "sync",
	.synopsis = "[--id ID] [--name SESSION] [--json]",
	.summary = "tie another clock to every running session",
	.text = "Puts the mark 'trace_event_clock_sync: name=ID' among the kernel's events, "
		"between\n"
		"two readings of the clock that the recording keeps. A controller that notes "
		"when,\n"
		"by its own clock, it asked for it and when it was done, has its events merged at\n"
		"their places: tracectl convert --merge. Each ID is taken once in a recording; "
		"without\n"
		"--id one is made and printed. --json prints the two readings, too.",
	.texts = sync_texts,
	.options = OPTION_SET(OPTION(ID), OPTION(NAME), OPTION(JSON)),
	.own = OPTION_SET(OPTION(ID)),
	.run = sync_run,
};
