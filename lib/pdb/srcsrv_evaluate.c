/* Evaluates templates of the source server stream:
 *
 *     %name%         a variable, whose value is a template; var1 to var10 are the file's fields, targ the debugger's directory
 *     %fnvar%(x)     the variable with the value of x as its name
 *     %fnbksl%(x)    x with backslashes for slashes
 *     %fnfile%(x)    x after its last backslash */
#include "pdb/srcsrv.h"

/* Limits against hostile templates: variables that refer to themselves, and results that double with each level. */
enum { MAX_DEPTH = 32, MAX_RESULT = 64 << 10 };

struct evaluation {
    const struct srcsrv *stream;
    const struct srcsrv_fields *fields;
    struct sl_str targ; /* value of %targ% */
    struct sl_buf *out;
    size_t begin;        /* offset in `out` where the result begins */
    uint64_t *work_left; /* steps that may still be taken */
};

static bool expand(struct evaluation *e, struct sl_str *text, bool in_parentheses, unsigned depth);

/* Takes `work` steps from those that are left. False, which ends the evaluation, if fewer are left, the result is too long or memory has
 * run out. */
static bool charge_steps(struct evaluation *e, size_t work)
{
    if (*e->work_left < work || e->out->size - e->begin > MAX_RESULT)
        return false;
    *e->work_left -= work;
    return !e->out->failed;
}

/* Appends text to the result. False if a limit is reached or memory runs out. */
static bool append_text(struct evaluation *e, struct sl_str text)
{
    if (!charge_steps(e, text.size + 1)) /* + 1: an empty text takes a step, too */
        return false;
    sl_buf_str(e->out, text);
    return e->out->size - e->begin <= MAX_RESULT && !e->out->failed;
}

/* Returns 7 for "var7"; 0 for all names but var1 to var10 (in any case). "var07" is none of them. */
static size_t field_number(struct sl_str name)
{
    if (name.size < 4 || name.size > 5 || !sl_str_equal_nocase((struct sl_str){name.data, 3}, SL_STR("var")))
        return 0;
    uint64_t number;
    bool good = sl_parse_u64((struct sl_str){name.data + 3, name.size - 3}, &number) && name.data[3] != '0';
    return good && number <= SRCSRV_MAX_FIELDS ? (size_t)number : 0;
}

/* Appends the expanded value of a variable: var1 to var10 are the fields of the source file, targ is the debugger's directory, the others
 * are defined in the stream. False if it is not defined, its template is bad, or a limit is reached. `depth` counts nested expansions. */
static bool add_variable(struct evaluation *e, struct sl_str name, unsigned depth)
{
    struct sl_str value;
    size_t number = field_number(name);
    if (number)
        return number <= e->fields->count && append_text(e, e->fields->items[number - 1]);
    if (sl_str_equal_nocase(name, SL_STR("targ")))
        return append_text(e, e->targ);
    return srcsrv_variable(e->stream, name, &value) && expand(e, &value, false, depth + 1);
}

/* Evaluates %fnbksl%: replaces slashes in the text from `from` on. */
static void backslashes(struct sl_buf *out, size_t from)
{
    for (size_t i = from; i < out->size; i++)
        if (out->data[i] == '/')
            out->data[i] = '\\';
}

/* Evaluates %fnfile%: cuts the text from `from` on down to the part after its last backslash. */
static void last_name(struct sl_buf *out, size_t from)
{
    const uint8_t *slash = out->size > from ? memrchr(out->data + from, '\\', out->size - from) : NULL;
    if (!slash)
        return;
    size_t size = (size_t)(out->data + out->size - (slash + 1));
    memmove(out->data + from, slash + 1, size);
    out->size = from + size;
}

/* Evaluates %fnvar%: replaces the text from `from` on, a name, by the value of that variable. False if there is no such variable or its
 * value cannot be expanded. */
static bool variable_named(struct evaluation *e, size_t from, unsigned depth)
{
    struct sl_buf name = {0};
    if (e->out->size > from) /* if empty, `data` may be NULL */
        sl_buf_add(&name, e->out->data + from, e->out->size - from);
    e->out->size = from;
    bool good = !name.failed && add_variable(e, sl_buf_view(&name), depth);
    sl_buf_free(&name);
    return good;
}

