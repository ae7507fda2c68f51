/* Pirn: virtual threads for C and C++.
 *
 * A program that is linked with -lpirn (pkg-config: pirn, CMake: Pirn::pirn), or run by `pirn run`,
 * needs none of this: what its pthread_create, thrd_create and std::thread make are virtual threads.
 * Here is what POSIX has no word for.
 *
 * A pthread_t that is passed to these functions belongs to a thread that exists: it has not been
 * joined, nor has it ended after it was detached. To end the waiting of a thread there are
 * pthread_kill and pthread_cancel.
 */
#ifndef PIRN_H
#define PIRN_H

#include <pthread.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 if the thread is virtual, and 0 if it is a platform thread, as the first one is. */
int pirn_is_virtual(pthread_t thread);

/* pthread_create of a virtual thread, whatever the settings say. Returns 0, or an error number:
 * EAGAIN without memory, and ENOTSUP if the thread would have to be a platform thread: for its
 * attributes (a stack of the program's, a scheduling policy, CPUs), or without a runtime. */
int pirn_create_virtual(pthread_t *thread, const pthread_attr_t *attributes,
			void *(*start)(void *), void *argument);

/* pthread_create of a platform thread: for one that computes all the time, or that changes what
 * belongs to an OS thread (namespaces, capabilities, seccomp). Returns 0, or an error number. */
int pirn_create_platform(pthread_t *thread, const pthread_attr_t *attributes,
			 void *(*start)(void *), void *argument);

/* Waits until the calling thread has a permit, and takes it. Each thread has one at most, and none
 * at first. */
void pirn_park(void);

/* The same, until a time of CLOCK_MONOTONIC at most. Returns 0, ETIMEDOUT, or EINVAL. */
int pirn_park_until(const struct timespec *deadline);

/* Gives a thread a permit, unless it has one. What the caller did before, the thread sees after its
 * pirn_park. Works between threads of both kinds. */
void pirn_unpark(pthread_t thread);

/* Writes what all virtual threads do, grouped by their stacks, as text. Returns 0, or an error
 * number. */
int pirn_dump(int fd);

#ifdef __cplusplus
}
#endif

#endif
