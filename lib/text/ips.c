/* Crash reports of Apple's systems as JSON (`.ips`), anywhere in a text ("Interpreting the JSON format of a crash report",
 * developer.apple.com): a line with the header, then the body, an object on one or on many lines.
 *
 *     {"app_name":"Demo","bug_type":"309", ...}
 *     {"threads":[{"frames":[{"imageOffset":16240,"imageIndex":0}, ...]}], "usedImages":[{"base":4366,"uuid":"..","name":"Demo"}]}
 *
 * A frame is an object with an offset and the number of its image. The images often follow the threads, so the image of a frame is looked
 * up when the whole report was read (sl_text_resolve_ips). Names are members that are added in front of the brace that ends the frame's
 * object, so that brace is the piece of text that stands for the frame. */
#include "text/impl.h"

#include "base/grow.h"
#include "base/json.h"

/* ---- tokens ---- */

/* Returns the text of a JSON string, which is given with its quotes, in the arena t->made. Empty if it is no string, not UTF-8, or when out
 * of memory (t->out_of_memory). */
static struct sl_str unquote(struct sl_text *t, struct sl_str quoted)
{
    struct sl_json j = sl_json(quoted, &t->made, false);
    struct sl_str text;
    if (sl_json_peek(&j) != SL_JSON_STRING || !sl_json_string(&j, &text) || !sl_str_is_utf8(text))
        return (struct sl_str){NULL, 0};
    char *copy = sl_arena_strndup(&t->made, text.data, text.size);
    t->out_of_memory |= !copy;
    return copy ? (struct sl_str){copy, text.size} : (struct sl_str){NULL, 0};
}

/* Returns the first byte behind a JSON string whose opening quote is at `at`; NULL if the string does not end before the end of the
 * line. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '\n'; at++)
        if (*at == '\\')
            at++;
        else if (*at == '"')
            return at + 1;
    return NULL;
}

/* Stores the value of member t->ips.key, a string or number as written, in the current object, if it is a member that frames or images
 * need. */
