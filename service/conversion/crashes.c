/* Converters of Apple crash reports and minidumps. */
#include "conversion/crashes.h"

#include <errno.h>
#include <unistd.h>

/* Implements converter_apple_report: writes the report as a packed struct sl_crash (crash/pack.h). It has no `result`. */
static enum sl_code read_apple(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    (void)result;
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_crash crash;
    enum sl_code code =
        sl_apple_read(converter_input_bytes(call, INPUT_FILE), converter_options(call), &arena, &crash, error);
    if (code == SL_OK) {
        struct sl_packer packer = {.out = &out};
        sl_crash_pack(&crash, &packer);
        sl_packer_free(&packer);
        code = conversion_write(conversion, call, &out, error);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

const struct converter converter_apple_report = {"apple_report", sizeof(struct sl_apple_options), 0, read_apple};

/* ---- minidumps ---- */

/* For `compat`: treats a RISC-V dump as Symbolicator does, which does not know this CPU: threads get no registers and no frames. Sets
 * result->is_foreign for such dumps. */
static void drop_foreign_cpu(struct sl_minidump *dump, struct minidump_result *result)
{
    result->is_foreign = dump->family == SL_CPU_RISCV || dump->family == SL_CPU_RISCV64;
    if (!result->is_foreign)
        return;
    dump->family = SL_CPU_UNKNOWN;
    dump->crash.system.arch = SL_ARCH_UNKNOWN;
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        dump->threads[i].is_walked = false;
        dump->crash.threads[i].register_count = 0;
    }
}

/* Completes the dump before its stacks are walked. Chooses the 32-bit stacks of WOW64 processes, reads stacks that the client (Breakpad,
 * Crashpad) has stored and, with `details`, makes the additional members of the answer. With `compat`, drops overlapping modules and uses
 * 32-bit stacks only with `details`, as Symbolicator does. False when out of memory. */
static bool complete_dump(struct sl_minidump *dump, struct sl_minidump_client *client,
                          const struct minidump_options *options, struct sl_arena *arena)
{
    bool has_more = !options->compat || options->details;
    struct sl_error ignored;
    return (!options->compat || sl_minidump_drop_overlaps(dump, arena)) &&
           (!has_more || sl_minidump_enter_wow64(dump, arena)) &&
           sl_minidump_client_stacks(dump, arena, client, &ignored) != SL_BUSY && /* damaged ones are left out */
           (!options->details || crash_details(dump, arena));
}

/* Implements converter_minidump: writes the packed contents (minidump/pack.h) of a minidump or microdump. */
static enum sl_code read_minidump(struct conversion *conversion, const struct converter_call *call, void *result,
                                  struct sl_error *error)
{
    const struct minidump_options *options = converter_options(call);
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_minidump_client client;
    struct sl_minidump dump;
    enum sl_code code = sl_minidump_read(converter_input_bytes(call, INPUT_FILE), &arena, &dump, error);
    if (code == SL_OK) {
        if (options->compat)
            drop_foreign_cpu(&dump, result);
        bool good = complete_dump(&dump, &client, options, &arena) && sl_minidump_pack(&dump, &client, &arena, &out);
        code = good ? conversion_write(conversion, call, &out, error) : sl_budget_fail(&conversion->budget, error);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

/* True if the result, which came from a worker, has no invalid value (converter.check_result). */
static bool check_result(const void *result)
{
    return converter_bool_is_valid(&((const struct minidump_result *)result)->is_foreign);
}

const struct converter converter_minidump = {"minidump", sizeof(struct minidump_options),
                                             sizeof(struct minidump_result), read_minidump, check_result};

/* ---- for callers ---- */

enum sl_code crash_read_packed(int fd, struct sl_arena *arena, struct sl_bytes *packed, struct sl_error *error)
{
    uint64_t size = get_file_size(fd);
    uint8_t *copy =
        sl_arena_alloc(arena, size + 1, 8); /* + 1: an empty file is no lack of memory; 8: aligned for numbers */
    if (!copy)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (uint64_t at = 0; at < size;) {
        ssize_t n = pread(fd, copy + at, size - at, (off_t)at);
        if (n < 0)
            return sl_fail_errno(error, errno, "cannot read the converted crash file");
        if (n == 0)
            return sl_fail(error, SL_INTERNAL, "the converted crash file was truncated while it was read");
        at += (uint64_t)n;
    }
    *packed = (struct sl_bytes){copy, size};
    return SL_OK;
}
