/* System calls that change or reveal kernel state (modules, BPF, keys, clocks, host name, terminals,
 * IPC), and calls through other system call tables. */
#include "probe.h"
#include <sys/sysinfo.h>
#include <time.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#define ATTEMPT(name, expression)                                                                  \
	static int name(char **arguments) {                                                        \
		(void)arguments;                                                                   \
		return answer(expression);                                                         \
	}

static int try_io_uring(char **arguments) {
	char parameters[120] = {0};
	(void)arguments;
	return answer(syscall(SYS_io_uring_setup, 1, parameters));
}
static int try_bpf(char **arguments) {
	union bpf_attr map = {0};
	(void)arguments;
	map.map_type = BPF_MAP_TYPE_ARRAY;
	map.key_size = map.value_size = 4;
	map.max_entries = 1;
	return answer(syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
}
static int try_perf(char **arguments) {
	struct perf_event_attr event = {0};
	(void)arguments;
	event.type = PERF_TYPE_SOFTWARE;
	event.size = sizeof event;
	event.config = PERF_COUNT_SW_CPU_CLOCK;
	event.exclude_kernel = 1;
	return answer(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}
ATTEMPT(try_userfaultfd, syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY))
ATTEMPT(try_add_key, syscall(SYS_add_key, "user", "attack", "x", 1, -2))
/* Requests a key that does not exist. If the call is allowed, its error is not EPERM but ENOKEY. */
ATTEMPT(try_request_key, syscall(SYS_request_key, "user", "attack-none", NULL, 0))
ATTEMPT(try_keyctl, syscall(SYS_keyctl, 0, -3, 1))
ATTEMPT(try_personality, syscall(SYS_personality, 0x0040000))
ATTEMPT(try_personality_query, syscall(SYS_personality, 0xffffffff))
ATTEMPT(try_memfd, syscall(SYS_memfd_create, "x", 0))
/* A kernel without page merging (KSM) answers EINVAL. */
static int try_mergeable(char **arguments) {
	(void)arguments;
	void *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pages == MAP_FAILED ? errno : answer(madvise(pages, 1 << 20, MADV_MERGEABLE));
}
/* socket-filter OPTION: sets the option on a socket. SO_ATTACH_FILTER is tried on a unix socket, which
 * a guest may create at both levels. */
static int try_socket_filter(char **arguments) {
	struct sock_filter all = {0x06, 0, 0, ~0u};
	struct sock_fprog filter = {1, &all};
	int ends[2], option = (int)number(arguments[0]);
	if (option == SO_ATTACH_FILTER ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : (ends[0] = socket(AF_INET, SOCK_STREAM, 0)) < 0)
		return errno;
	int on = 1;
	setsockopt(ends[0], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	return answer(setsockopt(ends[0], SOL_SOCKET, option, &filter, sizeof filter));
}
/* On a host that has reserved no huge pages, the error is ENOMEM. */
static int try_huge_pages(char **arguments) {
	(void)arguments;
	void *pages = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	return pages == MAP_FAILED ? errno : 0;
}
ATTEMPT(try_memfd_secret, syscall(SYS_memfd_secret, 0))
/* Only asks whether a filter action is available (operation 2). The call must be refused, because a
 * filter installed before a set-uid program could make that program fail in unexpected ways. */
ATTEMPT(try_seccomp, syscall(SYS_seccomp, 2, 0, (unsigned[1]){0}))
ATTEMPT(try_init_module, syscall(SYS_init_module, "x", 1, ""))
ATTEMPT(try_finit_module, syscall(SYS_finit_module, 0, "", 0))
ATTEMPT(try_delete_module, syscall(SYS_delete_module, "attack_none", O_NONBLOCK))
ATTEMPT(try_syslog, syscall(SYS_syslog, 10, 0, 0))
/* `sync` cannot fail, so its result does not show whether the kernel executed it. A filter that only
 * pretends success treats `syncfs` alike, and an executed `syncfs` fails with EBADF for -1. */
static int try_sync(char **arguments) {
	(void)arguments;
	if (syscall(SYS_sync))
		return errno;
	return syscall(SYS_syncfs, -1) ? 0 : said("ignored");
}
ATTEMPT(try_syncfs, syscall(SYS_syncfs, open("/", O_RDONLY)))
ATTEMPT(try_fanotify, syscall(SYS_fanotify_init, 0x200, 0))
ATTEMPT(try_hostname, sethostname("attacked", 8))
ATTEMPT(try_domainname, setdomainname("attacked", 8))
/* The magic numbers are wrong, so nothing restarts; the kernel checks the capability before them. */
ATTEMPT(try_reboot, syscall(SYS_reboot, 0, 0, 0, 0))
ATTEMPT(try_rt, sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}))
ATTEMPT(try_nice, setpriority(PRIO_PROCESS, 0, -10))
ATTEMPT(try_setuid, syscall(SYS_setresuid, 0, 0, 0))
ATTEMPT(try_setgroups, syscall(SYS_setgroups, 1, (unsigned[1]){0}))
ATTEMPT(try_mempolicy, syscall(SYS_set_mempolicy, 0, 0, 0))
ATTEMPT(try_vmsplice, syscall(SYS_vmsplice, 1, &(struct { void *a; size_t b; }){"", 0}, 1, 0))
ATTEMPT(try_shmget, syscall(SYS_shmget, 0, 4096, 0600 | 01000))
ATTEMPT(try_shmat, syscall(SYS_shmat, number(arguments[0]), 0, 010000))
ATTEMPT(try_msgctl, syscall(SYS_msgctl, number(arguments[0]), 2, (long[64]){0}))
ATTEMPT(try_semctl, syscall(SYS_semctl, number(arguments[0]), 0, 12, 0))
ATTEMPT(try_mq, syscall(SYS_mq_open, arguments[0], O_RDONLY, 0, 0))
ATTEMPT(try_core_limit, setrlimit(RLIMIT_CORE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}))

