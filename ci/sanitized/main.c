/* Virtual threads that allocate, call deep, lock and sleep; and what a sanitizer is to find.
 *
 *   main         nothing is wrong: it prints "fine"
 *   main stack   a write beyond an array on the stack of a virtual thread that has parked
 *   main freed   one thread reads what another has freed
 *   main heap    a write beyond a block that another thread has allocated
 *   main race    two threads write the same variable
 *   main unset   a thread decides by memory that another has allocated and no thread has written
 *   main local   a thread decides by a variable of its own that it has not written
 *   main ended   a thread reads a variable of a thread that has ended
 *   main leak    a thread allocates a block and forgets it
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void on_virtual_threads(unsigned count, void (*function)(void *, unsigned), void *argument);

enum { THREADS = 200, ROUNDS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static __attribute__((noinline)) int deep(int n) {
    volatile char frame[200];
    memset((char *)frame, n, sizeof frame);
    if (n > 0)
        return deep(n - 1) + frame[3];
    usleep(10);
    return frame[0];
}

static void work(void *argument, unsigned i) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char *block = malloc(100 + i);
        memset(block, (char)i, 100 + i);
        deep(20);
        pthread_mutex_lock(&lock);
        sum += block[50] == (char)i;
        pthread_mutex_unlock(&lock);
        usleep(100);
        free(block);
    }
}

static void stack(void *argument, unsigned i) {
    (void)argument, (void)i;
    volatile char array[16];
    volatile int beyond = 16;
    usleep(100);
    array[beyond] = 1;
}

static void freed(void *argument, unsigned i) {
    char *volatile *block = argument;
    if (i == 0)
        free(*block);
    else
        usleep(100000), sum += **block;
}

static void heap(void *argument, unsigned i) {
    char *volatile *block = argument;
    volatile int beyond = 10;
    if (i == 0)
        *block = malloc(10);
    else
        usleep(100000), (*block)[beyond] = 1;
}

static void race(void *argument, unsigned i) {
    int *shared = argument;
    for (int round = 0; round < ROUNDS; round++) {
        *shared += (int)i;
        usleep(100);
    }
}

static void unset(void *argument, unsigned i) {
    int *volatile *block = argument;
    if (i == 0)
        *block = malloc(sizeof(int));
    else if (usleep(100000), **block == 1)
        sum++;
}

static void local(void *argument, unsigned i) {
    (void)argument, (void)i;
    volatile int array[16];
    array[0] = 1;
    usleep(100);
    if (array[7] == 1)
        sum++;
}

/* The reader has begun before the other ends: it would get the stack of that one. */
static void ended(void *argument, unsigned i) {
    static volatile int begun;
    volatile long variable = 1;
    volatile long *volatile *shared = argument;
    if (i == 0) {
        while (!begun)
            usleep(100);
        *shared = &variable;
    } else {
        begun = 1;
        while (!*shared)
            usleep(100);
        usleep(100000);
        sum += **shared;
    }
}

static void leak(void *argument, unsigned i) {
    (void)argument, (void)i;
    void *volatile block = malloc(1234);
    usleep(100);
    block = 0;
}

int main(int argc, char **argv) {
    const char *fault = argc > 1 ? argv[1] : "";
    on_virtual_threads(THREADS, work, 0);
    if (sum != (long)THREADS * ROUNDS)
        return 2;
    char *block = malloc(10);
    if (!strcmp(fault, "stack"))
        on_virtual_threads(1, stack, 0);
    int shared = 0;
    if (!strcmp(fault, "race"))
        on_virtual_threads(2, race, &shared);
    void *other = 0;
    if (!strcmp(fault, "heap"))
        on_virtual_threads(2, heap, &other);
    if (!strcmp(fault, "unset"))
        on_virtual_threads(2, unset, &other);
    if (!strcmp(fault, "local"))
        on_virtual_threads(1, local, 0);
    if (!strcmp(fault, "leak"))
        on_virtual_threads(1, leak, 0);
    if (!strcmp(fault, "ended"))
        on_virtual_threads(2, ended, &other);
    if (!strcmp(fault, "freed"))
        on_virtual_threads(2, freed, &block);
    else
        free(block);
    puts("fine");
    return 0;
}
