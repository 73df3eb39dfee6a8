/* Shared by the files of the reader of core files.
 *
 *     elfcore.c    header, program headers, memory, order of reading    registers.c  registers of each processor
 *     notes.c      notes: threads, signal, process                      modules.c    mapped files, images in memory, ids
 *     link_map.c   modules of cores without the note NT_FILE            loads.c      which memory is covered by segments
 *     trim.c       writing a smaller core                           code.c       memory that is only in files of modules */
#pragma once

#include "elfcore/elfcore.h"
#include "minidump/build.h"

enum {
    PT_LOAD = 1,
    PT_DYNAMIC = 2,
    PT_NOTE = 4,
    PT_PHDR = 6,
    PF_X = 1,
    PF_W = 2,
    PF_R = 4,
    ET_CORE = 4,
    MAX_THREADS = 10000,
    MAX_MAPPINGS = 100000,
    MAX_NOTES = 64 << 20, /* bytes */
    MAX_HEADERS = 128,    /* program headers of a program or library */
    MAX_NAME = 4096,      /* bytes of a file name or a package note */
};

/* Entries of the auxiliary vector (getauxval(3)). */
enum { AT_PHDR = 3, AT_PHENT = 4, AT_PHNUM = 5, AT_ENTRY = 9, AT_EXECFN = 31, AT_SYSINFO_EHDR = 33 };

struct core_segment { /* a program header */
    uint32_t type, flags;
    uint64_t offset, address, file_size, memory_size, alignment;
};

struct core_range { /* of memory */
    uint64_t address, size;
};

struct core_loads { /* the PT_LOAD segments in ascending order of their addresses; one more item has the totals */
    struct core_load {
        uint64_t begin, end;
        size_t executable; /* number of executable segments before it */
        uint64_t before;   /* sum of the sizes of all segments before it */
    } * items;
    size_t count;
};

struct core_reader {
    struct sl_elfcore *core;
    struct sl_arena *arena;
    struct sl_bytes bytes;
    struct sl_budget budget; /* steps for headers and notes, and memory for texts that several modules may share */
    bool is_wide;            /* 64-bit */
    uint16_t machine;
    bool out_of_memory;
    const struct core_cpu *cpu; /* NULL: unknown processor */
    struct core_segment *segments;
    size_t segment_count;
    struct sl_bytes auxv, files; /* contents of the notes NT_AUXV and NT_FILE; data NULL: none */
    struct core_loads loads;
    struct sl_arena_array threads, more_threads; /* of each thread a sl_crash_thread and a sl_minidump_thread */
    struct sl_arena_array modules, packages;
    uint32_t signal, si_code;
    uint64_t fault_address;
    bool has_siginfo;
    struct sl_arena_array *touched; /* gets a struct core_range for all memory that is read; NULL: not wanted */
};

/* ---- elfcore.c ---- */

/* Reads everything into c->core. The caller has zeroed the reader and set `core`, `arena`, `bytes` and `touched`. */
enum sl_code core_read(struct core_reader *c, struct sl_error *error);

/* Reads only the ELF header and the program headers. */
enum sl_code core_open(struct core_reader *c, struct sl_error *error);

struct sl_reader core_make_reader(const struct core_reader *c, struct sl_bytes bytes);
uint64_t core_read_word(const struct core_reader *c, struct sl_reader *r); /* 4 or 8 bytes, as the core's class says */
size_t core_header_size(const struct core_reader *c);                      /* of a program header */
struct core_segment core_read_segment(const struct core_reader *c, struct sl_reader *r);

/* Returns at most `size` bytes of the memory at the address, fewer where the core holds fewer; data NULL if it holds none. */
struct sl_bytes core_memory(struct core_reader *c, uint64_t address, uint64_t size);

/* Returns the text in these bytes up to a NUL, at most MAX_NAME bytes; if it is not UTF-8, a copy that is. Empty if c->budget is used up;
 * data NULL if out of memory (c->out_of_memory). */
struct sl_str core_text(struct core_reader *c, struct sl_bytes bytes);

/* Looks up an entry of the auxiliary vector; false if there is none. */
bool core_auxv(const struct core_reader *c, uint64_t type, uint64_t *value);

/* ---- notes.c ---- */

struct core_note {
    struct sl_str name; /* without its NUL */
    uint32_t type;
    struct sl_bytes contents; /* clipped where the file ends */
};

/* Reads the next note; false at the end. `alignment` is that of the segment: 8, or 4 for any other. */
bool core_next_note(struct sl_reader *r, uint64_t alignment, struct core_note *note);
void core_read_notes(struct core_reader *c);

/* ---- registers.c ---- */

struct core_cpu {
    uint16_t machine; /* e_machine */
    bool is_wide;
    enum sl_arch arch;
    /* The registers in the order of pr_reg as "NAME:NUMBER", where NUMBER is that of unwind/walk.h; NAME "-": not shown; "-"
     * alone: not read. NULL: the registers of this processor are not supported. */
    const char *registers;
};

const struct core_cpu *core_find_cpu(uint16_t machine, bool is_wide); /* NULL: unknown */

/* Sets the registers of a thread from its pr_reg. Returns false if these are too short, or if out of memory. */
bool core_set_registers(struct core_reader *c, struct sl_bytes registers, struct sl_crash_thread *thread,
                        struct sl_minidump_thread *more);

/* ---- loads.c ---- */

/* Lists the PT_LOAD segments in c->loads. */
void core_list_loads(struct core_reader *c);

/* Lists the PT_LOAD segments as mappings of the dump, with their access rights. */
void core_list_mappings(struct core_reader *c);

/* True unless segments without execute permission cover all of the range: files that are only read are no modules. gcore leaves
 * out the segments of code, so what no segment covers may be code. */
bool core_may_hold_code(const struct core_reader *c, uint64_t begin, uint64_t end);

/* Returns the end of the segments that follow each other without a gap, beginning with the one that holds the address; 0 if none
 * holds it. */
uint64_t core_run_end(const struct core_reader *c, uint64_t address);

/* ---- modules.c ---- */

struct core_image { /* an ELF file in memory */
    uint64_t base;  /* address of its ELF header */
    uint64_t bias;  /* run-time addresses minus the file's */
    uint64_t end;   /* of its last segment in memory */
    struct sl_bytes headers;
    unsigned count; /* of program headers */
};

/* Reads the headers of the ELF file whose first byte is at the address. False if the core does not hold them, or if they are damaged. */
bool core_read_image(struct core_reader *c, uint64_t address, struct core_image *image);
struct core_segment core_image_segment(const struct core_reader *c, const struct core_image *image, unsigned index);

/* Adds a module; nothing if the range is empty, or if there are MAX_MAPPINGS modules already. `image` NULL: its headers are unknown, so it
 * has no id. */
void core_add_module(struct core_reader *c, uint64_t address, uint64_t end, struct sl_str name,
                     const struct core_image *image);
void core_read_modules(struct core_reader *c);

/* ---- link_map.c ---- */

/* Adds the modules of the dynamic linker's list; without it only the program. */
void core_read_link_map(struct core_reader *c);
