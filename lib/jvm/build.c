/* Builds a table in one pass over the text of a mapping. A member is encoded when the record after it is known, and is linked
 * to the last member of its method; at the end the list of each method is written out. */
#include "jvm/format.h"

#include <stdlib.h>

#include "base/map.h"
#include "jvm/mapping.h"
#include "jvm/names.h"
#include "jvm/numbers.h"
#include "table/writer.h"

/* A rewriteFrame rule of R8: if the exception `thrown` (id of its descriptor) was thrown, the innermost `remove` frames are not shown. */
struct jvm_rule {
    uint32_t thrown, remove;
};

/* The last member, not yet encoded: comments that belong to it may follow, and whether it was inlined shows in the next member. A member
 * is one method line of the mapping; a method is all members of a class that share an obfuscated name. */
struct jvm_pending {
    bool there; /* false: no member is pending */
    struct sl_jvm_member member;
    uint32_t method, receiver, name, arguments;
    struct sl_jvm_position *positions; /* in the arena */
    size_t position_count;
    struct jvm_rule *rules;
    size_t rule_count, rule_capacity;
    uint32_t descriptor;
};

/* Which record a comment describes: the last class or method in front of it. */
enum attached { TO_NOTHING, TO_CLASS, TO_METHOD };

/* An original class from which members come. In jvm_build.receivers this lies directly before the name of the class. */
struct receiver {
    uint32_t file, flags; /* file: from find_file(); put_receivers() replaces it by the class's offset in RECEIVERS */
};

struct obfuscated_class {
    uint32_t receiver, hash;
    uint32_t first_method; /* row in jvm_build.methods; JVM_NO_ROW = none */
};

struct jvm_method {
    uint32_t class, name, hash;
    uint32_t next;        /* row of another method of the class; JVM_NO_ROW = none */
    uint32_t first, last; /* offsets in jvm_build.members of its first and last member */
    uint32_t traits;
};

/* Stands before each encoded member, which has `size` bytes. `next` is the offset of the next member of the same method. */
struct member_header {
    uint32_t next, receiver, size, flags;
    uint32_t start, length; /* of its range */
};

/* Result of the last look-up, which is used again: adjacent lines of a mapping mostly have the same class or method name. */
struct last_lookup {
    struct sl_str text;
    uint32_t found;
    bool there;
};

struct jvm_build {
    struct sl_account account;
    struct sl_arena arena; /* for the comments on one method line, `pending` */
    struct jvm_strings strings, receivers;
    struct jvm_keys class_keys, flag_keys;
    struct jvm_keys name_keys, once_keys; /* of the current class: its methods; its members by name and arguments */
    struct obfuscated_class *classes;
    struct jvm_method *methods;
    uint32_t *named; /* for each row of name_keys, the row in `methods` */
    uint32_t method_count;
    uint16_t *flags; /* for each row of flag_keys */
    size_t class_capacity, method_capacity, named_capacity, flag_capacity;
    struct sl_buf members;              /* headers and members, in the order of the mapping */
    struct last_lookup method, foreign; /* row of a method of the current class; receiver of a class inlined from */
    struct jvm_pending pending;
    enum attached attached;
    bool in_class;
    uint32_t class, receiver; /* the current class */
    struct sl_str original;   /* original name of the current class */
};

/* Records that memory or budget ran out. Returns false, for the caller to return. */
static bool build_fail(struct jvm_build *b)
{
    b->account.failed = true;
    return false;
}

/* Records that memory or budget ran out. Returns JVM_NO_ROW, for the caller to return. */
static uint32_t no_row(struct jvm_build *b)
{
    b->account.failed = true;
    return JVM_NO_ROW;
}

/* True if the last look-up was for the same text, so that its result can be used again. */
static bool is_same(const struct last_lookup *memo, struct sl_str text)
{
    return memo->there && sl_str_equal(memo->text, text);
}

