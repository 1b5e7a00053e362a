/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a session for clients. */
#include <string.h>

#include "base/io.h"
#include "daemon/service/session.h"

/* Copies a description by packing and unpacking: its strings and rows are borrowed. */
static Traced__Control__Session *describe_copy(const Traced__Control__Session *d)
{
	size_t len = traced__control__session__get_packed_size(d);
	_cleanup_free_ uint8_t *packed = malloc(len ? len : 1);

	if (!packed)
		return NULL;
	traced__control__session__pack(d, packed);
	return traced__control__session__unpack(NULL, len, packed);
}

static void describe_stats(Traced__Control__Session *d, const struct capture_stats *stats,
			   Traced__Control__Cpu *cpus, Traced__Control__Cpu **pointers)
{
	d->started_boot_ns = stats->start_boot_ns;
	d->elapsed_ns = stats->start_boot_ns ? now_ns(CLOCK_BOOTTIME) - stats->start_boot_ns : 0;
	d->events = stats->events;
	d->lost = stats->lost;
	d->cpu_time_ns = stats->cpu_ns;
	d->overwritten = stats->overwritten;
	d->bytes = stats->bytes;
	d->event_types = stats->event_types;
	if (stats->reader)
		d->reader = (char *)(uintptr_t)stats->reader;
	if (stats->instance)
		d->instance = (char *)(uintptr_t)stats->instance;
	for (size_t i = 0; i < stats->cpu_count; i++) {
		traced__control__cpu__init(&cpus[i]);
		cpus[i].cpu = stats->cpus[i].cpu;
		cpus[i].events = stats->cpus[i].events;
		cpus[i].lost = stats->cpus[i].lost;
		cpus[i].bytes = stats->cpus[i].bytes;
		cpus[i].offline = stats->cpus[i].offline;
		pointers[i] = &cpus[i];
	}
	d->cpus = pointers;
	d->n_cpus = stats->cpu_count;
}

static void describe_request(Traced__Control__Session *d, const struct session *s)
{
	d->name = s->name;
	d->uid = s->uid;
	d->duration_ns = s->duration_ns;
	d->at_threshold = s->at_threshold;
	d->in_client_file = s->spool.client_max > 0;
	d->command_exited = s->end_reason == CAPTURE_END_COMMAND_EXITED;
	d->stopped = !session_records(s) && s->end_reason == CAPTURE_END_STOPPED;
	d->buffer_bytes = s->buffer_bytes;
	d->ring = s->ring;
	d->for_conditions = s->for_conditions;
	d->what = s->what;
	if (s->place)
		d->place = s->place;
}

Traced__Control__Session *session_describe_capture(struct session *s)
{
	Traced__Control__Session d = TRACED__CONTROL__SESSION__INIT;
	_cleanup_free_ Traced__Control__Cpu **pointers = NULL;
	_cleanup_free_ Traced__Control__Cpu *cpus = NULL;
	_cleanup_free_ char **warnings = NULL;
	struct capture_stats stats = { 0 };

	capture_get_stats(s->capture, &stats);
	cpus = calloc(stats.cpu_count + 1, sizeof(*cpus));
	pointers = calloc(stats.cpu_count + 1, sizeof(Traced__Control__Cpu *));
	warnings = calloc(stats.warning_count + 2, sizeof(char *));
	if (!cpus || !pointers || !warnings)
		return NULL;
	describe_stats(&d, &stats, cpus, pointers);
	for (size_t i = 0; i < stats.warning_count; i++)
		warnings[d.n_warnings++] = (char *)(uintptr_t)stats.warnings[i];
	if (s->granted)
		warnings[d.n_warnings++] = s->granted;
	if (s->note)
		warnings[d.n_warnings++] = s->note;
	d.warnings = warnings;
	describe_request(&d, s);
	return describe_copy(&d);
}

static Traced__Control__Session *describe_arming(const struct session *s)
{
	Traced__Control__Session d = TRACED__CONTROL__SESSION__INIT;

	describe_request(&d, s);
	return describe_copy(&d);
}

Traced__Control__Session *session_describe(struct session *s)
{
	Traced__Control__Session *d;

	if (s->draining)
		session_remember(s);
	if (s->arming)
		d = describe_arming(s);
	else
		d = s->last ? describe_copy(s->last) : NULL;
	if (!d)
		return NULL;
	d->state =
		(Traced__Control__Session__State)(s->awaits_follower ? SESSION_ARMING : s->state);
	d->memory_bytes = s->capture ? s->memory_bytes : 0;
	d->export_cpu_ns = session_followers_cpu_ns(s);
	d->spool_bytes = s->spool.fd >= 0 ? spool_bytes(&s->spool) : 0;
	if (s->error) {
		char *error = strdup(s->error);

		if (error)
			d->error = error;
	}
	return d;
}
