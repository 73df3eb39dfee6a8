/* bench_symbfile FILE: megabytes a second of decoding a symbfile (best of three), of collecting its records, and of
 * making an index of them. */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "symbfile/symbfile.h"

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now(void) /* of the processor: other programs do not count */
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static long peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static enum sl_code ignore_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range,
                                 struct sl_error *error)
{
    (void)sink, (void)range, (void)error;
    return SL_OK;
}

static enum sl_code ignore_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    (void)sink, (void)pad, (void)error;
    return SL_OK;
}

int main(int argc, char **argv)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    struct sl_buf out = {0};
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(sl_unlinked_file("/tmp"));
    if (argc != 2 || !builder || sl_map_file(argv[1], &mapping, &error) != SL_OK) {
        fprintf(stderr, "usage: bench_symbfile FILE\n");
        return 2;
    }
    struct sl_symbfile_sink ignore = {.range = ignore_range, .pad = ignore_pad};
    double first = now(), checked = 1e9, begun = seconds_of(CLOCK_MONOTONIC), waited = 1e9;
    enum sl_code code = SL_OK;
    for (int i = 0; i < 3 && code == SL_OK; i++) {
        code = sl_symbfile_read(mapping.bytes, &ignore, &error);
        double end = now();
        checked = end - first < checked ? end - first : checked;
        first = end;
        double until = seconds_of(CLOCK_MONOTONIC);
        waited = until - begun < waited ? until - begun : waited;
        begun = until;
    }
    double begin = now();
    if (code == SL_OK)
        code = sl_symbfile_read(mapping.bytes, sl_symbfile_builder_sink(builder), &error);
    double read = now();
    long collected = peak_mib();
    if (code == SL_OK)
        code = sl_symbfile_builder_finish(builder, &out, &error);
    double built = now(), megabytes = (double)mapping.bytes.size / 1e6;
    if (code != SL_OK) {
        fprintf(stderr, "error: %s\n", error.message);
        return 1;
    }
    printf("%.1f MB: decoded at %.0f MB/s (in %.3f s by the clock), collected at %.0f MB/s, indexed at %.0f MB/s, "
           "index of %.1f MB; peak memory "
           "%ld MiB after collecting, %ld MiB after indexing\n",
           megabytes, megabytes / checked, waited, megabytes / (read - begin), megabytes / (built - read),
           (double)out.size / 1e6, collected, peak_mib());
    sl_symbfile_builder_free(builder);
    sl_buf_free(&out);
    sl_unmap(&mapping);
    return 0;
}
