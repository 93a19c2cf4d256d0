/*
 * Floods of kernel memory that no memory cgroup counts. As the floods in resources.c, each prints
 * `reached` when it got the amount in its argument, otherwise `stopped` and the errno.
 */
#include "probe.h"
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define MIB (1L << 20)
#define KIB 1024L

static int stopped(int error) {
	printf("stopped %s\n", error ? strerrorname_np(error) : "short");
	return SAID;
}

/* When this process has no descriptor left, a child closes its copies and continues; this process
 * stays until the child ends, so that it keeps what its descriptors hold. Returns 0 in the child. */
static int go_on_in_a_child(void) {
	pid_t pid = fork();
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	if (pid == 0)
		closefrom(3);
	return pid;
}

/* Removes the directory that `enter_fresh` made. */
static void leave_fresh(void) {
	char path[4096];
	if (getcwd(path, sizeof path) && !chdir("/"))
		rmdir(path);
}

/* access-lists DIRECTORY KIB N [SECONDS]: N files with an access control list of KIB each. */
static int flood_access_lists(char **arguments) {
	static struct {
		unsigned version;
		struct {
			unsigned short tag, mode;
			unsigned id;
		} entry[8191];
	} list = {.version = 2};
	int entries = (number(arguments[1]) * KIB - 4) / 8, error = enter_fresh(arguments[0]);
	if (error)
		return error;
	for (int i = 0; i < entries; i++) {
		list.entry[i].tag = i == 0 ? 1 : i == entries - 3 ? 4 : i == entries - 2 ? 16 : i == entries - 1 ? 32 : 2;
		list.entry[i].mode = 6;
		list.entry[i].id = list.entry[i].tag == 2 ? getuid() : -1U;
	}
	for (long left = number(arguments[2]); left > 0; left--) {
		char name[32];
		snprintf(name, sizeof name, "f%ld", left);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		unlink(name);
		if (fd < 0 || fsetxattr(fd, "system.posix_acl_access", &list, 4 + entries * 8, 0)) {
			error = errno;
			leave_fresh();
			return stopped(error);
		}
	}
	leave_fresh();
	sleep(number(arguments[3]));
	return said("reached");
}

/* Moves what waits in a connection into a new pipe. */
static ssize_t move(const char *way, int from, int *pipe_ends) {
	if (strcmp(way, "sendfile") == 0)
		return sendfile(pipe_ends[1], from, NULL, 65536);
	return splice(from, NULL, pipe_ends[1], NULL, 65536, SPLICE_F_NONBLOCK);
}

/* spliced WAY MIB [SECONDS]: data of a connection to itself, moved into pipes that no program reads. */
static int flood_spliced(char **arguments) {
	static char block[65536];
	long total = 0, most = number(arguments[1]) * MIB;
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof here;
	while (total < most) {
		int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
		here.sin_port = 0;
		if (server < 0 || bind(server, (void *)&here, size) || listen(server, 8) || getsockname(server, (void *)&here, &size) ||
		    connect(client, (void *)&here, size))
			return stopped(errno);
		int accepted = accept(server, NULL, NULL), ends[2];
		while (total < most && pipe(ends) == 0) {
			if (write(client, block, sizeof block / 2) < 0)
				return stopped(errno);
			ssize_t moved = move(arguments[0], accepted, ends);
			if (moved <= 0)
				return stopped(moved ? errno : 0);
			total += moved;
			while (recv(accepted, block, sizeof block, MSG_DONTWAIT) > 0)
				;
		}
		if (total < most && go_on_in_a_child() != 0)
			return stopped(errno);
	}
	sleep(number(arguments[2]));
	return said("reached");
}

/* timer-descriptors N [SECONDS]: timers, each behind a descriptor. */
static int flood_timer_descriptors(char **arguments) {
	for (long left = number(arguments[0]); left > 0; left--)
		while (timerfd_create(CLOCK_MONOTONIC, 0) < 0)
			if (errno != EMFILE || go_on_in_a_child() != 0)
				return stopped(errno);
	sleep(number(arguments[1]));
	return said("reached");
}

