/* `run-echo`: a server that sends back what it gets, a thread per connection. */

#include "protocol.h"
#include "workloads.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Writes all of it; returns whether that was possible. */
static int write_all(int socket, const char *bytes, ssize_t length) {
    while (length > 0) {
        ssize_t written = write(socket, bytes, (size_t)length);
        if (written < 0)
            return 0;
        bytes += written;
        length -= written;
    }
    return 1;
}

static void *send_back(void *argument) {
    int socket = (int)(intptr_t)argument, on = 1;
    char bytes[4096];
    ssize_t length;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while ((length = read(socket, bytes, sizeof bytes)) > 0)
        if (!write_all(socket, bytes, length))
            break;
    close(socket);
    return NULL;
}

static void *accept_all(void *argument) {
    int listener = (int)(intptr_t)argument;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        int socket = accept(listener, NULL, NULL);
        if (socket >= 0)
            start(&detached, send_back, (void *)(intptr_t)socket);
        else if (errno != EINTR && errno != ECONNABORTED)
            fail("cannot accept", errno);
    }
    return NULL;
}

void echo_serve(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        fail("cannot listen", errno);
    start(NULL, accept_all, (void *)(intptr_t)listener);
    say("{\"listening\":%d}", ntohs(address.sin_port));
    until_end_of_input();
}
