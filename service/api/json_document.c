/* Reads JSON bodies of requests, and finds out why one is refused. */
#include "api/json_document.h"

#include "base/buf.h"

const struct json_failure json_no_memory = {503, "not enough memory for this request"};

/* Returns the failure of a JSON parser that has failed: its status, and "<reason> at line L column C". */
static struct json_failure json_failure(const struct sl_json *j)
{
    struct sl_json_position position = sl_json_position(j->text, j->at);
    struct sl_buf text = {0};
    /* busy: an allocation failed, for lack of memory or because of the arena's limit */
    if (j->busy && j->arena->over_limit)
        return (struct json_failure){413, "the request takes too much memory for its size"};
    if (j->busy)
        return json_no_memory;
    sl_buf_printf(&text, "%s at line %zu column %zu", j->problem, position.line, position.column);
    const char *problem = sl_buf_move_to_arena(&text, j->arena).data;
    return problem ? (struct json_failure){400, problem} : json_no_memory;
}

/* Returns why the document was refused: too many items (413), malformed JSON (400), or valid JSON with a wrong member (422). To tell 422
 * from 400, the rest of the document is parsed as well, without keeping anything. */
static struct json_failure find_failure(const struct sl_fields *s)
{
    if (s->too_much)
        return (struct json_failure){413, s->too_much};
    if (s->json->failed)
        return json_failure(s->json);
    struct sl_json whole = sl_json(s->json->text, s->json->arena, false);
    sl_json_skip(&whole);
    if (!sl_json_end(&whole))
        return json_failure(&whole);
    return (struct json_failure){422, s->problem};
}

bool json_document(struct sl_str text, struct sl_arena *arena, bool (*read)(struct sl_fields *s), void *context,
                   struct json_failure *failure)
{
    /* PER_BYTE: bytes of the arena per byte of the text; ALWAYS: the arena allocates whole chunks, even for a short text */
    enum { PER_BYTE = 3, ALWAYS = 1 << 20 };
    struct sl_json j = sl_json(text, arena, false);
    struct sl_fields s = {.json = &j, .context = context};
    size_t limit = arena->limit;
    arena->limit = arena->used + PER_BYTE * text.size + ALWAYS;
    bool good = read(&s) && sl_json_end(&j);
    if (!good)
        *failure = find_failure(&s);
    arena->limit = limit; /* the caller's again */
    return good;
}

/* ---- shared readers ---- */

/* Reads an array of strings, of which only the JSON text is kept, to be written again as it is. An empty array counts as absent. */
bool json_raw_texts(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str key, text, *kept = out;
    struct sl_json_path position = {.up = at};
    size_t begin = s->json->at;
    bool escaped;
    if (!sl_fields_open(s, at, SL_JSON_ARRAY, "a sequence"))
        return false;
    for (; sl_json_next(s->json, &key); position.index++)
        if (sl_json_peek(s->json) != SL_JSON_STRING)
            return sl_fields_text(s, &position, &text); /* fails: not a string */
        else
            sl_json_raw_string(s->json, &text, &escaped);
    if (position.index)
        *kept = (struct sl_str){s->json->text.data + begin, s->json->at - begin};
    return !s->json->failed;
}

/* Reads the order of frames in traces: sets `*out` to true for callee_first, to false for caller_first. */
bool json_callee_first(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &text))
        return false;
    *(bool *)out = sl_str_equal(text, SL_STR("callee_first"));
    return *(bool *)out || sl_str_equal(text, SL_STR("caller_first")) ||
           sl_fields_fail(s, at, where, "unknown variant, expected `callee_first` or `caller_first`");
}

void json_member_number(struct sl_json_writer *w, const char *key, struct sl_opt_u64 number)
{
    if (number.set)
        sl_json_member_u64(w, key, number.value);
}
