// Condition variables that are destroyed as soon as their waiters have been woken.
#include "posix_checks.h"

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { WAITERS = 10, ROUNDS = 300 };
static pthread_cond_t cond, all_are_here;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t left;
static int here;

static void *wait_often(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_mutex_lock(&mutex) == 0);
		if (++here == WAITERS)
			CHECK(pthread_cond_signal(&all_are_here) == 0);
		CHECK(pthread_cond_wait(&cond, &mutex) == 0);
		CHECK(pthread_mutex_unlock(&mutex) == 0);
		pthread_barrier_wait(&left);
		pthread_barrier_wait(&left);
	}
	return argument;
}

static void wake_and_destroy(int round)
{
	CHECK(pthread_mutex_lock(&mutex) == 0);
	while (here != WAITERS)
		CHECK(pthread_cond_wait(&all_are_here, &mutex) == 0);
	here = 0;
	if (round & 1)
		CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(pthread_cond_broadcast(&cond) == 0);
	if (!(round & 1))
		CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(pthread_cond_destroy(&cond) == 0);
	memset(&cond, 0, sizeof cond); // what a new one looks like
}

// None of them takes what comes after the old one for it, and sleeps on.
void check_destroyed(void)
{
	pthread_t waiters[WAITERS];
	CHECK(pthread_barrier_init(&left, NULL, WAITERS + 1) == 0);
	CHECK(pthread_cond_init(&cond, NULL) == 0 && pthread_cond_init(&all_are_here, NULL) == 0);
	for (int i = 0; i < WAITERS; i++)
		waiters[i] = begin(wait_often, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		wake_and_destroy(i);
		pthread_barrier_wait(&left);
		CHECK(pthread_cond_init(&cond, NULL) == 0);
		pthread_barrier_wait(&left);
	}
	for (int i = 0; i < WAITERS; i++)
		join(waiters[i]);
	cnd_t another;
	CHECK(cnd_init(&another) == thrd_success && cnd_broadcast(&another) == thrd_success);
	cnd_destroy(&another);
	CHECK(pthread_barrier_destroy(&left) == 0 && pthread_cond_destroy(&all_are_here) == 0);
	say("woken each time\n");
}
