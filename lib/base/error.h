/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An error that will reach a person: what failed and on what (message), and
 * what to do about it (hint). Functions that take a struct error * fill it
 * exactly when they return a negative errno. NULL is accepted everywhere and
 * means that the caller needs the number only: it stands for an error of the thread's own,
 * of which the code is kept and nothing else.
 */
#pragma once

#include "base/cleanup.h"

struct error {
	int code;      /* positive errno; 0: no error */
	char *message; /* one sentence without a full stop; may have several lines; owned */
	char *hint;    /* what the reader can do, or NULL; owned */
};

#define ERROR_INIT ((struct error){ 0 })

void error_deinit(struct error *err);
#define _cleanup_error_ _cleanup_(error_deinit)

/* Replaces what err held. Returns code (negative errno), so that `return error_set(...)` works. */
int error_set(struct error *err, int code, const char *fmt, ...) _printf_(3, 4);
/* Sets or replaces the hint. Returns -err->code, or -EINVAL where none was set: never success. */
int error_hint(struct error *err, const char *fmt, ...) _printf_(2, 3);
/* Puts "text: " before the message. Returns as error_hint. */
int error_prefix(struct error *err, const char *fmt, ...) _printf_(2, 3);
/* As error_set, with ": strerror(code)" appended. */
int error_errno(struct error *err, int code, const char *fmt, ...) _printf_(3, 4);
/* Moves from into to; from is empty after it. Returns as error_hint. */
int error_move(struct error *to, struct error *from);
