/* A server with a client, and the programs that keep it from working: what `check.py` records.
 *
 * usage: shop serve WORK LOG REQUESTS [group=FILE]... [cpu=N] [work=US] [map=FILE] [read=FILE] [ask=ADDRESS]
 *        shop burn NAME CPU POLICY BURST_MS PERIOD_MS    computes in bursts at multiples of a period
 *                                                        of the clock; POLICY is other or fifo
 *        shop wake NAME CPU BURST_MS FIFO                computes at policy fifo when a byte comes through FIFO
 *        shop stop NAME PID_FILE, shop freeze NAME STATE FROZEN THAWED     for 60 ms each 400 ms
 *        shop answer NAME PORT, shop fill NAME ADDRESS   what the server asks; a bulk transfer beside that
 *
 * serve: the process `clerk` sends a request each 10 ms at most and awaits the reply; the thread `worker` handles it.
 * WORK is what goes on in the process beside that: none, report (`reporter` computes 40 ms each 370 ms), stock
 * (`stocktaker` holds the lock that each request takes and meanwhile wakes the program behind stock=FILE, a pipe),
 * import (`importer` fills 18 MiB of memory each 400 ms), archive (`archiver` reads 1 MiB past the page cache each
 * 500 ms). It ends after REQUESTS or six seconds. LOG gets the start and the end of each request with its reply, and
 * LOG.pid the process id. What delays requests (a burst, a stop, an operation of `worker`) adds its start and end to
 * the file that PLANT_LOG names. All are nanoseconds of CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define READ 4096
#define MOST 4096
#define LONGEST (6000 * MS)

static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *log_path, *map_path, *read_path, *stock_path, *ask_address;
static long work_us = 500;
static int requests;

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void rest(int64_t ns) {
    struct timespec t = {ns / (1000 * MS), ns % (1000 * MS)};
    while (nanosleep(&t, &t)) {}
}

/* Computes until its thread has had so much CPU time: the same work, whoever disturbs it. */
__attribute__((noinline)) static void compute(int64_t ns) {
    int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 100000; i++) {}
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Adds a line to the log of what the plant did. */
static void planted(int64_t start, int64_t end) {
    char line[64];
    const char *path = getenv("PLANT_LOG");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1, size;
    size = snprintf(line, sizeof line, "%lld %lld\n", (long long)start, (long long)end);
    if (file < 0 || write(file, line, size) != size) fail("PLANT_LOG");
    close(file);
}

static void write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
    close(file);
}

static void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
}

static void real_time(void) {
    struct sched_param param = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_FIFO, &param)) fail("sched_setscheduler");
}

static struct sockaddr_in address_of(const char *text) {
    char host[64];
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    inet_pton(AF_INET, host, &address.sin_addr);
    address.sin_port = htons(atoi(colon + 1));
    return address;
}

static int connected(const char *text) {
    struct sockaddr_in address = address_of(text);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) fail(text);
    return fd;
}

/* ---- what goes on beside the requests ---- */

__attribute__((noinline)) static void build_report(void) { compute(40 * MS); }

static void *report(void *unused) {
    pthread_setname_np(pthread_self(), "reporter");
    for (;;) {
        rest(330 * MS);
        build_report();
    }
    return unused;
}

__attribute__((noinline)) static void count_stock(int wake) {
    pthread_mutex_lock(&stock_lock);
    compute(MS);
    if (wake >= 0 && write(wake, "x", 1) < 0) fail("stock");
    compute(MS);
    pthread_mutex_unlock(&stock_lock);
}

static void *stock(void *unused) {
    pthread_setname_np(pthread_self(), "stocktaker");
    bind_to(0);
    int wake = open(stock_path, O_WRONLY);
    for (int n = 1;; n++) {
        rest(41 * MS);
        count_stock(n % 3 ? -1 : wake);
    }
    return unused;
}

__attribute__((noinline)) static void load_prices(void) {
    size_t size = 18 << 20;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(block, 1, size);
    munmap(block, size);
}

static void *import(void *unused) {
    pthread_setname_np(pthread_self(), "importer");
    for (;;) {
        rest(400 * MS);
        load_prices();
    }
    return unused;
}

