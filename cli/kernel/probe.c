/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "symbols/function_place.h"

/* Leaves room for "__return" within the daemon's limit. */
#define NAME_LEN_MAX 36

/* Positions of the parts of "TYPE[:NAME] /PATH:FUNCTION[+OFFSET] ARGUMENTS". */
struct parts {
	const char *place; /* position of '/' */
	const char *function;
	const char *end; /* end of the function's name */
};

/* False if there is an offset already, or the syntax is wrong: the daemon reports errors. */
static bool probe_find_function(struct parts *p, const char *definition)
{
	const char *space, *colon;

	p->place = definition + strspn(definition, " ");
	if (*p->place != '/') {
		p->place += strcspn(p->place, " ");
		p->place += strspn(p->place, " ");
	}
	if (*p->place != '/')
		return false;
	space = p->place + strcspn(p->place, " ");
	colon = memrchr(p->place, ':', (size_t)(space - p->place));
	if (!colon || isdigit((unsigned char)colon[1]))
		return false;
	p->function = colon + 1;
	p->end = p->function + strcspn(p->function, " +%(");
	return p->end > p->function;
}

/* "p /PATH:FUNCTION" and "/PATH:FUNCTION" lack a name: add one. */
static void probe_put_head(struct buf *out, const char *definition, const struct parts *p)
{
	const char *type = definition + strspn(definition, " ");
	size_t len = strcspn(type, " :"), i = 0;

	if (type == p->place)
		type = "p", len = 1;
	else if (type[len] == ':') {
		buf_append(out, type, (size_t)(p->place - type));
		return;
	}
	buf_append(out, type, len);
	buf_puts(out, isdigit((unsigned char)*p->function) ? ":_" : ":");
	for (; p->function + i < p->end && i < NAME_LEN_MAX; i++)
		buf_putc(out, isalnum((unsigned char)p->function[i]) ? p->function[i] : '_');
	buf_puts(out, *type == 'r' ? "__return " : " ");
}

int probe_definition(char **ret, const struct probe_option *probe, struct error *err)
{
	_cleanup_free_ char *path = NULL, *function = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint64_t more = 0;
	struct parts p;
	uint64_t offset;
	int r;

	if (!probe_kinds[probe->kind].user || !probe_find_function(&p, probe->definition)) {
		*ret = strdup(probe->definition);
		return *ret ? 0 : error_errno(err, -ENOMEM, "the probes");
	}
	path = strndup(p.place, (size_t)(p.function - 1 - p.place));
	function = strndup(p.function, (size_t)(p.end - p.function));
	if (!path || !function)
		return error_errno(err, -ENOMEM, "the probes");
	r = function_place_find(path, function, &offset, err);
	if (r < 0)
		return error_prefix(err, "the probe '%.200s'", probe->definition);
	if (*p.end == '+')
		more = strtoull(p.end + 1, (char **)&p.end, 0);
	probe_put_head(&out, probe->definition, &p);
	buf_printf(&out, "%s:0x%" PRIx64 "%s", path, offset + more, p.end);
	if (!buf_string(&out))
		return error_errno(err, -ENOMEM, "the probes");
	*ret = TAKE_PTR(out.data);
	return 0;
}