static struct receiver get_receiver(const struct jvm_build *b, uint32_t id)
{
    struct receiver receiver;
    memcpy(&receiver, b->receivers.bytes.data + id, sizeof receiver);
    return receiver;
}

static void set_receiver(struct jvm_build *b, uint32_t id, struct receiver receiver)
{
    memcpy(b->receivers.bytes.data + id, &receiver, sizeof receiver);
}

/* A record read in advance, with the hashes of its texts. */
struct record_ahead {
    struct sl_jvm_record record;
    struct jvm_string_lookup receiver, name, arguments; /* for methods */
};

/* ---- members ---- */

/* Appends what R8's comments add to a member: lines of positions in an outline, rules that remove frames, id of a descriptor (0 = none). */
static void encode_extras(const struct jvm_pending *p, struct sl_buf *out)
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

/* Appends the part of a member that is known now: original name, arguments, original lines, extras. encode_front() encodes the rest, the
 * range and the class it was inlined from, when the file is written, as the offset of that class is known only then. */
static void encode_member(const struct jvm_pending *p, uint16_t flags, struct sl_buf *out)
{
    enum { LONGEST = 4 * 5 }; /* four numbers of at most five bytes */
    const struct sl_jvm_member *m = &p->member;
    if (!sl_buf_reserve(out, LONGEST))
        return;
    uint8_t *at = out->data + out->size;
    at = jvm_put_uleb(at, p->name);
    at = jvm_put_uleb(at, p->arguments);
    if (flags & JVM_LINE)
        at = jvm_put_uleb(at, m->line);
    if (flags & JVM_LAST_LINE)
        at = jvm_put_uleb(at, m->last_line - m->line);
    out->size = (size_t)(at - out->data);
    if (flags & JVM_EXTRAS)
        encode_extras(p, out);
}

/* Appends the last method line read, b->pending, to b->members. When out of memory or above 4 GiB, b->account.failed is set. */
static void append_member(struct jvm_build *b, uint16_t flags)
{
    struct sl_buf *out = &b->members;
    const struct sl_jvm_member *m = &b->pending.member;
    struct jvm_method *method = &b->methods[b->pending.method];
    size_t at = out->size, begin = at + sizeof(struct member_header);
    if (sl_buf_reserve(out, sizeof(struct member_header)))
        out->size = begin;
    encode_member(&b->pending, flags, out);
    if (out->failed || out->size >= UINT32_MAX) {
        build_fail(b);
        return;
    }
    const struct member_header link = {.next = JVM_NO_ROW,
                                       .receiver = b->pending.receiver,
                                       .size = (uint32_t)(out->size - begin),
                                       .flags = flags,
                                       .start = m->start,
                                       .length = m->end - m->start};
    memcpy(out->data + at, &link, sizeof link);
    const uint32_t offset = (uint32_t)at; /* is linked behind the last member of its method */
    if (method->last != JVM_NO_ROW)
        memcpy(out->data + method->last + offsetof(struct member_header, next), &offset, sizeof offset);
    else
        method->first = offset;
    method->last = offset;
    method->traits |= (m->end ? JVM_RANGES : 0) | (flags & JVM_EXTRAS ? JVM_HAS_EXTRAS : 0);
}

/* True if the method of line `m` was inlined into that of the line after it: both have the same range of lines in the running program. */
static bool inlined_into(const struct sl_jvm_member *m, const struct sl_jvm_member *next)
{
    return next && (next->has_range || next->has_line) && (m->has_range || m->has_line) &&
           m->has_range == next->has_range && m->start == next->start && m->end == next->end;
}

/* True if this is the first member of its method (those of the class with the same obfuscated name) with this original name and these
 * arguments. Only that one is found by parameters: else an overload would be returned once for each of its line ranges. */
