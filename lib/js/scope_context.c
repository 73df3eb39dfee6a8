/* Parser of scripts: its stack of enclosing constructs ("levels"), the parts of function names, and the list of scopes. */
#include "js/scope_impl.h"

#include <stdlib.h>

/* Returns `grown`, the result of growing an array. If it is false, records in p->code why, which ends the parsing. */
static bool check_grown(struct js_parser *p, bool grown)
{
    if (!grown && p->code == SL_OK)
        p->code = sl_budget_fail(p->account.budget, p->error);
    return grown;
}

/* Makes room for one more enclosing construct. False if they are nested too deeply, or when out of memory; p->code then says which. */
bool js_grow_levels(struct js_parser *p)
{
    if (p->depth >= DEEPEST) {
        js_fail(p, "the script is nested more than 16384 levels deep");
        return false;
    }
    return check_grown(p,
                       sl_account_grow(&p->account, &p->levels, &p->level_capacity, p->depth + 1, sizeof *p->levels));
}

void js_pop_soft(struct js_parser *p)
{
    struct js_level *top = js_top(p);
    if (top->kind == L_ASSIGN) {
        p->base = top->scope; /* where the chain of names began in p->steps before: drops the target `a.b` */
    } else if (top->kind == L_ARROW) {
        js_close_scope(p, top->scope, p->token_end); /* without braces the function ends with its last token */
        p->async = top->flags & WAS_ASYNC;
        p->generator = top->flags & WAS_GENERATOR;
    }
    p->depth--;
}

/* Appends a step to the chain of the current operand (`a.b[c]`). A chain of more than LONGEST_CHAIN steps becomes an operand that names
 * nothing. Lack of memory is in p->code. */
void js_step(struct js_parser *p, enum sl_js_part_kind kind, uint32_t at, uint32_t size, uint32_t node)
{
    if (p->step_count - p->base >= LONGEST_CHAIN) {
        p->operand = O_OTHER;
        return;
    }
    if (check_grown(
            p, sl_account_grow(&p->account, &p->steps, &p->step_capacity, (size_t)p->step_count + 1, sizeof *p->steps)))
        p->steps[p->step_count++] = (struct js_step){at, size, kind, node};
}

/* Adds a part of a name and returns its index, which is below the special values SL_JS_NAME_IS_COMPLETE and SL_JS_NONE; UNKNOWN, with
 * p->code set, when out of memory. A text of more than SL_MAX_NAME bytes is left out of names, as its kind becomes SL_JS_COVER; so the size
 * of others fits 24 bits. */
uint32_t js_part(struct js_parser *p, enum sl_js_part_kind kind, uint32_t at, uint32_t size, uint32_t outer)
{
    struct sl_js_scopes *s = p->scopes;
    if (!check_grown(p, s->part_count < SL_JS_NAME_IS_COMPLETE &&
                            sl_account_grow(&s->account, &s->parts, &s->part_capacity, (size_t)s->part_count + 1,
                                            sizeof *s->parts)))
        return UNKNOWN;
    if (size > SL_MAX_NAME)
        kind = SL_JS_COVER;
    s->parts[s->part_count] = (struct sl_js_part){.at = at, .outer = outer, .size = size & 0xFFFFFF, .kind = kind};
    return s->part_count++;
}

/* True if this construct may turn out to be a pattern or parameters, so that an assignment directly in it is a default value. The only call
 * that may is `async(...)`, whose `at` is not UNKNOWN. */
static bool may_begin_pattern(const struct js_level *level)
{
    switch (level->kind) {
    case L_PAREN:
    case L_PARAMETERS:
    case L_BINDING:
    case L_ARRAY:
    case L_OBJECT:
    case L_PROPERTY: return true;
    case L_CALL: return level->at != UNKNOWN;
    default: return false;
    }
}

/* Makes the name parts of an assignment's target, such as `a.b`: level->size steps from p->steps[level->at] on. Returns the last part. If
 * the assignment may turn out to be a default value in a pattern, returns a part SL_JS_DEFAULT instead, and resolve_parts() chooses later:
 * `at` of that part is the last part of the target, `outer` the part of the construct around the assignment. UNKNOWN when out of memory. */
static uint32_t make_assigned_parts(struct js_parser *p, const struct js_level *level, uint32_t outer)
{
    uint32_t last = SL_JS_NAME_IS_COMPLETE; /* to the left of the first part there is none */
    for (uint32_t i = 0; i < level->size && last != UNKNOWN; i++) {
        const struct js_step *step = &p->steps[level->at + i];
        last = js_part(p, (enum sl_js_part_kind)step->kind, step->at, step->size, last);
    }
    /* INNER: the `c = 1` of `b = c = 1`, which is no default value wherever it stands; level - 1 encloses the assignment */
    if (!may_begin_pattern(level - 1) || level->flags & INNER || last == UNKNOWN)
        return last;
    return js_part(p, SL_JS_DEFAULT, last, 0, outer);
}

