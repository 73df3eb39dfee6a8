/* Assembles the display name of a function of a script from its parts: `a`, `b`, `f` of `a.b.f`. */
#include "js/scope.h"

enum { MAX_PARTS = 128 }; /* of a name; parts further to the left are left out */

/* A name that is being assembled: its parts, `f`, `b`, `a` of `a.b.f`, from the last to the first. */
struct name {
    const struct sl_js_scopes *scopes;
    const struct sl_js_naming *naming;
    const struct sl_js_part *parts[MAX_PARTS];
    unsigned count;
    bool object; /* an object literal that has no name itself is its beginning: "<object>.f" */
    /* the part that the function's own name replaces, `x` of `x = function f() {}` */
    const struct sl_js_part *replaced;
};

/* True if names are to be written as Symbolicator writes them, which leaves out some dots. */
static bool is_compat(const struct name *name)
{
    return name->naming && name->naming->compat;
}

/* Collects the parts of a function's name, the last one first. The own name of a function expression replaces the part in front of it:
 * `a.x = function f() {}` is `a.f`, and name->replaced is `x`. Names as Symbolicator writes them (is_compat) omit keys of class fields. */
static void gather_parts(struct name *name, const struct sl_js_scope *scope)
{
    const struct sl_js_scopes *s = name->scopes;
    bool has_own_name = false, in_object = false;
    /* inferred: number of parts so far that come from the code around the function, unlike `f` above */
    uint32_t part = scope->name, inferred = 0;
    for (; part < SL_JS_NAME_IS_COMPLETE && name->count < MAX_PARTS; part = s->parts[part].outer) {
        const struct sl_js_part *p = &s->parts[part];
        if (p->kind == SL_JS_OBJECT) {
            in_object = true; /* the parts so far are inside an object literal */
        } else if (p->kind != SL_JS_COVER && !(p->field && is_compat(name))) { /* COVER: a name that is too long */
            bool last = part == scope->name;
            /* an accessor's key alone is "get x", without "<object>" in front */
            bool key = last && (scope->kind == SL_JS_OBJECT_GETTER || scope->kind == SL_JS_OBJECT_SETTER);
            if (p->kind != SL_JS_OWN_NAME && !key)
                inferred++;
            if (has_own_name && inferred == 1 && !name->replaced) /* the first part after the own name */
                name->replaced = p;
            else
                name->parts[name->count++] = p;
            has_own_name |= p->kind == SL_JS_OWN_NAME;
        }
    }
    /* the first part is a key of an object literal that is assigned to nothing: else `part` were SL_JS_NAME_IS_COMPLETE */
    name->object = in_object && inferred && part == SL_JS_NONE;
}

/* Appends an identifier, its escapes \u0061 and \u{61} decoded. An escape that is no valid code point adds nothing. Every backslash in an
 * identifier is followed by `u`. */
static void add_unescaped(struct sl_buf *out, struct sl_str text)
{
    for (size_t i = 0; i < text.size;) {
        if (text.data[i] != '\\' || text.size - i < 3) { /* < 3: no digit can follow \u */
            sl_buf_u8(out, (uint8_t)text.data[i++]);
            continue;
        }
        uint32_t code = 0;
        bool braces = text.data[i + 2] == '{';
        size_t at = i + 2 + braces, most = at + (braces ? 6 : 4);
        for (; at < text.size && at < most; at++) {
            int digit = sl_hex_digit(text.data[at]);
            if (digit < 0)
                break;
            code = code << 4 | (uint32_t)digit;
        }
        i = at + (braces && at < text.size && text.data[at] == '}');
        char encoded[4];
        if (code < 0x110000 && (code < 0xD800 || code > 0xDFFF))
            sl_buf_add(out, encoded, sl_utf8_encode(code, encoded));
    }
}

/* Appends an identifier, by its original name if the caller's source map has one. Names as Symbolicator writes them (compat) keep private
 * names as they are in the script. */
static void add_identifier(struct name *name, const struct sl_js_part *part, struct sl_buf *out)
{
    struct sl_str text = {name->scopes->text.data + part->at, part->size};
    bool is_private = part->kind == SL_JS_PRIVATE;
    if (name->naming && name->naming->original && !(is_private && is_compat(name)))
        text = name->naming->original(name->naming->arg, part->at, text);
    if (is_private && !sl_str_starts(text, SL_STR("#"))) /* some maps omit it */
        sl_buf_u8(out, '#');
    if (text.size && memchr(text.data, '\\', text.size))
        add_unescaped(out, text);
    else
        sl_buf_str(out, text);
}

/* Appends a number or a string in double quotes as written; a string in single quotes gets double ones, with the escapes they need. */
static void add_literal(struct name *name, const struct sl_js_part *part, struct sl_buf *out)
{
    struct sl_str text = {name->scopes->text.data + part->at, part->size};
    if (text.size < 2 || text.data[0] != '\'') {
        sl_buf_str(out, text);
        return;
    }
    sl_buf_u8(out, '"');
    for (size_t i = 1; i + 1 < text.size; i++) {
        if (text.data[i] == '\\' && text.data[i + 1] == '\'') /* \' needs no escape within double quotes */
            continue;
        if (text.data[i] == '"')
            sl_buf_u8(out, '\\');
        sl_buf_u8(out, (uint8_t)text.data[i]);
        if (text.data[i] == '\\') /* copy the escaped byte, too */
            sl_buf_u8(out, (uint8_t)text.data[++i]);
    }
    sl_buf_u8(out, '"');
}