static void set_member(struct sl_text *t, struct sl_str value)
{
    struct sl_text_ips_object *o = &t->ips.object;
    const struct {
        const char *key;
        struct sl_str *text;
        uint64_t *number;
        bool *is_known;
    } rows[] = {
        {"imageOffset", NULL, &o->offset, &o->has_offset},
        {"imageIndex", NULL, &o->index, &o->has_index},
        {"sourceLine", NULL, &o->line, &o->has_line},
        {"base", NULL, &o->base, &o->has_base},
        {"symbol", &o->symbol, NULL, NULL},
        {"sourceFile", &o->file, NULL, NULL},
        {"uuid", &o->uuid, NULL, NULL},
        {"path", &o->path, NULL, NULL},
        {"name", &o->name, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sl_str_equal(t->ips.key, sl_str(rows[i].key)) && rows[i].text)
            *rows[i].text = unquote(t, value);
        else if (sl_str_equal(t->ips.key, sl_str(rows[i].key)))
            *rows[i].is_known = sl_parse_u64(value, rows[i].number);
    t->ips.key = (struct sl_str){NULL, 0};
}

/* ---- objects ---- */

/* Adds an image (a loaded module) of the report. An image whose uuid does not have 32 digits has no module, but is added, too: frames refer
 * to images by their numbers. */
static void add_image(struct sl_text *t, const struct sl_text_ips_object *o)
{
    struct sl_text_ips *ips = &t->ips;
    char id[40];
    size_t size = 0;
    for (size_t i = 0; i < o->uuid.size && size < 32; i++)
        if (o->uuid.data[i] != '-')
            id[size++] = o->uuid.data[i];
    if (!sl_grow_in_arena(&t->made, &ips->images, &ips->image_capacity, ips->image_count + 1, sizeof *ips->images)) {
        t->out_of_memory = true;
        return;
    }
    uint32_t module = SL_TEXT_NO_MODULE;
    if (size == 32)
        module = sl_text_module(t, o->path.size ? o->path : o->name, (struct sl_str){id, size});
    if (module != SL_TEXT_NO_MODULE)
        t->modules[module].is_macho = true;
    ips->images[ips->image_count++] = (struct sl_text_ips_image){ips->report, module};
}

/* Makes the frame of the current object, which ends with the brace at `at`. The first frame of an array has the address of an instruction,
 * the others have return addresses. */
static void make_frame(struct sl_text *t, const char *at, struct sl_text_piece *piece)
{
    const struct sl_text_ips_object *o = &t->ips.object;
    struct sl_text_frame *f = &piece->native;
    *f = (struct sl_text_frame){.format = SL_TEXT_APPLE,
                                .base = SL_TEXT_OF_IMAGE,
                                .is_json = true,
                                .is_first = t->ips.frame == 0,
                                .is_return = t->ips.frame > 0,
                                .is_named = o->symbol.size > 0,
                                .address = o->offset,
                                .module = SL_TEXT_NO_MODULE,
                                .image = {t->ips.report, (uint32_t)o->index, t->ips.first_image},
                                .symbol = o->symbol,
                                .path = o->file,
                                .line = o->has_line && o->line <= UINT32_MAX ? (uint32_t)o->line : 0};
    /* the parts of the frame's text: names are inserted in front of the brace (`tail`), and nothing is replaced (`cut` is empty) */
    f->stem = f->cut = f->head = (struct sl_str){at, 0};
    f->tail = (struct sl_str){at, 1};
    f->end = (struct sl_str){at + 1, 0};
    t->ips.frame++;
    piece->kind = SL_TEXT_NATIVE;
    piece->format = SL_TEXT_APPLE;
}

/* Ends the current object; true if it is a frame (has imageOffset and imageIndex). If it is an image (has a base), adds it. Objects with
 * objects or arrays inside (not `is_flat`) are neither frames nor images. */
static bool end_object(struct sl_text *t)
{
    const struct sl_text_ips_object *o = &t->ips.object;
    bool is_frame = o->is_flat && o->has_offset && o->has_index && o->index < UINT32_MAX;
    if (o->is_flat && !is_frame && o->has_base)
        add_image(t, o);
    return is_frame;
}

/* Begins to collect the members of an object. `is_flat` is false for an array, and for an object or array that goes on after one inside
 * it. */
static void begin_object(struct sl_text *t, bool is_flat)
{
    t->ips.object = (struct sl_text_ips_object){.is_flat = is_flat};
    t->ips.key = (struct sl_str){NULL, 0};
}

/* ---- the report ---- */

/* Reads a key with its colon, which is kept in t->ips.key, or the value of the last key, a string, number or word (true, false, null).
 * Returns the first byte behind it; NULL if it is none of these. */
static const char *read_token(struct sl_text *t, const char *at, const char *end)
{
    const char *begin = at, *after;
    if (*at == '"') {
        if (!(at = string_end(at, end)))
            return NULL;
        for (after = at; after < end && sl_is_blank(*after); after++)
            ;
        bool is_key = after < end && *after == ':';
        if (is_key)
            t->ips.key = (struct sl_str){begin + 1, (size_t)(at - begin) - 2};
        else
            set_member(t, (struct sl_str){begin, (size_t)(at - begin)});
        return is_key ? after + 1 : at;
    }
    while (at < end &&
           (sl_is_digit(*at) || (*at >= 'a' && *at <= 'z') || *at == 'E' || *at == '-' || *at == '+' || *at == '.'))
        at++;
    if (at == begin)
        return NULL;
    bool is_word = *begin == 't' || *begin == 'f' || *begin == 'n', is_number = *begin == '-' || sl_is_digit(*begin);
    if (!is_word && !is_number)
        return NULL;
    set_member(t, (struct sl_str){begin, (size_t)(at - begin)});
    return at;
}

/* Reads the body of a report up to the next frame, the end of the report or that of the line, and removes that from `*rest`. False if it is
 * no JSON: then the report, which is truncated, has ended, and the line may be any other text. */
static bool read_body(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    struct sl_text_ips *ips = &t->ips;
    const char *at = rest->data, *end = at + rest->size;
    bool is_frame = false;
    while (at && at < end && ips->depth && !is_frame) {
        switch (*at) {
        case ' ':
        case '\t':
        case '\r':
        case '\n':
        case ',': at++; break;
        case '{':
        case '[':
            begin_object(t, *at == '{');
            ips->frame = *at == '[' ? 0 : ips->frame; /* each array of frames is another stack */
            ips->depth++;
            at++;
            break;
        case ']':
        case '}':
            is_frame = *at == '}' && end_object(t);
            ips->depth--;
            at += !is_frame; /* the brace of a frame is a piece of its own */
            if (!is_frame)
                begin_object(t, false); /* the rest of the object around it: no longer flat */
            break;
        default: at = read_token(t, at, end); break;
        }
    }
    if (!at) {
        ips->depth = 0;
        return false;
    }
    piece->text = (struct sl_str){rest->data, (size_t)(at - rest->data)};
    if (is_frame && !piece->text.size) {
        make_frame(t, at, piece);
        piece->text.size = 1;
        begin_object(t, false);
    } else if (is_frame) { /* the text in front of the brace comes first, then the brace is read again */
        ips->depth++;
    }
    *rest = (struct sl_str){piece->text.data + piece->text.size, rest->size - piece->text.size};
    return true;
}

/* True for the header line of a report: an object on one line with the members "bug_type" and "timestamp". */
static bool is_header(struct sl_str line)
{
    line = sl_str_trimmed(line);
    return sl_str_starts(line, SL_STR("{\"")) && sl_str_ends(line, SL_STR("}")) &&
           memmem(line.data, line.size, "\"bug_type\"", 10) && memmem(line.data, line.size, "\"timestamp\"", 11);
}

bool sl_text_next_ips(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    struct sl_text_ips *ips = &t->ips;
    if (ips->depth && read_body(t, rest, piece))
        return true;
    /* the test saves trimming other lines: a header begins with a brace, a body follows a header */
    struct sl_str trimmed =
        rest->data[0] == '{' || ips->follows_header ? sl_str_trimmed(*rest) : (struct sl_str){NULL, 0};
    if (ips->follows_header && trimmed.size && trimmed.data[0] == '{') { /* the body begins */
        const char *brace = trimmed.data;
        ips->depth = 1;
        ips->report++;
        ips->first_image = (uint32_t)ips->image_count;
        begin_object(t, false);
        ips->follows_header = false;
        piece->text = (struct sl_str){rest->data, (size_t)(brace + 1 - rest->data)};
        *rest = (struct sl_str){brace + 1, rest->size - piece->text.size};
        return true;
    }
    /* blank lines may separate header and body */
    ips->follows_header = (ips->follows_header && !trimmed.size) || (trimmed.size && is_header(trimmed));
    return false;
}

void sl_text_resolve_ips(const struct sl_text *t, struct sl_text_frame *f)
{
    uint64_t at = (uint64_t)f->image.first + f->image.index;
    if (at < t->ips.image_count && t->ips.images[at].report == f->image.report)
        f->module = t->ips.images[at].module;
}

size_t sl_text_complete_size(struct sl_str text)
{
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_str rest = text, line;
    size_t begin = text.size;
    if (!text.size || !memmem(text.data, text.size, "\"bug_type\"", 10)) /* no header of a report */
        return text.size;
    sl_text_begin(&reader);
    while (sl_text_next_line(&rest, &line)) {
        bool was_in_report = reader.ips.depth || reader.ips.follows_header;
        const char *at = line.data;
        while (line.size && sl_text_next_ips(&reader, &line, &piece))
            ;
        bool is_in_report = reader.ips.depth || reader.ips.follows_header;
        begin = !is_in_report   ? text.size
                : was_in_report ? begin
                                : (size_t)(at - text.data); /* where the report begins */
    }
    sl_text_end(&reader);
    return begin;
}
