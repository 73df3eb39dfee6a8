/* Reads the look-up table of a JVM mapping in place. Every number is checked when it is used. */
#include "jvm/members.h"

#include "jvm/names.h"

enum sl_code sl_jvm_mapper_open(struct sl_bytes bytes, struct sl_jvm_mapper *m, struct sl_error *error)
{
    return sl_table_open(bytes, &jvm_format, &m->table, error);
}

struct sl_str jvm_long_text(const struct sl_jvm_mapper *m, uint32_t id)
{
    struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_STRINGS], id), false);
    struct sl_bytes text = sl_read_bytes(&r, sl_read_uleb(&r));
    return (struct sl_str){text.data ? (const char *)text.data : "", text.size};
}

/* Reads a ULEB128 number of at most 32 bits; nearly all have one to three bytes. */
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

/* Reads `size` bytes; faster than sl_read_bytes(), as it is inlined. */
static inline struct sl_bytes read_bytes(struct sl_reader *r, uint32_t size)
{
    if (__builtin_expect(size > (size_t)(r->end - r->at), 0))
        return sl_read_bytes(r, size); /* fails */
    struct sl_bytes bytes = {r->at, size};
    r->at += size;
    return bytes;
}

struct jvm_original_class jvm_original_class(const struct sl_jvm_mapper *m, uint32_t id)
{
    struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_RECEIVERS], id), false);
    uint64_t head = sl_read_uleb(&r), file = head >> 1;
    struct sl_bytes name = read_bytes(&r, read_number(&r));
    struct jvm_original_class receiver = {.name = {name.data ? (const char *)name.data : "", name.size},
                                          .synthesized = head & 1};
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

/* Iterator over those rows of a hash table (CLASSES or METHODS) that have the hash `hash`. */
struct rows {
    struct sl_bytes bytes;
    size_t size; /* of a row */
    uint32_t hash;
    uint64_t count; /* of all rows */
    uint64_t at;    /* the next row */
    uint64_t left;  /* rows not yet visited: so the search ends in a damaged table without a free row, too */
};

static struct rows find_rows(const struct sl_jvm_mapper *m, enum jvm_section section, size_t size, uint32_t hash)
{
    struct rows rows = {.bytes = m->table.sections[section], .size = size, .hash = hash};
    rows.count = rows.left = rows.bytes.size / size;
    rows.at = jvm_home_row(hash, rows.count);
    return rows;
}

static struct rows class_rows(const struct sl_jvm_mapper *m, const struct jvm_names *names)
{
    return find_rows(m, JVM_CLASSES, JVM_CLASS_SIZE, names->class_hash);
}

static struct rows method_rows(const struct sl_jvm_mapper *m, const struct jvm_names *names)
{
    return find_rows(m, JVM_METHODS, JVM_METHOD_SIZE, names->method_hash);
}

/* Returns the next row with the hash of `rows`; NULL when there is none. Different names may have the same hash, so the caller compares the
 * names. */
static inline const uint8_t *next_row(struct rows *rows)
{
    while (rows->left) {
        const uint8_t *row = rows->bytes.data + rows->at * rows->size;
        rows->at = rows->at + 1 < rows->count ? rows->at + 1 : 0;
        rows->left--;
        if (!sl_table_u32(row + rows->size - 4)) /* a free row ends the search */
            return NULL;
        if (sl_table_u32(row) == rows->hash)
            return row;
    }
    return NULL;
}

struct jvm_names jvm_names(const struct sl_jvm_mapper *m, struct sl_str class, struct sl_str method)
{
    struct jvm_names names = {.class = class, .method = method, .class_hash = jvm_hash(class)};
    struct rows classes = class_rows(m, &names);
    const uint8_t *row = next_row(&classes);
    if (!row) { /* the class is absent, so its methods are not looked up */
        names.is_absent = true;
        return names;
    }
    names.method_hash = jvm_hash_in(names.class_hash, jvm_hash(method));
    struct rows methods = method_rows(m, &names);
    jvm_prefetch(m, JVM_METHODS, methods.at * JVM_METHOD_SIZE);
    jvm_prefetch(m, JVM_STRINGS, sl_table_u32(row + 4));   /* the class's obfuscated name */
    jvm_prefetch(m, JVM_RECEIVERS, sl_table_u32(row + 8)); /* its original class */
    if ((row = next_row(&methods)))
        jvm_prefetch(m, JVM_MEMBERS, sl_table_u32(row + 4));
    return names;
}

bool jvm_find_class(const struct sl_jvm_mapper *m, const struct jvm_names *names, uint32_t *class, uint32_t *receiver)
{
    struct rows rows = class_rows(m, names);
    if (names->is_absent)
        return false;
    for (const uint8_t *row; (row = next_row(&rows));) {
        *class = sl_table_u32(row + 4);
        *receiver = sl_table_u32(row + 8);
        if (sl_str_equal(jvm_text(m, *class), names->class))
            return true;
    }
    return false;
}

