/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced-multi: traced and tracectl in one file. The program's name says which of them it is, or
 * its first word does: `traced-multi tracectl status`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "cli.h"
#include "daemon/service/daemon.h"
#include "hosts/push.h"
#include "link.h"

static const struct program {
	const char *name;
	int (*run)(int argc, char **argv);
} programs[] = {
	{ "tracectl", tracectl_main },
	{ "traced", traced_main },
};

/* The name may have a folder and a prefix before it. */
static const struct program *program_find(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		size_t own = strlen(programs[i].name);

		if (len >= own && !strcmp(word + len - own, programs[i].name))
			return &programs[i];
	}
	return NULL;
}

/* The script of push.h leaves this file open. Programs that we start must not inherit it. */
static void close_pushed_file(void)
{
	struct stat self, open_file;

	if (stat("/proc/self/exe", &self) == 0 && fstat(PUSH_FD, &open_file) == 0 &&
	    self.st_dev == open_file.st_dev && self.st_ino == open_file.st_ino)
		close(PUSH_FD);
}

int main(int argc, char **argv)
{
	close_pushed_file();
	link_has_daemon = true;
	for (int i = 0; i < argc && i < 2; i++) {
		const struct program *program = program_find(argv[i]);

		if (!program)
			continue;
		/* The kernel has named us after a file, which may be "exe" or a number. */
		prctl(PR_SET_NAME, program->name);
		return program->run(argc - i, argv + i);
	}
	fprintf(stderr, "usage: traced-multi tracectl|traced [WORD...]\n");
	return CLI_USAGE;
}
