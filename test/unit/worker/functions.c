#include "functions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/file.h"
#include "worker/protocol.h"

/* ---- what functions do ---- */
static enum sl_code sum_up(struct worker_job *job, void *result, struct sl_error *error)
{
    struct sum_result *out = result;
    for (size_t i = 0; i < job->input_count; i++) {
        out->roles = out->roles * 10 + (job->inputs[i].bytes.data ? job->inputs[i].role : 0);
        out->written += job->inputs[i].fd >= 0 && pwrite(job->inputs[i].fd, "x", 1, 0) > 0;
        out->written += job->inputs[i].fd >= 0 && ftruncate(job->inputs[i].fd, 1 << 20) == 0;
        out->misaligned += (uintptr_t)job->inputs[i].bytes.data % 16 != 0;
        for (size_t k = 0; k < job->inputs[i].bytes.size; k++)
            out->sum += job->inputs[i].bytes.data[k];
    }
    if (job->out >= 0 && !sl_write_all_at(job->out, (struct sl_bytes){(const uint8_t *)"written", 7}, 0))
        return sl_fail(error, SL_INTERNAL, "cannot write");
    return SL_OK;
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

enum { BAD_VALUE = -77 };
static bool is_poisoned;
static unsigned deeds; /* of this worker */
static volatile unsigned char *volatile nowhere = (unsigned char *)16;
static volatile int depth;

static int overflow_stack(int a)
{
    volatile char frame[4096];
    frame[a % 4096] = 1;
    depth = a;
    return depth ? overflow_stack(a + 1) + frame[0] : 0;
}

static void read_out_of_bounds(uint64_t bytes)
{
    volatile unsigned char *memory = malloc(16);
    for (uint64_t i = 0; i < bytes; i += 8)
        depth += memory[16 + i];
}

static enum sl_code allocate_for_ever(struct sl_error *error)
{
    for (;;) {
        char *memory = malloc(1 << 20);
        if (!memory)
            return sl_fail(error, SL_BUSY, "out of memory");
        memset(memory, 1, 1 << 20);
    }
}

static void *answer_later(void *arg)
{
    sleep_ms(20);
    if (arg)
        syscall(SYS_exit_group, 7); /* _exit() of a sanitizer takes its time */
    worker_send(0, (struct sl_bytes){(const uint8_t *)"once more", 9}, NULL, 0);
    return NULL;
}

static void *burn(void *arg)
{
    while (!arg)
        depth++;
    return NULL;
}

static void start_thread(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, arg) == 0)
        pthread_detach(thread);
}

static void answer_for_another(void)
{
    struct worker_answer answer = {.serial = 1234567, .result = {(const uint8_t *)&(struct deed_result){1, 1}, 16}};
    struct sl_buf out = {0};
    worker_answer_encode(&answer, &out);
    worker_send(0, sl_buf_bytes(&out), NULL, 0);
    sl_buf_free(&out);
}

static void say(enum deed deed)
{
    static uint8_t large[WORKER_MAX_MESSAGE + 1];
    struct sl_bytes garbage = {(const uint8_t *)"garbage", 7};
    if (deed == ANSWER_FOR_ANOTHER)
        answer_for_another();
    else if (deed == ANSWER_TOO_LONG)
        worker_send(0, (struct sl_bytes){large, sizeof large}, NULL, 0);
    else if (deed == CLOSE_SOCKET && close(0) == 0)
        sleep_ms(100000);
    else if (deed == BURN_AFTER_ANSWER)
        start_thread(burn, NULL);
    else if (deed == ANSWER_TWICE || deed == DIE_AFTER_ANSWER)
        start_thread(answer_later, deed == DIE_AFTER_ANSWER ? large : NULL);
    else
        worker_send(0, garbage, (int[]){1}, deed == ANSWER_WITH_DESCRIPTOR);
}

