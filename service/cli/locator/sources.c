/* Converts symbol paths of the command line to sources. */
#include "cli/locator/locator.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/grow.h"

#define BIT(type) (1u << (type))

/* Public symbol servers, for --symbols @NAME. */
static const struct preset {
    const char *name, *url;
    enum layout_type layout;
    uint32_t filetypes; /* that the server has */
} presets[] = {
    {"microsoft", "https://msdl.microsoft.com/download/symbols", LAYOUT_SSQP,
     BIT(FILE_PE) | BIT(FILE_PDB) | BIT(FILE_PORTABLEPDB)},
    {"electron", "https://symbols.electronjs.org/", LAYOUT_NATIVE,
     BIT(FILE_PDB) | BIT(FILE_BREAKPAD) | BIT(FILE_SOURCEBUNDLE)},
    {"ubuntu", "https://debuginfod.ubuntu.com/buildid/", LAYOUT_DEBUGINFOD, BIT(FILE_ELF_CODE) | BIT(FILE_ELF_DEBUG)},
    {"mozilla", "https://symbols.mozilla.org/", LAYOUT_NATIVE, BIT(FILE_BREAKPAD)},
};

/* Copies text into the arena; data NULL when out of memory. */
static struct sl_str copy_text(struct locator_source_list *list, const char *data, size_t size)
{
    char *copy = sl_arena_strndup(list->arena, data, size);
    return (struct sl_str){copy, copy ? size : 0};
}

/* Returns the absolute path, in the arena and NUL-terminated; data NULL when out of memory. */
static struct sl_str absolute(struct locator_source_list *list, struct sl_str path)
{
    char here[4096], whole[8192];
    if (sl_str_starts(path, SL_STR("/")) || !getcwd(here, sizeof here))
        return copy_text(list, path.data, path.size);
    /* the directory "/" ends with a slash already */
    int size = snprintf(whole, sizeof whole, "%s/" SL_STR_FMT, here[1] ? here : "", SL_STR_ARG(path));
    return size < (int)sizeof whole ? copy_text(list, whole, (size_t)size) : (struct sl_str){NULL, 0};
}

bool source_list_add(struct locator_source_list *list, const struct source *source)
{
    if (!list->network && source->type != SOURCE_FILESYSTEM)
        return true;
    size_t capacity = list->capacity; /* of `root_of`, which grows with `items` */
    if (!sl_grow_in_arena(list->arena, &list->items, &list->capacity, list->count + 1, sizeof *list->items) ||
        !sl_grow_in_arena(list->arena, &list->root_of, &capacity, list->count + 1, sizeof *list->root_of))
        return false;
    struct source added = *source;
    if (source->type == SOURCE_FILESYSTEM && !(added.path = absolute(list, source->path)).data)
        return false;
    list->root_of[list->count] = 0;
    list->items[list->count++] = added;
    return true;
}

/* Adds a source whose id and path or URL were copied to the arena. SL_BUSY if one of these copies failed (data NULL), or when out of
 * memory. */
