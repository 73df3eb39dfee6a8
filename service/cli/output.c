/* Output of results: standard output, and files that appear once they are complete. */
#include "cli/cli.h"
#include "cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/temp_dir.h"

static int stdout_errno; /* errno of the first failed write to standard output; 0: none */

/* Records the first failed write to standard output; `ok`: the last one succeeded. Returns true if none has failed. */
static bool output_check(bool ok)
{
    if (!ok && !stdout_errno)
        stdout_errno = errno ? errno : EIO;
    return stdout_errno == 0;
}

/* True if standard output is a terminal. Then the progress line, which stderr shows on the same terminal, must be erased before each
 * output. */
static bool is_terminal(void)
{
    static int known = -1;
    if (known < 0)
        known = isatty(STDOUT_FILENO);
    return known;
}

bool output_write(struct sl_str text)
{
    if (is_terminal())
        progress_clear_line();
    return output_check(stdout_errno == 0 && fwrite(text.data ? text.data : "", 1, text.size, stdout) == text.size);
}

bool output_flush(void)
{
    return output_check(stdout_errno == 0 && fflush(stdout) == 0);
}

int output_finish(int status)
{
    /* after a failed printf its errno is lost: repeat the write to get it */
    if (ferror(stdout) && !stdout_errno) {
        clearerr(stdout);
        stdout_errno = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    }
    if (output_flush())
        return status;
    return stdout_errno == EPIPE ? 0 : report_error(1, "cannot write output", strerror(stdout_errno));
}

/* True if the variable is set and not empty. */
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

bool output_colour(const char *choice)
{
    const char *terminal = getenv("TERM");
    if (choice && strcmp(choice, "auto") != 0)
        return strcmp(choice, "always") == 0;
    if (is_set("NO_COLOR"))
        return false;
    return is_set("CLICOLOR_FORCE") || (isatty(STDOUT_FILENO) && !(terminal && strcmp(terminal, "dumb") == 0));
}

void output_put_safe_but(struct sl_buf *out, struct sl_str text, char kept)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = (uint8_t)text.data[i], next = i + 1 < text.size ? (uint8_t)text.data[i + 1] : 0;
        bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0; /* U+0080..U+009F: U+009B is ESC [ */
        i += is_c1;
        if (text.data[i] != kept && (byte < 0x20 || byte == 0x7F || is_c1))
            sl_buf_printf(out, "\\x%02x", is_c1 ? next : byte);
        else
            sl_buf_u8(out, byte);
    }
}

void output_put_safe(struct sl_buf *out, struct sl_str text)
{
    output_put_safe_but(out, text, ' '); /* no control character is a blank: all are escaped */
}

int report_error(int status, const char *message, const char *cause)
{
    bool caused = cause && *cause;
    print_note("error: %s\n%s%s%s", message, caused ? "  caused by: " : "", caused ? cause : "",
               caused ? "\n" : ""); /* one call for both lines, so that a log line cannot come between them */
    return status;
}

/* Prints on stderr without a prefix. On a terminal, control characters other than line ends are escaped, since the text may contain file
 * names; there nothing is printed when out of memory. */
void print_note_list(const char *format, va_list arguments)
{
    char *text;
    struct sl_buf safe = {0};
    progress_clear_line();
    if (!isatty(STDERR_FILENO)) {
        vfprintf(stderr, format, arguments);
    } else if (vasprintf(&text, format, arguments) >= 0) {
        output_put_safe_but(&safe, sl_str(text), '\n');
        fwrite(safe.failed ? "" : (const char *)safe.data, 1, safe.failed ? 0 : safe.size, stderr);
        free(text);
    }
    sl_buf_free(&safe);
}

void print_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_note_list(format, arguments);
    va_end(arguments);
}

int report_no_memory(void)
{
    return report_error(1, "out of memory", NULL);
}

int status_of_code(enum sl_code code)
{
    return code == SL_MALFORMED || code == SL_UNSUPPORTED ? STATUS_NOTHING : 1;
}

int report_file_error(const char *path, enum sl_code code, const struct sl_error *error)
{
    char text[4200];
    snprintf(text, sizeof text, "failed to process file %s", path);
    return report_error(status_of_code(code), text, error->message);
}

/* ---- files ---- */

/* Temporary files that the signal handler removes; "" is a free slot. `sort` uses one for each of its threads, at most 64. The handler
 * stays installed as long as a slot is used. Threads change the list under the lock; the handler only reads it. */
