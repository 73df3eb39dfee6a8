/* Modules: which files were mapped where, and their ids, read from the images in memory. */
#include "elfcore/impl.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/order.h"
#include "base/search.h"

enum {
    NT_GNU_BUILD_ID = 3,
    NT_FDO_PACKAGE = 0xCAFE1A7E,
    ET_EXEC = 2,
    ET_DYN = 3,
    MAX_IMAGE_NOTES = 1 << 16, /* bytes of one of its note segments */
    MAX_BUILD_ID = 64,
    LARGEST_PAGE = 1 << 16,
};

/* ---- images ---- */

struct core_segment core_image_segment(const struct core_reader *c, const struct core_image *image, unsigned index)
{
    struct sl_reader r = core_make_reader(c, image->headers);
    sl_reader_seek(&r, index * core_header_size(c));
    return core_read_segment(c, &r);
}

/* Reads the ELF header in memory at image->base: where the program headers are and how many. False if there is none, or it is not of a
 * program or library for this core's processor. */
static bool read_image_header(struct core_reader *c, struct core_image *image, uint64_t *headers)
{
    size_t size = c->is_wide ? 64 : 52; /* of an ELF header */
    struct sl_bytes bytes = core_memory(c, image->base, size);
    if (bytes.size < size || memcmp(bytes.data, c->bytes.data, 6) != 0) /* magic number, class and byte order */
        return false;
    struct sl_reader r = core_make_reader(c, bytes);
    sl_reader_seek(&r, 16);
    uint16_t type = sl_read_u16(&r), machine = sl_read_u16(&r);
    sl_reader_skip(&r, 4); /* version */
    core_read_word(c, &r); /* entry */
    *headers = core_read_word(c, &r);
    core_read_word(c, &r); /* section headers */
    sl_reader_skip(&r, 6); /* flags, size of this header */
    uint16_t entry_size = sl_read_u16(&r);
    image->count = sl_read_u16(&r);
    return (type == ET_EXEC || type == ET_DYN) && machine == c->machine && entry_size == core_header_size(c) &&
           image->count && image->count <= MAX_HEADERS;
}

bool core_read_image(struct core_reader *c, uint64_t address, struct core_image *image)
{
    uint64_t headers, lowest = UINT64_MAX;
    *image = (struct core_image){.base = address};
    if (!read_image_header(c, image, &headers) || !sl_budget_spend(&c->budget, image->count))
        return false;
    size_t size = image->count * core_header_size(c);
    image->headers = core_memory(c, address + headers, size);
    if (image->headers.size < size)
        return false;
    for (unsigned i = 0; i < image->count; i++) {
        struct core_segment s = core_image_segment(c, image, i);
        if (s.type == PT_LOAD && s.offset < lowest) { /* the one that holds the header */
            lowest = s.offset;
            image->bias = address - (s.address - s.offset);
        }
    }
    for (unsigned i = 0; i < image->count; i++) {
        struct core_segment s = core_image_segment(c, image, i);
        uint64_t end = image->bias + s.address + s.memory_size;
        if (s.type == PT_LOAD && end > image->end)
            image->end = end;
    }
    /* 2^47: all the memory that a process can have on x86-64; a larger image is damaged */
    bool is_possible = image->end > address && image->end - address < UINT64_C(1) << 47;
    return lowest != UINT64_MAX && is_possible;
}

/* ---- ids and packages ---- */

static bool is_zero(struct sl_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i])
            return false;
    return true;
}

/* Sets code id, debug id and debug file of a module by its build id. A build id that is empty, too long or all zero is ignored, and a
 * module that has ids keeps them. */
