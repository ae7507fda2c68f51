// Threads build trees that only their stacks, registers, `__thread` variables or another thread's
// argument refer to, and check them after a while in which other threads collect.
//
//     boehm SECONDS
#define GC_THREADS
#include <gc/gc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 40, WAITERS = 12 };

struct node {
    struct node *left, *right;
    uint64_t own, sum, filler[2];
};

static double end;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static struct node *tree(int depth, uint64_t seed) {
    struct node *n = GC_MALLOC(sizeof *n);
    n->own = n->sum = seed;
    if (depth > 0) {
        n->left = tree(depth - 1, seed * 3 + 1);
        n->right = tree(depth - 1, seed * 5 + 2);
        n->sum += n->left->sum + n->right->sum;
    }
    return n;
}

static uint64_t check(const struct node *n) {
    uint64_t sum = n->own + (n->left ? check(n->left) : 0) + (n->right ? check(n->right) : 0);
    if (sum != n->sum) {
        fprintf(stderr, "a node that is in use was freed\n");
        abort();
    }
    return sum;
}

static int deep(struct node *held, int frames) {
    volatile char filler[200] = {0};
    if (frames == 0) usleep(rand() % 300);
    else deep(held, frames - 1);
    check(held);
    return filler[0];
}

static void *short_lived(void *p) {
    check(p);
    struct node *own = tree(5, (uintptr_t)p);
    GC_MALLOC(3000);
    check(own);
    return own;
}

static void *work(void *p) {
    uint64_t me = (uintptr_t)p, seed = me;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
    while (now() < end) {
        struct node *first = tree(6, seed++), *held = tree(4, seed++);
        pthread_t thread;
        void *result;
        char byte = 1;
        switch (seed % 6) {
        case 0: deep(held, 20); break;
        case 1:
            if (pthread_create(&thread, NULL, short_lived, first) != 0) abort();
            pthread_join(thread, &result);
            check(result);
            break;
        case 2:
            if (write(pair[0], &byte, 1) != 1 || read(pair[1], &byte, 1) != 1) abort();
            break;
        case 3: for (volatile int i = 0; i < 200000; i++) {} break;
        case 4: usleep(200); break;
        default: if (me % 8 == 0) GC_gcollect();
        }
        check(first);
        check(held);
    }
    return NULL;
}

static void *wait_for_change(void *p) {
    struct node *held = tree(4, (uintptr_t)p);
    while (now() < end) {
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec++;
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&changed, &mutex, &limit);
        pthread_mutex_unlock(&mutex);
        check(held);
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[WORKERS + WAITERS];
    GC_INIT();
    GC_allow_register_threads();
    end = now() + (count > 1 ? atof(arguments[1]) : 1);
    for (uintptr_t i = 0; i < WORKERS + WAITERS; i++)
        if (pthread_create(&threads[i], NULL, i < WORKERS ? work : wait_for_change, (void *)i) != 0)
            abort();
    while (now() < end) {
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < WORKERS + WAITERS; i++) pthread_join(threads[i], NULL);
    puts("ok");
}
