/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/vec.h"
#include "child.h"

/* A larger file is no list of hosts. */
#define HOSTS_FILE_MAX (64U << 10)
#define EXEC "exec:"
#define ADB "adb:"

void host_list_deinit(struct host_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->items[i].spec);
		free(l->items[i].label);
	}
	l->count = 0;
}

static bool spec_is(const char *spec, const char *kind)
{
	return strncmp(spec, kind, strlen(kind)) == 0;
}

bool host_is_exec(const char *spec)
{
	return spec_is(spec, EXEC);
}

/* Without a command, exec: would run the words on this machine. */
static bool spec_is_empty(const char *spec)
{
	size_t kind = spec_is(spec, EXEC) ? strlen(EXEC) : spec_is(spec, ADB) ? strlen(ADB) : 0;

	return !spec[kind + strspn(spec + kind, " \t\n\v\f\r")];
}

static bool label_is_valid(const char *label)
{
	size_t len = strlen(label);

	return len && len <= HOST_LABEL_MAX && *label != '.' && *label != '-' &&
	       strspn(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}

/* The host's name without user and port; "hostN" where that is no label. */
static char *label_of_spec(const char *spec, size_t number)
{
	const char *at = strchr(spec, '@');
	const char *name = spec_is(spec, ADB) ? spec + strlen(ADB) : at ? at + 1 : spec;
	char *label = strndup(name, spec_is(spec, ADB) ? strlen(name) : strcspn(name, ":"));

	if (label && !label_is_valid(label)) {
		free(label);
		if (asprintf(&label, "host%zu", number) < 0)
			label = NULL;
	}
	return label;
}

static struct host_name *host_find(struct host_list *l, const char *spec)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->items[i].spec, spec))
			return &l->items[i];
	return NULL;
}

static int host_add(struct host_list *l, const char *spec, const char *label, struct error *err)
{
	struct host_name *h = label ? host_find(l, spec) : NULL;

	if (label && !label_is_valid(label)) {
		error_set(err, -EINVAL, "'%s' can't name a host", label);
		return error_hint(err, "letters, digits, '.', '_' and '-', at most %d",
				  HOST_LABEL_MAX);
	}
	/* ssh would take it for an option. */
	if (spec_is_empty(spec) || *spec == '-')
		return error_set(err, -EINVAL, "'%s' is not a host", spec);
	if (!h && l->count == HOSTS_MAX)
		return error_set(err, -EINVAL, "more than %d hosts", HOSTS_MAX);
	if (!h) {
		h = &l->items[l->count++];
		*h = (struct host_name){ strdup(spec), NULL };
	}
	if (label && h->label && strcmp(h->label, label)) {
		error_set(err, -EINVAL, "%s is called %s and %s", spec, h->label, label);
		return error_hint(err, "name each host once");
	}
	if (label && !h->label)
		h->label = strdup(label);
	return h->spec && (!label || h->label) ? 0 : error_errno(err, -ENOMEM, "%s", spec);
}

/* NAME=HOST. Of a command without a name '=' is a part, as in exec:env A=b. */
static int host_add_line(struct host_list *l, const char *line, bool named, struct error *err)
{
	size_t len = strcspn(line, "=");
	_cleanup_free_ char *label = strndup(line, len);

	if (!label)
		return error_errno(err, -ENOMEM, "%s", line);
	if (line[len] && (named || label_is_valid(label) || !spec_is(line, EXEC)))
		return host_add(l, line + len + 1, label, err);
	if (!named)
		return host_add(l, line, NULL, err);
	error_set(err, -EINVAL, "'%s' is not NAME=HOST", line);
	return error_hint(err, "--label pump=root@10.0.0.5");
}

