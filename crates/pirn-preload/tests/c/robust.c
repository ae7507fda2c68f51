// A robust mutex in shared memory, whose owner is a thread of a process that is killed. The first
// argument is ignored.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%d: %s (errno %d)\n", __LINE__, #condition, errno); \
			abort(); \
		} \
	} while (0)

enum { MANY = 20 };

struct shared {
	pthread_mutex_t mutexes[MANY], plain[2]; // recursive, and checking errors
	pthread_rwlock_t lock;
	int ready[2];
};

// Locks all, each type in its ways, and releases the last.
static void *own(void *argument)
{
	struct shared *shared = argument;
	for (int i = 0; i < MANY; i++) {
		CHECK((i % 2 ? pthread_mutex_lock : pthread_mutex_trylock)(&shared->mutexes[i]) == 0);
		int again = pthread_mutex_trylock(&shared->mutexes[i]);
		CHECK(again == (i % 3 == 0 ? 0 : i % 3 == 1 ? EBUSY : EDEADLK) || i % 3 == 2);
		if (i % 3 == 0)
			CHECK(pthread_mutex_unlock(&shared->mutexes[i]) == 0);
	}
	CHECK(pthread_mutex_unlock(&shared->mutexes[MANY - 1]) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_mutex_lock(&shared->plain[i]) == 0);
	CHECK(pthread_rwlock_wrlock(&shared->lock) == 0);
	CHECK(write(shared->ready[1], "x", 1) == 1);
	pause();
	return NULL;
}

static void *be_refused(void *argument)
{
	struct shared *shared = argument;
	CHECK(pthread_mutex_trylock(&shared->mutexes[0]) == EBUSY);
	CHECK(pthread_mutex_unlock(&shared->mutexes[0]) == EPERM);
	struct timespec past = { 0, 0 };
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_mutex_trylock(&shared->plain[i]) == EBUSY);
		CHECK(pthread_mutex_timedlock(&shared->plain[i], &past) == ETIMEDOUT);
		CHECK(pthread_mutex_unlock(&shared->plain[i]) == EPERM);
	}
	CHECK(pthread_rwlock_timedwrlock(&shared->lock, &past) == ETIMEDOUT);
	return NULL;
}

// Takes over what the dead process had.
static void *take_over(void *argument)
{
	struct shared *shared = argument;
	for (int i = 0; i < MANY; i++) {
		int result = pthread_mutex_lock(&shared->mutexes[i]);
		printf("%d: %s\n", i, result == EOWNERDEAD ? "its owner has died" : "free");
		CHECK(result == 0 || pthread_mutex_consistent(&shared->mutexes[i]) == 0);
		CHECK(pthread_mutex_unlock(&shared->mutexes[i]) == 0);
		CHECK(pthread_mutex_lock(&shared->mutexes[i]) == 0);
		CHECK(pthread_mutex_unlock(&shared->mutexes[i]) == 0);
	}
	return NULL;
}

static void in_a_thread(void *(*start)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, start, argument) == 0 && pthread_join(thread, NULL) == 0);
}

int main(void)
{
	int access = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_ANONYMOUS;
	struct shared *shared = mmap(NULL, sizeof *shared, access, kind, -1, 0);
	pthread_mutexattr_t attributes;
	CHECK(shared != MAP_FAILED && pthread_mutexattr_init(&attributes) == 0);
	CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	int types[] = { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK };
	for (int i = 0; i < MANY; i++) {
		CHECK(pthread_mutexattr_settype(&attributes, types[i % 3]) == 0);
		CHECK(pthread_mutex_init(&shared->mutexes[i], &attributes) == 0);
	}
	CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_STALLED) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_mutexattr_settype(&attributes, types[2 * i]) == 0);
		CHECK(pthread_mutex_init(&shared->plain[i], &attributes) == 0);
	}
	pthread_rwlockattr_t of_lock;
	CHECK(pthread_rwlockattr_init(&of_lock) == 0);
	CHECK(pthread_rwlockattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_rwlock_init(&shared->lock, &of_lock) == 0);
	CHECK(pipe(shared->ready) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, own, shared) == 0);
		pthread_join(thread, NULL);
		_exit(1);
	}
	char byte;
	CHECK(read(shared->ready[0], &byte, 1) == 1);
	in_a_thread(be_refused, shared);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	in_a_thread(take_over, shared);
	return 0;
}