static bool is_first(struct jvm_build *b)
{
    bool made = false;
    struct jvm_key key = {b->pending.method, b->pending.arguments, b->pending.name};
    jvm_key_row(&b->once_keys, key, &made);
    return made;
}

/* Encodes the last method line read, b->pending, if not done. `next` is the method line after it; NULL if another record follows. A method
 * inlined into the next one must not be found by parameters: the method that really runs has the parameters of the outermost one. */
static void flush(struct jvm_build *b, const struct sl_jvm_member *next)
{
    struct jvm_pending *p = &b->pending;
    const struct sl_jvm_member *m = &p->member;
    if (!p->there)
        return;
    uint16_t flags = (m->has_range ? JVM_RANGE : 0) | (m->has_line ? JVM_LINE : 0) |
                     (m->has_last_line ? JVM_LAST_LINE : 0) | (m->receiver.data ? JVM_INLINED_FROM_OTHER_CLASS : 0);
    if (p->position_count || p->rule_count || p->descriptor)
        flags |= JVM_EXTRAS;
    if (!inlined_into(m, next) && is_first(b))
        flags |= JVM_BY_PARAMETERS;
    append_member(b, flags);
    sl_arena_reset(&b->arena);
    p->there = false;
}

/* ---- records ---- */

/* Enters the method into the table of method names of the current class, which find_method() searches. */
static void name_method(struct jvm_build *b, uint32_t row)
{
    bool made; /* not used: the name is new in any case */
    uint32_t named = jvm_key_row(&b->name_keys, (struct jvm_key){b->methods[row].name, 0, 0}, &made);
    if (named != JVM_NO_ROW &&
        sl_account_grow(&b->account, &b->named, &b->named_capacity, b->name_keys.count, sizeof *b->named))
        b->named[named] = row;
    else
        build_fail(b);
}

/* Starts the table of names of the current class. The class may occur twice in the mapping: then its earlier methods are entered again, so
 * that members are added to them. */
static void list_methods(struct jvm_build *b)
{
    jvm_keys_clear(&b->name_keys);
    for (uint32_t row = b->classes[b->class].first_method; row != JVM_NO_ROW && !b->account.failed;
         row = b->methods[row].next)
        name_method(b, row);
}

/* Begins a class, or continues it if it occurred before: then members are added to its methods, but file and flags are reset. */
static void on_class(struct jvm_build *b, const struct sl_jvm_record *r)
{
    bool made;
    struct jvm_text name = jvm_string(&b->strings, r->obfuscated);
    b->original = r->original;
    b->receiver = jvm_string(&b->receivers, r->original).id; /* the original class */
    b->class = jvm_key_row(&b->class_keys, (struct jvm_key){name.id, 0, 0}, &made);
    if (b->account.failed ||
        !sl_account_grow(&b->account, &b->classes, &b->class_capacity, b->class_keys.count, sizeof *b->classes)) {
        build_fail(b);
        return;
    }
    if (made)
        b->classes[b->class] = (struct obfuscated_class){.hash = name.hash, .first_method = JVM_NO_ROW};
    b->classes[b->class].receiver = b->receiver;
    set_receiver(b, b->receiver, (struct receiver){.file = JVM_FILE_UNKNOWN}); /* the last occurrence counts */
    jvm_keys_clear(&b->once_keys);                                             /* the class's members seen so far */
    list_methods(b);
    b->in_class = true;
    b->method.there = false; /* the last look-up was in another class */
}

