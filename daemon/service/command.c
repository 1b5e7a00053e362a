/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/command.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

/*
 * The byte comes from root: only a socket whose other end is the client's may get it. Writing to
 * anything else could block, or do what the client may not.
 */
static bool command_is_go(int fd, uid_t uid)
{
	int domain, type;
	struct ucred peer;
	socklen_t domain_len = sizeof(domain), type_len = sizeof(type), peer_len = sizeof(peer);

	return fd_type(fd) == S_IFSOCK &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
	       domain == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
	       type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 && peer.uid == uid;
}

/*
 * Polling another file could block. A filter of system calls may refuse each of these calls with
 * -EPERM, so a socket has to be told from a pidfd first.
 */
static bool command_is_pidfd(int fd, int socket)
{
	if (syscall(SYS_pidfd_send_signal, socket, 0, NULL, 0) == 0 || errno != EBADF)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 || errno == EPERM ||
	       errno == ESRCH;
}

int command_take(struct command *c, uid_t uid, int *fds, size_t fd_count, struct loop *loop,
		 loop_io_t ended, void *userdata, struct error *err)
{
	int r;

	if (fd_count != COMMAND_FDS)
		return error_set(err, -EINVAL, "a held command needs two descriptors");
	if (!command_is_go(fds[0], uid))
		return error_set(err, -EBADF, "a held command waits at a unix stream socket");
	if (!command_is_pidfd(fds[1], fds[0]))
		return error_set(err, -EBADF, "a held command is named by a pidfd");
	r = loop_add_io(loop, &c->end, fds[1], EPOLLIN, ended, userdata);
	if (r < 0)
		return error_errno(err, r, "cannot watch the command");
	c->go_fd = TAKE_FD(fds[0]);
	c->end_fd = TAKE_FD(fds[1]);
	return 0;
}

void command_release(const struct command *c)
{
	/* Without a reader it has ended, which is noticed. */
	if (c->go_fd >= 0)
		send(c->go_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void command_forget(struct command *c, struct closer *closer, uid_t account)
{
	c->end = loop_source_free(c->end);
	/* A held child ends even if the descriptor is closed late. A byte that was sent stays. */
	if (c->go_fd >= 0)
		shutdown(c->go_fd, SHUT_RDWR);
	c->go_fd = closer_close(closer, account, CLOSER_FILE, c->go_fd);
	c->end_fd = closer_close(closer, account, CLOSER_FILE, c->end_fd);
}
