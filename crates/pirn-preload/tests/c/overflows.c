/* Threads that overflow their stacks, in a program that copes with that: `overflows natively|virtually
 * NUMBER`. Its handler is there before there are threads. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include <setjmp.h>
#include <signal.h>

enum { THREADS = 3, STACK = 1 << 16 };

static _Thread_local sigjmp_buf out;

static void leave(int signal, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(signal == SIGSEGV && info->si_addr != NULL);
	siglongjmp(out, 1);
}

static int deeper(int depth)
{
	volatile char frame[1000];
	frame[0] = (char)depth;
	return depth < 0 ? 0 : deeper(depth + 1) + frame[0]; /* never */
}

static void *overflow(void *count)
{
	stack_t own = { .ss_sp = malloc(STACK), .ss_size = STACK };
	CHECK(sigaltstack(&own, NULL) == 0);
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(out, 1) == 0)
			deeper(0);
		else
			++*(atomic_int *)count;
		usleep(1000);
	}
	stack_t none = { .ss_flags = SS_DISABLE };
	CHECK(sigaltstack(&none, NULL) == 0);
	free(own.ss_sp);
	return NULL;
}

int main(void)
{
	atomic_int count = 0;
	pthread_t threads[THREADS];
	struct sigaction action = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, overflow, &count) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("%d overflows\n", count);
	return 0;
}