/* Makes a name part for a bracket: an object literal (SL_JS_OBJECT) or a placeholder (SL_JS_COVER). Sets its `pattern` if the bracket is a
 * pattern for certain; `direct` if it is an array or object that is a pattern exactly if the construct around it is. */
static uint32_t make_bracket_part(struct js_parser *p, const struct js_level *level, enum sl_js_part_kind kind,
                                  uint32_t outer)
{
    uint32_t part = js_part(p, kind, 0, 0, outer);
    if (part != UNKNOWN) {
        p->scopes->parts[part].pattern = level->kind == L_PARAMETERS || level->kind == L_BINDING;
        p->scopes->parts[part].direct =
            (level->kind == L_ARRAY || level->kind == L_OBJECT) && may_begin_pattern(level - 1);
    }
    return part;
}

/* Returns the name part to which functions directly in the construct `level` append their names. `outer` is the part to which functions of
 * the construct around it append theirs. Returns SL_JS_NONE inside a function, where names begin anew; UNKNOWN when out of memory. */
static uint32_t make_part_of_level(struct js_parser *p, const struct js_level *level, uint32_t outer)
{
    uint32_t part;
    switch (level->kind) {
    case L_ASSIGN: return make_assigned_parts(p, level, outer);
    case L_PROPERTY:
        part = js_part(p, SL_JS_PROPERTY, level->at, level->size, outer);
        if (part != UNKNOWN) /* it belongs to a pattern if the object around it is one */
            p->scopes->parts[part].direct = 1;
        return part;
    case L_FIELD:
        /* `what`: the kind of its key */
        part = js_part(p, (enum sl_js_part_kind)level->what, level->at, level->size, outer);
        if (part != UNKNOWN)
            p->scopes->parts[part].field = 1;
        return part;
    case L_VARIABLE: /* a variable's name is not appended to anything */
        return js_part(p, SL_JS_IDENTIFIER, level->at, level->size, SL_JS_NAME_IS_COMPLETE);
    case L_OBJECT: return make_bracket_part(p, level, SL_JS_OBJECT, outer);
    case L_CALL: /* only `async(...)`, whose `at` is known, may turn out to be parameters */
        return level->at == UNKNOWN ? outer : make_bracket_part(p, level, SL_JS_COVER, outer);
    case L_PAREN:
    case L_ARRAY:
    case L_BINDING:
    case L_PARAMETERS:
    case L_SUBSCRIPT:
    case L_KEY: return make_bracket_part(p, level, SL_JS_COVER, outer);
    case L_CLASS:
        if (!level->size) /* a class without a name */
            return outer;
        /* a class expression continues the name around it, a declaration does not */
        return js_part(p, SL_JS_IDENTIFIER, level->at, level->size,
                       level->flags & EXPRESSION ? outer : SL_JS_NAME_IS_COMPLETE);
    case L_ARROW: return SL_JS_NONE;
    case L_FUNCTION: return level->flags & CLEAR ? outer : SL_JS_NONE; /* CLEAR: accessor of an object literal */
    default: return outer;
    }
}

/* Returns the name part that names inside the innermost construct continue. Most constructs contain no function, so these parts are made
 * only now, for all constructs inside the innermost one that has its part already. */
uint32_t js_context(struct js_parser *p)
{
    uint32_t known = p->depth - 1;
    while (p->levels[known].node == UNKNOWN) /* levels[0], the script itself, has a part (SL_JS_NONE) */
        known--;
    uint32_t node = p->levels[known].node;
    for (uint32_t i = known + 1; i < p->depth && node != UNKNOWN; i++)
        node = p->levels[i].node = make_part_of_level(p, &p->levels[i], node);
    return node;
}

uint32_t js_open_scope(struct js_parser *p, uint32_t start, enum sl_js_scope_kind kind, uint32_t name)
{
    struct sl_js_scopes *s = p->scopes;
    const struct sl_js_scope scope = {.start = start, .outer = SL_JS_NONE, .name = name & SL_JS_NONE, .kind = kind};
    if (name == UNKNOWN) /* out of memory; any other name fits the 29 bits kept of it above */
        return SL_JS_NONE;
    /* an arrow function, known only after functions in its parameters: merge_late() moves its scope in front of them; until then its number
     * is its index in p->late, with the flag LATE */
    if (s->count && s->items[s->count - 1].start > start) {
        if (!check_grown(p, sl_account_grow(&p->account, &p->late, &p->late_capacity, (size_t)p->late_count + 1,
                                            sizeof *p->late)))
            return SL_JS_NONE;
        p->late[p->late_count] = scope;
        return p->late_count++ | LATE;
    }
    /* numbers of scopes stay below the special values, which begin at SL_JS_NAME_IS_COMPLETE */
    if (!check_grown(p, s->count < SL_JS_NAME_IS_COMPLETE && sl_account_grow(&s->account, &s->items, &s->capacity,
                                                                             (size_t)s->count + 1, sizeof *s->items)))
        return SL_JS_NONE;
    s->items[s->count] = scope;
    return s->count++;
}

