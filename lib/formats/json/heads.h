/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the JSON's parts begin with: by that they are known in what is left of a cut file. */
#pragma once

/* The first event, whose process Trace Viewer puts the interrupts of all CPUs into. */
#define JSON_FIRST_EVENT                                                                           \
	"\n{\"name\":\"process_name\",\"ph\":\"M\",\"cat\":\"__metadata\",\"pid\":0,\"tid\":0,"    \
	"\"args\":{\"name\":\"kernel (idle, irqs)\"}}"
/* What an object begins with, and what is between the events and a text behind them. */
#define JSON_TEXT_HEAD "{\"systemTraceEvents\":\""
#define JSON_EVENTS_HEAD "{\"traceEvents\":[" JSON_FIRST_EVENT
#define JSON_TEXT_BEHIND "],\n\"systemTraceEvents\":\""