static enum sl_code add_copied(struct locator_source_list *list, const struct source *source, struct sl_error *error)
{
    bool complete = source->id.data && (source->type == SOURCE_FILESYSTEM ? source->path.data : source->url.data);
    return complete && source_list_add(list, source) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- servers ---- */

static bool is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Returns SL_MALFORMED with a message that shows the URL without user info and query, which may be secret. */
static enum sl_code bad_url(struct sl_str url, struct sl_error *error)
{
    const char *question = memchr(url.data, '?', url.size);
    size_t end = question ? (size_t)(question - url.data) : url.size;
    const char *at = memrchr(url.data, '@', end);
    size_t begin = at ? (size_t)(at + 1 - url.data) : 0;
    return sl_fail(error, SL_MALFORMED, "not a usable URL: %.*s", (int)(end - begin), url.data + begin);
}

/* Adds a server as a source, whose id is the host in the URL, as that is no secret. `filetypes`: the types of files that it has, as bits;
 * 0: any. SL_MALFORMED for an unusable URL. */
static enum sl_code add_server(struct locator_source_list *list, struct sl_str url, enum layout_type layout,
                               uint32_t filetypes, struct sl_error *error)
{
    struct source source = {.type = SOURCE_HTTP,
                            .url = copy_text(list, url.data, url.size),
                            .layout = layout,
                            .filetypes = filetypes,
                            .configured = true};
    if (!source.url.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!fetch_url_valid(source.url.data))
        return bad_url(url, error);
    /* a valid HTTP URL has a host, so NULL means that memory is out, which add_copied reports */
    const char *host = fetch_url_host(list->arena, source.url.data);
    source.id = host ? copy_text(list, host, strlen(host)) : (struct sl_str){NULL, 0};
    return add_copied(list, &source, error);
}

/* Adds the public server @name. SL_MALFORMED if there is none of this name. */
static enum sl_code add_preset(struct locator_source_list *list, const char *name, struct sl_error *error)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, name) == 0)
            return add_server(list, sl_str(presets[i].url), presets[i].layout, presets[i].filetypes, error);
    return sl_fail(error, SL_MALFORMED,
                   "unknown symbol server '@%s'; expected @microsoft, @electron, @ubuntu or @mozilla", name);
}

/* Adds the URLs of $DEBUGINFOD_URLS, which are separated by white space. The files of a debuginfod server are below /buildid/ of its
 * URL. */
enum sl_code source_list_debuginfod(struct locator_source_list *list, const char *urls, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (const char *at = urls; code == SL_OK && *(at += strspn(at, " \t\n"));) {
        size_t size = strcspn(at, " \t\n"), plain = size;
        char url[2048];
        while (plain && at[plain - 1] == '/')
            plain--;
        bool fits = snprintf(url, sizeof url, "%.*s/buildid/", (int)plain, at) < (int)sizeof url;
        if (!is_url(at)) { /* words such as "ima:enforcing" are settings of elfutils' client */
            at += size;
            continue;
        }
        code = fits ? add_server(list, sl_str(url), LAYOUT_DEBUGINFOD, 0, error)
                    : sl_fail(error, SL_MALFORMED, "a URL in $DEBUGINFOD_URLS is too long");
        at += size;
    }
    return code;
}

/* ---- directories ---- */

/* Adds a directory as a source. list->local, which the caller has increased, is its number: the id of the first is `local:cli`, of others
 * `local:cli:<number>`. */
static enum sl_code add_directory(struct locator_source_list *list, const char *path, enum layout_type layout,
                                  struct sl_error *error)
{
    char id[32];
    snprintf(id, sizeof id, list->local < 2 ? "local:cli" : "local:cli:%u", list->local);
    struct source source = {.type = SOURCE_FILESYSTEM,
                            .id = copy_text(list, id, strlen(id)),
                            .path = copy_text(list, path, strlen(path)),
                            .layout = layout,
                            .configured = true};
    return add_copied(list, &source, error);
}

const enum layout_type any_layouts[ANY_LAYOUTS] = {LAYOUT_UNIFIED, LAYOUT_NATIVE,     LAYOUT_SYMSTORE,
                                                   LAYOUT_SSQP,    LAYOUT_DEBUGINFOD, LAYOUT_SLASHSYMBOLS};

/* Adds a directory that was given without a layout: one source for each layout, one for the native layout below .build-id (where GDB
 * keeps debug files), and a root, whose index is searched after them. */
static enum sl_code add_any_layout(struct locator_source_list *list, const char *path, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    char inner[4096];
    const char **roots = SL_ARENA_ARRAY(list->arena, const char *, list->root_count + 1); /* list->roots and one more */
    if (!roots)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (list->root_count)
        memcpy(roots, list->roots, list->root_count * sizeof *roots);
    if (!(roots[list->root_count++] = absolute(list, sl_str(path)).data))
        return sl_fail(error, SL_BUSY, "out of memory");
    list->roots = roots;
    size_t first = list->count;
    for (size_t i = 0; code == SL_OK && i < ANY_LAYOUTS; i++)
        code = add_directory(list, path, any_layouts[i], error);
    if (code == SL_OK && snprintf(inner, sizeof inner, "%s/.build-id", path) < (int)sizeof inner)
        code = add_directory(list, inner, LAYOUT_NATIVE, error);
    /* all these sources belong to the root just added; 0 means none */
    for (size_t i = first; i < list->count; i++)
        list->root_of[i] = list->root_count;
    return code;
}

