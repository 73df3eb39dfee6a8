/* Reads the symbol sources that a request names, as JSON: a list of them, or one Sentry source. */
#include "api/sources.h"

#include "api/source_lists.h"
#include "base/buf.h"

/* Sets s->problem to the first error in `problems`, as "<path>: <text>". Skips warnings; without an error, changes nothing. */
static void report_first_error(struct sl_fields *s, const struct value_problems *problems)
{
    size_t i = 0;
    while (i < problems->count && problems->items[i].warning)
        i++;
    if (i == problems->count)
        return;
    struct sl_buf text = {0};
    sl_buf_printf(&text, SL_STR_FMT ": " SL_STR_FMT, SL_STR_ARG(problems->items[i].path),
                  SL_STR_ARG(problems->items[i].what));
    s->problem = sl_buf_move_to_arena(&text, s->json->arena).data;
}

static void sources_take(struct request_sources *into, const struct source_list *list)
{
    into->items = list->items;
    into->count = list->count;
    into->number = list->number;
}

/* Returns the part of the document that the reader has not read yet. */
static struct sl_str sources_rest(const struct sl_json *json)
{
    return (struct sl_str){json->text.data + json->at, json->text.size - json->at};
}

/* Returns which sources requests may name, according to the configuration. The policy's texts are views of it: it must live as long. */
static struct source_policy make_policy(const struct config *config)
{
    return (struct source_policy){
        .filesystem = config->allow_filesystem_sources_in_requests,
        .ambient_credentials = config->allow_ambient_credentials_in_requests,
        .internal_sentry = config->allow_internal_sentry_sources_in_requests,
        .sentry_hosts = config->sentry_source_hosts,
        .sentry_host_count = config->sentry_source_host_count,
    };
}

/* Reads a list of sources; false: `s` says why. Clients send the same list again and again: a list whose text is cached is not parsed.
 * into->number is the number of the cached list, under which results of searches are cached; 0 if the list is not cached. */
bool request_sources_read(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct request_sources *into = out;
    (void)at; /* problems name the list "sources" */
    const struct config *config = into->config;
    struct source_policy policy = make_policy(config);
    struct value_problems problems = {.arena = s->json->arena};
    struct source *sources;
    size_t size;
    bool is_array = sl_json_peek(s->json) == SL_JSON_ARRAY; /* no other value is looked up or cached */
    struct sl_str text = sources_rest(s->json);
    const struct source_list *list = is_array ? source_lists_find(text, config, s->json->arena, &size) : NULL;
    if (list) {
        s->json->at += size; /* skips the text of the list */
        sources_take(into, list);
        return true;
    }
    enum sl_code code = source_read_list(s->json, "sources", &policy, &sources, &into->count, &problems);
    into->items = sources;
    into->number = 0;
    /* cut off what follows the list: `text` now is what source_read_list has read */
    text.size -= sources_rest(s->json).size;
    if (code != SL_OK)
        report_first_error(s, &problems);
    else if (is_array && (list = source_lists_put(text, &policy, config, s->json->arena)))
        sources_take(into, list);
    /* a failure without a problem is a lack of memory: sl_json_no_memory records that, and returns false */
    return code == SL_OK || (!s->problem && sl_json_no_memory(s->json));
}

bool request_sources_read_into(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                               const struct source **items, size_t *count, uint64_t *number)
{
    struct request_sources sources = {.config = config};
    if (!request_sources_read(s, at, &sources))
        return false;
    *items = sources.items;
    *count = sources.count;
    if (number)
        *number = sources.number;
    return true;
}

bool request_sources_add_configured(const struct config *config, struct sl_arena *arena, const struct source **items,
                                    size_t *count)
{
    size_t configured = config->source_count;
    struct source *all = SL_ARENA_ARRAY(arena, struct source, configured + *count + 1); /* + 1: never an empty array */
    if (!all)
        return false;
    for (size_t i = 0; i < configured; i++)
        all[i] = config->sources[i];
    for (size_t i = 0; i < *count; i++)
        all[configured + i] = (*items)[i];
    *items = all;
    *count += configured;
    return true;
}

bool request_sentry_read(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                         struct source *source)
{
    struct source_policy policy = make_policy(config);
    struct value_problems problems = {.arena = s->json->arena};
    enum sl_code code = source_read_sentry(s->json, at->key.data, &policy, source, &problems);
    if (code != SL_OK)
        report_first_error(s, &problems);
    /* a failure without a problem is a lack of memory: sl_json_no_memory records that, and returns false */
    return code == SL_OK || (!s->problem && sl_json_no_memory(s->json));
}
