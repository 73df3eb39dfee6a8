/* The warning about missing symbols, source maps or mappings. */
#include "cli/missing.h"

#include "base/grow.h"
#include "cli/cli.h"

enum { MAX_SHOWN = 4 }; /* how many texts of a list the warning shows; further ones are counted: "and 7 more" */

void missing_init(struct missing_report *report, const struct missing_words *words)
{
    *report = (struct missing_report){.words = words};
}

void missing_free(struct missing_report *report)
{
    sl_map_free(&report->things.known);
    sl_map_free(&report->found.known);
    sl_map_free(&report->locations.known);
    sl_map_free(&report->failures.known);
    sl_arena_free(&report->arena);
}

/* Adds `text` to a list of the report, once for each `key`; copies both. False when the list contains the key, or out of memory. */
static bool list_add(struct missing_report *report, struct missing_list *list, struct sl_str key, struct sl_str text)
{
    if (sl_map_get(&list->known, key))
        return false;
    struct missing_item item = {{sl_arena_strndup(&report->arena, key.data, key.size), key.size},
                                {sl_arena_strndup(&report->arena, text.data, text.size), text.size}};
    if (!item.key.data || !item.text.data ||
        !sl_grow_in_arena(&report->arena, &list->items, &list->capacity, list->count + 1, sizeof *list->items) ||
        !sl_map_put(&list->known, item.key, report)) /* a set: the value only must not be NULL */
        return false;
    list->items[list->count++] = item;
    return true;
}

/* Adds "name (id)", or "name" without an id, to a list of the report. False when it is there already, or out of memory. */
static bool add_thing(struct missing_report *report, struct missing_list *list, struct sl_str name, struct sl_str id)
{
    struct sl_buf text = {0};
    sl_buf_str(&text, name.size ? name : SL_STR("(no name)"));
    if (id.size)
        sl_buf_printf(&text, " (" SL_STR_FMT ")", SL_STR_ARG(id));
    bool is_new = !text.failed && list_add(report, list, sl_buf_view(&text), sl_buf_view(&text));
    sl_buf_free(&text);
    return is_new;
}

bool missing_add(struct missing_report *report, struct sl_str name, struct sl_str id)
{
    return add_thing(report, &report->things, name, id);
}

bool missing_found(struct missing_report *report, struct sl_str name, struct sl_str id)
{
    return add_thing(report, &report->found, name, id);
}

void missing_count(struct missing_report *report, size_t missing, size_t total)
{
    report->missing += missing;
    report->total += total;
}

void missing_add_location(struct missing_report *report, struct sl_str location)
{
    list_add(report, &report->locations, location, location);
}

bool missing_failure(struct missing_report *report, struct sl_str location, struct sl_str why)
{
    struct sl_buf text = {0};
    sl_buf_str(&text, location);
    sl_buf_cstr(&text, ": ");
    sl_buf_str(&text, why);
    bool is_new = !text.failed && list_add(report, &report->failures, location, sl_buf_view(&text));
    sl_buf_free(&text);
    return is_new;
}

void missing_add_failures(struct missing_report *report, const struct missing_report *from)
{
    for (size_t i = 0; i < from->failures.count; i++)
        list_add(report, &report->failures, from->failures.items[i].key, from->failures.items[i].text);
}

bool missing_is_any(const struct missing_report *report)
{
    return report->missing || report->things.count;
}

/* Appends at most MAX_SHOWN texts of a list: "a, b, c, d and 7 more". */
static void put_list(const struct missing_list *list, struct sl_buf *out)
{
    size_t shown = list->count < MAX_SHOWN ? list->count : MAX_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        sl_buf_cstr(out, i ? ", " : "");
        output_put_safe(out, list->items[i].text);
    }
    if (list->count > shown)
        sl_buf_printf(out, " and %zu more", list->count - shown);
}

void missing_put(const struct missing_report *report, struct sl_buf *out)
{
    const struct missing_words *words = report->words;
    const char *advice = !report->locations.count ? words->no_location : report->advised ? NULL : words->advice;
    if (!missing_is_any(report))
        return;
    sl_buf_cstr(out, "warning: ");
    if (words->counts_found)
        sl_buf_printf(out, "%zu of %zu %s resolved; no %s%s", report->total - report->missing, report->total,
                      words->unit, words->wanted, report->things.count ? " for " : "");
    else
        sl_buf_printf(out, "no %s for %zu of %zu %s%s", words->wanted, report->missing, report->total, words->unit,
                      report->things.count ? ": " : "");
    put_list(&report->things, out);
    if (report->locations.count) {
        sl_buf_cstr(out, "; searched ");
        put_list(&report->locations, out);
    }
    if (report->failures.count) {
        sl_buf_cstr(out, "; failed: ");
        put_list(&report->failures, out);
    }
    if (advice)
        sl_buf_printf(out, "; %s", advice);
    sl_buf_u8(out, '\n');
}

void missing_print(const struct missing_report *report, const struct options *o)
{
    struct sl_buf line = {0};
    missing_put(report, &line);
    if (line.size && !line.failed && !option_given(o, "quiet") && output_flush())
        print_note(SL_STR_FMT, SL_STR_ARG(sl_buf_view(&line)));
    sl_buf_free(&line);
}

int missing_status(const struct missing_report *report, const struct options *o, int status)
{
    return !status && option_given(o, "fail-on-missing") && missing_is_any(report) ? STATUS_NOTHING : status;
}
