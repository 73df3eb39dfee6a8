/* `symloom inspect`: what a debug file is, whether it is usable, what it holds. */
#include "cli/cli.h"
#include "cli/options.h"

#include "core/json.h"

#include <stdio.h>
#include <stdlib.h>

static const struct option_spec specs[] = {
    {"check", 0, OPTION_FLAG, false, NULL, "only say whether each file is usable; status 1 if one is not"},
    {"verify", 0, OPTION_FLAG, false, NULL, "read everything and count it"},
    {"sections", 0, OPTION_FLAG, false, NULL, "list the sections"},
    {"symbols", 0, OPTION_FLAG, false, NULL, "list the function symbols"},
    {"json", 0, OPTION_FLAG, false, NULL, "one array of objects"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct report {
    const char *path, *problem; /* problem: NULL when usable */
    struct input *input;
    const struct options *options;
    struct sl_buf out;
};

static const char *features_text(const struct sl_features *f, struct sl_buf *out)
{
    static const char *const names[] = {"symtab", "debug", "unwind", "sources"};
    const bool given[] = {f->has_symbols, f->has_debug_info, f->has_unwind_info, f->has_sources};
    for (size_t i = 0; i < 4; i++)
        if (given[i])
            sl_buf_printf(out, "%s%s", out->size ? ", " : "", names[i]);
    if (!out->size)
        sl_buf_cstr(out, "none");
    sl_buf_u8(out, 0);
    return (const char *)out->data;
}

static const char *problem_of(const struct sl_object_info *info)
{
    const struct sl_features *f = &info->features;
    if (sl_debug_id_is_nil(&info->debug_id) && !info->code_id.size)
        return "missing debug identifier, likely stripped";
    if (!f->has_debug_info && !f->has_symbols && !f->has_unwind_info && !f->has_sources)
        return "missing debug or unwind information";
    return NULL;
}

static void print_counts(struct report *r)
{
    struct sl_error error;
    if (option_given(r->options, "verify") && input_convert(r->input, 0, &error) == SL_OK)
        sl_buf_printf(
            &r->out, "  Counts       %llu files, %llu functions, %llu inline contexts, %llu entries\n",
            (unsigned long long)r->input->cache.file_count, (unsigned long long)r->input->cache.function_count,
            (unsigned long long)r->input->cache.context_count, (unsigned long long)r->input->cache.entry_count);
}

static void print_sections(struct report *r)
{
    struct sl_section_info s;
    if (!option_given(r->options, "sections"))
        return;
    sl_buf_printf(&r->out, "  %-28s %16s %12s  %s\n", "Section", "Address", "Size", "Compression");
    for (size_t i = 0; sl_object_section_info(r->input->object, i, &s); i++)
        if (s.name.size)
            sl_buf_printf(&r->out, "  %-28.*s %16llx %12llx  %s\n", SL_STR_ARG(s.name), (unsigned long long)s.address,
                          (unsigned long long)s.size, s.compression ? s.compression : "");
}

static void print_symbols(struct report *r)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    if (option_given(r->options, "symbols") &&
        sl_object_symbols(r->input->object, &arena, &symbols, &count, NULL) == SL_OK)
        for (size_t i = 0; i < count; i++)
            sl_buf_printf(&r->out, "  %16llx %8llx " SL_STR_FMT "\n", (unsigned long long)symbols[i].address,
                          (unsigned long long)symbols[i].size, SL_STR_ARG(symbols[i].name));
    sl_arena_free(&arena);
}

static void print_object(struct report *r)
{
    const struct sl_object_info *info = sl_object_info(r->input->object);
    char id[SL_DEBUG_ID_TEXT], breakpad[SL_DEBUG_ID_TEXT];
    struct sl_buf features = {0};
    sl_debug_id_format(&info->debug_id, id);
    sl_debug_id_format_breakpad(&info->debug_id, breakpad);
    sl_buf_printf(&r->out, "%s\n  Format       %s (%s), %zu bytes\n  Debug ID     %s\n  Breakpad ID  %s\n", r->path,
                  sl_format_name(info->format), sl_object_kind_name(info->kind), r->input->mapping.bytes.size, id,
                  breakpad);
    if (info->code_id.size)
        sl_buf_printf(&r->out, "  Code ID      " SL_STR_FMT "\n", SL_STR_ARG(info->code_id));
    sl_buf_printf(&r->out, "  Arch         %s, load address 0x%llx\n", sl_arch_name(info->arch),
                  (unsigned long long)info->load_address);
    if (info->debug_file.size)
        sl_buf_printf(&r->out, "  Debug file   " SL_STR_FMT "\n", SL_STR_ARG(info->debug_file));
    if (info->debug_link.size)
        sl_buf_printf(&r->out, "  Debug link   " SL_STR_FMT "\n", SL_STR_ARG(info->debug_link));
    sl_buf_printf(&r->out, "  Features     %s\n", features_text(&info->features, &features));
    print_counts(r);
    sl_buf_printf(&r->out, "  Usable       %s%s%s\n", r->problem ? "no (" : "yes", r->problem ? r->problem : "",
                  r->problem ? ")" : "");
    print_sections(r);
    print_symbols(r);
    sl_buf_free(&features);
}

static void print_symcache(struct report *r)
{
    const struct sl_symcache *c = &r->input->cache;
    char id[SL_DEBUG_ID_TEXT];
    struct sl_error error = {0};
    sl_debug_id_format(&c->debug_id, id);
    sl_buf_printf(&r->out, "%s\n  Format       symcache, %zu bytes\n  Debug ID     %s\n  Arch         %s\n", r->path,
                  c->bytes.size, id, sl_arch_name(c->arch));
    sl_buf_printf(&r->out, "  Counts       %llu files, %llu functions, %llu inline contexts, %llu entries\n",
                  (unsigned long long)c->file_count, (unsigned long long)c->function_count,
                  (unsigned long long)c->context_count, (unsigned long long)c->entry_count);
    if (option_given(r->options, "verify") && sl_symcache_verify(c, &error) != SL_OK)
        r->problem = "damaged contents";
    sl_buf_printf(&r->out, "  Usable       %s%s\n", r->problem ? "no: " : "yes", r->problem ? error.message : "");
}

static void write_json(struct report *r, struct json_writer *w)
{
    char id[SL_DEBUG_ID_TEXT], breakpad[SL_DEBUG_ID_TEXT];
    struct sl_buf features = {0};
    json_object_begin(w);
    json_key(w, "path");
    json_str(w, sl_str(r->path));
    json_key(w, "size");
    json_u64(w, r->input->mapping.bytes.size);
    json_key(w, "type");
    if (r->input->object) {
        const struct sl_object_info *info = sl_object_info(r->input->object);
        sl_debug_id_format(&info->debug_id, id);
        sl_debug_id_format_breakpad(&info->debug_id, breakpad);
        json_str(w, sl_str(sl_format_name(info->format)));
        json_key(w, "debug_id");
        json_str(w, sl_str(id));
        json_key(w, "breakpad_id");
        json_str(w, sl_str(breakpad));
        json_key(w, "code_id");
        json_str(w, info->code_id);
        json_key(w, "arch");
        json_str(w, sl_str(sl_arch_name(info->arch)));
        json_key(w, "kind");
        json_str(w, sl_str(sl_object_kind_name(info->kind)));
        json_key(w, "load_address");
        json_hex(w, info->load_address);
        json_key(w, "features");
        json_str(w, sl_str(features_text(&info->features, &features)));
    } else {
        json_str(w, SL_STR("symcache"));
    }
    json_key(w, "is_usable");
    json_boolean(w, !r->problem);
    json_key(w, "problem");
    if (r->problem)
        json_str(w, sl_str(r->problem));
    else
        json_null(w);
    json_object_end(w);
    sl_buf_free(&features);
}

/* 0 usable, 1 not usable or not readable. */
static int inspect(const char *path, const struct options *options, struct json_writer *w)
{
    struct input input;
    struct sl_error error = {0};
    if (input_open(path, NULL, &input, &error) != SL_OK) {
        fprintf(stderr, "symloom: '%s': %s\n", path, error.message);
        input_close(&input);
        return 1;
    }
    struct report report = {.path = path, .input = &input, .options = options};
    if (input.object)
        report.problem = problem_of(sl_object_info(input.object));
    if (w)
        write_json(&report, w);
    else if (option_given(options, "check"))
        sl_buf_printf(&report.out, "Usable: %s  %s%s%s\n", report.problem ? "no" : "yes", path,
                      report.problem ? ": " : "", report.problem ? report.problem : "");
    else if (input.object)
        print_object(&report);
    else
        print_symcache(&report);
    fwrite(report.out.data ? report.out.data : (uint8_t *)"", 1, report.out.size, stdout);
    sl_buf_free(&report.out);
    input_close(&input);
    return option_given(options, "check") && report.problem ? 1 : 0;
}

static int inspect_all(const struct options *o)
{
    int status = 0;
    struct sl_buf json = {0};
    struct json_writer w = json_writer(&json);
    bool as_json = option_given(o, "json");
    if (as_json)
        json_array_begin(&w);
    for (size_t i = 0; i < o->argument_count; i++)
        status |= inspect(o->arguments[i], o, as_json ? &w : NULL);
    if (as_json) {
        json_array_end(&w);
        printf(SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&json)));
    }
    sl_buf_free(&json);
    return status;
}

int command_inspect(int argc, char **argv)
{
    struct options options;
    int status = 2;
    if (options_parse(&options, specs, "inspect", argc, argv)) {
        if (options.help) {
            options_help(specs, "inspect [OPTION..] FILE..", "What a debug file or symcache is, and what it holds.");
            status = 0;
        } else if (!options.argument_count) {
            fputs("error: no file given\nTry 'symloom inspect --help'.\n", stderr);
        } else {
            status = inspect_all(&options);
        }
    }
    options_free(&options);
    return status;
}
