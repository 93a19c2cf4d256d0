/*
 * What a hostile native program tries first: read a secret of the host, open a socket to its loopback
 * interface, start another process, and write outside its directory. Prints one line for each, so that
 * a case can compare a run inside a wrapper with one outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, int worked)
{
	printf("%s %s\n", what, worked ? "yes" : strerror(errno));
	fflush(stdout);
}

/* Usage: probe PORT OUTSIDE WORK SECRET */
int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	char byte;
	int fd = open(argv[4], O_RDONLY);
	say("secret", fd >= 0 && read(fd, &byte, 1) == 1);

	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	fd = socket(AF_INET, SOCK_STREAM, 0);
	say("socket", fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);

	/* `parent` is yes if this process sees its parent; the first process of a pid namespace sees none. */
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	say("fork", child > 0 && waitpid(child, NULL, 0) == child);
	say("parent", getppid() > 0);

	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	say("outside", fd >= 0 && write(fd, "x", 1) == 1);

	char path[4096];
	snprintf(path, sizeof(path), "%s/made", argv[3]);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	say("work", fd >= 0 && write(fd, "x", 1) == 1);
	return 0;
}
