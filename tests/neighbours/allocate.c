/*
 * Static program that makes one kind of kernel object in a loop, as many as the kernel and its guest allow, and holds them.
 *
 * `allocate OBJECT UNITS SECONDS [DIRECTORY]`
 *
 * It makes at most UNITS objects and stops after SECONDS of CPU time. DIRECTORY is a place for files, by default the current
 * directory. It prints `made N C` now and then, at the end `held N C -` (one of its own bounds came first) or `held N C ERRNO`
 * (the kernel refused the next one), and then waits for 60 s, or until it is killed. A process that has no descriptor left
 * forks; its child goes on, and the process keeps what it has. C is the number of these children.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
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
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define MIB (1L << 20)
#define PAGE 4096L
/* Result of a `take_` function after which a child goes on: this process can make no more. */
#define NEXT EMFILE

/* Shared by all processes of one call. */
static struct {
	_Atomic long taken;
	/* Number of processes that this program has started because the one before had no descriptor left. */
	_Atomic long children;
} *shared;
static long units;
static double seconds;
/* Incremented in each child; statics of a `take_` function that belong to a process are set again when it differs. */
static int generation;
/* Number of objects that this process has made. */
static long own;
static char block[256 * 1024];

static int result(long value) { return value < 0 ? errno : 0; }