/* mapped-files DIRECTORY N [SECONDS]: open files that only a mapping holds, 60,000 in each process. */
static int flood_mapped_files(char **arguments) {
	int ends[2], error = enter_fresh(arguments[0]), processes = 0;
	if (error || pipe(ends))
		return error ? error : errno;
	for (long left = number(arguments[1]); left > 0; left -= 60000, processes++) {
		if (fork() != 0)
			continue;
		for (long file = 0; file < left && file < 60000 && error == 0; file++) {
			int fd = open("f", O_CREAT | O_RDWR, 0600);
			if (fd < 0 || mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
				error = errno;
			close(fd);
		}
		if (write(ends[1], &error, sizeof error) == sizeof error)
			sleep(number(arguments[2]));
		_exit(0);
	}
	for (int one = 0; processes > 0 && error == 0; processes--)
		error = read(ends[0], &one, sizeof one) == sizeof one ? one : EPIPE;
	if (error)
		return stopped(error);
	sleep(number(arguments[2]));
	return said("reached");
}

/* whole-locks DIRECTORY N [SECONDS]: locks of one whole file by processes that have ended: the child of each process
 * that took locks inherits the descriptors, and its own child goes on. */
static int flood_whole_locks(char **arguments) {
	int answer_ends[2], error = enter_fresh(arguments[0]);
	char answer[64] = "";
	if (error || pipe(answer_ends))
		return error ? error : errno;
	if (fork() > 0) {
		close(answer_ends[1]);
		return said(read(answer_ends[0], answer, sizeof answer - 1) > 0 ? answer : "short");
	}
	dup2(answer_ends[1], 0);
	for (long left = number(arguments[1]); left > 0;) {
		int fd = open("f", O_CREAT | O_RDWR, 0600);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0)
			left--;
		else if (errno == EMFILE) {
			if (fork() != 0)
				_exit(0);
			if (fork() != 0) {
				sleep(number(arguments[2]));
				_exit(0);
			}
			closefrom(3);
		} else
			break;
	}
	error = errno;
	sleep(number(arguments[2]));
	snprintf(answer, sizeof answer, "%s", error == 0 || error == EMFILE ? "reached" : strerrorname_np(error));
	_exit(write(0, answer, strlen(answer)) < 0);
}

/* directories DIRECTORY ENTRIES N SECONDS [hidden]: lists of the names of a directory that changes before each is read;
 * `hidden`: by a process that hides its descriptors from other processes of its user. */
static int flood_directories(char **arguments) {
	char name[256], padding[200];
	memset(padding, 'n', sizeof padding);
	if (arguments[4] && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return stopped(errno);
	if (chdir(arguments[0]))
		return errno;
	for (long i = 0; i < number(arguments[1]); i++) {
		snprintf(name, sizeof name, "%.*s%ld", (int)sizeof padding, padding, i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
	for (long left = number(arguments[2]); left > 0; left--) {
		char list[32768];
		unlink("change");
		close(open("change", O_CREAT | O_WRONLY, 0600));
		int fd;
		while ((fd = open(".", O_RDONLY | O_DIRECTORY)) < 0)
			if (errno != EMFILE || go_on_in_a_child() != 0)
				return stopped(errno);
		if (syscall(SYS_getdents64, fd, list, sizeof list) < 0)
			return stopped(errno);
	}
	sleep(number(arguments[3]));
	for (long i = 0; i < number(arguments[1]); i++) {
		snprintf(name, sizeof name, "%.*s%ld", (int)sizeof padding, padding, i);
		unlink(name);
	}
	unlink("change");
	return said("reached");
}

/* closed-connections N: prints `kept` when the kernel remembers at least half of N closed connections. */
static int flood_closed_connections(char **arguments) {
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof here;
	int server = socket(AF_INET, SOCK_STREAM, 0);
	if (server < 0 || bind(server, (void *)&here, size) || listen(server, 8) || getsockname(server, (void *)&here, &size))
		return stopped(errno);
	for (long left = number(arguments[0]); left > 0; left--) {
		int client = socket(AF_INET, SOCK_STREAM, 0), accepted;
		if (client < 0 || connect(client, (void *)&here, size) || (accepted = accept(server, NULL, NULL)) < 0)
			return stopped(errno);
		close(client);
		close(accepted);
	}
	char text[4096] = "";
	int table = open("/proc/self/net/sockstat", O_RDONLY);
	if (read(table, text, sizeof text - 1) < 0)
		return stopped(errno);
	char *kept = strstr(text, " tw ");
	return said(kept && number(kept + 4) >= number(arguments[0]) / 2 ? "kept" : "forgotten");
}

/* page-tables MIB [SECONDS]: page tables of pages that all are the kernel's page of zeros, which no resident set
 * size and no data limit includes. */
static int flood_page_tables(char **arguments) {
	for (long left = number(arguments[0]) * 256; left > 0; left -= 512) {
		char *area = mmap(NULL, KIB * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (area == MAP_FAILED)
			return stopped(errno);
		madvise(area, KIB * MIB, MADV_NOHUGEPAGE);
		for (long i = 0; i < 512; i++)
			(void)*(volatile char *)(area + i * 2 * MIB);
		/* Slow enough for the runner's polling to see the growth. */
		usleep(3000);
	}
	sleep(number(arguments[1]));
	return said("reached");
}

const struct attempt uncounted[] = {
	{"access-lists", flood_access_lists}, {"spliced", flood_spliced}, {"timer-descriptors", flood_timer_descriptors},
	{"mapped-files", flood_mapped_files}, {"whole-locks", flood_whole_locks}, {"directories", flood_directories},
	{"closed-connections", flood_closed_connections}, {"page-tables", flood_page_tables}, {0, 0},
};