/* Appends one part of a name as it is shown: a computed key is `<computed>`, a computed index `[<computed>]`, a name in brackets `[name]`,
 * a literal key `<key>`. Kinds that names do not show add nothing. */
static void add_part(struct name *name, const struct sl_js_part *part, struct sl_buf *out)
{
    static const struct {
        struct sl_str before, behind;
    } around[] = {
        [SL_JS_INDEX_NAME] = {SL_STR("["), SL_STR("]")},  [SL_JS_INDEX_LITERAL] = {SL_STR("["), SL_STR("]")},
        [SL_JS_KEY_LITERAL] = {SL_STR("<"), SL_STR(">")}, [SL_JS_INDEX_COMPUTED] = {SL_STR("[<computed>]")},
        [SL_JS_KEY_COMPUTED] = {SL_STR("<computed>")},    [SL_JS_DEFAULT] = {{0}}, /* the last kind: sizes the array */
    };
    sl_buf_str(out, around[part->kind].before);
    switch (part->kind) {
    case SL_JS_IDENTIFIER:
    case SL_JS_OWN_NAME:
    case SL_JS_MEMBER:
    case SL_JS_INDEX_NAME:
    case SL_JS_PRIVATE: add_identifier(name, part, out); break;
    case SL_JS_INDEX_LITERAL:
    case SL_JS_KEY_LITERAL: add_literal(name, part, out); break;
    case SL_JS_THIS: sl_buf_add(out, name->scopes->text.data + part->at, part->size); break;
    default: break;
    }
    sl_buf_str(out, around[part->kind].behind);
}

static bool is_index(const struct sl_js_part *part)
{
    return part->kind == SL_JS_INDEX_NAME || part->kind == SL_JS_INDEX_LITERAL || part->kind == SL_JS_INDEX_COMPUTED;
}

/* True if a dot separates the two parts of a name; `[i]` follows without one. After the last name of an assigned chain, `b` of
 * `a.b = {f() {}}`, Symbolicator writes none, so there is none with `compat` either: `a.bf`. */
static bool separated(const struct name *name, const struct sl_js_part *before, const struct sl_js_part *part)
{
    bool chained = before->kind == SL_JS_MEMBER || is_index(before);
    if (is_index(part))
        return false;
    return !(is_compat(name) && chained && part->kind != SL_JS_MEMBER);
}

/* Appends the separator in front of a function's own name. In `a.c = function f() {}` the own name `f` replaces `c`, which gives `a.f`: the
 * separator is a dot. It is nothing if no part is left in front of the replaced one (`before` is NULL). Names as Symbolicator writes them
 * (is_compat) have no dot if the replaced part is a subscript, but keep the beginning of a subscript that is a name: the name of `f` stored
 * in `a[c]` is `a[cf`, stored in `a[1]` it is `af`. */
static void add_replaced(struct name *name, const struct sl_js_part *before, struct sl_buf *out)
{
    bool compat = is_compat(name) && is_index(name->replaced);
    if (compat && name->replaced->kind == SL_JS_INDEX_NAME) {
        sl_buf_u8(out, '[');
        add_identifier(name, name->replaced, out);
    } else if (before && !compat) {
        sl_buf_u8(out, '.');
    }
}

bool sl_js_scope_name(const struct sl_js_scopes *scopes, uint32_t scope, const struct sl_js_naming *naming,
                      struct sl_account *account, struct sl_buf *out)
{
    static const struct sl_str kinds[] = {
        [SL_JS_FUNCTION] = SL_STR(""),   [SL_JS_CLASS] = SL_STR("new "),         [SL_JS_GETTER] = SL_STR("get "),
        [SL_JS_SETTER] = SL_STR("set "), [SL_JS_OBJECT_GETTER] = SL_STR("get "), [SL_JS_OBJECT_SETTER] = SL_STR("set "),
    };
    struct name name = {.scopes = scopes, .naming = naming};
    const struct sl_js_part *before = NULL;
    size_t begin = out->size;
    gather_parts(&name, &scopes->items[scope]);
    if (!name.count)
        return true;
    sl_buf_str(out, kinds[scopes->items[scope].kind]);
    if (name.object)
        sl_buf_cstr(out, "<object>");
    for (unsigned i = name.count; i-- > 0; before = name.parts[i]) {
        const struct sl_js_part *part = name.parts[i];
        if (name.replaced && part->kind == SL_JS_OWN_NAME)
            /* after "<object>" `before` is NULL, but a dot must follow: passes some other part, of which only "not NULL" matters */
            add_replaced(&name, before || !name.object ? before : part, out);
        else if (before ? separated(&name, before, part) : name.object) /* a dot is between the two */
            sl_buf_u8(out, '.');
        add_part(&name, part, out);
        if (out->failed) /* out of memory, which the caller sees in `out` */
            return true;
    }
    return sl_account_spend(account, (uint32_t)(out->size - begin));
}
