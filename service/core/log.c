/* Logging: levels, destinations (sinks) with a ring buffer and a writer thread each, the rate limit of call sites. */
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "core/fiber.h"
#include "core/log_impl.h"
#include "core/loop.h"
#include "core/metrics.h"

/* LAST_TURNS times LAST_TURN_NS: how long a crash report waits for the writer thread. RING_SIZE: bytes of lines that may wait to be
 * written. LINES_PER_SECOND: limit of one call site. MAX_MODULES: modules with a level of their own. WRITER_PAUSE_MS: pause of the writer
 * thread in which more lines collect. LAST_LINES_S: how long a normal exit waits for the writer thread. */
enum { LAST_TURNS = 20, LAST_TURN_NS = 10000000 };
enum { RING_SIZE = 1 << 20, LINES_PER_SECOND = 10, MAX_MODULES = 16, WRITER_PAUSE_MS = 20, LAST_LINES_S = 1 };

/* ---- levels ---- */
struct log_levels {
    enum log_level base;
    size_t count;
    struct {
        char module[24];
        enum log_level level;
    } modules[MAX_MODULES];
};

static struct log_levels levels = {.base = LOG_INFO};
static pthread_rwlock_t levels_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int highest_level = LOG_INFO; /* maximum of `levels`: most calls that log nothing read only this */

/* Parses the name of a level, in any case; false for other words. */
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

/* Parses `level` or `module=level` into `set`; false if it is neither, or there are too many modules. */
static bool parse_levels_item(struct log_levels *set, struct sl_str item)
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
    struct log_levels set = {.base = LOG_INFO};
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

/* Returns the level of a module: its own, or the one for all modules. Call with the lock held. */
static enum log_level get_level(const char *module)
{
    for (size_t i = 0; i < levels.count; i++)
        if (strcmp(levels.modules[i].module, module) == 0)
            return levels.modules[i].level;
    return levels.base;
}

/* Compares the highest level of all modules first, without a lock: most disabled lines are above it. */
bool log_enabled(enum log_level level, const char *module)
{
    if ((int)level > atomic_load_explicit(&highest_level, memory_order_relaxed))
        return false;
    pthread_rwlock_rdlock(&levels_lock);
    bool enabled = level <= get_level(module);
    pthread_rwlock_unlock(&levels_lock);
    return enabled;
}

/* ---- destinations ----
 * A sink (a destination of log lines) has a ring buffer and a thread that writes it out. `head` and `tail` are byte counts that only grow;
 * the thread writes [tail, head). After that it pauses and is not signalled, so that a busy service does not pay a wake-up per line. */
struct log_destination {
    pthread_mutex_t lock;
    pthread_cond_t more, out;
    pthread_t thread;
    char *bytes;
    _Atomic uint64_t head, tail; /* a crash report reads them without the lock */
    uint64_t dropped;            /* lines that did not fit, since the log last said so */
    atomic_bool running;         /* the writer thread runs; a crash report reads it without the lock */
    bool stopping, sleeping, hurry;
    atomic_int fd; /* descriptor of the log file; -1 = none */
    char *path;
};
#define SINK                                                                                                           \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .out = PTHREAD_COND_INITIALIZER, .fd = -1 \
    }
static void sink_start(struct log_destination *sink);
static void sink_flush(struct log_destination *sink);
static struct log_destination log_sink = SINK, access_sink = SINK; /* access_sink is used only while it has a file */

static atomic_int format_now = LOG_AUTO;
static atomic_int stderr_is_terminal = -1; /* -1: not known before log_start, so isatty(3) is called for every line */

void log_set_format(enum log_format format)
{
    atomic_store(&format_now, (int)format);
}

/* Opens a log file for appending. /dev/stderr and /dev/stdout are duplicated instead: opening their path fails if they are sockets, and
 * gives a file position of its own, so that lines would overwrite each other if they are files. */