static int host_add_file(struct host_list *l, const char *path, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned number = 0;
	char *rest, *line;
	int r = read_file_at(AT_FDCWD, path, HOSTS_FILE_MAX, &text);

	if (r < 0)
		return error_errno(err, r, "%s", path);
	rest = buf_string(&text);
	if (!rest)
		return error_errno(err, -ENOMEM, "%s", path);
	if (strlen(rest) < text.len)
		return error_set(err, -EINVAL, "%s is no text: it has a NUL", path);
	for (r = 0; r == 0 && (line = strsep(&rest, "\n"));) {
		number++;
		while (isspace((unsigned char)*line))
			line++;
		for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]); n--)
			line[n - 1] = '\0';
		if (*line && *line != '#')
			r = host_add_line(l, line, false, err);
	}
	return r < 0 ? error_prefix(err, "%s:%u", path, number) : 0;
}

static int host_list_name_all(struct host_list *l, struct error *err)
{
	for (size_t i = 0; i < l->count; i++) {
		struct host_name *h = &l->items[i];

		if (!h->label && !(h->label = label_of_spec(h->spec, i + 1)))
			return error_errno(err, -ENOMEM, "%s", h->spec);
		for (size_t k = 0; k < i; k++) {
			if (strcmp(l->items[k].label, h->label))
				continue;
			error_set(err, -EINVAL, "two hosts are called %s", h->label);
			return error_hint(err, "name them: --label left=%s", h->spec);
		}
	}
	return 0;
}

int host_list_init(struct host_list *ret, const struct options *o, struct error *err)
{
	int r = 0;

	*ret = (struct host_list){ .count = 0 };
	for (size_t i = 0; r == 0 && i < o->hosts.count; i++)
		r = host_add(ret, o->hosts.items[i], NULL, err);
	for (size_t i = 0; r == 0 && i < o->host_files.count; i++)
		r = host_add_file(ret, o->host_files.items[i], err);
	for (size_t i = 0; r == 0 && i < o->labels.count; i++)
		r = host_add_line(ret, o->labels.items[i], true, err);
	if (r == 0 && !ret->count)
		return error_set(err, -EINVAL, "no host is named");
	return r < 0 ? r : host_list_name_all(ret, err);
}

/* One line for the far side's shell. */
static char *quote_words(char *const *argv)
{
	_cleanup_buf_ struct buf line = BUF_INIT;
	char *text;

	for (; *argv; argv++) {
		buf_puts(&line, line.len ? " '" : "'");
		for (const char *c = *argv; *c; c++) {
			if (*c == '\'')
				buf_puts(&line, "'\\''");
			else
				buf_putc(&line, *c);
		}
		buf_putc(&line, '\'');
	}
	text = buf_string(&line);
	return text ? strdup(text) : NULL;
}

struct words {
	const char **items; /* owned; NULL-terminated */
	size_t count, cap;
	char *owned[3];
};

static void words_deinit(struct words *w)
{
	free(w->items);
	for (size_t i = 0; i < ARRAY_SIZE(w->owned); i++)
		free(w->owned[i]);
}

/* ssh's words: [user@]host[:port], also [address]:port. */
static int words_of_ssh(struct words *w, const char *spec, char *const *argv)
{
	static const char *const ssh[] = { "ssh",
					   "-T",
					   "-C",
					   "-oConnectTimeout=15",
					   "-oServerAliveInterval=5",
					   "-oServerAliveCountMax=3" };
	const char *close = strchr(spec, ']');
	const char *colon = strrchr(close ?: spec, ':');
	char *host;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ssh); i++)
		r = vec_push(w->items, w->count, w->cap, ssh[i]);
	w->owned[0] = host = strndup(spec, colon ? (size_t)(colon - spec) : strlen(spec));
	w->owned[1] = quote_words(argv);
	if (!host || !w->owned[1])
		return -ENOMEM;
	/* ssh wants an address without brackets. */
	if (close && strchr(host, '[')) {
		char *open = strchr(host, '[');

		memmove(open, open + 1, strlen(open));
		open[strcspn(open, "]")] = '\0';
	}
	if (colon && asprintf(&w->owned[2], "-p%s", colon + 1) < 0)
		return -ENOMEM;
	if (colon)
		r = vec_push(w->items, w->count, w->cap, w->owned[2]);
	r = r ?: vec_push(w->items, w->count, w->cap, "--");
	r = r ?: vec_push(w->items, w->count, w->cap, host);
	return r ?: vec_push(w->items, w->count, w->cap, w->owned[1]);
}

