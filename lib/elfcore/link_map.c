/* Modules of cores without the note NT_FILE, such as those of qemu-user and of kernels before Linux 3.7: the dynamic linker keeps a
 * list of them for debuggers (struct r_debug and link_map of link.h; System V ABI, DT_DEBUG).
 *
 *     auxiliary vector ──▶ program headers ──▶ PT_DYNAMIC ──▶ DT_DEBUG ──▶ r_debug ──▶ link_map ──▶ link_map ... */
#include "elfcore/impl.h"

#include "base/search.h"

enum {
    DT_NULL = 0,
    DT_DEBUG = 21,
    PAGE = 4096,
    MAX_DYNAMIC = 4096, /* entries */
    MAX_LIBRARIES = 10000,
    MAX_SEARCHED = 1 << 20, /* bytes of a region */
};

static unsigned word_size(const struct core_reader *c)
{
    return c->is_wide ? 8 : 4;
}

static struct sl_str text_at(struct core_reader *c, uint64_t address)
{
    return core_text(c, core_memory(c, address, MAX_NAME));
}

/* The program, as the auxiliary vector describes it. */
struct core_program {
    uint64_t bias;               /* addresses at run time minus those in its file */
    uint64_t base, end, dynamic; /* addresses at run time; dynamic 0: unknown, or none */
};

/* Finds the program's memory and dynamic section by its program headers, which are in memory at `headers`. PT_PHDR says at which address
 * they were linked: the difference is the bias. Without it the program is static, and its bias 0. False if the core lacks the headers. */
static bool read_headers(struct core_reader *c, struct core_program *program, uint64_t headers, uint64_t count)
{
    struct core_image image = {.headers = core_memory(c, headers, count * core_header_size(c))};
    image.count = (unsigned)(image.headers.size / core_header_size(c));
    for (unsigned i = 0; i < image.count; i++) {
        struct core_segment s = core_image_segment(c, &image, i);
        if (s.type == PT_PHDR)
            program->bias = headers - s.address;
    }
    for (unsigned i = 0; i < image.count; i++) {
        struct core_segment s = core_image_segment(c, &image, i);
        uint64_t begin = program->bias + s.address;
        if (s.type == PT_DYNAMIC)
            program->dynamic = begin;
        if (s.type != PT_LOAD)
            continue;
        program->base = begin < program->base ? begin & ~(uint64_t)(PAGE - 1) : program->base;
        program->end = begin + s.memory_size > program->end ? begin + s.memory_size : program->end;
    }
    return program->base < program->end;
}

/* Finds where the program is in memory; false if the core does not tell. If the core does not have its program headers, it is taken to
 * begin at their page, since linkers write them behind the ELF header, and to end where memory ends. */
static bool read_program(struct core_reader *c, struct core_program *program)
{
    uint64_t headers, count;
    *program = (struct core_program){.base = UINT64_MAX};
    if (!core_auxv(c, AT_PHDR, &headers) || !core_auxv(c, AT_PHNUM, &count))
        return false;
    if (count <= MAX_HEADERS && read_headers(c, program, headers, count))
        return true;
    uint64_t base = headers & ~(uint64_t)(PAGE - 1);
    *program = (struct core_program){.base = base, .end = core_run_end(c, base)};
    return program->end; /* 0 if the core has no memory there */
}

/* Adds the program itself as a module. The dynamic linker lists it without a name, so that the name comes from the auxiliary vector
 * (AT_EXECFN), or from the process's note if the core lacks that memory. */
static void add_program(struct core_reader *c, const struct core_program *program)
{
    struct core_image image;
    uint64_t name;
    bool has_image = core_read_image(c, program->base, &image);
    struct sl_str file = core_auxv(c, AT_EXECFN, &name) ? text_at(c, name) : SL_STR("");
    core_add_module(c, program->base, program->end, file.size ? file : c->core->name, has_image ? &image : NULL);
}

/* ---- the list ---- */

struct core_library { /* struct link_map */
    uint64_t base, name, dynamic, next;
};

/* Reads an entry of the dynamic linker's list at `address`: the first four members of struct link_map (<link.h>). False if the core lacks
 * that memory. */
static bool read_library(struct core_reader *c, uint64_t address, struct core_library *library)
{
    struct sl_reader r = core_make_reader(c, core_memory(c, address, 4 * word_size(c)));
    library->base = core_read_word(c, &r);
    library->name = core_read_word(c, &r);
    library->dynamic = core_read_word(c, &r);
    library->next = core_read_word(c, &r);
    return !r.failed;
}

