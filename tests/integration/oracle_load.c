/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "oracle_load.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"

/* A load leaves out what a machine can't do: nothing is checked here. */
#define TRY(x) ((void)!(x))

static void run_program(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ) == 0)
		waitpid(pid, NULL, 0);
	posix_spawn_file_actions_destroy(&actions);
}

static void shell(const char *command)
{
	run_program((const char *[]){ "sh", "-c", command, NULL });
}

static void load_processes(const char *dir _unused_, int instance _unused_)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_NAME, "a name, 15 long");
			TRY(nice(3));
			_exit(i);
		}
		waitpid(pid, NULL, 0);
	}
	shell("true; (exit 3); cat /proc/self/status; sleep 0.01");
	run_program((const char *[]){ "/nonexistent", NULL });
}

static void write_file(int dirfd, const char *name, size_t blocks, int flags)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_CREAT | O_RDWR | O_TRUNC | flags, 0644);
	static char block[4096] __attribute__((aligned(4096)));

	for (size_t i = 0; fd >= 0 && i < blocks; i++)
		TRY(write(fd, block, sizeof(block)));
	if (fd < 0)
		return;
	fsync(fd);
	TRY(pread(fd, block, sizeof(block), 0));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	TRY(pread(fd, block, sizeof(block), 0));
	TRY(fallocate(fd, 0, 0, 65536));
	TRY(ftruncate(fd, 1000));
	flock(fd, LOCK_EX);
	fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK });
}

static void load_files(const char *dir, int instance _unused_)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct stat st;

	write_file(fd, "a", 16, 0);
	write_file(fd, "b", 4, O_DIRECT);
	TRY(linkat(fd, "a", fd, "c", 0));
	TRY(symlinkat("a", fd, "s"));
	TRY(renameat(fd, "c", fd, "d e"));
	fstatat(fd, "d e", &st, 0);
	TRY(mkdirat(fd, "sub", 0700));
	for (DIR *d = fdopendir(dup(fd)); d; d = NULL) {
		while (readdir(d))
			;
		closedir(d);
	}
	syncfs(fd);
	TRY(unlinkat(fd, "sub", AT_REMOVEDIR));
	TRY(unlinkat(fd, "s", 0));
	TRY(unlinkat(fd, "d e", 0));
	TRY(unlinkat(fd, "a", 0));
	TRY(unlinkat(fd, "b", 0));
	sync();
}

static void exchange(int a, int b)
{
	char text[3000] = "text";

	for (int i = 0; i < 3; i++) {
		TRY(send(a, text, sizeof(text), MSG_NOSIGNAL));
		TRY(recv(b, text, sizeof(text), MSG_DONTWAIT));
	}
}

static void tcp(int family, const void *address, socklen_t len)
{
	_cleanup_close_ int server = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_cleanup_close_ int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage bound;
	socklen_t size = sizeof(bound);
	int peer;

	if (bind(server, address, len) || listen(server, 4) ||
	    getsockname(server, (struct sockaddr *)&bound, &size))
		return;
	TRY(connect(client, (struct sockaddr *)&bound, size));
	peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	if (peer >= 0)
		exchange(client, peer);
	shutdown(client, SHUT_WR);
	close_fd(peer);
}

static void load_sockets(const char *dir _unused_, int instance _unused_)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in closed = v4;
	_cleanup_close_ int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_close_ int refused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int pair[2];

	tcp(AF_INET, &v4, sizeof(v4));
	tcp(AF_INET6, &v6, sizeof(v6));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
		exchange(pair[0], pair[1]);
		close(pair[0]);
		close(pair[1]);
	}
	closed.sin_port = htons(1);
	TRY(sendto(udp, "x", 1, 0, (const struct sockaddr *)&closed, sizeof(closed)));
	TRY(connect(refused, (const struct sockaddr *)&closed, sizeof(closed)));
}

static void on_signal(int number _unused_)
{
}

