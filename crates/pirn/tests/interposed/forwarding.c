/* A library to be preloaded that defines functions as libfaketime does: it looks at the arguments,
   and calls the next definition. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int nanosleep(const struct timespec *time, struct timespec *left) {
    return NEXT(nanosleep)(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    return NEXT(clock_nanosleep)(clock, flags, time, left);
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    return NEXT(poll)(fds, count, timeout);
}

ssize_t read(int fd, void *buffer, size_t length) {
    return NEXT(read)(fd, buffer, length);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    return NEXT(pthread_mutex_unlock)(mutex);
}
