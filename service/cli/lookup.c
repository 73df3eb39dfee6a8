/* `symloom lookup`: addresses to functions and lines, in the output styles of the usual tools. */
#include "cli/cli.h"
#include "cli/options.h"

#include "core/json.h"
#include "demangle/demangle.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct option_spec specs[] = {
    {"exe", 'e', OPTION_VALUE, false, "FILE", "debug file or symcache (default: a.out)"},
    {"obj", 0, OPTION_VALUE, false, "FILE", "the same"},
    {"functions", 'f', OPTION_OPTIONAL, true, "none|short|linkage", "names of functions (default: linkage)"},
    {"inlines", 'i', OPTION_FLAG, true, NULL, "inlined callers, innermost first (default)"},
    {"inlining", 0, OPTION_OPTIONAL, true, "BOOL", "the same, or not"},
    {"no-inlines", 0, OPTION_FLAG, true, NULL, "only the innermost element"},
    {"demangle", 'C', OPTION_OPTIONAL, true, "BOOL", "readable names (default)"},
    {"no-demangle", 0, OPTION_FLAG, true, NULL, "names as they are stored"},
    {"addresses", 'a', OPTION_FLAG, true, NULL, "print the address before its answer"},
    {"print-address", 0, OPTION_FLAG, true, NULL, NULL},
    {"pretty-print", 'p', OPTION_FLAG, true, NULL, "one line for each element"},
    {"basenames", 's', OPTION_FLAG, true, NULL, "file names without directories"},
    {"adjust-vma", 0, OPTION_VALUE, false, "N", "subtracted from every address"},
    {"relative-address", 0, OPTION_FLAG, true, NULL, "addresses are relative to the load address"},
    {"return-addresses", 0, OPTION_FLAG, true, NULL, "addresses are return addresses: look one byte before"},
    {"output-style", 0, OPTION_VALUE, false, "gnu|llvm|json|table", "default: table on a terminal, else llvm"},
    {"all", 0, OPTION_FLAG, false, NULL, "every address where something begins, ascending"},
    {"symcache-out", 0, OPTION_VALUE, false, "FILE", "keep the symcache that was made"},
    {"jobs", 0, OPTION_VALUE, false, "N", "threads for the conversion (default: all cores)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

enum style { STYLE_GNU, STYLE_LLVM, STYLE_JSON, STYLE_TABLE };
enum { MAX_CHAIN = 600 };

struct lookup {
    struct input input;
    const char *path;
    enum style style;
    bool functions, short_names, inlines, demangle, addresses, pretty, basenames, relative, return_addresses;
    uint64_t adjust, load;
    struct sl_buf out, name, file, scratch;
};

struct element {
    struct sl_str name, file; /* empty = not known */
    uint32_t line;
    uint64_t entry;
    bool has_entry;
};

/* `std::vector<int>::push_back(int)` to `push_back`: what stands before the parameters, behind the last scope. */
static struct sl_str short_name(struct sl_str name)
{
    int depth = 0;
    size_t end = name.size, start = 0;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        depth += (c == '<') - (c == '>' && depth);
        if (depth == 0 && c == '(' && i > start) {
            end = i;
            break;
        }
        if (depth == 0 && c == ':' && i + 1 < name.size && name.data[i + 1] == ':')
            start = i + 2;
    }
    return (struct sl_str){name.data + start, end - start};
}

static void read_element(struct lookup *l, const struct sl_location *location, struct element *e)
{
    struct sl_symcache_function function;
    *e = (struct element){.line = location->line};
    sl_buf_clear(&l->name);
    sl_buf_clear(&l->file);
    sl_buf_clear(&l->scratch);
    if (sl_symcache_function(&l->input.cache, location->function, &function)) {
        sl_symcache_string(&l->input.cache, function.name, &l->scratch);
        bool readable =
            (l->demangle || l->short_names) && sl_demangle(sl_buf_view(&l->scratch), function.language, &l->name);
        if (!readable)
            sl_buf_str(&l->name, sl_buf_view(&l->scratch));
        e->has_entry = function.entry != UINT64_MAX;
        e->entry = function.entry + l->load;
    }
    if (location->file != SL_SYMCACHE_NONE)
        sl_symcache_file(&l->input.cache, location->file, &l->file);
    e->name = l->short_names ? short_name(sl_buf_view(&l->name)) : sl_buf_view(&l->name);
    e->file = sl_buf_view(&l->file);
    const char *slash = l->basenames && e->file.size ? memrchr(e->file.data, '/', e->file.size) : NULL;
    if (slash)
        e->file = (struct sl_str){slash + 1, e->file.size - (size_t)(slash + 1 - e->file.data)};
}

