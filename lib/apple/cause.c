/* Why the process ended, as text. */
#include "apple/impl.h"

#include <inttypes.h>

/* Returns the text after `size` bytes, without white space at both ends. */
static struct sl_str trimmed_after(struct sl_str text, size_t size)
{
    return sl_str_trimmed((struct sl_str){text.data + size, text.size - size});
}

bool apple_codes_are_raw(struct sl_str codes)
{
    for (size_t i = 0; i < codes.size; i++)
        if (!memchr("0123456789abcdefABCDEFx, \t", codes.data[i], 26))
            return false;
    return true;
}

static bool codes_are_zero(struct sl_str codes)
{
    for (size_t i = 0; i < codes.size; i++)
        if (!memchr("0x, \t", codes.data[i], 5))
            return false;
    return true;
}

/* ---- terminations ---- */

/* Removes the word at the beginning of the text, up to a blank or comma, and the comma and white space after it. Returns the word. */
static struct sl_str take_cause_word(struct sl_str *text)
{
    size_t size = 0;
    while (size < text->size && !sl_is_blank(text->data[size]) && text->data[size] != ',')
        size++;
    struct sl_str word = {text->data, size};
    size += size < text->size && text->data[size] == ',';
    *text = trimmed_after(*text, size);
    return word;
}

static void skip_label(struct sl_str *text, struct sl_str label)
{
    if (sl_str_starts(*text, label))
        *text = trimmed_after(*text, label.size);
}

struct apple_termination apple_termination_parse(struct sl_str text)
{
    struct apple_termination termination = {.domain = {NULL, 0}};
    text = sl_str_trimmed(text);
    skip_label(&text, SL_STR("Namespace "));
    if (!text.size)
        return termination;
    termination.domain = take_cause_word(&text);
    skip_label(&text, SL_STR("Code "));
    if (text.size && sl_is_digit(text.data[0]))
        termination.code = take_cause_word(&text);
    termination.rest = text;
    return termination;
}

/* Writes "2343432205 (0x8BADF00D)": people know large codes by their hex digits. Codes of up to 16 bits are written as they are. */
static void put_code(struct sl_str code, struct sl_buf *out)
{
    struct sl_str rest = code;
    uint64_t value;
    sl_buf_str(out, code);
    if (apple_take_number(&rest, &value) == APPLE_NUMBER && !rest.size && value > UINT16_MAX)
        sl_buf_printf(out, " (0x%" PRIX64 ")", value);
}

/* Writes "<domain> <code> <rest>: <explanation>"; parts that are unknown are left out. */
static void put_termination(const struct apple_causes *causes, struct sl_buf *out)
{
    const struct apple_termination *termination = &causes->termination;
    sl_buf_str(out, termination->domain);
    if (termination->code.size) {
        sl_buf_u8(out, ' ');
        put_code(termination->code, out);
    }
    if (termination->rest.size)
        sl_buf_printf(out, " " SL_STR_FMT, SL_STR_ARG(termination->rest));
    if (causes->explanation.size)
        sl_buf_printf(out, "%s" SL_STR_FMT, termination->domain.size ? ": " : "", SL_STR_ARG(causes->explanation));
}

/* ---- all causes ---- */

/* Appends a cause as a line of its own, unless it is empty. */
static void put_cause(struct sl_str text, struct sl_buf *out)
{
    if (!text.size)
        return;
    if (out->size)
        sl_buf_u8(out, '\n');
    sl_buf_str(out, text);
}

void apple_put_causes(const struct apple_causes *causes, struct sl_buf *out)
{
    /* A termination by a signal is mostly left out: `crash->reason` already names that signal. */
    bool is_signal = sl_str_equal(causes->termination.domain, SL_STR("SIGNAL")) && !causes->explanation.size;
    bool has_termination = causes->termination.domain.size || causes->explanation.size;
    put_cause(causes->exception, out);
    if (causes->reason.size) {
        sl_buf_cstr(out, causes->exception.size ? ": " : "");
        sl_buf_str(out, causes->reason);
    }
    put_cause(causes->information, out);
    put_cause(causes->message, out);
    put_cause(causes->subtype, out);
    if (!apple_codes_are_raw(causes->codes)) /* codes with words, like "KERN_INVALID_ADDRESS at 0x10" */
        put_cause(causes->codes, out);
    if (has_termination && (!is_signal || (!out->size && codes_are_zero(causes->codes)))) {
        sl_buf_cstr(out, out->size ? "\n" : "");
        put_termination(causes, out);
    }
    if (!out->size) /* numbers are better than nothing */
        put_cause(causes->codes, out);
}
