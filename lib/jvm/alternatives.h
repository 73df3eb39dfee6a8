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

/* Splits a line from the line end that it may have. */
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

/* Appends a line for each frame of sl_jvm_mapper_retrace(), each followed by `end`. If there are several alternatives, the innermost frames
 * of all come first, then the next outer ones, and so on. Frames of all alternatives but the first are marked with "<OR>"; one that equals
 * a frame of an earlier alternative at the same depth is left out. When out of memory nothing is appended and frames->busy is set. */
void sl_jvm_alternatives_put(struct sl_jvm_frames *frames, sl_jvm_put_frame *put, void *arg, struct sl_str end,
                             struct sl_buf *out);

/* Limits the size of the output, for each line and for all together, in proportion to the input; real mappings need less. A line above the
 * limit is left unchanged. Initially all zeros. */
struct sl_jvm_output_limit {
    uint64_t read;    /* bytes of input so far */
    uint64_t spent;   /* bytes of output so far, and the steps of look-ups, each counted as 16 bytes */
    uint64_t refused; /* lines that were left unchanged */
};

/* True if a line of `line` bytes may be looked up, because the output so far is within the limit for all lines. Otherwise counts the line
 * in `refused`. */
static inline bool sl_jvm_output_limit_begin(struct sl_jvm_output_limit *a, size_t line)
{
    /* bytes of output that are allowed however small the input is, and in addition for each byte of input */
    enum { GRANTED = 4 * 1024 * 1024, PER_BYTE = 128 };
    a->read += line;
    bool good = a->spent < GRANTED + a->read * PER_BYTE;
    a->refused += !good;
    return good;
}

/* Charges the frames of a line and the bytes written for it. False if these are more than 1 MiB, or frames were left out because of
 * frames->limit: the line is counted in `refused`, and the caller replaces the output by the unchanged line. */
bool sl_jvm_output_limit_end(struct sl_jvm_output_limit *allowance, const struct sl_jvm_frames *frames, size_t bytes);