static void text_or(struct sl_buf *out, struct sl_str text, const char *unknown)
{
    if (text.size)
        sl_buf_str(out, text);
    else
        sl_buf_cstr(out, unknown);
}

static void gnu_place(struct lookup *l, const struct element *e)
{
    text_or(&l->out, e->file, "??");
    if (e->line)
        sl_buf_printf(&l->out, ":%u", e->line);
    else
        sl_buf_cstr(&l->out, e->name.size || e->file.size ? ":?" : ":0");
}

static void print_gnu(struct lookup *l, uint64_t address, const struct element *e, size_t index)
{
    if (index == 0 && l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%0*llx: " : "0x%0*llx\n",
                      l->input.object && !sl_object_info(l->input.object)->is_64bit ? 8 : 16,
                      (unsigned long long)address);
    if (l->pretty && index)
        sl_buf_cstr(&l->out, " (inlined by) ");
    if (l->functions) {
        text_or(&l->out, e->name, "??");
        sl_buf_cstr(&l->out, !l->pretty ? "\n" : e->name.size ? " at " : " ");
    }
    gnu_place(l, e);
    sl_buf_u8(&l->out, '\n');
}

static void print_llvm(struct lookup *l, uint64_t address, const struct element *e, size_t index)
{
    if (index == 0 && l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%llx: " : "0x%llx\n", (unsigned long long)address);
    if (l->pretty && index)
        sl_buf_cstr(&l->out, " (inlined by) ");
    if (l->functions) {
        text_or(&l->out, e->name, "??");
        sl_buf_cstr(&l->out, l->pretty ? " at " : "\n");
    }
    text_or(&l->out, e->file, "??");
    sl_buf_printf(&l->out, ":%u:0\n", e->line);
}

static void print_table(struct lookup *l, uint64_t address, const struct element *e, size_t index)
{
    if (index == 0)
        sl_buf_printf(&l->out, "%#18llx  ", (unsigned long long)address);
    else
        sl_buf_printf(&l->out, "%18s  (inlined by) ", "");
    text_or(&l->out, e->name, "??");
    if (e->has_entry && address >= e->entry)
        sl_buf_printf(&l->out, " +%#llx", (unsigned long long)(address - e->entry));
    if (e->file.size) {
        sl_buf_cstr(&l->out, "  ");
        sl_buf_str(&l->out, e->file);
        sl_buf_printf(&l->out, ":%u", e->line);
    }
    sl_buf_u8(&l->out, '\n');
}

static void json_element(struct lookup *l, struct json_writer *w, const struct element *e)
{
    json_object_begin(w);
    json_key(w, "Column");
    json_u64(w, 0);
    json_key(w, "Discriminator");
    json_u64(w, 0);
    json_key(w, "FileName");
    json_str(w, e->file);
    json_key(w, "FunctionName");
    json_str(w, l->functions ? e->name : (struct sl_str){"", 0});
    json_key(w, "Line");
    json_u64(w, e->line);
    json_key(w, "StartAddress");
    if (e->has_entry)
        json_hex(w, e->entry);
    else
        json_str(w, SL_STR(""));
    json_key(w, "StartFileName");
    json_str(w, SL_STR(""));
    json_key(w, "StartLine");
    json_u64(w, 0);
    json_object_end(w);
}

static void answer_json(struct lookup *l, struct json_writer *w, uint64_t address, const struct sl_location *chain,
                        size_t count)
{
    struct element e = {0};
    json_object_begin(w);
    json_key(w, "Address");
    json_hex(w, address);
    json_key(w, "ModuleName");
    json_str(w, sl_str(l->path));
    json_key(w, "Symbol");
    json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        read_element(l, &chain[i], &e);
        json_element(l, w, &e);
    }
    if (!count)
        json_element(l, w, &e);
    json_array_end(w);
    json_object_end(w);
}

