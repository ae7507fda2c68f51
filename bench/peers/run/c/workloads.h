/* The workloads: each of these does a round, or serves until the input ends. */

#ifndef WORKLOADS_H
#define WORKLOADS_H

#include <pthread.h>

void spawn_round(void);
void parked_round(void);
void echo_serve(void);

/* Starts a thread; ends the process where that fails. */
pthread_t start(const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);

/* Joins a thread; returns its result. */
void *join(pthread_t thread);

#endif
