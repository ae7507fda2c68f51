/* A library whose constructor starts threads, and a function of which waits for them: the loading
 * thread has the dynamic linker's lock in the constructor. With -DLIBRARY it is that library, with
 * -DWAITS as well one whose constructor waits; without, the program that loads it: `constructors LIBRARY first|later [COPY...]`, before the first
 * thread of the program or after it, and then copies, each with thread-local data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef LIBRARY
enum { MANY = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static __thread int runs;
static pthread_t threads[MANY];
static int arrived, virtually, destroyed;

static void destroy(void *value)
{
	free(value);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

/* Functions of all kinds for the first time in this process. */
static void *work(void *unused)
{
	char text[64] = "";
	int ends[2], file = open("/proc/self/comm", O_RDONLY);
	struct pollfd entry;
	sigset_t set;

	(void)unused;
	if (file < 0 || read(file, text, sizeof text) <= 0 || close(file) != 0 || pipe(ends) != 0)
		abort();
	entry = (struct pollfd){.fd = ends[0], .events = POLLIN};
	if (poll(&entry, 1, 5) != 0 || write(ends[1], text, 1) != 1 || poll(&entry, 1, -1) != 1)
		abort();
	close(ends[0]);
	close(ends[1]);
	sigemptyset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_setname_np(pthread_self(), "worker");
	pthread_setspecific(key, strdup(text));
	usleep(1000);
	pthread_mutex_lock(&mutex);
	virtually += gettid() >= 1 << 22;
	arrived += ++runs;
	pthread_cond_broadcast(&moved);
	while (arrived < MANY)
		pthread_cond_wait(&moved, &mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void join(void)
{
	pthread_mutex_lock(&mutex);
	while (arrived < MANY)
		pthread_cond_wait(&moved, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
}

__attribute__((constructor)) static void begin(void)
{
	pthread_key_create(&key, destroy);
	for (int i = 0; i < MANY; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			abort();
#ifdef WAITS
	join();
#endif
}

void finish(void)
{
#ifndef WAITS
	join();
#endif
	printf("%d virtual, %d ended\n", virtually, destroyed);
}
#else
static void *nothing(void *unused)
{
	return unused;
}

int main(int count, char **arguments)
{
	void *library;
	void (*finish)(void);
	pthread_t thread;

	if (count < 3)
		return 2;
	if (strcmp(arguments[2], "later") == 0) {
		pthread_create(&thread, NULL, nothing, NULL);
		pthread_join(thread, NULL);
	}
	library = dlopen(arguments[1], RTLD_NOW);
	finish = library == NULL ? NULL : dlsym(library, "finish");
	if (finish == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	finish();
	for (int i = 3; i < count; i++)
		if (dlopen(arguments[i], RTLD_NOW) == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	return 0;
}
#endif
