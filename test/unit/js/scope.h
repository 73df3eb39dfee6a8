/* Scopes as text, for tables of tests: "10..18 f | 20..35 g", ranges only where asked for, "-" for no name. */
#pragma once

#include "../check.h"
#include "js/scope.h"

static inline const char *scopes_text(const char *source, bool ranges, const struct sl_js_naming *naming,
                                      struct sl_buf *out)
{
    struct sl_js_scopes scopes;
    struct sl_budget budget;
    struct sl_error error = {0};
    sl_budget_init(&budget, strlen(source));
    sl_buf_clear(out);
    if (sl_js_scopes_read(&scopes, sl_str(source), false, &budget, &error) != SL_OK)
        sl_buf_printf(out, "error: %s", error.message);
    for (uint32_t i = 0; i < scopes.count; i++) {
        struct sl_buf name = {0};
        struct sl_account account = {.budget = &budget};
        assert_true(sl_js_scope_name(&scopes, i, naming, &account, &name));
        if (i)
            sl_buf_cstr(out, " | ");
        if (ranges)
            sl_buf_printf(out, "%u..%u ", scopes.items[i].start, scopes.items[i].end);
        sl_buf_str(out, name.size ? sl_buf_view(&name) : SL_STR("-"));
        sl_buf_free(&name);
    }
    sl_js_scopes_free(&scopes);
    assert_int_equal(budget.memory, INT64_MAX);
    sl_buf_u8(out, 0);
    return (const char *)out->data;
}
