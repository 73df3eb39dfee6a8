/* Scopes of scripts: whatever is accepted nests, is found again and has names; what is kept of a damaged script too. */
#include "js/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

static struct sl_str original(void *arg, uint32_t at, struct sl_str text)
{
    const struct sl_js_line_index *places = arg;
    struct sl_js_position place = sl_js_line_index_find(places, at);
    must(place.line <= at && place.column <= 2 * at);
    return at % 2 ? text : SL_STR("original");
}

static void nests(const struct sl_js_scopes *scopes, uint32_t i)
{
    const struct sl_js_scope *scope = &scopes->items[i];
    must(scope->start < scope->end && scope->end <= scopes->text.size);
    must(i == 0 || scopes->items[i - 1].start < scope->start);
    uint32_t around = i ? i - 1 : SL_JS_NONE;
    while (around != SL_JS_NONE && scopes->items[around].end <= scope->start)
        around = scopes->items[around].outer;
    must(scope->outer == around);
    must(around == SL_JS_NONE || scopes->items[around].end >= scope->end);
}

static uint32_t read_scopes(struct sl_str text, bool partial, bool compat)
{
    struct sl_js_scopes scopes;
    struct sl_js_line_index places;
    struct sl_budget budget;
    struct sl_buf name = {0};
    sl_budget_init(&budget, text.size);
    struct sl_account account = {.budget = &budget};
    enum sl_code code = sl_js_scopes_read(&scopes, text, partial, &budget, NULL);
    must(code == SL_OK || (code == SL_MALFORMED && !partial && !scopes.count));
    must(sl_js_line_index_build(&places, text, &budget));
    const struct sl_js_naming naming = {.original = original, .arg = &places, .compat = compat};
    for (uint32_t i = 0; i < scopes.count; i++) {
        nests(&scopes, i);
        sl_buf_clear(&name);
        sl_js_scope_name(&scopes, i, &naming, &account, &name);
    }
    uint32_t count = code == SL_OK ? scopes.count : 0;
    sl_buf_free(&name);
    sl_js_line_index_free(&places);
    sl_js_scopes_free(&scopes);
    must(budget.memory == INT64_MAX);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size};
    uint32_t whole = read_scopes(text, false, false), part = read_scopes(text, true, true);
    must(!whole || whole == part);
    return 0;
}
