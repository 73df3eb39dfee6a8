/* The stack walker's loop over frames, and code shared by all processors. If finding a frame needs information on a module that is not
 * loaded yet, sl_walk_run() returns, and the next call begins anew with that frame. */
#include "unwind/walk_impl.h"

#include "base/grow.h"

enum { FIRST_CODE = 4096 }; /* addresses in the first page are no code */

static const struct walk_cpu *const cpus[] = {&walk_x86,  &walk_amd64,  &walk_arm,   &walk_arm64,
                                              &walk_mips, &walk_mips64, &walk_riscv, &walk_riscv64};

/* Values of `cfi` and `symbols` of a module whose information was looked for and not found. NULL means: not looked for yet. */
static const struct sl_cfi no_cfi;
static const struct sl_walk_symbols no_symbols;

/* Returns the description of the processor; NULL if stacks of it cannot be walked. The ILP32 variant of ARM64 has the same registers. */
static const struct walk_cpu *find_cpu(enum sl_cpu_family family)
{
    family = family == SL_CPU_ARM64_32 ? SL_CPU_ARM64 : family;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (cpus[i]->family == family)
            return cpus[i];
    return NULL;
}

bool sl_walk_numbers(enum sl_cpu_family family, struct sl_walk_numbers *numbers)
{
    const struct walk_cpu *cpu = find_cpu(family);
    *numbers = cpu ? (struct sl_walk_numbers){cpu->pc, cpu->sp, cpu->fp, cpu->call}
                   : (struct sl_walk_numbers){SL_WALK_ONLY_PC, SL_WALK_ONLY_PC, SL_WALK_ONLY_PC, 0};
    return cpu != NULL;
}

void sl_walk_set_cfi(struct sl_walk_module *module, const struct sl_cfi *cfi)
{
    atomic_store_explicit(&module->cfi, cfi ? cfi : &no_cfi, memory_order_release);
}

void sl_walk_set_symbols(struct sl_walk_module *module, const struct sl_walk_symbols *symbols)
{
    atomic_store_explicit(&module->symbols, symbols ? symbols : &no_symbols, memory_order_release);
}

/* ---- memory ---- */

bool walk_read_stack(const struct sl_walk_state *s, uint64_t address, unsigned size, uint64_t *value)
{
    bool inside;
    struct sl_bytes bytes = sl_bytes_slice(s->stack.bytes, address - s->stack.address, size, &inside);
    if (!inside || address < s->stack.address)
        return false;
    struct sl_reader r = sl_reader(bytes, s->target.big_endian);
    *value = sl_read_uint(&r, size);
    return !r.failed;
}

bool walk_read(const struct sl_walk_state *s, uint64_t address, uint64_t *value)
{
    unsigned size = s->cpu->word;
    address = walk_truncate(s->cpu, address);
    return walk_read_stack(s, address, size, value) ||
           (s->stack.read && s->stack.read(s->stack.arg, address, size, value));
}

/* ---- modules ---- */

uint32_t walk_module_at(const struct sl_walk_state *s, uint64_t address)
{
    size_t module = sl_range_map_find(s->module_map, address);
    return module == SL_NO_RANGE ? SL_WALK_NO_MODULE : (uint32_t)module;
}

/* Records that a walk has needed information on a module. Walks on several threads share the flag, and reading it is cheaper than writing
 * it, so it is only written once. */
static void record_use(atomic_bool *uses)
{
    if (!atomic_load_explicit(uses, memory_order_relaxed))
        atomic_store_explicit(uses, true, memory_order_relaxed);
}

/* Stores which information on which module the walk needs before it can go on, for the caller of sl_walk_run(). Returns WALK_WAIT. */
static enum walk_result wait_for(struct sl_walk_state *s, enum sl_walk_need need, uint32_t module)
{
    s->need = need;
    s->needs = module;
    return WALK_WAIT;
}

enum walk_result walk_cfi(struct sl_walk_state *s, uint32_t module, const struct sl_cfi **cfi)
{
    record_use(&s->modules[module].uses_cfi); /* the caller of the walks will ask which tables they needed */
    *cfi = atomic_load_explicit(&s->modules[module].cfi, memory_order_acquire);
    if (!*cfi) /* not looked for yet */
        return wait_for(s, SL_WALK_NEED_CFI, module);
    *cfi = *cfi == &no_cfi ? NULL : *cfi; /* &no_cfi: looked for and not found */
    return WALK_CALLER;
}

