/* What two processes share through one inode: locks, leases, watches, sockets, FIFOs, dirty
 * pages. `probe sharing` reads one request a line, `VERB [PATH]`, and answers each with one. */
#include "probe.h"
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

enum { HELD = 64 };
static int held[HELD], holding, watching = -1;

static int lock(int fd, short kind) {
	struct flock all = {.l_type = kind, .l_whence = SEEK_SET};
	return answer(fcntl(fd, F_SETLK, &all));
}

/* Opens a file with these flags, locks it both ways (`flock` and `fcntl`) and keeps the locks. */
static int hold(const char *path, int flags) {
	int fd = open(path, flags);
	if (fd < 0 || holding == HELD)
		return errno;
	held[holding++] = fd;
	int result = answer(flock(fd, LOCK_EX | LOCK_NB));
	return result ? result : lock(fd, flags == O_RDWR ? F_WRLCK : F_RDLCK);
}

static int lease(const char *path) {
	int fd = open(path, O_RDONLY);
	int result = fd < 0 ? errno : answer(fcntl(fd, F_SETLEASE, F_RDLCK));
	close(fd);
	return result;
}

static int notify(const char *path) {
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	int result = fd < 0 ? errno : answer(fcntl(fd, F_NOTIFY, DN_ACCESS));
	close(fd);
	return result;
}

static int flock_once(const char *path) {
	int fd = open(path, O_RDONLY);
	int result = fd < 0 ? errno : answer(flock(fd, LOCK_EX | LOCK_NB));
	close(fd);
	return result;
}

static int try_description_lock(char **arguments) {
	struct flock lock = {.l_type = F_WRLCK};
	int error = enter_fresh(arguments[0]);
	return error ? error : answer(fcntl(open("f", O_CREAT | O_RDWR, 0600), F_OFD_SETLK, &lock));
}
static int try_lease(char **arguments) { return lease(arguments[0]); }
static int try_notify(char **arguments) { return notify(arguments[0]); }
static int try_flock(char **arguments) { return flock_once(arguments[0]); }

static int connect_to(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int result = answer(connect(fd, (struct sockaddr *)&address, sizeof address));
	close(fd);
	return result;
}

static int read_one(const char *path) {
	char byte;
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return errno;
	long count = read(fd, &byte, 1);
	int result = count > 0 ? 0 : count < 0 ? errno : said("empty");
	close(fd);
	return result;
}

static int watch(const char *path) {
	watching = inotify_init1(IN_NONBLOCK);
	return watching < 0 ? errno : answer(inotify_add_watch(watching, path, IN_ALL_EVENTS));
}

static int watched(void) {
	char events[4096];
	long count = read(watching, events, sizeof events);
	close(watching);
	return count > 0 ? 0 : said("silent");
}

/* Tries every system call that writes a file's dirty pages to disk; returns the result of fsync. */
static int write_back(const char *path) {
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return errno;
	void *pages = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	int result = answer(fsync(fd));
	fdatasync(fd);
	syscall(SYS_sync_file_range, fd, 0L, 0L, 7);
	msync(pages, 4096, MS_SYNC);
	syscall(SYS_syncfs, fd);
	munmap(pages, 4096);
	close(fd);
	return result;
}

/* Asks the kernel to drop a file from the page cache. */
static int discard(const char *path) {
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return errno;
	int result = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return result;
}

/* Asks the kernel to drop mapped pages. The address is invalid, so an executed call would fail with
 * EINVAL; success shows that a filter answered instead. */
static int page_out(void) {
	int cold = answer(madvise((void *)1, 4096, MADV_COLD));
	return cold ? cold : answer(madvise((void *)1, 4096, MADV_PAGEOUT));
}

/* Prints how many pages of the file are in the page cache (field 0), or how many of those are dirty
 * (field 1). */
static int cached(const char *path, int field) {
	unsigned long range[2] = {0, 0}, found[5];
	char text[32];
	int fd = open(path, O_RDONLY);
	if (fd < 0 || syscall(SYS_cachestat, fd, range, found, 0))
		return errno;
	close(fd);
	snprintf(text, sizeof text, "%lu", found[field]);
	return said(text);
}

static int lock_once(const char *path, int flags, short kind) {
	int fd = open(path, flags);
	int result = fd < 0 ? errno : lock(fd, kind);
	close(fd);
	return result;
}

static int drop(void) {
	while (holding)
		close(held[--holding]);
	return 0;
}

static int one(const char *verb, const char *path) {
	if (!strcmp(verb, "hold"))
		return hold(path, O_RDONLY);
	if (!strcmp(verb, "hold-write"))
		return hold(path, O_RDWR);
	if (!strcmp(verb, "drop"))
		return drop();
	if (!strcmp(verb, "flock"))
		return flock_once(path);
	if (!strcmp(verb, "read-lock"))
		return lock_once(path, O_RDONLY, F_RDLCK);
	if (!strcmp(verb, "write-lock"))
		return lock_once(path, O_RDWR, F_WRLCK);
	if (!strcmp(verb, "lease"))
		return lease(path);
	if (!strcmp(verb, "notify"))
		return notify(path);
	if (!strcmp(verb, "connect"))
		return connect_to(path);
	if (!strcmp(verb, "read"))
		return read_one(path);
	if (!strcmp(verb, "watch"))
		return watch(path);
	if (!strcmp(verb, "watched"))
		return watched();
	if (!strcmp(verb, "write-back"))
		return write_back(path);
	if (!strcmp(verb, "discard"))
		return discard(path);
	if (!strcmp(verb, "page-out"))
		return page_out();
	if (!strcmp(verb, "cached"))
		return cached(path, 0);
	if (!strcmp(verb, "dirty"))
		return cached(path, 1);
	return said("no such verb");
}

static int be_sharer(char **arguments) {
	char line[8192];
	(void)arguments;
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		char *path = strchr(line, ' ');
		if (path)
			*path++ = 0;
		int result = one(line, path ? path : "");
		if (result != SAID)
			puts(result ? strerrorname_np(result) : "ok");
		/* Restart the time limit of the program for each request. */
		alarm(30);
	}
	return said("end");
}

const struct attempt sharing[] = {
	{"lease", try_lease}, {"description-lock", try_description_lock}, {"notify", try_notify}, {"flock", try_flock},
	{"sharing", be_sharer}, {0, 0},
};
