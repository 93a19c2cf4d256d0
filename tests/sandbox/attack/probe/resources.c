/*
 * Floods: each takes a resource up to the amount in its argument. It prints `reached` when it got that
 * amount, otherwise `stopped` and the errno.
 */
#include "probe.h"
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MIB (1L << 20)

static int stopped(int error) {
	printf("stopped %s\n", error ? strerrorname_np(error) : "short");
	return SAID;
}
static int reached(void) { return said("reached"); }

/* forks N: starts N children, which stay alive until the end. */
static int flood_forks(char **arguments) {
	long most = number(arguments[0]), count = 0;
	int error = 0;
	setpgid(0, 0);
	while (count < most && !error) {
		pid_t pid = fork();
		if (pid == 0) {
			pause();
			_exit(0);
		}
		if (pid < 0)
			error = errno;
		else
			count++;
	}
	/* Ignore SIGTERM only after the forks: children that inherited this would never end. */
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (count-- > 0)
		if (wait(NULL) < 0)
			break;
	return error ? stopped(error) : reached();
}

static void *stay(void *unused) {
	pause();
	return unused;
}
static int flood_threads(char **arguments) {
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (long count = number(arguments[0]); count > 0; count--) {
		pthread_t thread;
		int error = pthread_create(&thread, &small, stay, NULL);
		if (error)
			return stopped(error);
	}
	return reached();
}

/* memory MIB [SECONDS]: private pages, all touched, and held for a while. */
static int flood_memory(char **arguments) {
	for (long left = number(arguments[0]); left > 0; left--) {
		char *page = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return stopped(errno);
		memset(page, 1, MIB);
	}
	sleep(number(arguments[1]));
	return reached();
}

/* shared-memory MIB [SECONDS]: shared anonymous pages, which RLIMIT_DATA does not count. */
static int flood_shared(char **arguments) {
	for (long left = number(arguments[0]); left > 0; left -= 16) {
		char *page = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return stopped(errno);
		memset(page, 1, 16 * MIB);
		/* Slow enough for the runner's polling to see the growth. */
		usleep(30000);
	}
	sleep(number(arguments[1]));
	return reached();
}

/* sockets MIB, pipes MIB: kernel memory of socket and pipe buffers, which no process's memory size
 * includes. */
static long fill(int fd) {
	static char block[65536];
	long total = 0, count;
	while ((count = write(fd, block, sizeof block)) > 0)
		total += count;
	return total;
}
static int hoard(char **arguments, int pipes) {
	long most = number(arguments[0]) * MIB, total = 0;
	while (total < most) {
		int ends[2];
		int result = pipes ? pipe2(ends, O_NONBLOCK)
				   : socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
		if (result < 0 && errno == EMFILE) {
			/* A child that closes these descriptors can open more; this process keeps its own open. */
			pid_t pid = fork();
			if (pid == 0) {
				closefrom(3);
				continue;
			}
			if (pid < 0)
				return stopped(errno);
			waitpid(pid, NULL, 0);
			return SAID;
		}
		if (result < 0)
			return stopped(errno);
		if (pipes)
			fcntl(ends[1], F_SETPIPE_SZ, MIB);
		long got = fill(ends[1]);
		if (!pipes)
			got += fill(ends[0]);
		if (got <= 0)
			return stopped(ENOBUFS);
		total += got;
	}
	/* Hold the memory long enough for the runner's polling to see it. */
	usleep(500000);
	return reached();
}
/* tcp-buffers MIB: kernel memory of loopback connections that no program reads. */
static int flood_tcp(char **arguments) {
	long most = number(arguments[0]) * MIB, total = 0;
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof here;
	int server = socket(AF_INET, SOCK_STREAM, 0), large = MIB;
	if (server < 0 || bind(server, (struct sockaddr *)&here, size) || listen(server, 8) ||
	    getsockname(server, (struct sockaddr *)&here, &size))
		return stopped(errno);
	while (total < most) {
		int client = socket(AF_INET, SOCK_STREAM, 0);
		if (client < 0 || connect(client, (struct sockaddr *)&here, size) || accept(server, NULL, NULL) < 0) {
			if (errno != EMFILE)
				return stopped(errno);
			/* A child continues with new descriptors, as in `hoard`. */
			pid_t pid = fork();
			if (pid < 0)
				return stopped(errno);
			if (pid) {
				waitpid(pid, NULL, 0);
				return SAID;
			}
			for (int fd = server + 1; fd < 1 << 20; fd++)
				if (close(fd))
					break;
			continue;
		}
		setsockopt(client, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
		fcntl(client, F_SETFL, O_NONBLOCK);
		long got = fill(client);
		/* The kernel grants each connection this much even when its TCP memory is used up. */
		if (got < 32768)
			return stopped(ENOBUFS);
		total += got;
	}
	usleep(500000);
	return reached();
}
static int flood_pipes(char **arguments) { return hoard(arguments, 1); }
static int flood_sockets(char **arguments) { return hoard(arguments, 0); }

/* disk DIRECTORY MIB: files of 4 MiB each, so that no file exceeds the file size limit. */
static int flood_disk(char **arguments) {
	static char block[MIB];
	int error = enter_fresh(arguments[0]);
	if (error)
		return error;
	for (long i = 0; i < number(arguments[1]); i++) {
		char name[32];
		snprintf(name, sizeof name, "f%ld", i / 4);
		int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
		ssize_t count = fd < 0 ? -1 : write(fd, block, MIB);
		if (count != MIB)
			return stopped(count < 0 ? errno : ENOSPC);
		close(fd);
	}
	return reached();
}

/* inodes DIRECTORY N: empty files. */
static int flood_inodes(char **arguments) {
	int error = enter_fresh(arguments[0]);
	if (error)
		return error;
	for (long i = 0; i < number(arguments[1]); i++) {
		char name[32];
		snprintf(name, sizeof name, "f%ld", i);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return stopped(errno);
		close(fd);
	}
	return reached();
}

/* connections N [SECONDS]: connections that no program accepts, held for a while. The connecting ends are closed. */
static int flood_connections(char **arguments) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	for (long made = 0; made < number(arguments[0]); made++) {
		if (made % 4000 == 0) {
			int server = socket(AF_INET, SOCK_STREAM, 0);
			address.sin_port = 0;
			if (server < 0 || bind(server, (void *)&address, size) || listen(server, 4096) || getsockname(server, (void *)&address, &size))
				return stopped(errno);
		}
		int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (client < 0 || (connect(client, (void *)&address, size) && errno != EINPROGRESS))
			return stopped(errno);
		close(client);
	}
	sleep(number(arguments[1]));
	return reached();
}