enum walk_result walk_symbols(struct sl_walk_state *s, uint32_t module, const struct sl_walk_symbols **symbols)
{
    record_use(&s->modules[module].uses_symbols); /* the caller of the walks will ask which tables they needed */
    *symbols = atomic_load_explicit(&s->modules[module].symbols, memory_order_acquire);
    if (!*symbols) /* not looked for yet */
        return wait_for(s, SL_WALK_NEED_SYMBOLS, module);
    *symbols = *symbols == &no_symbols ? NULL : *symbols; /* &no_symbols: looked for and not found */
    return WALK_CALLER;
}

/* Returns WALK_CALLER if the module has no symbols, or if they cover `address`, which is relative to the module; else WALK_NOTHING, or
 * WALK_WAIT if the symbols must be loaded first. */
static enum walk_result covered_by_symbols(struct sl_walk_state *s, uint32_t module, uint64_t address)
{
    const struct sl_walk_symbols *symbols;
    if (walk_symbols(s, module, &symbols) == WALK_WAIT)
        return WALK_WAIT;
    return !symbols || symbols->covers(symbols, address) ? WALK_CALLER : WALK_NOTHING;
}

/* An address in a module is rejected only if the module has both call frame information and symbols, and neither covers it. */
enum walk_result walk_is_plausible_code(struct sl_walk_state *s, uint64_t address)
{
    const struct sl_cfi *cfi;
    struct sl_cfi_row row;
    /* an address in the call instruction: at the return address another function may begin */
    uint64_t within = address - (address > 0);
    if (!walk_spend(s, WALK_COST_WORD))
        return WALK_NOTHING;
    uint32_t module = within ? walk_module_at(s, within) : SL_WALK_NO_MODULE;
    if (module == SL_WALK_NO_MODULE)
        return WALK_NOTHING;
    if (walk_cfi(s, module, &cfi) == WALK_WAIT)
        return WALK_WAIT;
    within -= s->modules[module].base;
    if (!cfi || !cfi->row_count || sl_cfi_find(cfi, within + s->modules[module].cfi_offset, &row))
        return WALK_CALLER;
    return covered_by_symbols(s, module, within);
}

unsigned walk_scan_words(const struct walk_frame *callee)
{
    return callee->trust == SL_TRUST_CONTEXT || callee->trust == SL_TRUST_CFI || callee->is_return ? 160 : 40;
}

/* ---- scanning the stack ---- */

enum walk_result walk_by_scan(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    /* `last`: the highest address that a word of the stack can have */
    uint64_t at = callee->registers.value[cpu->sp], last = walk_truncate(cpu, UINT64_MAX) - cpu->word, value;
    if (!walk_known(&callee->registers, cpu->sp))
        return WALK_NOTHING;
    for (unsigned i = 0; i < walk_scan_words(callee); i++, at += cpu->word) {
        if (at > last || !walk_read_stack(s, at, cpu->word, &value))
            return WALK_NOTHING;
        /* cpu->is_code: a cheap test whether the word can be an address of code at all; NULL if any can */
        enum walk_result result =
            !cpu->is_code || cpu->is_code(value) ? walk_is_plausible_code(s, value) : WALK_NOTHING;
        if (result == WALK_NOTHING)
            continue;
        sl_registers_set(&caller->registers, cpu->pc, value);
        sl_registers_set(&caller->registers, cpu->sp, at + cpu->word);
        /* the saved frame pointer is in the word below the return address; with i == 0 that word is not part of the stack */
        if (i > 0 && cpu->saved_pointer && result == WALK_CALLER)
            cpu->saved_pointer(s, at, callee, caller);
        return result;
    }
    return WALK_NOTHING;
}

/* True if the caller's stack pointer is above the callee's, as it must be. The same stack pointer is possible if the callee pushed nothing:
 * if it is the innermost frame, or if call frame information says so. Then the pc must differ, or the walk would not end. */
bool walk_caller_is_possible(const struct sl_walk_state *s, const struct walk_frame *callee,
                             const struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    uint64_t of_callee = callee->registers.value[cpu->sp], of_caller = caller->registers.value[cpu->sp];
    if (of_caller != of_callee)
        return of_caller > of_callee;
    return caller->registers.value[cpu->pc] != callee->resume &&
           (callee->trust == SL_TRUST_CONTEXT || caller->trust == SL_TRUST_CFI);
}

bool walk_leaf_goes_on(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller)
{
    unsigned sp = s->cpu->sp;
    uint64_t of_callee = callee->registers.value[sp], of_caller = caller->registers.value[sp];
    return of_caller > of_callee || (of_caller == of_callee && callee->trust == SL_TRUST_CONTEXT);
}

/* ---- the loop ---- */

enum walk_method { METHOD_CFI, METHOD_RETURN, METHOD_FRAME_POINTER, METHOD_SCAN, METHODS };

