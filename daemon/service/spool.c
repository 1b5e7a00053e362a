/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/parse.h"
#include "daemon/service/accounts.h"
#include "daemon/service/folder.h"
#include "traced/stream.h"

#define SUFFIX ".traced"
/* Keep young empty files: their daemon may be about to lock them. */
#define EMPTY_GRACE_S 60

static int spool_free_bytes(int fd, uint64_t *ret)
{
	struct statvfs st;

	if (fstatvfs(fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.f_bavail * st.f_frsize;
	return 0;
}

static int spool_error_full(const char *dir, uint64_t bytes, uint64_t min_free, struct error *err)
{
	_cleanup_buf_ struct buf have = BUF_INIT, want = BUF_INIT;

	format_bytes(bytes, &have);
	format_bytes(min_free, &want);
	error_set(err, -ENOSPC, "only %s are free in %s, where recordings are spooled",
		  buf_string(&have) ?: "few bytes", dir);
	return error_hint(err, "make room (at least %s), or set spool_dir in traced.conf",
			  buf_string(&want) ?: "more");
}

int spool_create(struct spool *ret, const char *dir, const char *name, uid_t uid, uint64_t min_free,
		 struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_buf_ struct buf path = BUF_INIT;
	time_t now = time(NULL);
	uint64_t bytes = 0;
	uint32_t random;
	char stamp[32];
	struct tm tm;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(err, -errno, "getrandom");
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	buf_printf(&path, "%s/%s-", dir, stamp);
	if (uid)
		buf_printf(&path, "%u+", uid);
	buf_printf(&path, "%s-%08" PRIx32 SUFFIX, name, random);
	if (!buf_string(&path))
		return error_errno(err, -ENOMEM, "spool");
	/* A private daemon that ends may remove the empty folder. */
	for (int tries = 0; fd < 0 && tries < 2; tries++) {
		r = make_dir(dir, 0700, err);
		if (r < 0)
			return r;
		fd = open(path.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (fd < 0)
		return error_errno(err, -errno, "can't spool to %s", path.data);
	r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : spool_free_bytes(fd, &bytes);
	if (r < 0)
		error_errno(err, r, "%s", path.data);
	else if (bytes < min_free)
		r = spool_error_full(dir, bytes, min_free, err);
	if (r < 0) {
		unlink(path.data);
		return r;
	}
	*ret = (struct spool){ .fd = TAKE_FD(fd), .path = TAKE_PTR(path.data) };
	return 0;
}

static int spool_open_again(int old, int flags)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", old);
	return open(link, flags | O_CLOEXEC);
}

int spool_use(struct spool *ret, int fd, uint64_t max, struct error *err)
{
	struct stat st;
	int own;

	/* Only files in memory have seals. */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 || st.st_size)
		return error_set(err, -EBADF, "the stream's file is not an empty one in memory");
	/* With an offset of its own. */
	own = spool_open_again(fd, O_RDWR);
	if (own < 0)
		return error_errno(err, -errno, "the stream's file");
	*ret = (struct spool){ .fd = own, .client_max = max };
	return 0;
}

int spool_reopen(const struct spool *s, struct error *err)
{
	int fd = spool_open_again(s->fd, O_RDONLY);

	return fd < 0 ? error_errno(err, -errno, "%s", s->path) : fd;
}

uint64_t spool_bytes(const struct spool *s)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return 0;
	return s->client_max ? (uint64_t)st.st_blocks * 512 : (uint64_t)st.st_size - s->holes;
}

int spool_give_back(struct spool *s, uint64_t from, uint64_t to)
{
	struct stat st;

	from = MAX(from, s->given_back);
	if (from < STREAM_MAGIC_SIZE || fstat(s->fd, &st) < 0 || to > (uint64_t)st.st_size)
		return -EINVAL;
	if (from >= to)
		return 0;
	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
		      (off_t)(to - from)) < 0) {
		int r = -errno;

		s->keeps |= r == -EOPNOTSUPP || r == -ENOSYS;
		return r;
	}
	s->given_back = to;
	s->holes += to - from;
	return 0;
}

int spool_check(const struct spool *s, uint64_t min_free, uint64_t max)
{
	uint64_t bytes = 0;

	if (max && spool_bytes(s) > max)
		return -EDQUOT;
	if (min_free && !s->client_max && spool_free_bytes(s->fd, &bytes) == 0 && bytes < min_free)
		return -ENOSPC;
	return 0;
}

uint64_t spool_left(const struct spool *s, uint64_t min_free, uint64_t max)
{
	uint64_t bytes = spool_bytes(s), room = UINT64_MAX, left = 0;

	if (max)
		room = max > bytes ? max - bytes : 0;
	if (min_free && !s->client_max && spool_free_bytes(s->fd, &left) == 0)
		room = MIN(room, left > min_free ? left - min_free : 0);
	return room;
}

