// Runs checks natively: `posix_driver LIBRARY FUNCTION once|other|both`. `once` calls the function
// on the first thread, `other` on another one, `both` on each. As `posix_driver inherited` it says
// what a program inherits.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void *start(void *check)
{
	((void (*)(void))check)();
	return NULL;
}

static int say_what_is_inherited(int count)
{
	char line[200], folder[200];
	FILE *says = fopen(getenv("CHECK_SAYS"), "a"), *status = fopen("/proc/self/status", "r");
	if (!says || !status)
		return 1;
	while (fgets(line, sizeof line, status)) {
		char *keys[] = { "SigPnd", "ShdPnd", "SigBlk", "Uid", "Gid", "Groups",
				 "NoNewPrivs", "Seccomp" };
		if (!strncmp(line, "SigIgn", 6)) // Two are libc's own.
			fprintf(says, "SigIgn %llx\n", strtoull(line + 8, NULL, 16) & ~(3ULL << 31));
		for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
			if (!strncmp(line, keys[i], strlen(keys[i])))
				fputs(line, says);
	}
	fputs("descriptors", says);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != fileno(says) && fd != fileno(status) && fcntl(fd, F_GETFD) >= 0)
			fprintf(says, " %d", fd);
	cpu_set_t cpus;
	struct rlimit core, files;
	if (getrlimit(RLIMIT_CORE, &core) || getrlimit(RLIMIT_NOFILE, &files))
		return 1;
	sched_getaffinity(0, sizeof cpus, &cpus);
	fprintf(says, "\n%d arguments, folder %s, umask %o, limits %ld %ld %ld %ld\n", count,
		getcwd(folder, sizeof folder), umask(0), (long)core.rlim_cur, (long)core.rlim_max,
		(long)files.rlim_cur, (long)files.rlim_max);
	fprintf(says, "nicer by %d, CPUs %d, policy %d, leads %d %d, terminal %d\n",
		getpriority(PRIO_PROCESS, 0) - atoi(getenv("CHECK_NICE")), CPU_COUNT(&cpus),
		sched_getscheduler(0), getsid(0) == getpid(), getpgid(0) == getpid(), isatty(1));
	return fclose(says);
}

int main(int count, char **arguments)
{
	if (count >= 2 && strcmp(arguments[1], "inherited") == 0)
		return say_what_is_inherited(count);
	if (count != 4)
		return 2;
	void *library = dlopen(arguments[1], RTLD_NOW);
	void *check = library ? dlsym(library, arguments[2]) : NULL;
	if (!check) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	pthread_t thread;
	if (strcmp(arguments[3], "other") != 0)
		start(check);
	if (strcmp(arguments[3], "once") != 0)
		return pthread_create(&thread, NULL, start, check) || pthread_join(thread, NULL);
	return 0;
}
