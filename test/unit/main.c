/* Runs the unit tests of one folder.

   usage: unit_FOLDER [--list | --here] [FILE [PATTERN]]

   FILE is the path of a test file below test/unit, without its suffix; without it all files are run, one after the other. PATTERN chooses
   tests by name. --list prints the names, --here stays in one process and knows no limits, for debuggers.

   Tests run in a child process. When one of them ends it or takes too long, that is told, with a stack of every thread, and
   another child goes on with the next test. */
#include "check.h"

#include "../watch.h"

#include <fnmatch.h>

static struct unit_test *all_tests;
static struct unit_file *all_files;
static struct watched *watched;
static bool here;

void unit_add(struct unit_test *test)
{
    test->next = all_tests;
    all_tests = test;
}

void unit_add_file(struct unit_file *file)
{
    file->next = all_files;
    all_files = file;
}

unsigned effort(unsigned few, unsigned all)
{
    const char *wanted = getenv("SYMLOOM_TEST_EFFORT");
    return wanted && strcmp(wanted, "all") == 0 ? all : few;
}

/* Of ".../test/unit/cache/engine.c": cache/engine. */
static struct unit_name {
    char text[128];
} name_of_file(const char *path)
{
    struct unit_name name;
    const char *below = strstr(path, "unit/");
    snprintf(name.text, sizeof name.text, "%s", below ? below + strlen("unit/") : path);
    char *dot = strrchr(name.text, '.');
    if (dot)
        *dot = '\0';
    return name;
}

/* ---- one test ---- */

struct run { /* some tests of one file, in order */
    const struct unit_file *file;
    struct unit_test *const *tests;
    size_t count;
};

static struct run now; /* what the child runs */
static size_t first;   /* the child's first test */

static int test_begin(void **state)
{
    watched->next = (size_t)((struct unit_test *const *)*state - now.tests);
    *state = NULL;
    const struct unit_test *test = now.tests[watched->next];
    watch_step(watched, test->limit_s ? test->limit_s : now.file->limit_s);
    watched->runs = true;
    int (*setup)(void **state) = test->setup ? test->setup : now.file->setup;
    return setup ? setup(state) : 0;
}

static int test_end(void **state)
{
    const struct unit_test *test = now.tests[watched->next];
    int (*teardown)(void **state) = test->teardown ? test->teardown : now.file->teardown;
    int failed = teardown ? teardown(state) : 0;
    watched->runs = false;
    watched->next++;
    watch_step(watched, now.file->limit_s);
    return failed;
}

/* ---- the tests of a file ---- */

/* Returns how many failed. */
static int run_rest(bool alone)
{
    size_t count = now.count - watched->next;
    struct CMUnitTest *list = calloc(count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        const struct unit_test *test = now.tests[watched->next + i];
        list[i] =
            (struct CMUnitTest){test->name, test->run, test_begin, test_end, (void *)&now.tests[watched->next + i]};
    }
    int failed = _cmocka_run_group_tests(name_of_file(now.tests[0]->file).text, list, count,
                                         alone ? NULL : now.file->begin, alone ? NULL : now.file->end);
    free(list);
    watched->done = true;
    return failed;
}

static void tell_end(int status)
{
    char how[64] = "it took too long";
    if (status >= 0)
        snprintf(how, sizeof how, "the process ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    printf("[  FAILED  ] %s: %s: %s\n", name_of_file(now.tests[0]->file).text,
           watched->runs ? now.tests[watched->next]->name : "before or after its tests", how);
}

/* Returns whether all passed. */
static bool run_watched(bool alone)
{
    bool good = true;
    do {
        watched->done = watched->runs = false;
        watch_step(watched, now.file->limit_s);
        first = watched->next;
        pid_t pid = watch_fork();
        if (pid == 0)
            exit(run_rest(alone) != 0);
        int status = watch_wait(pid, watched);
        good &= status == 0;
        if (watched->done && status != -1)
            return good; /* leaks are told by the child itself */
        tell_end(status);
        if (!watched->runs && watched->next == first)
            return false; /* none could begin */
        watched->next += watched->runs;
    } while (watched->next < now.count);
    return good;
}

static bool run_some(struct run run, bool alone)
{
    now = run;
    watched->next = 0;
    if (!run.count)
        return true;
    return here ? run_rest(alone) == 0 : run_watched(alone);
}

static int by_place(const void *a, const void *b)
{
    const struct unit_test *x = *(const struct unit_test *const *)a, *y = *(const struct unit_test *const *)b;
    int files = strcmp(x->file, y->file);
    return files ? files : x->line - y->line;
}

static const struct unit_file *file_of(const char *path)
{
    static const struct unit_file none;
    const struct unit_file *file = all_files;
    while (file && strcmp(file->file, path) != 0)
        file = file->next;
    return file ? file : &none;
}

/* All tests lie in one file. */
static bool run_file(struct unit_test **tests, size_t count)
{
    struct run run = {file_of(tests[0]->file), tests, 0};
    struct unit_test **together = calloc(count, sizeof *together);
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (tests[i]->alone)
            good &= run_some((struct run){run.file, &tests[i], 1}, true);
        else
            together[run.count++] = tests[i];
    }
    run.tests = together;
    good &= run_some(run, false);
    free(together);
    return good;
}

int main(int argc, char **argv)
{
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0, good = true;
    here = argc > 1 && strcmp(argv[1], "--here") == 0;
    argv += list || here;
    argc -= list || here;
    watched = watch_new();
    size_t count = 0, ran = 0;
    for (struct unit_test *test = all_tests; test; test = test->next)
        count++;
    struct unit_test **tests = calloc(count, sizeof *tests);
    for (struct unit_test *test = all_tests; test; test = test->next) {
        if (argc < 3 || fnmatch(argv[2], test->name, 0) == 0)
            tests[ran++] = test;
    }
    count = ran;
    qsort(tests, count, sizeof *tests, by_place);
    ran = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && strcmp(tests[end]->file, tests[i]->file) == 0;)
            end++;
        struct unit_name name = name_of_file(tests[i]->file);
        if (argc > 1 && strcmp(argv[1], name.text) != 0)
            continue;
        ran += end - i;
        for (size_t j = i; list && j < end; j++)
            printf("%s/%s\n", name.text, tests[j]->name);
        if (!list)
            good &= run_file(tests + i, end - i);
    }
    free(tests);
    return ran && good ? 0 : 1;
}