static double cpu(void) {
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 + usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

static void hold(const char *error) {
	printf("held %ld %ld %s\n", shared->taken, shared->children, error);
	fflush(stdout);
	sleep(60);
}

/* Returns a path of a new file in the current directory; its name has 12 characters. */
static const char *fresh(void) {
	static char name[32];
	snprintf(name, sizeof name, "%05d%07ld", getpid() % 100000, own);
	return name;
}
/* Returns a descriptor of a new empty file. */
static int fresh_file(void) { return open(fresh(), O_CREAT | O_RDWR | O_CLOEXEC, 0600); }

/* Descriptors */

static int take_file(void) { return result(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
static int take_file_owner(void) {
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return file < 0 ? errno : result(fcntl(file, F_SETOWN, getpid()));
}
static int take_async(void) {
	static int ends[2], now = -1;
	if (now != generation) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return errno;
		now = generation;
	}
	int file = eventfd(0, EFD_CLOEXEC), pair[2];
	if (file < 0)
		return errno;
	close(file);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return errno;
	fcntl(pair[0], F_SETOWN, getpid());
	return result(fcntl(pair[0], F_SETFL, O_ASYNC));
}
static int take_eventfd(void) { return result(eventfd(0, EFD_CLOEXEC)); }
static int take_timerfd(void) {
	struct itimerspec time = {.it_value.tv_sec = 100000};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return timer < 0 ? errno : result(timerfd_settime(timer, 0, &time, NULL));
}
static int take_signalfd(void) {
	sigset_t set;
	sigemptyset(&set);
	return result(signalfd(-1, &set, SFD_CLOEXEC));
}
static int take_epoll(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }
static int take_epoll_watch(void) {
	static int counters[500], poller, now = -1, next;
	struct epoll_event event = {.events = EPOLLIN};
	if (now != generation) {
		for (next = 0; next < 500; next++)
			if ((counters[next] = eventfd(0, EFD_CLOEXEC)) < 0)
				return errno;
		now = generation;
	}
	if (next == 500) {
		if ((poller = epoll_create1(EPOLL_CLOEXEC)) < 0)
			return errno;
		next = 0;
	}
	return result(epoll_ctl(poller, EPOLL_CTL_ADD, counters[next++], &event));
}
static int take_pidfd(void) { return result(syscall(SYS_pidfd_open, getpid(), 0)); }
static int take_inotify(void) { return result(inotify_init1(IN_CLOEXEC)); }
static int take_inotify_watch(void) {
	static int instance = -1;
	if (instance < 0 && (instance = inotify_init1(IN_CLOEXEC)) < 0)
		return errno;
	int file = fresh_file();
	if (file < 0)
		return errno;
	close(file);
	return result(inotify_add_watch(instance, fresh(), IN_OPEN));
}
static int take_inotify_event(void) {
	static int instance = -1, watch;
	if (instance < 0 || own % 16000 == 0) {
		if ((instance = inotify_init1(IN_CLOEXEC)) < 0)
			return errno;
		mkdir("events", 0700);
		if ((watch = inotify_add_watch(instance, "events", IN_CREATE | IN_DELETE)) < 0)
			return errno;
	}
	char path[300];
	snprintf(path, sizeof path, "events/%0200ld", own);
	int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (file < 0)
		return errno;
	close(file);
	return result(unlink(path));
}

/* Pipes */

static int take_pipe(void) {
	int ends[2];
	return result(pipe2(ends, O_CLOEXEC));
}
static int take_pipe_data(void) {
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errno;
	while (write(ends[1], block, PAGE) > 0)
		;
	return 0;
}
static int take_pipe_slots(void) {
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	return result(fcntl(ends[0], F_SETPIPE_SZ, MIB));
}
/* Pages of a file that has been removed, held by a pipe: they belong to no file system any more. */
static int take_pipe_spliced_file(void) {
	int ends[2], file = fresh_file();
	if (file < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errno;
	if (write(file, block, 65536) < 0)
		return errno;
	off_t from = 0;
	if (sendfile(ends[1], file, &from, 65536) < 0)
		return errno;
	unlink(fresh());
	return result(close(file));
}

/* Unix sockets */

static int take_unix(void) { return result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
static int take_unix_name(void) {
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (made < 0)
		return errno;
	snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%090d-%ld", getpid(), own);
	return result(bind(made, (void *)&name, sizeof name));
}
static int take_unix_data(void) {
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return errno;
	while (write(ends[0], block, 65536) > 0)
		;
	return 0;
}
static int take_unix_bytes(void) {
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return errno;
	while (write(ends[0], block, 1) > 0)
		;
	return 0;
}
static int take_unix_backlog(void) {
	static int listener = -1, now = -1, waiting;
	static struct sockaddr_un name = {.sun_family = AF_UNIX};
	if (now != generation) {
		snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "backlog-%d", getpid());
		listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (listener < 0 || bind(listener, (void *)&name, sizeof name) < 0 || listen(listener, 4096) < 0)
			return errno;
		now = generation;
		waiting = 0;
	}
	/* The backlog is 4096 connections, of clients that have gone. */
	if (waiting++ >= 4000)
		return NEXT;
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client < 0)
		return errno;
	int error = result(connect(client, (void *)&name, sizeof name));
	close(client);
	return error;
}
static int take_rights(void) {
	static int ends[2], now = -1;
	if (now != generation) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
			return errno;
		now = generation;
	}
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	/* A socket, because the kernel keeps a graph of sockets in flight. */
	int sent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sent < 0)
		return errno;
	memcpy(CMSG_DATA(header), &sent, sizeof sent);
	int error = result(sendmsg(ends[0], &message, MSG_NOSIGNAL));
	close(sent);
	if (error == EAGAIN) {
		now = -1;
		return take_rights();
	}
	return error;
}

/* TCP sockets of the own loopback */

