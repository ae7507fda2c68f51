// What the checks of signals share.
#pragma once
#include "pthread_checks.h"
#include <signal.h>

static inline void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };
	CHECK(sigaction(signal, &action, NULL) == 0);
}

static inline pthread_t start(void *(*routine)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, routine, argument) == 0);
	return thread;
}

// Handlers that park: as a garbage collector stops threads.

static sem_t has_stopped;

static inline void stop_here(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	int error = errno;
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sem_post(&has_stopped);
	sigsuspend(&all);
	sem_post(&has_stopped);
	errno = error;
}

static inline void do_nothing(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
}

// To be called before the threads are started.
static inline void prepare_stops(void)
{
	CHECK(sem_init(&has_stopped, 0, 0) == 0);
	// Blocked until `sigsuspend`: what ends it must not come before.
	struct sigaction stop = { .sa_sigaction = stop_here, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaddset(&stop.sa_mask, SIGUSR2);
	CHECK(sigaction(SIGUSR1, &stop, NULL) == 0);
	install(SIGUSR2, do_nothing, SA_RESTART);
}

// Stops all threads, and has them go on, so many times.
static inline void stop_and_go(const pthread_t *threads, int count, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		for (int signal = SIGUSR1;; signal = SIGUSR2) {
			for (int i = 0; i < count; i++)
				CHECK(pthread_kill(threads[i], signal) == 0);
			for (int i = 0; i < count; i++)
				CHECK(sem_wait(&has_stopped) == 0);
			if (signal == SIGUSR2)
				break;
		}
	}
}
