/* Signals to the process: `signals natively|virtually NUMBER` makes the check of this number. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include <signal.h>

#define say(...) dprintf(1, __VA_ARGS__)

static pthread_t first, taker;
static atomic_int handled, in_first, in_taker, over;
static sem_t ready;

static void note(int signal, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(info->si_signo == signal && (info->si_code == SI_USER || info->si_code == SI_QUEUE));
	in_first += pthread_equal(pthread_self(), first);
	in_taker += pthread_equal(pthread_self(), taker);
	handled++;
}

static void mask(int how, int signal)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal);
	CHECK(pthread_sigmask(how, &set, NULL) == 0);
}

static void until(int count)
{
	while (handled < count)
		usleep(100);
}

static void *wait_in_read(void *pipe)
{
	char byte;
	if (taker == 0)
		taker = pthread_self();
	mask(SIG_UNBLOCK, SIGUSR1);
	sem_post(&ready);
	ssize_t result = read(*(int *)pipe, &byte, 1);
	return (void *)(intptr_t)(result == -1 ? errno : 0);
}

static void *compute(void *unused)
{
	taker = pthread_self();
	mask(SIG_UNBLOCK, SIGUSR1);
	sem_post(&ready);
	while (!over)
		;
	return unused;
}

/* The first thread blocks it, another one does not, and waits. */
static void to_one_that_waits(void)
{
	pthread_t thread;
	void *result;
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	CHECK(pthread_create(&thread, NULL, wait_in_read, pipes) == 0);
	sem_wait(&ready);
	usleep(10000);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	say("waits: %d handled, %d in it, errno %d\n", handled, in_taker, (int)(intptr_t)result);
}

/* It computes. */
static void to_one_that_computes(void)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, compute, NULL) == 0);
	sem_wait(&ready);
	for (int i = 1; i <= 20; i++) {
		CHECK(kill(getpid(), SIGUSR1) == 0);
		until(i);
	}
	over = 1;
	CHECK(pthread_join(thread, NULL) == 0);
	say("computes: %d handled, %d in it\n", handled, in_taker);
}

/* All block it; then one unblocks it. */
static void *unblock(void *unused)
{
	taker = pthread_self();
	mask(SIG_UNBLOCK, SIGUSR1);
	say("unblocked: %d handled, %d in it\n", handled, in_taker);
	return unused;
}

static void to_one_that_unblocks_it(void)
{
	pthread_t thread;
	union sigval value = { .sival_int = 7 };
	CHECK(sigqueue(getpid(), SIGUSR1, value) == 0);
	CHECK(pthread_create(&thread, NULL, unblock, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* The first thread does not block it, and gets it, whichever other would take it; natively not always,
 * as the kernel spares a thread that is just about to handle another signal. */
static void *sleep_a_little(void *unused)
{
	while (!over)
		usleep(1000);
	return unused;
}

static void to_the_first(void)
{
	pthread_t threads[8];
	mask(SIG_UNBLOCK, SIGUSR1);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, sleep_a_little, NULL) == 0);
	mask(SIG_BLOCK, SIGUSR2);
	for (int i = 1; i <= 50; i++) {
		CHECK(kill(getpid(), SIGUSR1) == 0);
		until(i);
	}
	over = 1;
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	say("first: %d handled, most in it: %d\n", handled, in_first > 40);
}

/* The first thread has ended: the signal ends the process, or is handled by another thread. */
static void *end_process(void *action)
{
	usleep(20000);
	CHECK(kill(getpid(), SIGTERM) == 0);
	while (action == NULL || !handled)
		usleep(100);
	say("handled after the first thread has ended\n");
	_exit(0);
}

static void without_the_first(void)
{
	for (int handles = 0; handles < 2; handles++) {
		pid_t child = fork();
		if (child == 0) {
			pthread_t thread;
			struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
			if (handles)
				CHECK(sigaction(SIGTERM, &action, NULL) == 0);
			CHECK(pthread_create(&thread, NULL, end_process, handles ? "" : NULL) == 0);
			pthread_exit(NULL);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child);
		say("child: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
}

static atomic_int answers;

static void answer(int signal)
{
	CHECK(signal == SIGUSR2 && pthread_equal(pthread_self(), first));
	answers++;
}

static void *ask_the_first(void *unused)
{
	int before = answers;
	CHECK(pthread_kill(first, SIGUSR2) == 0);
	while (answers == before)
		;
	return unused;
}

/* It waits for the end of a thread that waits for it, as a garbage collector does. */
static void to_the_first_that_joins(void)
{
	struct sigaction action = { .sa_handler = answer };
	CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, ask_the_first, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	say("joins: %d answers\n", answers);
}

int main(int count, char **arguments)
{
	CHECK(count == 3 && sem_init(&ready, 0, 0) == 0);
	first = pthread_self();
	struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	mask(SIG_BLOCK, SIGUSR1);
	void (*checks[])(void) = { to_one_that_waits, to_one_that_computes, to_one_that_unblocks_it,
				   to_the_first, without_the_first, to_the_first_that_joins };
	checks[atoi(arguments[2])]();
	return 0;
}
