/* `symloom inspect`: prints what was found out about an object or symcache, as text or JSON. */
#include "cli/inspect/inspect.h"

#include "source/bundle.h"
#include "symbfile/fileid.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "demangle/demangle.h"

const char *findings_type(enum sl_format format)
{
    return format == SL_FORMAT_MACHO ? "dsym" : sl_format_name(format);
}

/* Appends the features that an object has: "symtab, debug, unwind, sources", or "none". */
static void put_features(struct sl_buf *out, const struct sl_features *f)
{
    static const char *const names[] = {"symtab", "debug", "unwind", "sources"};
    const bool given[] = {f->has_symbols, f->has_debug_info, f->has_unwind_info, f->has_sources};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (given[i]) {
            sl_buf_printf(out, "%s%s", any ? ", " : "", names[i]);
            any = true;
        }
    if (!any)
        sl_buf_cstr(out, "none");
}

void inspect_put_size(struct sl_buf *out, uint64_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double value = (double)size;
    size_t unit = 0;
    for (; value >= 1024 && unit < 3; unit++)
        value /= 1024;
    sl_buf_printf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void inspect_put_head(struct sl_buf *out, const char *path, const char *format, uint64_t size)
{
    output_put_safe(out, sl_str(path));
    sl_buf_printf(out, "\n  Format       %s, ", format);
    inspect_put_size(out, size);
}

void inspect_put_usable(struct sl_buf *out, const char *path, const char *problem)
{
    sl_buf_printf(out, "Usable: %s%s%s  ", problem ? "no (" : "yes", problem ? problem : "", problem ? ")" : "");
    output_put_safe(out, sl_str(path));
    sl_buf_u8(out, '\n');
}

static void put_file_id(struct sl_buf *out, struct sl_bytes file)
{
    struct sl_file_id id = sl_file_id_compute(file);
    sl_buf_hex(out, id.bytes, sizeof id.bytes);
}

/* ---- lists ---- */

void findings_add_function(struct inspect_results *f, const struct sl_function *function, struct sl_str name,
                           struct sl_str location, unsigned depth)
{
    struct sl_json_writer *w = &f->function_writer;
    if (!f->json) {
        sl_buf_printf(&f->functions, "  %16llx %8llx  %*s", (unsigned long long)function->address,
                      (unsigned long long)function->size, (int)(depth < 100 ? depth : 100) * 2, "");
        output_put_safe(&f->functions, name);
        if (location.size)
            sl_buf_cstr(&f->functions, "  ");
        output_put_safe(&f->functions, location);
        sl_buf_u8(&f->functions, '\n');
        return;
    }
    sl_json_begin_object(w);
    sl_json_member_hex(w, "address", function->address);
    sl_json_member_hex(w, "size", function->size);
    sl_json_member_str(w, "name", name);
    sl_json_put_key(w, "place");
    location.size ? sl_json_put_str(w, location) : sl_json_put_null(w);
    sl_json_put_key(w, "inlinees"); /* the caller writes the elements and ends the array */
    sl_json_begin_array(w);
}

/* True if the source exists on this machine. */
static bool is_local(struct sl_str path)
{
    char text[4096];
    return snprintf(text, sizeof text, SL_STR_FMT, SL_STR_ARG(path)) < (int)sizeof text && access(text, R_OK) == 0;
}

/* Returns where the text of a source file can be found: "embedded" in the object, "local" (on this machine) or "missing". */
static const char *source_status(const struct inspect_results *f, struct sl_str path)
{
    return sl_map_get(&f->embedded, path) ? "embedded" : is_local(path) ? "local" : "missing";
}

/* Returns the name of a symbol as it is shown. With --demangle it may be in `scratch`, and then lasts until the next call. */
static struct sl_str symbol_name(const struct inspect_results *f, const struct sl_symbol *symbol,
                                 struct sl_buf *scratch)
{
    sl_buf_clear(scratch);
    bool readable = option_given(f->options, "demangle") && sl_demangle(symbol->name, SL_LANG_UNKNOWN, scratch);
    return readable ? sl_buf_view(scratch) : symbol->name;
}

/* Writes the buffer to the output once it has 64 KiB, so that a long list does not fill the memory. False when nobody reads the output any
 * more. */
static bool flush_if_large(struct sl_buf *out)
{
    if (out->size < 64 * 1024)
        return true;
    bool ok = output_write(sl_buf_view(out));
    sl_buf_clear(out);
    return ok;
}

/* Prints the sections that have names. A name longer than 28 columns moves the rest of its line to the right. */
static void print_sections(struct inspect_results *f, struct sl_buf *out)
{
    struct sl_section_info s;
    sl_buf_printf(out, "  %-28s %16s %12s  %s\n", "Name", "Address", "Size", "Compression");
    for (size_t i = 0; sl_object_section_info(f->input->object, i, &s) && flush_if_large(out); i++) {
        if (!s.name.size)
            continue;
        size_t before = out->size;
        sl_buf_cstr(out, "  ");
        output_put_safe(out, s.name);
        int rest = 30 - (int)(out->size - before); /* 30: two spaces and the 28 columns of the name */
        sl_buf_printf(out, "%*s %16llx %12llx%s%s\n", rest > 0 ? rest : 0, "", (unsigned long long)s.address,
                      (unsigned long long)s.size, s.compression ? "  " : "", s.compression ? s.compression : "");
    }
}

/* Prints a STACK record, `line` with its line end. False, which stops reading, when nobody reads the output any more. */
static bool print_record(void *arg, struct sl_str line)
{
    struct sl_buf *out = arg;
    sl_buf_cstr(out, "  ");
    output_put_safe(out, (struct sl_str){line.data, line.size - 1}); /* without the line end, which would be escaped */
    sl_buf_u8(out, '\n');
    return flush_if_large(out);
}

/* Appends type and debug id of a script or source map in a source bundle; nothing for other files. */
static void print_artifact(const struct inspect_results *f, struct sl_str path, struct sl_buf *out)
{
    const struct sl_bundle_file *file = findings_artifact(f, path);
    char id[SL_DEBUG_ID_TEXT] = "";
    if (!file)
        return;
    if (!sl_debug_id_is_nil(&file->debug_id))
        sl_debug_id_format(&file->debug_id, id);
    sl_buf_printf(out, "  %s%s%s", sl_bundle_type_name(file->type), id[0] ? " " : "", id);
}

/* Prints the lists that the options ask for. Long lists are written to the output while they are made, and end early when nobody reads it
 * any more. */
static void print_lists(struct inspect_results *f, struct sl_buf *out)
{
    struct sl_buf scratch = {0};
    if (f->lists.sections)
        print_sections(f, out);
    if (f->lists.symbols)
        sl_buf_printf(out, "  %16s %8s  %s\n", "Address", "Size", "Name");
    for (size_t i = 0; f->lists.symbols && i < f->counts.symbols && flush_if_large(out); i++) {
        sl_buf_printf(out, "  %16llx %8llx  ", (unsigned long long)f->symbols[i].address,
                      (unsigned long long)f->symbols[i].size);
        output_put_safe(out, symbol_name(f, &f->symbols[i], &scratch));
        sl_buf_u8(out, '\n');
    }
    if (f->lists.functions) {
        sl_buf_printf(out, "  %16s %8s  %s\n", "Address", "Size", "Name  File:Line");
        sl_buf_str(out, sl_buf_view(&f->functions));
    }
    struct sl_str *paths = f->lists.files || f->lists.sources ? findings_sorted(&f->files) : NULL;
    for (size_t i = 0; paths && i < f->files.count && flush_if_large(out); i++) {
        if (f->lists.sources)
            sl_buf_printf(out, "  %-8s", source_status(f, paths[i]));
        sl_buf_cstr(out, "  ");
        output_put_safe(out, paths[i]);
        sl_buf_clear(&scratch);
        findings_link(f, paths[i], &scratch);
        if (f->lists.sources && scratch.size) {
            sl_buf_cstr(out, "  ");
            output_put_safe(out, sl_buf_view(&scratch));
        }
        if (f->lists.sources)
            print_artifact(f, paths[i], out);
        sl_buf_u8(out, '\n');
    }
    if (f->lists.cfi)
        findings_cfi(f, print_record, out);
    free(paths);
    sl_buf_free(&scratch);
}

/* ---- text ---- */

/* Appends a line with a label; nothing if the text is empty. */
static void print_line(struct sl_buf *out, const char *label, struct sl_str text)
{
    if (!text.size)
        return;
    sl_buf_printf(out, "  %-12s ", label);
    output_put_safe(out, text);
    sl_buf_u8(out, '\n');
}

/* Prints the ids and names by which the object is found. */
static void print_identity(struct inspect_results *f, struct sl_buf *out)
{
    const struct sl_object_info *info = sl_object_info(f->input->object);
    char id[SL_DEBUG_ID_TEXT], breakpad[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&info->debug_id, id);
    sl_debug_id_format_breakpad(&info->debug_id, breakpad);
    sl_buf_printf(out, "  Format       %s (%s), ", sl_format_name(info->format), sl_object_kind_name(info->kind));
    inspect_put_size(out, sl_object_file(f->input->object).size);
    sl_buf_printf(out, ", object %zu of %zu\n", f->index + 1, f->count);
    if (!sl_debug_id_is_nil(&info->debug_id))
        sl_buf_printf(out, "  Debug ID     %s\n  Breakpad ID  %s\n", id, breakpad);
    print_line(out, "Code ID", info->code_id);
    sl_buf_printf(out, "  Arch         %s, load address 0x%llx\n", sl_arch_name(info->arch),
                  (unsigned long long)info->load_address);
    print_line(out, "Debug file", info->debug_file);
    print_line(out, "Debug link", info->debug_link);
    if (option_given(f->options, "verbose")) {
        sl_buf_cstr(out, "  File ID      ");
        put_file_id(out, f->input->mapping.bytes);
        sl_buf_u8(out, '\n');
    }
}

/* Prints the compilers with the number of their compilation units, and the sections that are compressed. */
static void print_producers(struct inspect_results *f, struct sl_buf *out)
{
    struct sl_str *names = findings_sorted(&f->producers);
    struct sl_section_info s;
    const char *label = "Producers";
    for (size_t i = 0; names && i < f->producers.count; i++) {
        sl_buf_printf(out, "  %-12s ", label);
        output_put_safe(out, names[i]);
        /* the map's values are counts, not pointers */
        sl_buf_printf(out, " (%zu units)\n", (size_t)(uintptr_t)sl_map_get(&f->producers, names[i]));
        label = "";
    }
    free(names);
    label = "Compressed";
    for (size_t i = 0; sl_object_section_info(f->input->object, i, &s); i++)
        if (s.compression) {
            sl_buf_printf(out, "  %-12s ", label);
            output_put_safe(out, s.name);
            sl_buf_printf(out, " %s\n", s.compression);
            label = "";
        }
}

static void print_hints(struct inspect_results *f, struct sl_buf *out)
{
    struct sl_str rest = sl_buf_view(&f->hints), hint;
    while (sl_str_next_line(&rest, &hint))
        print_line(out, "Hint", hint);
}

/* Appends all that is shown of an object: what it is, its ids, its features, and the lists that options request. */
static void print_object(struct inspect_results *f, struct sl_buf *out)
{
    print_identity(f, out);
    sl_buf_cstr(out, "  Features     ");
    put_features(out, &sl_object_info(f->input->object)->features);
    sl_buf_u8(out, '\n');
    if (f->complete) {
        const struct inspect_counts *c = &f->counts;
        sl_buf_printf(out,
                      "  Counts       %llu files, %llu functions, %llu inlinees, %llu lines, %llu symbols, "
                      "%llu CFI entries\n",
                      (unsigned long long)c->files, (unsigned long long)c->functions, (unsigned long long)c->inlinees,
                      (unsigned long long)c->lines, (unsigned long long)c->symbols, (unsigned long long)c->cfi);
        print_producers(f, out);
    }
    if (f->note)
        sl_buf_printf(out, "  Note         %s\n", f->note);
    sl_buf_printf(out, "  Usable       %s%s%s\n", f->problem ? "no (" : "yes", f->problem ? f->problem : "",
                  f->problem ? ")" : "");
    print_hints(f, out);
    print_lists(f, out);
}

/* Appends what a symcache contains. With --verify or --statistics, reads it all, and sets f->problem if it is damaged. */
static void print_symcache(struct inspect_results *f, struct sl_buf *out)
{
    const struct sl_symcache *c = &f->input->cache;
    char id[SL_DEBUG_ID_TEXT];
    struct sl_error error = {0};
    sl_debug_id_format(&c->debug_id, id);
    if ((option_given(f->options, "verify") || option_given(f->options, "statistics")) &&
        sl_symcache_verify(c, &error) != SL_OK)
        f->problem = "damaged contents";
    sl_buf_cstr(out, "  Format       symcache, ");
    inspect_put_size(out, c->table.bytes.size);
    sl_buf_printf(out, "\n  Debug ID     %s\n  Arch         %s\n", id, sl_arch_name(c->arch));
    print_line(out, "Module file", sl_symcache_module_file(c));
    sl_buf_printf(out, "  Counts       %llu files, %llu functions, %llu inline contexts, %llu entries, %llu strings\n",
                  (unsigned long long)c->file_count, (unsigned long long)c->function_count,
                  (unsigned long long)c->context_count, (unsigned long long)c->entry_count,
                  (unsigned long long)c->string_count);
    sl_buf_printf(out, "  Usable       %s%s%s\n", f->problem ? "no (" : "yes", f->problem ? f->problem : "",
                  f->problem ? ")" : "");
    print_line(out, "Hint", sl_str(error.message));
}

/* Appends all that was found out about a file, as text. A file without an object is a symcache. */
void findings_print(struct inspect_results *f, struct sl_buf *out)
{
    output_put_safe(out, sl_str(f->path));
    sl_buf_u8(out, '\n');
    if (f->input->object)
        print_object(f, out);
    else
        print_symcache(f, out);
}

/* ---- JSON ---- */

static void text_or_null(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_put_key(w, key);
    text.size ? sl_json_put_str(w, text) : sl_json_put_null(w);
}

void findings_variant(struct sl_json_writer *w, const struct sl_object_info *info)
{
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&info->debug_id, id);
    sl_json_begin_object(w);
    sl_json_member_str(w, "debug_id", sl_str(id));
    text_or_null(w, "code_id", info->code_id);
    sl_json_member_str(w, "arch", sl_str(sl_arch_name(info->arch)));
    sl_json_end_object(w);
}

