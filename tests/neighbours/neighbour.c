/*
 * Static program with three roles: a hostile guest's attack on a kernel budget, its control outside
 * of guests, and another program of the same host that needs the budget (a neighbour).
 *
 * `neighbour attack CLASS SECONDS WATCHES [PATH …]`
 *      takes all units of a budget (at most WATCHES epoll watches), holds them, and takes the units
 *      that other processes free, until SECONDS have passed
 * `neighbour probe CLASS [PATH]`
 *      takes one unit: prints `ok` or the errno's name
 * `neighbour serve`
 *      a web server that needs one unit of each budget per request; prints its port
 *
 * An attack prints `began`, then one of `full ERRNO N` (the kernel refused after N units),
 * `refused ERRNO` (the kernel refused the first unit), `reached N` (the attack's own bound came first).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1L << 20)
/* Bounds of attacks on resources for which the kernel has no budget. */
#define TCP_MIB 400
#define FILES_AT_MOST 3000
/* Result of a `take_` function at the attack's own bound; no system call used here fails with it. */
#define ENOUGH ECANCELED
/* Size in bytes of a new pipe, unless its user is above the soft limit on pipe pages. */
#define USUAL_PIPE 65536

/* Number of units that all processes of an attack have taken together. */
static _Atomic long *taken;
static long watches_at_most;
static char **paths;

static double now(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}
static double deadline;

