/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Beginnings of the JSON's parts; json_mend() finds the parts of a truncated file by them. */
#pragma once

#include <sys/types.h>

/* The first event. Trace Viewer puts the interrupts of all CPUs into its process. */
#define JSON_FIRST_EVENT                                                                           \
	"\n{\"name\":\"process_name\",\"ph\":\"M\",\"cat\":\"__metadata\",\"pid\":0,\"tid\":0,"    \
	"\"args\":{\"name\":\"kernel (idle, irqs)\"}}"
/* Begin of the object, and the text between events and a following text. */
#define JSON_TEXT_HEAD "{\"systemTraceEvents\":\""
#define JSON_EVENTS_HEAD "{\"traceEvents\":[" JSON_FIRST_EVENT
#define JSON_TEXT_BEHIND "],\n\"systemTraceEvents\":\""

/* See export/mend.h. */
int json_mend(int fd, off_t size);