/* Finds the caller of the current frame by one method. A walk that is compatible with Symbolicator (`compat`) has no METHOD_RETURN. */
static enum walk_result find_by(struct sl_walk_state *s, enum walk_method method, struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    /* a simulated return has no trust value of its own */
    static const enum sl_trust trusts[METHODS] = {[METHOD_CFI] = SL_TRUST_CFI,
                                                  [METHOD_RETURN] = SL_TRUST_FP,
                                                  [METHOD_FRAME_POINTER] = SL_TRUST_FP,
                                                  [METHOD_SCAN] = SL_TRUST_SCAN};
    *caller = (struct walk_frame){.trust = trusts[method], .is_return = method == METHOD_RETURN};
    switch (method) {
    case METHOD_CFI: return walk_by_cfi(s, &s->frame, caller);
    case METHOD_RETURN: return s->target.compat ? WALK_NOTHING : walk_by_return(s, &s->frame, caller);
    case METHOD_FRAME_POINTER:
        return cpu->by_frame_pointer ? cpu->by_frame_pointer(s, &s->frame, caller) : WALK_NOTHING;
    case METHOD_SCAN:
    case METHODS: break; /* the number of methods, which is never passed */
    }
    return cpu->by_scan(s, &s->frame, caller);
}

/* True if the caller is impossible: its pc or sp is unknown, its pc is in the first page, or its sp does not lie further out than that of
 * the current frame. */
static bool is_impossible(const struct sl_walk_state *s, const struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    return !walk_known(&caller->registers, cpu->pc) || !walk_known(&caller->registers, cpu->sp) ||
           caller->registers.value[cpu->pc] < FIRST_CODE || !cpu->goes_on(s, &s->frame, caller);
}

/* True if the caller that was found means that the current frame is the outermost one of the thread: its pc is 0, and its frame pointer is
 * 0 or unknown. For the innermost frame such a result may also mean that the method failed, so it does not count. */
static bool is_outermost(const struct sl_walk_state *s, const struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    return s->frame.trust != SL_TRUST_CONTEXT && walk_known(&caller->registers, cpu->pc) &&
           caller->registers.value[cpu->pc] == 0 &&
           (!walk_known(&caller->registers, cpu->fp) || caller->registers.value[cpu->fp] == 0);
}

/* Finds the caller of the current frame by the first method that gives one. A method that gives an impossible caller was misled, by wrong
 * call frame information or a register that is not a frame pointer, so the next one is tried. WALK_END if call frame information says that
 * there is no caller, or if the caller found shows that the stack ends (is_outermost). */
static enum walk_result find_caller(struct sl_walk_state *s, struct walk_frame *caller)
{
    static const enum walk_method usual[METHODS] = {METHOD_CFI, METHOD_RETURN, METHOD_FRAME_POINTER, METHOD_SCAN};
    static const enum walk_method pointer_first[METHODS] = {METHOD_RETURN, METHOD_FRAME_POINTER, METHOD_CFI,
                                                            METHOD_SCAN};
    /* code of 64-bit Windows rarely has frame pointers: rbp then belongs to an outer frame */
    static const enum walk_method scan_first[METHODS] = {METHOD_CFI, METHOD_RETURN, METHOD_SCAN, METHOD_FRAME_POINTER};
    bool scans_first = s->target.is_windows && s->cpu->family == SL_CPU_X86_64 && !s->target.compat;
    const enum walk_method *order = s->target.frame_pointer_first ? pointer_first : scans_first ? scan_first : usual;
    for (unsigned i = 0; i < METHODS; i++) {
        enum walk_result result = find_by(s, order[i], caller);
        /* a walk compatible with Symbolicator ends at an impossible caller; others try the next method, unless the stack ends */
        if (result == WALK_CALLER && is_impossible(s, caller))
            result = s->target.compat || is_outermost(s, caller) ? WALK_END : WALK_NOTHING;
        if (result != WALK_NOTHING)
            return result;
    }
    return WALK_NOTHING;
}

/* Appends a frame to the result and makes it the current one, whose caller is searched next. False when out of memory, which ends the
 * walk. */
static bool append_frame(struct sl_walk_state *s, const struct walk_frame *frame)
{
    struct sl_walk *w = &s->walk;
    s->frame = *frame;
    s->frame.module = walk_module_at(s, frame->instruction);
    size_t capacity = s->capacity; /* both arrays have the same capacity; sl_grow_in_arena() changes it */
    if (!sl_grow_in_arena(s->arena, &w->frames, &s->capacity, w->frame_count + 1, sizeof *w->frames) ||
        (s->target.keeps_registers &&
         !sl_grow_in_arena(s->arena, &w->registers, &capacity, w->frame_count + 1, sizeof *w->registers))) {
        w->out_of_memory = s->over = true;
        return false;
    }
    if (s->target.keeps_registers)
        w->registers[w->frame_count] = frame->registers;
    w->frames[w->frame_count++] = (struct sl_walk_frame){
        .resume = frame->resume, .instruction = frame->instruction, .module = s->frame.module, .trust = frame->trust};
    return true;
}

