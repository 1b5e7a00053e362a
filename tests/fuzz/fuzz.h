/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Returns the input as a file in memory, at its start. There is one file, whose content is
 * replaced: creating one each time would take longer than most parsers do. Borrowed, until the next
 * call. Exits if there can be none.
 */
int input_file(const uint8_t *data, size_t size);