static void answer(struct lookup *l, struct json_writer *w, uint64_t address)
{
    struct sl_location chain[MAX_CHAIN];
    uint64_t at = address - l->adjust - (l->return_addresses ? 1 : 0);
    bool below = !l->relative && at < l->load;
    size_t count = below ? 0 : sl_symcache_lookup(&l->input.cache, l->relative ? at : at - l->load, chain, MAX_CHAIN);
    count = count > MAX_CHAIN ? MAX_CHAIN : count;
    if (!l->inlines && count > 1)
        count = 1;
    if (l->style == STYLE_JSON) {
        answer_json(l, w, address, chain, count);
        return;
    }
    struct element e = {0};
    for (size_t i = 0; i < (count ? count : 1); i++) {
        if (count)
            read_element(l, &chain[i], &e);
        if (l->style == STYLE_GNU)
            print_gnu(l, address, &e, i);
        else if (l->style == STYLE_LLVM)
            print_llvm(l, address, &e, i);
        else
            print_table(l, address, &e, i);
    }
    if (l->style == STYLE_LLVM)
        sl_buf_u8(&l->out, '\n');
}

static bool flush(struct lookup *l)
{
    bool ok = fwrite(l->out.data ? l->out.data : (uint8_t *)"", 1, l->out.size, stdout) == l->out.size;
    sl_buf_clear(&l->out);
    return fflush(stdout) == 0 && ok;
}

/* GNU input: hexadecimal with or without 0x, reading stops at the first other character. LLVM: decimal unless 0x. */
static uint64_t parse_address(const char *text, bool hexadecimal)
{
    while (*text == ' ' || *text == '\t')
        text++;
    bool prefixed = text[0] == '0' && (text[1] | 32) == 'x';
    return strtoull(text, NULL, hexadecimal || prefixed ? 16 : 10);
}

static bool input_waits(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* One answer a line; flushed whenever no further input waits, so that a client may ask line by line. */
static bool serve_input(struct lookup *l)
{
    char buffer[64 * 1024];
    size_t filled = 0;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buffer + filled, sizeof buffer - 1 - filled);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 && !filled)
            return flush(l);
        filled += n > 0 ? (size_t)n : 0;
        if (n <= 0)
            buffer[filled++] = '\n';
        size_t at = 0;
        for (char *end; at < filled && (end = memchr(buffer + at, '\n', filled - at));
             at = (size_t)(end - buffer) + 1) {
            struct json_writer w = json_writer(&l->out);
            *end = '\0';
            answer(l, &w, parse_address(buffer + at, l->style != STYLE_LLVM && l->style != STYLE_JSON));
            if (l->style == STYLE_JSON)
                sl_buf_u8(&l->out, '\n');
        }
        if (at == 0 && filled == sizeof buffer - 1)
            at = filled; /* a line nobody means */
        memmove(buffer, buffer + at, filled - at);
        filled -= at;
        if ((l->out.size > sizeof buffer || n <= 0 || !input_waits()) && !flush(l))
            return false;
        if (n <= 0)
            return true;
    }
}

static bool serve_arguments(struct lookup *l, char **arguments, size_t count)
{
    struct json_writer w = json_writer(&l->out);
    if (l->style == STYLE_JSON)
        json_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        answer(l, &w, parse_address(arguments[i], true));
    if (l->style == STYLE_JSON) {
        json_array_end(&w);
        sl_buf_u8(&l->out, '\n');
    }
    return flush(l);
}

