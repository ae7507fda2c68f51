/* A fork handler that is registered by a weak reference to `pthread_atfork`, as tcmalloc does: the
 * linker takes the function not from the part of the C library that belongs to each program, but
 * from libc itself. `atfork natively|virtually NUMBER`. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include "limit.h"

#pragma weak pthread_atfork

static int handled;

/* Of `pirn.h`; natively it is not there. */
#pragma weak pirn_is_virtual
int pirn_is_virtual(pthread_t thread);

/* The thread that has forked is one of libc's already. */
static void handle_in_child(void)
{
	limit_child();
	handled = pirn_is_virtual != NULL && pirn_is_virtual(pthread_self()) ? 4 : 3;
}

static void *fork_once(void *status)
{
	pid_t child = fork();
	if (child == 0)
		_exit(handled);
	CHECK(waitpid(child, status, 0) == child);
	return NULL;
}

/* Runs before the initialisers of all libraries. */
static void begin(void)
{
	if (pthread_atfork != NULL)
		CHECK(pthread_atfork(NULL, NULL, handle_in_child) == 0);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = begin;

int main(void)
{
	pthread_t thread;
	int status;
	/* Natively only the C library of x86-64 has it: it was in the first version for that processor. */
	if (pthread_atfork == NULL)
		return puts("handled: 300") < 0;
	CHECK(pthread_create(&thread, NULL, fork_once, &status) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	printf("handled: %x\n", status);
	return 0;
}
