/* Using a table of a mapping in place. Every number is checked where it is used. */
#include "jvm/members.h"

static uint64_t row_count(const struct sl_jvm_mapper *m, enum jvm_section section, size_t row_size)
{
    return m->table.sections[section].size / row_size;
}

static const uint8_t *row_at(const struct sl_jvm_mapper *m, enum jvm_section section, size_t row_size, uint64_t row)
{
    return row < row_count(m, section, row_size) ? m->table.sections[section].data + row * row_size : NULL;
}

static bool slots_fit(struct sl_bytes slots)
{
    return slots.size % 4 == 0 && (slots.size & (slots.size - 1)) == 0;
}

enum sl_code sl_jvm_mapper_open(struct sl_bytes bytes, struct sl_jvm_mapper *m, struct sl_error *error)
{
    enum sl_code code = sl_table_open(bytes, &jvm_format, &m->table, error);
    if (code == SL_OK &&
        (!slots_fit(m->table.sections[JVM_CLASS_SLOTS]) || !slots_fit(m->table.sections[JVM_METHOD_SLOTS])))
        code = sl_fail(error, SL_MALFORMED, "%s: bad sections", jvm_format.name);
    return code;
}

struct sl_str jvm_text(const struct sl_jvm_mapper *m, uint32_t id)
{
    struct sl_reader r = sl_reader(m->table.sections[JVM_STRINGS], false);
    sl_reader_skip(&r, id);
    struct sl_bytes text = sl_read_bytes(&r, sl_read_uleb(&r));
    return (struct sl_str){text.data ? (const char *)text.data : "", text.size};
}

struct sl_str jvm_receiver(const struct sl_jvm_mapper *m, uint32_t id, struct sl_str *file)
{
    const uint8_t *row = row_at(m, JVM_RECEIVERS, JVM_RECEIVER_SIZE, id);
    uint32_t file_id = row && file ? sl_table_u32(row + 4) : 0;
    if (file)
        *file = file_id ? jvm_text(m, file_id) : (struct sl_str){NULL, 0};
    return row ? jvm_text(m, sl_table_u32(row)) : SL_STR("");
}

/* ---- hash tables ---- */

struct probe {
    struct sl_bytes slots;
    uint64_t at, left;
};

static struct probe begin_probe(const struct sl_jvm_mapper *m, enum jvm_section section, uint32_t hash)
{
    struct sl_bytes slots = m->table.sections[section];
    return (struct probe){slots, hash, slots.size / 4};
}

/* The next row of the same hash or one near it. */
static bool next_row(struct probe *p, uint32_t *row)
{
    if (!p->left)
        return false;
    p->left--;
    uint32_t slot = sl_table_u32(p->slots.data + (p->at++ & (p->slots.size / 4 - 1)) * 4);
    *row = slot - 1;
    return slot;
}

bool jvm_find_class(const struct sl_jvm_mapper *m, struct sl_str name, struct jvm_class *class)
{
    struct probe probe = begin_probe(m, JVM_CLASS_SLOTS, jvm_hash(name));
    while (next_row(&probe, &class->id)) {
        const uint8_t *row = row_at(m, JVM_CLASSES, JVM_CLASS_SIZE, class->id);
        if (!row || !sl_str_equal(jvm_text(m, sl_table_u32(row)), name))
            continue;
        class->receiver = sl_table_u32(row + 4);
        class->original = jvm_receiver(m, class->receiver, NULL);
        return true;
    }
    return false;
}

bool jvm_find_method(const struct sl_jvm_mapper *m, uint32_t class, struct sl_str name, struct jvm_members *members)
{
    struct probe probe = begin_probe(m, JVM_METHOD_SLOTS, jvm_hash_in(class, jvm_hash(name)));
    uint32_t id;
    while (next_row(&probe, &id)) {
        const uint8_t *row = row_at(m, JVM_METHODS, JVM_METHOD_SIZE, id);
        if (!row || sl_table_u32(row) != class || !sl_str_equal(jvm_text(m, sl_table_u32(row + 4)), name))
            continue;
        const uint8_t *next = row_at(m, JVM_METHODS, JVM_METHOD_SIZE, id + UINT64_C(1));
        struct sl_bytes all = m->table.sections[JVM_MEMBERS];
        uint64_t begin = sl_table_u32(row + 8), end = next ? sl_table_u32(next + 8) : all.size;
        struct sl_bytes bytes = sl_bytes_slice(all, begin, end < begin ? 0 : end - begin, NULL);
        *members = (struct jvm_members){.mapper = m, .bytes = sl_reader(bytes, false)};
        return true;
    }
    return false;
}

