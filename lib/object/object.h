/* Debug files and executables: the one interface over all formats.
 *
 * `sl_object_open` looks at the magic, reads the headers and answers questions: identity, architecture, features,
 * sections, symbols. Reading the code description - functions, inlinees, lines - is `sl_object_read_functions`, which
 * feeds the stream of function/function.h. Nothing is copied: an object points into the bytes it was opened on, which
 * must outlive it; what has to be made (decompressed sections, gathered tables) lives in the object.
 *
 * An object is immutable after opening except for its cache of decompressed sections, which is filled by
 * `sl_object_section`: call that from one thread, or before threads start. */
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "id/id.h"

enum sl_format {
    SL_FORMAT_UNKNOWN,
    SL_FORMAT_ELF,
    SL_FORMAT_PE,
    SL_FORMAT_PDB,
    SL_FORMAT_SOURCEBUNDLE,
    SL_FORMAT_BREAKPAD,
    SL_FORMAT_WASM,
    SL_FORMAT_PORTABLEPDB,
    SL_FORMAT_MACHO,
    SL_FORMAT_COFF, /* object files of compilers for Windows */
};

enum sl_object_kind {
    SL_KIND_NONE,
    SL_KIND_REL,
    SL_KIND_EXE,
    SL_KIND_LIB,
    SL_KIND_DUMP,
    SL_KIND_DBG,
    SL_KIND_SRC,
    SL_KIND_OTHER,
};

/* The numbers are those of symcache headers. */
enum sl_arch {
    SL_ARCH_UNKNOWN = 0,
    SL_ARCH_X86 = 101,
    SL_ARCH_X86_UNKNOWN = 199,
    SL_ARCH_X86_64 = 201,
    SL_ARCH_X86_64H = 202,
    SL_ARCH_X86_64_UNKNOWN = 299,
    SL_ARCH_ARM = 301,
    SL_ARCH_ARMV5 = 302,
    SL_ARCH_ARMV6 = 303,
    SL_ARCH_ARMV6M = 304,
    SL_ARCH_ARMV7 = 305,
    SL_ARCH_ARMV7F = 306,
    SL_ARCH_ARMV7S = 307,
    SL_ARCH_ARMV7K = 308,
    SL_ARCH_ARMV7M = 309,
    SL_ARCH_ARMV7EM = 310,
    SL_ARCH_ARM_UNKNOWN = 399,
    SL_ARCH_ARM64 = 401,
    SL_ARCH_ARM64V8 = 402,
    SL_ARCH_ARM64E = 403,
    SL_ARCH_ARM64_UNKNOWN = 499,
    SL_ARCH_PPC = 501,
    SL_ARCH_PPC64 = 601,
    SL_ARCH_MIPS = 701,
    SL_ARCH_MIPS64 = 801,
    SL_ARCH_ARM64_32 = 901,
    SL_ARCH_ARM64_32_V8 = 902,
    SL_ARCH_ARM64_32_UNKNOWN = 999,
    SL_ARCH_WASM32 = 1001,
    SL_ARCH_RISCV = 1101,
    SL_ARCH_RISCV64 = 1201,
    SL_ARCH_S390X = 1301,
    SL_ARCH_LOONGARCH64 = 1401,
};

enum sl_cpu_family {
    SL_CPU_UNKNOWN,
    SL_CPU_X86,
    SL_CPU_X86_64,
    SL_CPU_ARM,
    SL_CPU_ARM64,
    SL_CPU_PPC,
    SL_CPU_PPC64,
    SL_CPU_MIPS,
    SL_CPU_MIPS64,
    SL_CPU_ARM64_32,
    SL_CPU_WASM32,
    SL_CPU_RISCV,
    SL_CPU_RISCV64,
    SL_CPU_S390X,
    SL_CPU_LOONGARCH64,
};

const char *sl_arch_name(enum sl_arch arch);
enum sl_arch sl_arch_parse(struct sl_str name); /* without case, with the usual aliases; SL_ARCH_UNKNOWN if none */
enum sl_cpu_family sl_arch_family(enum sl_arch arch);
unsigned sl_cpu_pointer_size(enum sl_cpu_family family);
unsigned sl_cpu_instruction_alignment(enum sl_cpu_family family); /* 1 when there is none */
const char *sl_cpu_ip_register(enum sl_cpu_family family);        /* "rip", "pc" ...; NULL when there is none */
const char *sl_format_name(enum sl_format format);                /* that of its traits */
const char *sl_object_kind_name(enum sl_object_kind kind);

