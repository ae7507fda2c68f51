/* Two threads add to a counter by a load and a store. No call is between them, so only instrumented
 * code has a point there. An exchange that expects the right value always succeeds, and is counted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int sum, exchanged;
static int accesses;

static void *add(void *unused) {
    for (int i = 0; i < 3; i++) {
        int value = atomic_load(&sum);
        accesses++;
        atomic_store(&sum, value + 1);
    }
    for (int expected = 0; !atomic_compare_exchange_weak(&exchanged, &expected, expected + 1);)
        ;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", sum, exchanged);
    return 0;
}
