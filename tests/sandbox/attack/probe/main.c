/*
 * `probe NAME [ARGUMENT ...]` makes one attempt and prints one line: `ok`, an errno's
 * name, or an observation that the attempt prints itself. SIGALRM ends it after 30 seconds.
 */
#include "probe.h"

int said(const char *text) {
	puts(text);
	return SAID;
}

int enter_fresh(const char *base) {
	char path[4096];
	snprintf(path, sizeof path, "%s/probe-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(path) && !chdir(path) ? 0 : errno;
}

int main(int count, char **arguments) {
	const struct attempt *topics[] = {files, processes, network, namespaces,
					  mounts, kernel, resources, uncounted, sharing};
	(void)count;
	alarm(30);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!arguments[0] || !arguments[1])
		return 2;
	for (unsigned i = 0; i < sizeof topics / sizeof *topics; i++)
		for (const struct attempt *one = topics[i]; one->name; one++)
			if (!strcmp(one->name, arguments[1])) {
				int result = one->run(arguments + 2);
				if (result != SAID)
					puts(result ? strerrorname_np(result) : "ok");
				return 0;
			}
	fprintf(stderr, "no attempt named %s\n", arguments[1]);
	return 2;
}
