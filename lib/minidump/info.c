/* Data other than the crash: the assertion, the process, Crashpad's and macOS' records, Linux' mappings. */
#include "minidump/impl.h"

enum {
    ASSERTION_TEXT = 256, /* bytes of each text of an assertion, UTF-16 */
    HAS_PROCESS_ID = 1,
    HAS_PROCESS_TIMES = 2,
    MAX_CRASH_INFO = 20,
};

/* ---- assertion ---- */

/* Sets the text of a failed assertion: "expression (function at file:line)"; empty if there is none. */
static void read_assertion(struct dump_reader *d)
{
    struct sl_reader r = dump_stream_reader(d->dump, STREAM_ASSERTION);
    struct sl_str texts[3]; /* expression, function, file */
    d->dump->crash.assertion = SL_STR("");
    if (sl_reader_left(&r) < 3 * ASSERTION_TEXT + 8) /* 8: line and type, which is not used */
        return;
    for (int i = 0; i < 3; i++) {
        texts[i] = dump_utf16(d, sl_read_bytes(&r, ASSERTION_TEXT));
        texts[i] = texts[i].data ? texts[i] : SL_STR("");
    }
    uint32_t line = sl_read_u32(&r);
    if (texts[0].size || texts[1].size || texts[2].size)
        d->dump->crash.assertion = dump_printf(d, SL_STR_FMT " (" SL_STR_FMT " at " SL_STR_FMT ":%u)",
                                               SL_STR_ARG(texts[0]), SL_STR_ARG(texts[1]), SL_STR_ARG(texts[2]), line);
}

/* ---- process ---- */

/* Reads MINIDUMP_MISC_INFO; flags say which fields are valid. */
static void read_process(struct sl_minidump *dump)
{
    struct sl_reader r = dump_stream_reader(dump, STREAM_MISC_INFO);
    sl_reader_skip(&r, 4); /* size */
    uint32_t flags = sl_read_u32(&r);
    dump->process_id = sl_read_u32(&r);
    dump->create_time = sl_read_u32(&r);
    sl_reader_skip(&r, 8); /* processor times */
    dump->has_process_id = !r.failed && (flags & HAS_PROCESS_ID);
    dump->has_create_time = !r.failed && (flags & HAS_PROCESS_TIMES);
}

/* ---- lists of which only the length is used ---- */

/* Sets whether the lists of handles, memory regions and thread information exist, and their lengths. 32, 48 and 64 are the least sizes of
 * an entry of each; `true`: the length of that list has 64 bits. */
static void count_entries(struct sl_minidump *dump)
{
    struct sl_reader r;
    size_t entry;
    uint64_t count = dump_extended_list(dump, STREAM_HANDLE_DATA, 32, false, &r, &entry);
    dump->handles = (struct sl_minidump_stream_count){dump_stream(dump, STREAM_HANDLE_DATA).data != NULL, count};
    count = dump_extended_list(dump, STREAM_MEMORY_INFO, 48, true, &r, &entry);
    dump->memory_info = (struct sl_minidump_stream_count){dump_stream(dump, STREAM_MEMORY_INFO).data != NULL, count};
    count = dump_extended_list(dump, STREAM_THREAD_INFO, 64, false, &r, &entry);
    dump->thread_info = (struct sl_minidump_stream_count){dump_stream(dump, STREAM_THREAD_INFO).data != NULL, count};
}

/* ---- Crashpad ---- */

/* Adds the entries of a dictionary, which is `u32 count` and per entry the offsets of name and value, to the annotations `list`. `module`:
 * the module it belongs to, data NULL = the process. Ends when the budget is used up. */
static void add_dictionary(struct dump_reader *d, struct sl_bytes bytes, struct sl_str module,
                           struct sl_arena_array *list)
{
    struct sl_reader r = dump_make_reader(d->dump, bytes);
    uint32_t count = sl_read_u32(&r);
    for (uint32_t i = 0; i < count && sl_reader_left(&r) >= 8 && dump_charge(d, 8); i++) {
        struct sl_str name = dump_string8(d, sl_read_u32(&r)), value = dump_string8(d, sl_read_u32(&r));
        if (!name.data || !value.data)
            continue;
        struct sl_minidump_annotation *annotation = sl_arena_array_add(list);
        if (annotation)
            *annotation = (struct sl_minidump_annotation){module, name, value};
        d->out_of_memory |= !annotation;
    }
}

