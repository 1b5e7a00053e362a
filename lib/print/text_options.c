/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/text_options.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	unsigned bit;
} graph_options[] = {
	{ "funcgraph-overrun", GRAPH_OVERRUN },	  { "funcgraph-cpu", GRAPH_CPU },
	{ "funcgraph-overhead", GRAPH_OVERHEAD }, { "funcgraph-proc", GRAPH_PROC },
	{ "funcgraph-duration", GRAPH_DURATION }, { "funcgraph-abstime", GRAPH_ABSTIME },
	{ "funcgraph-irqs", GRAPH_IRQS },	  { "funcgraph-tail", GRAPH_TAIL },
	{ "funcgraph-retval", GRAPH_RETVAL },	  { "funcgraph-retval-hex", GRAPH_RETVAL_HEX },
	{ "funcgraph-retaddr", GRAPH_RETADDR },	  { "funcgraph-args", GRAPH_ARGS },
};

static bool text_option_is(const char *word, size_t len, const char *name)
{
	return len == strlen(name) && !memcmp(word, name, len);
}

static void text_option_set(struct text_options *o, const char *word, size_t len, bool on)
{
	if (text_option_is(word, len, "context-info"))
		o->no_context = !on;
	else if (text_option_is(word, len, "irq-info"))
		o->no_irq_info = !on;
	else if (text_option_is(word, len, "print-parent"))
		o->no_parent = !on;
	else if (text_option_is(word, len, "sleep-time"))
		o->no_sleep_time = !on;
	else if (text_option_is(word, len, "sym-offset"))
		o->sym_offset = on;
	else if (text_option_is(word, len, "sym-addr"))
		o->sym_addr = on;
	else if (text_option_is(word, len, "sym-userobj"))
		o->sym_userobj = on;
	for (size_t i = 0; i < ARRAY_SIZE(graph_options); i++)
		if (text_option_is(word, len, graph_options[i].name))
			o->graph = on ? o->graph | graph_options[i].bit
				      : o->graph & ~graph_options[i].bit;
}

void text_options_parse(struct text_options *ret, const char *text)
{
	*ret = (struct text_options){ .graph = GRAPH_DEFAULT };
	while (*text) {
		size_t len = strcspn(text, " \n");

		/* No option's own name begins with "no". */
		if (len > 2 && !memcmp(text, "no", 2))
			text_option_set(ret, text + 2, len - 2, false);
		else
			text_option_set(ret, text, len, true);
		text += len;
		text += strspn(text, " \n");
	}
}