void js_close_scope(struct js_parser *p, uint32_t scope, const uint8_t *end)
{
    if (scope == SL_JS_NONE) /* a constructor has no scope */
        return;
    struct sl_js_scope *opened = scope & LATE ? &p->late[scope & ~LATE] : &p->scopes->items[scope];
    opened->end = (uint32_t)(end - p->begin);
}

/* Orders scopes by their start. */
static int by_start(const void *a, const void *b)
{
    uint32_t x = ((const struct sl_js_scope *)a)->start, y = ((const struct sl_js_scope *)b)->start;
    return x < y ? -1 : x > y;
}

/* Merges p->late (arrow functions, opened after functions in their parameters) into the list, which is sorted by start. Merges from the
 * end, in place; of two scopes that start at one offset the late one comes second. False when out of memory. */
static bool merge_late(struct js_parser *p)
{
    struct sl_js_scopes *s = p->scopes;
    size_t left = s->count, late = p->late_count, to = left + late;
    if (!late)
        return true;
    if (!check_grown(p, sl_account_grow(&s->account, &s->items, &s->capacity, to, sizeof *s->items)))
        return false;
    qsort(p->late, late, sizeof *p->late, by_start);
    s->count = (uint32_t)to;
    while (late)
        s->items[--to] =
            left && s->items[left - 1].start > p->late[late - 1].start ? s->items[--left] : p->late[--late];
    return true;
}

/* Drops scopes without an end, which an error in the script left open. */
static void drop_open(struct sl_js_scopes *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->items[i].end)
            s->items[kept++] = s->items[i];
    s->count = kept;
}

/* Links each scope to the one around it: the last scope before it that has not ended, or one around that. */
static void find_outer(struct sl_js_scopes *s)
{
    for (uint32_t i = 1; i < s->count; i++) {
        uint32_t outer = i - 1;
        while (outer != SL_JS_NONE && s->items[outer].end <= s->items[i].start)
            outer = s->items[outer].outer;
        s->items[i].outer = outer;
    }
}

/* True if this part is not printed in names: a placeholder, or a key or object that turned out to belong to a pattern. */
static bool is_left_out(const struct sl_js_part *part)
{
    return part->kind == SL_JS_COVER || part->kind == SL_JS_DEFAULT ||
           (part->pattern && (part->kind == SL_JS_OBJECT || part->kind == SL_JS_PROPERTY));
}

/* Returns the index of the part itself, or of the one to its left if this one is not printed. */
static uint32_t skip_left_out(const struct sl_js_scopes *s, uint32_t part)
{
    return part < SL_JS_NAME_IS_COMPLETE && is_left_out(&s->parts[part]) ? s->parts[part].outer : part;
}

/* Resolves the name parts whose meaning was unknown while parsing: marks patterns and makes links skip the parts that names do not show.
 * The part of a bracket has a smaller index than those of its contents, so it is marked before they are looked at. */
static void resolve_parts(struct sl_js_scopes *s)
{
    for (uint32_t i = 0; i < s->part_count; i++) {
        struct sl_js_part *part = &s->parts[i];
        const struct sl_js_part *outer = part->outer < SL_JS_NAME_IS_COMPLETE ? &s->parts[part->outer] : NULL;
        if (part->direct && outer && outer->pattern)
            part->pattern = 1;
        if (part->kind == SL_JS_DEFAULT && !(outer && outer->pattern))
            part->outer = part->at; /* an assignment after all: names continue its target, whose last part is in `at` */
        if (part->outer < i)
            part->outer = skip_left_out(s, part->outer);
    }
    /* a placeholder in the subscript of `a[b] = c` links to a part with a greater index, which the first pass had not resolved yet */
    for (uint32_t i = 0; i < s->part_count; i++)
        s->parts[i].outer = skip_left_out(s, s->parts[i].outer);
    for (uint32_t i = 0; i < s->count; i++)
        s->items[i].name = skip_left_out(s, s->items[i].name) & SL_JS_NONE; /* the mask: all values fit 29 bits */
    for (uint32_t i = 0; i < s->part_count; i++)
        if (s->parts[i].kind == SL_JS_PROPERTY) /* a kind for parsing only; those left are shown as identifiers */
            s->parts[i].kind = SL_JS_IDENTIFIER;
}

bool js_finish_scopes(struct js_parser *p)
{
    if (!merge_late(p))
        return false;
    drop_open(p->scopes);
    find_outer(p->scopes);
    resolve_parts(p->scopes);
    return true;
}
