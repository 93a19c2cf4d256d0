/* The mount system calls, old and new. Each attempt creates what it needs in a new directory. */
#include "probe.h"
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int place(char **arguments) {
	int error = enter_fresh(arguments[0]);
	return error ? error : answer(mkdir("a", 0700));
}

static int try_mount(char **arguments) {
	return place(arguments) ? errno : answer(mount("none", "a", "tmpfs", 0, NULL));
}
static int try_bind(char **arguments) {
	return place(arguments) ? errno : answer(mount("/usr", "a", NULL, MS_BIND, NULL));
}
/* Makes a read-only mount writable. */
static int try_remount(char **arguments) {
	if (place(arguments))
		return errno;
	if (mount("a", "a", NULL, MS_BIND, NULL) < 0)
		return answer(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	return answer(mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static int try_umount(char **arguments) {
	if (place(arguments))
		return errno;
	if (mount("none", "a", "tmpfs", 0, NULL) < 0)
		return answer(umount2("/proc", MNT_DETACH));
	return answer(umount2("a", MNT_DETACH));
}
static long tree(const char *path) {
	return syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE);
}
static int try_open_tree(char **arguments) {
	return place(arguments) ? errno : answer(tree("a"));
}
static int try_move_mount(char **arguments) {
	if (place(arguments))
		return errno;
	return answer(syscall(SYS_move_mount, (int)tree("a"), "", AT_FDCWD, "a",
			      MOVE_MOUNT_F_EMPTY_PATH));
}
static int try_fsopen(char **arguments) {
	(void)arguments;
	return answer(syscall(SYS_fsopen, "tmpfs", 0));
}
static int try_fsconfig(char **arguments) {
	(void)arguments;
	return answer(syscall(SYS_fsconfig, (int)syscall(SYS_fsopen, "tmpfs", 0),
			      FSCONFIG_CMD_CREATE, 0, 0, 0));
}
static int try_fsmount(char **arguments) {
	(void)arguments;
	int fd = syscall(SYS_fsopen, "tmpfs", 0);
	syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, 0, 0, 0);
	return answer(syscall(SYS_fsmount, fd, 0, 0));
}
static int try_fspick(char **arguments) {
	if (place(arguments))
		return errno;
	mount("none", "a", "tmpfs", 0, NULL);
	return answer(syscall(SYS_fspick, AT_FDCWD, "a", 0));
}
static int try_mount_setattr(char **arguments) {
	struct mount_attr change = {.attr_set = MOUNT_ATTR_NOSUID};
	if (place(arguments))
		return errno;
	mount("none", "a", "tmpfs", 0, NULL);
	return answer(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, &change, sizeof change));
}
static int try_open_tree_attr(char **arguments) {
	struct mount_attr change = {.attr_set = MOUNT_ATTR_NOSUID};
	if (place(arguments))
		return errno;
	return answer(syscall(SYS_open_tree_attr, AT_FDCWD, "a", OPEN_TREE_CLONE, &change,
			      sizeof change));
}
static int try_pivot_root(char **arguments) {
	if (place(arguments))
		return errno;
	mount("none", "a", "tmpfs", 0, NULL);
	mkdir("a/old", 0700);
	return answer(syscall(SYS_pivot_root, "a", "a/old"));
}
static int try_chroot(char **arguments) {
	return place(arguments) ? errno : answer(chroot("a"));
}
/* Lists the mounts of a namespace, including those that no path leads to. */
static int try_listmount(char **arguments) {
	unsigned long long request[4] = {24, (unsigned long long)-1, 0, 0}, found[8];
	(void)arguments;
	return answer(syscall(SYS_listmount, request, found, 8, 0));
}
/* The file does not exist, but the kernel checks the capability before it looks for the file. */
static int try_swapon(char **arguments) {
	(void)arguments;
	return answer(syscall(SYS_swapon, "/nonexistent/attack", 0));
}

const struct attempt mounts[] = {
	{"mount", try_mount}, {"bind", try_bind}, {"remount", try_remount},
	{"umount", try_umount}, {"open-tree", try_open_tree}, {"move-mount", try_move_mount},
	{"fsopen", try_fsopen}, {"fsconfig", try_fsconfig}, {"fsmount", try_fsmount},
	{"fspick", try_fspick}, {"mount-setattr", try_mount_setattr},
	{"open-tree-attr", try_open_tree_attr}, {"pivot-root", try_pivot_root},
	{"chroot", try_chroot}, {"listmount", try_listmount}, {"swapon", try_swapon}, {0, 0},
};