static void pause_ms(long ms) {
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

static void said(int error) {
	if (error == 0 || error == ENOUGH)
		printf("reached %ld\n", *taken);
	else if (*taken == 0)
		printf("refused %s\n", strerrorname_np(error));
	else
		printf("full %s %ld\n", strerrorname_np(error), *taken);
	fflush(stdout);
}

/* Takes units until the kernel refuses one, prints the result, then takes units that others free. */
static void exhaust(int (*take)(void)) {
	int error = 0;
	while (!error && now() < deadline)
		if ((error = take()) == 0)
			++*taken;
	said(error);
	while (now() < deadline) {
		if (take() == 0)
			++*taken;
		else
			pause_ms(1);
	}
	/* Wait for the second process of `take_epoll`, which runs until the same deadline. */
	while (wait(NULL) > 0)
		;
}

/* Forks. The parent stays alive, so that it keeps what its descriptors hold; only the child returns,
 * with no descriptor above 2. */
static int go_on_in_a_child(void) {
	pid_t pid = fork();
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		return -1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return close_range(3, ~0U, 0);
}

/*
 * epoll: every epoll instance watches every eventfd counter. When a process has no descriptor left,
 * a child continues. The process stays alive, because its watches would end with it.
 */
static long files_allowed(void) {
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < 8000 ? limit.rlim_max : 8000;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

static int fd_epoll, counters[4000], count_of_counters, next_counter, doubled;
static int take_epoll(void) {
	struct epoll_event event = {.events = EPOLLIN};
	for (;;) {
		if (*taken >= watches_at_most)
			return ENOUGH;
		if (count_of_counters == 0) {
			long half = files_allowed() / 2 - 20;
			while (count_of_counters < half && (counters[count_of_counters] = eventfd(0, EFD_CLOEXEC)) >= 0)
				count_of_counters++;
			if (count_of_counters == 0)
				return errno;
			/* A second process takes watches on another processor. */
			if (!doubled++ && fork() == 0)
				prctl(PR_SET_PDEATHSIG, SIGKILL);
			next_counter = count_of_counters;
		}
		if (next_counter == count_of_counters) {
			fd_epoll = epoll_create1(EPOLL_CLOEXEC);
			if (fd_epoll < 0 && errno == EMFILE) {
				if (go_on_in_a_child() != 0)
					return errno;
				count_of_counters = 0;
				continue;
			}
			if (fd_epoll < 0)
				return errno;
			next_counter = 0;
		}
		if (epoll_ctl(fd_epoll, EPOLL_CTL_ADD, counters[next_counter], &event) < 0)
			return errno;
		next_counter++;
		return 0;
	}
}

/* inflight: sends descriptors over unix sockets and never receives them. */
static int pass(int socket, int many) {
	char room[CMSG_SPACE(253 * sizeof(int))] = {0};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = CMSG_SPACE(many * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(many * sizeof(int));
	for (int i = 0; i < many; i++)
		memcpy(CMSG_DATA(header) + i * sizeof(int), &(int){0}, sizeof(int));
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}
static int take_inflight(void) {
	static int ends[2] = {-1, -1};
	for (int tries = 0; tries < 2; tries++) {
		if (ends[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return errno;
		int error = pass(ends[0], 1);
		if (error != EAGAIN)
			return error;
		ends[0] = -1;
	}
	return EAGAIN;
}

static int take_inotify(void) { return inotify_init1(IN_CLOEXEC) < 0 ? errno : 0; }

/* watches: each inotify instance watches NAMES files; an instance has one watch per inode. */
#define NAMES 2000
static int take_watches(void) {
	static int instance = -1, name = NAMES;
	char path[64];
	if (name == NAMES) {
		int made = inotify_init1(IN_CLOEXEC);
		if (made < 0)
			return errno;
		instance = made;
		name = 0;
	}
	snprintf(path, sizeof path, "watched-%d", name);
	/* The files are created while the first instance adds its watches. */
	if (*taken < NAMES) {
		int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (file < 0)
			return errno;
		close(file);
	}
	if (inotify_add_watch(instance, path, IN_OPEN) < 0)
		return errno;
	name++;
	return 0;
}

/* pipes: of 1 MiB, then of the default size, until the kernel creates smaller ones. */
static int take_pipe(void) {
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	if (fcntl(ends[0], F_SETPIPE_SZ, MIB) < 0 && fcntl(ends[0], F_GETPIPE_SZ) < USUAL_PIPE) {
		close(ends[0]);
		close(ends[1]);
		return EPERM;
	}
	return 0;
}

static int take_timer(void) {
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t timer;
	return timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ? errno : 0;
}

static int take_signal(void) {
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	return sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0 ? errno : 0;
}

static int take_queue(void) {
	char name[64];
	static int number;
	snprintf(name, sizeof name, "/neighbour-%d-%d", getpid(), number++);
	mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	if (queue == (mqd_t)-1)
		return errno;
	/* The queue counts until its last descriptor is closed; its name would outlive the process. */
	mq_unlink(name);
	return 0;
}

static int take_key(void) {
	char name[64];
	static int number;
	snprintf(name, sizeof name, "neighbour-%d-%d", getpid(), number++);
	/* -2 is the keyring of this process, which the kernel removes when the process ends. */
	return syscall(SYS_add_key, "user", name, "x", 1L, -2) < 0 ? errno : 0;
}

/* tcp: writes one MiB per call to connections that no program reads. When a process has no
 * descriptor left, a child continues. */
static int connection(void) {
	static int listener = -1;
	static struct sockaddr_in address = {.sin_family = AF_INET};
	static const int large = 8 * MIB;
	socklen_t size = sizeof address;
	if (listener < 0) {
		files_allowed();
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		address.sin_port = 0;
		if ((listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
			return -1;
		setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
		if (bind(listener, (void *)&address, size) < 0 || listen(listener, 4096) < 0)
			return -1;
		getsockname(listener, (void *)&address, &size);
	}
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client >= 0)
		setsockopt(client, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
	if (client >= 0 && connect(client, (void *)&address, size) == 0 && accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0) {
		fcntl(client, F_SETFL, O_NONBLOCK);
		return client;
	}
	if (errno != EMFILE || go_on_in_a_child() != 0)
		return -1;
	listener = -1;
	return connection();
}
static int take_tcp(void) {
	static int client = -1;
	static char block[65536];
	long wrote = 0;
	if (*taken >= TCP_MIB)
		return ENOUGH;
	while (wrote < MIB) {
		if (client < 0 && (client = connection()) < 0)
			return errno;
		ssize_t count = write(client, block, sizeof block);
		if (count < 0) {
			if (errno != EAGAIN)
				return errno;
			client = -1;
			continue;
		}
		wrote += count;
	}
	return 0;
}

/* Descriptors of the files below the given paths, opened for reading only. */
static int files[FILES_AT_MOST], count_of_files;
static int visit(const char *path, const struct stat *status, int kind, struct FTW *level) {
	(void)level;
	if (kind == FTW_F && S_ISREG(status->st_mode) && count_of_files < FILES_AT_MOST) {
		int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (file >= 0)
			files[count_of_files++] = file;
	}
	return count_of_files == FILES_AT_MOST;
}
static void open_all(void) {
	files_allowed();
	for (char **path = paths; *path; path++)
		nftw(*path, visit, 20, FTW_PHYS);
}

/* locks: takes a lease, a lock of the whole file and a record lock on each file. */
static void attack_locks(void) {
	long leases = 0, whole = 0, records = 0;
	/* A broken lease sends SIGIO. */
	signal(SIGIO, SIG_IGN);
	open_all();
	for (int i = 0; i < count_of_files; i++) {
		struct flock record = {.l_type = F_RDLCK};
		/* A write lease blocks readers and needs a file that no other process has open; a read lease
\t\t * blocks writers. */
		leases += fcntl(files[i], F_SETLEASE, F_WRLCK) == 0 || fcntl(files[i], F_SETLEASE, F_RDLCK) == 0;
		whole += flock(files[i], LOCK_EX | LOCK_NB) == 0;
		records += fcntl(files[i], F_OFD_SETLK, &record) == 0;
	}
	printf("held %ld leases %ld whole %ld records of %d\n", leases, whole, records, count_of_files);
	fflush(stdout);
	while (now() < deadline)
		pause_ms(20);
}

/* fsync: calls fsync on files that this process did not write. */
static void attack_fsync(void) {
	open_all();
	pid_t other = fork();
	if (other == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		printf("storm\n");
	fflush(stdout);
	double next = 0;
	for (int i = 0; now() < deadline && count_of_files > 0; i = (i + 1) % count_of_files) {
		*taken += fsync(files[i]) == 0;
		if (other != 0 && now() > next) {
			printf("synced %ld\n", *taken);
			fflush(stdout);
			next = now() + 0.1;
		}
	}
}

/* stops: repeatedly sends SIGSTOP to every process that this one may signal. */
static void attack_stops(void) {
	signal(SIGCONT, SIG_IGN);
	printf("storm\n");
	fflush(stdout);
	/* -1 stands for every process except this one and pid 1. */
	while (now() < deadline)
		kill(-1, SIGSTOP);
}

static const struct {
	const char *name;
	int (*take)(void);
	void (*run)(void);
} classes[] = {
	{"epoll", take_epoll, NULL}, {"inflight", take_inflight, NULL}, {"inotify", take_inotify, NULL},
	{"watches", take_watches, NULL}, {"pipes", take_pipe, NULL}, {"timers", take_timer, NULL},
	{"signals", take_signal, NULL}, {"queues", take_queue, NULL}, {"keys", take_key, NULL},
	{"tcp", take_tcp, NULL}, {"locks", NULL, attack_locks}, {"fsync", NULL, attack_fsync},
	{"stops", NULL, attack_stops},
};

/* Takes one unit of each budget, as a program of a web host does, and frees it. Returns the name of
 * the budget that failed, or NULL. */
static const char *request_needs(int poller, int client, int *error) {
	struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
	int ends[2], watcher;
	if (epoll_ctl(poller, EPOLL_CTL_ADD, client, &event) < 0)
		return *error = errno, "epoll";
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return *error = errno, "socketpair";
	*error = pass(ends[0], 1);
	close(ends[0]);
	close(ends[1]);
	if (*error)
		return "inflight";
	if ((watcher = inotify_init1(IN_CLOEXEC)) < 0)
		return *error = errno, "inotify";
	if (inotify_add_watch(watcher, "/", IN_CREATE) < 0) {
		*error = errno;
		close(watcher);
		return "watches";
	}
	close(watcher);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return *error = errno, "pipes";
	int size = fcntl(ends[0], F_GETPIPE_SZ);
	close(ends[0]);
	close(ends[1]);
	if (size < USUAL_PIPE)
		return *error = EPERM, "pipes";
	struct sigevent signal_event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, &signal_event, &timer) < 0)
		return *error = errno, "timers";
	timer_delete(timer);
	return NULL;
}

static int serve(void) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), poller = epoll_create1(EPOLL_CLOEXEC);
	if (listener < 0 || bind(listener, (void *)&address, size) < 0 || listen(listener, 128) < 0 || poller < 0)
		return perror("serve"), 1;
	getsockname(listener, (void *)&address, &size);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC), error = 0;
		if (client < 0)
			continue;
		const char *failed = request_needs(poller, client, &error);
		struct epoll_event event;
		char request[4096], answer[128];
		if (!failed && epoll_wait(poller, &event, 1, 60000) != 1)
			failed = "epoll_wait";
		if (read(client, request, sizeof request) < 0)
			failed = "read";
		snprintf(answer, sizeof answer, "HTTP/1.0 %s\r\n\r\n%s %s\n", failed ? "500 Failed" : "200 OK", failed ? failed : "ok",
			 failed && error ? strerrorname_np(error) : "");
		if (write(client, answer, strlen(answer)) < 0)
			perror("answer");
		close(client);
	}
}

/* Probe of the classes without a `take_` function: locks the file as a program of the host would. */
static int probe_locks(void) {
	int file = open(paths[0], O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct flock record = {.l_type = F_WRLCK};
	if (file < 0)
		return errno;
	if (flock(file, LOCK_EX | LOCK_NB) < 0 || fcntl(file, F_SETLK, &record) < 0)
		return errno;
	return 0;
}

int main(int count, char **words) {
	if (count == 2 && strcmp(words[1], "serve") == 0)
		return serve();
	taken = mmap(NULL, sizeof *taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (taken == MAP_FAILED)
		return perror("mmap"), 1;
	for (unsigned i = 0; count > 2 && i < sizeof classes / sizeof *classes; i++) {
		if (strcmp(words[2], classes[i].name) != 0)
			continue;
		if (strcmp(words[1], "probe") == 0) {
			paths = words + 3;
			doubled = 1;
			watches_at_most = 1;
			int error = classes[i].take ? classes[i].take() : probe_locks();
			puts(error ? strerrorname_np(error) : "ok");
			return 0;
		}
		if (count < 5)
			break;
		watches_at_most = atol(words[4]);
		paths = words + 5;
		deadline = now() + atof(words[3]);
		/* SIGALRM ends the program even if a system call never returns. */
		alarm(atoi(words[3]) + 5);
		puts("began");
		fflush(stdout);
		classes[i].take ? exhaust(classes[i].take) : classes[i].run();
		return 0;
	}
	fprintf(stderr, "usage: neighbour attack CLASS SECONDS WATCHES [PATH ...] | probe CLASS [PATH] | serve\n");
	return 2;
}