static int tcp(int reuse) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (made < 0)
		return -1;
	if (reuse && setsockopt(made, SOL_SOCKET, SO_REUSEPORT, &reuse, sizeof reuse) < 0)
		return -1;
	return bind(made, (void *)&address, sizeof address) < 0 ? -1 : made;
}
static int take_tcp(void) { return result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
static int take_tcp_port(void) {
	int made = tcp(0);
	return made < 0 ? errno : result(listen(made, 1));
}
static int take_tcp_group(void) {
	int made = tcp(1);
	return made < 0 ? errno : result(listen(made, 1));
}
static int listener, listens = -1;
static struct sockaddr_in at;
static int listen_here(void) {
	socklen_t size = sizeof at;
	if (listens == generation)
		return 0;
	listener = tcp(0);
	if (listener < 0 || listen(listener, 4096) < 0)
		return -1;
	listens = generation;
	return getsockname(listener, (void *)&at, &size);
}
/* Returns a client connected to the listener of this process, from an address of its own. */
static int client_from(long number) {
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002 + number)};
	int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (made < 0)
		return -1;
	if (number > 0 && bind(made, (void *)&from, sizeof from) < 0)
		return -1;
	return connect(made, (void *)&at, sizeof at) < 0 ? -1 : made;
}
static int take_tcp_backlog(void) {
	static int waiting, now = -1;
	if (listen_here() < 0)
		return errno;
	if (now != generation) {
		waiting = 0;
		now = generation;
	}
	if (waiting++ >= 4000)
		return NEXT;
	int made = client_from(0);
	return made < 0 ? errno : result(close(made));
}
static int take_tcp_time_wait(void) {
	if (listen_here() < 0)
		return errno;
	/* 20,000 connections from each address of the loopback: a port has to wait before it is used again. */
	int client = client_from(shared->taken / 20000 + 1);
	if (client < 0)
		return errno;
	int served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (served < 0)
		return errno;
	close(client);
	return result(close(served));
}
static int take_tcp_orphan(void) {
	if (listen_here() < 0)
		return errno;
	int client = client_from(0);
	if (client < 0)
		return errno;
	fcntl(client, F_SETFL, O_NONBLOCK);
	while (write(client, block, sizeof block) > 0)
		;
	close(client);
	/* The other end has to stay open. */
	return result(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}
static int connected(int *client, int *served) {
	if (listen_here() < 0 || (*client = client_from(0)) < 0)
		return errno;
	if ((*served = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
		return errno;
	fcntl(*client, F_SETFL, O_NONBLOCK);
	fcntl(*served, F_SETFL, O_NONBLOCK);
	return 0;
}
static int take_tcp_data(void) {
	int client, served, error = connected(&client, &served);
	while (!error && write(client, block, 65536) > 0)
		;
	return error;
}
static int take_tcp_spliced(void) {
	static int client = -1, served, now = -1, error;
	int ends[2];
	if (now != generation) {
		if ((error = connected(&client, &served)) != 0)
			return error;
		now = generation;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errno;
	for (int tries = 0; tries < 16; tries++) {
		if (write(client, block, 65536) < 0 && errno != EAGAIN)
			return errno;
		long moved = splice(served, NULL, ends[1], NULL, 65536, SPLICE_F_NONBLOCK);
		if (moved < 0 && errno != EAGAIN)
			return errno;
	}
	return 0;
}
static int take_unix_spliced(void) {
	static int sockets[2], now = -1;
	int ends[2];
	if (now != generation) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0)
			return errno;
		now = generation;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errno;
	for (int tries = 0; tries < 16; tries++) {
		if (write(sockets[0], block, 65536) < 0 && errno != EAGAIN)
			return errno;
		if (splice(sockets[1], NULL, ends[1], NULL, 65536, SPLICE_F_NONBLOCK) < 0 && errno != EAGAIN)
			return errno;
	}
	return 0;
}
static int take_tcp_report(void) {
	int client, served, error = connected(&client, &served);
	/* SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY */
	int flags = 1 << 8 | 1 << 1 | 1 << 4 | 1 << 11;
	if (error || setsockopt(client, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) < 0)
		return error ? error : errno;
	for (int i = 0; i < 1000; i++)
		if (write(client, block, 1) < 0)
			break;
		else if (read(served, block, sizeof block) < 0)
			continue;
	return 0;
}
/* Sends with pages of the program itself, which the other end never reads; the kernel keeps a notification of each. */
static int take_tcp_zerocopy(void) {
	int client, served, error = connected(&client, &served), yes = 1;
	if (error || setsockopt(client, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof yes) < 0)
		return error ? error : errno;
	for (int i = 0; i < 1000; i++) {
		struct msghdr none = {0};
		if (send(client, block + i % 64 * PAGE, 1 + i % 2, MSG_ZEROCOPY) < 0)
			break;
		if (i % 2)
			(void)recvmsg(served, &none, MSG_DONTWAIT);
	}
	return 0;
}
/* Each thread that sends over TCP keeps a buffer of 32 KiB of its own until it ends. */
static int take_tcp_buffer(void) {
	static int client, served;
	int error = connected(&client, &served);
	if (error)
		return error;
	if (write(client, block, 1) < 0)
		return errno;
	close(client);
	close(served);
	return NEXT;
}
static int take_tcp_fastopen(void) {
	int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	if (made < 0 || listen_here() < 0)
		return errno;
	if (setsockopt(made, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &yes, sizeof yes) < 0)
		return errno;
	return connect(made, (void *)&at, sizeof at) < 0 && errno != EINPROGRESS ? errno : 0;
}

/* Files of the own file system */

static int take_inode(void) {
	int file = fresh_file();
	return file < 0 ? errno : result(close(file));
}
static int take_directory(void) { return result(mkdir(fresh(), 0700)); }
static int take_symlink(void) {
	static char target[128];
	memset(target, 'x', 127);
	return result(symlink(target, fresh()));
}
static int take_fifo(void) { return result(mknod(fresh(), S_IFIFO | 0600, 0)); }
static int take_hard_link(void) {
	static int made;
	if (!made++)
		close(open("linked", O_CREAT | O_WRONLY, 0600));
	return result(link("linked", fresh()));
}
static int take_name(void) {
	struct stat status;
	char path[256];
	snprintf(path, sizeof path, "%0200ld", shared->taken);
	return stat(path, &status) < 0 && errno != ENOENT ? errno : 0;
}
static int take_acl(void) {
	static struct {
		unsigned version;
		struct {
			unsigned short tag, permission;
			unsigned id;
		} entries[8190];
	} acl = {.version = 2};
	int last = 8189;
	for (int i = 0; i <= last; i++) {
		acl.entries[i].tag = i == 0 ? 1 : i == last - 2 ? 4 : i == last - 1 ? 0x10 : i == last ? 0x20 : 2;
		acl.entries[i].permission = 7;
		acl.entries[i].id = acl.entries[i].tag == 2 ? getuid() : ~0U;
	}
	int file = fresh_file();
	if (file < 0)
		return errno;
	int error = result(fsetxattr(file, "system.posix_acl_access", &acl, sizeof acl, 0));
	close(file);
	return error;
}
static int take_xattr(void) {
	int file = fresh_file();
	if (file < 0)
		return errno;
	int error = result(fsetxattr(file, "user.attack", block, 4000, 0));
	close(file);
	return error;
}
/* An open directory of an overlay with several layers keeps a list of its names, which is another one after each change. */
#define NAMES 5000
static int take_directory_cache(void) {
	char name[64];
	static long names;
	for (; names < NAMES; names++) {
		snprintf(name, sizeof name, "listed-%050ld", names);
		int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (file < 0)
			return errno;
		close(file);
	}
	if (mkdir("change", 0700) < 0 || rmdir("change") < 0)
		return errno;
	int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || syscall(SYS_getdents64, directory, block, 4096) < 0)
		return errno;
	/* A name is one object. */
	shared->taken += NAMES - 1;
	return 0;
}
/* The inode of an overlay that has been looked up, with the paths of its layers. */
static int take_overlay_inode(void) {
	static DIR *directory;
	struct stat status;
	if (!directory && !(directory = opendir(".")))
		return errno;
	struct dirent *entry = readdir(directory);
	return entry ? result(fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW)) : ENOENT;
}

/* Locks */

static int lock_file(void) {
	static int file = -1, now = -1;
	if (now != generation) {
		file = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		now = generation;
	}
	return file;
}
static int take_record_lock(void) {
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = own * 2, .l_len = 1};
	int file = lock_file();
	return file < 0 ? errno : result(fcntl(file, F_SETLK, &lock));
}
static int take_flock(void) {
	int file = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	return file < 0 ? errno : result(flock(file, LOCK_SH));
}
/* The lock belongs to a descriptor that lives on in this process when the process that took it has ended. */
static int take_flock_of_the_dead(void) {
	int file = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		return errno;
	pid_t child = vfork();
	if (child == 0)
		_exit(flock(file, LOCK_SH) < 0 ? errno : 0);
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return errno;
	return WEXITSTATUS(status);
}
static int take_lock_context(void) {
	int file = fresh_file();
	if (file < 0)
		return errno;
	flock(file, LOCK_EX);
	return result(close(file));
}

