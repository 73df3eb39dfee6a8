#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/fiber.h"
#include "core/log_impl.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { RING_SIZE = 1 << 20, LINES_PER_SECOND = 10, MAX_MODULES = 16, WRITER_PAUSE_MS = 20, LAST_LINES_S = 1 };

/* ---- levels ---- */
struct levels {
    enum log_level base;
    size_t count;
    struct {
        char module[24];
        enum log_level level;
    } modules[MAX_MODULES];
};

static struct levels levels = {.base = LOG_INFO};
static pthread_rwlock_t levels_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int highest_level = LOG_INFO; /* of any module: most lines that are not wanted cost one load */

static bool parse_level(struct sl_str name, enum log_level *level)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (sl_str_equal_nocase(name, sl_str(names[i]))) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static bool parse_levels_item(struct levels *set, struct sl_str item)
{
    const char *equals = memchr(item.data, '=', item.size);
    if (!equals)
        return parse_level(item, &set->base);
    size_t size = (size_t)(equals - item.data);
    if (size == 0 || size >= sizeof set->modules[0].module || set->count == MAX_MODULES)
        return false;
    memcpy(set->modules[set->count].module, item.data, size);
    set->modules[set->count].module[size] = '\0';
    return parse_level((struct sl_str){equals + 1, item.size - size - 1}, &set->modules[set->count++].level);
}

bool log_set_levels(const char *text)
{
    struct levels set = {.base = LOG_INFO};
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ",");
        if (!parse_levels_item(&set, (struct sl_str){at, size}))
            return false;
        at += size;
        if (!*at)
            break;
    }
    enum log_level highest = set.base;
    for (size_t i = 0; i < set.count; i++)
        if (set.modules[i].level > highest)
            highest = set.modules[i].level;
    pthread_rwlock_wrlock(&levels_lock);
    levels = set;
    atomic_store(&highest_level, (int)highest);
    pthread_rwlock_unlock(&levels_lock);
    return true;
}

static enum log_level level_of(const char *module)
{
    for (size_t i = 0; i < levels.count; i++)
        if (strcmp(levels.modules[i].module, module) == 0)
            return levels.modules[i].level;
    return levels.base;
}

bool log_enabled(enum log_level level, const char *module)
{
    if ((int)level > atomic_load_explicit(&highest_level, memory_order_relaxed))
        return false;
    pthread_rwlock_rdlock(&levels_lock);
    bool enabled = level <= level_of(module);
    pthread_rwlock_unlock(&levels_lock);
    return enabled;
}

/* ---- destination ---- */
static atomic_int format_now = LOG_AUTO;
static atomic_int file_fd = -1;
static char *file_path;
static atomic_int stderr_is_terminal = -1; /* asked for every line until log_start */

void log_set_format(enum log_format format)
{
    atomic_store(&format_now, (int)format);
}

/* Opened anew, the process's own outputs would have a position of their own, so that lines overwrite each other in a file,
 * and would not open at all if they are sockets. */
