/* Debug files and executables: one interface over all formats.
 *
 * `sl_object_open` detects the format by its magic and reads the headers: identity, architecture, features, sections, symbols.
 * `sl_object_read_functions` reads functions, inlinees and lines into the stream of function/function.h. Nothing is copied: an
 * object points into the bytes it was opened on, which must outlive it; decompressed sections and generated tables live in the object.
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

/* The values are stored in symcache headers, so they never change. */
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
/* Returns the architecture with this name or alias ("amd64") in any case; SL_ARCH_UNKNOWN if there is none. */
enum sl_arch sl_arch_parse(struct sl_str name);
enum sl_cpu_family sl_arch_family(enum sl_arch arch);
unsigned sl_cpu_pointer_size(enum sl_cpu_family family);
unsigned sl_cpu_instruction_alignment(enum sl_cpu_family family); /* bytes; 1 = none */
const char *sl_cpu_ip_register(enum sl_cpu_family family); /* "rip", "pc" ...; NULL for unknown processors and WASM */
const char *sl_format_name(enum sl_format format);         /* "elf", "pe", "macho" ... */
const char *sl_object_kind_name(enum sl_object_kind kind);

/* The kind of unwind tables that files of a format have. */
enum sl_unwind_tables { SL_UNWIND_NONE, SL_UNWIND_DWARF, SL_UNWIND_PE, SL_UNWIND_PDB, SL_UNWIND_BREAKPAD };

/* Constant properties of a format; the table is in formats.c. */
struct sl_format_traits {
    const char *name;  /* "elf", "pe", "macho" ... */
    const char *about; /* "an ELF file: a program or library"; NULL for SL_FORMAT_UNKNOWN */
    const char *os;    /* operating system of its programs, in Breakpad's spelling; NULL: none, or given in the file */
    /* format of the programs that such files are or describe; UNKNOWN: any, or given in the file */
    enum sl_format program;
    enum sl_unwind_tables unwind;
};
const struct sl_format_traits *sl_format_traits(enum sl_format format);

struct sl_features {
    bool has_debug_info, has_unwind_info, has_symbols, has_sources;
    struct sl_str srcsrv_vcs; /* PDB: version control system of its sources: "git", "perforce", "other"; may be empty */
};

struct sl_object_info {
    enum sl_format format;
    enum sl_object_kind kind;
    enum sl_arch arch;
    struct sl_debug_id debug_id;
    struct sl_str code_id;     /* lower-case hex; may be empty */
    struct sl_str raw_code_id; /* WASM: the code id with its length prefix, if the file has one; else empty */
    struct sl_str debug_file;  /* name of the debug file as the object states it; may be empty */
    /* Breakpad: format of executables of the operating system in MODULE. UNKNOWN for other systems, and if `format` is not Breakpad. */
    enum sl_format program_format;
    struct sl_str code_file;  /* Breakpad: name of the executable in INFO CODE_ID; may be empty */
    struct sl_str debug_link; /* .gnu_debuglink's file name, WASM external_debug_info's URL; may be empty */
    uint32_t debug_link_crc;  /* CRC-32 of that file, in .gnu_debuglink */
    uint64_t load_address;    /* base of relative addresses; ELF: address of the lowest PT_LOAD segment */
    /* Added to DWARF addresses. WASM: file offset of the code section, as DWARF addresses count from there; 0 in other formats. */
    uint64_t dwarf_bias;
    uint64_t image_size; /* end of the last loaded byte, relative; 0 = unknown */
    struct sl_features features;
    bool big_endian;
    bool is_64bit;
    bool decorates; /* symbols have C decoration (function/undecorate.h): 32-bit x86 Windows */
    bool partial;   /* malformed but usable: something optional could not be read */
    bool is_fixed;  /* ELF: not position-independent (ET_EXEC) */
};