enum { MAX_TEMPORARY = 72 };
static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static char temporary_files[MAX_TEMPORARY][4096];
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t line_drawn;  /* the progress line is on the terminal: the handler erases it */
static bool draws_lines;                  /* a progress line was drawn once: the handler stays installed */
static void (*_Atomic signal_work)(void); /* called last by the handler (output_handle_signal); NULL: nothing */

/* The signal handler: erases the progress line, removes temporary files, then lets the signal end the program as usual. Only
 * async-signal-safe functions are allowed here. */
static void remove_and_die(int number)
{
    if (line_drawn && write(STDERR_FILENO, "\r\033[K", 4) < 0)
        line_drawn = 0; /* the terminal is gone */
    for (size_t i = 0; i < MAX_TEMPORARY; i++)
        if (temporary_files[i][0])
            unlink(temporary_files[i]);
    void (*clean)(void) = signal_work;
    if (clean)
        clean();
    signal(number, SIG_DFL);
    raise(number);
}

/* Returns the slot of the list of temporary files that holds the path, or for "" a free one; NULL if there is none. */
static char *find_temporary(const char *path)
{
    for (size_t i = 0; i < MAX_TEMPORARY; i++)
        if (strcmp(temporary_files[i], path) == 0)
            return temporary_files[i];
    return NULL;
}

/* True if there is a temporary file for the signal handler to remove, or a function for it to call. */
static bool has_signal_work(void)
{
    bool any = signal_work != NULL;
    for (size_t i = 0; i < MAX_TEMPORARY; i++)
        any = any || temporary_files[i][0];
    return any;
}

/* Installs the handler of SIGINT, SIGTERM and SIGHUP, or removes it. A signal that is ignored (nohup) stays ignored. */
static void handle_signals(bool installs)
{
    struct sigaction action = {.sa_handler = installs ? remove_and_die : SIG_DFL, .sa_flags = (int)SA_RESETHAND}, old;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], NULL, &old);
        if (installs ? old.sa_handler != SIG_IGN : old.sa_handler == remove_and_die)
            sigaction(signals[i], &action, NULL);
    }
}

void output_line_drawn(bool drawn)
{
    line_drawn = drawn;
    if (!drawn || draws_lines) /* the handler is installed when the first line is drawn, and stays */
        return;
    pthread_mutex_lock(&signal_lock);
    draws_lines = true;
    handle_signals(true);
    pthread_mutex_unlock(&signal_lock);
}

void output_handle_signal(void (*clean)(void))
{
    pthread_mutex_lock(&signal_lock);
    signal_work = clean;
    handle_signals(clean || has_signal_work() || draws_lines); /* removes the handler if nothing needs it */
    pthread_mutex_unlock(&signal_lock);
}

/* Adds a file to those that the signal handler removes, and installs the handler. If no slot is free, a signal leaves the file behind. */
static void guard_file(const char *path)
{
    pthread_mutex_lock(&signal_lock);
    char *slot = find_temporary("");
    if (slot && *path) { /* write the first byte last, so that a signal never sees a partial path */
        memcpy(slot + 1, path + 1, strlen(path));
        atomic_signal_fence(memory_order_release);
        slot[0] = path[0];
    }
    handle_signals(true);
    pthread_mutex_unlock(&signal_lock);
}

/* Takes a file that was published or removed off the list of those that a signal removes. Removes the signal handler if nothing needs it
 * any more. */
static void unguard_file(const char *path)
{
    pthread_mutex_lock(&signal_lock);
    char *slot = find_temporary(path);
    if (slot)
        slot[0] = '\0';
    if (!has_signal_work() && !draws_lines)
        handle_signals(false);
    pthread_mutex_unlock(&signal_lock);
}

static enum sl_code fail_path(struct sl_error *error, const char *path)
{
    return sl_fail(error, errno == EACCES ? SL_PERMISSION_DENIED : SL_INTERNAL, "cannot write %s: %s", path,
                   strerror(errno));
}