/* Which tables of unwind information files of a format have. */
enum sl_unwind_tables { SL_UNWIND_NONE, SL_UNWIND_DWARF, SL_UNWIND_PE, SL_UNWIND_PDB, SL_UNWIND_BREAKPAD };

/* What is known of a format without a file: its row in formats.c. */
struct sl_format_traits {
    const char *name;       /* "elf", "pe", "macho" ... */
    const char *about;      /* "an ELF file: a program or library"; NULL of the unknown one */
    const char *os;         /* the system of its programs, as Breakpad names it; NULL: of none, or the file says it */
    enum sl_format program; /* of the programs that such files are or describe; UNKNOWN: of any, or the file says it */
    enum sl_unwind_tables unwind;
};
const struct sl_format_traits *sl_format_traits(enum sl_format format);

struct sl_features {
    bool has_debug_info, has_unwind_info, has_symbols, has_sources;
    struct sl_str srcsrv_vcs; /* "git", "perforce", "other" or empty */
};

struct sl_object_info {
    enum sl_format format;
    enum sl_object_kind kind;
    enum sl_arch arch;
    struct sl_debug_id debug_id;
    struct sl_str code_id;     /* lower-case hex, empty when there is none */
    struct sl_str raw_code_id; /* WASM: the code id with its length before it, where the file has it so; else empty */
    struct sl_str debug_file;  /* name of the debug file the object itself states; may be empty */
    /* Breakpad: that of programs of the system in MODULE. UNKNOWN: of any, or as `format`. */
    enum sl_format program_format;
    struct sl_str code_file;  /* Breakpad: name of the executable, as INFO CODE_ID has it; may be empty */
    struct sl_str debug_link; /* .gnu_debuglink's file name, WASM external_debug_info's URL; may be empty */
    uint32_t debug_link_crc;
    uint64_t load_address; /* what addresses are relative to; ELF: the lowest segment that is loaded */
    uint64_t dwarf_bias;   /* what DWARF addresses lack: offset of the WASM code section, 0 elsewhere */
    uint64_t image_size;   /* end of the last loaded byte, relative; 0 = not known */
    struct sl_features features;
    bool big_endian;
    bool is_64bit;
    bool decorates; /* its symbols have C decoration (function/undecorate.h): 32-bit x86 of Windows */
    bool partial;   /* malformed but usable: something optional could not be read */
    bool is_fixed;  /* ELF: it can be loaded at its load address alone */
};

struct sl_symbol {
    uint64_t address;   /* relative to the load address */
    uint64_t size;      /* bytes; 0 = not known */
    struct sl_str name; /* mangled as stored; may be empty */
    /* Of Breakpad's PUBLIC records, 0 elsewhere: bytes of parameters; whether it has more names than this one. */
    uint32_t parameters : 30, multiple : 1;
    /* A name within a function, of no size: where nothing but symbols describes the code it answers from here to the next one. */
    uint32_t is_label : 1;
};

/* How the code of a processor that has more than one way is written, and what lies between it. */
enum sl_code_form { SL_FORM_USUAL, SL_FORM_THUMB, SL_FORM_ARM, SL_FORM_DATA };

struct sl_code_mark { /* so it goes on from here to the next one */
    uint64_t address; /* relative to the load address */
    enum sl_code_form form;
    uint32_t order; /* of two at one address the later counts */
};

struct sl_object_limits {
    uint64_t max_section_size; /* inflated debug section, bytes; 0 = 4 GiB. All together: inflate.c */
    uint64_t max_unwind_chain; /* parts of a function that unwind information of PE files chains; 0 = 128 */
    struct sl_budget *budget;  /* the caller's, which outlives the object; NULL: one of its own, by the file's size */
    /* Only the object's identity is asked for: nothing is read out of it, and where it takes a pass over the whole file to
     * know its features (Breakpad) all of them are claimed. */
    bool identity;
    /* The mapping that the bytes lie in, if there is one: what a pass over much of it is done with does not stay resident. */
    struct sl_mapping mapping;
};

struct sl_object;
struct sl_function_sink; /* function/function.h */
struct sl_file_origin;   /* function/function.h */

/* Whether it is a member of a Windows import library, which has no code, and of which library that is (a view; empty: it is a table
 * for the other members). */
bool sl_coff_import(struct sl_bytes bytes, struct sl_str *library);

/* What the first bytes say (at least 16 are needed). Object files of COFF have no magic: all of the file is needed. */
enum sl_format sl_format_detect(struct sl_bytes bytes);

