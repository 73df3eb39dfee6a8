/* `symloom inspect` for ProGuard and R8 mappings: id, compiler, counts. */
#include "cli/inspect/inspect.h"

#include "jvm/mapping.h"

/* Writes what is known of a ProGuard mapping as one JSON object, with members named as for debug files. A mapping is always usable. */
static void mapping_json(const char *path, size_t size, const char *id, const struct sl_jvm_summary *s,
                         struct sl_json_writer *w)
{
    sl_json_begin_object(w);
    sl_json_member_or_null(w, "path", sl_str(path));
    sl_json_member_u64(w, "size", size);
    sl_json_member_or_null(w, "type", SL_STR("proguard"));
    sl_json_member_or_null(w, "debug_id", sl_str(id));
    sl_json_member_or_null(w, "compiler", s->compiler);
    sl_json_member_or_null(w, "compiler_version", s->compiler_version);
    sl_json_member_or_null(w, "min_api", s->min_api);
    sl_json_member_object(w, "counts");
    sl_json_member_u64(w, "classes", s->classes);
    sl_json_member_u64(w, "methods", s->methods);
    sl_json_end_object(w);
    sl_json_member_boolean(w, "has_lines", s->has_lines);
    sl_json_member_boolean(w, "is_usable", true);
    sl_json_member_or_null(w, "problem", (struct sl_str){NULL, 0});
    sl_json_end_object(w);
}

/* Appends what is known of a ProGuard mapping as text. The line of the compiler is left out if the file does not name one. */
static void mapping_print(const char *path, size_t size, const char *id, const struct sl_jvm_summary *s,
                          struct sl_buf *out)
{
    inspect_put_head(out, path, "proguard", size);
    sl_buf_printf(out, "\n  Debug ID     %s\n", id);
    if (s->compiler.data) {
        sl_buf_cstr(out, "  Compiler     ");
        output_put_safe(out, s->compiler);
        sl_buf_u8(out, ' ');
        output_put_safe(out, s->compiler_version);
        sl_buf_u8(out, '\n');
    }
    sl_buf_printf(out, "  Counts       %llu class%s, %llu method%s, %s\n  Usable       yes\n",
                  (unsigned long long)s->classes, s->classes == 1 ? "" : "es", (unsigned long long)s->methods,
                  s->methods == 1 ? "" : "s", s->has_lines ? "lines" : "no lines");
}

/* Shows a ProGuard or R8 mapping; false, showing nothing, if the file is none. Its debug id is a hash of its text, which fails only when
 * out of memory: then nothing is shown, and the output is marked as failed. */
bool inspect_mapping(struct inspected_file *file)
{
    struct sl_str text = {(const char *)file->bytes.data, file->bytes.size};
    struct sl_debug_id id;
    char id_text[SL_DEBUG_ID_TEXT];
    if (!sl_jvm_is_mapping(text))
        return false;
    bool has_id = sl_jvm_mapping_id(text, &id);
    file->out->failed |= !has_id;
    file->other_id = !has_id || (file->wanted && !sl_debug_id_equal(file->wanted, &id));
    if (file->other_id)
        return true;
    sl_debug_id_format(&id, id_text);
    struct sl_jvm_summary summary = sl_jvm_summarise(text);
    if (file->w)
        mapping_json(file->path, text.size, id_text, &summary, file->w);
    else if (option_given(file->options, "check"))
        inspect_put_usable(file->out, file->path, NULL);
    else
        mapping_print(file->path, text.size, id_text, &summary, file->out);
    return true;
}