static bool serve_all(struct lookup *l)
{
    struct sl_symcache_cursor cursor;
    for (sl_symcache_first(&l->input.cache, &cursor); sl_symcache_next(&l->input.cache, &cursor);) {
        struct json_writer w = json_writer(&l->out);
        if (cursor.hole)
            continue;
        answer(l, &w, cursor.address + l->load + l->adjust);
        if (l->style == STYLE_JSON)
            sl_buf_u8(&l->out, '\n');
        if (l->out.size > 64 * 1024 && !flush(l))
            return false;
    }
    return flush(l);
}

static bool is_false(const char *text)
{
    return strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool read_style(struct lookup *l, const char *name)
{
    static const char *const names[] = {"gnu", "llvm", "json", "table"};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            l->style = (enum style)i;
            return true;
        }
    const char *lower[] = {"GNU", "LLVM", "JSON"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(lower[i], name) == 0) {
            l->style = (enum style)i;
            return true;
        }
    fprintf(stderr, "error: unknown output style '%s' (gnu, llvm, json, table)\nTry 'symloom lookup --help'.\n", name);
    return false;
}

static bool read_options(struct lookup *l, const struct options *o)
{
    const char *functions = option_value(o, "functions", "linkage");
    l->functions = strcmp(functions, "none") != 0;
    l->short_names = strcmp(functions, "short") == 0;
    l->inlines = !option_given(o, "no-inlines") && !is_false(option_value(o, "inlining", "true"));
    l->demangle = !option_given(o, "no-demangle") && !is_false(option_value(o, "demangle", "true"));
    l->addresses = option_given(o, "addresses") || option_given(o, "print-address");
    l->pretty = option_given(o, "pretty-print");
    l->basenames = option_given(o, "basenames");
    l->relative = option_given(o, "relative-address");
    l->return_addresses = option_given(o, "return-addresses");
    l->adjust = strtoull(option_value(o, "adjust-vma", "0"), NULL, 0);
    l->path = option_value(o, "exe", option_value(o, "obj", "a.out"));
    return read_style(l, option_value(o, "output-style", isatty(STDOUT_FILENO) ? "table" : "llvm"));
}

static int fail(const char *path, const struct sl_error *error)
{
    fprintf(stderr, "symloom: '%s': %s\n", path, error->message);
    return 1;
}

static int run(struct lookup *l, const struct options *o)
{
    struct sl_error error = {0};
    const char *out = option_value(o, "symcache-out", NULL);
    if (input_open(l->path, &l->input, &error) != SL_OK ||
        input_convert(l->path, &l->input, (unsigned)strtoul(option_value(o, "jobs", "0"), NULL, 10), &error) != SL_OK)
        return fail(l->path, &error);
    l->load = l->input.object && !l->relative ? sl_object_info(l->input.object)->load_address : 0;
    if (out && sl_write_file(out, l->input.cache.bytes, &error) != SL_OK)
        return fail(out, &error);
    bool ok = true;
    if (option_given(o, "all"))
        ok = serve_all(l);
    else if (o->argument_count && strcmp(o->arguments[0], "-") != 0)
        ok = serve_arguments(l, o->arguments, o->argument_count);
    else if (!(out && isatty(STDIN_FILENO)))
        ok = serve_input(l);
    if (!ok)
        fputs("symloom: cannot write the answers\n", stderr);
    return ok ? 0 : 1;
}

int command_lookup(int argc, char **argv)
{
    struct options options;
    struct lookup lookup = {0};
    int status = 2;
    if (options_parse(&options, specs, "lookup", argc, argv)) {
        if (options.help) {
            options_help(specs, "lookup [-e FILE] [OPTION..] [ADDRESS..]",
                         "Addresses of a debug file or symcache to functions and lines. Without ADDRESS, or with -,\n"
                         "addresses are read from standard input, one a line.");
            status = 0;
        } else if (read_options(&lookup, &options)) {
            status = run(&lookup, &options);
        }
    }
    input_close(&lookup.input);
    sl_buf_free(&lookup.out);
    sl_buf_free(&lookup.name);
    sl_buf_free(&lookup.file);
    sl_buf_free(&lookup.scratch);
    options_free(&options);
    return status;
}
