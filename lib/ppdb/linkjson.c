/* Reads the JSON of Source Link leniently, as people write it by hand: comments and trailing commas are accepted. Only the member
 * `documents` is used. */
#include "ppdb/impl.h"

#include "base/grow.h"
#include "base/json.h"

struct ppdb_link_rules {
    struct sl_arena *arena;
    struct sl_ppdb_link *items;
    size_t count, capacity;
};

/* Adds a rule. False, and the JSON reader is set to failed, if there are too many rules or memory is short. */
static bool linkjson_add(struct sl_json *j, struct ppdb_link_rules *rules, struct sl_ppdb_link link)
{
    if (rules->count == SL_PPDB_MAX_LINKS)
        return sl_json_fail(j, "too many rules");
    if (!sl_grow_in_arena(rules->arena, &rules->items, &rules->capacity, rules->count + 1, sizeof *rules->items))
        return sl_json_no_memory(j);
    rules->items[rules->count++] = link;
    return true;
}

/* Reads the rules, members of an object: pattern and URL. Skips those whose value is not a string. Problems set j->failed. */
static void linkjson_read_documents(struct sl_json *j, struct ppdb_link_rules *rules)
{
    struct sl_ppdb_link link;
    if (sl_json_peek(j) != SL_JSON_OBJECT)
        sl_json_fail(j, "documents is not an object");
    else
        sl_json_enter(j);
    while (!j->failed && sl_json_next(j, &link.pattern))
        if (sl_json_text(j, &link.url))
            linkjson_add(j, rules, link);
}

enum sl_code sl_ppdb_links_parse(struct sl_str json, struct sl_arena *arena, struct sl_ppdb_link **links, size_t *count,
                                 struct sl_error *error)
{
    struct ppdb_link_rules rules = {.arena = arena};
    struct sl_json j = sl_json(json, arena, true); /* true: lenient */
    struct sl_str key;
    bool found = false;
    *links = NULL;
    *count = 0;
    if (sl_json_peek(&j) != SL_JSON_OBJECT)
        sl_json_fail(&j, "no object");
    else
        sl_json_enter(&j);
    while (!j.failed && sl_json_next(&j, &key)) {
        bool documents = sl_str_equal(key, SL_STR("documents"));
        found = found || documents;
        if (documents)
            linkjson_read_documents(&j, &rules);
        else
            sl_json_skip(&j);
    }
    if (!sl_json_end(&j) || !found)
        return j.busy ? sl_fail(error, SL_BUSY, "out of memory")
                      : sl_fail(error, SL_MALFORMED, "invalid source link JSON");
    *links = rules.items;
    *count = rules.count;
    return SL_OK;
}
