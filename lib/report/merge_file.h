/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file of a merge: its JSON, piece by piece. All return 0 or -errno unless they say more. */
#pragma once

#include "marks/json_value.h"
#include "report/merge_form.h"

struct merge_file {
	struct json_read json;
	struct report_merge *m;
	const char *name; /* for notes; safe to show */
	int fd;
	uint64_t left; /* bytes that may be read */
	bool has_format, has_version, has_reports;
	bool has_rows;	      /* a report of it is merged */
	uint64_t cut, open;   /* totals of the report that is read; 0: none */
	struct buf left_out;  /* names of reports that can't be */
	struct error refused; /* why not the first of these */
};

int merge_file_init(struct merge_file *f, struct report_merge *m, int fd, const char *name);
void merge_file_deinit(struct merge_file *f);

/* -EBADMSG, with the place in the file. */
int merge_bad(const struct merge_file *f, const char *what, struct error *err);
/* The next token must be that one. */
int merge_expect(struct merge_file *f, int token, const char *what, struct error *err);
/* 1: a key, in json.text. 0: the object ends. */
int merge_next_key(struct merge_file *f, struct error *err);
/* Whether that is the key, or the string, that was read last. */
bool merge_key_is(const struct merge_file *f, const char *key);
/* Skips a value. */
int merge_skip(struct merge_file *f, struct error *err);
/* The number that was read last. UINT64_MAX stands for an unknown value: it is refused. */
int merge_take_u64(struct merge_file *f, uint64_t *ret, struct error *err);
/* The next token has to be a number. */
int merge_read_u64(struct merge_file *f, uint64_t *ret, struct error *err);
int merge_read_i64(struct merge_file *f, int64_t *ret, struct error *err);

/* Reads the rows of a report, and adds them to the table. */
int merge_read_rows(struct merge_file *f, struct merged_table *t, struct error *err);
