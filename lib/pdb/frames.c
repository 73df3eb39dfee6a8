/* Frame data of 32-bit x86: FPO_DATA (winnt.h) and FRAMEDATA (cvinfo.h), each sorted by address.
 *
 *     FPO    u32 start, size, locals / 4; u16 params / 4, attributes                                         16 bytes
 *     frames u32 start, size, locals, params, max stack, program; u16 prolog, saved; u32 flags               32 bytes */
#include "pdb/impl.h"

enum { FPO_RECORD = 16, FRAME_RECORD = 32, MAX_SIZE = 0x7FFFFFFF };

/* Reads an FPO_DATA record. Locals, parameters and saved registers are counted in words of 4 bytes. Its attributes: bits 0..7 size of the
 * prologue, 8..10 number of saved registers, 12 EBP is used, 14..15 type of the frame. */
static struct sl_pdb_frame read_fpo(struct sl_reader *r)
{
    struct sl_pdb_frame f = {0};
    f.start = sl_read_u32(r);
    f.size = sl_read_u32(r);
    f.locals = sl_read_u32(r) * 4;
    f.params = sl_read_u16(r) * 4u;
    uint16_t bits = sl_read_u16(r);
    f.prolog = bits & 0xFF;
    f.saved = (bits >> 8 & 7) * 4u;
    f.uses_base_pointer = bits >> 12 & 1;
    f.type = (uint8_t)(bits >> 14);
    return f;
}

/* Reads a FRAMEDATA record. It gets type 4, as FPO_DATA has the types 0 to 3. */
static struct sl_pdb_frame read_frame(struct sl_reader *r, const struct sl_pdb *pdb, struct sl_account *account)
{
    struct sl_pdb_frame f = {.type = 4};
    f.start = sl_read_u32(r);
    f.size = sl_read_u32(r);
    f.locals = sl_read_u32(r);
    f.params = sl_read_u32(r);
    f.max_stack = sl_read_u32(r);
    f.program = pdb_name(pdb, sl_read_u32(r), account);
    f.prolog = sl_read_u16(r);
    f.saved = sl_read_u16(r);
    sl_read_u32(r); /* flags */
    return f;
}

/* Returns a reader of a stream; a missing or damaged stream counts as empty. */
static struct sl_reader open_stream(const struct sl_pdb *pdb, uint16_t index, struct sl_arena *arena)
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    if (!msf_stream(&pdb->msf, index, &stream) || !msf_all(&stream, arena, &bytes))
        bytes = (struct sl_bytes){NULL, 0};
    return sl_reader(bytes, false);
}

struct output {
    const struct sl_pdb *pdb;
    bool (*add)(void *arg, const struct sl_pdb_frame *frame);
    void *arg;
    struct sl_pdb_frame last; /* the last frame, with addresses before OMAP */
    size_t count;             /* frames passed */
};

/* Passes a frame to o->add, or two frames if OMAP moved the prologue and the rest of the code apart. Left out (true) are frames equal to
 * the last one, frames without code or with an impossible size, and FRAMEDATA without a program, which says nothing. False if o->add
 * returns false. */
static bool pass_frame(struct output *o, struct sl_pdb_frame frame)
{
    uint32_t prolog = frame.prolog < frame.size ? frame.prolog : frame.size;
    uint32_t start = pdb_translate(o->pdb, frame.start), body = pdb_translate(o->pdb, frame.start + prolog);
    const struct sl_pdb_frame *l = &o->last;
    bool repeated = o->count && l->type == frame.type && l->start == frame.start && l->size == frame.size &&
                    l->prolog == frame.prolog;
    o->last = frame;
    if (!frame.size || frame.size > MAX_SIZE || frame.start > UINT32_MAX - frame.size || repeated ||
        (frame.type == 4 && !frame.program.size))
        return true;
    o->count++;
    if (start != NOT_MAPPED && (prolog == frame.size || body == start + prolog)) { /* still one piece of code */
        frame.start = start;
        return o->add(o->arg, &frame);
    }
    struct sl_pdb_frame first = frame, second = frame;
    first.start = start;
    first.size = prolog;
    second.start = body;
    second.size = frame.size - prolog;
    second.prolog = 0;
    return (start == NOT_MAPPED || !prolog || o->add(o->arg, &first)) &&
           (body == NOT_MAPPED || !second.size || o->add(o->arg, &second));
}

enum sl_code sl_pdb_frames(const struct sl_pdb *pdb, bool (*add)(void *arg, const struct sl_pdb_frame *frame),
                           void *arg, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct output o = {.pdb = pdb, .add = add, .arg = arg};
    struct sl_reader fpo = open_stream(pdb, pdb->fpo_stream, &arena);
    struct sl_reader frames = open_stream(pdb, pdb->frame_stream, &arena);
    struct sl_account account = {.budget = pdb->budget}; /* reading a program is charged: many records have the same */
    struct sl_pdb_frame a = {0}, b = {0};                /* the next FPO_DATA record, the next FRAMEDATA record */
    bool has_a = false, has_b = false, more = true;
    while (more) {
        if (!has_a && sl_reader_left(&fpo) >= FPO_RECORD) {
            a = read_fpo(&fpo);
            has_a = true;
        }
        if (!has_b && sl_reader_left(&frames) >= FRAME_RECORD) {
            b = read_frame(&frames, pdb, &account);
            has_b = true;
        }
        if (!has_a && !has_b)
            break;
        /* merges two sorted streams; of two frames at one address FRAMEDATA, the newer form, is passed */
        bool take_b = has_b && (!has_a || b.start <= a.start);
        if (take_b && has_a && a.start == b.start)
            has_a = false;
        more = pass_frame(&o, take_b ? b : a);
        if (take_b)
            has_b = false;
        else
            has_a = false;
    }
    sl_arena_free(&arena);
    if (!more)
        return sl_fail(error, SL_CANCELLED, "reading the frame data of the PDB was stopped");
    if (sl_pdb_status(pdb, NULL) != SL_OK)
        return sl_pdb_status(pdb, error);
    return o.count ? SL_OK : sl_fail(error, SL_NOT_FOUND, "the PDB has no frame data");
}