/* Writes the members that identify the object: format, architecture, ids. */
static void json_identity(struct inspect_results *f, struct sl_json_writer *w)
{
    const struct sl_object_info *info = sl_object_info(f->input->object);
    char id[SL_DEBUG_ID_TEXT], breakpad[SL_DEBUG_ID_TEXT];
    struct sl_buf text = {0};
    sl_debug_id_format(&info->debug_id, id);
    sl_debug_id_format_breakpad(&info->debug_id, breakpad);
    sl_json_member_str(w, "debug_id", sl_str(id));
    sl_json_member_str(w, "breakpad_id", sl_str(breakpad));
    text_or_null(w, "code_id", info->code_id);
    put_file_id(&text, f->input->mapping.bytes);
    text_or_null(w, "file_id", sl_buf_view(&text));
    sl_json_member_str(w, "arch", sl_str(sl_arch_name(info->arch)));
    sl_json_member_str(w, "kind", sl_str(sl_object_kind_name(info->kind)));
    sl_json_member_hex(w, "load_address", info->load_address);
    text_or_null(w, "debug_file", info->debug_file);
    sl_buf_clear(&text);
    put_features(&text, &info->features);
    text_or_null(w, "features", sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Writes the member "counts": the totals of an object that was read completely, else null. */
static void json_counts(struct inspect_results *f, struct sl_json_writer *w)
{
    const struct {
        const char *key;
        uint64_t count;
    } rows[] = {{"files", f->counts.files},          {"functions", f->counts.functions},
                {"inlinees", f->counts.inlinees},    {"lines", f->counts.lines},
                {"symbols", f->counts.symbols},      {"cfi_entries", f->counts.cfi},
                {"skipped_units", f->counts.skipped}};
    sl_json_put_key(w, "counts");
    if (!f->complete) {
        sl_json_put_null(w);
        return;
    }
    sl_json_begin_object(w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        sl_json_member_u64(w, rows[i].key, rows[i].count);
    sl_json_end_object(w);
}

/* Writes the array "hints"; f->hints has one hint a line. */
static void json_hints(struct inspect_results *f, struct sl_json_writer *w)
{
    struct sl_str rest = sl_buf_view(&f->hints), hint;
    sl_json_member_array(w, "hints");
    while (sl_str_next_line(&rest, &hint))
        sl_json_put_str(w, hint);
    sl_json_end_array(w);
}

/* Writes the list of sections; unnamed ones, such as the first of ELF, are left out. */
static void json_sections(struct inspect_results *f, struct sl_json_writer *w)
{
    struct sl_section_info s;
    sl_json_member_array(w, "sections");
    for (size_t i = 0; sl_object_section_info(f->input->object, i, &s); i++) {
        if (!s.name.size)
            continue;
        sl_json_begin_object(w);
        sl_json_member_str(w, "name", s.name);
        sl_json_member_hex(w, "address", s.address);
        sl_json_member_hex(w, "size", s.size);
        text_or_null(w, "compression", sl_str(s.compression));
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the list of symbols. A long list is written to the output while it is made, and ends early when nobody reads it any more. */
static void json_symbols(struct inspect_results *f, struct sl_json_writer *w)
{
    struct sl_buf scratch = {0};
    sl_json_member_array(w, "symbols");
    for (size_t i = 0; i < f->counts.symbols && flush_if_large(w->out); i++) {
        sl_json_begin_object(w);
        sl_json_member_hex(w, "address", f->symbols[i].address);
        sl_json_member_hex(w, "size", f->symbols[i].size);
        sl_json_member_str(w, "name", symbol_name(f, &f->symbols[i], &scratch));
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
    sl_buf_free(&scratch);
}

/* Writes type and debug id (null if it has none) of a script or source map in a source bundle; nothing for other files. */
static void json_artifact(const struct inspect_results *f, struct sl_str path, struct sl_json_writer *w)
{
    const struct sl_bundle_file *file = findings_artifact(f, path);
    char id[SL_DEBUG_ID_TEXT] = "";
    if (!file)
        return;
    if (!sl_debug_id_is_nil(&file->debug_id))
        sl_debug_id_format(&file->debug_id, id);
    text_or_null(w, "type", sl_str(sl_bundle_type_name(file->type)));
    text_or_null(w, "debug_id", sl_str(id));
}

/* Writes the list of source files: the member "files", paths alone, or, if `sources`, the member "sources" with where each text can be
 * found. */
static void json_paths(struct inspect_results *f, struct sl_json_writer *w, bool sources)
{
    struct sl_str *paths = findings_sorted(&f->files);
    struct sl_buf url = {0};
    sl_json_member_array(w, sources ? "sources" : "files");
    for (size_t i = 0; paths && i < f->files.count && flush_if_large(w->out); i++) {
        if (!sources) {
            sl_json_put_str(w, paths[i]);
            continue;
        }
        sl_json_begin_object(w);
        sl_json_member_str(w, "path", paths[i]);
        sl_json_member_str(w, "status", sl_str(source_status(f, paths[i])));
        sl_buf_clear(&url);
        findings_link(f, paths[i], &url);
        text_or_null(w, "url", sl_buf_view(&url));
        json_artifact(f, paths[i], w);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
    free(paths);
    sl_buf_free(&url);
}

/* Writes a STACK record as a JSON string, without its line end. False, which stops reading, when nobody reads the output any more. */
static bool json_record(void *arg, struct sl_str line)
{
    struct sl_json_writer *w = arg;
    sl_json_put_str(w, (struct sl_str){line.data, line.size - 1});
    return flush_if_large(w->out);
}

/* Writes the lists that the options ask for. The list of functions was written as JSON while the object was read. */
static void json_lists(struct inspect_results *f, struct sl_json_writer *w)
{
    if (f->lists.sections)
        json_sections(f, w);
    if (f->lists.symbols)
        json_symbols(f, w);
    if (f->lists.functions) {
        sl_json_member_array(w, "functions");
        sl_buf_str(w->out, sl_buf_view(&f->functions));
        sl_json_end_array(w);
    }
    if (f->lists.files)
        json_paths(f, w, false);
    if (f->lists.sources)
        json_paths(f, w, true);
    if (f->lists.cfi) {
        sl_json_member_array(w, "cfi");
        findings_cfi(f, json_record, w);
        sl_json_end_array(w);
    }
}

/* Writes all that was found out about a file, as one JSON object. A file without an object is a symcache: ids, counts and lists are not
 * shown of it. */
void findings_json(struct inspect_results *f, struct sl_json_writer *w)
{
    sl_json_begin_object(w);
    sl_json_member_str(w, "path", sl_str(f->path));
    sl_json_member_u64(w, "size", f->input->mapping.bytes.size);
    sl_json_put_key(w, "type");
    if (f->input->object) {
        sl_json_put_str(w, sl_str(findings_type(sl_object_info(f->input->object)->format)));
        sl_json_member_u64(w, "object_index", f->index);
        json_identity(f, w);
        json_counts(f, w);
    } else {
        sl_json_put_str(w, SL_STR("symcache"));
    }
    sl_json_member_boolean(w, "is_usable", !f->problem);
    text_or_null(w, "problem", sl_str(f->problem));
    text_or_null(w, "note", sl_str(f->note));
    json_hints(f, w);
    sl_json_member_array(w, "variants");
    if (f->json_variants)
        sl_buf_str(w->out, sl_buf_view(f->json_variants));
    sl_json_end_array(w);
    if (f->input->object)
        json_lists(f, w);
    sl_json_end_object(w);
}
