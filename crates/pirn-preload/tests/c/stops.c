/* A thread stops all others in a loop, as a garbage collector does, while the first one makes
 * threads and wakes others. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include <signal.h>

enum { STOPS = 300, MOST = 256, WAITERS = 8 };
static pthread_t threads[MOST];
static int count;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t stopped, given;
static atomic_int stops, over;

static void enter(void)
{
	pthread_mutex_lock(&list);
	threads[count++] = pthread_self();
	pthread_mutex_unlock(&list);
}

static void leave(void)
{
	pthread_mutex_lock(&list);
	for (int i = 0; i < count; i++)
		if (pthread_equal(threads[i], pthread_self()))
			threads[i--] = threads[--count];
	pthread_mutex_unlock(&list);
}

static void on_stop(int signal)
{
	int error = errno, before = stops;
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sem_post(&stopped);
	while (stops == before)
		sigsuspend(&all);
	errno = error;
	(void)signal;
}

static void on_go(int signal)
{
	(void)signal;
}

static void *brief(void *unused)
{
	enter();
	free(malloc(100));
	leave();
	return unused;
}

static void *wait_for_first(void *which)
{
	enter();
	while (!over) {
		if (which) {
			sem_wait(&given);
		} else {
			pthread_mutex_lock(&lock);
			if (!over)
				pthread_cond_wait(&changed, &lock);
			pthread_mutex_unlock(&lock);
		}
	}
	leave();
	return NULL;
}

static void *stop_all(void *unused)
{
	while (stops < STOPS) {
		pthread_mutex_lock(&list);
		int all = count;
		for (int i = 0; i < all; i++)
			CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
		for (int i = 0; i < all; i++)
			while (sem_wait(&stopped) != 0)
				CHECK(errno == EINTR);
		stops++;
		for (int i = 0; i < all; i++)
			CHECK(pthread_kill(threads[i], SIGUSR2) == 0);
		pthread_mutex_unlock(&list);
		usleep(300);
	}
	over = 1;
	return unused;
}

static void wake_all(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WAITERS; i++)
		sem_post(&given);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
	pthread_t waiters[WAITERS], stopper, made[8];
	sigfillset(&action.sa_mask);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	action.sa_handler = on_go;
	CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
	CHECK(sem_init(&stopped, 0, 0) == 0 && sem_init(&given, 0, 0) == 0);
	enter();
	for (intptr_t i = 0; i < WAITERS; i++)
		CHECK(pthread_create(&waiters[i], NULL, wait_for_first, (void *)(i % 2)) == 0);
	CHECK(pthread_create(&stopper, NULL, stop_all, NULL) == 0);
	while (!over) {
		for (int i = 0; i < 8; i++)
			CHECK(pthread_create(&made[i], NULL, brief, NULL) == 0);
		for (int i = 0; i < 100; i++)
			wake_all();
		for (int i = 0; i < 8; i++)
			CHECK(pthread_join(made[i], NULL) == 0);
	}
	leave();
	wake_all();
	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_join(waiters[i], NULL) == 0);
	CHECK(pthread_join(stopper, NULL) == 0);
	puts("all have gone on");
	return 0;
}
