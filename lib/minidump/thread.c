/* Threads, their names, and which one crashed. */
#include "minidump/impl.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

enum { THREAD_SIZE = 48, NAME_SIZE = 12 };
enum { DUMP_THREAD_VALID = 1, REQUESTING_THREAD_VALID = 2 };

struct special_threads { /* threads with a special role */
    bool has_writer, has_requesting;
    uint32_t writer, requesting; /* ids */
};

/* Reads the exception: of a core file its signal and si_code, else the Exception stream. A record holds 15 parameters, so a larger count is
 * cut to 15. Returns false if there is no exception. */
bool dump_read_exception(const struct sl_minidump *dump, struct dump_exception *exception)
{
    if (dump->has_signal) {
        *exception = (struct dump_exception){
            .is_there = true, .code = dump->signal, .flags = dump->signal_code, .address = dump->crash_address};
        return true;
    }
    struct sl_reader r = dump_stream_reader(dump, STREAM_EXCEPTION);
    exception->thread_id = sl_read_u32(&r);
    sl_reader_skip(&r, 4); /* alignment */
    exception->code = sl_read_u32(&r);
    exception->flags = sl_read_u32(&r);
    sl_reader_skip(&r, 8); /* nested record */
    exception->address = sl_read_u64(&r);
    uint32_t count = sl_read_u32(&r);
    exception->parameter_count = count < 15 ? count : 15;
    sl_reader_skip(&r, 4); /* alignment */
    /* the record has room for 15, whatever `count` is */
    for (unsigned i = 0; i < 15; i++)
        exception->parameters[i] = sl_read_u64(&r);
    exception->context = dump_location(dump, &r, NULL); /* the thread's registers; NULL: their offset is not needed */
    exception->is_there = !r.failed;
    return exception->is_there;
}

/* Finds the thread that wrote the dump and the one that requested it, by Breakpad's BreakpadInfo stream. If there is an exception, its
 * thread is the requesting one, whatever the stream says. */
static struct special_threads read_special(const struct sl_minidump *dump, const struct dump_exception *exception)
{
    struct special_threads special = {false, false, 0, 0};
    struct sl_reader r = dump_stream_reader(dump, STREAM_BREAKPAD_INFO);
    uint32_t validity = sl_read_u32(&r);
    special.writer = sl_read_u32(&r);
    special.requesting = sl_read_u32(&r);
    special.has_writer = !r.failed && (validity & DUMP_THREAD_VALID);
    special.has_requesting = exception->is_there || (!r.failed && (validity & REQUESTING_THREAD_VALID));
    if (exception->is_there)
        special.requesting = exception->thread_id;
    return special;
}

/* ---- names ---- */

struct thread_name {
    uint32_t id;
    size_t list_index;
    struct sl_str name;
};

SL_ORDER_BY(name_by_id, struct thread_name, id, list_index)

/* Reads the names of threads, sorted by thread id, then in file order; returns their number. Names that cannot be read are left out. 0 also
 * when out of memory, which `d` records. */
static size_t read_names(struct dump_reader *d, struct thread_name **names)
{
    struct sl_reader r;
    size_t kept = 0, count = dump_list(d->dump, STREAM_THREAD_NAMES, NAME_SIZE, &r);
    *names = dump_alloc(d, count, sizeof **names);
    for (size_t i = 0; *names && i < count; i++) {
        struct thread_name *name = &(*names)[kept];
        name->id = sl_read_u32(&r);
        name->list_index = i;
        name->name = dump_string(d, sl_read_u64(&r));
        kept += name->name.data != NULL;
    }
    if (kept)
        qsort(*names, kept, sizeof **names, name_by_id);
    return kept;
}

/* Returns the name of the thread, the last one in the file if it has several; data NULL if it has none. */
static struct sl_str find_thread_name(const struct thread_name *names, size_t count, uint32_t id)
{
    size_t low = SL_PARTITION_POINT(middle, 0, count, names[middle].id <= id); /* the first with a larger id */
    return low && names[low - 1].id == id ? names[low - 1].name : (struct sl_str){NULL, 0};
}

/* ---- threads ---- */

/* Reads an entry of the thread list. The entry may not say where in the file its stack is (offset 0), or give a place outside the file.
 * Then the stack is the dump's memory region that contains the stack's address; it stays empty if there is none. */