static int open_path(const char *path)
{
    if (strcmp(path, "/dev/stderr") == 0)
        return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (strcmp(path, "/dev/stdout") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

/* Opens the log file of a sink, for the first time or again after it was rotated. On failure returns false, with errno, and the sink goes
 * on writing to where it wrote before. */
static bool sink_open(struct log_destination *sink, const char *path)
{
    int fd = open_path(path);
    if (fd < 0)
        return false;
    int old = atomic_load(&sink->fd);
    if (old < 0) {
        atomic_store(&sink->fd, fd);
        return true;
    }
    dup3(fd, old, O_CLOEXEC); /* keeps the descriptor number, as the writer thread may be using it now */
    close(fd);
    return true;
}

/* Sets the file of a sink; NULL: standard error or output. Waits for the writer thread before it closes the old file, which that thread may
 * be using. False with an error if the new file cannot be opened; its path is kept, so that log_reopen tries again. */
static bool sink_set_file(struct log_destination *sink, const char *path, struct sl_error *error)
{
    free(sink->path);
    sink->path = path ? strdup(path) : NULL;
    if (!path) {
        int old = atomic_exchange(&sink->fd, -1);
        sink_flush(sink); /* afterwards the writer thread does not use `old` any more */
        sl_close(old);
        return true;
    }
    if (sink_open(sink, path))
        return true;
    /* whoever shows the error says first that a log file cannot be opened */
    sl_fail(error, errno == EACCES ? SL_PERMISSION_DENIED : SL_INTERNAL, "%s: %s", path, strerror(errno));
    return false;
}

bool log_set_file(const char *path, struct sl_error *error)
{
    return sink_set_file(&log_sink, path, error);
}

/* The access log gets a writer thread of its own when it has a file and log_start has started the threads; before that, log_start starts
 * it. */
bool log_set_access_file(const char *path, struct sl_error *error)
{
    bool set = sink_set_file(&access_sink, path, error);
    if (set && path && log_sink.running)
        sink_start(&access_sink);
    return set;
}

/* Opens the log files again by their paths, after they were renamed (rotated). If that fails, logs an error and goes on to use the old
 * file. */
void log_reopen(void)
{
    struct log_destination *const sinks[] = {&log_sink, &access_sink};
    for (size_t i = 0; i < sizeof sinks / sizeof *sinks; i++)
        if (sinks[i]->path && !sink_open(sinks[i], sinks[i]->path))
            log_error("core", "cannot reopen the log file; lines go where they went before",
                      LOG_STR("path", sinks[i]->path), LOG_STR("error", strerror(errno)));
}

/* True if lines go to a terminal. Asks the system until the answer is known (-1: not yet). */
static bool to_terminal(void)
{
    int known = atomic_load_explicit(&stderr_is_terminal, memory_order_relaxed);
    return atomic_load(&log_sink.fd) < 0 && (known < 0 ? isatty(STDERR_FILENO) : known);
}

/* Returns the descriptor that a sink writes to: its file, else standard output for JSON and standard error for other formats. */
static int destination(struct log_destination *sink, enum log_format format)
{
    int fd = atomic_load(&sink->fd);
    return fd >= 0 ? fd : format == LOG_JSON ? STDOUT_FILENO : STDERR_FILENO;
}

/* Returns the number of bytes written: fewer than `size` on an error, e.g. if the disk is full or the pipe has no reader. */
static size_t write_all(int fd, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) { /* another process has made the pipe non-blocking; this thread may wait */
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

/* ---- ring and writer ---- */

/* Appends a line to the ring buffer, in two parts if it passes the buffer's end; false if it does not fit. `head` and `tail` count all
 * bytes that were ever added and written. Call with the lock held. */
static bool ring_add(struct log_destination *sink, const char *data, size_t size)
{
    if (size > RING_SIZE - (sink->head - sink->tail))
        return false;
    size_t at = sink->head % RING_SIZE, first = size < RING_SIZE - at ? size : RING_SIZE - at;
    memcpy(sink->bytes + at, data, first);
    memcpy(sink->bytes, data + first, size - first);
    sink->head += size;
    return true;
}

/* Adds a log line that tells how many lines were dropped, as JSON or in the simplified format, which suits a file and a terminal. If it
 * does not fit either, `dropped` stays set and write_batch calls this again. */
static void ring_note_dropped(struct log_destination *sink)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%llu log lines dropped", (unsigned long long)sink->dropped);
    if (size <= 0)
        return;
    static _Thread_local struct log_line line; /* static, as it is large; per thread, as each sink has its writer */
    static const struct log_field none = {.key = NULL}; /* no request id, no fields */
    struct log_record record = {clock_wall_us(), LOG_WARN, "core", __FILE__, text, __LINE__, none, &none};
    enum log_format format = (enum log_format)atomic_load(&format_now);
    log_format_line(&line, &record, format == LOG_JSON ? LOG_JSON : LOG_SIMPLIFIED, false);
    if (ring_add(sink, line.text, line.size))
        sink->dropped = 0;
}

/* Writes out the bytes in the ring buffer, up to the buffer's end; the caller repeats this for those from its start. Releases the caller's
 * lock while it writes. Lines that cannot be written are lost and counted in a metric. */
static void write_batch(struct log_destination *sink)
{
    size_t at = sink->tail % RING_SIZE, size = sink->head - sink->tail;
    if (size > RING_SIZE - at)
        size = RING_SIZE - at;
    pthread_mutex_unlock(&sink->lock);
    size_t done = write_all(destination(sink, (enum log_format)atomic_load(&format_now)), sink->bytes + at, size);
    uint64_t lost = count_lines(sink->bytes + at + done, size - done);
    if (lost)
        metric_add(METRIC_LOG_DROPPED, lost, NULL, NULL, NULL);
    pthread_mutex_lock(&sink->lock);
    sink->tail += size;
    if (sink->dropped)
        ring_note_dropped(sink);
    pthread_cond_broadcast(&sink->out);
}

/* Waits for WRITER_PAUSE_MS, or until the condition `more` is signalled. */
static void wait_a_moment(struct log_destination *sink)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WRITER_PAUSE_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sink->more, &sink->lock, &until);
}

