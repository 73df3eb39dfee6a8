/* Modules of cores without the note NT_FILE, such as those of qemu-user and of kernels before Linux 3.7: the dynamic linker keeps a
 * list of them for debuggers (struct r_debug and link_map of link.h; System V ABI, DT_DEBUG).
 *
 *     auxiliary vector ──▶ program headers ──▶ PT_DYNAMIC ──▶ DT_DEBUG ──▶ r_debug ──▶ link_map ──▶ link_map ... */
#include "elfcore/impl.h"

enum { DT_NULL = 0, DT_DEBUG = 21, MAX_DYNAMIC = 4096, MAX_LIBRARIES = 10000 };

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
    uint64_t bias, base, end, dynamic; /* addresses at run time; dynamic 0: none */
};

/* Reads its program headers from memory. Without PT_PHDR, which says where they are in the file, the program is static and lies
 * where its headers say. */
static bool read_program(struct core_reader *c, struct core_program *program)
{
    uint64_t headers, count;
    if (!core_auxv(c, AT_PHDR, &headers) || !core_auxv(c, AT_PHNUM, &count) || count > 128)
        return false;
    struct core_image image = {.headers = core_memory(c, headers, count * core_header_size(c))};
    image.count = (unsigned)(image.headers.size / core_header_size(c));
    *program = (struct core_program){.base = UINT64_MAX};
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
        program->base = begin < program->base ? begin & ~UINT64_C(4095) : program->base;
        program->end = begin + s.memory_size > program->end ? begin + s.memory_size : program->end;
    }
    return program->base < program->end;
}

static void add_program(struct core_reader *c, const struct core_program *program)
{
    struct core_image image;
    uint64_t name;
    bool has_image = core_read_image(c, program->base, &image);
    struct sl_str file = core_auxv(c, AT_EXECFN, &name) ? text_at(c, name) : SL_STR("");
    core_add_module(c, program->base, program->end, file.size ? file : c->core->name, has_image ? &image : NULL);
}

/* Finds the first entry of the list. */
static uint64_t first_library(struct core_reader *c, const struct core_program *program)
{
    struct sl_reader r = core_make_reader(c, core_memory(c, program->dynamic, MAX_DYNAMIC * 2 * word_size(c)));
    uint64_t tag = DT_NULL, value = 0;
    do {
        tag = core_read_word(c, &r);
        value = core_read_word(c, &r);
    } while (!r.failed && tag != DT_NULL && tag != DT_DEBUG);
    if (r.failed || tag != DT_DEBUG)
        return 0;
    r = core_make_reader(c, core_memory(c, value, 2 * word_size(c)));
    core_read_word(c, &r); /* r_version and padding */
    return core_read_word(c, &r);
}

/* Returns the end of the memory segment that holds the address; 0 if there is none. */
static uint64_t segment_end(const struct core_reader *c, uint64_t address)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        const struct core_segment *s = &c->segments[i];
        if (s->type == PT_LOAD && address - s->address < s->memory_size)
            return s->address + s->memory_size;
    }
    return 0;
}

/* Adds a library: from its headers, or, if these are not in the core, from its base to the end of its dynamic section's segment. */
static void add_library(struct core_reader *c, uint64_t base, uint64_t dynamic, struct sl_str name)
{
    struct core_image image;
    if (core_read_image(c, base, &image))
        core_add_module(c, base, image.end, name, &image);
    else if (dynamic > base && dynamic - base < UINT64_C(1) << 32 && sl_budget_spend(&c->budget, c->segment_count))
        core_add_module(c, base, segment_end(c, dynamic), name, NULL);
}

void core_read_link_map(struct core_reader *c)
{
    struct core_program program;
    uint64_t vdso = 0;
    if (!read_program(c, &program))
        return;
    add_program(c, &program);
    core_auxv(c, AT_SYSINFO_EHDR, &vdso);
    uint64_t at = program.dynamic ? first_library(c, &program) : 0;
    for (unsigned i = 0; at && i < MAX_LIBRARIES && sl_budget_spend(&c->budget, 1); i++) {
        struct sl_reader r = core_make_reader(c, core_memory(c, at, 4 * word_size(c)));
        uint64_t base = core_read_word(c, &r), name = core_read_word(c, &r), dynamic = core_read_word(c, &r);
        at = core_read_word(c, &r);
        if (r.failed)
            return;
        struct sl_str file = text_at(c, name);
        /* the list begins with the program, without a name, and may contain the vDSO, which has a file name but no file */
        if (dynamic != program.dynamic && base != vdso && file.size)
            add_library(c, base, dynamic, file);
    }
}