void spool_discard(struct spool *s)
{
	if (s->path)
		unlink(s->path);
	spool_deinit(s);
}

void spool_deinit(struct spool *s)
{
	/* A child that has just been made may have the descriptor, and with it the lock, too. */
	if (s->fd >= 0)
		flock(s->fd, LOCK_UN);
	close_fd(s->fd);
	free(s->path);
	*s = SPOOL_INIT;
}

static uid_t spool_uid(const char *name)
{
	const char *dash = strchr(name, '-');
	unsigned long uid;
	char *end;

	if (!dash || dash[1] < '1' || dash[1] > '9')
		return 0;
	uid = strtoul(dash + 1, &end, 10);
	return *end == '+' ? (uid_t)uid : 0;
}

static void spool_look_at(int dirfd, const char *dir, const char *name,
			  void (*found)(void *, const struct spool_leftover *), void *userdata)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_buf_ struct buf path = BUF_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    flock(fd, LOCK_SH | LOCK_NB) < 0)
		return;
	if (st.st_size <= STREAM_MAGIC_SIZE) {
		if (st.st_mtime + EMPTY_GRACE_S < time(NULL))
			unlinkat(dirfd, name, 0);
		return;
	}
	buf_printf(&path, "%s/%s", dir, name);
	if (buf_string(&path))
		found(userdata, &(struct spool_leftover){ .path = path.data,
							  .bytes = (uint64_t)st.st_size,
							  .ended = st.st_mtime,
							  .uid = spool_uid(name),
							  .reported = !(st.st_mode & S_IWUSR) });
}

/* Hidden files have no such name. */
static bool name_ends(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	return *name != '.' && len > end && strcmp(name + len - end, suffix) == 0;
}

void spool_mark_reported(const char *path)
{
	chmod(path, 0400);
}

int spool_find_leftovers(const char *dir,
			 void (*found)(void *userdata, const struct spool_leftover *leftover),
			 void *userdata)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)))
		if (name_ends(e->d_name, SUFFIX))
			spool_look_at(dirfd(d), dir, e->d_name, found, userdata);
	closedir(d);
	return 0;
}

static void spool_remove_unlocked(int dirfd, const char *name)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
	    !S_ISREG(st.st_mode))
		return;
	if (st.st_size || st.st_mtime + EMPTY_GRACE_S < time(NULL))
		unlinkat(dirfd, name, 0);
}

void spool_remove_unfinished(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (name_ends(e->d_name, SUFFIX SPOOL_UNFINISHED))
			spool_remove_unlocked(dirfd(d), e->d_name);
	if (d)
		closedir(d);
}

uint64_t spool_room(int fd, uint64_t min_free)
{
	uint64_t bytes = 0;

	return spool_free_bytes(fd, &bytes) < 0 || bytes < min_free ? 0 : bytes - min_free;
}

struct sum {
	struct accounts *accounts;
	uid_t account;
	struct spool_total *total;
};

static void spool_count(void *userdata, const struct spool_leftover *found)
{
	struct sum *sum = userdata;

	sum->total->all_users += found->uid != 0;
	if (accounts_of(sum->accounts, found->uid) != sum->account)
		return;
	sum->total->bytes += found->bytes;
	sum->total->count++;
}

void spool_total_of(const char *dir, struct accounts *accounts, uid_t account,
		    struct spool_total *ret)
{
	struct sum sum = { .accounts = accounts, .account = account, .total = ret };

	*ret = (struct spool_total){ 0 };
	spool_find_leftovers(dir, spool_count, &sum);
}

struct removal {
	uid_t uid;
	const char *name;
	bool done;
};

static void spool_remove_if_named(void *userdata, const struct spool_leftover *found)
{
	struct removal *removal = userdata;
	const char *slash = strrchr(found->path, '/');

	if (found->uid == removal->uid &&
	    (!strcmp(found->path, removal->name) || !strcmp(slash + 1, removal->name)))
		removal->done |= unlink(found->path) == 0;
}

int spool_remove_leftover(const char *dir, uid_t uid, const char *name)
{
	struct removal removal = { .uid = uid, .name = name };
	int r = spool_find_leftovers(dir, spool_remove_if_named, &removal);

	if (r < 0)
		return r;
	return removal.done ? 0 : -ENOENT;
}

uint64_t spool_bytes_of(const char *dir, struct accounts *accounts, uid_t account)
{
	struct spool_total total;

	spool_total_of(dir, accounts, account, &total);
	return total.bytes;
}
