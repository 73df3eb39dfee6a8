/* Making a table of a mapping: one pass over its text. A member is encoded when what follows it is known, and chained to the
 * last one of its method; in the end each method's chain is written out. */
#include "jvm/format.h"

#include <stdlib.h>

#include "base/map.h"
#include "jvm/mapping.h"
#include "jvm/numbers.h"
#include "table/writer.h"

uint32_t jvm_hash(struct sl_str text)
{
    return (uint32_t)sl_hash(text.data, text.size);
}

struct rule {
    uint32_t thrown, remove;
};

/* The member that was read last, until it is known what follows it. */
struct pending {
    bool there;
    struct sl_jvm_member member;
    uint32_t method, receiver, name, arguments;
    struct sl_jvm_position *positions; /* in the arena */
    size_t position_count;
    struct rule *rules;
    size_t rule_count, rule_capacity;
    uint32_t descriptor;
};

enum attached { TO_NOTHING, TO_CLASS, TO_METHOD };

struct receiver {
    uint32_t file, flags;
};

struct chain { /* of a method: offsets of its first and last member; JVM_NO_ROW = none */
    uint32_t first, last;
};

/* An encoded member begins with this, and in the end it is as the section has it. */
struct link {
    uint32_t next, receiver, size;
};

/* The same text again, as names of classes and methods come in runs. */
struct memo {
    struct sl_str text;
    struct jvm_text found;
    bool there;
};

struct build {
    struct jvm_memory memory;
    struct sl_arena arena; /* of the comments of one member */
    struct jvm_strings strings;
    struct jvm_keys receiver_keys, class_keys, method_keys, flag_keys, once_keys;
    struct receiver *receivers;
    uint32_t *class_receivers;
    struct chain *chains;
    uint16_t *flags; /* by row of flag_keys */
    size_t receiver_capacity, class_capacity, chain_capacity, flag_capacity;
    struct sl_buf members; /* links and members, in the order of the mapping */
    struct memo obfuscated, foreign;
    struct pending pending;
    enum attached attached;
    bool in_class;
    uint32_t class, receiver; /* of the class that is read */
};

static bool build_fail(struct build *b)
{
    b->memory.failed = true;
    return false;
}

static uint32_t no_row(struct build *b)
{
    b->memory.failed = true;
    return JVM_NO_ROW;
}

static struct jvm_text again(struct build *b, struct memo *memo, struct sl_str text)
{
    if (!memo->there || !sl_str_equal(memo->text, text))
        *memo = (struct memo){text, jvm_string(&b->strings, text), true};
    return memo->found;
}

/* The row of a class of the source; JVM_NO_ROW when it failed. */
static uint32_t receiver_of(struct build *b, struct jvm_text name)
{
    bool made;
    uint32_t row = jvm_key_row(&b->receiver_keys, (struct jvm_key){name.id, 0, 0}, name.hash, &made);
    if (row == JVM_NO_ROW || !made)
        return row;
    if (!sl_grow_held(&b->memory.held, &b->receivers, &b->receiver_capacity, row + 1, sizeof *b->receivers))
        return no_row(b);
    b->receivers[row] = (struct receiver){0, 0};
    return row;
}

/* ---- members ---- */

static void encode_extras(const struct pending *p, struct sl_buf *out)
{
    sl_buf_uleb(out, p->position_count);
    for (size_t i = 0; i < p->position_count; i++) {
        sl_buf_uleb(out, p->positions[i].position);
        sl_buf_uleb(out, p->positions[i].line);
    }
    sl_buf_uleb(out, p->rule_count);
    for (size_t i = 0; i < p->rule_count; i++) {
        sl_buf_uleb(out, p->rules[i].thrown);
        sl_buf_uleb(out, p->rules[i].remove);
    }
    sl_buf_uleb(out, p->descriptor);
}

