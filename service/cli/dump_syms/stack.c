/* `symloom dump-syms`: writes STACK records, and finds the code that only unwind information tells of. */
#include "cli/dump_syms/dump_syms.h"

#include "breakpad/breakpad.h"
#include "unwind/unwind.h"

#include <stdio.h>

enum { MAX_OBJECTS = 3 };

/* Lists the objects of the module's files, each once, the executable first. Returns their number. */
static size_t list_objects(const struct dump_module *m, struct sl_object *objects[MAX_OBJECTS])
{
    struct sl_object *all[] = {m->code, m->main.object, m->debug};
    size_t count = 0;
    for (size_t i = 0; i < MAX_OBJECTS; i++) {
        bool repeated = false;
        for (size_t j = 0; j < count; j++)
            repeated = repeated || objects[j] == all[i];
        if (!repeated)
            objects[count++] = all[i];
    }
    return count;
}

/* True if reading stopped because memory or the work budget ran out, not because of a malformed table. */
static bool ran_out(struct sl_object *object, enum sl_code code)
{
    return code == SL_BUSY || code == SL_UNSUPPORTED || sl_budget_exhausted(sl_object_budget(object));
}

enum sl_code dump_stack(const struct dump_module *m, const struct options *o,
                        bool (*write)(void *arg, struct sl_str text), void *arg, bool *written, struct sl_error *error)
{
    struct sl_object *objects[MAX_OBJECTS];
    size_t count = list_objects(m, objects);
    bool warn = dump_warns(o);
    *written = false;
    for (size_t i = 0; i < count && !*written; i++) {
        struct sl_unwind_text text;
        sl_unwind_text_init(&text, objects[i]);
        text.base = option_given(o, "preserve-load-address") ? sl_object_info(m->code)->load_address : 0;
        text.write = write;
        text.arg = arg;
        enum sl_code code = sl_unwind_read(objects[i], &text.sink, error);
        if (warn && text.sink.skipped)
            print_note("warning: %s: skipped %zu unreadable unwind entries\n", m->main.path, text.sink.skipped);
        *written = text.records;
        sl_unwind_text_free(&text);
        if (code != SL_OK && ran_out(objects[i], code))
            return code;
        if (warn && (code == SL_MALFORMED || code == SL_INTERNAL))
            print_note("warning: %s: %s\n", m->main.path, error->message);
    }
    return SL_OK;
}

struct unwind_writer {
    struct sl_unwind_sink sink;
    struct sl_breakpad_writer *writer;
};

/* Receives the address range of an unwind entry: tells the writer that there is code, which gets a FUNC record of its own if it is in no
 * function. */
static enum sl_code add_code(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error)
{
    struct unwind_writer *known = (struct unwind_writer *)sink;
    bool was_added = sl_breakpad_writer_unnamed(known->writer, range->start, range->size);
    return was_added ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Receives a STACK WIN record: tells the writer that there is code at its addresses. */
static enum sl_code add_windows_code(struct sl_unwind_sink *sink, const struct sl_unwind_win *win,
                                     struct sl_error *error)
{
    const struct sl_unwind_range range = {.start = win->start, .size = win->size};
    return add_code(sink, &range, error);
}

enum sl_code dump_write_unwind_ranges(const struct dump_module *m, struct sl_breakpad_writer *writer,
                                      struct sl_error *error)
{
    struct unwind_writer known = {{.range = add_code, .win = add_windows_code}, writer};
    enum sl_code code = sl_unwind_read(m->code, &known.sink, error);
    return code != SL_OK && ran_out(m->code, code) ? code : SL_OK;
}

/* Called with the first STACK record: false stops reading, as one record shows that there are some. */
static bool refuse_record(void *arg, struct sl_str text)
{
    (void)arg, (void)text;
    return false;
}

bool dump_has_stack(const struct dump_module *m)
{
    struct sl_object *objects[MAX_OBJECTS];
    size_t count = list_objects(m, objects), records = 0;
    for (size_t i = 0; i < count && !records; i++) {
        struct sl_unwind_text text;
        sl_unwind_text_init(&text, objects[i]);
        text.write = refuse_record;
        sl_unwind_read(objects[i], &text.sink, NULL); /* NULL: only the number of records is needed */
        records = text.records;
        sl_unwind_text_free(&text);
    }
    return records;
}
