/* A mapping to its table on one thread, and the time of a warm line of a stack trace, in process.
 *
 * usage: jvm MAPPING TRACE */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "jvm/trace.h"

enum { ROUNDS = 7 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double shorter(double a, double b)
{
    return a < b ? a : b;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "jvm: %s\n", what);
    exit(1);
}

static double convert(struct sl_str text, struct sl_buf *out)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_budget budget;
        struct sl_error error = {0};
        double start = cpu_seconds();
        sl_budget_init(&budget, text.size);
        sl_buf_free(out);
        must(sl_jvm_mapper_build(text, &budget, out, &error) == SL_OK, error.message);
        best = shorter(best, cpu_seconds() - start);
    }
    return best;
}

static size_t trace_all(struct sl_jvm_trace *trace, struct sl_str text, struct sl_buf *out)
{
    size_t lines = 0;
    sl_buf_clear(out);
    for (size_t at = 0; at < text.size; lines++) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size_t size = newline ? (size_t)(newline + 1 - text.data) - at : text.size - at;
        must(sl_jvm_trace_line(trace, (struct sl_str){text.data + at, size}, out), "out of memory");
        at += size;
    }
    return lines;
}

int main(int argc, char **argv)
{
    struct sl_mapping mapping, stack;
    struct sl_error error = {0};
    struct sl_buf table = {0}, out = {0};
    struct sl_jvm_mapper mapper;
    struct sl_jvm_trace trace;
    struct rusage usage;
    must(argc == 3 && sl_map_file(argv[1], &mapping, &error) == SL_OK && sl_map_file(argv[2], &stack, &error) == SL_OK,
         "usage: jvm MAPPING TRACE");
    double converted = convert((struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size}, &table);
    getrusage(RUSAGE_SELF, &usage);
    must(sl_jvm_mapper_open(sl_buf_bytes(&table), &mapper, &error) == SL_OK, error.message);
    const struct sl_jvm_mapper *items[] = {&mapper};
    must(sl_jvm_trace_begin(&trace, &(struct sl_jvm_mappers){items, 1, false}), "out of memory");
    double best = 1e9;
    size_t lines = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_seconds();
        lines = trace_all(&trace, (struct sl_str){(const char *)stack.bytes.data, stack.bytes.size}, &out);
        best = shorter(best, cpu_seconds() - start);
    }
    printf("%.1f ms for %.1f MB, a table of %.1f MB, %.0f MB of memory with the file; %.3f us a line, of %zu\n",
           converted * 1e3, (double)mapping.bytes.size / 1e6, (double)table.size / 1e6, (double)usage.ru_maxrss / 1e3,
           best / (double)lines * 1e6, lines);
    sl_jvm_trace_end(&trace);
    sl_buf_free(&out);
    sl_buf_free(&table);
    return 0;
}