static int open_path(const char *path)
{
    if (strcmp(path, "/dev/stderr") == 0)
        return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (strcmp(path, "/dev/stdout") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static bool log_open_file(const char *path)
{
    int fd = open_path(path);
    if (fd < 0)
        return false;
    int old = atomic_load(&file_fd);
    if (old < 0) {
        atomic_store(&file_fd, fd);
        return true;
    }
    dup3(fd, old, O_CLOEXEC); /* keeps the number that the writer may be using just now */
    close(fd);
    return true;
}

bool log_set_file(const char *path, struct sl_error *error)
{
    free(file_path);
    file_path = path ? strdup(path) : NULL;
    if (!path) {
        int old = atomic_exchange(&file_fd, -1);
        log_flush();
        if (old >= 0)
            close(old);
        return true;
    }
    if (log_open_file(path))
        return true;
    sl_fail(error, errno == EACCES ? SL_PERMISSION_DENIED : SL_INTERNAL, "%s: %s", path, strerror(errno));
    return false;
}

void log_reopen(void)
{
    if (file_path && !log_open_file(file_path))
        log_error("core", "log file cannot be reopened", LOG_STR("error", strerror(errno)));
}

static bool to_terminal(void)
{
    int known = atomic_load_explicit(&stderr_is_terminal, memory_order_relaxed);
    return atomic_load(&file_fd) < 0 && (known < 0 ? isatty(STDERR_FILENO) : known);
}

static int destination(enum log_format format)
{
    int fd = atomic_load(&file_fd);
    return fd >= 0 ? fd : format == LOG_JSON ? STDOUT_FILENO : STDERR_FILENO;
}

/* Returns the bytes written: fewer when the disk is full or the reader of a pipe gone. */
static size_t write_all(int fd, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) { /* somebody made the pipe non-blocking; this thread may wait */
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
            continue;
        }
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t lines = 0;
    for (const char *at = data, *end = data + size; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

/* ---- ring and writer ----
 * `head` and `tail` count bytes for ever; the writer empties [tail, head). After a batch it sleeps for a moment without
 * being signalled, so that a busy service does not pay a wake-up per line. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, out;
    pthread_t thread;
    char *bytes;
    uint64_t head, tail, dropped;
    bool running, stopping, sleeping, hurry;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .out = PTHREAD_COND_INITIALIZER};

/* With the lock held. False when it does not fit. */
static bool ring_add(const char *data, size_t size)
{
    if (size > RING_SIZE - (ring.head - ring.tail))
        return false;
    size_t at = ring.head % RING_SIZE, first = size < RING_SIZE - at ? size : RING_SIZE - at;
    memcpy(ring.bytes + at, data, first);
    memcpy(ring.bytes, data + first, size - first);
    ring.head += size;
    return true;
}

static void ring_note_dropped(void)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%llu log lines dropped", (unsigned long long)ring.dropped);
    if (size <= 0)
        return;
    static struct log_line line; /* under the lock */
    static const struct log_field none = {.key = NULL};
    struct log_record record = {clock_wall_us(), LOG_WARN, "core", __FILE__, text, __LINE__, none, &none};
    enum log_format format = (enum log_format)atomic_load(&format_now);
    log_format_line(&line, &record, format == LOG_JSON ? LOG_JSON : LOG_SIMPLIFIED, false);
    if (ring_add(line.text, line.size))
        ring.dropped = 0;
}

static void write_batch(void)
{
    size_t at = ring.tail % RING_SIZE, size = ring.head - ring.tail;
    if (size > RING_SIZE - at)
        size = RING_SIZE - at;
    pthread_mutex_unlock(&ring.lock);
    size_t done = write_all(destination((enum log_format)atomic_load(&format_now)), ring.bytes + at, size);
    uint64_t lost = count_lines(ring.bytes + at + done, size - done);
    if (lost)
        metric_add(METRIC_LOG_DROPPED, lost, NULL, NULL, NULL);
    pthread_mutex_lock(&ring.lock);
    ring.tail += size;
    if (ring.dropped)
        ring_note_dropped();
    pthread_cond_broadcast(&ring.out);
}

static void wait_a_moment(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WRITER_PAUSE_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&ring.more, &ring.lock, &until);
}

static void *writer(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&ring.lock);
    for (;;) {
        while (ring.head != ring.tail)
            write_batch();
        ring.hurry = false;
        if (ring.stopping)
            break;
        wait_a_moment();
        while (ring.head == ring.tail && !ring.stopping) {
            ring.sleeping = true;
            pthread_cond_wait(&ring.more, &ring.lock);
            ring.sleeping = false;
        }
    }
    pthread_mutex_unlock(&ring.lock);
    return NULL;
}

static void log_emit(const struct log_line *line, enum log_format format)
{
    pthread_mutex_lock(&ring.lock);
    bool direct = !ring.running, dropped = false;
    if (!direct) {
        dropped = ring.dropped > 0 || !ring_add(line->text, line->size);
        ring.dropped += dropped;
        /* Half full: the pause of the writer ends early. */
        if (ring.sleeping || (!ring.hurry && ring.head - ring.tail > RING_SIZE / 2)) {
            ring.hurry = true;
            pthread_cond_signal(&ring.more);
        }
    }
    pthread_mutex_unlock(&ring.lock);
    if (direct)
        write_all(destination(format), line->text, line->size);
    if (dropped)
        metric_add(METRIC_LOG_DROPPED, 1, NULL, NULL, NULL);
}

