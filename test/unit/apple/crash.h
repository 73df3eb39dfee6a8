/* Reading reports in tests. */
#pragma once

#include "../check.h"

#include "apple/apple.h"

static struct sl_arena arena;
static struct sl_crash crash;
static struct sl_apple_options options;

static inline int forget(void **state)
{
    sl_arena_free(&arena);
    options = (struct sl_apple_options){0};
    return 0;
}

static inline enum sl_code read_report(const char *text, size_t size, struct sl_error *error)
{
    sl_arena_free(&arena);
    return sl_apple_read((struct sl_bytes){(const uint8_t *)text, size}, &options, &arena, &crash, error);
}

static inline void expect_read(const char *text)
{
    struct sl_error error = {0};
    if (read_report(text, strlen(text), &error) != SL_OK)
        fail_msg("%s", error.message);
}

static inline void expect_failure(const char *text, enum sl_code code, const char *message)
{
    struct sl_error error = {0};
    assert_int_equal(read_report(text, strlen(text), &error), code);
    assert_string_equal(error.message, message);
}

#define expect_text(text, wanted) expect_text_at(text, wanted, __FILE__, __LINE__)
static inline void expect_text_at(struct sl_str text, const char *wanted, const char *file, int line)
{
    if (wanted ? !text.data || !sl_str_equal(text, sl_str(wanted)) : text.data != NULL) {
        print_error("\"" SL_STR_FMT "\" instead of \"%s\"\n", SL_STR_ARG(text), wanted ? wanted : "(nothing)");
        _fail(file, line);
    }
}

/* The thread's registers as "name=value ..." */
static inline void expect_registers(const struct sl_crash_thread *thread, const char *wanted)
{
    char text[1024] = "";
    size_t size = 0;
    for (size_t i = 0; i < thread->register_count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s" SL_STR_FMT "=%llx", i ? " " : "",
                                 SL_STR_ARG(thread->registers[i].name), (unsigned long long)thread->registers[i].value);
    assert_string_equal(text, wanted);
}

/* The thread's addresses as "1000 2000 ..." */
static inline void expect_addresses(const struct sl_crash_thread *thread, const char *wanted)
{
    char text[1024] = "";
    size_t size = 0;
    for (size_t i = 0; i < thread->frame_count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%llx", i ? " " : "",
                                 (unsigned long long)thread->frames[i].address);
    assert_string_equal(text, wanted);
}
