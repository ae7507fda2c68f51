// Threads that end while others name them: by an id, or because of the call itself.
#include "posix_checks.h"
#include <sys/syscall.h>
#include <time.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { NAMERS = 3, NAMED = 300, THREADS = 2000 };

static _Atomic pid_t newest;
static _Atomic int over;
static sem_t waits;

static void take(int signal)
{
	(void)signal;
}

static void *tell_id(void *argument)
{
	newest = gettid();
	sched_yield();
	return argument;
}

// Each call works, or says that there is no such thread.
static void *name_newest(void *argument)
{
	while (!over) {
		pid_t id = newest;
		struct timespec time;
		CHECK(syscall(SYS_tgkill, getpid(), id, SIGUSR1) == 0 || errno == ESRCH);
		CHECK(syscall(SYS_tkill, id, 0) == 0 || errno == ESRCH);
		// The clock of the thread with this id: the kernel's, or ours.
		clockid_t clock = id < 1 << 22 ? (~(clockid_t)id << 3 | 6) : id;
		CHECK(clock_gettime(clock, &time) == 0 || errno == EINVAL);
	}
	return argument;
}

// An id whose thread has ended is harmless.
void check_ids(void)
{
	CHECK(signal(SIGUSR1, take) != SIG_ERR);
	pthread_t namers[NAMERS];
	newest = gettid();
	over = 0;
	for (int i = 0; i < NAMERS; i++)
		namers[i] = begin(name_newest, NULL);
	for (int i = 0; i < NAMED; i++) {
		pthread_t thread = begin(tell_id, NULL);
		if (i % 2)
			join(thread);
		else
			CHECK(pthread_detach(thread) == 0);
	}
	over = 1;
	for (int i = 0; i < NAMERS; i++)
		join(namers[i]);
	say("ids: fine\n");
}

static void *wait_to_be_cancelled(void *argument)
{
	if (argument)
		CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
	sem_post(&waits);
	for (;;)
		pause();
}

static void *wait_for_signal(void *argument)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	int signal;
	sem_post(&waits);
	CHECK(sigwait(&set, &signal) == 0 && signal == SIGUSR2);
	return argument;
}

// A thread that ends because of the call is gone before the call returns.
void check_calls(void)
{
	CHECK(sem_init(&waits, 0, 0) == 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread = begin(wait_to_be_cancelled, i % 2 ? &set : NULL);
		CHECK(pthread_detach(thread) == 0);
		while (sem_wait(&waits))
			;
		CHECK(pthread_cancel(thread) == 0);
		thread = begin(wait_for_signal, NULL);
		CHECK(pthread_detach(thread) == 0);
		while (sem_wait(&waits))
			;
		CHECK(pthread_kill(thread, SIGUSR2) == 0);
	}
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	say("calls: fine\n");
}
