// Checks of `swapcontext` on threads that `pthread_create` has made virtual, as a library: the
// functions that begin with `check_` are called by `pthread_contexts.rs`.
#include "signal_checks.h"

enum { FIBERS = 10, STACK = 1 << 17 };

// Runs on any thread, as a coroutine.
struct fiber {
	ucontext_t own, caller;
	int blocked_inside;
};

static int blocks(int signal)
{
	sigset_t set;
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
	return sigismember(&set, signal);
}

// Returns what the running OS thread blocks.
static unsigned long long blocked_in_kernel(void)
{
	unsigned long long mask = 0;
	char line[256];
	int found = 0;
	FILE *file = fopen("/proc/thread-self/status", "r");
	CHECK(file != NULL);
	while (!found && fgets(line, sizeof line, file))
		found = sscanf(line, "SigBlk: %llx", &mask);
	CHECK(found == 1 && fclose(file) == 0);
	return mask;
}

// Waits between the switches, and may go on on another carrier.
static void run(unsigned high, unsigned low)
{
	struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);
	for (;;) {
		fiber->blocked_inside = blocks(SIGUSR1);
		usleep(1000);
		CHECK(swapcontext(&fiber->own, &fiber->caller) == 0);
	}
}

// Not `pthread_join` alone: a thread that joins runs the others meanwhile, on its own OS thread.
static sem_t ended;

static void *resume(void *argument)
{
	struct fiber *fiber = argument;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0);
	unsigned long long before = blocked_in_kernel();
	for (int i = 0; i < 5; i++) {
		fiber->blocked_inside = -1;
		CHECK(swapcontext(&fiber->caller, &fiber->own) == 0);
		CHECK(fiber->blocked_inside == 0 && blocks(SIGUSR1) && !blocks(SIGUSR2));
		CHECK(blocked_in_kernel() == before);
		usleep(1000);
		CHECK(blocked_in_kernel() == before);
	}
	CHECK(sem_post(&ended) == 0);
	return argument;
}

// Contexts that the running thread has made, with its mask, go on on others, which have their own.
void check_contexts_of_another_thread(void)
{
	static struct fiber fibers[FIBERS];
	pthread_t threads[FIBERS];
	CHECK(sem_init(&ended, 0, 0) == 0);
	for (int i = 0; i < FIBERS; i++) {
		struct fiber *fiber = &fibers[i];
		uintptr_t address = (uintptr_t)fiber;
		CHECK(getcontext(&fiber->own) == 0);
		fiber->own.uc_stack.ss_sp = malloc(STACK);
		fiber->own.uc_stack.ss_size = STACK;
		makecontext(&fiber->own, (void (*)(void))run, 2, (unsigned)(address >> 32), (unsigned)address);
		threads[i] = start(resume, fiber);
	}
	for (int i = 0; i < FIBERS; i++)
		CHECK(sem_wait(&ended) == 0);
	for (int i = 0; i < FIBERS; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		free(fibers[i].own.uc_stack.ss_sp);
	}
}
