/* UUID maps: reads the value of the key DBGOriginalUUID of a property list, in XML or binary form. */
#include "object/bcsymbolmap.h"

#include <expat.h>

enum { MAX_FILE = 1 << 20, MAX_DEPTH = 64, MAX_TEXT = 64 };

static const char wanted_key[] = "DBGOriginalUUID";

static enum sl_code no_schema(struct sl_error *error)
{
    return sl_fail(error, SL_MALFORMED, "XML structure did not match expected schema");
}

/* Parses the value of DBGOriginalUUID: a UUID with or without hyphens, and blanks around it. */
static enum sl_code parse_uuid(struct sl_str text, struct sl_debug_id *original, struct sl_error *error)
{
    while (text.size && (uint8_t)text.data[0] <= ' ')
        text = (struct sl_str){text.data + 1, text.size - 1};
    while (text.size && (uint8_t)text.data[text.size - 1] <= ' ')
        text.size--;
    /* a longer text would be a debug id with an age; pdb20: an id of PDB 2.0, which is no UUID */
    if ((text.size != 32 && text.size != 36) || !sl_debug_id_parse(text, original) || original->pdb20)
        return sl_fail(error, SL_MALFORMED, "Failed to parse a value into the right type");
    return SL_OK;
}

/* ---- XML ---- */

/* State of the XML parser. */
struct plist {
    XML_Parser parser;
    unsigned depth; /* 1 = in the root element, 2 = in an element of it, such as the dict, 3 = in an element of that */
    bool no_schema; /* the root has not version="1.0" */
    bool in_dict;   /* in the first dict of the root */
    bool had_dict;  /* that dict has begun */
    bool is_key;    /* the last element of the dict is a <key> */
    bool after_key; /* the key DBGOriginalUUID has ended: the next element is its value */
    bool found;     /* the value has ended; it is in `text` */
    char text[MAX_TEXT]; /* of the current element of the dict; longer texts are cut, they are no UUIDs */
    size_t size;
};

/* Expat calls it at each start tag. Notes whether the root has version 1.0, where its first dict begins, and whether an element of that
 * dict is a key. Stops the parser at elements nested more than MAX_DEPTH deep. */
static void start_element(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct plist *p = arg;
    if (++p->depth > MAX_DEPTH) {
        XML_StopParser(p->parser, XML_FALSE);
    } else if (p->depth == 1) {
        p->no_schema = true;
        for (size_t i = 0; attributes[i]; i += 2)
            if (strcmp(attributes[i], "version") == 0)
                p->no_schema = strcmp(attributes[i + 1], "1.0") != 0;
    } else if (p->depth == 2) {
        p->in_dict = !p->had_dict && strcmp(name, "dict") == 0;
        p->had_dict = p->had_dict || p->in_dict;
    } else if (p->depth == 3 && p->in_dict && !p->found) {
        p->is_key = strcmp(name, "key") == 0;
        p->size = 0;
    }
}

/* Expat calls it at each end tag. After a key DBGOriginalUUID it sets `after_key`: the next element is the value. At the end of that
 * element it sets `found`: p->text is the value then, and no more text is collected. */
static void end_element(void *arg, const XML_Char *name)
{
    (void)name;
    struct plist *p = arg;
    if (p->depth == 3 && p->in_dict && !p->found) {
        p->found = p->after_key;
        p->after_key = !p->found && p->is_key && p->size == sizeof wanted_key - 1 &&
                       memcmp(p->text, wanted_key, sizeof wanted_key - 1) == 0;
    }
    if (p->depth == 2)
        p->in_dict = false;
    p->depth--;
}

/* Expat calls it with parts of the text of an element. Collects the text of a key or value of the first dict. Text that does not fit is
 * cut: neither DBGOriginalUUID nor a UUID is as long. */
static void character_data(void *arg, const XML_Char *text, int size)
{
    struct plist *p = arg;
    if (p->depth != 3 || !p->in_dict || p->found)
        return;
    size_t left = sizeof p->text - p->size;
    size_t take = (size_t)size < left ? (size_t)size : left;
    memcpy(p->text + p->size, text, take);
    p->size += take;
}

/* Expat calls it when the file declares an entity. Stops the parser: property lists have none, and expanding them can exhaust memory. */
static void entity_declared(void *arg, const XML_Char *name, int parameter, const XML_Char *value, int size,
                            const XML_Char *base, const XML_Char *system, const XML_Char *public,
                            const XML_Char *notation)
{
    (void)name, (void)parameter, (void)value, (void)size, (void)base, (void)system, (void)public, (void)notation;
    struct plist *p = arg;
    XML_StopParser(p->parser, XML_FALSE);
}

/* Parses the XML form. A syntax error, a declared entity and too deep nesting are "Invalid XML". A root without version 1.0 and a dict
 * without the key DBGOriginalUUID do not match the schema. */