/* Returns the row of the method with this name in the current class, adding it if it is new; JVM_NO_ROW on failure. */
static uint32_t find_method(struct jvm_build *b, struct sl_str obfuscated)
{
    struct jvm_text name = jvm_string(&b->strings, obfuscated);
    uint32_t named = jvm_key_find(&b->name_keys, (struct jvm_key){name.id, 0, 0}), row = b->method_count;
    if (named != JVM_NO_ROW)
        return b->named[named];
    struct obfuscated_class *class = &b->classes[b->class];
    if (b->account.failed || row == JVM_NO_ROW ||
        !sl_account_grow(&b->account, &b->methods, &b->method_capacity, row + UINT64_C(1), sizeof *b->methods))
        return no_row(b);
    b->methods[row] = (struct jvm_method){.class = b->class,
                                          .name = name.id,
                                          .hash = jvm_hash_in(class->hash, name.hash),
                                          .next = class->first_method,
                                          .first = JVM_NO_ROW,
                                          .last = JVM_NO_ROW};
    class->first_method = row;
    b->method_count++;
    name_method(b, row);
    return row;
}

/* Makes the line b->pending. Adjacent lines often name one method or class, so the last look-ups (b->method, b->foreign) are used again. */
static void on_method(struct jvm_build *b, const struct record_ahead *a)
{
    const struct sl_jvm_member *m = &a->record.member;
    struct jvm_pending *p = &b->pending;
    p->member = *m;
    if (!is_same(&b->method, m->obfuscated))
        b->method = (struct last_lookup){m->obfuscated, find_method(b, m->obfuscated), true};
    if (m->receiver.data && !is_same(&b->foreign, m->receiver)) /* inlined from another class */
        b->foreign = (struct last_lookup){m->receiver, jvm_string_add(&b->receivers, &a->receiver).id, true};
    p->method = b->method.found;
    p->receiver = m->receiver.data ? b->foreign.found : b->receiver;
    p->name = jvm_string_add(&b->strings, &a->name).id;
    p->arguments = jvm_string_add(&b->strings, &a->arguments).id;
    p->position_count = p->rule_count = 0;
    p->descriptor = 0;
    p->there = !b->account.failed;
}

/* Sets a flag for all method lines with the original class, name and arguments of the last one read, b->pending. R8's comment describes the
 * original method, which may have many lines before and after this one: so flags are stored by these three, and get_flags() reads them when
 * members are written. */
static void set_flag(struct jvm_build *b, uint16_t flag)
{
    bool made;
    struct jvm_key key = {b->pending.receiver, b->pending.name, b->pending.arguments};
    uint32_t row = jvm_key_row(&b->flag_keys, key, &made);
    if (row == JVM_NO_ROW || !sl_account_grow(&b->account, &b->flags, &b->flag_capacity, row + 1, sizeof *b->flags)) {
        build_fail(b);
        return;
    }
    b->flags[row] = (uint16_t)((made ? 0 : b->flags[row]) | flag);
}

/* Adds a rewriteFrame rule to the last method line read, b->pending, unless it removes no frames. */
static void build_add_rule(struct jvm_build *b, const struct sl_jvm_comment *comment)
{
    struct jvm_pending *p = &b->pending;
    if (!comment->remove)
        return;
    if (!sl_account_grow(&b->account, &p->rules, &p->rule_capacity, p->rule_count + 1, sizeof *p->rules)) {
        build_fail(b);
        return;
    }
    p->rules[p->rule_count++] = (struct jvm_rule){jvm_string(&b->strings, comment->text).id, comment->remove};
}

