// CPU time: each thread has its own clock.
#include "posix_checks.h"

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { MILLISECOND = 1000000, CROWD = 4 };

static long read_clock(clockid_t clock)
{
	struct timespec time;
	CHECK(clock_gettime(clock, &time) == 0);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long own(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static clockid_t clock_of(pthread_t thread)
{
	clockid_t clock;
	CHECK(pthread_getcpuclockid(thread, &clock) == 0);
	return clock;
}

// Uses this much CPU time.
static void *use(void *nanoseconds)
{
	long last = own(), until = last + (long)nanoseconds;
	while (last < until) {
		long now = own();
		CHECK(now >= last);
		last = now;
	}
	return NULL;
}

// The process has used the sum of what its threads have used: a clock has no other thread's time.
void check_sum(void)
{
	long each = 20L * MILLISECOND;
	use((void *)1);
	long before = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t threads[CROWD];
	for (int i = 0; i < CROWD; i++)
		threads[i] = begin(use, (void *)each);
	for (int i = 0; i < CROWD; i++)
		join(threads[i]);
	long used = read_clock(CLOCK_PROCESS_CPUTIME_ID) - before;
	// A part of a turn is taken for CPU time as a whole.
	CHECK(used >= CROWD * each - MILLISECOND);
}

struct waiter {
	sem_t go;
	long used;
};

static void *wait_to_go(void *argument)
{
	struct waiter *waiter = argument;
	use((void *)MILLISECOND);
	sem_wait(&waiter->go);
	waiter->used = own();
	return NULL;
}

// The clock of a thread that waits stands still while others run.
void check_waiting(void)
{
	struct waiter waiter;
	CHECK(sem_init(&waiter.go, 0, 0) == 0);
	pthread_t thread = begin(wait_to_go, &waiter);
	clockid_t clock = clock_of(thread);
	long before, after;
	do {
		before = read_clock(clock);
		use((void *)(2L * MILLISECOND));
		after = read_clock(clock);
		sched_yield();
	} while (before != after || after < MILLISECOND);
	sem_post(&waiter.go);
	join(thread);
	CHECK(waiter.used >= after);
	struct timespec time;
	while (clock_gettime(clock, &time) == 0)
		sched_yield(); // natively it may be joined before the kernel has forgotten it
	SAY_RESULT(clock_gettime(clock, &time));
	SAY_RESULT(clock_getres(clock, &time));
}

struct runner {
	atomic_bool stop;
	long used;
};

static void *run_until_stopped(void *argument)
{
	struct runner *runner = argument;
	while (!atomic_load(&runner->stop))
		;
	runner->used = own();
	return NULL;
}

// Other threads see the clock of a running thread go on.
void check_running(void)
{
	struct runner runner = { .used = 0 };
	pthread_t thread = begin(run_until_stopped, &runner);
	clockid_t clock = clock_of(thread);
	long start = read_clock(clock), last = start;
	while (last - start < 20L * MILLISECOND) {
		long now = read_clock(clock);
		CHECK(now >= last);
		last = now;
		sched_yield();
	}
	atomic_store(&runner.stop, 1);
	join(thread);
	CHECK(runner.used >= last);
}

// All ways to ask say the same.
void check_ways(void)
{
	clockid_t clock = clock_of(pthread_self());
	struct timespec time;
	use((void *)MILLISECOND);
	long times[4];
	times[0] = own();
	times[1] = read_clock(clock);
	CHECK(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time) == 0);
	times[2] = time.tv_sec * 1000000000L + time.tv_nsec;
	times[3] = own();
	for (int i = 1; i < 4; i++)
		CHECK(times[i] >= times[i - 1]);
	struct rusage usage, same;
	CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
	CHECK(syscall(SYS_getrusage, RUSAGE_THREAD, &same) == 0);
	long used = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000L +
		(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000L;
	// The kernel's is of its last tick.
	CHECK(used >= times[3] - 20L * MILLISECOND && used <= own());
	CHECK(usage.ru_maxrss > 0 && same.ru_maxrss >= usage.ru_maxrss);
	CHECK(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0);
	for (int i = 0; i < 4; i++) {
		clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, clock };
		CHECK(clock_getres(clocks[i], &time) == 0);
		CHECK(syscall(SYS_clock_getres, clocks[i], &time) == 0);
		say("resolution %ld %ld\n", (long)time.tv_sec, time.tv_nsec);
		CHECK(clock_gettime(clocks[i], &time) == 0);
	}
	SAY_RESULT(clock_gettime(15, &time));
	SAY_RESULT(clock_gettime(1 << 20, &time));
	SAY_RESULT(clock_gettime((1 << 30) - 2, &time));
	SAY_RESULT(getrusage(77, &usage));
}