static uint8_t *put_uleb(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static void encode_member(const struct pending *p, uint16_t flags, struct sl_buf *out)
{
    enum { LONGEST = 2 + 7 * 5 };
    const struct sl_jvm_member *m = &p->member;
    if (!sl_buf_reserve(out, LONGEST))
        return;
    uint8_t *at = out->data + out->size;
    *at++ = (uint8_t)flags;
    *at++ = (uint8_t)(flags >> 8);
    at = put_uleb(at, p->name);
    at = put_uleb(at, p->arguments);
    if (flags & JVM_RANGE) {
        at = put_uleb(at, m->start);
        at = put_uleb(at, m->end - m->start);
    }
    if (flags & JVM_LINE)
        at = put_uleb(at, m->line);
    if (flags & JVM_LAST_LINE)
        at = put_uleb(at, m->last_line - m->line);
    if (flags & JVM_FOREIGN)
        at = put_uleb(at, p->receiver);
    out->size = (size_t)(at - out->data);
    if (flags & JVM_EXTRAS)
        encode_extras(p, out);
}

static void append_member(struct build *b, uint16_t flags)
{
    struct sl_buf *out = &b->members;
    struct chain *chain = &b->chains[b->pending.method];
    struct link link = {JVM_NO_ROW, b->pending.receiver, 0};
    uint32_t at = (uint32_t)out->size;
    sl_buf_add(out, &link, sizeof link);
    encode_member(&b->pending, flags, out);
    if (out->failed || out->size >= UINT32_MAX) {
        build_fail(b);
        return;
    }
    link.size = (uint32_t)(out->size - at - sizeof link);
    memcpy(out->data + at, &link, sizeof link);
    if (chain->last != JVM_NO_ROW)
        memcpy(out->data + chain->last + offsetof(struct link, next), &at, sizeof at);
    else
        chain->first = at;
    chain->last = at;
}

/* A member with the lines of the one behind it was inlined into that. */
static bool inlined_into(const struct sl_jvm_member *m, const struct sl_jvm_member *next)
{
    return next && (next->has_range || next->has_line) && (m->has_range || m->has_line) &&
           m->has_range == next->has_range && m->start == next->start && m->end == next->end;
}

/* Whether the member is the first of its names and arguments in this class. */
static bool is_first(struct build *b)
{
    bool made = false;
    struct jvm_key key = {b->pending.method, b->pending.arguments, b->pending.name};
    jvm_key_row(&b->once_keys, key, jvm_key_hash(key), &made);
    return made;
}

static void flush(struct build *b, const struct sl_jvm_member *next)
{
    struct pending *p = &b->pending;
    const struct sl_jvm_member *m = &p->member;
    if (!p->there)
        return;
    uint16_t flags = (m->has_range ? JVM_RANGE : 0) | (m->has_line ? JVM_LINE : 0) |
                     (m->has_last_line ? JVM_LAST_LINE : 0) | (m->receiver.data ? JVM_FOREIGN : 0);
    if (p->position_count || p->rule_count || p->descriptor)
        flags |= JVM_EXTRAS;
    if (!inlined_into(m, next) && is_first(b))
        flags |= JVM_BY_PARAMETERS;
    append_member(b, flags);
    sl_arena_reset(&b->arena);
    p->there = false;
}

/* ---- records ---- */

static void on_class(struct build *b, const struct sl_jvm_record *r)
{
    bool made;
    struct jvm_text name = jvm_string(&b->strings, r->obfuscated);
    b->receiver = receiver_of(b, jvm_string(&b->strings, r->original));
    b->class = jvm_key_row(&b->class_keys, (struct jvm_key){name.id, 0, 0}, name.hash, &made);
    if (b->receiver == JVM_NO_ROW || b->class == JVM_NO_ROW ||
        !sl_grow_held(&b->memory.held, &b->class_receivers, &b->class_capacity, b->class + 1,
                      sizeof *b->class_receivers)) {
        build_fail(b);
        return;
    }
    b->class_receivers[b->class] = b->receiver;
    b->receivers[b->receiver] = (struct receiver){0, 0}; /* what its last listing says counts */
    jvm_keys_clear(&b->once_keys);
    b->in_class = true;
}

static uint32_t method_of(struct build *b, struct sl_str obfuscated)
{
    bool made;
    struct jvm_text name = again(b, &b->obfuscated, obfuscated);
    uint32_t row =
        jvm_key_row(&b->method_keys, (struct jvm_key){b->class, name.id, 0}, jvm_hash_in(b->class, name.hash), &made);
    if (row == JVM_NO_ROW || !made)
        return row;
    if (!sl_grow_held(&b->memory.held, &b->chains, &b->chain_capacity, row + 1, sizeof *b->chains))
        return no_row(b);
    b->chains[row] = (struct chain){JVM_NO_ROW, JVM_NO_ROW};
    return row;
}

static void on_method(struct build *b, const struct sl_jvm_member *m)
{
    struct pending *p = &b->pending;
    if (!b->in_class)
        return;
    p->member = *m;
    p->method = method_of(b, m->obfuscated);
    p->receiver = m->receiver.data ? receiver_of(b, again(b, &b->foreign, m->receiver)) : b->receiver;
    p->name = jvm_string(&b->strings, m->name).id;
    p->arguments = jvm_string(&b->strings, m->arguments).id;
    p->position_count = p->rule_count = 0;
    p->descriptor = 0;
    p->there = !b->memory.failed;
}

/* Marks every member of this class, name and arguments. */
static void mark(struct build *b, uint16_t flag)
{
    bool made;
    struct jvm_key key = {b->pending.receiver, b->pending.name, b->pending.arguments};
    uint32_t row = jvm_key_row(&b->flag_keys, key, jvm_key_hash(key), &made);
    if (row == JVM_NO_ROW || !sl_grow_held(&b->memory.held, &b->flags, &b->flag_capacity, row + 1, sizeof *b->flags)) {
        build_fail(b);
        return;
    }
    b->flags[row] = (uint16_t)((made ? 0 : b->flags[row]) | flag);
}

static void build_add_rule(struct build *b, const struct sl_jvm_comment *comment)
{
    struct pending *p = &b->pending;
    if (!comment->remove)
        return;
    if (!sl_grow_held(&b->memory.held, &p->rules, &p->rule_capacity, p->rule_count + 1, sizeof *p->rules)) {
        build_fail(b);
        return;
    }
    p->rules[p->rule_count++] = (struct rule){jvm_string(&b->strings, comment->text).id, comment->remove};
}

static void on_method_comment(struct build *b, const struct sl_jvm_comment *comment)
{
    struct pending *p = &b->pending;
    switch (comment->kind) {
    case SL_JVM_COMMENT_SYNTHESIZED: mark(b, JVM_SYNTHESIZED); break;
    case SL_JVM_COMMENT_OUTLINE: mark(b, JVM_IS_OUTLINE); break;
    case SL_JVM_COMMENT_REWRITE: build_add_rule(b, comment); break;
    case SL_JVM_COMMENT_SIGNATURE: p->descriptor = jvm_string(&b->strings, comment->text).id; break;
    case SL_JVM_COMMENT_CALLSITE:
        if (comment->position_count) {
            p->positions = comment->positions;
            p->position_count = comment->position_count;
        }
        break;
    default: break;
    }
}

static void on_comment(struct build *b, struct sl_str json)
{
    struct sl_jvm_comment comment;
    bool busy;
    if (b->attached == TO_NOTHING)
        return;
    bool good = sl_jvm_comment_read(json, &b->arena, &comment, &busy);
    if (busy)
        build_fail(b);
    if (!good)
        return;
    if (b->attached == TO_METHOD)
        on_method_comment(b, &comment);
    else if (comment.kind == SL_JVM_COMMENT_SOURCE_FILE)
        b->receivers[b->receiver].file = jvm_string(&b->strings, comment.text).id;
    else if (comment.kind == SL_JVM_COMMENT_SYNTHESIZED)
        b->receivers[b->receiver].flags |= JVM_SYNTHESIZED;
}

static void read_mapping(struct build *b, struct sl_str mapping)
{
    struct sl_jvm_reader reader = sl_jvm_reader(mapping);
    struct sl_jvm_record r;
    while (!b->memory.failed && sl_jvm_reader_next(&reader, &r)) {
        if (r.kind == SL_JVM_RECORD_ERROR)
            continue;
        if (r.kind == SL_JVM_RECORD_COMMENT) {
            on_comment(b, r.json);
            continue;
        }
        flush(b, r.kind == SL_JVM_RECORD_METHOD ? &r.member : NULL);
        b->attached = TO_NOTHING;
        if (r.kind == SL_JVM_RECORD_CLASS) {
            on_class(b, &r);
            b->attached = TO_CLASS;
        } else if (r.kind == SL_JVM_RECORD_METHOD && b->in_class) {
            on_method(b, &r.member);
            b->attached = TO_METHOD;
        }
    }
    if (!b->memory.failed)
        flush(b, NULL);
}

/* ---- the file ---- */

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void put_slots(const struct jvm_slots *slots, struct sl_buf *out)
{
    if (!sl_buf_reserve(out, slots->count * 4))
        return;
    for (size_t i = 0; i < slots->count; i++, out->size += 4)
        put_u32(out->data + out->size, slots->slots[i]);
}

/* What was said of the method after, or before, this member of it was read. */
static uint16_t marks(struct build *b, const struct link *link, const uint8_t *member)
{
    if (!b->flag_keys.count)
        return 0;
    struct sl_reader r = sl_reader((struct sl_bytes){member, link->size}, false);
    sl_reader_skip(&r, 2);
    struct jvm_key key = {.a = link->receiver};
    key.b = (uint32_t)sl_read_uleb(&r);
    key.c = (uint32_t)sl_read_uleb(&r);
    uint32_t row = jvm_key_find(&b->flag_keys, key, jvm_key_hash(key));
    return row == JVM_NO_ROW ? 0 : b->flags[row];
}

static void put_chain(struct build *b, uint32_t first, struct sl_buf *out)
{
    struct link link;
    for (uint32_t at = first; at != JVM_NO_ROW; at = link.next) {
        uint8_t *member = b->members.data + at + sizeof link;
        memcpy(&link, b->members.data + at, sizeof link);
        uint16_t flags = marks(b, &link, member);
        flags |= b->receivers[link.receiver].flags & JVM_SYNTHESIZED;
        member[0] |= (uint8_t)flags; /* all of these are below 256 */
        sl_buf_add(out, member, link.size);
    }
}

/* Where the members of each method begin goes into chain.last. */
static void put_members(struct build *b, struct sl_table_writer *t)
{
    sl_table_section(t, JVM_MEMBERS);
    size_t start = t->file.size;
    for (uint32_t i = 0; i < b->method_keys.count; i++) {
        b->chains[i].last = (uint32_t)(t->file.size - start);
        put_chain(b, b->chains[i].first, &t->file);
    }
    sl_buf_free(&b->members);
    sl_table_section(t, JVM_METHODS);
    for (uint32_t i = 0; i < b->method_keys.count; i++) {
        sl_buf_u32(&t->file, b->method_keys.keys[i].a);
        sl_buf_u32(&t->file, b->method_keys.keys[i].b);
        sl_buf_u32(&t->file, b->chains[i].last);
    }
}

static void put_classes(const struct build *b, struct sl_table_writer *t)
{
    sl_table_section(t, JVM_RECEIVERS);
    for (uint32_t i = 0; i < b->receiver_keys.count; i++) {
        sl_buf_u32(&t->file, b->receiver_keys.keys[i].a);
        sl_buf_u32(&t->file, b->receivers[i].file);
        sl_buf_u32(&t->file, b->receivers[i].flags);
    }
    sl_table_section(t, JVM_CLASSES);
    for (uint32_t i = 0; i < b->class_keys.count; i++) {
        sl_buf_u32(&t->file, b->class_keys.keys[i].a);
        sl_buf_u32(&t->file, b->class_receivers[i]);
    }
}

static bool put_file(struct build *b, struct sl_buf *out)
{
    struct sl_table_writer t;
    if (!sl_table_writer_init(&t, &jvm_format, NULL, b->memory.held.budget))
        return build_fail(b);
    put_members(b, &t);
    sl_table_section(&t, JVM_METHOD_SLOTS);
    put_slots(&b->method_keys.slots, &t.file);
    put_classes(b, &t);
    sl_table_section(&t, JVM_CLASS_SLOTS);
    put_slots(&b->class_keys.slots, &t.file);
    sl_table_section(&t, JVM_STRINGS);
    sl_buf_str(&t.file, sl_buf_view(&b->strings.bytes));
    return sl_table_finish(&t, out) || build_fail(b);
}

static void build_free(struct build *b)
{
    struct jvm_keys *keys[] = {&b->receiver_keys, &b->class_keys, &b->method_keys, &b->flag_keys, &b->once_keys};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        free(keys[i]->keys);
        free(keys[i]->hashes);
        free(keys[i]->slots.slots);
    }
    void *arrays[] = {b->strings.offsets, b->strings.hashes, b->strings.slots.slots, b->receivers, b->class_receivers,
                      b->chains,          b->flags,          b->pending.rules};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    sl_buf_free(&b->strings.bytes);
    sl_buf_free(&b->members);
    sl_arena_free(&b->arena);
    sl_holding_release(&b->memory.held);
}

enum sl_code sl_jvm_mapper_build(struct sl_str mapping, struct sl_budget *budget, struct sl_buf *out,
                                 struct sl_error *error)
{
    struct build b = {.memory = {.held.budget = budget, .purse.budget = budget}};
    struct jvm_keys *keys[] = {&b.receiver_keys, &b.class_keys, &b.method_keys, &b.flag_keys, &b.once_keys};
    if (!sl_jvm_is_mapping(mapping))
        return sl_fail(error, SL_MALFORMED, "The file is not a valid ProGuard file");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        keys[i]->memory = &b.memory;
    b.arena.budget = b.members.budget = budget;
    if (jvm_strings_begin(&b.strings, &b.memory))
        read_mapping(&b, mapping);
    bool good = !b.memory.failed && put_file(&b, out);
    bool too_large = b.strings.bytes.size > UINT32_MAX || b.members.size >= UINT32_MAX;
    build_free(&b);
    if (good)
        return SL_OK;
    return too_large ? sl_fail(error, SL_MALFORMED, "too large for a table of a mapping")
                     : sl_budget_fail(budget, error);
}
