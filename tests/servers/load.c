/* Load for a server: threads with a connection each, which ask, wait for the answer and pause.
 *
 * usage: load KIND PORT LOG: writes the begin and end of each call, in ns of CLOCK_MONOTONIC. One request in twenty
 * takes long. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 150 };

static const char *kind;
static int port;
static long long log_of[THREADS][CALLS][2];

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A request, and how its answer ends. */
static const char *request(int is_slow, char *text, size_t size) {
    if (!strcmp(kind, "redis")) {
        char script[200];
        snprintf(script, sizeof script, "local x = 0 for i = 1, %d do x = x + i end return x", is_slow ? 400000 : 40000);
        snprintf(text, size, "*3\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n0\r\n", strlen(script), script);
        return "\r\n";
    }
    if (!strcmp(kind, "memcached")) {
        snprintf(text, size, "get %s\r\n", is_slow ? "large" : "small");
        return "END\r\n";
    }
    if (!strcmp(kind, "nginx")) {
        snprintf(text, size, "GET /%s HTTP/1.1\r\nHost: here\r\n\r\n", is_slow ? "large" : "small");
        return "the end\n";
    }
    snprintf(text, size, "%d\n", is_slow ? 15000 : 1000);
    return "ok\n";
}

static void *work(void *number) {
    int at = (int)(long)number, one = 1;
    unsigned seed = 7 + at;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(connection, (struct sockaddr *)&to, sizeof to)) exit(1);
    char *answer = malloc(4 << 20), text[400];
    for (int call = 0; call < CALLS; call++) {
        const char *end = request((call + at) % 20 == 7, text, sizeof text);
        size_t length = strlen(end), have = 0;
        log_of[at][call][0] = now();
        if (send(connection, text, strlen(text), 0) < 0) exit(1);
        while (have < length || memcmp(answer + have - length, end, length)) {
            ssize_t got = recv(connection, answer + have, (4 << 20) - have, 0);
            if (got <= 0) exit(1);
            have += got;
        }
        log_of[at][call][1] = now();
        usleep(2000 + rand_r(&seed) % 18000);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    kind = words[1], port = atoi(words[2]);
    pthread_t threads[THREADS];
    for (long at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    FILE *out = fopen(words[3], "w");
    if (!out) return 1;
    for (int at = 0; at < THREADS; at++)
        for (int call = 0; call < CALLS; call++) fprintf(out, "%lld %lld\n", log_of[at][call][0], log_of[at][call][1]);
    return fclose(out);
}
