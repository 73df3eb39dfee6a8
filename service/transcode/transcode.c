/* Runs a transcoder, a program that makes a SymCache file from a PDB, in directories and a process group of its own. It is started by
 * `symloom worker`, which sets resource limits for itself and then executes the program, as uv_spawn() cannot set the limits of a child.
 *
 *     <tmp>/symcache-<random>/in/<pdb name>     input
 *                            /out/              results: _NT_SYMCACHE_PATH and working directory
 *                            /log               output of the program */
#include "transcode/ms_symcaches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "core/files.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"

enum {
    PATH_LENGTH = 1024,
    OWN_WORDS = 8,       /* room for the words of the command line besides the configured command */
    LOG_MAX = 64 << 10,  /* bytes of the program's output that are logged */
    ENVIRONMENT_OWN = 5, /* room for environment variables besides the configured ones */
    TREE_DEPTH = 6,      /* levels of directories that are removed below the run's directory */
};

struct transcode_process {
    const struct transcode *job;
    char base[512], in[PATH_LENGTH], out[PATH_LENGTH]; /* paths: directory of the run, input file, output directory */
    int log, fd;                                       /* the program's output; file for the result */
    /* the process */
    uv_process_t process;
    uv_timer_t timer;
    struct fiber *waiter; /* the fiber that waits for the process */
    bool ended, late;     /* late: killed, as it took longer than ms_symcache.timeout */
    int closing;          /* handles that are not closed yet */
    int64_t status;       /* how the process ended */
    int signal;
    enum sl_code code;
    struct sl_error *error;
};

/* ---- preparation ---- */

/* Writes the PDB to the transcoder's input file. False with errno. */
static bool write_pdb(struct transcode_process *run)
{
    int fd = open(run->in, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0440);
    bool good = fd >= 0 && sl_write_all(fd, run->job->pdb);
    sl_close(fd);
    return good;
}

/* Pool work: creates the directories of the run, the input file and the log file. Sets run->code on failure. */
static void transcode_begin(void *arg)
{
    struct transcode_process *run = arg;
    char path[PATH_LENGTH];
    snprintf(run->base, sizeof run->base, "%s/symcache-%08x", cache_tmp_dir(), (unsigned)files_random());
    snprintf(run->out, sizeof run->out, "%s/out", run->base);
    snprintf(path, sizeof path, "%s/in", run->base);
    snprintf(run->in, sizeof run->in, "%.700s/%.255s", path, run->job->pdb_name); /* fits in PATH_LENGTH */
    bool good = mkdir(run->base, 0700) == 0 && mkdir(path, 0700) == 0 && mkdir(run->out, 0700) == 0 && write_pdb(run);
    snprintf(path, sizeof path, "%s/log", run->base);
    run->log = good ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600) : -1;
    if (run->log < 0)
        run->code = sl_fail_errno(run->error, errno, "cannot create the temporary files of a transcoder run");
}

/* ---- the process ---- */

/* Kills the transcoder and its children: they are one process group, hence the negative process id. */
static void run_kill(struct transcode_process *run)
{
    if (run->process.pid > 0)
        kill(-run->process.pid, SIGKILL);
}

static void run_wake(struct transcode_process *run)
{
    if (run->waiter)
        fiber_wake(run->waiter);
}

/* Called when the program has ended: records how, kills child processes that it has left, and wakes the waiting fiber. */
static void run_ended(uv_process_t *process, int64_t status, int number)
{
    struct transcode_process *run = process->data;
    run->status = status;
    run->signal = number;
    run->ended = true;
    run_kill(run);
    run_wake(run);
}

/* Called when the time limit has passed: kills the program, after which libuv calls run_ended(). */
static void run_late(uv_timer_t *timer)
{
    struct transcode_process *run = timer->data;
    run->late = true;
    run_kill(run);
}

/* Called when libuv has closed the timer or the process handle, for both of which run_process() waits. */
static void run_closed(uv_handle_t *handle)
{
    struct transcode_process *run = handle->data;
    run->closing--;
    run_wake(run);
}

/* Returns "<name>=<value>" in the arena; NULL when out of memory. */
static const char *variable(struct sl_arena *arena, const char *name, struct sl_str value)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s=" SL_STR_FMT, name, SL_STR_ARG(value));
    return sl_buf_move_to_arena(&text, arena).data;
}

/* Makes the program's environment: the variables by which transcoders find symbols and place results, PATH, TMPDIR and LANG of this
 * process, and those of the configuration. NULL when out of memory. */
