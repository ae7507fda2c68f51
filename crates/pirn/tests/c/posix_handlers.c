// Handlers that wait for each other, and jumps out of handlers and calls.
#include "posix_checks.h"
#include <setjmp.h>
#include <sys/select.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

static __thread sigjmp_buf back;
static int ends[2];
static volatile sig_atomic_t arrived;

static void read_one(int signal)
{
	char byte;
	CHECK(signal == SIGUSR1 && read(ends[0], &byte, 1) == 1);
}

static void write_one(int signal)
{
	CHECK(signal == SIGUSR2 && write(ends[1], "x", 1) == 1);
}

// Of two pending signals, the handler of the first waits for the second's.
void check_two_pending(void)
{
	sigset_t both;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	CHECK(pipe(ends) == 0);
	CHECK(signal(SIGUSR1, read_one) != SIG_ERR && signal(SIGUSR2, write_one) != SIG_ERR);
	CHECK(pthread_sigmask(SIG_BLOCK, &both, NULL) == 0);
	CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
	CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &both, NULL) == 0);
	say("both have run\n");
	close(ends[0]);
	close(ends[1]);
}

static void jump_back(int signal)
{
	siglongjmp(back, signal);
}

static void *fault_once(void *argument)
{
	if (sigsetjmp(back, 0) == 0)
		*(volatile char *)argument = 1;
	return NULL;
}

// A handler that is left without its mask leaves no other thread without its handler.
void check_faults(void)
{
	CHECK(signal(SIGSEGV, jump_back) != SIG_ERR);
	for (int i = 0; i < 10; i++)
		join(begin(fault_once, (void *)8));
	say("all went on\n");
}

static void *write_until_broken(void *argument)
{
	static char bytes[1 << 16];
	if (sigsetjmp(back, 1) == 0) {
		for (;;)
			CHECK(write(ends[1], bytes, sizeof bytes) > 0);
	}
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	while (arrived < 3)
		; // Each needs the others to run.
	return argument;
}

// Threads that wait for room in a pipe each get the signal, whose handler they leave by a jump.
void check_broken_pipe(void)
{
	struct timespec moment = { 0, 20000000 };
	pthread_t writers[3];
	arrived = 0;
	CHECK(pipe(ends) == 0 && signal(SIGPIPE, jump_back) != SIG_ERR);
	for (int i = 0; i < 3; i++)
		writers[i] = begin(write_until_broken, NULL);
	nanosleep(&moment, NULL);
	CHECK(close(ends[0]) == 0);
	for (int i = 0; i < 3; i++)
		join(writers[i]);
	CHECK(close(ends[1]) == 0);
	say("all were told\n");
}

static sem_t waits;

static void *select_until_jump(void *argument)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	if (sigsetjmp(back, 1) == 0) {
		sem_post(&waits);
		select(ends[0] + 1, &set, NULL, NULL, NULL);
	}
	say("still set: %d\n", FD_ISSET(ends[0], &set) != 0);
	return argument;
}

// A jump out of `select` leaves the sets as they were.
void check_sets(void)
{
	struct timespec moment = { 0, 20000000 };
	CHECK(pipe(ends) == 0 && sem_init(&waits, 0, 0) == 0);
	CHECK(signal(SIGUSR1, jump_back) != SIG_ERR);
	pthread_t thread = begin(select_until_jump, NULL);
	sem_wait(&waits);
	nanosleep(&moment, NULL);
	CHECK(pthread_kill(thread, SIGUSR1) == 0);
	join(thread);
	close(ends[0]);
	close(ends[1]);
}

static void *read_byte(void *argument)
{
	char byte = 0;
	sem_post(&waits);
	CHECK(read(ends[0], &byte, 1) == 1);
	say("has read %c\n", byte);
	return argument;
}

// A `dup2` that is refused closes nothing.
void check_refused_dup(void)
{
	struct timespec moment = { 0, 20000000 };
	CHECK(pipe(ends) == 0 && sem_init(&waits, 0, 0) == 0);
	pthread_t thread = begin(read_byte, NULL);
	sem_wait(&waits);
	nanosleep(&moment, NULL);
	CHECK(dup2(-1, ends[0]) == -1 && errno == EBADF);
	CHECK(dup3(ends[1], ends[0], 1) == -1 && errno == EINVAL);
	CHECK(write(ends[1], "y", 1) == 1);
	join(thread);
	close(ends[0]);
	close(ends[1]);
}