/* locks DIRECTORY N [SECONDS]: record locks, a thousand in each file, held for a while. In falling order, which is
 * fast, because the kernel searches a sorted list from its start for the place of each lock. */
static int flood_locks(char **arguments) {
	int fd = -1, error = enter_fresh(arguments[0]);
	if (error)
		return error;
	for (long left = number(arguments[1]); left > 0; left--) {
		if (fd < 0 || left % 1000 == 0) {
			fd = open("f", O_CREAT | O_RDWR, 0600);
			if (fd < 0)
				return stopped(errno);
			unlink("f");
		}
		struct flock lock = {.l_type = F_WRLCK, .l_start = left % 1000 * 2, .l_len = 1};
		if (fcntl(fd, F_SETLK, &lock))
			return stopped(errno);
	}
	sleep(number(arguments[2]));
	return reached();
}

/* size DIRECTORY MIB: one sparse file. */
static int flood_size(char **arguments) {
	int error = enter_fresh(arguments[0]);
	if (error)
		return error;
	signal(SIGXFSZ, SIG_IGN);
	int fd = open("f", O_CREAT | O_WRONLY, 0600);
	return ftruncate(fd, number(arguments[1]) * MIB) ? stopped(errno) : reached();
}

/* cpu SECONDS: uses this much CPU time. */
static int flood_cpu(char **arguments) {
	alarm(0);
	while (clock() < number(arguments[0]) * CLOCKS_PER_SEC)
		;
	return reached();
}

/* files N: opens N descriptors in one process. */
static int flood_files(char **arguments) {
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (long left = number(arguments[0]); left > 0; left--)
		if (open("/dev/null", O_RDONLY) < 0)
			return stopped(errno);
	return reached();
}

/* output MIB: writes to standard output. */
static int flood_output(char **arguments) {
	static char block[MIB];
	memset(block, 'x', MIB);
	for (long left = number(arguments[0]); left > 0; left--)
		if (write(1, block, MIB) < 0)
			return 1;
	return SAID;
}

const struct attempt resources[] = {
	{"forks", flood_forks}, {"threads", flood_threads}, {"memory", flood_memory},
	{"shared-memory", flood_shared}, {"locks", flood_locks}, {"connections", flood_connections}, {"pipes", flood_pipes}, {"sockets", flood_sockets}, {"tcp-buffers", flood_tcp},
	{"disk", flood_disk}, {"inodes", flood_inodes}, {"size", flood_size}, {"cpu", flood_cpu},
	{"files", flood_files}, {"output", flood_output}, {0, 0},
};
