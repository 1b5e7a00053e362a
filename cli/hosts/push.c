/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "push.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/io.h"
#include "hosts/host.h"

#define FOLDER TRACED_DATADIR "/traced/push"
#define PROGRAM "traced-multi"
#define ASKED "@push "
#define GOT "@got "
#define GOT_ALL GOT "all"
#define MACHINE_MAX 32
#define PIECE (64U << 10)
/* Fewer bytes in PUSH_SILENCE_S are no progress. */
#define STEP (16U << 10)

/*
 * One line, as some login shells want it. A file of ":" tells whether programs can run there. What
 * came too short is not run. The reports of what has come hold no descriptor of the program.
 */
const char push_script[] =
	"no() { rm -rf \"$d\"; echo \"$1\" >&2; exit 1; }; "
	"d=; ok=; trap \"no interrupted\" HUP INT TERM; u=$(umask); umask 077; "
	"for t in \"${TMPDIR:-/tmp}\" /data/local/tmp /var/tmp /dev/shm; do "
	"d=$(mktemp -d \"$t/tracectl.XXXXXX\" 2>/dev/null) || continue; "
	"f=$d/tracectl; echo : >\"$f\" && chmod 700 \"$f\" && \"$f\" 2>/dev/null && "
	"exec 3<\"$f\" && ok=1; "
	"rm -rf \"$d\"; [ \"$ok\" ] && break; done; "
	"trap - HUP INT TERM; umask \"$u\"; "
	"[ \"$ok\" ] || no \"no folder for a temporary program: set TMPDIR there\"; "
	"echo \"@push $(uname -m)\" >&2; read -r n || exit 1; "
	"while sleep 1 2>/dev/null 3<&-; do echo \"@got $(wc -c </proc/self/fd/3)\" >&2 || exit; "
	"done >/dev/null & p=$!; "
	"head -c \"$n\" >/proc/self/fd/3; { kill $p; wait $p; } 2>/dev/null; "
	"[ $(wc -c <&3) -eq \"$n\" ] || no \"the program came in part\"; "
	"echo \"@got all\" >&2; exec /proc/self/fd/3 \"$@\"";

/* Kernels' names of machines, and ours of the programs for them. */
static const struct machine {
	const char *name, *program;
	unsigned elf;
} machines[] = {
	{ "aarch64", "arm64", EM_AARCH64 }, { "armv7l", "armhf", EM_ARM },
	{ "armv8l", "armhf", EM_ARM },	    { "x86_64", "amd64", EM_X86_64 },
	{ "s390x", "s390x", EM_S390 },
};

static const struct machine *machine_find(const char *name, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strcmp(machines[i].name, name))
			return &machines[i];
	error_set(err, -ENOENT, "there is no program for its machine, %.*s", MACHINE_MAX, name);
	error_hint(err, "install traced there: a build with -Dstatic=true needs no library");
	return NULL;
}

/* Whether it is a program for the machine. */
static bool program_fits(int fd, const struct machine *m)
{
	Elf32_Ehdr header; /* begins as the one of 64 bits does */
	unsigned machine;

	if (pread_full(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	machine = header.e_ident[EI_DATA] == ELFDATA2MSB ? be16toh(header.e_machine)
							 : le16toh(header.e_machine);
	return machine == m->elf;
}

static int program_open(const char *from, const struct machine *m, off_t *ret_size,
			struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (from && stat(from, &st) < 0)
		return error_errno(err, -errno, "%s", from);
	if (from && !S_ISDIR(st.st_mode))
		path = strdup(from);
	else if (asprintf(&path, "%s/%s/" PROGRAM, from ?: FOLDER, m->program) < 0)
		path = NULL;
	if (!path)
		return error_errno(err, -ENOMEM, "--push");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		error_errno(err, -errno, "no program for its machine, %s: %s", m->name, path);
		return error_hint(err,
				  "'scripts/cross %s' makes build-push/%s/" PROGRAM
				  ": copy build-push/* into " FOLDER ", or use --push=build-push",
				  m->program, m->program);
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !program_fits(fd, m))
		return error_set(err, -ENOEXEC, "%s is no program for its machine, %s", path,
				 m->name);
	*ret_size = st.st_size;
	return TAKE_FD(fd);
}

void push_renew(struct push *p)
{
	p->limit_ns = now_ns(CLOCK_MONOTONIC) + PUSH_SILENCE_S * NSEC_PER_SEC;
}

/* Returns whether it is a report of what has come. Less than a step gives no more time. */
static bool push_take_report(struct push *p, const char *line)
{
	uint64_t got;

	if (!strcmp(line, GOT_ALL)) {
		p->wanted = false;
		push_renew(p);
		return true;
	}
	if (sscanf(line, GOT "%" SCNu64, &got) != 1)
		return false;
	if (got <= p->size && got >= p->got + STEP) {
		p->got = got;
		push_renew(p);
	}
	return true;
}

int push_take_line(struct push *p, const char *line, int to, struct error *err)
{
	const struct machine *m;
	char header[32];
	off_t size = 0;
	int r;

	if (p->wanted && p->size)
		return push_take_report(p, line);
	if (!p->wanted || strncmp(line, ASKED, strlen(ASKED)) != 0)
		return 0;
	m = machine_find(line + strlen(ASKED), err);
	if (!m)
		return -ENOENT;
	p->fd = program_open(p->from, m, &size, err);
	if (p->fd < 0)
		return p->fd;
	p->size = (uint64_t)size;
	push_renew(p);
	snprintf(header, sizeof(header), "%" PRIu64 "\n", p->size);
	r = write_full(to, header, strlen(header));
	/* push_go_on() notices a broken pipe, too. */
	return r < 0 && r != -EPIPE ? error_errno(err, r, "can't send the program") : 1;
}

int push_go_on(struct push *p, int to, struct error *err)
{
	ssize_t n = sendfile(to, p->fd, NULL, PIECE);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno != EPIPE)
		return error_errno(err, -errno, "can't send the program");
	push_renew(p);
	/* A host that takes no more says why, by its messages or its exit status. */
	p->sent += n > 0 ? (uint64_t)n : 0;
	if (n <= 0 || p->sent >= p->size)
		push_deinit(p);
	return 0;
}

void push_deinit(struct push *p)
{
	p->fd = close_fd(p->fd);
}

const char *push_explain(const char *spec, int status, bool pushed)
{
	/* The shell of exec: ends with the same status if the way there is missing. */
	const bool is_exec = host_is_exec(spec);

	if (status == 127 && !pushed)
		return is_exec ? "it did not start: is tracectl in its PATH? Or send it: --push. "
				 "If "
				 "the program after exec: was not found, correct that"
			       : "it did not start: is tracectl in its PATH? Or send it: --push";
	if (status == 127)
		return is_exec ? "the pushed program did not start: it needs a shell, mktemp, head "
				 "and /proc there, and the program after exec: here"
			       : "the pushed program did not start: it needs a shell, mktemp, head "
				 "and /proc there";
	return status == 126 && pushed ? "the pushed program could not be run there" : NULL;
}