struct sl_symbol {
    uint64_t address;   /* relative to the load address */
    uint64_t size;      /* bytes; 0 = unknown */
    struct sl_str name; /* mangled as stored; may be empty */
    /* From Breakpad's PUBLIC records, else 0. parameters: their size in bytes; multiple: the address has several names (`m`). */
    uint32_t parameters : 30, multiple : 1;
    /* A name without size within a function. If there is no debug information, it names the code up to the next symbol. */
    uint32_t is_label : 1;
};

/* Instruction sets of processors that have several, and data between code. */
enum sl_code_isa { SL_ISA_DEFAULT, SL_ISA_THUMB, SL_ISA_ARM, SL_ISA_DATA };

struct sl_mapping_symbol { /* `isa` is valid from `address` to that of the next mapping symbol */
    uint64_t address;      /* relative to the load address */
    enum sl_code_isa isa;
    uint32_t order; /* position in the symbol table: of several at one address the last one is valid */
};

struct sl_object_limits {
    uint64_t max_section_size; /* bytes of one inflated debug section; 0 = 4 GiB. inflate.c also limits their sum */
    uint64_t max_unwind_chain; /* chained unwind infos (UNW_FLAG_CHAININFO) per function of a PE file; 0 = 128 */
    struct sl_budget *budget; /* the caller's, must outlive the object; NULL: the object makes one by the file's size */
    /* The caller needs only the object's identity and reads nothing else. If finding the features takes a pass over the whole file
     * (Breakpad), all of them are set without looking. */
    bool identity;
    /* The mapping that contains the bytes, if any: after a pass over a large part its pages are dropped (madvise). */
    struct sl_mapping mapping;
};

struct sl_object;
struct sl_function_sink; /* function/function.h */
struct sl_file_origin;   /* function/function.h */

/* True for a member of a Windows import library, which has no code. An import sets `library` to the name of its DLL (a view); for a
 * member that only has tables (.idata$*) it is empty. */
bool sl_coff_import(struct sl_bytes bytes, struct sl_str *library);

/* Detects the format by the first bytes (at least 16). COFF object files have no magic: they are detected in the whole file only. */
enum sl_format sl_format_detect(struct sl_bytes bytes);

/* Opens a file with one object (for fat Mach-O see archive.h). `limits` may be NULL. The caller closes `*object`. SL_MALFORMED with the
 * format's text ("invalid ELF file" ...) or "unsupported object file format". */
enum sl_code sl_object_open(struct sl_bytes bytes, const struct sl_object_limits *limits, struct sl_object **object,
                            struct sl_error *error);
void sl_object_close(struct sl_object *object);

/* Makes addresses of `debug` relative to the load address of the program that it describes. Call it right after opening both. The
 * two may begin at different addresses: tools that edit programs add segments in front (patchelf) or move the image (prelink), and
 * leave the debug file as it is. How far they differ is found by a code section that both have: by its addresses in ELF (without such a
 * section, ET_EXEC files get the same load address), by its file offsets in WASM. No effect on other formats. */
void sl_object_align_addresses(struct sl_object *debug, const struct sl_object *program);

/* Releases the pages of `part` from memory, if it is part of the mapped file: the caller will not read it again soon. Later reads load the
 * pages again. Any thread. */
void sl_object_drop_pages(const struct sl_object *object, struct sl_bytes part);

const struct sl_object_info *sl_object_info(const struct sl_object *object); /* lives as long as the object */
struct sl_bytes sl_object_file(const struct sl_object *object);              /* the bytes it was opened on */

/* Sets `id` to the object's debug id. For a program without one, makes one: the MD5 of its loaded contents in file order (WASM: of all
 * sections that are not custom), without debug information and symbols. For Mach-O Breakpad's tools and clients make the same id; an
 * ELF file without build id already has Breakpad's hash of the code as debug id. False for a debug companion without id. */
bool sl_object_make_id(struct sl_object *object, struct sl_debug_id *id);