/* The call that a hostile function tries: whether it succeeded. */
static bool call_system(enum deed deed, uint64_t number)
{
    static uint8_t page[4096] __attribute__((aligned(4096)));
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char stat[256];
    switch (deed) {
    case CALL_OPEN: return open("/etc/passwd", O_RDONLY) >= 0;
    case CALL_SOCKET: return socket(AF_INET, SOCK_STREAM, 0) >= 0;
    case CALL_EXECVE: return syscall(SYS_execve, "/bin/true", NULL, NULL) == 0;
    case CALL_KILL: return syscall(SYS_kill, (pid_t)number, SIGTERM) == 0;
    case CALL_TGKILL: return syscall(SYS_tgkill, (pid_t)number, (pid_t)number, SIGTERM) == 0;
    case CALL_PTRACE: return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
    case CALL_FORK: return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
    case CALL_UNSHARE: return syscall(SYS_unshare, CLONE_NEWNET) == 0;
    case CALL_CODE_MAPPING:
        return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) > 0;
    case CALL_CODE_PROTECTION: return syscall(SYS_mprotect, page, sizeof page, PROT_READ | PROT_EXEC) == 0;
    case CALL_SHARED_MEMORY:
        return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) > 0;
    case CALL_SETRLIMIT: return setrlimit(RLIMIT_NOFILE, &limit) == 0;
    case CALL_STAT: return syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", stat, 0) == 0;
    default: return false;
    }
}

static int64_t tell_environment(uint64_t address)
{
    int64_t count = (int64_t)strlen((const char *)(uintptr_t)address);
    for (char **text = environ; *text; text++)
        count++;
    return count + (getenv("SYMLOOM_TEST_SECRET") != NULL);
}

static void add_piece(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    atomic_fetch_add((_Atomic int64_t *)arg, (int64_t)index);
    sleep_ms(2);
}

static int64_t spread_work(struct worker_job *job, size_t count)
{
    _Atomic int64_t sum = 0;
    sl_parallel_run(&job->conversion.parallel.parallel, count, add_piece, &sum);
    return sum;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int64_t sort_much(void)
{
    enum { COUNT = 200000 };
    int *numbers = malloc(COUNT * sizeof *numbers), first;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = COUNT - i;
    qsort(numbers, COUNT, sizeof *numbers, compare_ints);
    first = numbers[0];
    free(numbers);
    return first;
}

static int64_t tell(struct worker_job *job, const struct deed_options *options)
{
    static void *kept;
    int64_t value = 0;
    switch (options->deed) {
    case TELL_PROCESS: return getpid();
    case TELL_ENVIRONMENT: return tell_environment(options->number);
    case TELL_ARGUMENTS:
        return strcmp(options->text, "as it was") == 0 && job->options.size == sizeof *options &&
               strcmp(job->function->context, "context") == 0 && job->limits.max_memory == test_limits.max_memory;
    case TELL_DESCRIPTORS:
        for (int fd = 0; fd < 64; fd++)
            value += fcntl(fd, F_GETFD) >= 0;
        return value;
    case SPREAD_WORK: return spread_work(job, options->number);
    case SORT_MUCH: return sort_much();
    case GROW_HEAP: return (kept = malloc(options->number)) != NULL;
    default: return 0;
    }
}

static enum sl_code write_files(struct worker_job *job, struct sl_error *error)
{
    const struct sl_bytes text = {(const uint8_t *)"written", 7};
    bool good = sl_write_all(job->out, text);
    for (size_t i = 0; i < job->input_count; i++)
        good = good && sl_write_all(job->inputs[i].fd, text);
    if (deeds > 1)
        depth = *nowhere;
    return good ? SL_OK : sl_fail(error, SL_INTERNAL, "cannot write");
}

static enum sl_code keep_output(struct worker_job *job, bool is_mapped, struct sl_error *error)
{
    bool good = sl_write_all(job->out, (struct sl_bytes){(const uint8_t *)"written", 7}) &&
                (!is_mapped || mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, job->out, 0) != MAP_FAILED);
    return good ? SL_OK : sl_fail(error, SL_INTERNAL, "cannot write");
}

static enum sl_code crash(struct worker_job *job, const struct deed_options *options, struct sl_error *error)
{
    switch (options->deed) {
    case FAIL_WITH_RESULT: return sl_fail(error, SL_NOT_FOUND, "nothing is there");
    case SPEND_FOR_EVER:
        while (sl_budget_spend(&job->conversion.budget, 0))
            ;
        return sl_budget_fail(&job->conversion.budget, error);
    case CHARGE_FOR_EVER:
        while (sl_budget_charge(&job->conversion.budget, 1 << 20))
            ;
        return sl_budget_fail(&job->conversion.budget, error);
    case READ_NOWHERE: depth = *nowhere; break;
    case READ_OUT_OF_BOUNDS: read_out_of_bounds(options->number); break;
    case OVERFLOW_STACK: overflow_stack(1); break;
    case ABORT: abort();
    case END_PROCESS: _exit(3);
    case RAISE_SIGNAL: raise((int)options->number); break;
    case POISON: is_poisoned = true; break;
    case WRITE_FILES: return write_files(job, error);
    case KEEP_OUTPUT: return keep_output(job, options->number, error);
    case LOOP_FOR_EVER:
        for (;;)
            depth++;
    case SLEEP_FOR_EVER:
        for (;;)
            sleep_ms(1000);
    case ALLOCATE_FOR_EVER: return allocate_for_ever(error);
    default: break;
    }
    return SL_OK;
}

