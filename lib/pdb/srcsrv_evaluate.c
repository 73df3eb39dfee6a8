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
    struct sl_str targ;
    struct sl_buf *out;
    size_t begin; /* of the result in `out` */
    uint64_t *work_left;
};

static bool expand(struct evaluation *e, struct sl_str *text, bool in_parentheses, unsigned depth);

/* Charges steps before the work is done. False if no steps are left, or the result is too long: evaluation then ends. */
static bool charge_steps(struct evaluation *e, size_t work)
{
    if (*e->work_left < work || e->out->size - e->begin > MAX_RESULT)
        return false;
    *e->work_left -= work;
    return !e->out->failed;
}

static bool srcsrv_evaluate_add(struct evaluation *e, struct sl_str text)
{
    if (!charge_steps(e, text.size + 1))
        return false;
    sl_buf_str(e->out, text);
    return e->out->size - e->begin <= MAX_RESULT && !e->out->failed;
}

/* Returns 7 for "var7"; 0 for other names. */
static size_t field_number(struct sl_str name)
{
    if (name.size < 4 || name.size > 5 || !sl_str_equal_nocase((struct sl_str){name.data, 3}, SL_STR("var")))
        return 0;
    uint64_t number;
    bool good = sl_parse_u64((struct sl_str){name.data + 3, name.size - 3}, &number) && name.data[3] != '0';
    return good && number <= SRCSRV_MAX_FIELDS ? (size_t)number : 0;
}

/* Appends the value of a variable. False if it is not defined. */
static bool add_variable(struct evaluation *e, struct sl_str name, unsigned depth)
{
    struct sl_str value;
    size_t number = field_number(name);
    if (number)
        return number <= e->fields->count && srcsrv_evaluate_add(e, e->fields->items[number - 1]);
    if (sl_str_equal_nocase(name, SL_STR("targ")))
        return srcsrv_evaluate_add(e, e->targ);
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

/* Evaluates %fnvar%: replaces the text from `from` on, a name, by the value of that variable. */
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

/* Evaluates a function call; `text` is past the function's name, which is fnvar, fnbksl or fnfile. The argument is expanded behind what was
 * already written, and then changed in place. False if it is malformed or over a limit. */
static bool call(struct evaluation *e, struct sl_str function, struct sl_str *text, unsigned depth)
{
    size_t from = e->out->size;
    if (!text->size || text->data[0] != '(')
        return false;
    *text = (struct sl_str){text->data + 1, text->size - 1};
    if (!expand(e, text, true, depth + 1) || !charge_steps(e, e->out->size - from))
        return false;
    if (sl_str_equal_nocase(function, SL_STR("fnvar")))
        return variable_named(e, from, depth);
    if (sl_str_equal_nocase(function, SL_STR("fnbksl")))
        backslashes(e->out, from);
    else
        last_name(e->out, from);
    return true;
}

static bool is_function(struct sl_str name)
{
    return sl_str_equal_nocase(name, SL_STR("fnvar")) || sl_str_equal_nocase(name, SL_STR("fnbksl")) ||
           sl_str_equal_nocase(name, SL_STR("fnfile"));
}

/* Expands a variable or function call; `text` begins with its percent sign. */
static bool expand_reference(struct evaluation *e, struct sl_str *text, unsigned depth)
{
    const char *end = memchr(text->data + 1, '%', text->size - 1);
    if (!end)
        return false;
    struct sl_str name = {text->data + 1, (size_t)(end - text->data - 1)};
    *text = (struct sl_str){end + 1, text->size - name.size - 2};
    return is_function(name) ? call(e, name, text, depth) : add_variable(e, name, depth);
}

/* Appends the value of the template. With `in_parentheses` it ends at the closing parenthesis, which is consumed. False if the template is
 * malformed, or a limit is reached. */
static bool expand(struct evaluation *e, struct sl_str *text, bool in_parentheses, unsigned depth)
{
    if (depth > MAX_DEPTH || !charge_steps(e, 1))
        return false;
    while (text->size) {
        size_t plain = 0;
        while (plain < text->size && text->data[plain] != '%' && !(in_parentheses && text->data[plain] == ')'))
            plain++;
        if (!srcsrv_evaluate_add(e, (struct sl_str){text->data, plain}))
            return false;
        *text = (struct sl_str){text->data + plain, text->size - plain};
        if (text->size && text->data[0] == ')' && in_parentheses) {
            *text = (struct sl_str){text->data + 1, text->size - 1};
            return true;
        }
        if (text->size && !expand_reference(e, text, depth))
            return false;
    }
    return !in_parentheses;
}

bool srcsrv_evaluate(const struct srcsrv *s, const struct srcsrv_fields *fields, struct sl_str targ,
                     uint64_t *work_left, struct sl_buf *target)
{
    static const struct sl_str others[] = {SL_STR("SRCSRVCMD"), SL_STR("SRCSRVENV"), SL_STR("SRCSRVVERCTRL")};
    struct sl_buf scratch = {0};
    struct sl_str value;
    struct evaluation e = {s, fields, targ, target, target->size, work_left};
    bool good = srcsrv_variable(s, SL_STR("SRCSRVTRG"), &value) && expand(&e, &value, false, 0);
    e.out = &scratch;
    e.begin = 0;
    for (size_t i = 0; good && i < sizeof others / sizeof *others; i++) {
        sl_buf_clear(&scratch);
        good = !srcsrv_variable(s, others[i], &value) || expand(&e, &value, false, 0);
    }
    sl_buf_free(&scratch);
    return good;
}
