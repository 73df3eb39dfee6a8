/* jitdump: each record has an id, its size and the time, then its own fields, in the byte order of the file's magic. */
#include "jit/impl.h"

#include "base/map.h"

enum { MAGIC = 0x4A695444, RECORD_HEADER = 16, CODE_LOAD = 0, CODE_MOVE = 1 };

bool sl_jit_is_dump(struct sl_bytes file)
{
    struct sl_reader r = sl_reader(file, false), swapped = sl_reader(file, true);
    return sl_read_u32(&r) == MAGIC || sl_read_u32(&swapped) == MAGIC;
}

struct jitdump_reader {
    struct sl_jit_code *code;
    struct sl_map last; /* by address, as its bytes in the file: number, from 1, of the last function there */
};

/* Adds a function and records it as the last one at its address, so that a later move finds it. `stored` is the address as stored in the
 * file. A function that jit_add() ignores is not recorded. False when out of memory. */
static bool add_function(struct jitdump_reader *d, struct sl_bytes stored, uint64_t address, uint64_t size,
                         struct sl_str name)
{
    size_t before = d->code->count;
    if (!jit_add(d->code, address, size, name))
        return false;
    void **slot = d->code->count > before
                      ? sl_map_find_or_add(&d->last, (struct sl_str){(const char *)stored.data, stored.size}, NULL)
                      : NULL;
    if (slot)
        *slot = (void *)(uintptr_t)d->code->count; /* its index + 1 */
    return slot || d->code->count == before;
}

static uint64_t read_value(struct sl_bytes stored, bool big_endian)
{
    struct sl_reader r = sl_reader(stored, big_endian);
    return sl_read_u64(&r);
}

/* Reads a JIT_CODE_LOAD record: pid, tid, vma, address, size, number, name. False when out of memory; a damaged record is ignored. */
static bool add_load(struct jitdump_reader *d, struct sl_reader *r)
{
    sl_reader_skip(r, 16); /* pid, tid, vma */
    struct sl_bytes stored = sl_read_bytes(r, 8);
    uint64_t size = sl_read_u64(r);
    sl_reader_skip(r, 8); /* number */
    struct sl_bytes rest = sl_read_bytes(r, sl_reader_left(r));
    return r->failed || add_function(d, stored, read_value(stored, r->big_endian), size, sl_cstr_at(rest, 0));
}

/* Reads a JIT_CODE_MOVE record: pid, tid, vma, old address, new address, size, number. Adds the last function at the old address again at
 * the new one; the old one stays until other code overwrites it. The record is ignored if it is damaged or no function is known at the old
 * address. False when out of memory. */
static bool add_move(struct jitdump_reader *d, struct sl_reader *r)
{
    sl_reader_skip(r, 16); /* pid, tid, vma */
    struct sl_bytes from = sl_read_bytes(r, 8), to = sl_read_bytes(r, 8);
    uint64_t size = sl_read_u64(r);
    if (r->failed)
        return true;
    size_t moved = (uintptr_t)sl_map_get(&d->last, (struct sl_str){(const char *)from.data, from.size});
    return !moved || add_function(d, to, read_value(to, r->big_endian), size, d->code->functions[moved - 1].name);
}

/* Reads records up to the first one that is truncated. Their byte order is that of the magic number. */
enum sl_code sl_jit_read_dump(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                              struct sl_error *error)
{
    struct sl_reader r = sl_reader(file, false);
    r.big_endian = sl_read_u32(&r) != MAGIC;
    sl_read_u32(&r); /* version */
    uint32_t header = sl_read_u32(&r);
    /* 40: bytes of the header in version 1 */
    if (!sl_jit_is_dump(file) || r.failed || header < 40 || header > file.size)
        return sl_fail(error, SL_MALFORMED, "the file is not a jitdump file");
    struct jitdump_reader d = {.code = code};
    bool good = true;
    sl_reader_seek(&r, header);
    while (good && sl_reader_left(&r) >= RECORD_HEADER) {
        struct sl_reader at = r;
        uint32_t id = sl_read_u32(&at), size = sl_read_u32(&at);
        if (size < RECORD_HEADER || size > sl_reader_left(&r) || !sl_budget_spend(budget, 1))
            break; /* truncated: the process is still writing it; or the budget is used up, which is reported below */
        at = sl_reader(sl_read_bytes(&r, size), r.big_endian);
        sl_reader_skip(&at, RECORD_HEADER);
        /* debug information and unwind tables are skipped: only names and addresses are wanted */
        if (id == CODE_LOAD || id == CODE_MOVE)
            good = id == CODE_LOAD ? add_load(&d, &at) : add_move(&d, &at);
    }
    sl_map_free(&d.last);
    return !good || sl_budget_exhausted(budget) ? sl_budget_fail(budget, error) : SL_OK;
}
