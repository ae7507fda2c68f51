/* `run-parked`: threads that only wait, each for a semaphore of its own. */

#include "protocol.h"
#include "workloads.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct {
    pthread_t thread;
    sem_t wake;
} waiter;

static atomic_uint_fast64_t missing;
static sem_t all_wait;

static void *wait_for_wake(void *argument) {
    waiter *self = argument;
    if (atomic_fetch_sub(&missing, 1) == 1)
        sem_post(&all_wait);
    while (sem_wait(&self->wake) != 0)
        if (errno != EINTR)
            fail("cannot wait", errno);
    return (void *)1;
}

/* Stacks of the default size if stack_kib is 0. */
static void set_stack(pthread_attr_t *attributes, uint64_t stack_kib) {
    pthread_attr_init(attributes);
    if (stack_kib == 0)
        return;
    int error = pthread_attr_setstacksize(attributes, stack_kib * 1024);
    if (error != 0)
        fail("cannot set the size of stacks", error);
}

void parked_round(void) {
    uint64_t count = param("threads");
    waiter *waiters = calloc(count, sizeof *waiters);
    pthread_attr_t attributes;
    set_stack(&attributes, param("stack_kib"));
    atomic_store(&missing, count);
    sem_init(&all_wait, 0, 0);

    times begin = now();
    for (uint64_t i = 0; i < count; i++) {
        sem_init(&waiters[i].wake, 0, 0);
        waiters[i].thread = start(&attributes, wait_for_wake, &waiters[i]);
    }
    while (sem_wait(&all_wait) != 0)
        ;
    times spawning = since(begin);
    stand_still("parked", count);

    begin = now();
    for (uint64_t i = 0; i < count; i++)
        sem_post(&waiters[i].wake);
    uint64_t woken = 0;
    for (uint64_t i = 0; i < count; i++)
        woken += (uint64_t)join(waiters[i].thread);
    times waking = since(begin);
    report("spawn", spawning, count, "ns/thread", count, count);
    report("wake", waking, count, "ns/thread", woken, count);
    pthread_attr_destroy(&attributes);
    sem_destroy(&all_wait);
    free(waiters);
}