/* Adds a source for each directory and URL in srv*[DIR*]URL (Microsoft's symbol path), in order; `text` starts after "srv*". Directories
 * are symbol stores. An empty part (two `*` in a row), which means the default store on Windows, is ignored. */
static enum sl_code add_srv(struct locator_source_list *list, const char *text, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (const char *at = text; code == SL_OK && *at; at += strcspn(at, "*"), at += *at == '*') {
        size_t size = strcspn(at, "*");
        char *part = sl_arena_strndup(list->arena, at, size);
        if (!part)
            return sl_fail(error, SL_BUSY, "out of memory");
        if (!size)
            continue;
        list->local += !is_url(part);
        code = is_url(part) ? add_server(list, sl_str(part), LAYOUT_NATIVE, 0, error)
                            : add_directory(list, part, LAYOUT_SYMSTORE, error);
    }
    return code;
}

/* Parses [LAYOUT:]PATH and returns the path or URL. The text before the first colon counts only if it is the name of a layout, because URLs
 * and paths have colons, too. `*any` is true if no layout was given, or `auto`, which means all layouts; then `*layout` is not set. */
static const char *read_layout(const char *text, enum layout_type *layout, bool *any)
{
    size_t word = strcspn(text, ":");
    bool is_auto = strncmp(text, "auto:", 5) == 0;
    *any = !text[word] || !layout_type_parse((struct sl_str){text, word}, layout);
    return *any && !is_auto ? text : text + word + 1;
}

const char *source_path_without_layout(const char *text)
{
    enum layout_type layout;
    bool any;
    return read_layout(text, &layout, &any);
}

/* True if a value of --symbols names a directory or file, and no server (@NAME, srv*..., a URL). */
static bool is_path(const char *text)
{
    return *text != '@' && strncasecmp(text, "srv*", 4) != 0 && !is_url(source_path_without_layout(text));
}

int source_paths_check(const char *const *paths, size_t count)
{
    char message[4200];
    for (size_t i = 0; i < count; i++) {
        const char *path = source_path_without_layout(paths[i]);
        if (!is_path(paths[i]) || !*path || access(path, F_OK) == 0)
            continue;
        snprintf(message, sizeof message, "%.4000s: %s", path,
                 errno == ENOENT ? "no such directory or file" : strerror(errno));
        return report_error(2, message, NULL);
    }
    return 0;
}

enum sl_code source_list_symbols(struct locator_source_list *list, const char *text, struct sl_error *error)
{
    enum layout_type layout = LAYOUT_NATIVE;
    bool any;
    if (*text == '@')
        return add_preset(list, text + 1, error);
    if (strncasecmp(text, "srv*", 4) == 0)
        return add_srv(list, text + 4, error);
    text = read_layout(text, &layout, &any);
    if (is_url(text))
        return add_server(list, sl_str(text), layout, 0, error);
    list->local++; /* part of the id of the next directory */
    /* any: the text names no layout, or `auto`: all are tried */
    return any ? add_any_layout(list, text, error) : add_directory(list, text, layout, error);
}

enum sl_code source_list_path(struct locator_source_list *list, const char *text, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (const char *at = text; code == SL_OK && *at; at += strcspn(at, ";\r\n"), at += *at != '\0') {
        size_t size = strcspn(at, ";\r\n");
        char *part = sl_arena_strndup(list->arena, at, size);
        if (!part)
            return sl_fail(error, SL_BUSY, "out of memory");
        if (size)
            code = source_list_symbols(list, part, error);
    }
    return code;
}
