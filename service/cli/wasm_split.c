/* `symloom wasm-split`: adds a build id to a WebAssembly module and moves its debug information to a companion file, as Sentry's tool of
 * that name does. Sections are copied without reading code (WebAssembly Core Specification, "Binary Format"; tool conventions "BuildId" and
 * "ExternalDWARF"). */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/bytes.h"
#include "base/json_write.h"
#include "id/id.h"

enum { WASM_CUSTOM = 0, UUID_SIZE = 16, WASM_HEADER = 8 };

static const struct option_spec specs[] = {
    {"out", 'o', OPTION_VALUE, false, "FILE", "Write the module to FILE (default: replace INPUT)"},
    {"debug-out", 'd', OPTION_VALUE, false, "FILE",
     "Write a companion with all sections, for debuggers and symbol servers"},
    {"strip", 0, OPTION_FLAG, false, NULL, "Remove debug information from the module"},
    {"strip-names", 0, OPTION_FLAG, false, NULL, "Also remove function names"},
    {"build-id", 0, OPTION_VALUE, false, "UUID", "Use this build id if the module has none (default: random)"},
    {"external-dwarf-url", 0, OPTION_VALUE, false, "URL", "Store this URL of the debug information in the module"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print a JSON report"},
    {"quiet", 'q', OPTION_FLAG, true, NULL, "Do not print the build id"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Also print the id that JavaScript SDKs send"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct wasm_part {            /* a section */
    struct sl_bytes whole;    /* the section with its header */
    struct sl_bytes contents; /* without the header; in a custom section also without its name */
    struct sl_str name;       /* name of a custom section; data NULL for other sections */
};

struct wasm_splitting {
    const struct options *o;
    struct sl_mapping mapping;
    struct wasm_part *parts;
    size_t count, capacity;
    struct sl_str id;         /* the build id: bytes, without the length before them */
    uint8_t given[UUID_SIZE]; /* the id of --build-id, or a random one */
    bool had_id;              /* the module has a build id */
};

/* ---- reading ---- */

/* Reports what is wrong with the module at the offset of a section. */
static enum sl_code split_invalid(struct sl_error *error, const char *what, uint64_t offset)
{
    return sl_fail(error, SL_MALFORMED, "invalid wasm file: %s at 0x%llx", what, (unsigned long long)offset);
}

/* Splits the module into its sections. SL_MALFORMED: it is no WebAssembly module or is truncated; SL_BUSY: out of memory. */
static enum sl_code read_parts(struct wasm_splitting *s, struct sl_error *error)
{
    struct sl_bytes bytes = s->mapping.bytes;
    struct sl_reader r = sl_reader(bytes, false);
    if (bytes.size < WASM_HEADER || memcmp(bytes.data, "\0asm\1\0\0\0", WASM_HEADER) != 0)
        return sl_fail(error, SL_MALFORMED, "not a WebAssembly module of version 1");
    sl_reader_skip(&r, WASM_HEADER);
    while (sl_reader_left(&r)) {
        uint64_t offset = sl_reader_offset(&r);
        uint8_t number = sl_read_u8(&r);
        struct sl_bytes contents = sl_read_bytes(&r, sl_read_uleb(&r));
        if (r.failed)
            return split_invalid(error, "a section ends beyond the end of the file", offset);
        struct wasm_part part = {{bytes.data + offset, sl_reader_offset(&r) - offset}, contents, {NULL, 0}};
        if (number == WASM_CUSTOM) {
            struct sl_reader in = sl_reader(contents, false);
            struct sl_bytes name = sl_read_bytes(&in, sl_read_uleb(&in));
            if (in.failed)
                return split_invalid(error, "a name ends beyond the end of its section", offset);
            part.name = (struct sl_str){(const char *)name.data, name.size};
            part.contents = sl_read_bytes(&in, sl_reader_left(&in));
        }
        if (!sl_grow(&s->parts, &s->capacity, s->count + 1, sizeof *s->parts))
            return sl_fail(error, SL_BUSY, "out of memory");
        s->parts[s->count++] = part;
    }
    return SL_OK;
}

/* True if the section is a custom one of this name. */
static bool is_named(const struct wasm_part *part, const char *name)
{
    return part->name.data && sl_str_equal(part->name, sl_str(name));
}

/* Finds the build id in the first section `build_id`: the bytes after their length, or all bytes of the section if it does not begin with
 * their length. */
static void find_id(struct wasm_splitting *s)
{
    for (size_t i = 0; i < s->count && !s->had_id; i++) {
        if (!is_named(&s->parts[i], "build_id"))
            continue;
        struct sl_bytes contents = s->parts[i].contents;
        struct sl_reader r = sl_reader(contents, false);
        uint64_t size = sl_read_uleb(&r);
        bool framed = !r.failed && size == sl_reader_left(&r);
        size_t skip = framed ? sl_reader_offset(&r) : 0;
        s->id = (struct sl_str){(const char *)contents.data + skip, contents.size - skip};
        s->had_id = true;
    }
}

/* ---- the build id ---- */

/* Parses a UUID: 32 hex digits, optionally with hyphens, in braces or after urn:uuid:. False if it is none. */
static bool parse_uuid(const char *text, uint8_t uuid[UUID_SIZE])
{
    char digits[2 * UUID_SIZE + 1];
    size_t count = 0, size;
    bool braced = text[0] == '{';
    text += braced ? 1 : strncmp(text, "urn:uuid:", 9) == 0 ? 9 : 0;
    for (; *text && *text != '}'; text++)
        if (*text != '-') {
            if (count == 2 * UUID_SIZE)
                return false;
            digits[count++] = *text;
        }
    return strcmp(text, braced ? "}" : "") == 0 && count == 2 * UUID_SIZE &&
           sl_hex_decode((struct sl_str){digits, count}, uuid, UUID_SIZE, &size) && size == UUID_SIZE;
}

/* Chooses the build id: the one that the module has, else that of --build-id, else a random one. Returns an exit status, after a report
 * unless 0. */
static int choose_id(struct wasm_splitting *s)
{
    const char *text = option_value(s->o, "build-id", NULL);
    if (text && !parse_uuid(text, s->given))
        return options_wrong(s->o, "--build-id: '%s' is not a UUID", text);
    if (s->had_id) {
        bool same = text && s->id.size == UUID_SIZE && memcmp(s->id.data, s->given, UUID_SIZE) == 0;
        if (text && !same)
            fputs("WARNING: the module already has a build id; --build-id is ignored\n", stderr);
        return 0;
    }
    if (!text) {
        if (RAND_bytes(s->given, UUID_SIZE) != 1)
            return report_error(1, "cannot make a build id: the system returned no random bytes", NULL);
        s->given[6] = (uint8_t)((s->given[6] & 0x0F) | 0x40); /* RFC 9562: version 4 and its variant */
        s->given[8] = (uint8_t)((s->given[8] & 0x3F) | 0x80);
    }
    s->id = (struct sl_str){(const char *)s->given, UUID_SIZE};
    return 0;
}

/* ---- writing ---- */

/* Appends a custom section that contains the length of `text` and the text. */
static void put_custom(struct sl_buf *out, const char *name, struct sl_str text)
{
    struct sl_buf body = {0};
    sl_buf_uleb(&body, strlen(name));
    sl_buf_cstr(&body, name);
    sl_buf_uleb(&body, text.size);
    sl_buf_str(&body, text);
    sl_buf_u8(out, WASM_CUSTOM);
    sl_buf_uleb(out, body.size);
    sl_buf_str(out, sl_buf_view(&body));
    out->failed = out->failed || body.failed;
    sl_buf_free(&body);
}

struct removed_sections {
    bool debug, names, link; /* which sections to leave out */
};

/* Appends the module without the sections to drop, and with the build id if it has none. */
static void put_parts(const struct wasm_splitting *s, struct removed_sections drop, struct sl_buf *out)
{
    sl_buf_add(out, s->mapping.bytes.data, WASM_HEADER);
    for (size_t i = 0; i < s->count; i++) {
        const struct wasm_part *part = &s->parts[i];
        bool debug = part->name.data && sl_str_starts(part->name, SL_STR(".debug_"));
        if ((drop.debug && debug) || (drop.names && is_named(part, "name")) ||
            (drop.link && is_named(part, "external_debug_info")))
            continue;
        sl_buf_add(out, part->whole.data, part->whole.size);
    }
    if (!s->had_id)
        put_custom(out, "build_id", s->id);
}

/* Makes the companion file: all sections except `external_debug_info`, the module's link to a companion. */
static void make_companion(const struct wasm_splitting *s, struct sl_buf *out)
{
    put_parts(s, (struct removed_sections){.link = true}, out);
}

/* Makes the module without the sections that --strip and --strip-names remove. With --external-dwarf-url or --debug-out, that URL or the
 * name of that file becomes the link to its companion, instead of a link that the module has. */
static void make_module(const struct wasm_splitting *s, struct sl_buf *out)
{
    const char *url = option_value(s->o, "external-dwarf-url", NULL), *debug = option_value(s->o, "debug-out", NULL);
    struct sl_str link = url ? sl_str(url) : debug ? path_file_name(sl_str(debug)) : (struct sl_str){NULL, 0};
    const struct removed_sections drop = {
        .debug = option_given(s->o, "strip"), .names = option_given(s->o, "strip-names"), .link = link.data != NULL};
    put_parts(s, drop, out);
    if (link.data)
        put_custom(out, "external_debug_info", link);
}

/* Writes a file. If `like` is not NULL, gives it the owner and mode that the file `like` has; a failure of that is only a warning. Returns
 * an exit status. */
static int split_write(const char *path, const struct sl_buf *bytes, const char *like)
{
    struct sl_error error = {0};
    struct stat st;
    if (bytes->failed)
        return report_no_memory();
    bool known = like && stat(like, &st) == 0; /* before output_file_put(), which may replace this file */
    if (output_file_put(path, sl_buf_bytes(bytes), &error) != SL_OK)
        return report_error(1, error.message, NULL);
    if (known && (chown(path, st.st_uid, st.st_gid) != 0 || chmod(path, st.st_mode & 07777) != 0))
        print_note("WARNING: %s: could not keep owner and mode\n", path);
    return 0;
}

/* ---- reports ---- */

/* Appends, in hex, the id that Sentry's JavaScript SDKs send: the first 16 bytes of the section `build_id`, which begins with the length of
 * the id. */
static void raw_id(const struct wasm_splitting *s, struct sl_buf *hex)
{
    struct sl_buf raw = {0};
    sl_buf_uleb(&raw, s->id.size);
    sl_buf_str(&raw, s->id);
    sl_buf_hex(hex, raw.data, raw.size < UUID_SIZE ? raw.size : UUID_SIZE);
    sl_buf_free(&raw);
}

/* Prints one JSON object about the module. `id` is its build id in hex; the debug id is the first 16 bytes of that, padded with zeros.
 * `raw` is the id that JavaScript SDKs send, `out` the file of the module, of `size` bytes. */
static void split_print_json(const struct wasm_splitting *s, struct sl_str id, struct sl_str raw, const char *out,
                             size_t size)
{
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    uint8_t first[UUID_SIZE] = {0};
    memcpy(first, s->id.data, s->id.size < UUID_SIZE ? s->id.size : UUID_SIZE);
    struct sl_debug_id debug_id = {0};
    char shown[SL_DEBUG_ID_TEXT];
    memcpy(debug_id.uuid, first, UUID_SIZE);
    sl_debug_id_format(&debug_id, shown);
    sl_json_begin_object(&w);
    sl_json_member_or_null(&w, "build_id", id);
    sl_json_member_or_null(&w, "debug_id", sl_str(shown));
    sl_json_member_or_null(&w, "raw_id", raw);
    sl_json_member_boolean(&w, "had_build_id", s->had_id);
    sl_json_member_or_null(&w, "out", sl_str(out));
    const char *debug = option_value(s->o, "debug-out", NULL);
    sl_json_member_or_null(&w, "debug_out", debug ? sl_str(debug) : (struct sl_str){NULL, 0});
    sl_json_member_u64(&w, "bytes_in", s->mapping.bytes.size);
    sl_json_member_u64(&w, "bytes_out", size);
    sl_json_end_object(&w);
    sl_buf_u8(&text, '\n');
    output_write(sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Prints the build id, unless --quiet is given, or everything as JSON. With --verbose, prints the id that JavaScript SDKs send on
 * stderr. */
static void print_ids(const struct wasm_splitting *s, const char *out, size_t size)
{
    struct sl_buf id = {0}, raw = {0};
    sl_buf_hex(&id, s->id.data, s->id.size);
    raw_id(s, &raw);
    if (option_given(s->o, "json"))
        split_print_json(s, sl_buf_view(&id), sl_buf_view(&raw), out, size);
    else if (!option_given(s->o, "quiet")) {
        sl_buf_u8(&id, '\n');
        output_write(sl_buf_view(&id));
    }
    if (option_given(s->o, "verbose"))
        print_note("note: JavaScript SDKs send this id: " SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&raw)));
    sl_buf_free(&id);
    sl_buf_free(&raw);
}

/* ---- the command ---- */

/* Writes the companion and the module, and prints the ids. The companion comes first, so that a module never names one that does not exist.
 * Without --out, `input` is replaced, unless it would not change. Returns an exit status. */
static int split_module(struct wasm_splitting *s, const char *input)
{
    const char *debug = option_value(s->o, "debug-out", NULL), *out = option_value(s->o, "out", NULL);
    struct sl_buf companion = {0}, module = {0};
    int status = choose_id(s);
    if (status)
        return status;
    make_companion(s, &companion);
    make_module(s, &module);
    bool same = module.size == s->mapping.bytes.size && memcmp(module.data, s->mapping.bytes.data, module.size) == 0;
    if (option_given(s->o, "strip") && !debug)
        fputs("WARNING: debug information is discarded; pass --debug-out to keep it\n", stderr);
    if (debug)
        status = split_write(debug, &companion, NULL);
    if (status == 0 && (out || !same || module.failed)) { /* split_write() reports a failed buffer */
        status = split_write(out ? out : input, &module, out ? NULL : input);
        if (status && debug)
            unlink(debug); /* it belongs to a module that was not written */
    }
    if (status == 0)
        print_ids(s, out ? out : input, module.size);
    sl_buf_free(&companion);
    sl_buf_free(&module);
    return status;
}

/* Runs the command `wasm-split`: reads the module, finds or makes its build id, and writes the module and its companion. Returns the exit
 * status. */
static int split_run(const struct options *o)
{
    struct wasm_splitting s = {.o = o};
    struct sl_error error = {0};
    if (o->argument_count != 1)
        return options_wrong(o, o->argument_count ? "more than one file given" : "no file given");
    const char *path = o->arguments[0], *debug = option_value(o, "debug-out", NULL),
               *out = option_value(o, "out", path);
    char *real = realpath(path, NULL); /* change the target of a symbolic link, and do not replace the link */
    enum sl_code code = sl_map_file(path, &s.mapping, &error);
    struct progress progress;
    int status = 0;
    if (code != SL_OK)
        status = report_file_error(path, code, &error);
    else if (debug && is_same_file(debug, out))
        status = options_wrong(o, "--debug-out would overwrite the module: '%s'", debug);
    if (status) {
        sl_unmap(&s.mapping);
        free(real);
        return status;
    }
    progress_begin(&progress, o, "splitting");
    progress_file(&progress, path);
    code = read_parts(&s, &error);
    if (code == SL_OK)
        find_id(&s);
    status = code == SL_OK ? split_module(&s, real ? real : path) : report_file_error(path, code, &error);
    progress_finish(&progress);
    free(s.parts);
    free(real);
    sl_unmap(&s.mapping);
    return status;
}

const struct command command_wasm_split = {
    .name = "wasm-split",
    .summary = "split WebAssembly debug information into a companion file",
    .usage = "wasm-split INPUT [OPTION...]",
    .about = "Gives a WebAssembly module a build id and moves its debug information to a companion file.",
    .examples = "symloom wasm-split app.wasm --strip -d app.debug.wasm",
    .options = specs,
    .run = split_run,
};
