/* The limit of time that the test has set for this program: children of a fork start without it. */
#pragma once
#include <sys/time.h>

static struct itimerval limit;

__attribute__((constructor)) static void note_limit(void)
{
	getitimer(ITIMER_REAL, &limit);
}

/* Gives a child the limit that its program had at the start. */
static void limit_child(void)
{
	setitimer(ITIMER_REAL, &limit, NULL);
}