static char **environment(const struct transcode_process *run, struct sl_arena *arena)
{
    static const char *const kept[] = {"PATH", "TMPDIR", "LANG"};
    const struct transcoder *t = run->job->transcoder;
    const char **list = SL_ARENA_ARRAY(arena, const char *, ENVIRONMENT_OWN + t->environment_count + 1);
    size_t count = 0;
    char nowhere[PATH_LENGTH];
    snprintf(nowhere, sizeof nowhere, "%.500s/none", run->base);
    if (!list)
        return NULL;
    /* a directory that does not exist, so that the program downloads no symbols itself */
    list[count++] = variable(arena, "_NT_SYMBOL_PATH", sl_str(nowhere));
    list[count++] = variable(arena, "_NT_SYMCACHE_PATH", sl_str(run->out));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (getenv(kept[i]))
            list[count++] = variable(arena, kept[i], sl_str(getenv(kept[i])));
    for (size_t i = 0; i < t->environment_count; i++)
        list[count++] = variable(arena, t->environment[i].key.data, t->environment[i].value);
    for (size_t i = 0; i < count; i++)
        if (!list[i])
            return NULL;
    return (char **)list;
}

/* Makes the command line: `symloom worker <memory limit> <output limit> <command...> -pdb <input>`. NULL when out of memory. */
static char **make_command(const struct transcode_process *run, struct sl_arena *arena)
{
    const struct config *config = run->job->config;
    size_t count = 0, at = 0;
    char memory[32], output[32];
    while (run->job->transcoder->command[count])
        count++;
    const char **list = SL_ARENA_ARRAY(arena, const char *, OWN_WORDS + count + 1);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)config->ms_symcache.max_memory);
    snprintf(output, sizeof output, "%llu", (unsigned long long)config->ms_symcache.max_output);
    if (!list)
        return NULL;
    list[at++] = "symloom";
    list[at++] = "worker";
    list[at++] = sl_arena_strndup(arena, memory, strlen(memory));
    list[at++] = sl_arena_strndup(arena, output, strlen(output));
    for (size_t i = 0; i < count; i++)
        list[at++] = run->job->transcoder->command[i];
    list[at++] = "-pdb";
    list[at++] = run->in;
    return list[2] && list[3] ? (char **)list : NULL;
}

/* Starts the process: detached, so that it leads a process group of its own, with standard output and error in the log file. If it
 * cannot be started, run->ended is true. */
static enum sl_code run_start(struct transcode_process *run, char **arguments, char **variables)
{
    uv_stdio_container_t stdio[3] = {{.flags = UV_IGNORE},
                                     {.flags = UV_INHERIT_FD, .data.fd = run->log},
                                     {.flags = UV_INHERIT_FD, .data.fd = run->log}};
    uv_process_options_t options = {.exit_cb = run_ended,
                                    .file = "/proc/self/exe",
                                    .args = arguments,
                                    .env = variables,
                                    .cwd = run->out,
                                    .flags = UV_PROCESS_DETACHED,
                                    .stdio_count = 3,
                                    .stdio = stdio};
    uv_timer_init(loop_get(), &run->timer);
    run->timer.data = run->process.data = run;
    int status = uv_spawn(loop_get(), &run->process, &options);
    if (status == 0)
        uv_timer_start(&run->timer, run_late, DURATION_MS(run->job->config->ms_symcache.timeout_ns), 0);
    else
        run->ended = true;
    return status == 0 ? SL_OK : sl_fail_errno(run->error, -status, "cannot start a transcoder");
}

/* Runs the process; kills it if the fiber is cancelled. Returns only when it has ended and its libuv handles are closed, as they and the
 * directory are in use until then. SL_OK says only that it was started: run->status and ->signal say how it ended. */
static enum sl_code run_process(struct transcode_process *run)
{
    struct sl_arena arena = {0};
    char **arguments = make_command(run, &arena), **variables = environment(run, &arena);
    bool cancelled = false;
    if (!arguments || !variables) {
        sl_arena_free(&arena);
        return sl_fail(run->error, SL_BUSY, "out of memory");
    }
    run->waiter = fiber_self();
    enum sl_code code = run_start(run, arguments, variables);
    while (!run->ended) {
        if (cancelled) {
            fiber_suspend_uncancellable();
        } else if (!fiber_suspend()) {
            cancelled = true;
            run_kill(run);
        }
    }
    run->closing = 2;
    uv_close((uv_handle_t *)&run->timer, run_closed);
    uv_close((uv_handle_t *)&run->process, run_closed);
    while (run->closing)
        fiber_suspend_uncancellable();
    run->waiter = NULL;
    sl_arena_free(&arena);
    return cancelled ? sl_fail(run->error, SL_CANCELLED, "cancelled") : code;
}

/* ---- results ---- */

/* Finds an entry of this name in the directory, ignoring case, and makes its path. False with errno if there is none, or the directory
 * cannot be read. */
static bool find_entry(const char *directory, const char *name, char path[PATH_LENGTH])
{
    DIR *dir = opendir(directory);
    bool found = false;
    if (!dir)
        return false;
    for (struct dirent *e; !found && (e = readdir(dir));)
        if (strcasecmp(e->d_name, name) == 0)
            found = snprintf(path, PATH_LENGTH, "%s/%s", directory, e->d_name) < PATH_LENGTH;
    closedir(dir);
    if (!found)
        errno = ENOENT;
    return found;
}