static void read_thread(struct dump_reader *d, struct sl_reader *r, struct sl_crash_thread *thread,
                        struct sl_minidump_thread *more)
{
    const struct sl_minidump *dump = d->dump;
    const struct sl_minidump_memory *other;
    uint32_t rva;
    *thread = (struct sl_crash_thread){.id = sl_read_u32(r), .has_id = true};
    sl_reader_skip(r, 12); /* suspend count, priorities */
    *more = (struct sl_minidump_thread){.environment = sl_read_u64(r), .cpu = dump->cpu, .family = dump->family};
    more->stack.address = sl_read_u64(r);
    more->stack.bytes = dump_location(dump, r, &rva);
    more->context = dump_location(dump, r, NULL);
    if (rva && more->stack.bytes.size)
        return;
    more->stack.bytes = (struct sl_bytes){NULL, 0};
    if ((other = sl_minidump_memory_at(dump, more->stack.address)))
        more->stack = *other;
}

/* Returns the index of the thread that requested the dump, the last one if several have its id. Returns thread_count if there is none, or
 * if it is the thread that wrote the dump, whose stack is not shown. */
static size_t requesting_thread(const struct sl_crash *crash, const struct special_threads *special)
{
    bool is_writer = special->has_writer && special->writer == special->requesting;
    for (size_t i = crash->thread_count; special->has_requesting && !is_writer && i-- > 0;)
        if (crash->threads[i].id == special->requesting)
            return i;
    return crash->thread_count;
}

/* Completes a thread. `requesting` is the index of the thread that requested the dump; thread_count if unknown. The thread that wrote the
 * dump gets no name and no registers, so its stack is not shown. The crashed thread gets the registers of the exception, because those in
 * the thread list are of the moment when the dump was written. */
static void finish_thread(struct dump_reader *d, size_t index, const struct special_threads *special,
                          const struct dump_exception *exception, size_t requesting)
{
    const struct sl_minidump *dump = d->dump;
    struct sl_crash_thread *thread = &dump->crash.threads[index];
    struct sl_minidump_thread *more = &dump->threads[index];
    if (requesting < dump->crash.thread_count)
        thread->requesting = index == requesting ? SL_REQUESTING_THREAD_YES : SL_REQUESTING_THREAD_NO;
    if (special->has_writer && thread->id == special->writer) {
        thread->name = (struct sl_str){NULL, 0};
        more->is_writer = true;
        return;
    }
    if (index == requesting && exception->is_there && dump_is_context(dump, dump->cpu, exception->context))
        more->context = exception->context;
    /* reading is charged, because all threads of a crafted dump may have the same context */
    if (dump_is_context(dump, dump->cpu, more->context) && dump_charge(d, more->context.size))
        more->is_walked = dump_context_registers(d, dump->cpu, more->context, thread);
}

bool sl_minidump_lacks_registers(const struct sl_minidump *dump)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++)
        if (dump->threads[i].is_walked || dump->threads[i].is_writer)
            return false;
    return dump->crash.thread_count > 0;
}

/* Reads the threads with their stacks, names and registers, and the exception, whose thread is the one that requested the dump. False if
 * there is no thread list. True also when out of memory, which `d` records. */
bool dump_read_threads(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_crash *crash = &dump->crash;
    struct dump_exception exception = {.is_there = false};
    struct thread_name *names;
    struct sl_reader r;
    size_t name_count = read_names(d, &names), count = dump_list(dump, STREAM_THREAD_LIST, THREAD_SIZE, &r);
    if (r.failed)
        return false;
    crash->threads = dump_alloc(d, count, sizeof *crash->threads);
    dump->threads = dump_alloc(d, count, sizeof *dump->threads);
    if (d->out_of_memory)
        return true;
    for (crash->thread_count = 0; crash->thread_count < count; crash->thread_count++) {
        struct sl_crash_thread *thread = &crash->threads[crash->thread_count];
        read_thread(d, &r, thread, &dump->threads[crash->thread_count]);
        thread->name = find_thread_name(names, name_count, (uint32_t)thread->id);
    }
    dump->has_exception = crash->crashed = dump_read_exception(dump, &exception);
    crash->reason = crash->crashed ? dump_crash_reason(d, &exception) : SL_STR("");
    const struct special_threads special = read_special(dump, &exception);
    size_t requesting = requesting_thread(crash, &special);
    for (size_t i = 0; i < count && !d->out_of_memory; i++)
        finish_thread(d, i, &special, &exception, requesting);
    return true;
}