/* Finds and appends the next frame. False when the walk must wait for information on a module, or is over (s->over). When the work budget
 * is used up the walk is over, too, and the frame just found is dropped, as it may be wrong. */
static bool walk_step(struct sl_walk_state *s)
{
    struct walk_frame caller;
    const struct sl_cfi *cfi;
    /* load the CFI of every frame's module, even if another method than CFI will find the caller */
    if (s->frame.module != SL_WALK_NO_MODULE && walk_cfi(s, s->frame.module, &cfi) == WALK_WAIT)
        return false;
    size_t most = s->target.compat ? SL_WALK_COMPAT_FRAMES : SL_WALK_MAX_FRAMES;
    /* s->earlier: frames found before the walk was saved and resumed */
    if (!s->cpu || !s->stack.bytes.size || s->earlier + s->walk.frame_count >= most) {
        s->over = true;
        return false;
    }
    enum walk_result result = find_caller(s, &caller);
    if (!walk_spend(s, WALK_COST_FRAME)) {
        s->walk.out_of_work = s->over = true; /* the result may be incomplete */
        return false;
    }
    if (result == WALK_WAIT)
        return false;
    if (result != WALK_CALLER) {
        s->over = true;
        return false;
    }
    caller.resume = caller.registers.value[s->cpu->pc];
    if (!caller.instruction) /* it is set only for a frame that a signal interrupted */
        caller.instruction = caller.resume - s->cpu->call;
    /* the parameters of the current frame lie on the stack of the new one, whose STACK WIN record does not count them */
    s->inner_params = walk_params(s, &s->frame);
    return append_frame(s, &caller);
}

/* Finds frames until the walk is over, or until walk_step() has set s->need and s->needs: the information on a module that must be loaded
 * before it is called again. */
enum sl_walk_need sl_walk_run(struct sl_walk *walk, size_t *module)
{
    struct sl_walk_state *s = walk->state;
    s->need = SL_WALK_DONE;
    while (!s->over && walk_step(s))
        ;
    *module = s->needs;
    return s->over ? SL_WALK_DONE : s->need;
}

/* Returns the mask of the address bits in pointers of ARM64; the bits above them may have a signature. If the target does not give the
 * mask, it has as many bits as the highest module address needs, but at least 47. */
static uint64_t make_address_mask(const struct sl_walk_state *s)
{
    uint64_t highest = (UINT64_C(1) << 47) - 1;
    if (s->target.address_mask)
        return s->target.address_mask;
    if (s->module_map->count) { /* sorted by address: the last module ends highest */
        uint64_t end = s->module_map->pieces[s->module_map->count - 1].last + 1;
        highest = end > highest ? end : highest;
    }
    for (unsigned bits = 47; bits < 64; bits++)
        if (highest <= UINT64_C(1) << bits)
            return (UINT64_C(1) << bits) - 1;
    return UINT64_MAX;
}

struct sl_walk_state *walk_make(struct sl_arena *arena, const struct sl_walk_target *target,
                                struct sl_walk_module *modules, const struct sl_range_map *map,
                                const struct sl_walk_stack *stack)
{
    struct sl_walk_state *s = SL_ARENA_NEW(arena, struct sl_walk_state);
    struct sl_account *work = SL_ARENA_NEW(arena, struct sl_account);
    if (!s || !work)
        return NULL;
    work->budget = target->work;
    s->work = target->work ? work : NULL;
    s->walk.state = s;
    s->arena = arena;
    s->cpu = find_cpu(target->family);
    s->target = *target;
    s->stack = *stack;
    s->modules = modules;
    s->module_map = map;
    s->address_mask = make_address_mask(s);
    return s;
}

/* Makes a walk whose first frame is made from the thread's registers (the context). */
struct sl_walk *sl_walk_new(struct sl_arena *arena, const struct sl_walk_target *target, struct sl_walk_module *modules,
                            const struct sl_range_map *map, const struct sl_registers *registers,
                            const struct sl_walk_stack *stack)
{
    struct sl_walk_state *s = walk_make(arena, target, modules, map, stack);
    struct sl_walk_numbers numbers;
    if (!s)
        return NULL;
    sl_walk_numbers(target->family, &numbers);
    struct walk_frame context = {.registers = *registers, .trust = SL_TRUST_CONTEXT};
    context.resume = context.instruction = registers->value[numbers.pc];
    return append_frame(s, &context) ? &s->walk : NULL;
}