/* Applies R8's comment to the last method line read, b->pending. Comments of kinds that concern no method are ignored. */
static void on_method_comment(struct jvm_build *b, const struct sl_jvm_comment *comment)
{
    struct jvm_pending *p = &b->pending;
    switch (comment->kind) {
    case SL_JVM_COMMENT_SYNTHESIZED: set_flag(b, JVM_SYNTHESIZED); break;
    case SL_JVM_COMMENT_OUTLINE: set_flag(b, JVM_IS_OUTLINE); break;
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

/* Returns the number that stands for the source file of the current class in the table. Most files are named after their class, for which
 * two values suffice; any other file is JVM_FILE_NAMED + the id of its name. */
static uint32_t find_file(struct jvm_build *b, struct sl_str file)
{
    struct sl_str class = sl_jvm_outermost(b->original);
    bool named_so = class.size && sl_str_starts(file, class);
    struct sl_str suffix = {file.data + class.size, named_so ? file.size - class.size : 0};
    if (!file.size)
        return JVM_FILE_UNKNOWN;
    if (named_so && sl_str_equal(suffix, SL_STR(".kt")))
        return JVM_FILE_KOTLIN;
    if (named_so && sl_str_equal(suffix, SL_STR(".java")))
        return JVM_FILE_JAVA;
    return JVM_FILE_NAMED + jvm_string(&b->strings, file).id;
}

/* Applies R8's comment on a class: its source file, or that the compiler made the class. */
static void on_class_comment(struct jvm_build *b, const struct sl_jvm_comment *comment)
{
    struct receiver receiver = get_receiver(b, b->receiver); /* the original of the current class */
    if (comment->kind == SL_JVM_COMMENT_SOURCE_FILE)
        receiver.file = find_file(b, comment->text);
    else if (comment->kind == SL_JVM_COMMENT_SYNTHESIZED)
        receiver.flags |= JVM_SYNTHESIZED;
    set_receiver(b, b->receiver, receiver);
}

/* Reads a comment. One that is malformed or unknown is ignored, like a malformed line; only lack of memory is a failure. */
static void on_comment(struct jvm_build *b, struct sl_str json)
{
    struct sl_jvm_comment comment;
    bool busy;
    if (b->attached == TO_NOTHING) /* no class or method is in front of it */
        return;
    bool good = sl_jvm_comment_read(json, &b->arena, &comment, &busy);
    if (busy)
        build_fail(b);
    if (!good)
        return;
    if (b->attached == TO_METHOD)
        on_method_comment(b, &comment);
    else
        on_class_comment(b, &comment);
}

/* Handles one record; ignores malformed lines. A record that is no comment completes the method line before it, b->pending. */
static void on_record(struct jvm_build *b, const struct record_ahead *a)
{
    const struct sl_jvm_record *r = &a->record;
    if (r->kind == SL_JVM_RECORD_ERROR)
        return;
    if (r->kind == SL_JVM_RECORD_COMMENT) {
        on_comment(b, r->json);
        return;
    }
    flush(b, r->kind == SL_JVM_RECORD_METHOD ? &r->member : NULL);
    b->attached = TO_NOTHING;
    if (r->kind == SL_JVM_RECORD_CLASS) {
        on_class(b, r);
        b->attached = TO_CLASS;
    } else if (r->kind == SL_JVM_RECORD_METHOD && b->in_class) {
        on_method(b, a);
        b->attached = TO_METHOD;
    } /* fields and headers are not part of the table */
}

/* Reads a record in advance and hashes its texts, which prefetches their slots in the tables of strings. False at the end of the
 * mapping. */
static bool read_ahead(const struct jvm_build *b, struct sl_jvm_reader *reader, struct record_ahead *a)
{
    if (!sl_jvm_reader_next(reader, &a->record))
        return false;
    if (a->record.kind != SL_JVM_RECORD_METHOD)
        return true;
    const struct sl_jvm_member *m = &a->record.member;
    if (m->receiver.data)
        a->receiver = jvm_string_hash(&b->receivers, m->receiver);
    a->name = jvm_string_hash(&b->strings, m->name);
    a->arguments = jvm_string_hash(&b->strings, m->arguments);
    return true;
}

/* Prefetches the strings to which the texts of the record will be compared; read_ahead() has prefetched where their ids are. */
static void want_texts(const struct jvm_build *b, const struct record_ahead *a)
{
    if (a->record.kind != SL_JVM_RECORD_METHOD)
        return;
    if (a->record.member.receiver.data)
        jvm_string_prefetch(&b->receivers, &a->receiver);
    jvm_string_prefetch(&b->strings, &a->name);
    jvm_string_prefetch(&b->strings, &a->arguments);
}

/* Reads records a few lines in advance, so that the memory for their look-ups is prefetched. */
static void read_mapping(struct jvm_build *b, struct sl_str mapping)
{
    enum { AHEAD = 4, TEXTS = 2 }; /* records between hashing and use, between prefetching the strings and use */
    struct sl_jvm_reader reader = sl_jvm_reader(mapping);
    struct record_ahead ring[AHEAD];
    bool more = true;
    for (uint64_t done = 0, read = 0; !b->account.failed; done++) {
        while (more && read < done + AHEAD && (more = read_ahead(b, &reader, &ring[read % AHEAD])))
            read++;
        if (done == read)
            break;
        if (done + TEXTS < read)
            want_texts(b, &ring[(done + TEXTS) % AHEAD]);
        on_record(b, &ring[done % AHEAD]);
    }
    if (!b->account.failed)
        flush(b, NULL);
}

/* ---- the file ---- */

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Returns the flags that R8's comments have set (set_flag) for the original method of this member, before or after the member was read. */
static uint16_t get_flags(struct jvm_build *b, const struct member_header *link, const uint8_t *member)
{
    if (!b->flag_keys.count)
        return 0;
    struct sl_reader r = sl_reader((struct sl_bytes){member, link->size}, false);
    struct jvm_key key = {.a = link->receiver}; /* class, name, arguments; encode_member() put the last two first */
    key.b = (uint32_t)sl_read_uleb(&r);
    key.c = (uint32_t)sl_read_uleb(&r);
    uint32_t row = jvm_key_find(&b->flag_keys, key);
    return row == JVM_NO_ROW ? 0 : b->flags[row];
}

/* Writes the original classes (RECEIVERS) after a zero byte, so that none has offset 0. receiver.file becomes the offset of each. */
static void put_receivers(struct jvm_build *b, struct sl_table_writer *t)
{
    sl_table_section(t, JVM_RECEIVERS);
    struct sl_bytes all = sl_buf_bytes(&b->receivers.bytes);
    struct sl_reader r = sl_reader(all, false);
    size_t start = t->file.size;
    sl_buf_u8(&t->file, 0);
    while (sl_reader_left(&r)) {
        uint32_t id = (uint32_t)sl_reader_offset(&r);
        struct receiver receiver = get_receiver(b, id);
        sl_reader_skip(&r, sizeof receiver);
        struct sl_bytes name = sl_read_bytes(&r, sl_read_uleb(&r));
        uint32_t offset = (uint32_t)(t->file.size - start);
        sl_buf_uleb(&t->file, (uint64_t)receiver.file << 1 | (receiver.flags & JVM_SYNTHESIZED ? 1 : 0));
        sl_buf_uleb(&t->file, name.size);
        sl_buf_add(&t->file, name.data, name.size);
        receiver.file = offset;
        set_receiver(b, id, receiver);
    }
}

enum { LONGEST_FRONT = 16 }; /* three numbers, rounded up for a copy of fixed size */

/* Encodes the fields before a member's name: its range and the offset of the class it was inlined from. Returns their size. */
static size_t encode_front(const struct jvm_build *b, const struct member_header *link, uint8_t *out)
{
    uint8_t *end = out;
    if (link->flags & JVM_RANGE) {
        end = jvm_put_uleb(end, link->start);
        end = jvm_put_uleb(end, link->length);
    }
    if (link->flags & JVM_INLINED_FROM_OTHER_CLASS)
        end = jvm_put_uleb(end, get_receiver(b, link->receiver).file); /* put_receivers() set it to the offset */
    return (size_t)(end - out);
}

/* Writes the members of a method, a linked list that begins at offset `first`; returns the union of their flags. */
static uint16_t put_chain(struct jvm_build *b, uint32_t first, struct sl_buf *out)
{
    enum { FLAGS_AND_SIZE = 1 + 5 };
    uint8_t front[LONGEST_FRONT];
    uint16_t all = 0;
    struct member_header link;
    for (uint32_t at = first; at != JVM_NO_ROW; at = link.next) {
        const uint8_t *member = b->members.data + at + sizeof link;
        memcpy(&link, b->members.data + at, sizeof link);
        if (!sl_buf_reserve(out, FLAGS_AND_SIZE + LONGEST_FRONT + (size_t)link.size))
            return all;
        size_t size = encode_front(b, &link, front);
        uint8_t *end = out->data + out->size;
        uint16_t flags = (uint16_t)(link.flags | get_flags(b, &link, member));
        all |= flags;
        *end++ = (uint8_t)flags;
        end = jvm_put_uleb(end, (uint32_t)size + link.size);
        memcpy(end, front, sizeof front); /* a constant size is faster; the next copy overwrites what is too much */
        memcpy(end + size, member, link.size);
        out->size = (size_t)(end + size + link.size - out->data);
    }
    return all;
}

/* Writes the members of all methods; method.last becomes their offset. The byte before them keeps offset 0 free, which means none. */
static void put_members(struct jvm_build *b, struct sl_table_writer *t)
{
    struct sl_buf members = {.budget = b->account.budget};
    sl_table_section(t, JVM_MEMBERS);
    size_t start = t->file.size;
    sl_buf_u8(&t->file, 0);
    for (uint32_t i = 0; i < b->method_count && !members.failed; i++) {
        struct jvm_method *method = &b->methods[i];
        sl_buf_clear(&members);
        if (put_chain(b, method->first, &members) & JVM_IS_OUTLINE)
            method->traits |= JVM_OUTLINES;
        method->last = (uint32_t)(t->file.size - start);
        sl_buf_uleb(&t->file, b->class_keys.keys[method->class].a); /* id of the class's obfuscated name */
        sl_buf_uleb(&t->file, method->name);
        sl_buf_u8(&t->file, (uint8_t)method->traits);
        sl_buf_uleb(&t->file, members.size);
        sl_buf_str(&t->file, sl_buf_view(&members));
    }
    t->file.failed |= members.failed;
    sl_buf_free(&members);
    sl_buf_free(&b->members);
}

/* Reserves a hash table of zeroed rows after the end of the file, and returns the number of rows. The caller adds it to file.size when all
 * rows are filled in. */
static uint64_t begin_rows(struct sl_table_writer *t, enum jvm_section section, uint32_t count, size_t row_size)
{
    uint64_t rows = count + count / 2 + UINT64_C(1); /* a third stays free: probing is short and always ends */
    sl_table_section(t, section);
    if (sl_buf_reserve(&t->file, rows * row_size))
        memset(t->file.data + t->file.size, 0, rows * row_size);
    return rows;
}

/* Returns the first free row for the hash in the table behind the end of the file; NULL on failure. A free row has 0 as its last number, a
 * used one never has. */
static uint8_t *find_free_row(struct jvm_build *b, struct sl_table_writer *t, uint64_t rows, size_t row_size,
                              uint32_t hash)
{
    uint64_t row = jvm_home_row(hash, rows);
    if (t->file.failed)
        return NULL;
    for (;; row = row + 1 < rows ? row + 1 : 0) {
        uint8_t *at = t->file.data + t->file.size + row * row_size;
        if (!sl_table_u32(at + row_size - 4))
            return at;
        if (!sl_account_spend(&b->account, 1)) {
            build_fail(b);
            return NULL;
        }
    }
}

/* Writes the hash table of classes. */
static void put_classes(struct jvm_build *b, struct sl_table_writer *t)
{
    uint8_t *row;
    uint64_t rows = begin_rows(t, JVM_CLASSES, b->class_keys.count, JVM_CLASS_SIZE);
    for (uint32_t i = 0; i < b->class_keys.count; i++) {
        if (!(row = find_free_row(b, t, rows, JVM_CLASS_SIZE, b->classes[i].hash)))
            return;
        put_u32(row, b->classes[i].hash);
        put_u32(row + 4, b->class_keys.keys[i].a);                      /* id of the obfuscated name */
        put_u32(row + 8, get_receiver(b, b->classes[i].receiver).file); /* offset of the original class */
    }
    t->file.size += rows * JVM_CLASS_SIZE;
}

/* Writes the hash table of methods; put_members() has stored the offsets of their members. */
static void put_methods(struct jvm_build *b, struct sl_table_writer *t)
{
    uint8_t *row;
    uint64_t rows = begin_rows(t, JVM_METHODS, b->method_count, JVM_METHOD_SIZE);
    for (const struct jvm_method *m = b->methods; m < b->methods + b->method_count; m++) {
        if (!(row = find_free_row(b, t, rows, JVM_METHOD_SIZE, m->hash)))
            return;
        put_u32(row, m->hash);
        put_u32(row + 4, m->last);
    }
    t->file.size += rows * JVM_METHOD_SIZE;
}

/* Writes all sections, receivers first as others refer to their offsets. False when out of memory, or if the file is too large. */
static bool put_file(struct jvm_build *b, struct sl_buf *out)
{
    struct sl_table_writer t;
    if (!sl_table_writer_init(&t, &jvm_format, NULL, b->account.budget)) /* NULL: uses no other threads */
        return build_fail(b);
    put_receivers(b, &t);
    put_members(b, &t);
    put_classes(b, &t);
    put_methods(b, &t);
    sl_table_section(&t, JVM_STRINGS);
    sl_buf_str(&t.file, sl_buf_view(&b->strings.bytes));
    if (b->account.failed)
        t.file.failed = true;
    return sl_table_finish(&t, out) || build_fail(b);
}

static void build_free(struct jvm_build *b)
{
    struct jvm_keys *keys[] = {&b->class_keys, &b->flag_keys, &b->name_keys, &b->once_keys};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        free(keys[i]->keys);
        free(keys[i]->table.slots);
    }
    void *arrays[] = {b->strings.table.slots, b->receivers.table.slots, b->classes, b->methods, b->named, b->flags,
                      b->pending.rules};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    sl_buf_free(&b->strings.bytes);
    sl_buf_free(&b->receivers.bytes);
    sl_buf_free(&b->members);
    sl_arena_free(&b->arena);
    sl_account_release(&b->account);
}

enum sl_code sl_jvm_mapper_build(struct sl_str mapping, struct sl_budget *budget, struct sl_buf *out,
                                 struct sl_error *error)
{
    struct jvm_build b = {.account.budget = budget};
    struct jvm_keys *keys[] = {&b.class_keys, &b.flag_keys, &b.name_keys, &b.once_keys};
    if (!sl_jvm_is_mapping(mapping))
        return sl_fail(error, SL_MALFORMED, "The file is not a valid ProGuard file");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        keys[i]->account = &b.account;
    b.arena.budget = b.members.budget = budget;
    b.strings = (struct jvm_strings){.account = &b.account, .bytes.budget = budget};
    b.receivers =
        (struct jvm_strings){.account = &b.account, .bytes.budget = budget, .reserved_bytes = sizeof(struct receiver)};
    jvm_string(&b.strings, SL_STR("")); /* gets id 0, as format.h says */
    read_mapping(&b, mapping);
    bool good = !b.account.failed && put_file(&b, out);
    bool too_large =
        b.strings.bytes.size > JVM_MAX_TEXT || b.receivers.bytes.size > JVM_MAX_TEXT || b.members.size >= UINT32_MAX;
    build_free(&b);
    if (good)
        return SL_OK;
    return too_large ? sl_fail(error, SL_MALFORMED, "the names or members of the ProGuard mapping need more than 4 GiB")
                     : sl_budget_fail(budget, error);
}
