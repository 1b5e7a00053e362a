/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A helper that another process starts: its request, its result, its death, and ours. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "daemon/service/child.h"
#include "daemon/service/export_result.h"

struct service {
	char dir[32], path[64];
	struct loop *loop;
	struct child *child;
	pid_t pid;
	Traced__Control__ExportResult *result;
};

static void on_done(void *userdata, Traced__Control__ExportResult *result)
{
	struct service *s = userdata;

	s->result = result;
	loop_exit(s->loop, 0);
}

/* The first connection to the socket starts a process, as a service manager does. */
static void service_init(struct service *s, int (*run)(int argc, char **argv))
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*s = (struct service){ .dir = "/tmp/traced-test-XXXXXX" };
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	strcpy(sa.sun_path, s->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child_serve(accept(fd, NULL, NULL), run));
	}
	close(fd);
	assert_int_equal(loop_new(&s->loop), 0);
}

static void service_ask(struct service *s, int out)
{
	static const char *const argv[] = { "first", "", "third", NULL };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct child_spec spec = {
		.what = "exporter",
		.argv = argv,
		.fds = { out },
		.fd_count = 1,
		.service = s->path,
	};

	assert_int_equal(child_spawn(&s->child, s->loop, &spec, on_done, s, &err), 0);
}

static void service_deinit(struct service *s)
{
	s->child = child_free(s->child);
	loop_free(s->loop);
	if (s->result)
		traced__control__export_result__free_unpacked(s->result, NULL);
	unlink(s->path);
	rmdir(s->dir);
}

static int write_and_finish(int argc, char **argv)
{
	Traced__Control__ExportResult result = TRACED__CONTROL__EXPORT_RESULT__INIT;

	if (argc != 3 || strcmp(argv[0], "first") || *argv[1] || strcmp(argv[2], "third"))
		return 1;
	if (write_full(CHILD_FIRST_FD, "output", 6) < 0)
		return 1;
	result.events = 7;
	return export_result_write(CHILD_FIRST_FD + 1, &result);
}

static int crash(int argc _unused_, char **argv _unused_)
{
	kill(getpid(), SIGKILL);
	return 0;
}

static int tell_and_wait(int argc _unused_, char **argv _unused_)
{
	write_full(CHILD_FIRST_FD, "ready", 5);
	for (;;)
		pause();
	return 0;
}

static void gets_its_request_and_answers(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC), status;
	char text[8] = { 0 };
	struct service s;

	service_init(&s, write_and_finish);
	service_ask(&s, out);
	assert_int_equal(loop_run(s.loop), 0);
	assert_null(s.result->error);
	assert_int_equal(s.result->events, 7);
	assert_int_equal(pread_full(out, text, 6, 0), 6);
	assert_string_equal(text, "output");
	waitpid(s.pid, &status, 0);
	service_deinit(&s);
	close(out);
}

static void a_crash_is_an_error(void **state _unused_)
{
	int out = memfd_create("out", MFD_CLOEXEC), status;
	struct service s;

	service_init(&s, crash);
	service_ask(&s, out);
	assert_int_equal(loop_run(s.loop), 0);
	assert_non_null(strstr(s.result->error->message, "without a result"));
	waitpid(s.pid, &status, 0);
	service_deinit(&s);
	close(out);
}

static void a_cancelled_exporter_ends(void **state _unused_)
{
	int ends[2], status;
	struct service s;
	char text[5];

	assert_int_equal(pipe(ends), 0);
	service_init(&s, tell_and_wait);
	service_ask(&s, ends[1]);
	assert_int_equal(read_full(ends[0], text, 5), 5);
	s.child = child_free(s.child);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGIO);
	service_deinit(&s);
	close(ends[0]);
	close(ends[1]);
}

static void an_absent_service_is_told(void **state _unused_)
{
	static const char *const argv[] = { "x", NULL };
	struct child_spec spec = { .what = "exporter", .argv = argv, .service = "/nonexistent/s" };
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct child *c;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(child_spawn(&c, loop, &spec, on_done, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_its_request_and_answers),
		cmocka_unit_test(a_crash_is_an_error),
		cmocka_unit_test(a_cancelled_exporter_ends),
		cmocka_unit_test(an_absent_service_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
