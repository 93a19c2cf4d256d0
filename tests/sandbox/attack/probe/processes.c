/* Attempts to affect or read another process: by pid, by pidfd, through its memory. */
#include "probe.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char marker[16] = "marker-of-target";

/* Target process of the other attempts: prints its pid and the address of `marker`, then waits. */
static int be_target(char **arguments) {
	(void)arguments;
	alarm(0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	printf("%d %lu\n", getpid(), (unsigned long)marker);
	/* Ends when the process at the other end of standard input ends. */
	char byte;
	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
}

static int try_signal(char **arguments) { return answer(kill(number(arguments[0]), 0)); }
static int try_tgkill(char **arguments) {
	return answer(syscall(SYS_tgkill, number(arguments[0]), number(arguments[0]), 0));
}
static int try_sigqueue(char **arguments) {
	return answer(sigqueue(number(arguments[0]), 0, (union sigval){0}));
}
static int try_pidfd_open(char **arguments) {
	return answer(syscall(SYS_pidfd_open, number(arguments[0]), 0));
}
static int try_pidfd_signal(char **arguments) {
	int fd = syscall(SYS_pidfd_open, number(arguments[0]), 0);
	return fd < 0 ? errno : answer(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}
static int try_pidfd_getfd(char **arguments) {
	int fd = syscall(SYS_pidfd_open, number(arguments[0]), 0);
	return fd < 0 ? errno : answer(syscall(SYS_pidfd_getfd, fd, 0, 0));
}
static int try_ptrace(char **arguments) {
	return answer(ptrace(PTRACE_SEIZE, number(arguments[0]), 0, 0));
}
static int try_vm_readv(char **arguments) {
	char to[6] = "";
	struct iovec local = {to, 6}, remote = {(void *)number(arguments[1]), 6};
	if (syscall(SYS_process_vm_readv, number(arguments[0]), &local, 1, &remote, 1, 0) < 0)
		return errno;
	return memcmp(to, marker, 6) ? EIO : 0;
}
static int try_vm_writev(char **arguments) {
	struct iovec local = {marker, 6}, remote = {(void *)number(arguments[1]), 6};
	return answer(syscall(SYS_process_vm_writev, number(arguments[0]), &local, 1, &remote, 1, 0));
}
static int try_mem(char **arguments) {
	char byte;
	int fd = open(arguments[0], O_RDWR);
	if (fd < 0)
		return errno;
	return pread(fd, &byte, 1, number(arguments[1])) == 1 ? 0 : errno;
}
static int try_prlimit(char **arguments) {
	struct rlimit limit;
	pid_t pid = number(arguments[0]);
	if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit))
		return errno;
	return answer(prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
}
static int try_affinity(char **arguments) {
	cpu_set_t set;
	if (sched_getaffinity(number(arguments[0]), sizeof set, &set))
		return errno;
	return answer(sched_setaffinity(number(arguments[0]), sizeof set, &set));
}
static int try_priority(char **arguments) {
	errno = 0;
	int value = getpriority(PRIO_PROCESS, number(arguments[0]));
	return errno ? errno : answer(setpriority(PRIO_PROCESS, number(arguments[0]), value));
}
static int try_ioprio(char **arguments) {
	return answer(syscall(SYS_ioprio_set, 1, number(arguments[0]), (2 << 13) | 4));
}
static int try_madvise(char **arguments) {
	struct iovec range = {(void *)(number(arguments[1]) & ~4095L), 4096};
	int fd = syscall(SYS_pidfd_open, number(arguments[0]), 0);
	return fd < 0 ? errno : answer(syscall(SYS_process_madvise, fd, &range, 1, MADV_COLD, 0));
}
static int try_migrate(char **arguments) {
	unsigned long node = 1;
	return answer(syscall(SYS_migrate_pages, number(arguments[0]), 2, &node, &node));
}
static int try_kcmp(char **arguments) {
	return answer(syscall(SYS_kcmp, number(arguments[0]), number(arguments[0]), 1, 0, 0));
}

/* Makes the attempt on a child of this process, which it may control: only a filter can refuse. */
static int on_child(int (*attempt)(char **)) {
	char pid[16], address[24];
	char *arguments[] = {pid, address, NULL};
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	snprintf(pid, sizeof pid, "%d", child);
	snprintf(address, sizeof address, "%lu", (unsigned long)marker);
	int result = attempt(arguments);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return result;
}
static int try_ptrace_child(char **a) { (void)a; return on_child(try_ptrace); }
static int try_getfd_child(char **a) { (void)a; return on_child(try_pidfd_getfd); }
static int try_readv_child(char **a) { (void)a; return on_child(try_vm_readv); }
static int try_writev_child(char **a) { (void)a; return on_child(try_vm_writev); }
static int try_kcmp_child(char **a) { (void)a; return on_child(try_kcmp); }

/* Reads the file of the first argument and tests whether it contains the text of the second. */
static int try_grep(char **arguments) {
	static char text[1 << 20];
	int fd = open(arguments[0], O_RDONLY);
	if (fd < 0)
		return errno;
	ssize_t size = read(fd, text, sizeof text);
	if (size < 0)
		return errno;
	return memmem(text, size, arguments[1], strlen(arguments[1])) ? 0 : said("absent");
}

/* Tests whether any descriptor besides the three standard ones is open. */
static int try_descriptors(char **arguments) {
	(void)arguments;
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	return said("none");
}
static int try_environment(char **arguments) {
	return getenv(arguments[0]) ? 0 : said("absent");
}

/* Writes to a mapped file through /proc/self/mem, which ignores the protection of the mapping. On a
 * private mapping this changes only a private copy. */
static int try_self_mem(char **arguments) {
	char seen = 0;
	int file = open(arguments[0], O_RDWR), flags = MAP_SHARED;
	int memory = open("/proc/self/mem", O_RDWR);
	if (file < 0) {
		file = open(arguments[0], O_RDONLY);
		flags = MAP_PRIVATE;
	}
	if (file < 0 || memory < 0)
		return errno;
	char *page = mmap(NULL, 1, flags == MAP_SHARED ? PROT_READ | PROT_WRITE : PROT_READ, flags, file, 0);
	if (page == MAP_FAILED || pwrite(memory, "!", 1, (off_t)(long)page) != 1)
		return errno;
	if (pread(file, &seen, 1, 0) != 1)
		return errno;
	return seen == '!' ? 0 : said("private copy");
}

/* Forks twice, leaves the session, ignores every signal and lives for 40 seconds. */
static int be_daemon(char **arguments) {
	int ready[2];
	char byte;
	if (pipe(ready))
		return errno;
	if (fork() == 0) {
		setsid();
		if (fork() > 0)
			_exit(0);
		for (int signal_number = 1; signal_number < 65; signal_number++)
			signal(signal_number, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, 0);
		prctl(PR_SET_NAME, arguments[0] ? arguments[0] : "daemon");
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		sleep(40);
		_exit(0);
	}
	wait(NULL);
	return read(ready[0], &byte, 1) == 1 ? 0 : EIO;
}

const struct attempt processes[] = {
	{"target", be_target}, {"daemon", be_daemon}, {"grep", try_grep},
	{"descriptors", try_descriptors}, {"environment", try_environment},
	{"self-mem", try_self_mem},
	{"signal", try_signal}, {"tgkill", try_tgkill}, {"sigqueue", try_sigqueue},
	{"pidfd-open", try_pidfd_open}, {"pidfd-signal", try_pidfd_signal},
	{"pidfd-getfd", try_pidfd_getfd}, {"pidfd-getfd-child", try_getfd_child},
	{"ptrace", try_ptrace}, {"ptrace-child", try_ptrace_child},
	{"vm-readv", try_vm_readv}, {"vm-readv-child", try_readv_child},
	{"vm-writev", try_vm_writev}, {"vm-writev-child", try_writev_child}, {"mem", try_mem},
	{"prlimit", try_prlimit}, {"affinity", try_affinity}, {"priority", try_priority},
	{"ioprio", try_ioprio}, {"madvise", try_madvise}, {"migrate", try_migrate},
	{"kcmp-child", try_kcmp_child}, {0, 0},
};
