/* Writes unwind information as STACK records of Breakpad symbol files. */
#include "unwind/impl.h"

#include <inttypes.h>

/* Ends the line t->line and passes it to t->write. SL_BUSY when out of memory; SL_CANCELLED if t->write returns false. */
static enum sl_code write_line(struct sl_unwind_text *t, struct sl_error *error)
{
    sl_buf_u8(&t->line, '\n');
    if (t->line.failed)
        return sl_fail(error, SL_BUSY, "out of memory");
    return t->write(t->arg, sl_buf_view(&t->line)) ? SL_OK
                                                   : sl_fail(error, SL_CANCELLED, "the reader of the output closed it");
}

/* Appends the rules of a row to the line, separated by blanks. False if there is nothing to write: registers without a name are omitted,
 * and in the first row of a range undefined ones, since no earlier rule gave them a value. */
static bool print_rules(struct sl_unwind_text *t, const struct sl_unwind_row *row, bool is_first)
{
    size_t begin = t->line.size;
    for (size_t i = 0; i < row->count; i++) {
        size_t at = t->line.size;
        if (is_first && row->rules[i].kind == SL_UNWIND_UNDEFINED)
            continue;
        rule_print(&t->line, &row->rules[i], t->family, t->subtract);
        if (t->line.size > at)
            sl_buf_u8(&t->line, ' ');
    }
    if (t->line.size == begin)
        return false;
    t->line.size--; /* the trailing blank */
    return true;
}

/* The callback sl_unwind_sink.range: writes a range as a STACK CFI INIT record, and a STACK CFI record for each later row. Rows marked
 * not_in_text are omitted; if the first row is one, the whole range is. */
static enum sl_code write_range(struct sl_unwind_sink *sink, const struct sl_unwind_range *range,
                                struct sl_error *error)
{
    struct sl_unwind_text *t = (struct sl_unwind_text *)sink;
    enum sl_code code = SL_OK;
    if (range->rows[0].not_in_text)
        return SL_OK;
    for (size_t i = 0; i < range->row_count && code == SL_OK; i++) {
        const struct sl_unwind_row *row = &range->rows[i];
        if (row->not_in_text)
            continue;
        sl_buf_clear(&t->line);
        sl_buf_cstr(&t->line, i == 0 ? "STACK CFI INIT " : "STACK CFI ");
        if (i == 0) {
            sl_buf_number_hex(&t->line, range->start + t->base, ' ');
            sl_buf_number_hex(&t->line, range->size, ' ');
        } else {
            sl_buf_number_hex(&t->line, row->address + t->base, ' ');
        }
        if (print_rules(t, row, i == 0) || t->line.failed) /* write_line() reports the failure */
            code = write_line(t, error);
    }
    t->records++;
    return code;
}

/* The callback sl_unwind_sink.win: writes a STACK WIN record with the fields of Breakpad's symbol files, in hexadecimal. */
static enum sl_code write_win(struct sl_unwind_sink *sink, const struct sl_unwind_win *w, struct sl_error *error)
{
    struct sl_unwind_text *t = (struct sl_unwind_text *)sink;
    sl_buf_clear(&t->line);
    sl_buf_printf(&t->line, "STACK WIN %x %" PRIx64 " %" PRIx64 " %x %x %x %x %x %x %d ", w->type, w->start + t->base,
                  w->size, w->prolog, w->epilog, w->params, w->saved, w->locals, w->max_stack, w->has_program);
    sl_buf_str(&t->line, w->program);
    t->records++;
    return write_line(t, error);
}

void sl_unwind_text_init_family(struct sl_unwind_text *text, enum sl_cpu_family family)
{
    *text = (struct sl_unwind_text){.sink = {.range = write_range, .win = write_win}, .family = family};
}

void sl_unwind_text_init(struct sl_unwind_text *text, const struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    sl_unwind_text_init_family(text, sl_arch_family(info->arch));
    text->subtract = info->format == SL_FORMAT_PE && text->family == SL_CPU_X86_64;
}

void sl_unwind_text_free(struct sl_unwind_text *text)
{
    sl_buf_free(&text->line);
}