/* Evaluates a call of fnvar, fnbksl or fnfile; `text` begins after the function's name and is moved past the call. The argument is expanded
 * at the end of the result and then changed in place. False if the call is malformed or over a limit. */
static bool call(struct evaluation *e, struct sl_str function, struct sl_str *text, unsigned depth)
{
    size_t from = e->out->size;
    if (!text->size || text->data[0] != '(')
        return false;
    *text = (struct sl_str){text->data + 1, text->size - 1};
    if (!expand(e, text, true, depth + 1) || !charge_steps(e, e->out->size - from)) /* steps for the change in place */
        return false;
    if (sl_str_equal_nocase(function, SL_STR("fnvar")))
        return variable_named(e, from, depth);
    if (sl_str_equal_nocase(function, SL_STR("fnbksl")))
        backslashes(e->out, from);
    else /* fnfile: is_function() accepts no other name */
        last_name(e->out, from);
    return true;
}

static bool is_function(struct sl_str name)
{
    return sl_str_equal_nocase(name, SL_STR("fnvar")) || sl_str_equal_nocase(name, SL_STR("fnbksl")) ||
           sl_str_equal_nocase(name, SL_STR("fnfile"));
}

/* Expands the variable or function call at the beginning of `text`, which is a percent sign, and moves `text` past it. False if the second
 * percent sign is missing, if the variable is not defined, or if a limit is reached. */
static bool expand_reference(struct evaluation *e, struct sl_str *text, unsigned depth)
{
    const char *end = memchr(text->data + 1, '%', text->size - 1);
    if (!end)
        return false;
    struct sl_str name = {text->data + 1, (size_t)(end - text->data - 1)};
    *text = (struct sl_str){end + 1, text->size - name.size - 2};
    return is_function(name) ? call(e, name, text, depth) : add_variable(e, name, depth);
}

/* Appends the value of the template `text` and moves `text` past it. With `in_parentheses`, for the argument of a function, the template
 * ends at the closing parenthesis, which is consumed. False if the template is malformed, or a limit is reached. */
static bool expand(struct evaluation *e, struct sl_str *text, bool in_parentheses, unsigned depth)
{
    if (depth > MAX_DEPTH || !charge_steps(e, 1))
        return false;
    while (text->size) {
        size_t plain = 0;
        while (plain < text->size && text->data[plain] != '%' && !(in_parentheses && text->data[plain] == ')'))
            plain++;
        if (!append_text(e, (struct sl_str){text->data, plain}))
            return false;
        *text = (struct sl_str){text->data + plain, text->size - plain};
        if (text->size && text->data[0] == ')' && in_parentheses) {
            *text = (struct sl_str){text->data + 1, text->size - 1};
            return true;
        }
        if (text->size && !expand_reference(e, text, depth))
            return false;
    }
    return !in_parentheses; /* the closing parenthesis is missing */
}

bool srcsrv_evaluate(const struct srcsrv *s, const struct srcsrv_fields *fields, struct sl_str targ,
                     uint64_t *work_left, struct sl_buf *target)
{
    static const struct sl_str others[] = {SL_STR("SRCSRVCMD"), SL_STR("SRCSRVENV"), SL_STR("SRCSRVVERCTRL")};
    struct sl_buf scratch = {0};
    struct sl_str value;
    struct evaluation e = {
        .stream = s, .fields = fields, .targ = targ, .out = target, .begin = target->size, .work_left = work_left};
    bool good = srcsrv_variable(s, SL_STR("SRCSRVTRG"), &value) && expand(&e, &value, false, 0);
    /* The other templates are only checked: their results go to `scratch` and are not used. One that the stream lacks is no error. */
    e.out = &scratch;
    e.begin = 0; /* the limit of a result's size counts from here */
    for (size_t i = 0; good && i < sizeof others / sizeof *others; i++) {
        sl_buf_clear(&scratch);
        good = !srcsrv_variable(s, others[i], &value) || expand(&e, &value, false, 0);
    }
    sl_buf_free(&scratch);
    return good;
}
