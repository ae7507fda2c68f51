/* A program that knows nothing of virtual threads: `run-c WORKLOAD [key=value]...` */

#include "protocol.h"
#include "workloads.h"

#include <gnu/libc-version.h>
#include <string.h>

pthread_t start(const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    pthread_t thread;
    int error = pthread_create(&thread, attributes, routine, argument);
    if (error != 0)
        fail("cannot start a thread", error);
    return thread;
}

void *join(pthread_t thread) {
    void *result = NULL;
    int error = pthread_join(thread, &result);
    if (error != 0)
        fail("cannot join a thread", error);
    return result;
}

static void rounds(void (*round)(void)) {
    while (another_round()) {
        round();
        say("{\"end\":true}");
    }
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    say("{\"peer\":\"run-c\",\"version\":\"glibc %s\"}", gnu_get_libc_version());
    read_params(count - 2, arguments + 2);
    if (strcmp(name, "run-spawn") == 0) {
        rounds(spawn_round);
    } else if (strcmp(name, "run-parked") == 0) {
        rounds(parked_round);
    } else if (strcmp(name, "run-echo") == 0) {
        echo_serve();
    } else {
        say("{\"error\":\"no workload %s\"}", name);
        return 2;
    }
    return 0;
}