/* The writer thread of a sink: writes out its ring buffer until sink_stop. After the buffer is empty it pauses, in which more lines
 * collect; then it sleeps until there are lines. `sleeping` tells sink_emit that a signal is needed. */
static void *writer(void *arg)
{
    struct log_destination *sink = arg;
    pthread_mutex_lock(&sink->lock);
    for (;;) {
        while (sink->head != sink->tail)
            write_batch(sink);
        sink->hurry = false;
        if (sink->stopping)
            break;
        wait_a_moment(sink);
        while (sink->head == sink->tail && !sink->stopping) {
            sink->sleeping = true;
            pthread_cond_wait(&sink->more, &sink->lock);
            sink->sleeping = false;
        }
    }
    pthread_mutex_unlock(&sink->lock);
    return NULL;
}

/* Adds a line to the ring buffer; writes it directly if the writer thread does not run. If the buffer is full, drops this line and all
 * later ones until the writer has added a line with their number, which has to stand where they are missing. */
static void sink_emit(struct log_destination *sink, const char *text, size_t size, enum log_format format)
{
    pthread_mutex_lock(&sink->lock);
    bool direct = !sink->running, dropped = false;
    if (!direct) {
        dropped = sink->dropped > 0 || !ring_add(sink, text, size);
        sink->dropped += dropped;
        /* wakes the writer if it sleeps; ends its pause early, once (`hurry`), when the ring is half full */
        if (sink->sleeping || (!sink->hurry && sink->head - sink->tail > RING_SIZE / 2)) {
            sink->hurry = true;
            pthread_cond_signal(&sink->more);
        }
    }
    pthread_mutex_unlock(&sink->lock);
    if (direct)
        write_all(destination(sink, format), text, size);
    if (dropped)
        metric_add(METRIC_LOG_DROPPED, 1, NULL, NULL, NULL);
}

/* ---- writing ---- */
/* The rate limit of a call site: false if it has used up its lines for this second. In the first call of a second, `*suppressed` is set to
 * the number of lines suppressed before, else to 0. */
static bool site_allows(struct log_site *site, uint64_t second, uint32_t *suppressed)
{
    *suppressed = 0;
    uint64_t seen = __atomic_load_n(&site->second, __ATOMIC_RELAXED);
    /* of several threads, the one whose exchange succeeds begins the new second */
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

/* Counts the line in the metric of log lines by level. Not lines of the access log: requests have metrics of their own. */
static void count_message(const struct log_record *record)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};
    if (strcmp(record->module, "access") != 0)
        metric_add(METRIC_LOG_MESSAGES, 1, names[record->level], NULL, NULL);
}

static void (*_Atomic error_callback)(const struct log_report *report);

void log_on_error(void (*callback)(const struct log_report *report))
{
    atomic_store(&error_callback, callback);
}

/* Passes an error on to the callback of log_on_error, with the line as JSON. */
static void report_to_error_sink(const struct log_record *record)
{
    static _Thread_local struct log_line line;
    void (*callback)(const struct log_report *report) = atomic_load(&error_callback);
    if (!callback)
        return;
    log_format_line(&line, record, LOG_JSON, false);
    callback(&(struct log_report){.module = record->module,
                                  .message = record->message,
                                  .file = record->file,
                                  .line = record->line,
                                  .json = {line.text, line.size - 1}}); /* without the line end */
}

/* Counts, formats and emits a line, and passes an error on to log_on_error's callback. Lines of the module `access` go to the access log if
 * it has a file; that is never a terminal, so it gets neither the pretty format nor colours. */