/* Opens the transcoder's output, `<out>/<pdb name>/<id>/<pdb name>-v<version>.symcache`, whose names may be written in other letter
 * case. -1 with errno if there is none. The program is not trusted, so a symbolic link is not followed, and a FIFO not waited for. */
static int open_result(const struct transcode_process *run)
{
    const unsigned *v = run->job->transcoder->version;
    char name[400], one[PATH_LENGTH], two[PATH_LENGTH], three[PATH_LENGTH];
    snprintf(name, sizeof name, "%s-v%u.%u.%u.symcache", run->job->pdb_name, v[0], v[1], v[2]);
    bool found = find_entry(run->out, run->job->pdb_name, one) && find_entry(one, run->job->id, two) &&
                 find_entry(two, name, three);
    return found ? open(three, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
}

/* Copies the program's output file `from` to the cache file run->fd. Fails if it is not a regular file or too large. */
static enum sl_code copy_result(struct transcode_process *run, int from)
{
    char piece[64 << 10];
    struct stat st;
    ssize_t n = 0;
    if (fstat(from, &st) != 0 || !S_ISREG(st.st_mode))
        return sl_fail(run->error, SL_MALFORMED, "the transcoder's output is not a regular file");
    if ((uint64_t)st.st_size > run->job->config->ms_symcache.max_output)
        return sl_fail(run->error, SL_MALFORMED, "the transcoder's output is larger than ms_symcache.max_output");
    for (uint64_t at = 0; (n = read(from, piece, sizeof piece)) > 0; at += (uint64_t)n)
        if (!sl_write_all_at(run->fd, (struct sl_bytes){(const uint8_t *)piece, (size_t)n}, at))
            return sl_fail_errno(run->error, errno, "cannot write the transcoder's output to the cache");
    return n == 0 ? SL_OK : sl_fail_errno(run->error, errno, "cannot read the transcoder's output");
}

/* Logs the first LOG_MAX bytes that the program wrote to standard output and error. */
static void log_output(const struct transcode_process *run)
{
    char *text = malloc(LOG_MAX);
    ssize_t n = text ? pread(run->log, text, LOG_MAX, 0) : 0;
    if (n > 0)
        log_info("symcache", "transcoder output", LOG_STR("pdb", run->job->pdb_name),
                 LOG_SLSTR("text", ((struct sl_str){text, (size_t)n})));
    free(text);
}

/* Checks how the transcoder ended and copies its output file to run->fd. */
static enum sl_code take_result(struct transcode_process *run)
{
    if (run->late)
        return sl_fail(run->error, SL_MALFORMED,
                       "the transcoder timed out: it ran for longer than ms_symcache.timeout");
    if (run->signal || run->status)
        return sl_fail(run->error, SL_MALFORMED, "the transcoder failed: %s %lld", run->signal ? "signal" : "status",
                       run->signal ? (long long)run->signal : (long long)run->status);
    int from = open_result(run);
    if (from < 0 && sl_fail_errno(run->error, errno, "") == SL_BUSY) /* memory or descriptors were missing to open it */
        return SL_BUSY;
    if (from < 0)
        return sl_fail(run->error, SL_MALFORMED,
                       "the transcoder succeeded but created no SymCache file for this PDB, id and version");
    enum sl_code code = copy_result(run, from);
    close(from);
    return code;
}

/* Pool work, the end of a run in any case: logs the program's output, takes its result if the process could be run, removes the
 * directories. */
static void transcode_end(void *arg)
{
    struct transcode_process *run = arg;
    if (run->log >= 0)
        log_output(run);
    if (run->code == SL_OK)
        run->code = take_result(run);
    sl_close(run->log);
    dir_remove(AT_FDCWD, run->base, TREE_DEPTH);
}

enum sl_code transcode_run(const struct transcode *job, int fd, struct sl_error *error)
{
    struct transcode_process *run = calloc(1, sizeof *run); /* allocated, because it contains handles of the loop */
    if (!run)
        return sl_fail(error, SL_BUSY, "out of memory");
    *run = (struct transcode_process){.job = job, .fd = fd, .log = -1, .error = error};
    /* `code` says only whether the pool has run the step, run->code is the result of the step. */
    enum sl_code code = pool_run(POOL_IO, transcode_begin, run, error);
    if (code == SL_OK && run->code == SL_OK)
        run->code = run_process(run);
    if (code == SL_OK) {
        enum sl_code ended = pool_run(POOL_IO, transcode_end, run, error);
        code = ended == SL_OK ? run->code : ended;
    }
    if (code != SL_OK && code != SL_CANCELLED)
        log_warn("symcache", "cannot transcode a PDB", LOG_STR("pdb", job->pdb_name), LOG_ERR(error));
    free(run);
    return code;
}
