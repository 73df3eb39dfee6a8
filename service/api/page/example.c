/* Makes the page's example request: the stack of this process while it answers. */
#include <elf.h>
#include <execinfo.h>
#include <link.h>

#include "api/page/page.h"
#include "id/id.h"

enum { EXAMPLE_FRAMES = 64, EXAMPLE_MODULES = 32, BUILD_ID_MAX = 64 }; /* at most; BUILD_ID_MAX: bytes */

/* The example says that module N is loaded at first_base + N * base_step, to hide where it lies in this process. */
static const uint64_t first_base = 0x100000000, base_step = 0x100000000;

struct example_module {
    uint64_t bias, end; /* load address and end in this process */
    char name[64];      /* file name without its folder */
    uint8_t build_id[BUILD_ID_MAX];
    size_t build_id_size;
    bool is_used; /* a frame lies in it */
};

struct example { /* a stack, and the modules of this process */
    void *addresses[EXAMPLE_FRAMES];
    int frame_count;
    struct example_module modules[EXAMPLE_MODULES];
    size_t module_count;
};

/* ---- modules ---- */

/* Sets the build id from the notes of a segment. Name and contents of a note are padded to 4 bytes. */
static void read_build_id(struct example_module *module, const uint8_t *notes, size_t size)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, contents = name + ((note.n_namesz + 3u) & ~3u);
        size_t next = contents + ((note.n_descsz + 3u) & ~3u);
        if (next > size)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz <= BUILD_ID_MAX) {
            memcpy(module->build_id, notes + contents, note.n_descsz);
            module->build_id_size = note.n_descsz;
            return;
        }
        at = next;
    }
}

/* Adds a module of this process; called by dl_iterate_phdr, which ends its list at a result other than 0. The module of the program
 * itself has an empty name. */
static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct example *example = arg;
    (void)size;
    if (example->module_count == EXAMPLE_MODULES)
        return 1;
    struct example_module *module = &example->modules[example->module_count++];
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    *module = (struct example_module){.bias = info->dlpi_addr};
    snprintf(module->name, sizeof module->name, "%s", *name ? name : "symloom");
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && end > module->end)
            module->end = end;
        if (segment->p_type == PT_NOTE && !module->build_id_size)
            read_build_id(module, (const uint8_t *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz);
    }
    return 0;
}

/* Returns the load address that the example gives a module. */
static uint64_t get_base(const struct example *example, const struct example_module *module)
{
    return first_base + base_step * (uint64_t)(module - example->modules);
}

/* ---- JSON ---- */

/* Writes the frames that lie in a module with a build id, by which its symbols are found, and marks these modules as used. The addresses
 * are those that the frames would have at the load addresses of get_base, which are made up. */
static void write_frames(struct example *example, struct sl_json_writer *w)
{
    sl_json_member_array(w, "frames");
    for (int i = 0; i < example->frame_count; i++)
        for (size_t m = 0; m < example->module_count; m++) {
            struct example_module *module = &example->modules[m];
            uint64_t address = (uint64_t)example->addresses[i];
            if (address < module->bias || address >= module->end || !module->build_id_size)
                continue;
            module->is_used = true;
            sl_json_begin_object(w);
            sl_json_member_hex(w, "instruction_addr", address - module->bias + get_base(example, module));
            sl_json_put_key(w, "adjust_instruction_addr"); /* backtrace() gives return addresses only */
            sl_json_put_boolean(w, true);
            sl_json_end_object(w);
            break;
        }
    sl_json_end_array(w);
}

/* Writes a module with its code id and debug id, which are both made of its build id. */
static void write_module(const struct example *example, const struct example_module *module, struct sl_json_writer *w)
{
    char debug_id[SL_DEBUG_ID_TEXT], code_id[2 * BUILD_ID_MAX + 1];
    struct sl_bytes build_id = {module->build_id, module->build_id_size};
    struct sl_debug_id id = sl_debug_id_from_build_id(build_id, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    sl_debug_id_format(&id, debug_id);
    sl_hex_encode(build_id.data, build_id.size, code_id);
    const struct {
        const char *key, *text;
    } texts[] = {{"type", "elf"}, {"code_id", code_id}, {"debug_id", debug_id}, {"code_file", module->name}};
    sl_json_begin_object(w);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sl_json_member_str(w, texts[i].key, sl_str(texts[i].text));
    sl_json_member_hex(w, "image_addr", get_base(example, module));
    sl_json_member_u64(w, "image_size", module->end - module->bias);
    sl_json_end_object(w);
}

bool page_example(struct sl_buf *out)
{
    struct example example = {.module_count = 0};
    struct sl_json_writer w = sl_json_writer(out);
    example.frame_count = backtrace(example.addresses, EXAMPLE_FRAMES);
    dl_iterate_phdr(add_module, &example);
    sl_json_begin_object(&w);
    sl_json_member_array(&w, "stacktraces");
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "thread_name", SL_STR("event loop of symloom, preparing this example"));
    write_frames(&example, &w);
    sl_json_end_object(&w);
    sl_json_end_array(&w);
    sl_json_member_array(&w, "modules");
    for (size_t m = 0; m < example.module_count; m++)
        if (example.modules[m].is_used)
            write_module(&example, &example.modules[m], &w);
    sl_json_end_array(&w);
    sl_json_end_object(&w);
    return !out->failed;
}