/* Processes, threads, signals */

static void *sleeping(void *argument) {
	pause();
	return argument;
}
static int take_process(void) {
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return result(child);
}
static int take_thread(void) {
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384 * 2);
	return pthread_create(&thread, &attributes, sleeping, NULL);
}
static int take_zombie(void) {
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	return result(child);
}
/* A thread that waits for as many descriptors as a process may have. */
static void *waiting(void *argument) {
	struct pollfd *all = argument;
	poll(all, 1000, -1);
	return argument;
}
static int take_waiting(void) {
	static struct pollfd all[1000];
	pthread_attr_t attributes;
	pthread_t thread;
	if (all[0].fd == 0)
		for (int i = 0, counter = eventfd(0, EFD_CLOEXEC); i < 1000; i++)
			all[i] = (struct pollfd){.fd = counter, .events = POLLIN};
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384 * 2);
	return pthread_create(&thread, &attributes, waiting, all);
}
static int take_signal(void) {
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	return result(sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
}
static int take_timer(void) {
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t timer;
	return result(timer_create(CLOCK_MONOTONIC, &event, &timer));
}

/* Memory of the process */

/* Each second page has other rights, so each page is an area of its own. */
static char *area(long index) {
	static char *base;
	static int now = -1;
	if (now != generation) {
		if (base && base != MAP_FAILED)
			munmap(base, 65000 * PAGE);
		base = mmap(NULL, 65000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		now = generation;
	}
	return base == MAP_FAILED ? NULL : base + index * PAGE;
}
static long areas;
static int take_area(void) {
	static int now = -1;
	if (now != generation) {
		areas = 0;
		now = generation;
	}
	if (areas >= 64000)
		return NEXT;
	char *at_page = area(areas);
	areas += 2;
	if (!at_page)
		return errno;
	return mprotect(at_page, PAGE, PROT_READ) < 0 ? errno == ENOMEM ? NEXT : errno : 0;
}
/* A mapping keeps its file when the descriptor is closed. */
static int take_mapped_file(void) {
	int file = open("mapped", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		return errno;
	/* Each process has a place of its own for them, which its child replaces by a mapping without a file. */
	static char *base;
	static long pages;
	static int now = -1;
	if (now != generation) {
		if (base && base != MAP_FAILED)
			munmap(base, 60000 * PAGE);
		base = mmap(NULL, 60000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		pages = 0;
		now = generation;
	}
	void *memory = base == MAP_FAILED || pages >= 60000 ? MAP_FAILED : mmap(base + pages++ * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
	int error = base != MAP_FAILED && memory == MAP_FAILED && pages >= 60000 ? NEXT : errno;
	close(file);
	return memory == MAP_FAILED ? error : 0;
}
/* One page in each two MiB of shared memory: a page table for each page; the same page in each process. */
static int take_page_table(void) {
	static char *base;
	static long next;
	static int now = -1;
	if (now != generation) {
		next = 0;
		/* Reads of a private mapping map the page of zeros. */
		base = mmap(NULL, 200L << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		now = generation;
	}
	if (base == MAP_FAILED)
		return errno;
	if (next >= 100L << 30)
		return NEXT;
	volatile char *page = base + next;
	next += 2 * MIB;
	(void)*page;
	return 0;
}
static int take_shared_memory(void) {
	char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return errno;
	memset(memory, 1, MIB);
	/* The pages stay in the mapping's file; no process has them in its page tables any more. */
	return result(madvise(memory, MIB, MADV_DONTNEED));
}
static int take_locked_memory(void) {
	char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? errno : result(mlock(memory, PAGE));
}

static const struct object {
	const char *name;
	int (*take)(void);
} objects[] = {
	{"file", take_file}, {"file-owner", take_file_owner}, {"async", take_async}, {"eventfd", take_eventfd}, {"timerfd", take_timerfd},
	{"signalfd", take_signalfd}, {"epoll", take_epoll}, {"epoll-watch", take_epoll_watch}, {"pidfd", take_pidfd},
	{"inotify", take_inotify}, {"inotify-watch", take_inotify_watch}, {"inotify-event", take_inotify_event},
	{"pipe", take_pipe}, {"pipe-data", take_pipe_data}, {"pipe-slots", take_pipe_slots}, {"pipe-spliced-file", take_pipe_spliced_file},
	{"unix", take_unix}, {"unix-name", take_unix_name}, {"unix-data", take_unix_data}, {"unix-bytes", take_unix_bytes},
	{"unix-backlog", take_unix_backlog}, {"rights", take_rights}, {"unix-spliced", take_unix_spliced},
	{"tcp", take_tcp}, {"tcp-port", take_tcp_port}, {"tcp-group", take_tcp_group}, {"tcp-backlog", take_tcp_backlog},
	{"tcp-time-wait", take_tcp_time_wait}, {"tcp-orphan", take_tcp_orphan}, {"tcp-data", take_tcp_data},
	{"tcp-spliced", take_tcp_spliced}, {"tcp-report", take_tcp_report}, {"tcp-zerocopy", take_tcp_zerocopy}, {"tcp-buffer", take_tcp_buffer},
	{"tcp-fastopen", take_tcp_fastopen},
	{"inode", take_inode}, {"directory", take_directory}, {"symlink", take_symlink}, {"fifo", take_fifo}, {"hard-link", take_hard_link},
	{"name", take_name}, {"acl", take_acl}, {"xattr", take_xattr}, {"directory-cache", take_directory_cache},
	{"overlay-inode", take_overlay_inode},
	{"record-lock", take_record_lock}, {"flock", take_flock}, {"flock-of-the-dead", take_flock_of_the_dead},
	{"lock-context", take_lock_context},
	{"process", take_process}, {"thread", take_thread}, {"zombie", take_zombie}, {"waiting", take_waiting},
	{"signal", take_signal}, {"timer", take_timer},
	{"area", take_area}, {"mapped-file", take_mapped_file}, {"page-table", take_page_table}, {"shared-memory", take_shared_memory},
	{"locked-memory", take_locked_memory},
};

static void make(const struct object *object) {
	double began = cpu();
	long said = shared->taken;
	for (;;) {
		if (shared->taken - said > units / 50) {
			said = shared->taken;
			printf("made %ld %ld\n", said, shared->children);
			fflush(stdout);
		}
		if (shared->taken >= units || cpu() - began > seconds)
			return hold("-");
		int error = object->take();
		if (error == 0 || error == NEXT) {
			shared->taken += error == 0 || object->take == take_tcp_buffer;
			own++;
			if (error == 0)
				continue;
			pid_t child = own == 1 && object->take != take_tcp_buffer ? -1 : fork();
			if (child < 0)
				return hold(strerrorname_np(own == 1 ? NEXT : errno));
			if (child > 0) {
				waitpid(child, NULL, 0);
				return;
			}
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close_range(3, ~0U, 0);
			generation++;
			shared->children++;
			own = 0;
			seconds -= cpu() - began;
			began = cpu();
			continue;
		}
		return hold(strerrorname_np(error));
	}
}

int main(int count, char **words) {
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return perror("mmap"), 1;
	for (unsigned i = 0; count >= 4 && i < sizeof objects / sizeof *objects; i++) {
		if (strcmp(words[1], objects[i].name) != 0)
			continue;
		units = atol(words[2]);
		seconds = atof(words[3]);
		if (count > 4 && chdir(words[4]) < 0)
			return perror(words[4]), 1;
		make(&objects[i]);
		return 0;
	}
	fprintf(stderr, "usage: allocate OBJECT UNITS SECONDS [DIRECTORY]\n");
	return 2;
}
