// Runs checks natively: `posix_driver LIBRARY FUNCTION once|both`. `both` calls the function on the
// first thread and then on another one.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *start(void *check)
{
	((void (*)(void))check)();
	return NULL;
}

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	void *library = dlopen(arguments[1], RTLD_NOW);
	void *check = library ? dlsym(library, arguments[2]) : NULL;
	if (!check) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	start(check);
	pthread_t thread;
	if (strcmp(arguments[3], "both") == 0)
		return pthread_create(&thread, NULL, start, check) || pthread_join(thread, NULL);
	return 0;
}
