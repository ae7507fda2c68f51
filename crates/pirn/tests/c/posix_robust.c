// Robust mutexes of threads that end.
#include "posix_checks.h"

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { MANY = 50, WAITERS = 10 };
static pthread_mutex_t mutexes[MANY];
static sem_t locked;
static atomic_int dead, fine;

static void make(int shared, int protocol)
{
	pthread_mutexattr_t attributes;
	CHECK(pthread_mutexattr_init(&attributes) == 0);
	CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	CHECK(pthread_mutexattr_setpshared(&attributes, shared) == 0);
	CHECK(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
	for (int i = 0; i < MANY; i++) {
		int kind = i % 3 ? PTHREAD_MUTEX_NORMAL : PTHREAD_MUTEX_RECURSIVE;
		CHECK(pthread_mutexattr_settype(&attributes, kind) == 0);
		CHECK(pthread_mutex_init(&mutexes[i], &attributes) == 0);
	}
	sem_init(&locked, 0, 0);
	dead = fine = 0;
}

static void *lock_and_end(void *argument)
{
	for (int i = 0; i < MANY; i++)
		CHECK(pthread_mutex_lock(&mutexes[i]) == 0);
	CHECK(pthread_mutex_unlock(&mutexes[7]) == 0);
	sem_post(&locked);
	if (argument)
		sem_wait(argument);
	pthread_exit(NULL);
}

static void *wait_for_first(void *argument)
{
	sem_post(&locked);
	int result = pthread_mutex_lock(&mutexes[0]);
	if (result == EOWNERDEAD) {
		dead++;
		CHECK(pthread_mutex_consistent(&mutexes[0]) == 0);
	} else {
		CHECK(result == 0);
		fine++;
	}
	CHECK(pthread_mutex_unlock(&mutexes[0]) == 0);
	return argument;
}

static void with_waiters(void)
{
	sem_t go;
	sem_init(&go, 0, 0);
	pthread_t owner = begin(lock_and_end, &go), waiters[WAITERS];
	sem_wait(&locked);
	for (int i = 0; i < WAITERS; i++)
		waiters[i] = begin(wait_for_first, NULL);
	for (int i = 0; i < WAITERS; i++)
		sem_wait(&locked);
	SAY_RESULT(pthread_mutex_trylock(&mutexes[1]));
	sem_post(&go);
	join(owner);
	for (int i = 0; i < WAITERS; i++)
		join(waiters[i]);
	say("dead %d, fine %d\n", dead, fine);
}

static void one_after_another(void)
{
	join(begin(lock_and_end, NULL));
	int counts[200] = { 0 };
	for (int i = 0; i < MANY; i++)
		counts[pthread_mutex_lock(&mutexes[i])]++;
	say("owner dead %d, free %d\n", counts[EOWNERDEAD], counts[0]);
	for (int i = 0; i < MANY; i++) {
		if (i != 7 && i != 8)
			CHECK(pthread_mutex_consistent(&mutexes[i]) == 0);
		CHECK(pthread_mutex_unlock(&mutexes[i]) == 0);
	}
	SAY_RESULT(pthread_mutex_lock(&mutexes[8])); // it was left inconsistent
	SAY_RESULT(pthread_mutex_lock(&mutexes[9]));
	CHECK(pthread_mutex_unlock(&mutexes[9]) == 0);
}

static void check(int protocol)
{
	for (int shared = 0; shared < 2; shared++) {
		make(shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE, protocol);
		with_waiters();
		make(shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE, protocol);
		one_after_another();
	}
}

void check_robust(void)
{
	check(PTHREAD_PRIO_NONE);
}

void check_robust_that_inherit(void)
{
	check(PTHREAD_PRIO_INHERIT);
}