/* ---- members ---- */

/* Passes over pairs of numbers. */
static void skip_pairs(struct sl_reader *r)
{
    for (uint64_t left = sl_read_uleb(r); left && !r->failed; left--) {
        sl_read_uleb(r);
        sl_read_uleb(r);
    }
}

static uint32_t read_descriptor(struct sl_reader *r)
{
    skip_pairs(r);
    skip_pairs(r);
    return (uint32_t)sl_read_uleb(r);
}

/* What a damaged file adds up to is cut to 32 bits: wrong, but within bounds. */
static void mapper_read_lines(struct sl_reader *r, struct jvm_member *member)
{
    member->start = member->end = member->line = member->last_line = 0;
    if (member->flags & JVM_RANGE) {
        member->start = (uint32_t)sl_read_uleb(r);
        member->end = member->start + (uint32_t)sl_read_uleb(r);
    }
    if (member->flags & JVM_LINE)
        member->last_line = member->line = (uint32_t)sl_read_uleb(r);
    if (member->flags & JVM_LAST_LINE)
        member->last_line += (uint32_t)sl_read_uleb(r);
}

static bool mapper_read_member(struct jvm_members *members, struct jvm_member *member, uint32_t *descriptor)
{
    struct sl_reader *r = &members->bytes;
    member->flags = sl_read_u16(r);
    member->name = (uint32_t)sl_read_uleb(r);
    member->arguments = (uint32_t)sl_read_uleb(r);
    mapper_read_lines(r, member);
    member->receiver = member->flags & JVM_FOREIGN ? (uint32_t)sl_read_uleb(r) : 0;
    member->extras = *r;
    *descriptor = member->flags & JVM_EXTRAS ? read_descriptor(r) : 0;
    return !r->failed;
}

/* Whether the query may mean this member. */
static bool is_meant(const struct jvm_members *members, const struct jvm_member *member, uint32_t descriptor)
{
    const struct sl_jvm_query *q = members->query;
    if (!q || q->by != SL_JVM_BY_PARAMETERS)
        return true;
    if (members->by_descriptor)
        return descriptor && sl_str_equal(jvm_text(members->mapper, descriptor), q->descriptor);
    return member->flags & JVM_BY_PARAMETERS &&
           sl_str_equal(jvm_text(members->mapper, member->arguments), q->parameters);
}

bool jvm_next_member(struct jvm_members *members, struct jvm_member *member)
{
    uint32_t descriptor;
    while (sl_reader_left(&members->bytes)) {
        if (!mapper_read_member(members, member, &descriptor))
            return false;
        if (is_meant(members, member, descriptor))
            return true;
    }
    return false;
}

/* ---- names ---- */

bool sl_jvm_mapper_class(const struct sl_jvm_mapper *mapper, struct sl_str obfuscated, struct sl_str *original)
{
    struct jvm_class class;
    bool found = jvm_find_class(mapper, obfuscated, &class);
    if (found)
        *original = class.original;
    return found;
}

bool sl_jvm_mapper_method(const struct sl_jvm_mapper *mapper, struct sl_str class, struct sl_str method,
                          struct sl_str *original_class, struct sl_str *original)
{
    struct jvm_class found;
    struct jvm_members members;
    struct jvm_member first, other;
    if (!jvm_find_class(mapper, class, &found) || !jvm_find_method(mapper, found.id, method, &members) ||
        !jvm_next_member(&members, &first))
        return false;
    while (jvm_next_member(&members, &other))
        if (other.name != first.name)
            return false;
    *original_class = found.original;
    *original = jvm_text(mapper, first.name);
    return true;
}
