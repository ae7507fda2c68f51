// Checks of how signals are delivered to threads that `pthread_create` has made virtual, as a
// library: the functions that begin with `check_` are called by `pthread_delivery.rs`.
#include "signal_checks.h"

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room);

// Each signal once: the next is sent as soon as the handler of the last one has counted it, and so
// while the thread is about to leave that.

enum { TIMES = 200 };
static atomic_int handled, over;

static void count(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	handled++;
}

static void count_in_order(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	CHECK(info->si_code == SI_QUEUE && info->si_value.sival_int == handled);
	handled++;
}

static void *spin(void *unused)
{
	for (unsigned long i = 1; !over; i++)
		if (i % 10000 == 0)
			sched_yield();
	return unused;
}

void check_each_once(void)
{
	install(SIGUSR1, count, 0);
	install(SIGRTMIN, count_in_order, 0);
	for (int signal = SIGUSR1;; signal = SIGRTMIN) {
		handled = over = 0;
		pthread_t thread = start(spin, NULL);
		for (int i = 0; i < TIMES; i++) {
			union sigval value = { .sival_int = i };
			CHECK(pthread_sigqueue(thread, signal, value) == 0);
			for (int look = 0; handled == i; look++)
				look < 100 ? sched_yield() : usleep(10);
			CHECK(handled == i + 1);
		}
		over = 1;
		CHECK(pthread_join(thread, NULL) == 0 && handled == TIMES);
		if (signal == SIGRTMIN)
			break;
	}
}

// Threads that are stopped, as by a garbage collector, while they wake others. One that has been
// woken by half could not be stopped until its waker goes on.

enum { WAKERS = 16, ROUNDS = 40 };
static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int ends[2];

static void *wake_others(void *argument)
{
	pthread_mutex_t *lock = &locks[(intptr_t)argument % 2];
	char byte;
	for (unsigned i = 0; !over; i++) {
		pthread_mutex_lock(lock);
		if (i % 4 == 0)
			sched_yield();
		pthread_mutex_unlock(lock);
		if (i % 16 == 0)
			CHECK(read(ends[0], &byte, 1) == 1 && write(ends[1], &byte, 1) == 1);
	}
	return argument;
}

void check_stopped_wakers(void)
{
	pthread_t threads[WAKERS];
	over = 0;
	CHECK(pipe(ends) == 0 && write(ends[1], "ab", 2) == 2);
	prepare_stops();
	for (intptr_t i = 0; i < WAKERS; i++)
		threads[i] = start(wake_others, (void *)i);
	stop_and_go(threads, WAKERS, ROUNDS);
	over = 1;
	for (int i = 0; i < WAKERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	close(ends[0]);
	close(ends[1]);
}