static void set_ids(struct core_reader *c, struct sl_bytes build_id, struct sl_crash_module *module)
{
    struct sl_buf text = {.budget = c->arena->budget};
    bool is_usable = build_id.size && build_id.size <= MAX_BUILD_ID && !is_zero(build_id);
    /* the code id below takes two hexadecimal digits for a byte */
    if (!is_usable || module->has_debug_id || !sl_budget_charge(&c->budget, 2 * build_id.size))
        return;
    sl_buf_hex(&text, build_id.data, build_id.size);
    module->code_id = sl_buf_move_to_arena(&text, c->arena);
    module->debug_id = sl_debug_id_from_build_id(build_id, c->core->dump.big_endian);
    module->has_debug_id = true;
    module->debug_file = module->code_file;
    c->out_of_memory |= !module->code_id.data;
}

/* True if the text is one complete JSON object. */
static bool is_object(struct sl_str text)
{
    struct sl_arena arena;
    sl_arena_init(&arena, 64 * MAX_NAME);            /* limits the parser's memory */
    struct sl_json j = sl_json(text, &arena, false); /* false: strict JSON */
    bool is = sl_json_peek(&j) == SL_JSON_OBJECT;
    sl_json_skip(&j);
    is = is && sl_json_end(&j) && sl_str_is_utf8(text);
    sl_arena_free(&arena);
    return is;
}

/* Adds the JSON object of a module's package note (FDO, .note.package). Anything that is not a JSON object of reasonable size is
 * ignored. */
static void add_package(struct core_reader *c, struct sl_bytes contents, const struct sl_crash_module *module)
{
    struct sl_str json = {(const char *)contents.data, strnlen((const char *)contents.data, contents.size)};
    bool is_usable = json.size && json.size <= MAX_NAME && sl_budget_charge(&c->budget, json.size) &&
                     sl_budget_spend(&c->budget, json.size) && is_object(json);
    struct sl_elfcore_package *package = is_usable ? sl_arena_array_add(&c->packages) : NULL;
    c->out_of_memory |= is_usable && !package;
    if (package)
        *package = (struct sl_elfcore_package){module->address, module->code_file, json};
}

/* Sets the ids of a module and adds its package, by the notes of its image, as far as they are in the core. */
static void identify(struct core_reader *c, const struct core_image *image, struct sl_crash_module *module)
{
    struct core_note note;
    for (unsigned i = 0; i < image->count; i++) {
        struct core_segment s = core_image_segment(c, image, i);
        if (s.type != PT_NOTE)
            continue;
        uint64_t size = s.file_size < MAX_IMAGE_NOTES ? s.file_size : MAX_IMAGE_NOTES;
        struct sl_reader r = core_make_reader(c, core_memory(c, image->bias + s.address, size));
        while (sl_reader_left(&r) && sl_budget_spend(&c->budget, 1) && core_next_note(&r, s.alignment, &note)) {
            if (note.type == NT_GNU_BUILD_ID && sl_str_equal(note.name, SL_STR("GNU")))
                set_ids(c, note.contents, module);
            if (note.type == NT_FDO_PACKAGE && sl_str_equal(note.name, SL_STR("FDO")))
                add_package(c, note.contents, module);
        }
    }
}

void core_add_module(struct core_reader *c, uint64_t address, uint64_t end, struct sl_str name,
                     const struct core_image *image)
{
    if (end <= address || c->modules.count == MAX_MAPPINGS)
        return;
    struct sl_crash_module module = {.address = address, .size = end - address, .code_file = name};
    module.list_index = c->modules.count;
    if (image)
        identify(c, image, &module);
    struct sl_crash_module *kept = sl_arena_array_add(&c->modules);
    c->out_of_memory |= !kept;
    if (kept)
        *kept = module;
}

/* ---- mapped files: the note NT_FILE ---- */

struct core_file { /* a mapping of a part of a file */
    uint64_t begin, end, offset;
    struct sl_str name;
};

SL_ORDER_BY(file_by_address, struct core_file, begin, end, offset)

/* Reads the list of mapped files (note NT_FILE): count, size of a page, an entry for each mapping, and then the names in the same order.
 * Returns the number of entries; 0 also when out of memory, which is recorded. */
