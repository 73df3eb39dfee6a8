/* Finds the functions of a script: runs the state machine of the parser, whose states are functions of scope_*.c. */
#include "js/scope_impl.h"

#include <stdlib.h>

/* Skips "#!/usr/bin/env node" in the first line. */
static void hashbang(struct js_parser *p)
{
    if (js_peek(p, 0) == '#' && js_peek(p, 1) == '!')
        while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
            p->at++;
}

/* Parses the script. Each function reads one or a few tokens and returns what is expected next. Returns DONE at the end of the script,
 * FAILED after an error. Lack of memory sets p->code; the state returned then means nothing. */
static enum js_state run(struct js_parser *p)
{
    enum js_state state = STATEMENT;
    hashbang(p);
    js_skip(p);
    while (state < DONE && p->code == SL_OK) {
        switch (state) {
        case OPERAND: state = js_operand(p); break;
        case OPERATOR: state = js_operator(p); break;
        case ENDED: state = js_ended(p); break;
        case DECLARATOR: state = js_declarator(p); break;
        case STATEMENT: state = js_statement(p); break;
        case MEMBER: state = js_member(p); break;
        default: state = js_member_end(p); break; /* MEMBER_END */
        }
    }
    return state;
}

/* Reads the scopes of the script and returns p->code. With `partial`, a syntax error is ignored: the scopes that were complete before it
 * are kept. A used-up budget is an error even then. */
static enum sl_code read_text(struct js_parser *p, bool partial)
{
    if (!js_push(p, L_PROGRAM, 0))
        return sl_budget_fail(p->account.budget, p->error);
    js_top(p)->node = SL_JS_NONE; /* a function at the top level of the script has no outer name */
    enum js_state state = run(p);
    if (state == FAILED && p->code == SL_OK) /* the work budget is used up: js_push() sets no code then */
        p->code = sl_budget_fail(p->account.budget, p->error);
    if (p->code == SL_MALFORMED && partial && !sl_budget_exhausted(p->account.budget))
        p->code = SL_OK; /* a syntax error; a used-up work budget has the same code */
    if (p->code == SL_OK)
        js_finish_scopes(p); /* sets the code if it fails */
    return p->code;
}

enum sl_code sl_js_scopes_read(struct sl_js_scopes *scopes, struct sl_str text, bool partial, struct sl_budget *budget,
                               struct sl_error *error)
{
    *scopes = (struct sl_js_scopes){.text = text, .account.budget = budget};
    if (text.size >= UINT32_MAX)
        return sl_fail(error, SL_MALFORMED, "the script is 4 GiB or larger, which is more than can be read");
    const uint8_t *begin = (const uint8_t *)text.data;
    struct js_parser p = {
        .at = begin,
        .begin = begin,
        .end = begin + text.size,
        .async = true,       /* `await` is allowed in modules */
        .async_at = UNKNOWN, /* no operand `async` has been read */
        .scopes = scopes,
        .account.budget = budget,
        .error = error,
    };
    enum sl_code code = read_text(&p, partial);
    free(p.levels);
    free(p.steps);
    free(p.late);
    sl_account_release(&p.account);
    if (code != SL_OK)
        scopes->count = scopes->part_count = 0;
    return code;
}

void sl_js_scopes_free(struct sl_js_scopes *scopes)
{
    free(scopes->items);
    free(scopes->parts);
    sl_account_release(&scopes->account);
    *scopes = (struct sl_js_scopes){0};
}
