/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* many_cpus CPUS MILLIONS FILE [KIND]: a capture stream of that kind (make_many.h), or of numbers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "make_many.h"

#define SUBBUF 4096

int main(int argc, char **argv)
{
	bool enough = argc == 4 || argc == 5;
	unsigned cpus = enough ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	uint64_t events = cpus ? (uint64_t)(strtod(argv[2], NULL) * 1e6) : 0;
	const struct many_kind *kind = many_find(argc == 5 ? argv[4] : "numbers");
	struct maker m;
	int fd = events >= cpus && kind && cpus
			 ? open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
			 : -1;

	if (fd < 0) {
		fprintf(stderr,
			"Usage: %s CPUS MILLIONS FILE "
			"[numbers|sched|mixed|irqs|calls|functions|phases]\n",
			argv[0]);
		return 2;
	}
	maker_init_fd(&m, fd, 8, false, SUBBUF);
	many_put(&m, kind, cpus, events);
	maker_deinit(&m);
	return 0;
}
