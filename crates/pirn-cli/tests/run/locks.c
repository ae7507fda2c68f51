/* Two threads take two locks, each in another order, while the first one waits for them. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

static void *there(void *unused) {
    pthread_mutex_lock(&one);
    sleep(1);
    pthread_mutex_lock(&other);
    return unused;
}

static void *back(void *unused) {
    pthread_mutex_lock(&other);
    sleep(1);
    pthread_mutex_lock(&one);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, there, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
