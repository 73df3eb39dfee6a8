/* Shared by log.c (levels, destinations, writer threads) and log_format.c, which makes the text of lines. */
#pragma once

#include "core/log.h"

enum { LOG_LINE_MAX = 16 * 1024 - 8 };

struct log_line {
    char text[LOG_LINE_MAX + 8];
    size_t size;
    bool cut; /* text did not fit: no more fields are added */
};

struct log_record {
    uint64_t wall_us;
    enum log_level level;
    const char *module, *file, *message;
    int line;
    struct log_field req; /* the request id; key NULL if there is none */
    const struct log_field *fields;
};

/* Formats one line with its line end. */
void log_format_line(struct log_line *line, const struct log_record *record, enum log_format format, bool colour);