/* Opens a file with one object in it (for fat Mach-O see archive.h). `limits` may be NULL. `*object` is owned by the
 * caller: sl_object_close. SL_MALFORMED with the format's text ("invalid ELF file" ...) or
 * "unsupported object file format". */
enum sl_code sl_object_open(struct sl_bytes bytes, const struct sl_object_limits *limits, struct sl_object **object,
                            struct sl_error *error);
void sl_object_close(struct sl_object *object);

/* Makes addresses of `debug` relative to the load address of the program that it describes, right after both were opened. The two
 * may begin at different addresses: tools that edit programs put segments in front (patchelf) or move all of it (prelink), and
 * the debug file stays as it was. The addresses of a section of code that both have are compared. Without effect where they
 * have none in common, and for formats whose addresses are relative to a header that is in both. */
void sl_object_relate(struct sl_object *debug, const struct sl_object *program);

/* A pass over the part, which is of the file or was made of it, is over. Any thread. */
void sl_object_passed(const struct sl_object *object, struct sl_bytes part);

const struct sl_object_info *sl_object_info(const struct sl_object *object);
struct sl_bytes sl_object_file(const struct sl_object *object); /* the bytes it was opened on */

/* The object's debug id, or where it has none one made of its contents: the MD5 of what is loaded of it (WASM: of all sections that
 * are not custom), which debug information and symbols are no part of, in file order. For Mach-O that is what Breakpad's tools
 * and clients make; what it makes of ELF's code is the debug id itself. False when the object has neither: a debug companion. */
bool sl_object_make_id(struct sl_object *object, struct sl_debug_id *id);

/* What everything that is read of, or made from, the object is to cost together. */
struct sl_budget *sl_object_budget(struct sl_object *object);

uint64_t sl_object_max_unwind_chain(const struct sl_object *object); /* of its limits */

/* Whether memory was there for everything that was asked of the object: else SL_BUSY, or SL_UNSUPPORTED over the budget's
 * limit, and what was read of it has less in it than the file. */
enum sl_code sl_object_complete(const struct sl_object *object, struct sl_error *error);

/* Why debug information that the file has could not be used so far, the first reason; NULL when there is none. */
const char *sl_object_unused(const struct sl_object *object);

/* The named DWARF or other section without its leading dot or underscores ("debug_info", "eh_frame", "text"),
 * decompressed (also from .zdebug_*); `*address` (may be NULL) is its address relative to the load address.
 * False when absent, outside the file, over the limit or undecodable. */
bool sl_object_section(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);

/* The file that holds what several share of their debug information: .gnu_debugaltlink of dwz(1), or .debug_sup (DWARF 5,
 * 7.3.6), whose checksum is what dwz makes it: an id. Views of the object. False when the object names none. */
struct sl_supplementary {
    struct sl_str name; /* a path, relative to the object's directory */
    struct sl_bytes id; /* may be empty */
};
bool sl_object_supplementary(struct sl_object *object, struct sl_supplementary *supplementary);

/* One section header as the file has it, for tools; false past the last one. */
struct sl_section_info {
    struct sl_str name;
    uint64_t address, offset, size;
    const char *compression; /* "zlib", "zstd" or NULL */
    bool is_loaded, is_code; /* ELF's flags; false for other formats */
};
bool sl_object_section_info(struct sl_object *object, size_t index, struct sl_section_info *info);

/* A part of the image that is loaded, as the headers have it: ELF's PT_LOAD, a segment of Mach-O, a section of PE. */
struct sl_segment {
    uint64_t address;      /* relative to the load address; wraps where it is below */
    uint64_t memory_size;  /* bytes */
    struct sl_bytes bytes; /* what the file has of it */
    bool executable;
};

/* The segments in file order; false past the last one, and for formats that have none. */
bool sl_object_segment(const struct sl_object *object, size_t index, struct sl_segment *segment);

/* Whether a section with code, or where the file has no such sections a segment, holds the address, which is one of the file's own.
 * Linkers give code that they drop the address 0, -1 or -2: it may be taken for that only where this is false. */
bool sl_object_holds_code(const struct sl_object *object, uint64_t address);

/* What the file has from an address (relative to the load address) to the end of its segment; empty when it has nothing. */
struct sl_bytes sl_object_at(const struct sl_object *object, uint64_t address);

/* The exception directory of a PE file, as far as the file has it (Microsoft's "PE Format", "The .pdata Section"); empty when
 * there is none, and for other formats. */