static void *archive(void *unused) {
    void *buffer;
    pthread_setname_np(pthread_self(), "archiver");
    int file = open(read_path, O_RDONLY | O_DIRECT);
    if (file < 0 || posix_memalign(&buffer, 4096, 128 << 10)) fail(read_path);
    for (;;) {
        rest(500 * MS);
        for (int i = 0; i < 8; i++)
            if (pread(file, buffer, 128 << 10, (8 << 20) + (i << 17)) < 0) fail("archive");
    }
    return unused;
}

/* ---- the server ---- */

__attribute__((noinline)) static void price_order(void) { compute(work_us * 1000); }

__attribute__((noinline)) static unsigned look_up(const unsigned char *map, size_t size, unsigned n) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 200; i++) sum += map[((n * 200u + i) * 2654435761u) % size];
    return sum;
}

__attribute__((noinline)) static void take_from_stock(void) {
    pthread_mutex_lock(&stock_lock);
    compute(100000);
    pthread_mutex_unlock(&stock_lock);
}

static void *serve(void *channel) {
    int fd = *(int *)channel, ask = ask_address ? connected(ask_address) : -1, file = -1;
    unsigned char *map = NULL;
    void *buffer = NULL;
    size_t size = 0;
    struct stat stat;
    char byte, answer[64];
    static int64_t starts[MOST], ends[MOST];
    int operations = 0;
    pthread_setname_np(pthread_self(), "worker");
    if (map_path) {
        int mapped = open(map_path, O_RDONLY);
        if (mapped < 0 || fstat(mapped, &stat)) fail(map_path);
        size = stat.st_size;
        map = mmap(NULL, size, PROT_READ, MAP_SHARED, mapped, 0);
        madvise(map, size, MADV_RANDOM);
    } else if (read_path) {
        file = open(read_path, O_RDONLY | O_DIRECT);
        if (file < 0 || posix_memalign(&buffer, 4096, READ)) fail(read_path);
    }
    for (int n = 0; recv(fd, &byte, 1, 0) == 1; n++) {
        price_order();
        if (stock_path) take_from_stock();
        starts[operations] = now(CLOCK_MONOTONIC);
        if (map) look_up(map, size, n);
        if (file >= 0 && pread(file, buffer, READ, (off_t)(n % 256) * READ) < 0) fail("pread");
        if (ask >= 0 && (send(ask, "?", 1, 0) < 0 || recv(ask, answer, sizeof answer, 0) <= 0)) fail("ask");
        if (map || file >= 0 || ask >= 0) ends[operations++] = now(CLOCK_MONOTONIC);
        if (send(fd, &byte, 1, 0) < 0) fail("send");
    }
    for (int i = 0; i < operations; i++) planted(starts[i], ends[i]);
    return NULL;
}

static void clerk(int fd) {
    char byte = 'x';
    static int64_t starts[MOST], ends[MOST];
    int64_t begin = now(CLOCK_MONOTONIC);
    int n = 0;
    prctl(PR_SET_NAME, "clerk");
    for (; n < requests && (starts[n] = now(CLOCK_MONOTONIC)) < begin + LONGEST; n++) {
        if (send(fd, &byte, 1, 0) < 0 || recv(fd, &byte, 1, 0) != 1) break;
        ends[n] = now(CLOCK_MONOTONIC);
        rest(10 * MS);
    }
    FILE *log = fopen(log_path, "w");
    if (!log) fail(log_path);
    for (int i = 0; i < n; i++) fprintf(log, "%lld %lld\n", (long long)starts[i], (long long)ends[i]);
    fclose(log);
    exit(0);
}

