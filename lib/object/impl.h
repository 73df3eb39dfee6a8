/* What the formats share behind object.h: the object itself and the operations a format provides. Private to this
 * folder. */
#pragma once

#include "object/object.h"

/* Only `open` is needed: a format without the others has no sections, no symbols. */
struct object_format {
    enum sl_format format;
    /* Fills object->info and object->impl (in object->arena); `object` is otherwise ready. */
    enum sl_code (*open)(struct sl_object *object, struct sl_error *error);
    void (*close)(struct sl_object *object);
    bool (*section)(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
    bool (*section_info)(struct sl_object *object, size_t index, struct sl_section_info *info);
    enum sl_code (*symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                            struct sl_error *error);
    /* Formats that describe code in a way of their own; NULL: it is DWARF in sections. As sl_object_read_functions. */
    enum sl_code (*read_functions)(struct sl_object *object, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error);
    bool (*file_origin)(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                        struct sl_file_origin *origin);
};

struct sl_object {
    struct sl_object_info info;
    struct sl_bytes bytes;
    uint64_t max_section_size;
    struct sl_budget *budget, own_budget; /* `budget` is the caller's or points to the other */
    struct sl_arena arena;
    const struct object_format *format;
    void *impl;
};

extern const struct object_format sl_object_elf;
extern const struct object_format sl_object_macho;
extern const struct object_format sl_object_breakpad;
extern const struct object_format sl_object_wasm;
extern const struct object_format sl_object_pe;
extern const struct object_format sl_object_pdb;
extern const struct object_format sl_object_ppdb;
extern const struct object_format sl_object_bundle;

/* pe.c: what PE headers and PDB files call the machine (PE Format, "Machine Types"). */
enum sl_arch object_machine_arch(uint16_t machine);

/* object.c: an id as lower-case hex text, in the object's arena; empty when out of memory. */
struct sl_str object_hex(struct sl_object *object, struct sl_bytes bytes);