/* Adds a module's annotation objects to `list`: `u32 count`, then per object offset of the name, type, reserved and offset of the value.
 * Only those whose type is a string are used. Ends when the budget is used up. */
static void add_objects(struct dump_reader *d, struct sl_bytes bytes, struct sl_str module, struct sl_arena_array *list)
{
    enum { TYPE_STRING = 1 };
    struct sl_reader r = dump_make_reader(d->dump, bytes);
    uint32_t count = sl_read_u32(&r);
    for (uint32_t i = 0; i < count && sl_reader_left(&r) >= 12 && dump_charge(d, 12); i++) {
        uint32_t name_at = sl_read_u32(&r);
        uint16_t type = sl_read_u16(&r);
        sl_reader_skip(&r, 2);
        uint32_t value_at = sl_read_u32(&r);
        struct sl_minidump_annotation *annotation;
        struct sl_str name, value;
        if (type != TYPE_STRING || !(name = dump_string8(d, name_at)).data || !(value = dump_string8(d, value_at)).data)
            continue;
        if ((annotation = sl_arena_array_add(list)))
            *annotation = (struct sl_minidump_annotation){module, name, value};
        d->out_of_memory |= !annotation;
    }
}

struct module_list { /* the module list in file order */
    struct sl_reader r;
    size_t count;
};

/* Returns the name of entry `index` of the module list; empty if there is no such entry. */
static struct sl_str module_name(struct dump_reader *d, const struct module_list *modules, uint32_t index)
{
    struct sl_reader r = modules->r;
    if (index >= modules->count)
        return SL_STR("");
    sl_reader_skip(&r, (uint64_t)index * DUMP_MODULE_SIZE + 20); /* to the offset of the name */
    struct sl_str name = dump_string(d, sl_read_u32(&r));
    return name.data ? name : SL_STR("");
}

/* Adds the annotations of the module at `index` of the module list; `bytes` is Crashpad's record of it. If both lists are too short for an
 * entry (a count of 4 bytes, then at least 8 or 12), returns at once, to save reading the module's name. */
static void add_module(struct dump_reader *d, const struct module_list *modules, uint32_t index, struct sl_bytes bytes,
                       struct sl_arena_array *list)
{
    struct sl_reader r = dump_make_reader(d->dump, bytes);
    sl_reader_skip(&r, 4);            /* version */
    dump_location(d->dump, &r, NULL); /* list annotations, strings without names, are not used */
    struct sl_bytes simple = dump_location(d->dump, &r, NULL), objects = dump_location(d->dump, &r, NULL);
    if (simple.size < 4 + 8 && objects.size < 4 + 12)
        return;
    struct sl_str name = module_name(d, modules, index);
    add_dictionary(d, simple, name, list);
    add_objects(d, objects, name, list);
}

/* Reads Crashpad's stream: annotations of the process and of its modules, and which bits of a pointer are the address. */
static void read_crashpad(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_arena_array list = {.arena = d->arena, .item = sizeof *dump->annotations};
    struct sl_reader r = dump_stream_reader(dump, STREAM_CRASHPAD_INFO);
    sl_reader_skip(&r, 36); /* version, report id, client id */
    struct sl_bytes simple = dump_location(dump, &r, NULL), modules = dump_location(dump, &r, NULL);
    if (r.failed)
        return;
    sl_reader_skip(&r, 4); /* reserved */
    uint64_t mask = sl_read_u64(&r);
    dump->address_mask = r.failed || !mask ? 0 : ~mask; /* the file has the bits that are not part of the address */
    add_dictionary(d, simple, (struct sl_str){NULL, 0}, &list);
    struct module_list named;
    named.count = dump_list(dump, STREAM_MODULE_LIST, DUMP_MODULE_SIZE, &named.r);
    r = dump_make_reader(dump, modules);
    uint32_t count = sl_read_u32(&r);
    for (uint32_t i = 0; i < count && sl_reader_left(&r) >= 12; i++) { /* 12: index in the module list, size, offset */
        uint32_t index = sl_read_u32(&r);
        add_module(d, &named, index, dump_location(dump, &r, NULL), &list);
    }
    dump->annotation_count = list.count;
    dump->annotations = sl_arena_array_finish(&list);
    d->out_of_memory |= !dump->annotations;
}

