/*
 * Makes the attempts that must fail in a guest at level `reduced`, which shares paths, user and pids
 * with the host. Prints name and errno of each attempt; errno 0 means success.
 *
 * `probe_reduced DIRECTORY STREAM DATAGRAM PID`: a directory of this user with the files
 * `file` and `program`, a listening stream socket, a bound datagram socket, and a process
 * of this user. The current directory must be writable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char file[512], program[512], made[512];
static const char *directory, *stream, *datagram;
static pid_t other;

static int answer(long result) { return result < 0 ? errno : 0; }

static int opened(const char *path, int flags) {
	int fd = open(path, flags, 0600);
	int result = answer(fd);
	if (fd >= 0)
		close(fd);
	return result;
}

static int with_path_fd(int (*use)(int)) {
	int fd = open(file, O_PATH);
	if (fd < 0)
		return 1000 + errno;
	int result = use(fd);
	close(fd);
	return result;
}

static struct sockaddr_un address_of(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	return address;
}

static int read_file(void) { return opened(file, O_RDONLY); }
static int write_file(void) { return opened(file, O_WRONLY | O_APPEND); }
static int list(void) { return opened(directory, O_RDONLY | O_DIRECTORY); }
static int create(void) { return opened(made, O_WRONLY | O_CREAT); }
static int make_directory(void) {
	int result = answer(mkdir(made, 0700));
	rmdir(made);
	return result;
}
static int make_link(void) {
	int result = answer(symlink("x", made));
	unlink(made);
	return result;
}
static int make_fifo(void) {
	int result = answer(mkfifo(made, 0600));
	unlink(made);
	return result;
}
static int take_name(void) {
	int result = answer(link(file, "linked"));
	unlink("linked");
	return result;
}
static int move_out(void) {
	int result = answer(rename(file, "moved"));
	if (!result)
		rename("moved", file);
	return result;
}
static int truncated(void) { return answer(truncate(file, 4)); }
static int change_mode(void) { return answer(chmod(file, 0644)); }
static int change_mode_at(void) { return answer(syscall(SYS_fchmodat, AT_FDCWD, file, 0644)); }
static int change_mode_2(int fd) { return answer(syscall(452, fd, "", 0644, AT_EMPTY_PATH)); }
static int change_mode_by_handle(void) { return with_path_fd(change_mode_2); }
static int change_owner(void) { return answer(chown(file, getuid(), getgid())); }
static int owner_empty(int fd) { return answer(fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH)); }
static int change_owner_by_handle(void) { return with_path_fd(owner_empty); }
static int change_times(void) { return answer(utimensat(AT_FDCWD, file, NULL, 0)); }
static int times_empty(int fd) { return answer(syscall(SYS_utimensat, fd, "", NULL, AT_EMPTY_PATH)); }
static int change_times_by_handle(void) { return with_path_fd(times_empty); }
static int change_attribute(void) { return answer(setxattr(file, "user.probe", "x", 1, 0)); }
static int watch(void) { return answer(inotify_add_watch(inotify_init(), directory, IN_CREATE)); }
static int execute(void) {
	pid_t pid = fork();
	int status;
	if (pid == 0) {
		execl(program, program, (char *)NULL);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}
static int reach_stream(void) {
	struct sockaddr_un address = address_of(stream);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd < 0 ? errno : answer(connect(fd, (void *)&address, sizeof address));
}
static int reach_datagram_by_pair(void) {
	struct sockaddr_un address = address_of(datagram);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return errno;
	return answer(sendto(pair[0], "x", 1, 0, (void *)&address, sizeof address));
}
static int inet(void) { return answer(socket(AF_INET, SOCK_DGRAM, 0)); }
static int inet6(void) { return answer(socket(AF_INET6, SOCK_STREAM, 0)); }
static int netlink(void) { return answer(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int signal_it(void) { return answer(kill(other, 0)); }
static int signal_by_handle(void) {
	int fd = syscall(SYS_pidfd_open, other, 0);
	return fd < 0 ? 1000 + errno : answer(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}
static int limit_it(void) {
	struct rlimit now;
	return answer(prlimit(other, RLIMIT_CORE, NULL, &now));
}
static int slow_it(void) { return answer(setpriority(PRIO_PROCESS, other, 19)); }
static int bind_it(void) {
	cpu_set_t set;
	sched_getaffinity(0, sizeof set, &set);
	return answer(sched_setaffinity(other, sizeof set, &set));
}
static int look_into_it(void) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/environ", other);
	return opened(path, O_RDONLY);
}
static int look_at_it(void) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/cmdline", other);
	return opened(path, O_RDONLY);
}

/* Operations that must succeed both in the guest and outside. */
static int own_file(void) { return opened("own", O_RDWR | O_CREAT); }
static int own_mode(void) {
	int fd = open("own", O_RDWR | O_CREAT, 0600);
	return answer(fchmod(fd, 0755));
}
static int own_times(void) {
	int fd = open("own", O_RDWR | O_CREAT, 0600);
	return answer(futimens(fd, NULL));
}
static int own_pair(void) {
	int pair[2];
	return answer(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}
static int own_limit(void) {
	struct rlimit now;
	return answer(prlimit(0, RLIMIT_CORE, NULL, &now));
}
static int own_child(void) {
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(1);
	}
	int result = answer(kill(pid, SIGKILL));
	waitpid(pid, NULL, 0);
	return result;
}

#define ROW(name) {#name, name}
static const struct { const char *name; int (*attempt)(void); } attempts[] = {
	ROW(read_file), ROW(write_file), ROW(list), ROW(create), ROW(make_directory), ROW(make_link), ROW(make_fifo),
	ROW(take_name), ROW(move_out), ROW(truncated), ROW(execute),
	ROW(change_mode), ROW(change_mode_at), ROW(change_mode_by_handle), ROW(change_owner), ROW(change_owner_by_handle),
	ROW(change_times), ROW(change_times_by_handle), ROW(change_attribute), ROW(watch),
	ROW(reach_stream), ROW(reach_datagram_by_pair), ROW(inet), ROW(inet6), ROW(netlink),
	ROW(signal_it), ROW(signal_by_handle), ROW(limit_it), ROW(slow_it), ROW(bind_it), ROW(look_into_it), ROW(look_at_it),
	ROW(own_file), ROW(own_mode), ROW(own_times), ROW(own_pair), ROW(own_limit), ROW(own_child),
};

int main(int argc, char **argv) {
	if (argc != 5)
		return 2;
	directory = argv[1];
	stream = argv[2];
	datagram = argv[3];
	sscanf(argv[4], "%d", &other);
	snprintf(file, sizeof file, "%s/file", directory);
	snprintf(program, sizeof program, "%s/program", directory);
	snprintf(made, sizeof made, "%s/made", directory);
	for (unsigned i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		printf("%s %d\n", attempts[i].name, attempts[i].attempt());
		unlink(made);
	}
	return 0;
}
