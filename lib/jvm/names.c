/* Names of files of classes, and of types in JVM descriptors such as "(ILa/B;)V". */
#include "jvm/names.h"

/* ---- files ---- */

/* Returns the text after the last character `c`, or the whole text if `c` does not occur. */
static struct sl_str behind_last(struct sl_str text, char c)
{
    const char *found = text.size ? memrchr(text.data, c, text.size) : NULL;
    return found ? (struct sl_str){found + 1, text.size - (size_t)(found + 1 - text.data)} : text;
}

/* Removes the part up to the next '$' from `*text`, with the '$', and returns it in `*segment`; false when nothing is left. */
static bool next_segment(struct sl_str *text, struct sl_str *segment)
{
    if (!text->data)
        return false;
    const char *dollar = text->size ? memchr(text->data, '$', text->size) : NULL;
    *segment = (struct sl_str){text->data, dollar ? (size_t)(dollar - text->data) : text->size};
    *text = dollar ? (struct sl_str){dollar + 1, text->size - segment->size - 1} : (struct sl_str){NULL, 0};
    return true;
}

struct sl_str sl_jvm_outermost(struct sl_str class)
{
    struct sl_str left = behind_last(class, '.'), name = {"", 0};
    next_segment(&left, &name);
    return name;
}

void sl_jvm_file_name(struct sl_str class, struct sl_str reference, struct sl_str *stem, struct sl_str *suffix)
{
    struct sl_str name = behind_last(class, '.'), segment;
    const char *dot = reference.size ? memrchr(reference.data, '.', reference.size) : NULL;
    struct sl_str left = name;
    *stem = (struct sl_str){"", 0};
    next_segment(&left, stem);
    *suffix = dot ? (struct sl_str){dot, reference.size - (size_t)(dot - reference.data)} : SL_STR(".java");
    /* Kotlin compiles the functions of File.kt into a class FileKt, which may be any of the names that `$` separates */
    for (left = name; next_segment(&left, &segment);)
        if (segment.size > 2 && sl_str_ends(segment, SL_STR("Kt"))) {
            *stem = (struct sl_str){segment.data, segment.size - 2};
            *suffix = SL_STR(".kt");
            return;
        }
}

/* ---- types ---- */

struct jvm_type_names {
    struct sl_str text; /* the rest of the descriptor */
    const struct sl_jvm_mapper *const *mappers;
    size_t mapper_count;
};

/* A type of a descriptor. */
struct jvm_type {
    struct sl_str name;  /* "int"; of a class "a/B" */
    bool slashes;        /* it is a class, whose name has slashes instead of dots */
    unsigned dimensions; /* of an array */
};

static const struct {
    char letter;
    struct sl_str name;
} primitives[] = {
    {'Z', {"boolean", 7}}, {'B', {"byte", 4}},  {'C', {"char", 4}},   {'S', {"short", 5}}, {'I', {"int", 3}},
    {'J', {"long", 4}},    {'F', {"float", 5}}, {'D', {"double", 6}}, {'V', {"void", 4}},
};

/* Reads the next type of a descriptor; false when there is none. If the name of a class is not terminated, false, and `*bad` is set.
 * Letters that are no type are skipped. */
static bool next_type(struct jvm_type_names *t, struct jvm_type *type, bool *bad)
{
    *type = (struct jvm_type){.dimensions = 0};
    while (t->text.size) {
        char c = *t->text.data++;
        t->text.size--;
        if (c == '[') {
            type->dimensions++;
        } else if (c == 'L') {
            const char *end = t->text.size ? memchr(t->text.data, ';', t->text.size) : NULL;
            *bad |= !end;
            if (!end)
                return false;
            type->name = (struct sl_str){t->text.data, (size_t)(end - t->text.data)};
            type->slashes = true;
            t->text = (struct sl_str){end + 1, t->text.size - type->name.size - 1};
            return true;
        }
        for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
            if (c == primitives[i].letter) {
                type->name = primitives[i].name;
                return true;
            }
    }
    return false;
}

/* Appends the original name of the class `name`, "a/B": that of the first mapping that contains it, else the name itself with dots. */
static void put_class(const struct jvm_type_names *t, struct sl_str name, struct sl_buf *out)
{
    size_t start = out->size;
    sl_buf_str(out, name);
    for (size_t i = start; i < out->size; i++)
        if (out->data[i] == '/')
            out->data[i] = '.';
    struct sl_str dotted = {(const char *)out->data + start, out->size - start}, original;
    for (size_t i = 0; name.size && !out->failed && i < t->mapper_count; i++)
        if (sl_jvm_mapper_class(t->mappers[i], dotted, &original)) {
            out->size = start;
            sl_buf_str(out, original);
            return;
        }
}

/* Appends a type as Java writes it: its name, then `[]` for each dimension of an array. */
static void put_type(const struct jvm_type_names *t, const struct jvm_type *type, struct sl_buf *out)
{
    if (type->slashes)
        put_class(t, type->name, out);
    else
        sl_buf_str(out, type->name);
    for (unsigned i = 0; i < type->dimensions; i++)
        sl_buf_cstr(out, "[]");
}

bool sl_jvm_signature(struct sl_str descriptor, const struct sl_jvm_mapper *const *mappers, size_t count,
                      struct sl_buf *readable, struct sl_buf *parameters)
{
    /* in: types of parameters, back: the return type */
    struct jvm_type_names in = {.mappers = mappers, .mapper_count = count}, back = in;
    struct jvm_type type, returned;
    size_t start = readable->size, keys_start = parameters ? parameters->size : 0;
    bool bad = false, any = false;
    const char *close = descriptor.size ? memrchr(descriptor.data, ')', descriptor.size) : NULL;
    if (!close || descriptor.data[0] != '(')
        return false;
    in.text = (struct sl_str){descriptor.data + 1, (size_t)(close - descriptor.data) - 1};
    back.text = (struct sl_str){close + 1, descriptor.size - (size_t)(close + 1 - descriptor.data)};
    if (!next_type(&back, &returned, &bad))
        return false;
    sl_buf_u8(readable, '(');
    for (; next_type(&in, &type, &bad); any = true) {
        if (parameters && any)
            sl_buf_u8(parameters, ',');
        if (parameters)
            put_type(&in, &type, parameters);
        sl_buf_cstr(readable, any ? ", " : "");
        put_type(&in, &type, readable);
    }
    sl_buf_u8(readable, ')');
    if (returned.slashes || returned.dimensions || !sl_str_equal(returned.name, SL_STR("void"))) {
        sl_buf_cstr(readable, ": ");
        put_type(&back, &returned, readable);
    }
    if (bad) {
        readable->size = start;
        if (parameters)
            parameters->size = keys_start;
    }
    return !bad;
}