static size_t read_files(struct core_reader *c, struct core_file **files)
{
    struct sl_reader r = core_make_reader(c, c->files);
    uint64_t count = core_read_word(c, &r), page = core_read_word(c, &r);
    size_t left = sl_reader_left(&r) / (c->is_wide ? 25 : 13); /* an entry, and at least the NUL of its name */
    count = count < left ? count : left;
    count = count < MAX_MAPPINGS ? count : MAX_MAPPINGS;
    *files = SL_ARENA_ARRAY(c->arena, struct core_file, count + 1); /* + 1: NULL only when out of memory */
    c->out_of_memory |= !*files;
    for (size_t i = 0; *files && i < count; i++) {
        (*files)[i].begin = core_read_word(c, &r);
        (*files)[i].end = core_read_word(c, &r);
        (*files)[i].offset = core_read_word(c, &r) * page;
    }
    for (size_t i = 0; *files && i < count; i++) {
        struct sl_bytes rest = {r.at, sl_reader_left(&r)};
        (*files)[i].name = core_text(c, rest);
        sl_reader_skip(&r, strnlen((const char *)rest.data, rest.size) + 1);
    }
    return *files ? (size_t)count : 0;
}

/* Removes what the kernel appends to the name of a file that was deleted or replaced while it was mapped. */
static struct sl_str without_mark(struct sl_str name)
{
    static const struct sl_str mark = SL_STR(" (deleted)");
    if (sl_str_ends(name, mark))
        name.size -= mark.size;
    return name;
}

struct core_mapped {             /* a module while its mappings are collected */
    uint64_t begin, end, offset; /* offset: of its beginning in the file; not 0 for a library inside an archive */
    struct sl_str name;
    struct core_image image;
    bool has_image;
};

/* True if the mapping is of a segment of the module's image: the segment's part of the file is mapped at the segment's address. */
static bool is_of_image(const struct core_reader *c, const struct core_mapped *mapped, const struct core_file *file)
{
    /* as the ELF file counts them; it may lie in an archive, where mapped->offset is not 0 */
    uint64_t offset = file->offset - mapped->offset, address = file->begin - mapped->image.bias;
    for (unsigned i = 0; i < mapped->image.count; i++) {
        struct core_segment s = core_image_segment(c, &mapped->image, i);
        uint64_t distance = s.address - s.offset;
        /* mappings consist of whole pages: they may begin before the segment and end after it */
        if (s.type == PT_LOAD && address - offset == distance && offset + LARGEST_PAGE > s.offset &&
            offset < s.offset + s.file_size + LARGEST_PAGE)
            return true;
    }
    return false;
}

/* Begins a module with the mapping, or adds it to the last module of the same file. Mappings of the same file that fit neither, such
 * as those of a program that reads its own file, are left out. False when out of memory. */
static bool collect_file(struct core_reader *c, const struct core_file *file, struct core_mapped *items, size_t *count,
                         struct sl_map *by_name)
{
    struct core_image image;
    void **last = file->name.size ? sl_map_find_or_add(by_name, file->name, NULL) : NULL;
    if (!last)
        return !file->name.size; /* without a name it is left out */
    struct core_mapped *mapped = *last;
    /* without an image any other part of the file belongs to the module */
    if (mapped && sl_budget_spend(&c->budget, 1 + mapped->image.count) &&
        (mapped->has_image ? is_of_image(c, mapped, file) : file->offset != mapped->offset)) {
        mapped->end = file->end > mapped->end ? file->end : mapped->end;
        return true;
    }
    bool has_image = core_read_image(c, file->begin, &image);
    if (!has_image && file->offset) /* not the beginning of a file */
        return true;
    *last = mapped = &items[(*count)++];
    *mapped = (struct core_mapped){.begin = file->begin,
                                   .end = file->end,
                                   .offset = file->offset,
                                   .name = without_mark(file->name), /* without " (deleted)" */
                                   .image = image,
                                   .has_image = has_image};
    return true;
}