static int server(int count, char **words) {
    int pair[2], cpu = -1;
    char pid_path[4096], text[32];
    pthread_t worker, other;
    const char *work = words[2];
    log_path = words[3];
    requests = atoi(words[4]) < MOST ? atoi(words[4]) : MOST - 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) fail("socketpair");
    signal(SIGPIPE, SIG_IGN);
    pid_t client = fork();
    if (client == 0) {
        close(pair[0]);
        clerk(pair[1]);
    }
    close(pair[1]);
    snprintf(text, sizeof text, "%d\n", getpid());
    for (int i = 5; i < count; i++) {
        char *value = strchr(words[i], '=') + 1;
        if (!strncmp(words[i], "group=", 6)) write_text(value, text);
        if (!strncmp(words[i], "cpu=", 4)) cpu = atoi(value);
        if (!strncmp(words[i], "work=", 5)) work_us = atol(value);
        if (!strncmp(words[i], "map=", 4)) map_path = value;
        if (!strncmp(words[i], "read=", 5)) read_path = value;
        if (!strncmp(words[i], "stock=", 6)) stock_path = value;
        if (!strncmp(words[i], "ask=", 4)) ask_address = value;
    }
    snprintf(pid_path, sizeof pid_path, "%s.pid", log_path);
    write_text(pid_path, text);
    bind_to(cpu);
    void *(*beside)(void *) = !strcmp(work, "report")    ? report
                              : !strcmp(work, "stock")   ? stock
                              : !strcmp(work, "import")  ? import
                              : !strcmp(work, "archive") ? archive
                                                         : NULL;
    if (beside) pthread_create(&other, NULL, beside, NULL);
    pthread_create(&worker, NULL, serve, &pair[0]);
    pthread_join(worker, NULL);
    close(pair[0]);
    waitpid(client, NULL, 0);
    return 0;
}

/* ---- the other programs ---- */

static void burn(char **words) {
    int64_t burst = atol(words[5]) * MS, period = atol(words[6]) * MS;
    bind_to(atoi(words[3]));
    if (!strcmp(words[4], "fifo")) real_time();
    for (;;) {
        rest(period - now(CLOCK_MONOTONIC) % period);
        int64_t start = now(CLOCK_MONOTONIC);
        compute(burst);
        planted(start, now(CLOCK_MONOTONIC));
    }
}

static int wake(char **words) {
    char byte;
    bind_to(atoi(words[3]));
    real_time();
    int fd = open(words[5], O_RDWR);
    while (read(fd, &byte, 1) == 1) {
        int64_t start = now(CLOCK_MONOTONIC);
        compute(atol(words[4]) * MS);
        planted(start, now(CLOCK_MONOTONIC));
    }
    return 1;
}

static int stop(char **words) {
    char text[32] = "";
    int file;
    while ((file = open(words[3], O_RDONLY)) < 0 || read(file, text, sizeof text - 1) <= 0) rest(10 * MS);
    pid_t pid = atoi(text);
    for (;;) {
        rest(340 * MS);
        int64_t start = now(CLOCK_MONOTONIC);
        if (kill(pid, SIGSTOP)) return 0;
        rest(60 * MS);
        kill(pid, SIGCONT);
        planted(start, now(CLOCK_MONOTONIC));
    }
}

static void freeze(char **words) {
    for (;;) {
        rest(340 * MS);
        int64_t start = now(CLOCK_MONOTONIC);
        write_text(words[3], words[4]);
        rest(60 * MS);
        write_text(words[3], words[5]);
        planted(start, now(CLOCK_MONOTONIC));
    }
}

static int answer(const char *port) {
    int one = 1, fd, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    char buffer[1 << 16];
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    signal(SIGCHLD, SIG_IGN);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16)) fail("listen");
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (fork() == 0) {
            ssize_t got;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0)
                if (got == 1) send(fd, "!", 1, 0);
            exit(0);
        }
        close(fd);
    }
    return 1;
}

/* 64 KiB each 350 ms: a router's queue in front of the questions. */
static int fill(const char *address) {
    static char block[64 << 10];
    int fd = connected(address);
    for (;;) {
        rest(350 * MS);
        if (send(fd, block, sizeof block, 0) < 0) return 1;
    }
}

int main(int count, char **words) {
    const char *what = count > 2 ? words[1] : "";
    if (!strcmp(what, "serve") && count > 4) return server(count, words);
    if (count > 3) prctl(PR_SET_NAME, words[2]);
    if (!strcmp(what, "answer") && count == 4) return answer(words[3]);
    if (!strcmp(what, "fill") && count == 4) return fill(words[3]);
    if (!strcmp(what, "burn") && count == 7) burn(words);
    if (!strcmp(what, "wake") && count == 6) return wake(words);
    if (!strcmp(what, "stop") && count == 4) return stop(words);
    if (!strcmp(what, "freeze") && count == 6) freeze(words);
    return 2;
}
