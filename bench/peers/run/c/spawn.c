/* `run-spawn`: threads that do next to nothing, one after the other with join, and all at once. */

#include "protocol.h"
#include "workloads.h"

#include <stdlib.h>

static pthread_barrier_t all_are_there;

static void *give_back(void *number) {
    return number;
}

static void *meet(void *number) {
    pthread_barrier_wait(&all_are_there);
    return number;
}

/* Starts and joins as many threads, one after the other; returns the sum of what they returned. */
static uint64_t one_by_one(uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (uint64_t)join(start(NULL, give_back, (void *)i));
    return sum;
}

static void report_one_by_one(const char *metric, uint64_t count) {
    times begin = now();
    uint64_t sum = one_by_one(count);
    report(metric, since(begin), count, "ns/thread", sum, sum_below(count));
}

static void *inside(void *count) {
    report_one_by_one("join inside", (uint64_t)count);
    return NULL;
}

/* All wait until the last is there. */
static void at_once(uint64_t count) {
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_barrier_init(&all_are_there, NULL, (unsigned)count);
    uint64_t sum = 0;
    times begin = now();
    for (uint64_t i = 0; i < count; i++)
        threads[i] = start(NULL, meet, (void *)i);
    for (uint64_t i = 0; i < count; i++)
        sum += (uint64_t)join(threads[i]);
    report("at once", since(begin), count, "ns/thread", sum, sum_below(count));
    pthread_barrier_destroy(&all_are_there);
    free(threads);
}

void spawn_round(void) {
    join(start(NULL, inside, (void *)param("inside")));
    report_one_by_one("join main", param("main"));
    at_once(param("burst"));
}