static void add_mapped(struct core_reader *c, const struct core_mapped *mapped)
{
    uint64_t end = mapped->has_image && mapped->image.end > mapped->end ? mapped->image.end : mapped->end;
    if (core_may_hold_code(c, mapped->begin, end))
        core_add_module(c, mapped->begin, end, mapped->name, mapped->has_image ? &mapped->image : NULL);
}

/* Adds the modules of the note NT_FILE. */
static void read_mapped_files(struct core_reader *c)
{
    struct core_file *files;
    struct sl_map by_name = {.budget = c->arena->budget};
    size_t count = read_files(c, &files), collected = 0;
    /* + 1: NULL only when out of memory */
    struct core_mapped *items = SL_ARENA_ARRAY(c->arena, struct core_mapped, count + 1);
    bool good = items != NULL;
    if (count)
        qsort(files, count, sizeof *files, file_by_address);
    for (size_t i = 0; good && i < count; i++)
        good = collect_file(c, &files[i], items, &collected, &by_name);
    for (size_t i = 0; good && i < collected; i++)
        add_mapped(c, &items[i]);
    sl_map_free(&by_name);
    c->out_of_memory |= !good;
}

/* ---- all modules ---- */

/* Adds the vDSO, the library that the kernel maps into every process; c->core->vdso is its image if the core has all of it. */
static void add_vdso(struct core_reader *c)
{
    struct core_image image;
    uint64_t address;
    if (!core_auxv(c, AT_SYSINFO_EHDR, &address) || !core_read_image(c, address, &image))
        return;
    const struct sl_minidump_memory *memory = sl_minidump_memory_at(&c->core->dump, address);
    uint64_t size = (image.end - address + 4095) & ~UINT64_C(4095); /* whole pages */
    if (memory && memory->address == address && memory->bytes.size >= size)
        c->core->vdso = sl_bytes_part(memory->bytes, 0, size);
    core_add_module(c, address, address + size, SL_STR("[vdso]"), &image);
}

/* Returns the list_index of the program: the module that holds its entry point; 0, the first module in the list, if that is not known. */
static size_t find_program(const struct core_reader *c, const struct sl_crash_module *modules, size_t count)
{
    uint64_t entry;
    if (core_auxv(c, AT_ENTRY, &entry))
        for (size_t i = 0; i < count; i++)
            if (entry - modules[i].address < modules[i].size)
                return modules[i].list_index;
    return 0;
}

SL_ORDER_BY(module_by_address, struct sl_crash_module, address, list_index)

/* Shortens modules without an id so that they end where the next one begins. Mostly the headers of such a module are not in the core, and
 * its size is a guess. */
static void clip_guessed(struct sl_crash_module *modules, size_t count)
{
    if (count)
        qsort(modules, count, sizeof *modules, module_by_address);
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t room = modules[i + 1].address - modules[i].address;
        if (room && !modules[i].has_debug_id && modules[i].size > room)
            modules[i].size = room;
    }
}

/* Lists the modules of the note NT_FILE or, if it names none, those of the dynamic linker's list. Adds the vDSO, which is in neither, and
 * sorts the modules. */
void core_read_modules(struct core_reader *c)
{
    struct sl_crash *crash = &c->core->dump.crash;
    core_list_loads(c); /* core_may_hold_code() and core_run_end() need the list */
    if (c->out_of_memory)
        return;
    if (c->files.data)
        read_mapped_files(c);
    if (!c->modules.count)
        core_read_link_map(c);
    add_vdso(c);
    crash->module_count = c->modules.count;
    c->core->package_count = c->packages.count;
    crash->modules = sl_arena_array_finish(&c->modules);
    c->core->packages = sl_arena_array_finish(&c->packages);
    c->out_of_memory |= !crash->modules || !c->core->packages;
    if (c->out_of_memory)
        return;
    clip_guessed(crash->modules, crash->module_count);
    c->out_of_memory =
        !sl_minidump_sort_modules(&c->core->dump, find_program(c, crash->modules, crash->module_count), c->arena);
}