/* ---- writing ---- */
/* False when the site has had its lines of this second; `*suppressed` gets the number held back before. */
static bool site_allows(struct log_site *site, uint64_t second, uint32_t *suppressed)
{
    *suppressed = 0;
    uint64_t seen = __atomic_load_n(&site->second, __ATOMIC_RELAXED);
    if (seen != second &&
        __atomic_compare_exchange_n(&site->second, &seen, second, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        __atomic_store_n(&site->count, 0, __ATOMIC_RELAXED);
        *suppressed = __atomic_exchange_n(&site->suppressed, 0, __ATOMIC_RELAXED);
    }
    if (__atomic_fetch_add(&site->count, 1, __ATOMIC_RELAXED) < LINES_PER_SECOND)
        return true;
    __atomic_fetch_add(&site->suppressed, 1, __ATOMIC_RELAXED);
    return false;
}

static bool has_field(const struct log_field *fields, const char *key)
{
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return true;
    return false;
}

static void write_record(struct log_record *record)
{
    static _Thread_local struct log_line line; /* too long for a fiber's stack */
    enum log_format format = (enum log_format)atomic_load(&format_now);
    bool terminal = format != LOG_JSON && to_terminal();
    if (format == LOG_AUTO)
        format = terminal ? LOG_PRETTY : LOG_SIMPLIFIED;
    log_format_line(&line, record, format, terminal && format == LOG_PRETTY && !getenv("NO_COLOR"));
    log_emit(&line, format);
}

static _Thread_local struct sl_str thread_request_id;

void log_set_request_id(struct sl_str id)
{
    thread_request_id = id;
}

struct sl_str log_request_id(void)
{
    return fiber_self() ? fiber_request_id() : thread_request_id;
}

void log_write(struct log_site *site, enum log_level level, const char *module, const char *file, int line,
               const char *message, const struct log_field *fields)
{
    static const struct log_field none = {.key = NULL};
    struct log_record record = {clock_wall_us(), level, module, file, message, line, none, fields};
    uint32_t suppressed = 0;
    if (site && !site_allows(site, record.wall_us / 1000000, &suppressed))
        return;
    struct sl_str id = log_request_id();
    if (id.size && !has_field(fields, "req"))
        record.req = (struct log_field)LOG_SLSTR("req", id);
    if (suppressed) {
        char text[64];
        snprintf(text, sizeof text, "%u similar messages suppressed", suppressed);
        struct log_record note = record;
        note.message = text;
        note.fields = &none;
        write_record(&note);
    }
    write_record(&record);
}

void log_start(void)
{
    pthread_mutex_lock(&ring.lock);
    if (!ring.running) {
        atomic_store(&stderr_is_terminal, isatty(STDERR_FILENO));
        ring.bytes = malloc(RING_SIZE);
        ring.head = ring.tail = ring.dropped = 0;
        ring.stopping = false;
        ring.running = ring.bytes && pthread_create(&ring.thread, NULL, writer, NULL) == 0;
    }
    pthread_mutex_unlock(&ring.lock);
}

void log_flush(void)
{
    pthread_mutex_lock(&ring.lock);
    uint64_t goal = ring.head;
    while (ring.running && !ring.stopping && ring.tail < goal) {
        pthread_cond_signal(&ring.more);
        pthread_cond_wait(&ring.out, &ring.lock);
    }
    pthread_mutex_unlock(&ring.lock);
}

void log_stop(void)
{
    pthread_mutex_lock(&ring.lock);
    bool running = ring.running;
    ring.stopping = true;
    pthread_cond_signal(&ring.more);
    pthread_mutex_unlock(&ring.lock);
    if (!running)
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_LINES_S;
    if (pthread_timedjoin_np(ring.thread, NULL, &until) != 0)
        return; /* nobody reads the pipe: the thread, and the ring it holds, end with the process */
    pthread_mutex_lock(&ring.lock);
    ring.running = false;
    atomic_store(&stderr_is_terminal, -1);
    free(ring.bytes);
    ring.bytes = NULL;
    pthread_mutex_unlock(&ring.lock);
}
