/* Attempts to create sockets of families that no guest needs, and to reach servers outside. */
#include "probe.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* socket FAMILY TYPE PROTOCOL, all numbers. */
static int try_socket(char **arguments) {
	return answer(syscall(SYS_socket, number(arguments[0]), number(arguments[1]),
			      arguments[2] ? number(arguments[2]) : 0));
}

static struct sockaddr_in internet(char **arguments) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number(arguments[1]))};
	inet_pton(AF_INET, arguments[0], &address.sin_addr);
	return address;
}

static int try_tcp(char **arguments) {
	struct sockaddr_in address = internet(arguments);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
	socklen_t size = sizeof error;
	if (fd < 0)
		return errno;
	if (!connect(fd, (void *)&address, sizeof address))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	struct pollfd ready = {fd, POLLOUT, 0};
	if (poll(&ready, 1, 2000) != 1)
		return said("silent");
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return error;
}

/* Sends a datagram to a server that answers. */
static int try_udp(char **arguments) {
	struct sockaddr_in address = internet(arguments);
	char byte = 'x';
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (void *)&address, sizeof address) || send(fd, &byte, 1, 0) < 0)
		return errno;
	struct pollfd ready = {fd, POLLIN, 0};
	if (poll(&ready, 1, 20000) != 1)
		return said("silent");
	return answer(recv(fd, &byte, 1, 0));
}

static socklen_t local(struct sockaddr_un *address, const char *name, int abstract) {
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	strncpy(address->sun_path + abstract, name, sizeof address->sun_path - 2);
	return offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + !abstract;
}

static int reach(int fd, const char *name, int abstract) {
	struct sockaddr_un address;
	socklen_t size = local(&address, name, abstract);
	return fd < 0 ? errno : answer(connect(fd, (void *)&address, size));
}

static int try_unix(char **arguments) {
	return reach(socket(AF_UNIX, SOCK_STREAM, 0), arguments[0], 0);
}
static int try_abstract(char **arguments) {
	return reach(socket(AF_UNIX, SOCK_STREAM, 0), arguments[0], 1);
}

/* One end of a datagram pair can send to the path of another socket, without a `socket` call. */
static int try_pair(char **arguments) {
	struct sockaddr_un address;
	socklen_t size = local(&address, arguments[0], 0);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return errno;
	return answer(sendto(pair[0], "x", 1, 0, (void *)&address, size));
}

/* Sets a TCP MD5 key (TCP_MD5SIG, option 14), with which packets of a connection are signed. */
static int try_tcp_key(char **arguments) {
	(void)arguments;
	/* struct tcp_md5sig: an address in 128 bytes, flags, prefix, length of the key, interface, the key. */
	unsigned char key[216] = {AF_INET};
	key[130] = 80;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return fd < 0 ? errno : answer(setsockopt(fd, IPPROTO_TCP, 14, key, sizeof key));
}
/* receive-buffer BYTES: requests a receive buffer of 16 MiB; prints whether the buffer is now larger
 * than BYTES. */
static int try_receive_buffer(char **arguments) {
	int fd = socket(AF_INET, SOCK_STREAM, 0), size = 1 << 24;
	socklen_t length = sizeof size;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, length) || getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length))
		return errno;
	return said(size > number(arguments[0]) ? "raised" : "bounded");
}

/* Gives the loopback interface one more address. */
static int try_address(char **arguments) {
	struct ifreq request = {.ifr_name = "lo:1"};
	struct sockaddr_in address = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return errno;
	inet_pton(AF_INET, arguments[0], &address.sin_addr);
	memcpy(&request.ifr_addr, &address, sizeof address);
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		return errno;
	strcpy(request.ifr_name, "lo");
	ioctl(fd, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP;
	return answer(ioctl(fd, SIOCSIFFLAGS, &request));
}

/* serve NAME PORT: an abstract socket and a TCP server; prints a line when both listen. */
static int be_server(char **arguments) {
	struct sockaddr_un address;
	socklen_t size = local(&address, arguments[0], 1);
	char *host[] = {"127.0.0.1", arguments[1], NULL};
	struct sockaddr_in tcp = internet(host);
	int one = socket(AF_UNIX, SOCK_STREAM, 0), two = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(one, (void *)&address, size) || listen(one, 8) ||
	    bind(two, (void *)&tcp, sizeof tcp) || listen(two, 8))
		return errno;
	alarm(0);
	puts("listening");
	fflush(stdout);
	pause();
	return 0;
}

const struct attempt network[] = {
	{"socket", try_socket}, {"tcp", try_tcp}, {"udp", try_udp}, {"unix", try_unix},
	{"abstract", try_abstract}, {"tcp-key", try_tcp_key}, {"receive-buffer", try_receive_buffer}, {"pair", try_pair}, {"address", try_address},
	{"serve", be_server}, {0, 0},
};
