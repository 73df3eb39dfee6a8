/* The frames that one line of text becomes, as lines. Of several alternatives the first frames of all come first, then the second
 * ones; all but those of the first alternative are marked, and none is there twice:
 *
 *     at com.x.R.bar(R.java)
 *     <OR> at com.x.R.foo(R.java) */
#pragma once

#include "base/buf.h"
#include "jvm/mapper.h"

/* A line without what ends it, and that: LF or CR LF; LF when nothing does. */
struct sl_jvm_line {
    struct sl_str text, end;
    bool has_end; /* `end` is that of the line: it is behind the text */
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

/* Appends the text of a frame, without an end of line. */
typedef void sl_jvm_put_frame(void *arg, const struct sl_jvm_frame *frame, struct sl_buf *out);

/* Appends a line for each frame, with `end` behind it. Frames are as sl_jvm_mapper_retrace has them. */
void sl_jvm_alternatives_put(struct sl_jvm_frames *frames, sl_jvm_put_frame *put, void *arg, struct sl_str end,
                             struct sl_buf *out);

/* What lines may become, all together and each: more than mappings of real programs need, and bounded by what is read. A line that would
 * be more stays as it is. Zeros are an allowance at the beginning. */
struct sl_jvm_allowance {
    uint64_t read, spent;
    uint64_t refused; /* lines that stayed as they are */
};

/* Whether a line of this size may be looked up. False: it is counted as refused. */
static inline bool sl_jvm_allowance_begin(struct sl_jvm_allowance *a, size_t line)
{
    enum { GRANTED = 4 * 1024 * 1024 /* to begin with */, PER_BYTE = 128 /* of what is read */ };
    a->read += line;
    bool good = a->spent < GRANTED + a->read * PER_BYTE;
    a->refused += !good;
    return good;
}

/* Counts what became of it: the frames, and the bytes that were written. False when that is too much: to be taken back, and counted as
 * refused. */
bool sl_jvm_allowance_end(struct sl_jvm_allowance *allowance, const struct sl_jvm_frames *frames, size_t bytes);