/* ---- macOS ---- */

/* Reads a record of the crash messages of a macOS module. Records of version 4 and later have five texts from offset `start` on, of which
 * the two messages are kept, unless empty; older records are skipped. */
static void read_crash_info_record(struct dump_reader *d, struct sl_bytes bytes, uint32_t start)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r = dump_make_reader(dump, bytes);
    sl_reader_skip(&r, 8); /* type */
    if (sl_read_u64(&r) < 4)
        return;
    sl_reader_seek(&r, start);
    for (int i = 0; i < 5 && !r.failed; i++) { /* module, message, signature, backtrace, second message */
        struct sl_str raw = sl_read_cstr(&r);
        if ((i != 1 && i != 4) || !raw.size)
            continue;
        struct sl_str text = dump_utf8(d, (struct sl_bytes){(const uint8_t *)raw.data, raw.size});
        if (text.data)
            dump->crash_info[dump->crash_info_count++] = text;
    }
}

/* Reads the crash messages of macOS' modules: the non-empty ones of at most two texts in each of up to MAX_CRASH_INFO records. */
static void read_crash_info(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r = dump_stream_reader(dump, STREAM_MAC_CRASH_INFO);
    sl_reader_skip(&r, 4); /* type */
    uint32_t count = sl_read_u32(&r), start = sl_read_u32(&r);
    if (r.failed || !(dump->crash_info = dump_alloc(d, 2 * MAX_CRASH_INFO, sizeof *dump->crash_info)))
        return;
    for (uint32_t i = 0; i < count && i < MAX_CRASH_INFO; i++)
        read_crash_info_record(d, dump_location(dump, &r, NULL), start);
}

/* ---- Linux, proc(5) ---- */

/* Removes up to 16 hexadecimal digits and the character `end` after them from `*rest`. False if the text does not begin so. */
static bool take_hex(struct sl_str *rest, char end, uint64_t *value)
{
    size_t i = 0;
    for (*value = 0; i < rest->size && i < 16; i++) {
        int digit = sl_hex_digit(rest->data[i]);
        if (digit < 0)
            break;
        *value = *value << 4 | (unsigned)digit;
    }
    if (!i || i >= rest->size || rest->data[i] != end)
        return false;
    *rest = (struct sl_str){rest->data + i + 1, rest->size - i - 1};
    return true;
}

/* Parses a line of /proc/<pid>/maps: "begin-end access offset device inode   path". False if it has another form. */
static bool is_mapping(struct sl_str line, struct sl_minidump_mapping *mapping)
{
    if (!take_hex(&line, '-', &mapping->begin) || !take_hex(&line, ' ', &mapping->end) ||
        mapping->end <= mapping->begin)
        return false;
    for (int column = 0; column < 4; column++) {
        const char *blank = line.size ? memchr(line.data, ' ', line.size) : NULL;
        if (!blank && column < 3) /* after column 3, the inode, there may be no path */
            return false;
        size_t size = blank ? (size_t)(blank - line.data) : line.size;
        if (!column)
            mapping->access = (struct sl_str){line.data, size};
        line = sl_str_trimmed((struct sl_str){line.data + size, line.size - size});
    }
    mapping->path = line;
    return true;
}

/* Reads the mappings of /proc/<pid>/maps; lines of other forms are skipped. */
static void read_mappings(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_str text = dump_text(d, dump_stream(dump, STREAM_LINUX_MAPS)), line;
    struct sl_arena_array array = {.arena = d->arena, .item = sizeof *dump->mappings};
    struct sl_minidump_mapping mapping, *kept;
    while (sl_str_next_line(&text, &line))
        if (is_mapping(line, &mapping)) {
            if ((kept = sl_arena_array_add(&array)))
                *kept = mapping;
            d->out_of_memory |= !kept;
        }
    dump->mapping_count = array.count;
    dump->mappings = sl_arena_array_finish(&array);
    d->out_of_memory |= !dump->mappings;
}

/* Each part that is missing or malformed is left out. When out of memory, d->out_of_memory is set. */
void dump_read_info(struct dump_reader *d)
{
    read_assertion(d);
    read_process(d->dump);
    count_entries(d->dump);
    read_crashpad(d);
    read_crash_info(d);
    read_mappings(d);
}