static enum sl_code do_deed(struct worker_job *job, void *result, struct sl_error *error)
{
    const struct deed_options *options = (const void *)job->options.data;
    struct deed_result *out = result;
    deeds++;
    if (is_poisoned)
        depth = *nowhere;
    out->value = tell(job, options);
    if (options->deed >= CALL_OPEN && options->deed <= CALL_STAT)
        out->breached = call_system((enum deed)options->deed, options->number);
    if (options->deed >= ANSWER_GARBAGE)
        say((enum deed)options->deed);
    if (options->deed == FAIL_WITH_RESULT)
        out->value = 41;
    if (options->deed == GIVE_BAD_RESULT)
        out->value = BAD_VALUE;
    return crash(job, options, error);
}

static bool check_deed(const struct worker_function *function, const void *result)
{
    return strcmp(function->context, "context") == 0 && ((const struct deed_result *)result)->value != BAD_VALUE;
}

const struct worker_function test_functions[] = {
    [SUM] = {"sum", 0, sizeof(struct sum_result), sum_up},
    [DEED] = {"deed", sizeof(struct deed_options), sizeof(struct deed_result), do_deed, "context", check_deed},
};

/* ---- pools ---- */
const struct worker_limits test_limits = {.max_memory = 64 << 20,
                                          .max_time_ns = 20 * UINT64_C(1000000000),
                                          .max_wall_ns = 60 * UINT64_C(1000000000),
                                          .threads = 4};

struct worker_pool *open_pool(const struct worker_settings *settings)
{
    struct sl_error error = {.code = SL_OK};
    struct worker_launcher *launcher = worker_launcher_start(test_functions, TEST_FUNCTIONS, NULL, &error);
    assert_non_null(launcher);
    struct worker_pool *pool = worker_pool_open(launcher, settings, &error);
    assert_non_null(pool);
    return pool;
}

struct test_answer run_deed_within(struct worker_pool *pool, enum deed deed, uint64_t number,
                                   const struct worker_limits *limits)
{
    struct test_answer answer = {.code = SL_OK};
    struct deed_options options = {deed, number, "as it was"};
    struct worker_call call = {.out = -1, .limits = *limits, .about = SL_STR("a test")};
    call.options = (struct sl_bytes){(const uint8_t *)&options, sizeof options};
    answer.code = worker_run(pool, &test_functions[DEED], &call, &answer.result, &answer.outcome, &answer.error);
    return answer;
}

struct test_answer run_deed(struct worker_pool *pool, enum deed deed, uint64_t number)
{
    return run_deed_within(pool, deed, number, &test_limits);
}

void assert_deed(struct worker_pool *pool, enum deed deed, uint64_t number, enum sl_code code, const char *message)
{
    struct test_answer answer = run_deed(pool, deed, number);
    if (answer.code != code)
        print_message("deed %d: %s: %s\n", deed, sl_code_name(answer.code), answer.error.message);
    assert_int_equal(answer.code, code);
    assert_int_equal(answer.result.breached, 0);
    if (message)
        assert_string_equal(answer.error.message, message);
}

/* ---- processes ---- */
unsigned signal_children(pid_t parent, int number)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc");
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[300], text[512] = "";
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        pid_t pid = leading_number(entry->d_name);
        int fd = pid > 0 ? open(path, O_RDONLY) : -1;
        if (fd < 0)
            continue;
        ssize_t size = read(fd, text, sizeof text - 1);
        const char *end = size > 0 ? strrchr(text, ')') : NULL;
        int its_parent = 0;
        if (end && sscanf(end + 1, " %*c %d", &its_parent) == 1 && its_parent == parent)
            count += kill(pid, number) == 0;
        close(fd);
    }
    closedir(directory);
    return count;
}

unsigned count_children(pid_t parent)
{
    return signal_children(parent, 0);
}

unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

uint64_t read_memory_kib(pid_t process, const char *key)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), "%llu", &kib);
    if (file)
        fclose(file);
    return kib;
}

void wait_until_gone(pid_t process)
{
    for (int i = 0; i < 500 && kill(process, 0) == 0; i++)
        sleep_ms(10);
    assert_int_equal(kill(process, 0), -1);
    assert_int_equal(errno, ESRCH);
}
