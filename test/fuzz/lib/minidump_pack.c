/* Minidumps that one process reads for another: packed and read again, with one byte changed that the input chooses. Whatever the bytes
 * are, the result can be walked or is refused. */
#include "minidump/facts.h"
#include "minidump/pack.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void start_walks(const struct sl_minidump *dump)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        struct sl_registers registers;
        struct sl_walk_stack stack;
        uint64_t value;
        sl_minidump_start(dump, i, &registers, &stack);
        sl_minidump_module_at(dump, registers.value[16]);
        if (stack.read)
            stack.read(stack.arg, stack.address, 8, &value);
    }
}

static void unpack(struct sl_bytes packed, struct sl_bytes file, bool must)
{
    struct sl_arena arena = {0};
    struct sl_minidump dump;
    struct sl_buf names = {0};
    uint64_t count;
    enum sl_code code = sl_minidump_unpack(packed, file, &arena, &dump, &count, NULL);
    if (code != SL_OK && (must || code != SL_MALFORMED))
        abort();
    if (code == SL_OK) {
        start_walks(&dump);
        sl_minidump_put_unloaded(&dump, dump.unloaded_count ? dump.unloaded[0].address : 0, &names);
    }
    sl_buf_free(&names);
    sl_arena_free(&arena);
}

static void unpack_stacks(struct sl_bytes packed, struct sl_bytes file, bool must)
{
    struct sl_arena arena = {0};
    struct sl_minidump dump;
    enum sl_code code = sl_minidump_unpack_stacks(packed, file, &arena, &dump, NULL);
    if (code != SL_OK && (must || code != SL_MALFORMED))
        abort();
    if (code == SL_OK)
        start_walks(&dump);
    sl_arena_free(&arena);
}

/* Does the same with what walks need. */
static void pack_stacks(const struct sl_minidump *dump, struct sl_bytes file)
{
    struct sl_buf out = {0};
    if (!sl_minidump_pack_stacks(dump, &out))
        abort();
    unpack_stacks(sl_buf_bytes(&out), file, true);
    out.data[(file.data[file.size - 1] | file.data[file.size - 2] << 8) % out.size] ^= file.data[file.size - 3];
    unpack_stacks(sl_buf_bytes(&out), file, false);
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct sl_minidump dump;
    struct sl_minidump_client client;
    struct sl_bytes file = {data, size};
    unpack(file, file, false);
    unpack_stacks(file, file, false);
    if (sl_minidump_read(file, &arena, &dump, NULL) == SL_OK) {
        sl_minidump_client_stacks(&dump, &arena, &client, NULL);
        if (!sl_minidump_pack(&dump, &client, &arena, &out))
            abort();
        unpack(sl_buf_bytes(&out), file, true);
        out.data[(data[size - 1] | data[size - 2] << 8) % out.size] ^= data[size - 3];
        unpack(sl_buf_bytes(&out), file, false);
        pack_stacks(&dump, dump.bytes);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return 0;
}
