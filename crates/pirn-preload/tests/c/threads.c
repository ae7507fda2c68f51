/* Makes threads that block, and says how many threads the kernel knows meanwhile. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 100 };

static int pipes[2];

/* `read`, by its address: in a program that is not position-independent that is the address of an
 * entry of the program's own jump table, for all. */
static ssize_t (*volatile reader)(int, void *, size_t);

static void *start(void *number)
{
	char byte;
	if (reader(pipes[0], &byte, 1) != 1)
		abort();
	return number;
}

static int kernel_threads(void)
{
	char line[256];
	int number = -1;
	FILE *file = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "Threads: %d", &number) == 1)
			break;
	fclose(file);
	return number;
}

static size_t stack_size(void)
{
	pthread_attr_t attributes;
	size_t size;
	pthread_getattr_default_np(&attributes);
	pthread_attr_getstacksize(&attributes, &size);
	return size;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	reader = read;
	if (pipe(pipes) != 0)
		return 1;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, start, (void *)i) != 0)
			return 2;
	int known = kernel_threads();
	for (int i = 0; i < THREADS; i++)
		if (write(pipes[1], "x", 1) != 1)
			return 3;
	for (long i = 0; i < THREADS; i++) {
		void *result;
		if (pthread_join(threads[i], &result) != 0 || result != (void *)i)
			return 4;
	}
	printf("%s, stacks of %zu KiB\n", known > THREADS ? "platform" : "virtual", stack_size() >> 10);
	fflush(stdout);
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 0;
}