/* Returns the budget to which all memory and work for the object are charged. */
struct sl_budget *sl_object_budget(struct sl_object *object);

uint64_t sl_object_max_unwind_chain(const struct sl_object *object); /* sl_object_limits.max_unwind_chain */

/* Returns SL_OK if memory and budget sufficed for all that was read from the object so far. Else results are
 * incomplete: SL_BUSY when the process is out of memory, or the error of sl_budget_fail() when the budget is exhausted. */
enum sl_code sl_object_status(const struct sl_object *object, struct sl_error *error);

/* Returns the first reason why debug information of the file could not be used; NULL if there was none so far. */
const char *sl_object_debug_info_error(const struct sl_object *object);

/* Finds a section by its name without leading dot or underscores ("debug_info", "eh_frame", "text"), decompressed (also from
 * .zdebug_*); `*address` (may be NULL) is relative to the load address. False when absent, outside the file, over the limit or
 * undecodable. */
bool sl_object_section(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);

/* The supplementary file that the object names, which has debug information that several files share: by .gnu_debugaltlink of dwz(1), or
 * by .debug_sup (DWARF 5, 7.3.6), whose checksum serves as the id. The members are views of the object. sl_object_supplementary() returns
 * false if the object names none. */
struct sl_supplementary {
    struct sl_str name; /* a path, relative to the object's directory */
    struct sl_bytes id; /* may be empty */
};
bool sl_object_supplementary(struct sl_object *object, struct sl_supplementary *supplementary);

/* One section header as in the file, for tools. sl_object_section_info() gets header `index`; it returns false past the last one. */
struct sl_section_info {
    struct sl_str name;
    uint64_t address, offset, size;
    const char *compression; /* "zlib", "zstd" or NULL */
    bool is_loaded, is_code; /* ELF's flags; false for other formats */
};
bool sl_object_section_info(struct sl_object *object, size_t index, struct sl_section_info *info);

/* A loaded part of the image, as in the headers: a PT_LOAD of ELF, a segment of Mach-O, a section of PE. */
struct sl_segment {
    uint64_t address;      /* relative to the load address; wraps around if below it */
    uint64_t memory_size;  /* bytes */
    struct sl_bytes bytes; /* its contents in the file */
    bool executable;
};

/* Gets segment `index` in file order; false past the last one, and for formats without segments. */
bool sl_object_segment(const struct sl_object *object, size_t index, struct sl_segment *segment);

/* True if a code section (or, in a file without section headers of code, an executable segment) contains `address`, which is absolute.
 * Linkers give the address 0, -1 or -2 to debug information of functions that they dropped. Code may really be there, so ignore such debug
 * information only if this is false. */
bool sl_object_holds_code(const struct sl_object *object, uint64_t address);

/* Returns the file's contents from an address (relative to the load address) to the end of its segment; may be empty. */
struct sl_bytes sl_object_at(const struct sl_object *object, uint64_t address);

/* Returns the exception directory of a PE file, clipped to the file (Microsoft's "PE Format", "The .pdata Section"); empty if there
 * is none, and for other formats. */
struct sl_bytes sl_object_exceptions(const struct sl_object *object);

/* Finds the pclntab, the table of functions and lines that every Go program carries, stripped or not: from its header
 * to the end of its section or segment; `*address` is relative to the load address. False if there is none. lib/go
 * reads it. */
bool sl_object_go_table(struct sl_object *object, struct sl_bytes *table, uint64_t *address);

/* Reads all function symbols in file order (symbol table first, then the dynamic one, then MiniDebugInfo) into the arena. After them come
 * the ELF symbols without type that name code. Those outside of functions end at the next symbol or the end of their section, as
 * functions without size do; those within functions are labels. Symbols may overlap: see nesting.h. Of a damaged table the readable
 * part is returned; an error only when memory or budget is exhausted. */
enum sl_code sl_object_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                               size_t *count, struct sl_error *error);

