/* Program databases (PDB 7.00), the debug information of Microsoft's and compatible linkers.
 *
 *     MSF container ─┬─ info (1): identity, named streams
 *      (pages)       ├─ DBI (3): modules, sections, address translation ── one stream per module: symbols, lines, inlinees
 *                    ├─ TPI (2), IPI (4): types and ids, for the arguments in function names
 *                    └─ symbol records: publics, variables
 *
 * There is no specification; the layouts are those of Microsoft's published `microsoft-pdb` sources (cvinfo.h, pdb.cpp,
 * dbi.h) and LLVM's "The PDB File Format". Everything is little-endian. Streams are scattered over pages: contiguous
 * parts are used in place, others are copied piece by piece, never a whole large stream.
 *
 * A `struct sl_pdb` is immutable after `sl_pdb_open`, except that the first `sl_pdb_read_functions` or `sl_pdb_data`
 * makes the type index. Call these from one thread at a time; `sl_parallel` distributes the modules to others. */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/parallel.h"
#include "function/function.h"
#include "id/id.h"

struct sl_pdb;

struct sl_pdb_info {
    struct sl_debug_id debug_id;
    uint16_t machine;         /* IMAGE_FILE_MACHINE_* in the DBI stream (PE format, "Machine Types") */
    uint64_t image_size;      /* end of the last section, relative; 0 = unknown */
    struct sl_str srcsrv_vcs; /* VERCTRL of the source server stream, as written; may be empty */
};

/* Opens the container and reads identity, sections and the list of modules. `*pdb` lives in the arena; `bytes`, `arena` and `budget`
 * must outlive it. All reading is charged to `budget` (may be NULL). SL_MALFORMED "invalid pdb file: ...". */
enum sl_code sl_pdb_open(struct sl_bytes bytes, struct sl_arena *arena, struct sl_budget *budget, struct sl_pdb **pdb,
                         struct sl_pdb_info *info, struct sl_error *error);

/* The CodeView of an object file after relocation. All code is in one section, number 1, at address 0, to which section:offset pairs
 * refer. */
struct sl_codeview {
    const struct sl_bytes *sections; /* contents of `.debug$S`, in file order */
    size_t section_count;
    struct sl_bytes types; /* contents of `.debug$T`; may be empty */
    uint32_t code_size;    /* bytes of code, the size of section 1 */
};

/* Makes a PDB of an object file's CodeView; only its functions can be read. `*pdb` lives in the arena; the arguments must outlive it.
 * If the types are in another file, `*elsewhere` becomes the name of that file: names of functions then have no parameters, and inlined
 * calls are missing, because they have no names. Else `*elsewhere` becomes empty. */
enum sl_code sl_pdb_open_codeview(const struct sl_codeview *parts, struct sl_arena *arena, struct sl_budget *budget,
                                  struct sl_pdb **pdb, struct sl_str *elsewhere, struct sl_error *error);

/* Calls `add` for every public symbol (S_PUB32) in an executable section, in file order. It gets the symbol's relative address;
 * `bytes_to_end`, the bytes from there to the end of the section, never 0; and the name as stored, in the file or in `arena`. If `add`
 * returns false the result is SL_BUSY. */
enum sl_code sl_pdb_publics(const struct sl_pdb *pdb, struct sl_arena *arena,
                            bool (*add)(void *arg, uint64_t address, uint64_t bytes_to_end, struct sl_str name),
                            void *arg, struct sl_error *error);

/* A data symbol: a variable, or a public symbol of data (tables, constants). */
struct sl_pdb_data {
    uint64_t address;      /* relative */
    uint64_t size;         /* bytes, by its type; 0 = unknown */
    uint64_t bytes_to_end; /* bytes to the end of the section; never 0 */
    struct sl_str name;
    bool is_public; /* public symbols come after all variables; their names are decorated */
};

/* Calls `add` for all data symbols; most variables are in the file twice, so they are passed twice. Thread-local variables have the address
 * of their initial value. Names are in the file or in `arena`. If `add` returns false the result is SL_BUSY. One thread at a time. */
enum sl_code sl_pdb_data(struct sl_pdb *pdb, struct sl_arena *arena,
                         bool (*add)(void *arg, const struct sl_pdb_data *data), void *arg, struct sl_error *error);

/* Frame data of 32-bit x86: how to unwind from [start, start + size). Its first `prolog` bytes are the prologue. */
struct sl_pdb_frame {
    uint8_t type;                                      /* 0 FPO, 1 trap, 2 TSS, 3 standard, 4 with a program */
    uint32_t start, size;                              /* relative address, bytes */
    uint32_t prolog, params, saved, locals, max_stack; /* bytes */
    struct sl_str program;                             /* type 4: a postfix program, as stored */
    bool uses_base_pointer; /* types 0 to 3: the function uses ebp, but not as frame pointer (fUseBP of FPO_DATA) */
};

/* Calls `add` for every frame record, in address order. If an FPO record (types 0 to 3) and one of type 4 have the same address, only that
 * of type 4 is used. OMAP may split a record into two. If `add` returns false the result is SL_CANCELLED. SL_NOT_FOUND if there are no
 * records. */
enum sl_code sl_pdb_frames(const struct sl_pdb *pdb, bool (*add)(void *arg, const struct sl_pdb_frame *frame),
                           void *arg, struct sl_error *error);

/* Passes the functions of every module to the sink, a batch for each module, in the order of the module list. Names are not mangled and
 * have arguments; the language is SL_LANG_UNKNOWN. SL_MALFORMED if no module can be read; single unreadable ones count in the sink. */
enum sl_code sl_pdb_read_functions(struct sl_pdb *pdb, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error);

/* Returns SL_OK if memory and budget sufficed for all that was read so far; else the error: results are incomplete. */
enum sl_code sl_pdb_status(const struct sl_pdb *pdb, struct sl_error *error);

/* Finds the origin of a source file by its path (joined and cleaned as in function/path.h): from the source server stream, or the URL
 * from the Source Link rules. Texts are in the file or in `arena`. False if it is unknown. The first call reads the lists; one thread
 * at a time. If memory runs out origins may be missing: see sl_pdb_status. */
bool sl_pdb_file_origin(struct sl_pdb *pdb, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin);
