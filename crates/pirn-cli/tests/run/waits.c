/* Two consumers and two producers of a queue, and an hour of sleep.
 *
 *   -DWAIT=if     a consumer does not look again after its wait: it may take from an empty queue
 *   -DWAIT=while  nothing is wrong
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, taken;

static void *consume(void *unused) {
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&lock);
        WAIT (items == 0)
            pthread_cond_wait(&filled, &lock);
        if (items == 0) {
            puts("an item of an empty queue");
            exit(1);
        }
        items--;
        taken++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *produce(void *unused) {
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&lock);
        items++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return unused;
}

int main(void) {
    struct timespec begin, end;
    pthread_t threads[4];
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i % 2 ? produce : consume, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sleep(3600);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%d items in %ld s\n", taken, (long)(end.tv_sec - begin.tv_sec));
    return 0;
}
