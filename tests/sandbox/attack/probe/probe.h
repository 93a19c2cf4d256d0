/*
 * One attempt is one function. It returns 0 when the attempt succeeded, an errno when
 * it was refused, or SAID after it printed its own one-line observation.
 */
#ifndef PROBE_H
#define PROBE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAID (-1)

struct attempt {
	const char *name;
	int (*run)(char **arguments);
};

/* One list of attempts per topic; an empty entry ends each list. */
extern const struct attempt files[], processes[], network[], namespaces[], mounts[], kernel[], sharing[],
	resources[], uncounted[];

/* Converts the result of a system call to the result of an attempt: 0 or errno. */
static inline int answer(long result) { return result < 0 ? errno : 0; }
/* Converts an argument to a number; 0 if it is missing. */
static inline long number(const char *text) { return text ? strtol(text, NULL, 0) : 0; }
/* Prints an observation that is not an errno. */
int said(const char *text);
/* Creates and enters a new directory below `base`, or below /tmp if `base` is empty. */
int enter_fresh(const char *base);

/* System calls that older kernel headers do not define. */
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#endif
