/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes of --sql what the daemon expects: the pieces of two histograms and an event. */
#pragma once

#include "cli.h"
#include "proto/control.pb-c.h"
#include "sql_parse.h"

struct sql_request {
	Traced__Control__Sql *items; /* owned, like the rest */
	Traced__Control__Sql **list;
	Traced__Control__SqlSide *sides; /* two for each item */
	size_t count;
	char **texts; /* the messages' strings, but not options' */
	size_t text_count;
	char *hist; /* of hist --sql, as in --hist; among the texts; NULL: none */
};

/* Asks the daemon, or the kernel, for the formats of the events in the SQL. */
int sql_request_fill(struct sql_request *ret, const struct options *o, struct error *err);
void sql_request_deinit(struct sql_request *s);

/*
 * In sql_hist.c. Append the histogram of hist --sql, as in --hist: of the event that an SQL makes,
 * or of one event, with libtracefs's fields "keys=a.log2,b:vals=c".
 */
int sql_hist_of_sql(const struct options *o, const Traced__Control__Sql *sql, struct buf *out,
		    struct error *err);
int sql_hist_of_event(const struct options *o, const char *event, const char *fields, size_t len,
		      const char *filter, struct buf *out, struct error *err);
/* -EINVAL: SQL of two events has a CAST. */
int sql_check_casts(const char *name, const char *sql, struct error *err);

/* In sql_check.c. Replaces line breaks and tabs by blanks, so that errors keep their places. */
int sql_check_text(char *sql, const char *name, struct error *err);
int sql_check_option_name(const char *name, struct error *err);
bool sql_is_word_char(char c);
bool sql_is_word(const char *text, size_t len, const char *word);
/* The end of a text that begins with this quote; in single quotes, two of them are one. NULL: none.
 */
const char *sql_quote_end(const char *quote);
/* How SQL calls an event: "EVENT AS NAME", "EVENT NAME" or "EVENT", behind FROM or JOIN. */
const char *sql_event_name(const char *at, size_t *ret_len);
/* The first selected field that is wrong, of SQL that is checked, and why; NULL: there is none. */
const char *sql_find_unknown(const char *sql, const struct sql_format *formats, size_t count,
			     const char **ret_why);
#define SQL_NO_FIELD "there is no such field"

/* In sql_translate.c. */
struct sql_translation {
	struct buf sql;
	struct buf places; /* of each byte, where in the typed SQL it comes from: uint16_t */
};
void sql_translation_deinit(struct sql_translation *t);
/* Of SQL that is checked. */
int sql_translate(const char *sql, struct sql_translation *t);
/* The place in the typed SQL of a byte of the translation, or of its end. */
size_t sql_translation_place(const struct sql_translation *t, size_t at);
/* Appends what libtracefs made of a translation. */
void sql_put_numbers_back(const char *text, struct buf *out);

/*
 * In sql_formats.c. The formats of events that do not exist yet, but that later SQL of the same
 * recording may name. NULL: out of memory.
 */
char *sql_format_of_probe(const char *definition, char **ret_name);
char *sql_format_of_fields(const char *name, const char *fields);
/* The system under which libtracefs finds them. */
#define SQL_OWN_SYSTEM "own"
