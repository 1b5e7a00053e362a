/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The input as a file in memory, at its start. It is one file, whose content is replaced, as to
 * make one and its pages anew each time takes longer than most parsers do: borrowed, until the next
 * call. Whoever can't have one ends.
 */
int input_file(const uint8_t *data, size_t size);