static int words_of(struct words *w, const char *spec, char *const *argv)
{
	int r = 0;

	if (spec_is(spec, EXEC)) {
		const char *const shell[] = { "/bin/sh", "-c", NULL, "sh" };

		if (asprintf(&w->owned[0], "%s \"$@\"", spec + strlen(EXEC)) < 0)
			return -ENOMEM;
		for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shell); i++)
			r = vec_push(w->items, w->count, w->cap, shell[i] ?: w->owned[0]);
		for (; r == 0 && *argv; argv++)
			r = vec_push(w->items, w->count, w->cap, *argv);
	} else if (spec_is(spec, ADB)) {
		w->owned[0] = quote_words(argv);
		const char *const adb[] = { "adb",   "-s", spec + strlen(ADB),
					    "shell", "-T", w->owned[0] };

		if (!w->owned[0])
			return -ENOMEM;
		for (size_t i = 0; r == 0 && i < ARRAY_SIZE(adb); i++)
			r = vec_push(w->items, w->count, w->cap, adb[i]);
	} else {
		r = words_of_ssh(w, spec, argv);
	}
	return r ?: vec_push(w->items, w->count, w->cap, NULL);
}

_Noreturn static void host_main(const struct words *w, const int pipes[3])
{
	child_reset_signals();
	for (int fd = 0; fd < 3; fd++)
		dup2(pipes[fd], fd);
	/* Ctrl-C ends a recording by an order, and another command by the end of its pipes. */
	signal(SIGINT, SIG_IGN);
	execvp(w->items[0], (char *const *)w->items);
	dprintf(STDERR_FILENO, "%s: %m\n", w->items[0]);
	_exit(127);
}

/* far: of the new process; near: ours. */
static int host_pipes(int far[3], int near[3])
{
	for (int fd = 0; fd < 3; fd++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		far[fd] = ends[fd ? 1 : 0];
		near[fd] = ends[fd ? 0 : 1];
	}
	return 0;
}

int host_run(struct host_process *ret, const char *spec, char *const *argv, struct error *err)
{
	_cleanup_(words_deinit) struct words words = { 0 };
	int far[3] = { -EBADF, -EBADF, -EBADF }, near[3] = { -EBADF, -EBADF, -EBADF };
	int r = words_of(&words, spec, argv);

	*ret = HOST_PROCESS_INIT;
	if (r == 0)
		r = host_pipes(far, near);
	if (r == 0) {
		ret->pid = fork();
		if (ret->pid == 0)
			host_main(&words, far);
		r = ret->pid < 0 ? -errno : 0;
	}
	for (int i = 0; i < 3; i++)
		close_fd(far[i]);
	if (r < 0) {
		ret->pid = 0;
		for (int i = 0; i < 3; i++)
			close_fd(near[i]);
		return error_errno(err, r, "%s", spec);
	}
	ret->in = near[0];
	ret->out = near[1];
	ret->err = near[2];
	return 0;
}

bool host_has_ended(const struct host_process *p)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

void host_end(struct host_process *p)
{
	bool ended = false;

	if (!p->pid)
		return;
	kill(p->pid, SIGTERM);
	for (int i = 0; i < 50 && !ended; i++) {
		usleep(20000);
		ended = host_has_ended(p);
	}
	if (!ended)
		kill(p->pid, SIGKILL);
	host_wait(p);
}

int host_wait(struct host_process *p)
{
	int status = 0;

	if (!p->pid)
		return CLI_FAILED;
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
