/* Writes the frames that replace one line of text, one line each. If the frame is ambiguous (several alternatives), the first
 * frames of all alternatives come first, then the second ones, and so on. Frames of later alternatives are marked, duplicates
 * are left out:
 *
 *     at com.x.R.bar(R.java)
 *     <OR> at com.x.R.foo(R.java) */
#pragma once

#include "base/buf.h"
#include "jvm/mapper.h"

/* A line and its line end, LF or CR LF; LF if the line has none. */
struct sl_jvm_line {
    struct sl_str text, end;
    bool has_end; /* the line has a line end, which lies directly after `text` */
};
static inline struct sl_jvm_line sl_jvm_line(struct sl_str whole)
{
    struct sl_jvm_line line = {whole, SL_STR("\n"), false};
    if (!whole.size || whole.data[whole.size - 1] != '\n')
        return line;
    line.has_end = true;
    line.text.size--;
    if (line.text.size && line.text.data[line.text.size - 1] == '\r') {
        line.text.size--;
        line.end = SL_STR("\r\n");
    }
    return line;
}

/* Appends the text of a frame, without a line end. */
typedef void sl_jvm_put_frame(void *arg, const struct sl_jvm_frame *frame, struct sl_buf *out);

/* Appends a line for each frame, each followed by `end`. The frames are those of sl_jvm_mapper_retrace(). Frames of several alternatives
 * come by depth, those after the first marked with "<OR>", and a frame that repeats one before it once. frames->busy is set when out of
 * memory: then nothing is appended. */
void sl_jvm_alternatives_put(struct sl_jvm_frames *frames, sl_jvm_put_frame *put, void *arg, struct sl_str end,
                             struct sl_buf *out);

/* Limits the size of the output, for all lines together and for each: more than real mappings need, in proportion to the input.
 * A line above the limit is left unchanged. Initially all zeros. */
struct sl_jvm_output_limit {
    uint64_t read, spent; /* bytes of input so far; bytes of output, and steps as bytes, so far */
    uint64_t refused;     /* lines that were left unchanged */
};

/* True if a line of this size may be looked up; otherwise counts it as refused. */
static inline bool sl_jvm_output_limit_begin(struct sl_jvm_output_limit *a, size_t line)
{
    enum { GRANTED = 4 * 1024 * 1024 /* at the beginning */, PER_BYTE = 128 /* of input */ };
    a->read += line;
    bool good = a->spent < GRANTED + a->read * PER_BYTE;
    a->refused += !good;
    return good;
}

/* Charges the frames of a line and the bytes written for it. False when that is too much: the line counts as refused, and the
 * caller removes the output. */
bool sl_jvm_output_limit_end(struct sl_jvm_output_limit *allowance, const struct sl_jvm_frames *frames, size_t bytes);