bool jvm_find_method(const struct sl_jvm_mapper *m, const struct jvm_names *names, uint32_t class,
                     struct jvm_members *members)
{
    struct rows rows = method_rows(m, names);
    for (const uint8_t *row; (row = next_row(&rows));) {
        struct sl_reader r = sl_reader(sl_bytes_from(m->table.sections[JVM_MEMBERS], sl_table_u32(row + 4)), false);
        uint32_t of = read_number(&r), name = read_number(&r); /* of: id of the class's name */
        if (of != class || !sl_str_equal(jvm_text(m, name), names->method))
            continue;
        *members = (struct jvm_members){.mapper = m, .traits = sl_read_u8(&r)};
        members->bytes = sl_reader(read_bytes(&r, read_number(&r)), false);
        return true;
    }
    return false;
}

/* ---- members ---- */

/* Skips pairs of numbers. */
static void skip_pairs(struct sl_reader *r)
{
    for (uint64_t left = sl_read_uleb(r); left && !r->failed; left--) {
        sl_read_uleb(r);
        sl_read_uleb(r);
    }
}

/* Reads the descriptor of a member, which follows its positions and rules. */
static uint32_t read_descriptor(struct sl_reader *r)
{
    skip_pairs(r);
    skip_pairs(r);
    return (uint32_t)sl_read_uleb(r);
}

/* Reads the range of lines of a member; 0 to 0 if it has none. In a damaged file the sum may wrap at 32 bits, which gives wrong lines but
 * is safe. */
static inline void read_range(struct sl_reader *r, struct jvm_member *member)
{
    member->start = member->end = 0;
    if (member->flags & JVM_RANGE) {
        member->start = read_number(r);
        member->end = member->start + read_number(r);
    }
}

/* Reads the fields of a member after its range. member->extras is a reader at the end of them, where positions, rules and descriptor
 * are. */
static inline void read_rest(struct sl_reader *r, struct jvm_member *member)
{
    member->receiver = member->flags & JVM_INLINED_FROM_OTHER_CLASS ? read_number(r) : 0;
    member->name = read_number(r);
    member->arguments = read_number(r);
    member->line = member->last_line = 0;
    if (member->flags & JVM_LINE)
        member->last_line = member->line = read_number(r);
    if (member->flags & JVM_LAST_LINE)
        member->last_line += read_number(r);
    member->extras = *r;
}

/* Reads the next member that has no range or one that contains members->line (0 = any line). Of other members only the range is read, and
 * they are skipped. False at the end, or if the member is damaged. */
static inline bool mapper_read_member(struct jvm_members *members, struct jvm_member *member)
{
    struct sl_reader *all = &members->bytes;
    while (sl_reader_left(all)) {
        members->read++; /* counts work */
        member->flags = sl_read_u8(all);
        struct sl_reader r = sl_reader(read_bytes(all, read_number(all)), false);
        read_range(&r, member);
        if (members->line && member->end && (members->line < member->start || members->line > member->end))
            continue;
        read_rest(&r, member);
        return !r.failed;
    }
    return false;
}

/* True if the member matches a query by parameters: it has the query's parameters or, with by_descriptor, the query's descriptor. Always
 * true for other queries. */
static bool is_meant(const struct jvm_members *members, const struct jvm_member *member)
{
    const struct sl_jvm_query *q = members->query;
    if (!q || q->by != SL_JVM_BY_PARAMETERS)
        return true;
    if (!members->by_descriptor)
        /* members without the flag were inlined, or are further lines of the same method */
        return member->flags & JVM_BY_PARAMETERS &&
               sl_str_equal(jvm_text(members->mapper, member->arguments), q->parameters);
    struct sl_reader extras = member->extras;
    uint32_t descriptor = member->flags & JVM_EXTRAS ? read_descriptor(&extras) : 0;
    return descriptor && sl_str_equal(jvm_text(members->mapper, descriptor), q->descriptor);
}

bool jvm_next_member(struct jvm_members *members, struct jvm_member *member)
{
    while (mapper_read_member(members, member))
        if (is_meant(members, member))
            return true;
    return false;
}

/* ---- names ---- */

bool sl_jvm_mapper_class(const struct sl_jvm_mapper *mapper, struct sl_str obfuscated, struct sl_str *original)
{
    struct jvm_names names = {.class = obfuscated, .class_hash = jvm_hash(obfuscated)};
    uint32_t class, receiver;
    bool found = jvm_find_class(mapper, &names, &class, &receiver);
    if (found)
        *original = jvm_original_class(mapper, receiver).name;
    return found;
}
