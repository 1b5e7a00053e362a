/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to sink.c and event.c: the state of the sink. */
#pragma once

#include "export/render.h"
#include "export/segment.h"
#include "formats/json/atrace.h"
#include "formats/json/functions.h"
#include "formats/json/tail.h"
#include "formats/json/writer.h"

struct sink_json {
	struct sink sink;
	const struct trace_info *info;
	bool followed; /* as in sink_env */
	struct output *out;
	bool tgid;
	struct render *render;
	const struct event *print;
	bool elements_first; /* elements are written directly and lines spooled; else the reverse */
	struct json_spool *spool;  /* the part that is written after the other */
	struct json_writer *aside; /* writer for the spooled part */
	struct json_functions *functions;
	struct json_atrace *atrace;
	enum function_view function_view;
	uint64_t units; /* length of lines or elements in the file; bytes, in a page UTF-16 units */
	uint64_t room;	/* most of that, and of the spool */
	uint64_t from;	/* where the file begins in the output before compression */
	struct segment *segment; /* to be filled when the room is used; NULL: that is an error */
	uint64_t last_ts;	 /* times of lines must not go back */
	uint64_t string_max;
	uint64_t events, events_max; /* in the file; 0: any number */
	bool events_ended;
	struct json_tail tail;
	bool array; /* only the elements, which then come first */
	bool page;  /* HTML */
};

static inline struct sink_json *to_json(struct sink *s)
{
	return container_of(s, struct sink_json, sink);
}

/* Threads that render lines, or elements. */
extern const struct render_ops json_text_render_ops, json_element_render_ops;
/* A function_emit_t for json_functions; userdata is the sink. */
int json_put_element(void *userdata, const struct function_element *e, const void *more,
		     struct error *err);
/*
 * If the file is longer than a viewer can open, whatever part is long: asks for another file, or
 * returns -EOVERFLOW.
 */
int json_check_room(struct sink_json *s, struct error *err);
int json_event(struct sink *sink, const struct trace_event *ev, struct error *err);
int json_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
	      uint64_t count, struct error *err);
