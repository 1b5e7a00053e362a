/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Turns the input into a capture stream, if it can be. What is in a stream is other targets'
 * business; but it has to be one that a reader takes, from its first chunk to its END.
 */
void import_check(const uint8_t *data, size_t size);
