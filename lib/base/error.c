/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"

#include <stdarg.h>
#include <string.h>

/* The code of errors set on NULL. */
static _Thread_local int unread_code;

/* Returns an error code even if none was set. */
static int error_code(const struct error *err)
{
	int code = err ? err->code : unread_code;

	return code ? -code : -EINVAL;
}

void error_deinit(struct error *err)
{
	free(err->message);
	free(err->hint);
	*err = ERROR_INIT;
}

_printf_(1, 0) static char *error_format(const char *fmt, va_list ap)
{
	char *text;

	/* Out of memory: only the code remains. */
	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list ap;

	/* A positive errno, passed by mistake, must not count as success. */
	if (code > 0)
		code = -code;
	if (!err) {
		unread_code = -code;
		return code;
	}
	va_start(ap, fmt);
	/* Format first: the arguments may point into the old message. */
	struct error next = { .code = -code, .message = error_format(fmt, ap) };
	va_end(ap);
	error_deinit(err);
	*err = next;
	return code;
}

int error_errno(struct error *err, int code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = err ? error_format(fmt, ap) : NULL;
	va_end(ap);
	return error_set(err, code, "%s: %s", text ?: "?", strerror(abs(code)));
}

int error_hint(struct error *err, const char *fmt, ...)
{
	va_list ap;
	char *old;

	if (!err)
		return error_code(NULL);
	old = err->hint;
	va_start(ap, fmt);
	err->hint = error_format(fmt, ap);
	err->hint_needs_output = false;
	va_end(ap);
	free(old);
	return error_code(err);
}

int error_prefix(struct error *err, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	char *message;
	va_list ap;

	if (!err)
		return error_code(NULL);
	va_start(ap, fmt);
	text = error_format(fmt, ap);
	va_end(ap);
	if (asprintf(&message, "%s: %s", text ?: "?", err->message ?: strerror(err->code)) >= 0) {
		free(err->message);
		err->message = message;
	}
	return error_code(err);
}

int error_move(struct error *to, struct error *from)
{
	int r = error_code(from);

	if (to) {
		error_deinit(to);
		*to = *from;
		*from = ERROR_INIT;
	} else {
		unread_code = -r;
		error_deinit(from);
	}
	return r;
}

int error_add(struct error *to, struct error *from)
{
	char *message;

	if (!to || !to->code)
		return error_move(to, from);
	/* Two that fail alike need one line. */
	if (from->message && to->message && !strcmp(from->message, to->message)) {
		error_deinit(from);
		return error_code(to);
	}
	if (asprintf(&message, "%s\n%s", to->message ?: strerror(to->code),
		     from->message ?: strerror(from->code)) >= 0) {
		free(to->message);
		to->message = message;
	}
	if (!to->hint) {
		to->hint = TAKE_PTR(from->hint);
		to->hint_needs_output = from->hint_needs_output;
	}
	error_deinit(from);
	return error_code(to);
}
