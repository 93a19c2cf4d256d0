/* Attempts to read, write and create files where a guest must not. */
#include "probe.h"
#include <dirent.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static int try_read(char **arguments) {
	char byte;
	int fd = open(arguments[0], O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return errno;
	/* EISDIR: the path is a directory. Opening it for reading counts as success. */
	return read(fd, &byte, 1) < 0 && errno != EISDIR ? errno : 0;
}

static int try_open_write(char **arguments) {
	return answer(open(arguments[0], O_WRONLY | O_NONBLOCK));
}

static int try_list(char **arguments) {
	DIR *directory = opendir(arguments[0]);
	int entries = 0;
	if (!directory)
		return errno;
	for (struct dirent *entry; (entry = readdir(directory));)
		entries += entry->d_name[0] != '.';
	return entries ? 0 : said("empty");
}

static int try_stat(char **arguments) {
	struct stat found;
	return answer(stat(arguments[0], &found));
}

static int try_chmod(char **arguments) {
	return answer(chmod(arguments[0], 0644));
}

static int try_utime(char **arguments) {
	return answer(utimensat(AT_FDCWD, arguments[0], NULL, 0));
}

static int try_setxattr(char **arguments) {
	return answer(setxattr(arguments[0], "user.attack", "x", 1, 0));
}

static int try_inotify(char **arguments) {
	return answer(inotify_add_watch(inotify_init1(0), arguments[0], IN_OPEN));
}

static int try_chdir(char **arguments) { return answer(chdir(arguments[0])); }

static int try_exec(char **arguments) {
	execv(arguments[0], arguments);
	return errno;
}

/* Tries to change a file's content or the file that its name leads to. Returns the first way that
 * succeeded, or NULL. */
static const char *change(const char *path, int readable) {
	char other[4096], link_name[4096];
	int fd;
	snprintf(other, sizeof other, "%s.new", path);
	snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", readable);
	if ((fd = open(path, O_WRONLY | O_APPEND)) >= 0 && write(fd, "x", 1) == 1)
		return "open";
	if (open(path, O_RDWR | O_TRUNC) >= 0)
		return "truncating open";
	if (!truncate(path, 0))
		return "truncate";
	if (!ftruncate(readable, 0))
		return "ftruncate";
	if (!fallocate(readable, 0, 0, 1))
		return "fallocate";
	if (mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, readable, 0) != MAP_FAILED)
		return "shared mapping";
	/* Opened by a second name or by its /proc/self/fd link, the file could be writable although the
\t * mount of `path` is read-only. */
	if (open(link_name, O_RDWR) >= 0)
		return "reopening";
	if (!link(path, "/tmp/attack-link") && open("/tmp/attack-link", O_WRONLY) >= 0)
		return "hard link";
	if (open(other, O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0)
		return "create beside";
	if (!symlink("/tmp", other))
		return "symlink beside";
	if (!rename(path, other))
		return "rename";
	return unlink(path) ? NULL : "unlink";
}

/* Tries to change a file's mode, times or attributes. Returns the first way that succeeded, or NULL. */
static const char *describe(const char *path, int readable) {
	if (!chmod(path, 0666))
		return "chmod";
	if (!fchmod(readable, 0666))
		return "fchmod";
	if (!utimensat(AT_FDCWD, path, NULL, 0))
		return "utimensat";
	if (!setxattr(path, "user.attack", "x", 1, 0))
		return "setxattr";
	return fsetxattr(readable, "user.attack", "x", 1, 0) ? NULL : "fsetxattr";
}

/* Tries every way of changing a file. Prints `denied` when all are refused, and `mode` when its mode,
 * times or attributes can be changed but its content cannot, not even after that change. */
static int try_tamper(char **arguments) {
	int readable = open(arguments[0], O_RDONLY);
	if (readable < 0)
		return errno;
	const char *way = change(arguments[0], readable), *about = NULL;
	if (!way && (about = describe(arguments[0], readable)))
		way = change(arguments[0], readable);
	if (way || about)
		fprintf(stderr, "by %s\n", way ? way : about);
	return way ? 0 : said(about ? "mode" : "denied");
}

static int try_create(char **arguments) {
	char path[4096];
	snprintf(path, sizeof path, "%s/attack-new", arguments[0]);
	int result = answer(open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
	unlink(path);
	return result;
}

static int device(char **arguments, mode_t kind, dev_t number) {
	if (enter_fresh(arguments[0]))
		return errno;
	int at = answer(syscall(SYS_mknodat, AT_FDCWD, "a", kind | 0600, number));
#ifdef SYS_mknod
	int plain = answer(syscall(SYS_mknod, "b", kind | 0600, number));
#else
	int plain = at;
#endif
	unlink("a");
	unlink("b");
	/* The attempt has succeeded if either of the two calls did. */
	return at && plain ? at : 0;
}

static int try_mknod_char(char **arguments) { return device(arguments, S_IFCHR, makedev(1, 3)); }
static int try_mknod_block(char **arguments) { return device(arguments, S_IFBLK, makedev(7, 0)); }
/* Device 0:0 is an overlay's whiteout, which every user may create. */
static int try_mknod_whiteout(char **arguments) { return device(arguments, S_IFCHR, 0); }

static int try_fifo(char **arguments) {
	return enter_fresh(arguments[0]) ? errno : answer(syscall(SYS_mknodat, AT_FDCWD, "f", S_IFIFO | 0600, 0));
}

struct handle {
	unsigned bytes;
	int type;
	unsigned char room[128];
};

static int try_handle_name(char **arguments) {
	struct handle handle = {128, 0, {0}};
	int mount;
	return answer(syscall(SYS_name_to_handle_at, AT_FDCWD, arguments[0], &handle, &mount, 0));
}

static int try_handle_open(char **arguments) {
	struct handle handle = {128, 0, {0}};
	int mount, place = open(arguments[0], O_RDONLY);
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, arguments[0], &handle, &mount, 0) < 0)
		/* A handle can be guessed: inode 2 is the root of an ext file system. */
		handle = (struct handle){8, 1, {2}};
	return answer(syscall(SYS_open_by_handle_at, place, &handle, O_RDONLY));
}

const struct attempt files[] = {
	{"read", try_read}, {"open-write", try_open_write}, {"list", try_list},
	{"stat", try_stat}, {"chmod", try_chmod}, {"utime", try_utime},
	{"setxattr", try_setxattr}, {"inotify", try_inotify}, {"chdir", try_chdir},
	{"exec", try_exec}, {"tamper", try_tamper}, {"create", try_create},
	{"mknod-char", try_mknod_char}, {"mknod-block", try_mknod_block},
	{"mknod-whiteout", try_mknod_whiteout}, {"fifo", try_fifo}, {"handle-name", try_handle_name},
	{"handle-open", try_handle_open}, {0, 0},
};
