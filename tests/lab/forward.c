/* Takes TCP connections on one address and carries each to another one inside a network namespace:
 * forward ADDRESS PORT NAMESPACE TARGET_ADDRESS TARGET_PORT
 * It listens where it is started and connects from the namespace, so that a host's packet filter sees the client. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "forward: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_in address_of(const char *address, const char *port) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, address, &result.sin_addr) != 1) {
        fprintf(stderr, "forward: `%s` is no IPv4 address\n", address);
        exit(2);
    }
    return result;
}

/* Ends the client's connection with a reset, as a refused connection ends. */
static void reset(int client) {
    struct linger linger = {1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client);
}

struct half { int from, to; char buffer[65536]; size_t start, end; int done; };

static void carry(int client, int server) {
    static struct half way[2];
    way[0] = (struct half){.from = client, .to = server};
    way[1] = (struct half){.from = server, .to = client};
    while (!way[0].done || !way[1].done) {
        struct pollfd wait[4];
        for (int i = 0; i < 2; i++) {
            struct half *half = &way[i];
            int reading = !half->done && half->start == half->end;
            int writing = half->start < half->end;
            wait[2 * i] = (struct pollfd){reading ? half->from : -1, POLLIN, 0};
            wait[2 * i + 1] = (struct pollfd){writing ? half->to : -1, POLLOUT, 0};
        }
        if (poll(wait, 4, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            struct half *half = &way[i];
            if (wait[2 * i].revents) {
                ssize_t got = read(half->from, half->buffer, sizeof half->buffer);
                if (got < 0 && errno != EAGAIN && errno != EINTR) {
                    reset(client);
                    return;
                }
                if (got == 0) {
                    shutdown(half->to, SHUT_WR);
                    half->done = 1;
                }
                if (got > 0)
                    half->start = 0, half->end = got;
            }
            if (wait[2 * i + 1].revents) {
                ssize_t put = write(half->to, half->buffer + half->start, half->end - half->start);
                if (put < 0 && errno != EAGAIN && errno != EINTR) {
                    reset(client);
                    return;
                }
                if (put > 0)
                    half->start += put;
            }
        }
    }
}

int main(int argc, char *argv[]) {
    struct sockaddr_in here, there;
    int listener, namespace, one = 1;
    if (argc != 6) {
        fprintf(stderr, "usage: forward ADDRESS PORT NAMESPACE TARGET_ADDRESS TARGET_PORT\n");
        return 2;
    }
    here = address_of(argv[1], argv[2]);
    there = address_of(argv[4], argv[5]);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1024))
        fail(argv[1]);
    namespace = open(argv[3], O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET))
        fail(argv[3]);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC), server;
        if (client < 0)
            continue;
        if (fork() == 0) {
            close(listener);
            server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(server, (struct sockaddr *)&there, sizeof there)) {
                reset(client);
                _exit(1);
            }
            setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            fcntl(client, F_SETFL, O_NONBLOCK);
            fcntl(server, F_SETFL, O_NONBLOCK);
            carry(client, server);
            _exit(0);
        }
        close(client);
    }
}