/* Returns r_map of the struct r_debug at the address: the first entry of the dynamic linker's list. 0 if it is not in the core. */
static uint64_t list_of_debug(struct core_reader *c, uint64_t address)
{
    struct sl_reader r = core_make_reader(c, core_memory(c, address, 2 * word_size(c)));
    core_read_word(c, &r); /* r_version and padding */
    return core_read_word(c, &r);
}

/* Returns the address of the first entry of the dynamic linker's list, by DT_DEBUG in the program's dynamic section; 0 if the core does not
 * have it. */
static uint64_t list_of_dynamic(struct core_reader *c, uint64_t dynamic)
{
    struct sl_reader r = core_make_reader(c, core_memory(c, dynamic, MAX_DYNAMIC * 2 * word_size(c)));
    uint64_t tag = DT_NULL, value = 0;
    do {
        tag = core_read_word(c, &r);
        value = core_read_word(c, &r);
    } while (!r.failed && tag != DT_NULL && tag != DT_DEBUG);
    return !r.failed && tag == DT_DEBUG ? list_of_debug(c, value) : 0;
}

/* Searches a region of the program's memory for DT_DEBUG, when the program headers do not say where the dynamic section is. The entry is
 * the right one if the first library of its list, the program, has its dynamic section there. Returns the address of the list's first entry
 * and sets `*dynamic`; 0 if nothing is found. */
static uint64_t search_region(struct core_reader *c, const struct sl_minidump_memory *region, uint64_t *dynamic)
{
    unsigned word = word_size(c);
    struct core_library first;
    struct sl_reader r = core_make_reader(c, sl_bytes_part(region->bytes, 0, MAX_SEARCHED));
    if (!sl_budget_spend(&c->budget, region->bytes.size / 64 + 1)) /* for the search; each candidate costs 8 more */
        return 0;
    while (sl_reader_left(&r) >= 2 * word) {
        uint64_t at = region->address + sl_reader_offset(&r);
        if (core_read_word(c, &r) != DT_DEBUG)
            continue;
        struct sl_reader value = r;
        uint64_t list = sl_budget_spend(&c->budget, 8) ? list_of_debug(c, core_read_word(c, &value)) : 0;
        if (!list || !read_library(c, list, &first) || at - first.dynamic >= MAX_DYNAMIC * 2 * word)
            continue;
        *dynamic = first.dynamic;
        core_memory(c, at, 2 * word); /* marks it as read: sl_elfcore_trim keeps what was read */
        return list;
    }
    return 0;
}

/* Searches the program's memory for the dynamic linker's list. Returns the address of its first entry, 0 if it is not found, and sets
 * program->dynamic. */
static uint64_t search_list(struct core_reader *c, struct core_program *program)
{
    const struct sl_minidump *dump = &c->core->dump;
    size_t i = SL_PARTITION_POINT(k, 0, dump->memory_count, dump->memory[k].address < program->base);
    uint64_t list = 0;
    for (; !list && i < dump->memory_count && dump->memory[i].address < program->end; i++)
        list = search_region(c, &dump->memory[i], &program->dynamic);
    return list;
}

/* Adds a library: from its headers, or, if these are not in the core, from its base to where the memory around its dynamic section ends. A
 * dynamic section that is not within 4 GiB behind the base is not believed. */
static void add_library(struct core_reader *c, uint64_t base, uint64_t dynamic, struct sl_str name)
{
    struct core_image image;
    if (core_read_image(c, base, &image))
        core_add_module(c, base, image.end, name, &image);
    else if (dynamic > base && dynamic - base < UINT64_C(1) << 32)
        core_add_module(c, base, core_run_end(c, dynamic), name, NULL);
}

void core_read_link_map(struct core_reader *c)
{
    struct core_program program;
    struct core_library library;
    uint64_t vdso = 0;
    if (!read_program(c, &program))
        return;
    add_program(c, &program);
    core_auxv(c, AT_SYSINFO_EHDR, &vdso);
    uint64_t at = program.dynamic ? list_of_dynamic(c, program.dynamic) : search_list(c, &program), first = at;
    size_t most = c->bytes.size / (4 * word_size(c)); /* the list may lead back to itself */
    most = most < MAX_LIBRARIES ? most : MAX_LIBRARIES;
    for (size_t i = 0; at && i < most && sl_budget_spend(&c->budget, 1); i++, at = library.next) {
        if ((i && at == first) || !read_library(c, at, &library))
            return;
        struct sl_str file = text_at(c, library.name);
        /* the list begins with the program, without a name, and may contain [vdso], which has a file name but no file */
        if (library.dynamic != program.dynamic && library.base != vdso && file.size)
            add_library(c, library.base, library.dynamic, file);
    }
}
