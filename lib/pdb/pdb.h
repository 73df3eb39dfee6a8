/* Program databases (PDB 7.00), the debug information of Microsoft's and compatible linkers.
 *
 *     MSF container ─┬─ info (1): identity, named streams
 *      (pages)       ├─ DBI (3): modules, sections, address translation ── one stream per module: symbols, lines, inlinees
 *                    ├─ TPI (2), IPI (4): types and ids, for the arguments in function names
 *                    └─ symbol records: publics, variables
 *
 * There is no specification; the layouts are those of Microsoft's published `microsoft-pdb` sources (cvinfo.h, pdb.cpp,
 * dbi.h) and LLVM's "The PDB File Format". Everything is little-endian. Streams are scattered over pages: what lies
 * together is used in place, what does not is gathered piece by piece, never a whole large stream.
 *
 * A `struct sl_pdb` is immutable after `sl_pdb_open`, except that the first `sl_pdb_read_functions` or `sl_pdb_data`
 * makes the type index: one thread at a time, which may spread the modules with `sl_parallel`. */
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
    uint16_t machine;         /* IMAGE_FILE_MACHINE_* of the DBI stream (PE format, "Machine Types") */
    uint64_t image_size;      /* end of the last section, relative; 0 = not known */
    struct sl_str srcsrv_vcs; /* VERCTRL of the source server stream, as written; empty when there is none */
};

/* Opens the container and reads identity, sections and the list of modules. `bytes`, `arena` and `budget` (may be NULL), which
 * all reading spends, must outlive `*pdb`, which lives in the arena. SL_MALFORMED "invalid pdb file: ...". */
enum sl_code sl_pdb_open(struct sl_bytes bytes, struct sl_arena *arena, struct sl_budget *budget, struct sl_pdb **pdb,
                         struct sl_pdb_info *info, struct sl_error *error);

/* The CodeView of an object file, relocated as if all its code were in one section, number 1, at address 0: section:offset pairs say
 * where a function or line is in that. */
struct sl_codeview {
    const struct sl_bytes *sections; /* contents of `.debug$S`, in file order */
    size_t section_count;
    struct sl_bytes types; /* contents of `.debug$T`; may be empty */
    uint32_t code_size;    /* of that one section */
};

/* Makes a PDB of it whose functions can be read, and nothing else. All must outlive `*pdb`, which lives in the arena. `*elsewhere`:
 * the file that has its types, without which names have no parameters and inlined calls no names; empty when it has them. */
enum sl_code sl_pdb_open_codeview(const struct sl_codeview *parts, struct sl_arena *arena, struct sl_budget *budget,
                                  struct sl_pdb **pdb, struct sl_str *elsewhere, struct sl_error *error);

/* Calls `add` for every public symbol (S_PUB32) of an executable section, in file order, with its relative address,
 * what of the section is behind it (never 0) and its name as stored (in the file or in `arena`). `add` returns false to stop:
 * SL_BUSY. */
enum sl_code sl_pdb_publics(const struct sl_pdb *pdb, struct sl_arena *arena,
                            bool (*add)(void *arg, uint64_t address, uint64_t room, struct sl_str name), void *arg,
                            struct sl_error *error);

/* Something with an address that is no code: a variable, or what only a public symbol names (tables, constants). */
struct sl_pdb_data {
    uint64_t address; /* relative */
    uint64_t size;    /* of its type; 0 = not known */
    uint64_t room;    /* to the end of the section; never 0 */
    struct sl_str name;
    bool is_public; /* told behind all variables; its name is decorated */
};

/* Calls `add` for all of them, thread-local ones too, whose address is that of their first value; most variables come twice.
 * Names are in the file or in `arena`. `add` returns false to stop: SL_BUSY. One thread at a time. */
enum sl_code sl_pdb_data(struct sl_pdb *pdb, struct sl_arena *arena,
                         bool (*add)(void *arg, const struct sl_pdb_data *data), void *arg, struct sl_error *error);

/* Frame data of 32-bit x86: how to find the caller in [start, start + size), whose first `prolog` bytes make the frame. */
struct sl_pdb_frame {
    uint8_t type;                                      /* 0 FPO, 1 trap, 2 TSS, 3 standard, 4 with a program */
    uint32_t start, size;                              /* relative address, bytes */
    uint32_t prolog, params, saved, locals, max_stack; /* bytes */
    struct sl_str program;                             /* of type 4: a postfix program, as stored */
    bool uses_base_pointer;                            /* of others: ebp is another variable */
};

/* Calls `add` for every record, by address; of an old and a new one (types 0 to 3, and 4) at one address the new one.
 * Through OMAP a record may become two. `add` returns false to stop: SL_CANCELLED. SL_NOT_FOUND without any. */
enum sl_code sl_pdb_frames(const struct sl_pdb *pdb, bool (*add)(void *arg, const struct sl_pdb_frame *frame),
                           void *arg, struct sl_error *error);

/* Streams the functions of every module, in the order of the module list; as sl_object_read_functions. Names are
 * readable, with arguments; their language is unknown. */
enum sl_code sl_pdb_read_functions(struct sl_pdb *pdb, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error);

/* SL_OK; else what was missing while the file was read: memory, or work that the budget has. */
enum sl_code sl_pdb_complete(const struct sl_pdb *pdb, struct sl_error *error);

/* Where the file of a path (joined and cleaned, as function/path.h does) is kept: what the source server stream says, or
 * for the URL the Source Link rules. Texts are in the file or in `arena`. False when nothing is known. The first call reads
 * the lists; one thread at a time. When memory runs out, less is known: sl_pdb_complete() tells. */
bool sl_pdb_file_origin(struct sl_pdb *pdb, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin);