static void load_time(const char *dir _unused_, int instance _unused_)
{
	const struct itimerval alarm = { .it_value.tv_usec = 2000, .it_interval.tv_usec = 3000 };
	const struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	_cleanup_close_ int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	_cleanup_close_ int boot = timerfd_create(CLOCK_BOOTTIME_ALARM, TFD_CLOEXEC);
	uint64_t ticks;

	signal(SIGALRM, on_signal);
	signal(SIGUSR1, on_signal);
	setitimer(ITIMER_REAL, &alarm, NULL);
	for (int i = 0; i < 3; i++)
		pause();
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	timerfd_settime(fd, 0, &soon, NULL);
	TRY(read(fd, &ticks, sizeof(ticks)));
	if (boot >= 0)
		timerfd_settime(boot, 0, &soon, NULL);
	raise(SIGUSR1);
	usleep(5000);
	poll(NULL, 0, 8);
}

static void load_memory(const char *dir _unused_, int instance _unused_)
{
	size_t size = 4 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	for (size_t i = 0; i < size; i += 4096 * 3)
		p[i] = 1;
	mprotect(p, 65536, PROT_READ);
	madvise(p + (1 << 20), 1 << 20, MADV_DONTNEED);
	madvise(p, size, MADV_HUGEPAGE);
	mlock(p, 65536);
	p = mremap(p, size, size * 2, MREMAP_MAYMOVE) == MAP_FAILED ? p : p;
	munmap(p, size);
	if (fork() == 0) {
		*(volatile char *)sbrk(65536) = 1;
		_exit(0);
	}
	wait(NULL);
}

static void *thread(void *arg)
{
	pthread_mutex_t *lock = arg;
	cpu_set_t cpus;

	for (int i = 0; i < 20; i++) {
		CPU_ZERO(&cpus);
		CPU_SET(i % 2, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
		pthread_mutex_lock(lock);
		sched_yield();
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

static void load_threads(const char *dir _unused_, int instance _unused_)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, &lock);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	setpriority(PRIO_PROCESS, 0, 5);
}

/* Descriptors besides files and sockets. */
static void load_descriptors(const char *dir, int instance _unused_)
{
	_cleanup_close_ int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
	_cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	_cleanup_close_ int memory = memfd_create("memory", MFD_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };
	int pipes[2], status = 0;
	char params[120] = { 0 };

	epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e);
	TRY(write(event, &(uint64_t){ 1 }, 8));
	epoll_wait(epoll, &e, 1, 1);
	inotify_add_watch(watch, dir, IN_ALL_EVENTS);
	if (pipe(pipes) == 0) {
		ioctl(pipes[0], FIONREAD, &status);
		TRY(write(pipes[1], "12345678", 8));
		splice(pipes[0], NULL, memory, NULL, 8, 0);
		close(pipes[0]);
		close(pipes[1]);
	}
	sendfile(event, memory, NULL, 8);
	close_fd((int)syscall(SYS_io_uring_setup, 4, params));
	syscall(SYS_bpf, 0, params, sizeof(params));
	mount("none", dir, "tmpfs", 0, NULL);
	write_file(AT_FDCWD, "/dev/shm/traced-oracle", 4, 0);
	unlink("/dev/shm/traced-oracle");
	umount(dir);
	shell("ls -l /proc /sys /dev; cat /proc/interrupts /proc/meminfo; grep -r x /etc/pam.d");
}

static void load_marks(const char *dir _unused_, int instance)
{
	_cleanup_close_ int marker = openat(instance, "trace_marker", O_WRONLY | O_CLOEXEC);
	_cleanup_close_ int raw = openat(instance, "trace_marker_raw", O_WRONLY | O_CLOEXEC);
	char text[600];

	memset(text, 'x', sizeof(text));
	TRY(write(marker, "plain", 5));
	TRY(write(marker, "with newline\n", 13));
	TRY(write(marker, "B|1|slice \"quoted\" \xff\xc3\xa9\t\x01", 24));
	TRY(write(marker, "two\nlines", 9));
	TRY(write(marker, text, sizeof(text)));
	for (size_t n = 4; n < 24; n++)
		TRY(write(raw, text, n));
}

static const struct oracle_load loads[] = {
	{ "processes", load_processes },     { "files", load_files },
	{ "sockets", load_sockets },	     { "time", load_time },
	{ "memory", load_memory },	     { "threads", load_threads },
	{ "descriptors", load_descriptors }, { "marks", load_marks },
};

const struct oracle_load *oracle_loads(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(loads);
	return loads;
}