static enum sl_code parse_xml(struct sl_bytes bytes, struct sl_debug_id *original, struct sl_error *error)
{
    struct plist p = {.parser = XML_ParserCreate(NULL)};
    if (!p.parser)
        return sl_fail(error, SL_BUSY, "out of memory");
    XML_SetUserData(p.parser, &p);
    XML_SetElementHandler(p.parser, start_element, end_element);
    XML_SetCharacterDataHandler(p.parser, character_data);
    XML_SetEntityDeclHandler(p.parser, entity_declared);
    /* `int` is enough: the caller has checked MAX_FILE. 1: this is all of the text */
    enum XML_Status status = XML_Parse(p.parser, (const char *)bytes.data, (int)bytes.size, 1);
    XML_ParserFree(p.parser);
    if (status != XML_STATUS_OK)
        return sl_fail(error, SL_MALFORMED, "Invalid XML");
    if (p.no_schema || !p.found)
        return no_schema(error);
    return parse_uuid((struct sl_str){p.text, p.size}, original, error);
}

/* ---- binary ----
 *
 *     "bplist00" | objects | table of their offsets | trailer of 32 bytes
 *
 * Numbers are big-endian. An object begins with a byte of kind and length, 15 meaning that an integer object with the
 * length follows. A dictionary is the references to its keys, then those to its values. */

struct bplist {
    struct sl_bytes bytes;
    uint8_t offset_size, reference_size;
    uint64_t count, offsets; /* number of objects; position of the table of their offsets */
};

/* Reads a big-endian number of `size` bytes, at most eight. */
static uint64_t read_number(struct sl_reader *r, unsigned size)
{
    uint64_t value = 0;
    while (size--)
        value = value << 8 | sl_read_u8(r);
    return value;
}

/* Reads the first bytes of object `index`, its kind and length, and leaves `r` behind them, at its contents. False if it is damaged. */
static bool read_object(const struct bplist *p, uint64_t index, struct sl_reader *r, uint8_t *kind, uint64_t *length)
{
    *r = sl_reader(p->bytes, true);
    if (index >= p->count)
        return false;
    sl_reader_seek(r, p->offsets + index * p->offset_size);
    uint64_t offset = read_number(r, p->offset_size);
    if (r->failed)
        return false;
    sl_reader_seek(r, offset);
    uint8_t head = sl_read_u8(r);
    *kind = head >> 4;
    *length = head & 15;
    if (*length == 15) { /* the length follows as an object of its own: an integer (kind 1) of 1, 2, 4 or 8 bytes */
        uint8_t integer = sl_read_u8(r);
        if (integer >> 4 != 1 || (integer & 15) > 3)
            return false;
        *length = read_number(r, 1u << (integer & 15));
    }
    return !r->failed;
}

/* Reads an ASCII text (kind 5); empty for other kinds of objects. */
static struct sl_str read_text(const struct bplist *p, uint64_t index)
{
    struct sl_reader r;
    uint8_t kind;
    uint64_t length;
    if (!read_object(p, index, &r, &kind, &length) || kind != 5)
        return (struct sl_str){NULL, 0};
    struct sl_bytes text = sl_read_bytes(&r, length);
    return (struct sl_str){(const char *)text.data, text.size};
}

/* Finds the value of DBGOriginalUUID. The trailer at the end of the file has the number of the top object and the position of the table of
 * offsets. The top object must be a dictionary (kind 13): references to all keys, then to all values in the same order, so two readers go
 * through both. Any other form does not match the schema. */
static enum sl_code parse_binary(struct sl_bytes bytes, struct sl_debug_id *original, struct sl_error *error)
{
    enum { TRAILER = 32, UNUSED = 6 }; /* bytes; UNUSED: the first ones of the trailer */
    struct bplist p = {.bytes = bytes};
    struct sl_reader r = sl_reader(bytes, true), values;
    uint8_t kind;
    uint64_t length;
    if (bytes.size < TRAILER)
        return no_schema(error);
    sl_reader_seek(&r, bytes.size - TRAILER + UNUSED);
    p.offset_size = sl_read_u8(&r);
    p.reference_size = sl_read_u8(&r);
    p.count = sl_read_u64(&r);
    uint64_t top = sl_read_u64(&r);
    p.offsets = sl_read_u64(&r);
    if (!p.offset_size || p.offset_size > 8 || !p.reference_size || p.reference_size > 8 || p.offsets > bytes.size ||
        p.count > (bytes.size - p.offsets) / p.offset_size || !read_object(&p, top, &r, &kind, &length) || kind != 13 ||
        length > sl_reader_left(&r) / p.reference_size / 2)
        return no_schema(error);
    values = r;
    sl_reader_skip(&values, length * p.reference_size);
    for (uint64_t i = 0; i < length; i++) {
        uint64_t key = read_number(&r, p.reference_size), value = read_number(&values, p.reference_size);
        if (sl_str_equal(read_text(&p, key), sl_str(wanted_key)))
            return parse_uuid(read_text(&p, value), original, error);
    }
    return no_schema(error);
}

enum sl_code sl_uuidmap_parse(struct sl_bytes bytes, struct sl_debug_id *original, struct sl_error *error)
{
    static const char magic[] = "bplist00";
    *original = (struct sl_debug_id){0};
    if (bytes.size > MAX_FILE) /* far too large for a UUID map */
        return sl_fail(error, SL_MALFORMED, "Invalid XML");
    if (bytes.size >= sizeof magic - 1 && memcmp(bytes.data, magic, sizeof magic - 1) == 0)
        return parse_binary(bytes, original, error);
    return parse_xml(bytes, original, error);
}
