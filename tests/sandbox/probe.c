/*
 * Tries what a guest must not be able to do, and says what came of it.
 *
 * `probe syscalls` prints one line per attempt: name and errno, 0 for success.
 * `probe int80` enters the kernel through the 32-bit table.
 * `probe x32` uses the x32 variant of a call.
 * `probe abstract NAME` connects to an abstract unix socket.
 * `probe signal PID` sends signal 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(int (*attempt)(void)) {
	pid_t pid = fork();
	int status;
	if (pid == 0)
		_exit(attempt());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 255;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int answer(long result) { return result < 0 ? errno : 0; }

static int try_unshare(void) { return answer(unshare(CLONE_NEWUSER)); }
static int try_clone(void) {
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return answer(pid);
}
static int try_clone3(void) {
	unsigned long long args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
	long pid = syscall(SYS_clone3, args, sizeof args);
	if (pid == 0)
		_exit(0);
	return answer(pid);
}
static int try_netlink(void) { return answer(socket(16, SOCK_RAW, 0)); }
static int try_memfd(void) { return answer(syscall(SYS_memfd_create, "x", 0)); }
static int try_ptrace(void) { return answer(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
static int try_keyctl(void) { return answer(syscall(SYS_keyctl, 0, -3, 1)); }
static int try_personality(void) { return answer(syscall(SYS_personality, 0x0040000)); }
static int try_personality_query(void) { return answer(syscall(SYS_personality, 0xffffffff)); }
static int try_vm_readv(void) {
	char from[4] = "abc", to[4];
	struct iovec local = {to, 4}, remote = {from, 4};
	return answer(syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0));
}
static int try_kcmp(void) { return answer(syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0)); }
static int try_shmget(void) {
	long id = syscall(SYS_shmget, 0, 4096, 0600 | 01000);
	if (id >= 0)
		syscall(SYS_shmctl, id, 0, 0);
	return answer(id);
}
static int try_handle(void) {
	struct { unsigned bytes; int type; char room[128]; } handle = {128, 0, {0}};
	int mount;
	return answer(syscall(SYS_name_to_handle_at, -100, "/usr", &handle, &mount, 0));
}
static int try_device(void) {
	char name[] = "/tmp/probe-device-XXXXXX";
	if (!mkdtemp(name) || chdir(name))
		return 255;
	/* Device 0:0 is what every user may make: an overlay's whiteout. */
	int result = answer(syscall(SYS_mknodat, -100, "d", 020600, 0));
	unlink("d");
	rmdir(name);
	return result;
}
static int try_fifo(void) {
	char name[] = "/tmp/probe-fifo-XXXXXX";
	if (!mkdtemp(name) || chdir(name))
		return 255;
	int result = answer(syscall(SYS_mknodat, -100, "f", 010600, 0));
	unlink("f");
	rmdir(name);
	return result;
}
static int try_unix(void) { return answer(socket(AF_UNIX, SOCK_STREAM, 0)); }
static int try_inet(void) { return answer(socket(AF_INET, SOCK_STREAM, 0)); }
static int try_inet6(void) { return answer(socket(AF_INET6, SOCK_STREAM, 0)); }

static const struct { const char *name; int (*attempt)(void); } attempts[] = {
	{"unshare", try_unshare}, {"clone", try_clone}, {"clone3", try_clone3},
	{"netlink", try_netlink}, {"memfd", try_memfd}, {"ptrace", try_ptrace},
	{"keyctl", try_keyctl}, {"personality", try_personality},
	{"personality-query", try_personality_query}, {"vm_readv", try_vm_readv},
	{"kcmp", try_kcmp}, {"shmget", try_shmget}, {"handle", try_handle},
	{"device", try_device}, {"fifo", try_fifo}, {"unix", try_unix},
	{"inet", try_inet}, {"inet6", try_inet6},
};

int main(int argc, char **argv) {
	if (argc > 1 && !strcmp(argv[1], "syscalls")) {
		for (unsigned i = 0; i < sizeof attempts / sizeof *attempts; i++)
			printf("%s %d\n", attempts[i].name, child(attempts[i].attempt));
		return 0;
	}
#ifdef __x86_64__
	if (argc > 1 && !strcmp(argv[1], "int80")) {
		long result;
		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
		printf("%s\n", result == getpid() ? "same" : "other");
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "x32")) {
		printf("%d\n", answer(syscall(0x40000000 | 39)));
		return 0;
	}
#endif
	if (argc > 2 && !strcmp(argv[1], "abstract")) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		strncpy(address.sun_path + 1, argv[2], sizeof address.sun_path - 2);
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		socklen_t size = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[2]);
		printf("%d\n", answer(connect(fd, (void *)&address, size)));
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "signal")) {
		printf("%d\n", answer(kill(atoi(argv[2]), 0)));
		return 0;
	}
	return 2;
}
