/* The scopes of a script, a line each: start, end, name; or how fast they are read.
 *
 * usage: scopes FILE
 *        scopes --time FILE...   MB a second, and the memory beside the script's own */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "js/scope.h"

enum { ROUNDS = 7 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool good, const char *path, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

static void print(const char *path, struct sl_str text)
{
    struct sl_js_scopes scopes;
    struct sl_error error = {0};
    struct sl_buf name = {0};
    struct sl_budget budget;
    struct sl_account account = {.budget = &budget};
    sl_budget_init(&budget, text.size);
    must(sl_js_scopes_read(&scopes, text, false, &budget, &error) == SL_OK, path, error.message);
    for (uint32_t i = 0; i < scopes.count; i++) {
        sl_buf_clear(&name);
        must(sl_js_scope_name(&scopes, i, NULL, &account, &name), path, "names take too much work");
        printf("%u %u " SL_STR_FMT "\n", scopes.items[i].start, scopes.items[i].end, SL_STR_ARG(sl_buf_view(&name)));
    }
    sl_buf_free(&name);
    sl_js_scopes_free(&scopes);
}

static void measure(const char *path, struct sl_str text)
{
    double best = 1e9;
    uint64_t held = 0, count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_js_scopes scopes;
        struct sl_error error = {0};
        struct sl_budget budget;
        sl_budget_init(&budget, text.size);
        double start = cpu_seconds();
        must(sl_js_scopes_read(&scopes, text, false, &budget, &error) == SL_OK, path, error.message);
        double seconds = cpu_seconds() - start;
        best = seconds < best ? seconds : best;
        held = scopes.account.bytes;
        count = scopes.count;
        sl_js_scopes_free(&scopes);
    }
    printf("%s: %.2f MB, %llu scopes, %.0f MB/s, %.2f bytes held for each byte\n", path, (double)text.size / 1e6,
           (unsigned long long)count, (double)text.size / 1e6 / best, (double)held / (double)text.size);
}

int main(int argc, char **argv)
{
    bool timed = argc > 2 && strcmp(argv[1], "--time") == 0;
    must(timed || argc == 2, "usage", "scopes FILE | scopes --time FILE...");
    for (int i = timed ? 2 : 1; i < argc; i++) {
        struct sl_mapping file;
        struct sl_error error = {0};
        must(sl_map_file(argv[i], &file, &error) == SL_OK, argv[i], error.message);
        struct sl_str text = {(const char *)file.bytes.data, file.bytes.size};
        if (timed)
            measure(argv[i], text);
        else
            print(argv[i], text);
        sl_unmap(&file);
    }
    return 0;
}