enum sl_code output_file_open(struct output_file *file, const char *path, struct sl_error *error)
{
    struct stat st;
    *file = (struct output_file){.fd = -1};
    bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode); /* a FIFO or device cannot be replaced */
    if (snprintf(file->path, sizeof file->path, "%s", path) >= (int)sizeof file->path ||
        snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", in_place ? "" : path) >=
            (int)sizeof file->temporary)
        return sl_fail(error, SL_INTERNAL, "path too long: %s", path);
    if (in_place)
        file->temporary[0] = '\0';
    file->fd = in_place ? open(path, O_WRONLY | O_CLOEXEC) : mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd < 0)
        return fail_path(error, path);
    if (!in_place)
        guard_file(file->temporary);
    return SL_OK;
}

enum sl_code output_file_temporary(struct output_file *file, struct sl_error *error)
{
    const char *directory = temp_dir();
    *file = (struct output_file){.fd = -1};
    if (snprintf(file->temporary, sizeof file->temporary, "%s/symloom-XXXXXX", directory) >=
        (int)sizeof file->temporary)
        return sl_fail(error, SL_INTERNAL, "path too long: %s", directory);
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd < 0)
        return fail_path(error, directory);
    guard_file(file->temporary);
    return SL_OK;
}

/* Writes the buffered text to the file; false if this or an earlier write failed. */
static bool write_out(struct output_file *file)
{
    errno = EIO; /* the error if sl_write_all fails without setting errno */
    if (!file->failed && !sl_write_all(file->fd, sl_buf_bytes(&file->pending)))
        file->failed = errno;
    sl_buf_clear(&file->pending);
    return !file->failed;
}

bool output_file_write(struct output_file *file, struct sl_str text)
{
    sl_buf_str(&file->pending, text);
    if (!file->failed && file->pending.failed)
        file->failed = ENOMEM;
    return file->pending.size < 64 * 1024 ? !file->failed : write_out(file);
}

enum sl_code output_file_close(struct output_file *file, bool publishes, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (file->fd < 0)
        return SL_OK;
    /* mkostemp gives the mode 0600: a published file gets what the umask allows, which can only be read by setting it */
    mode_t mask = umask(0);
    umask(mask);
    bool temporary = file->temporary[0] != '\0';
    bool ok = !publishes || (write_out(file) && (!temporary || fchmod(file->fd, 0666 & ~mask) == 0));
    ok = close(file->fd) == 0 && ok;
    ok = ok && (!publishes || !temporary || rename(file->temporary, file->path) == 0);
    if (!ok && file->failed)
        errno = file->failed;
    if (!ok)
        code = fail_path(error, file->path);
    if (temporary && (!ok || !publishes))
        unlink(file->temporary);
    if (temporary)
        unguard_file(file->temporary);
    sl_buf_free(&file->pending);
    file->fd = -1;
    return code;
}

enum sl_code output_file_put(const char *path, struct sl_bytes bytes, struct sl_error *error)
{
    struct output_file file;
    enum sl_code code = output_file_open(&file, path, error);
    if (code != SL_OK)
        return code;
    output_file_write(&file, (struct sl_str){(const char *)bytes.data, bytes.size});
    return output_file_close(&file, true, error);
}

int output_directory(const char *path)
{
    char text[4200];
    if (mkdir(path, 0777) == 0 || path_is_directory(path))
        return 0;
    const char *why = strerror(errno == EEXIST ? ENOTDIR : errno);
    snprintf(text, sizeof text, "cannot make the directory %s", path);
    return report_error(1, text, why);
}

/* ---- widths ---- */

unsigned output_width(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* True if the byte is not the first of a UTF-8 character. */
static bool continues_character(char c)
{
    return ((uint8_t)c & 0xC0) == 0x80;
}

int output_columns(struct sl_str text)
{
    int count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += !continues_character(text.data[i]);
    return count;
}

void output_put_trimmed(struct sl_buf *out, struct sl_str text, size_t columns)
{
    static const struct sl_str gap = SL_STR("...");
    size_t at = 0, seen = 0;
    if ((size_t)output_columns(text) <= columns || columns <= gap.size) {
        output_put_safe(out, text);
        return;
    }
    size_t head = (columns - gap.size + 1) / 2, tail = columns - gap.size - head; /* characters kept at both ends */
    while (at < text.size && (seen < head || continues_character(text.data[at])))
        seen += !continues_character(text.data[at++]);
    output_put_safe(out, (struct sl_str){text.data, at});
    sl_buf_str(out, gap);
    for (at = text.size, seen = 0; at && seen < tail;)
        seen += !continues_character(text.data[--at]);
    output_put_safe(out, (struct sl_str){text.data + at, text.size - at});
}
