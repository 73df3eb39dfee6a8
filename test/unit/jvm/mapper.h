/* Tables made of mappings that tests write. */
#pragma once

#include "../check.h"

#include "jvm/stack.h"

struct made {
    struct sl_buf file;
    struct sl_jvm_mapper mapper;
};

static inline void make_mapper(const char *mapping, struct made *made)
{
    struct sl_error error = {0};
    struct sl_budget budget;
    struct sl_str text = sl_str(mapping);
    sl_budget_init(&budget, text.size);
    *made = (struct made){.file = {.data = NULL}};
    if (sl_jvm_mapper_build(text, &budget, &made->file, &error) != SL_OK)
        fail_msg("%s", error.message);
    if (sl_jvm_mapper_open(sl_buf_bytes(&made->file), &made->mapper, &error) != SL_OK)
        fail_msg("%s", error.message);
}

/* "class.method(file:line)" of each, with '!' behind those that a compiler made. */
static inline void print_frames(const struct sl_jvm_frames *frames, size_t first, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = first; i < frames->count; i++) {
        const struct sl_jvm_frame *f = &frames->items[i];
        size_t used = strlen(out);
        char line[16] = "";
        if (f->has_line)
            snprintf(line, sizeof line, ":%u", f->line);
        snprintf(out + used, size - used, "%s" SL_STR_FMT "." SL_STR_FMT "(" SL_STR_FMT SL_STR_FMT "%s)%s",
                 i > first ? " " : "", SL_STR_ARG(f->class), SL_STR_ARG(f->method), SL_STR_ARG(f->file),
                 SL_STR_ARG(f->suffix), line, f->synthesized ? "!" : "");
    }
}

/* The frame "class.method:line", or with '-' as its line or without one. */
static inline struct sl_jvm_query query_of(const char *text)
{
    const char *colon = strrchr(text, ':'), *dot = memrchr(text, '.', (size_t)(colon - text));
    struct sl_jvm_query query = {.class = {text, (size_t)(dot - text)},
                                 .method = {dot + 1, (size_t)(colon - dot - 1)},
                                 .line = (uint32_t)strtoul(colon + 1, NULL, 10)};
    return query;
}
