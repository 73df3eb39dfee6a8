/* Reads the frame data (FPO and FRAMEDATA records) of a PDB for 32-bit x86. */
#include "unwind/impl.h"

#include "object/embedded.h"
#include "pdb/pdb.h"

/* Callback of sl_pdb_frames(): passes a record to the sink as a STACK WIN record. Type 4 (FRAMEDATA) has a program; for the others the text
 * in its place says whether ebp is a general-purpose register. A record with an empty or unprintable program is counted in sink->skipped.
 * False stops the reader; b->code is then the sink's error. */
static bool pdb_add(void *arg, const struct sl_pdb_frame *f)
{
    struct unwind_builder *b = arg;
    struct sl_unwind_win win = {
        .type = f->type,
        .start = f->start,
        .size = f->size,
        .prolog = f->prolog,
        .params = f->params,
        .saved = f->saved,
        .locals = f->locals,
        .max_stack = f->max_stack,
        .has_program = f->type == 4,
        .program = f->type == 4           ? sl_str_trimmed(f->program)
                   : f->uses_base_pointer ? SL_STR("1")
                                          : SL_STR("0"),
    };
    if (!win.program.size || !is_text(win.program)) {
        b->sink->skipped++;
        return true;
    }
    b->code = b->sink->win(b->sink, &win, b->error);
    b->emitted++; /* so that the file does not count as one without unwind information */
    return b->code == SL_OK;
}

enum sl_code pdb_read(const struct sl_object *object, struct unwind_builder *b)
{
    enum sl_code code = sl_pdb_frames(sl_object_as_pdb(object), pdb_add, b, NULL);
    if (b->code == SL_OK && code != SL_OK && code != SL_NOT_FOUND)
        b->code = sl_fail(b->error, code, "cannot read the frame data of the PDB");
    return b->code;
}