static void write_record(struct log_record *record)
{
    count_message(record);
    if (record->level == LOG_ERROR)
        report_to_error_sink(record);
    static _Thread_local struct log_line line; /* too large for a fiber's stack */
    enum log_format format = (enum log_format)atomic_load(&format_now);
    bool terminal = format != LOG_JSON && to_terminal();
    if (format == LOG_AUTO)
        format = terminal ? LOG_PRETTY : LOG_SIMPLIFIED;
    struct log_destination *sink = &log_sink;
    if (atomic_load_explicit(&access_sink.fd, memory_order_relaxed) >= 0 && strcmp(record->module, "access") == 0) {
        sink = &access_sink;
        format = format == LOG_PRETTY ? LOG_SIMPLIFIED : format;
        terminal = false;
    }
    log_format_line(&line, record, format, terminal && format == LOG_PRETTY && !getenv("NO_COLOR"));
    sink_emit(sink, line.text, line.size, format);
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

/* If the rate limit has suppressed lines of this call site, a line with their number goes before this one, with the same level and request
 * id. */
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

void log_access_line(struct sl_str line)
{
    enum log_format format = (enum log_format)atomic_load(&format_now);
    sink_emit(atomic_load(&access_sink.fd) >= 0 ? &access_sink : &log_sink, line.data, line.size, format);
}

/* Starts the writer thread of a sink, unless it runs. If there is no memory or thread for it, lines are still written directly. */
static void sink_start(struct log_destination *sink)
{
    pthread_mutex_lock(&sink->lock);
    if (!sink->running) {
        sink->bytes = malloc(RING_SIZE);
        sink->head = sink->tail = sink->dropped = 0;
        sink->stopping = false;
        sink->running = sink->bytes && pthread_create(&sink->thread, NULL, writer, sink) == 0;
    }
    pthread_mutex_unlock(&sink->lock);
}

void log_start(void)
{
    if (!log_sink.running) /* from now on isatty is not called for every line */
        atomic_store(&stderr_is_terminal, isatty(STDERR_FILENO));
    sink_start(&log_sink);
    if (access_sink.path)
        sink_start(&access_sink);
}

/* Waits until the lines that are in the ring now are written; not for lines that are added meanwhile. */
static void sink_flush(struct log_destination *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t goal = sink->head;
    while (sink->running && !sink->stopping && sink->tail < goal) {
        pthread_cond_signal(&sink->more); /* ends the writer's pause or sleep */
        pthread_cond_wait(&sink->out, &sink->lock);
    }
    pthread_mutex_unlock(&sink->lock);
}

int log_report_fd(void)
{
    return atomic_load(&log_sink.fd);
}

/* For a crash report: waits for the writer threads for a moment, then writes the lines that are left itself, as a writer thread may be the
 * one that crashed. Takes no locks, which that thread may hold. If the lines pass the end of the ring buffer, none of them is written. */
void log_last_lines(void)
{
    struct log_destination *const sinks[] = {&log_sink, &access_sink};
    for (size_t i = 0; i < sizeof sinks / sizeof *sinks; i++) {
        struct log_destination *sink = sinks[i];
        for (int turn = 0; sink->running && sink->head != sink->tail && turn < LAST_TURNS; turn++)
            nanosleep(&(struct timespec){.tv_nsec = LAST_TURN_NS}, NULL);
        size_t at = sink->tail % RING_SIZE, size = sink->head - sink->tail;
        if (!sink->running || size == 0 || size > RING_SIZE - at)
            continue;
        int fd = destination(sink, (enum log_format)atomic_load(&format_now));
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (poll(&ready, 1, 0) == 1) /* a full pipe must not block the end of the process */
            write_all(fd, sink->bytes + at, size);
    }
}

void log_flush(void)
{
    sink_flush(&access_sink);
    sink_flush(&log_sink);
}

/* Ends the writer thread of a sink after it has written everything; gives up after LAST_LINES_S. */
static void sink_stop(struct log_destination *sink)
{
    pthread_mutex_lock(&sink->lock);
    bool running = sink->running;
    sink->stopping = true;
    pthread_cond_signal(&sink->more);
    pthread_mutex_unlock(&sink->lock);
    if (!running)
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_LINES_S;
    if (pthread_timedjoin_np(sink->thread, NULL, &until) != 0)
        return; /* the pipe has no reader: the thread, and the ring that it uses, end with the process */
    pthread_mutex_lock(&sink->lock);
    sink->running = false;
    free(sink->bytes);
    sink->bytes = NULL;
    pthread_mutex_unlock(&sink->lock);
}

void log_stop(void)
{
    sink_stop(&access_sink);
    sink_stop(&log_sink);
    if (!log_sink.running)
        atomic_store(&stderr_is_terminal, -1);
}
