// Checks of how signals are delivered to threads that `pthread_create` has made virtual, as a
// library: the functions that begin with `check_` are called by `pthread_delivery.rs`.
#include "signal_checks.h"
#include "processor.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

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

// Waits with a mask: more than there are carriers, each ended by a signal that the mask lets through.

enum { MASKED = 60 };
static _Thread_local int own_handled;
static atomic_int begun;

static void count_own(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	own_handled++;
}

static int wait_with(intptr_t kind, int fd, const sigset_t *mask)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (kind % 3 == 0)
		return ppoll(&(struct pollfd) { fd, POLLIN, 0 }, 1, NULL, mask);
	if (kind % 3 == 1)
		return pselect(fd + 1, &set, NULL, NULL, NULL, mask);
	int epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	int result = epoll_pwait(epoll, &event, 1, -1, mask), error = errno;
	close(epoll);
	errno = error;
	return result;
}

static void *wait_with_mask(void *kind)
{
	int pipes[2];
	sigset_t none, before;
	sigemptyset(&none);
	CHECK(pipe(pipes) == 0);
	begun++;
	CHECK(wait_with((intptr_t)kind, pipes[0], &none) == -1 && errno == EINTR && own_handled == 1);
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &before) == 0 && sigismember(&before, SIGUSR1) == 1);
	CHECK(write(pipes[1], "", 1) == 1 && wait_with((intptr_t)kind, pipes[0], &none) == 1);
	close(pipes[0]);
	close(pipes[1]);
	return kind;
}

void check_masked_waits(void)
{
	pthread_t threads[MASKED];
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	install(SIGUSR1, count_own, SA_RESTART);
	CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
	for (intptr_t i = 0; i < MASKED; i++)
		threads[i] = start(wait_with_mask, (void *)i);
	while (begun < MASKED)
		usleep(100);
	for (int i = 0; i < MASKED; i++)
		CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
	for (int i = 0; i < MASKED; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) == 0);
	begun = 0;
}

// The floating point environment of a handler, and of what it has interrupted.

static uint64_t own_controls, in_handler;

static void change_float(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	in_handler = float_controls();
	set_float_controls(FLOAT_UP);
}

void check_float(void)
{
	install(SIGUSR1, change_float, 0);
	set_float_controls(FLOAT_DOWN);
	own_controls = float_controls();
	CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
	CHECK(in_handler == FLOAT_DEFAULT);
	CHECK(float_controls() == own_controls);
	set_float_controls(FLOAT_DEFAULT);
}