/* Sets the clock to its current value: only the permission is tested. */
static int try_clock_settime(char **arguments) {
	struct timespec now;
	(void)arguments;
	clock_gettime(CLOCK_REALTIME, &now);
	return answer(syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
}
static int try_settimeofday(char **arguments) {
	struct timeval now;
	(void)arguments;
	gettimeofday(&now, NULL);
	return answer(syscall(SYS_settimeofday, &now, NULL));
}
static int try_adjtimex(char **arguments) {
	struct timex change = {0};
	(void)arguments;
	adjtimex(&change);
	change.modes = ADJ_TICK;
	return answer(syscall(SYS_adjtimex, &change));
}

#ifdef __x86_64__
ATTEMPT(try_iopl, syscall(SYS_iopl, 3))
ATTEMPT(try_ioperm, syscall(SYS_ioperm, 0x80, 1, 1))
ATTEMPT(try_modify_ldt, syscall(SYS_modify_ldt, 0, (char[8]){0}, 8))
ATTEMPT(try_x32, syscall(0x40000000 | 39))
static int try_int80(char **arguments) {
	long result;
	(void)arguments;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	return result == getpid() ? 0 : ENOSYS;
}
#endif

/* Returns a new pseudo-terminal, which becomes the controlling terminal; standard input if none can
 * be opened. */
static int terminal(void) {
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	if (master < 0)
		return 0;
	setsid();
	unlockpt(master);
	int slave = open(ptsname(master), O_RDWR);
	return slave < 0 ? 0 : slave;
}
static int in_session(long (*attempt)(int)) {
	pid_t pid = fork();
	int status;
	if (pid == 0) {
		long result = attempt(terminal());
		_exit(result < 0 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}
static long type_into(int fd) { return syscall(SYS_ioctl, fd, TIOCSTI, "x"); }
/* The kernel ignores the upper 32 bits of the ioctl number, so a filter must ignore them too. */
static long type_into_high(int fd) { return syscall(SYS_ioctl, fd, TIOCSTI | 1L << 32, "x"); }
static long discipline(int fd) { return syscall(SYS_ioctl, fd, TIOCSETD, (int[1]){0}); }
static long console(int fd) {
	int screen = open("/dev/tty0", O_RDWR | O_NOCTTY);
	return syscall(SYS_ioctl, screen < 0 ? fd : screen, TIOCLINUX, (char[2]){6});
}
static int try_tiocsti(char **a) { (void)a; return in_session(type_into); }
static int try_tiocsti_high(char **a) { (void)a; return in_session(type_into_high); }
static int try_tiocsetd(char **a) { (void)a; return in_session(discipline); }
static int try_tioclinux(char **a) { (void)a; return in_session(console); }

/* Run as a program with a set-uid bit: tests whether it got the uid of root. */
static int try_euid(char **arguments) {
	(void)arguments;
	return geteuid() == 0 ? 0 : said("same user");
}
static int try_capabilities(char **arguments) {
	unsigned header[2] = {0x20080522, 0}, sets[6] = {0};
	(void)arguments;
	syscall(SYS_capget, header, sets);
	return sets[0] | sets[3] ? 0 : said("none");
}
/* Gives a program file the capability CAP_NET_RAW, which every user who runs it then gets. */
static int make_capable(char **arguments) {
	unsigned data[5] = {0x02000001, 1 << 13, 0, 0, 0};
	return answer(setxattr(arguments[0], "security.capability", data, sizeof data, 0));
}
static int try_capset(char **arguments) {
	unsigned header[2] = {0x20080522, 0}, sets[6] = {1 << 21, 1 << 21, 0, 0, 0, 0};
	(void)arguments;
	return answer(syscall(SYS_capset, header, sets));
}

/* Lets a child abort and tests whether the kernel dumped its memory, to a file or to a program. */
static int try_core(char **arguments) {
	int status;
	if (enter_fresh(arguments[0]))
		return errno;
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit limit;
		getrlimit(RLIMIT_CORE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_CORE, &limit);
		abort();
	}
	waitpid(pid, &status, 0);
	return WCOREDUMP(status) ? 0 : said("no dump");
}

/* A core limit of 0 prevents a dump file only; with 1 the kernel also starts no crash handler of the
 * host. */
static int try_core_pipe(char **arguments) {
	struct rlimit limit;
	(void)arguments;
	getrlimit(RLIMIT_CORE, &limit);
	return limit.rlim_max == 1 ? said("never") : 0;
}

/* Tests whether the system has been up at least as long as the argument says, by two system calls. */
static int try_uptime(char **arguments) {
	struct timespec now;
	struct sysinfo told;
	if (clock_gettime(CLOCK_BOOTTIME, &now) || sysinfo(&told))
		return errno;
	return now.tv_sec < number(arguments[0]) || told.uptime < number(arguments[0]) ? said("own") : 0;
}

/* Tests whether the system has as much memory as the argument says, in KiB. */
static int try_memory_size(char **arguments) {
	struct sysinfo told;
	if (sysinfo(&told))
		return errno;
	return told.totalram / 1024 * told.mem_unit == (unsigned long)number(arguments[0]) ? 0 : said("own");
}

const struct attempt kernel[] = {
	{"uptime", try_uptime}, {"memory-size", try_memory_size},
	{"io-uring", try_io_uring}, {"bpf", try_bpf}, {"perf", try_perf},
	{"userfaultfd", try_userfaultfd}, {"add-key", try_add_key},
	{"request-key", try_request_key}, {"keyctl", try_keyctl},
	{"personality", try_personality}, {"personality-query", try_personality_query}, {"memfd", try_memfd},
	{"memfd-secret", try_memfd_secret}, {"huge-pages", try_huge_pages}, {"socket-filter", try_socket_filter}, {"mergeable", try_mergeable}, {"seccomp", try_seccomp},
	{"init-module", try_init_module}, {"finit-module", try_finit_module},
	{"delete-module", try_delete_module}, {"syslog", try_syslog}, {"sync", try_sync},
	{"syncfs", try_syncfs}, {"fanotify", try_fanotify}, {"hostname", try_hostname},
	{"domainname", try_domainname}, {"reboot", try_reboot}, {"rt", try_rt},
	{"nice", try_nice}, {"setuid", try_setuid}, {"setgroups", try_setgroups},
	{"capset", try_capset}, {"mempolicy", try_mempolicy},
	{"vmsplice", try_vmsplice}, {"shmget", try_shmget}, {"shmat", try_shmat},
	{"msgctl", try_msgctl}, {"semctl", try_semctl}, {"mq", try_mq},
	{"core-limit", try_core_limit}, {"core", try_core}, {"core-pipe", try_core_pipe},
	{"clock-settime", try_clock_settime}, {"settimeofday", try_settimeofday},
	{"adjtimex", try_adjtimex},
#ifdef __x86_64__
	{"iopl", try_iopl}, {"ioperm", try_ioperm}, {"modify-ldt", try_modify_ldt},
	{"x32", try_x32}, {"int80", try_int80},
#endif
	{"tiocsti", try_tiocsti}, {"tiocsti-high", try_tiocsti_high},
	{"tiocsetd", try_tiocsetd}, {"tioclinux", try_tioclinux}, {"euid", try_euid},
	{"capabilities", try_capabilities},
	{"make-capable", make_capable}, {0, 0},
};
