/* `symloom inspect` for symbfiles: counts of records, and with --symbols the records. */
#include "cli/inspect/inspect.h"

#include "symbfile/symbfile.h"

struct symbfile_summary {
    struct sl_symbfile_sink sink;
    uint64_t ranges, inlined, pads, lines, tables;
    bool list;
    struct sl_buf out;
};

/* Appends " function (file:line)" of a record; without file if that is unknown. */
static void print_place(struct symbfile_summary *s, struct sl_str function, struct sl_str file, uint32_t line)
{
    sl_buf_u8(&s->out, ' ');
    output_put_safe(&s->out, function);
    if (file.size) {
        sl_buf_cstr(&s->out, " (");
        output_put_safe(&s->out, file);
        sl_buf_printf(&s->out, ":%u)", line);
    }
    sl_buf_u8(&s->out, '\n');
}

/* Receives an address range: counts it, and with --symbols lists it, indented by its depth among inlined calls. */
static enum sl_code on_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *r, struct sl_error *error)
{
    struct symbfile_summary *s = (struct symbfile_summary *)sink;
    (void)error;
    s->ranges++;
    s->inlined += r->depth > 0;
    s->lines += r->line_count;
    if (s->list) {
        sl_buf_printf(&s->out, "  %16llx %8x %*s", (unsigned long long)r->va, r->length,
                      (int)(r->depth < 64 ? r->depth : 64) * 2, "");
        print_place(s, r->function.str, r->file.str, r->line_count ? r->lines[0].line : 0);
    }
    return SL_OK;
}

/* Receives a return pad (the frames at one return address): counts it, and with --symbols lists its frames. */
static enum sl_code on_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *p, struct sl_error *error)
{
    struct symbfile_summary *s = (struct symbfile_summary *)sink;
    (void)error;
    s->pads++;
    for (size_t i = 0; i < p->count && s->list; i++) {
        sl_buf_printf(&s->out, "  %16llx      pad %*s", (unsigned long long)p->va, (int)(i < 64 ? i : 64) * 2, "");
        print_place(s, p->frames[i].function.str, p->frames[i].file.str, p->frames[i].line);
    }
    return SL_OK;
}

static void on_table(struct sl_symbfile_sink *sink)
{
    ((struct symbfile_summary *)sink)->tables++;
}

/* Writes a symbfile as one JSON object; `problem` NULL: it is usable. */
static void write_json(const struct symbfile_summary *s, const char *path, size_t size, const char *problem,
                       struct sl_json_writer *w)
{
    sl_json_begin_object(w);
    sl_json_member_str(w, "path", sl_str(path));
    sl_json_member_u64(w, "size", size);
    sl_json_member_str(w, "type", SL_STR("symbfile"));
    sl_json_member_object(w, "counts");
    sl_json_member_u64(w, "ranges", s->ranges);
    sl_json_member_u64(w, "inlinees", s->inlined);
    sl_json_member_u64(w, "returnpads", s->pads);
    sl_json_member_u64(w, "lines", s->lines);
    sl_json_end_object(w);
    sl_json_member_boolean(w, "is_usable", !problem);
    sl_json_member_or_null(w, "problem", sl_str(problem));
    sl_json_end_object(w);
}

/* Shows a symbfile; false, showing nothing, if the file is none. Of a damaged file, the records before the damage are still counted and,
 * with --symbols, listed. */
bool inspect_symbfile(struct inspected_file *file)
{
    struct sl_error error = {0};
    struct sl_buf *out = file->out;
    if (!sl_symbfile_detect(file->bytes))
        return false;
    bool check = option_given(file->options, "check");
    struct symbfile_summary s = {.sink = {.range = on_range, .pad = on_pad, .table = on_table}};
    s.list = !file->w && !check && option_given(file->options, "symbols"); /* JSON and --check have no list */
    const char *problem = sl_symbfile_read(file->bytes, &s.sink, &error) == SL_OK ? NULL : (const char *)error.message;
    if (file->w) {
        write_json(&s, file->path, file->bytes.size, problem, file->w);
    } else if (check) {
        inspect_put_usable(out, file->path, problem);
    } else {
        inspect_put_head(out, file->path, "symbfile", file->bytes.size);
        sl_buf_printf(out,
                      "\n  Counts       %llu ranges (%llu inlined), %llu return pads, %llu lines, %llu string table%s\n"
                      "  Usable       %s%s%s\n",
                      (unsigned long long)s.ranges, (unsigned long long)s.inlined, (unsigned long long)s.pads,
                      (unsigned long long)s.lines, (unsigned long long)s.tables, s.tables == 1 ? "" : "s",
                      problem ? "no (" : "yes", problem ? problem : "", problem ? ")" : "");
        sl_buf_str(out, sl_buf_view(&s.out));
    }
    file->unusable = problem != NULL;
    sl_buf_free(&s.out);
    return true;
}