struct sl_bytes sl_object_exceptions(const struct sl_object *object);

/* The table of functions and lines that every Go program carries, stripped or not: from its header to the end of the section or
 * segment that it is in; `*address` is relative to the load address. False when there is none. lib/go reads it. */
bool sl_object_go_table(struct sl_object *object, struct sl_bytes *table, uint64_t *address);

/* All function symbols in file order (symbol table first, then the dynamic one, then MiniDebugInfo), into the arena. In ELF
 * files behind them those without type that name code: outside of functions they end where the next begins or their section
 * ends, as functions without size do; inside they are labels. Of symbols that overlap see nesting.h.
 * An unreadable table gives what could be read; SL_MALFORMED when the names are more than the budget has. */
enum sl_code sl_object_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                               size_t *count, struct sl_error *error);

/* All symbols of data that is loaded, ELF's and Mach-O's, those of PE files with a COFF table and the variables and publics of
 * PDB files, as sl_object_symbols has those of functions; none for other formats. What has no size ends where the next begins or
 * its section ends. Thread-local variables are where their first value is: those of zeros have no place in ELF files. */
enum sl_code sl_object_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                    size_t *count, struct sl_error *error);

/* The name of the source file that a symbol of code comes from, as STT_FILE symbols of ELF say it: a file's own symbols follow
 * that of the file. Of those that are global this is so only in an object file: linkers put them behind all files. */
struct sl_symbol_file {
    uint64_t address; /* relative to the load address */
    struct sl_str name, file;
    bool is_local;
};

/* In file order, those for which a file can be told; none for other formats. */
enum sl_code sl_object_symbol_files(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                                    size_t *count, struct sl_error *error);

/* One entry of a symbol table as the file has it, for tools that choose by a rule of their own. */
struct sl_table_symbol {
    uint64_t address, size; /* as in the file; in relocatable ones as its sections are laid out */
    struct sl_str name;
    uint32_t section; /* its index for sl_object_section_info; 0: in none */
    bool is_local, is_hidden, is_untyped, is_function, is_file, is_section, is_data, is_thread_local;
};

/* All entries of the symbol table of an ELF file, or where it has none of the dynamic one, in file order, into the arena; none for
 * other formats. */
enum sl_code sl_object_symbol_table(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                                    size_t *count, struct sl_error *error);

/* The marks of an ELF file of ARM or AArch64, by address; none for other formats. SL_BUSY when out of memory. */
enum sl_code sl_object_code_marks(struct sl_object *object, struct sl_arena *arena, struct sl_code_mark **marks,
                                  size_t *count, struct sl_error *error);

/* Companion files of split or shared debug information, opened by the caller and kept until reading is over.
 * All may be NULL. */
struct sl_companions {
    struct sl_object *dwp; /* DWARF package of the split units */
    struct sl_object *dwz; /* .gnu_debugaltlink / supplementary file */
    /* Opens the .dwo file of a split unit that is in no package; may be NULL (the service never follows paths). The
     * object belongs to the callback, which keeps it until reading is over. May be called from several threads. */
    struct sl_object *(*open_dwo)(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id);
    /* Opens an object file that a debug map names (debug_map.h), `path` or `archive(member)`, which was changed at `stamp`; may be
     * NULL (the service never follows paths). The object belongs to the callback, which keeps it until the next one is opened. NULL:
     * it is not there, or another one. */
    struct sl_object *(*open_object)(void *arg, struct sl_str path, uint64_t stamp);
    void *arg;
};

/* Streams every function of the object's debug information to `sink`, in file order (function/function.h has the
 * contract), then nothing else: symbols are read by the caller. SL_NOT_FOUND when the object has no debug information;
 * SL_MALFORMED only if no unit could be read. Bad units are dropped and counted in the sink. */
enum sl_code sl_object_read_functions(struct sl_object *object, const struct sl_companions *companions,
                                      const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                      struct sl_error *error);

/* For sl_object_read_functions: formats that describe code in a way of their own and need no DWARF reader. */
bool sl_object_reads_own_functions(const struct sl_object *object);
enum sl_code sl_object_read_own_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                          struct sl_function_sink *sink, struct sl_error *error);

/* Where the source file of a path (joined and cleaned, as function/path.h does) is kept; texts are in the file or in `arena`.
 * False when the object says nothing of it, as all but PDBs do. One thread at a time. */
bool sl_object_file_origin(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                           struct sl_file_origin *origin);
