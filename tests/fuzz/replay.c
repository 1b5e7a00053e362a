/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target over all files of a folder. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "fuzz.h"

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *e;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((e = readdir(dir))) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		if (e->d_name[0] == '.')
			continue;
		if (read_file_at(dirfd(dir), e->d_name, 64 << 20, &b) < 0) {
			fprintf(stderr, "can't read %s\n", e->d_name);
			return 1;
		}
		LLVMFuzzerTestOneInput((uint8_t *)b.data, b.len);
		count++;
	}
	closedir(dir);
	printf("%d inputs\n", count);
	return count ? 0 : 1;
}