/* Reads all symbols of loaded data in file order into the arena: of ELF, Mach-O and COFF symbol tables, and the variables and public
 * symbols of PDB files; none for other formats. Symbols without size end at the next symbol or the end of their section. A thread-local
 * variable has the address of its initial value; variables in .tbss of ELF files have none and are left out. */
enum sl_code sl_object_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                    size_t *count, struct sl_error *error);

/* A code symbol of an ELF file and its source file: the local symbols of a file follow its STT_FILE symbol. So do global symbols, but in
 * object files only: linkers put these after the symbols of all files. */
struct sl_symbol_file {
    uint64_t address; /* relative to the load address */
    struct sl_str name, file;
    bool is_local;
};

/* Lists the code symbols of an ELF file whose source file is known, in the order of the symbol table; none for other formats. */
enum sl_code sl_object_symbol_files(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                                    size_t *count, struct sl_error *error);

/* One entry of a symbol table as in the file, for tools that select symbols themselves. */
struct sl_table_symbol {
    uint64_t address, size; /* as in the file; in relocatable files the address that elf.c gave the section is added */
    struct sl_str name;
    uint32_t section; /* index for sl_object_section_info; 0 = none */
    bool is_local, is_hidden, is_untyped, is_function, is_file, is_section, is_data, is_thread_local;
};

/* Reads all entries of an ELF file's symbol table, or of the dynamic one if it has no other, in file order into the arena; none for
 * other formats. */
enum sl_code sl_object_symbol_table(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                                    size_t *count, struct sl_error *error);

/* Lists where the code of an ELF file of ARM or AArch64 changes between instruction sets and data (mapping symbols), sorted by address;
 * none for other files. SL_BUSY when out of memory. */
enum sl_code sl_object_mapping_symbols(struct sl_object *object, struct sl_arena *arena,
                                       struct sl_mapping_symbol **marks, size_t *count, struct sl_error *error);

/* Companion files of split or shared debug information, opened by the caller and kept until reading is over.
 * All may be NULL. */
struct sl_companions {
    struct sl_object *dwp; /* DWARF package of the split units */
    struct sl_object *dwz; /* the supplementary file, which .gnu_debugaltlink or .debug_sup names */
    /* Opens the .dwo file of a split unit that is in no package; may be NULL (the service never follows paths). The
     * callback owns the object and keeps it until reading is over. Called from several threads. */
    struct sl_object *(*open_dwo)(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id);
    /* Opens an object file that a debug map names (debug_map.h): `path` or `archive(member)`, modified at `stamp`; may be NULL (the
     * service never follows paths). The callback owns the object and keeps it until the next call. Returns NULL if the file is missing
     * or has another stamp. */
    struct sl_object *(*open_object)(void *arg, struct sl_str path, uint64_t stamp);
    void *arg;
};

/* Streams every function of the object's debug information to `sink`, in file order (contract: function/function.h). Symbols are not
 * included: the caller reads them. SL_NOT_FOUND if the object has no debug information; SL_MALFORMED only if no unit could be read.
 * Bad units are dropped and counted in the sink. */
enum sl_code sl_object_read_functions(struct sl_object *object, const struct sl_companions *companions,
                                      const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                      struct sl_error *error);

/* Called by sl_object_read_functions() only. sl_object_reads_own_functions() is true if the format has debug information of its own
 * (Breakpad, PDB ...), which sl_object_read_own_functions() reads; other formats have DWARF. */
bool sl_object_reads_own_functions(const struct sl_object *object);
enum sl_code sl_object_read_own_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                          struct sl_function_sink *sink, struct sl_error *error);

/* Finds where a source file can be fetched, by its path (joined and cleaned as in function/path.h); texts of `origin` are in the object's
 * bytes or in `arena`. False if the object does not say: only PDBs do. One thread at a time. */
bool sl_object_file_origin(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                           struct sl_file_origin *origin);
