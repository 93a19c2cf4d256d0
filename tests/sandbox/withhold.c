/*
 * Starts a program for which one mechanism of the kernel is unavailable, as on a host that lacks it.
 * Changes only this process and the processes that it starts.
 *
 * `withhold none PROGRAM …`              nothing is withheld; the control
 * `withhold namespaces:KIND PROGRAM …`   KIND (user, net, ipc, uts, cgroup) is used up:
 *                                        user.max_KIND_namespaces=0 in a user namespace of its own
 * `withhold deny:CALL PROGRAM …`         the system call CALL of the table below fails with EPERM
 * `withhold off:landlock PROGRAM …`      as when Landlock is not among lsm=
 * `withhold absent:landlock PROGRAM …`   as on a kernel without Landlock
 * `withhold proc PROGRAM …`              a part of /proc is covered
 * `withhold cgroup PROGRAM …`            control groups are read-only
 * `withhold overlay:DIR PROGRAM …`       DIR lies on an overlay, as in a container
 * `withhold overlays:DIR PROGRAM …`      DIR lies on an overlay of an overlay, the kernel's maximum
 * `withhold submount:DIR PROGRAM …`      another file system is mounted at DIR
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

static const struct {
	const char *name;
	int number;
} calls[] = {
	{"landlock", SYS_landlock_create_ruleset},
	{"seccomp", SYS_seccomp},
	{"fsconfig", SYS_fsconfig},
	{"fsmount", SYS_fsmount},
	{"fsopen", SYS_fsopen},
	{"mount", SYS_mount},
	{"mount_setattr", SYS_mount_setattr},
	{"move_mount", SYS_move_mount},
	{"open_tree", SYS_open_tree},
	{"pivot_root", SYS_pivot_root},
	{"sethostname", SYS_sethostname},
	{"umount2", SYS_umount2},
	{"unshare", SYS_unshare},
};

static int number_of(const char *name) {
	for (size_t at = 0; at < sizeof calls / sizeof *calls; at++)
		if (strcmp(calls[at].name, name) == 0)
			return calls[at].number;
	fprintf(stderr, "unknown call %s\n", name);
	exit(98);
}

static void must(int fine, const char *what) {
	if (!fine) {
		perror(what);
		exit(99);
	}
}

static void put(const char *path, const char *text) {
	FILE *file = fopen(path, "w");
	must(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

/* Enters a new user namespace, in which this process may change sysctls and mounts of the namespace. */
static void own_namespace(int more) {
	char map[64];
	unsigned uid = geteuid(), gid = getegid();
	must(unshare(CLONE_NEWUSER | more) == 0, "unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "1000 %u 1", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "1000 %u 1", gid);
	put("/proc/self/gid_map", map);
}

static void refuse(int call, int with) {
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | with),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

static void read_only_groups(void) {
	char line[4096], point[4096], kind[64];
	FILE *mounts = fopen("/proc/self/mounts", "r");
	must(mounts != NULL, "mounts");
	while (fgets(line, sizeof line, mounts) != NULL)
		if (sscanf(line, "%*s %4095s %63s", point, kind) == 2 && strncmp(kind, "cgroup", 6) == 0)
			must(mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_RELATIME, NULL) == 0, point);
	fclose(mounts);
}

/* Mounts a read-only overlay of a directory over that directory. The tmpfs on /mnt is the empty second
 * lower layer that overlayfs needs. */
static void stack_overlay(const char *directory) {
	char options[8192];
	snprintf(options, sizeof options, "userxattr,lowerdir=%s:/mnt", directory);
	must(mount("overlay", directory, "overlay", 0, options) == 0, directory);
}

int main(int count, char **words) {
	char path[128];
	const char *what = count > 2 ? words[1] : "";
	if (strncmp(what, "namespaces:", 11) == 0) {
		own_namespace(0);
		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", what + 11);
		put(path, "0");
	} else if (strncmp(what, "deny:", 5) == 0) {
		refuse(number_of(what + 5), EPERM);
	} else if (strcmp(what, "off:landlock") == 0) {
		refuse(SYS_landlock_create_ruleset, EOPNOTSUPP);
	} else if (strcmp(what, "absent:landlock") == 0) {
		refuse(SYS_landlock_create_ruleset, ENOSYS);
	} else if (strcmp(what, "proc") == 0) {
		own_namespace(CLONE_NEWNS);
		must(mount("none", "/proc/sys", "tmpfs", 0, NULL) == 0, "cover");
	} else if (strcmp(what, "cgroup") == 0) {
		own_namespace(CLONE_NEWNS);
		read_only_groups();
	} else if (strncmp(what, "overlay:", 8) == 0 || strncmp(what, "overlays:", 9) == 0) {
		own_namespace(CLONE_NEWNS);
		must(mount("none", "/mnt", "tmpfs", 0, NULL) == 0, "/mnt");
		stack_overlay(strchr(what, ':') + 1);
		if (what[7] == 's')
			stack_overlay(what + 9);
	} else if (strncmp(what, "submount:", 9) == 0) {
		own_namespace(CLONE_NEWNS);
		must(mount("none", what + 9, "tmpfs", 0, NULL) == 0, what + 9);
	} else if (strcmp(what, "none") != 0) {
		fprintf(stderr, "usage: withhold MECHANISM PROGRAM [ARGUMENT …]\n");
		return 98;
	}
	execv(words[2], words + 2);
	must(0, words[2]);
}
