/* Saves a stack walk that must wait, packs it as bytes, and resumes it later, perhaps in another process. */
#include "unwind/walk_impl.h"

#include "base/buf.h"

void sl_walk_save(const struct sl_walk *walk, struct sl_walk_saved *saved)
{
    const struct sl_walk_state *s = walk->state;
    *saved = (struct sl_walk_saved){.registers = s->frame.registers,
                                    .resume = s->frame.resume,
                                    .instruction = s->frame.instruction,
                                    .frame_count = (uint32_t)(s->earlier + walk->frame_count),
                                    .inner_params = s->inner_params,
                                    .trust = s->frame.trust,
                                    .is_return = s->frame.is_return};
    /* an account takes steps from the budget in advance; what it has not spent goes back */
    if (s->work && s->work->steps > 0) {
        atomic_fetch_add(&s->work->budget->steps, s->work->steps);
        s->work->steps = 0;
    }
}

struct sl_walk *sl_walk_resume(struct sl_arena *arena, const struct sl_walk_target *target,
                               struct sl_walk_module *modules, const struct sl_range_map *map,
                               const struct sl_walk_saved *saved, const struct sl_walk_stack *stack)
{
    /* the saved walk has found no frame yet, and its registers are those of the thread */
    if (!saved->frame_count)
        return sl_walk_new(arena, target, modules, map, &saved->registers, stack);
    struct sl_walk_state *s = walk_make(arena, target, modules, map, stack);
    if (!s)
        return NULL;
    s->earlier = saved->frame_count;
    s->inner_params = saved->inner_params;
    s->frame = (struct walk_frame){.registers = saved->registers,
                                   .resume = saved->resume,
                                   .instruction = saved->instruction,
                                   .module = walk_module_at(s, saved->instruction),
                                   .trust = saved->trust,
                                   .is_return = saved->is_return};
    return &s->walk;
}

/* ---- as bytes ---- */

/* Layout: the bit masks `valid`, `assumed` and `stored`, then the values of the registers in `stored`, which are those that are not 0. */
void sl_registers_pack(const struct sl_registers *registers, struct sl_buf *out)
{
    uint64_t stored = 0;
    for (size_t i = 0; i < SL_WALK_REGISTERS; i++)
        stored |= (uint64_t)(registers->value[i] != 0) << i;
    sl_buf_u64(out, registers->valid);
    sl_buf_u64(out, registers->assumed);
    sl_buf_u64(out, stored);
    for (size_t i = 0; i < SL_WALK_REGISTERS; i++)
        if (stored >> i & 1)
            sl_buf_u64(out, registers->value[i]);
}

/* Reads what sl_registers_pack() has written; r->failed is set if bytes are missing. */
void sl_registers_unpack(struct sl_reader *r, struct sl_registers *registers)
{
    *registers = (struct sl_registers){.valid = sl_read_u64(r)};
    registers->assumed = sl_read_u64(r);
    uint64_t stored = sl_read_u64(r);
    for (size_t i = 0; i < SL_WALK_REGISTERS; i++)
        if (stored >> i & 1)
            registers->value[i] = sl_read_u64(r);
}

/* Appends a saved walk as bytes: its registers, then the other members. */
void sl_walk_pack(const struct sl_walk_saved *saved, struct sl_buf *out)
{
    sl_registers_pack(&saved->registers, out);
    sl_buf_u64(out, saved->resume);
    sl_buf_u64(out, saved->instruction);
    sl_buf_u32(out, saved->frame_count);
    sl_buf_u32(out, saved->inner_params);
    sl_buf_u8(out, (uint8_t)saved->trust);
    sl_buf_u8(out, saved->is_return);
}

/* Reads what sl_walk_pack() has written. If bytes are missing or a member has an impossible value, r->failed is set. */
void sl_walk_unpack(struct sl_reader *r, struct sl_walk_saved *saved)
{
    *saved = (struct sl_walk_saved){.frame_count = 0};
    sl_registers_unpack(r, &saved->registers);
    saved->resume = sl_read_u64(r);
    saved->instruction = sl_read_u64(r);
    saved->frame_count = sl_read_u32(r);
    saved->inner_params = sl_read_u32(r);
    uint8_t trust = sl_read_u8(r), is_return = sl_read_u8(r);
    r->failed = r->failed || saved->frame_count > SL_WALK_MAX_FRAMES || trust > SL_TRUST_CONTEXT || is_return > 1;
    saved->trust = r->failed ? SL_TRUST_NONE : (enum sl_trust)trust;
    saved->is_return = !r->failed && is_return;
}
