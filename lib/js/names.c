#include "js/names.h"

static struct sl_str from(struct sl_str text, size_t offset)
{
    return (struct sl_str){text.data + offset, text.size - offset};
}

static struct sl_str up_to(struct sl_str text, size_t end)
{
    return (struct sl_str){text.data, end};
}

/* Returns the offset of the character; the text's size if it is absent. */
static size_t find_char(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

/* Returns the offset of the first occurrence of `part`; the text's size if it is absent. */
static size_t offset_of_text(struct sl_str text, struct sl_str part)
{
    const char *found = text.size ? memmem(text.data, text.size, part.data, part.size) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

struct sl_str sl_js_strip_hostname(struct sl_str path)
{
    if (sl_str_starts(path, SL_STR("~")))
        return from(path, 1);
    size_t host = offset_of_text(path, SL_STR("://"));
    if (host == path.size)
        return path;
    path = from(path, host + 3);
    size_t slash = find_char(path, '/');
    return slash < path.size ? from(path, slash) : path;
}

struct sl_str sl_js_without_parameters(struct sl_str url)
{
    return up_to(url, offset_of_text(url, SL_STR("//&")));
}

struct sl_str sl_js_stem(struct sl_str path)
{
    static const struct sl_str suffixes[] = {SL_STR(".min"), SL_STR(".js"),  SL_STR(".map"),
                                             SL_STR(".cjs"), SL_STR(".mjs"), SL_STR(".ts"),
                                             SL_STR(".d"),   SL_STR(".jsx"), SL_STR(".tsx")};
    struct sl_str stem = sl_js_strip_hostname(path);
    const char *slash = stem.size ? memrchr(stem.data, '/', stem.size) : NULL;
    if (!slash)
        return stem;
    size_t folder = (size_t)(slash + 1 - stem.data);
    struct sl_str name = from(stem, folder);
    name = up_to(name, find_char(name, '?'));
    name = up_to(name, find_char(name, '#'));
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (sl_str_ends(name, suffixes[i])) {
            name.size -= suffixes[i].size;
            i = (size_t)-1; /* start again with the first suffix: `app.min.js.map` has several */
        }
    return (struct sl_str){stem.data, folder + name.size};
}

/* ---- modules ---- */

/* True if all characters are hexadecimal digits; also for an empty text. */
static bool is_hex(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char low = (char)(text.data[i] | 0x20);
        if (!sl_is_digit(text.data[i]) && (low < 'a' || low > 'f'))
            return false;
    }
    return true;
}

/* True for an MD5 or SHA-1 sum in hexadecimal. */
static bool is_digest(struct sl_str segment)
{
    return (segment.size == 32 || segment.size == 40) && is_hex(segment);
}

/* True for `1`, `v1`, `v1.0.0`. */
static bool is_version(struct sl_str segment)
{
    size_t i = segment.size && (segment.data[0] | 0x20) == 'v';
    bool digit = false;
    for (; i < segment.size; i++) {
        if (!sl_is_digit(segment.data[i]) && (segment.data[i] != '.' || !digit))
            return false;
        digit = sl_is_digit(segment.data[i]);
    }
    return digit;
}

/* True for leading folders that say how a file was built or is served, not what it is. */
static bool is_common_folder(struct sl_str segment)
{
    static const struct sl_str folders[] = {SL_STR("script"),      SL_STR("scripts"),      SL_STR("javascript"),
                                            SL_STR("javascripts"), SL_STR("js"),           SL_STR("build"),
                                            SL_STR("static"),      SL_STR("node_modules"), SL_STR("bower_components")};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (sl_str_equal_nocase(segment, folders[i]))
            return true;
    if (!segment.size || segment.data[0] == '_' || segment.data[0] == '.' || segment.data[0] == '~')
        return true;
    /* 7 or 8 digits: an abbreviated SHA-1 */
    return is_version(segment) || is_digest(segment) || ((segment.size == 7 || segment.size == 8) && is_hex(segment));
}

/* Removes the extension of the last segment, and ".min" before it. */
static struct sl_str without_extension(struct sl_str path)
{
    for (size_t i = path.size; i-- > 0;) {
        if (path.data[i] == '/')
            break;
        if (path.data[i] == '.') {
            path.size = i;
            break;
        }
    }
    if (sl_str_ends(path, SL_STR(".min")))
        path.size -= 4;
    return path;
}

/* Sets `*rest` to the path after the first segment that is a digest (32 or 40 hexadecimal digits); false when there is none. */
static bool behind_digest(struct sl_str path, struct sl_str *rest)
{
    *rest = path;
    while (true) {
        size_t size = find_char(*rest, '/');
        bool last = size == rest->size, digest = is_digest(up_to(*rest, size));
        *rest = from(*rest, last ? size : size + 1);
        if (last || digest)
            return digest;
    }
}

/* Removes leading folders that say how a file was built or is served. */
static struct sl_str without_common_folders(struct sl_str path)
{
    size_t size;
    while ((size = find_char(path, '/')) < path.size && is_common_folder(up_to(path, size)))
        path = from(path, size + 1);
    return path;
}

/* Removes `-` or `.` and a hash at the end, at least 7 hexadecimal digits: `-0123abc`. */
static struct sl_str without_hash(struct sl_str path)
{
    size_t i = path.size;
    while (i > 0 && is_hex((struct sl_str){path.data + i - 1, 1}))
        i--;
    bool hash = i > 0 && path.size - i >= 7 && (path.data[i - 1] == '-' || path.data[i - 1] == '.');
    return hash ? up_to(path, i - 1) : path;
}

struct sl_str sl_js_module(struct sl_str path)
{
    struct sl_str rest;
    path = sl_js_strip_hostname(path);
    path = up_to(path, find_char(path, '#'));
    path = up_to(path, find_char(path, '?'));
    path = without_extension(path);
    /* folders up to one that is named by a digest are left out, whatever they are */
    return behind_digest(path, &rest) ? rest : without_hash(without_common_folders(path));
}

/* ---- files ---- */

static struct sl_str without_prefix(struct sl_str text, struct sl_str prefix)
{
    return sl_str_starts(text, prefix) ? from(text, prefix.size) : text;
}

/* Removes `webpack://package/` if `./` follows: the rest is the path in the project. Returns other sources unchanged. */
static struct sl_str behind_package(struct sl_str source)
{
    struct sl_str rest = without_prefix(source, SL_STR("webpack://"));
    size_t i = 0;
    while (i < rest.size &&
           (sl_is_digit(rest.data[i]) || ((rest.data[i] | 0x20) >= 'a' && (rest.data[i] | 0x20) <= 'z') ||
            memchr("_@.-", rest.data[i], 4)))
        i++;
    return i && sl_str_starts(from(rest, i), SL_STR("/./")) ? from(rest, i + 1) : source;
}

static struct sl_str webpack_name(struct sl_str source)
{
    struct sl_str name = behind_package(source);
    return name.size < source.size ? name : without_prefix(source, SL_STR("webpack:///"));
}

static struct sl_str turbopack_name(struct sl_str source)
{
    return without_prefix(without_prefix(source, SL_STR("turbopack:///")), SL_STR("[project]/"));
}

/* True for URLs of which a module name can be made; a path in a file system is none. */
static bool has_module(struct sl_str abs_path)
{
    static const struct sl_str schemes[] = {SL_STR("http:"), SL_STR("https:"), SL_STR("webpack:"), SL_STR("turbopack:"),
                                            SL_STR("app:")};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (sl_str_starts(abs_path, schemes[i]))
            return true;
    return false;
}

struct sl_js_file sl_js_file(struct sl_str source, struct sl_str abs_path, struct sl_str module)
{
    struct sl_js_file file = {source, module};
    bool webpack = sl_str_starts(source, SL_STR("webpack:")), turbopack = sl_str_starts(source, SL_STR("turbopack:"));
    if (webpack || turbopack) {
        size_t modules = offset_of_text(source, SL_STR("/~/")); /* webpack's sign for node_modules */
        file.name = modules < source.size ? from(source, modules + 1)
                    : webpack             ? webpack_name(source)
                                          : turbopack_name(source);
        file.module = sl_js_module(file.name);
    }
    if (!file.module.data && has_module(abs_path))
        file.module = sl_js_module(abs_path);
    return file;
}

/* ---- functions ---- */

/* Appends a part of a dotted name that occurs `count` times in a row: "a", or "{a#3}". */
static void print_part(struct sl_str part, size_t count, struct sl_buf *out)
{
    if (count > 1)
        sl_buf_u8(out, '{');
    sl_buf_str(out, part);
    if (count > 1) {
        sl_buf_u8(out, '#');
        sl_buf_number(out, count, '}');
    }
}

/* Prints a dotted name; equal adjacent parts are folded: "a.a.a.b" is "{a#3}.b". */
static void print_folded(struct sl_str name, struct sl_buf *out)
{
    struct sl_str part = {NULL, 0};
    size_t count = 0, size;
    for (; (size = find_char(name, '.')) < name.size; name = from(name, size + 1)) {
        struct sl_str next = up_to(name, size);
        if (count && !sl_str_equal(next, part)) {
            print_part(part, count, out);
            sl_buf_u8(out, '.');
            count = 0;
        }
        part = next;
        count++;
    }
    if (count) {
        print_part(part, count, out);
        sl_buf_u8(out, '.');
    }
    sl_buf_str(out, name);
}

/* Returns the function's name by its scope in the source; if the scope is unknown, the frame's name as received. Dart's compiler makes
 * names that begin with "$async$" for parts of async functions; the token of the source map then has the real name. */
static struct sl_str scope_name(const struct sl_js_function_hints *n)
{
    switch (n->kind) {
    case SL_JS_FUNCTION_ANONYMOUS: return SL_STR("<anonymous>");
    case SL_JS_FUNCTION_NAMED: return n->token.size && sl_str_starts(n->scope, SL_STR("$async$")) ? n->token : n->scope;
    default: return n->function.data ? n->function : SL_STR("<unknown>");
    }
}

/* True for names that say nothing about the function; the calling frame's token may have a better one. */
static bool is_meaningless(struct sl_str name)
{
    return sl_str_equal(name, SL_STR("<anonymous>")) || sl_str_equal(name, SL_STR("__webpack_require__")) ||
           sl_str_equal(name, SL_STR("__webpack_modules__"));
}

void sl_js_function_name(const struct sl_js_function_hints *clues, struct sl_buf *out)
{
    struct sl_str name = scope_name(clues);
    if (is_meaningless(name) && clues->caller.size)
        name = clues->caller;
    else if (is_meaningless(name) && clues->function.data)
        name = clues->function;
    print_folded(name, out);
}
