/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An error for a person: message says what failed, hint what to do. A function that takes a pointer
 * to a struct error fills it if it returns a negative errno, and only then. A caller that only
 * needs the number passes NULL: the code is then kept per thread, and the texts are dropped.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

struct error {
	int code;      /* positive errno; 0: no error */
	char *message; /* a sentence without full stop, on one or more lines; owned */
	char *hint;    /* what the user can do; owned; or NULL */
	/* The hint lacks its last word, the output's name. Whoever shows the hint adds it. */
	bool hint_needs_output;
};

#define ERROR_INIT ((struct error){ 0 })

void error_deinit(struct error *err);
#define _cleanup_error_ _cleanup_(error_deinit)

/* Replaces the error. Returns code (a negative errno), for `return error_set(...)`. */
int error_set(struct error *err, int code, const char *fmt, ...) _printf_(3, 4);
/* Sets or replaces the hint, a complete one. Returns -err->code, or -EINVAL if no error was set:
 * never success. */
int error_hint(struct error *err, const char *fmt, ...) _printf_(2, 3);
/* Puts "text: " before the message. Returns like error_hint(). */
int error_prefix(struct error *err, const char *fmt, ...) _printf_(2, 3);
/* Like error_set(), and appends ": strerror(code)". */
int error_errno(struct error *err, int code, const char *fmt, ...) _printf_(3, 4);
/* Moves the error and leaves `from` empty. Returns like error_hint(). */
int error_move(struct error *to, struct error *from);
/*
 * As error_move(), but an error that `to` has already stays, and from's message is a further line
 * of it. A hint that is there stays.
 */
int error_add(struct error *to, struct error *from);
