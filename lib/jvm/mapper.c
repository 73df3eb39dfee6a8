/* Using a table of a mapping in place. Every number is checked where it is used. */
#include "jvm/members.h"

#include "jvm/names.h"

enum sl_code sl_jvm_mapper_open(struct sl_bytes bytes, struct sl_jvm_mapper *m, struct sl_error *error)
{
    return sl_table_open(bytes, &jvm_format, &m->table, error);
}

struct sl_str jvm_text(const struct sl_jvm_mapper *m, uint32_t id)
{
    struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_STRINGS], id), false);
    struct sl_bytes text = sl_read_bytes(&r, sl_read_uleb(&r));
    return (struct sl_str){text.data ? (const char *)text.data : "", text.size};
}

struct jvm_receiver jvm_receiver(const struct sl_jvm_mapper *m, uint32_t id)
{
    struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_RECEIVERS], id), false);
    uint64_t file = sl_read_uleb(&r);
    struct sl_bytes name = sl_read_bytes(&r, sl_read_uleb(&r));
    struct jvm_receiver receiver = {.name = {name.data ? (const char *)name.data : "", name.size}};
    if (file == JVM_FILE_KOTLIN || file == JVM_FILE_JAVA) {
        receiver.file = sl_jvm_outermost(receiver.name);
        receiver.suffix = file == JVM_FILE_KOTLIN ? SL_STR(".kt") : SL_STR(".java");
    } else if (file >= JVM_FILE_NAMED) {
        receiver.file = jvm_text(m, (uint32_t)(file - JVM_FILE_NAMED));
        receiver.suffix = SL_STR("");
    }
    return receiver;
}

/* ---- hash tables ---- */

struct rows {
    struct sl_bytes bytes;
    size_t size;
    uint64_t count, at, left;
};

static struct rows rows_of(const struct sl_jvm_mapper *m, enum jvm_section section, size_t size, uint32_t hash)
{
    struct rows rows = {.bytes = m->table.sections[section], .size = size};
    rows.count = rows.left = rows.bytes.size / size;
    rows.at = jvm_row_of(hash, rows.count);
    return rows;
}

/* The next row of the same hash or one near it; NULL when there is no more. */
static inline const uint8_t *next_row(struct rows *rows)
{
    if (!rows->left)
        return NULL;
    const uint8_t *row = rows->bytes.data + rows->at * rows->size;
    rows->at = rows->at + 1 < rows->count ? rows->at + 1 : 0;
    rows->left--;
    return sl_table_u32(row + rows->size - 4) ? row : NULL;
}

static void fetch(const struct rows *rows)
{
    if (rows->count)
        __builtin_prefetch(rows->bytes.data + rows->at * rows->size);
}

struct jvm_names jvm_names(const struct sl_jvm_mapper *m, struct sl_str class, struct sl_str method)
{
    struct jvm_names names = {class, method, jvm_hash(class), 0};
    struct rows classes = rows_of(m, JVM_CLASSES, JVM_CLASS_SIZE, names.class_hash);
    fetch(&classes);
    names.method_hash = jvm_hash_in(names.class_hash, jvm_hash(method));
    struct rows methods = rows_of(m, JVM_METHODS, JVM_METHOD_SIZE, names.method_hash);
    fetch(&methods);
    return names;
}

bool jvm_find_class(const struct sl_jvm_mapper *m, const struct jvm_names *names, uint32_t *class, uint32_t *receiver)
{
    struct rows rows = rows_of(m, JVM_CLASSES, JVM_CLASS_SIZE, names->class_hash);
    for (const uint8_t *row; (row = next_row(&rows));) {
        *class = sl_table_u32(row);
        *receiver = sl_table_u32(row + 4);
        if (sl_str_equal(jvm_text(m, *class), names->class))
            return true;
    }
    return false;
}

bool jvm_find_method(const struct sl_jvm_mapper *m, const struct jvm_names *names, uint32_t class,
                     struct jvm_members *members)
{
    struct rows rows = rows_of(m, JVM_METHODS, JVM_METHOD_SIZE, names->method_hash);
    for (const uint8_t *row; (row = next_row(&rows));) {
        if (sl_table_u32(row) != class || !sl_str_equal(jvm_text(m, sl_table_u32(row + 4)), names->method))
            continue;
        struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_MEMBERS], sl_table_u32(row + 8)), false);
        *members = (struct jvm_members){.mapper = m, .traits = sl_read_u8(&r)};
        members->bytes = sl_reader(sl_read_bytes(&r, sl_read_uleb(&r)), false);
        return true;
    }
    return false;
}

/* ---- members ---- */

/* A number of 32 bits, most of which are of one to three bytes. */
static inline uint32_t read_number(struct sl_reader *r)
{
    const uint8_t *at = r->at;
    if (__builtin_expect(r->end - at < 3 || at[0] & at[1] & at[2] & 0x80, 0))
        return (uint32_t)sl_read_uleb(r);
    uint32_t value = at[0] & 0x7F;
    r->at = at + 1;
    if (at[0] < 0x80)
        return value;
    value |= (uint32_t)(at[1] & 0x7F) << 7;
    r->at = at + 2;
    if (at[1] < 0x80)
        return value;
    r->at = at + 3;
    return value | (uint32_t)at[2] << 14;
}

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
        member->start = read_number(r);
        member->end = member->start + read_number(r);
    }
    if (member->flags & JVM_LINE)
        member->last_line = member->line = read_number(r);
    if (member->flags & JVM_LAST_LINE)
        member->last_line += read_number(r);
}

static bool mapper_read_member(struct jvm_members *members, struct jvm_member *member, uint32_t *descriptor)
{
    struct sl_reader *r = &members->bytes;
    member->flags = sl_read_u8(r);
    member->receiver = member->flags & JVM_FOREIGN ? read_number(r) : 0;
    member->name = read_number(r);
    member->arguments = read_number(r);
    mapper_read_lines(r, member);
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
    struct jvm_names names = {.class = obfuscated, .class_hash = jvm_hash(obfuscated)};
    uint32_t class, receiver;
    bool found = jvm_find_class(mapper, &names, &class, &receiver);
    if (found)
        *original = jvm_receiver(mapper, receiver).name;
    return found;
}

bool sl_jvm_mapper_method(const struct sl_jvm_mapper *mapper, struct sl_str class, struct sl_str method,
                          struct sl_str *original_class, struct sl_str *original)
{
    struct jvm_names names = jvm_names(mapper, class, method);
    struct jvm_members members;
    struct jvm_member first, other;
    uint32_t found, receiver;
    if (!jvm_find_class(mapper, &names, &found, &receiver) || !jvm_find_method(mapper, &names, found, &members) ||
        !jvm_next_member(&members, &first))
        return false;
    while (jvm_next_member(&members, &other))
        if (other.name != first.name)
            return false;
    *original_class = jvm_receiver(mapper, receiver).name;
    *original = jvm_text(mapper, first.name);
    return true;
}
