/* What every unit test includes: cmocka and its prerequisites, and tests that register themselves.

       TEST(an_empty_list_has_no_first_entry)
       {
           assert_null(first(&(struct list){0}));
       }

   main.c runs the tests of a file in the order of their lines, each within a limit of time. What stands behind the name sets members of
   `struct unit_test`: TEST(name, .setup = make_directory, .limit_s = 300). What the tests of a file share is told at its end:

       TEST_FILE(.begin = make_fixtures, .end = drop_fixtures, .setup = reset);

   `begin` and `end` are called once, `setup` and `teardown` around each test that names none of its own; they return 0 when they succeed. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the decimal number that the text begins with; -1 if it begins with none, or with one that is negative or no int. What follows is
 * ignored. */
static inline int leading_number(const char *text)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    return end == text || errno || number < 0 || number > INT_MAX ? -1 : (int)number;
}

struct unit_test {
    const char *file, *name;
    int line;
    void (*run)(void **state);
    int (*setup)(void **state), (*teardown)(void **state); /* NULL = those of the file */
    int limit_s;                                           /* 0 = that of the file */
    bool alone; /* in a process of its own, without the begin and the end of the file */
    struct unit_test *next;
};

struct unit_file {
    const char *file;
    int (*begin)(void **state), (*end)(void **state);
    int (*setup)(void **state), (*teardown)(void **state);
    int limit_s; /* 0 = WATCH_LIMIT_S */
    struct unit_file *next;
};

void unit_add(struct unit_test *test);
void unit_add_file(struct unit_file *file);

#define TEST(id, ...) TEST_NAMED(id, #id, __VA_ARGS__)

/* A test whose printed name is no identifier. */
#define TEST_NAMED(id, printed, ...)                                                                                   \
    static void id(void **state);                                                                                      \
    static struct unit_test unit_##id = {.file = __FILE__, .line = __LINE__, .name = printed, .run = id, __VA_ARGS__}; \
    __attribute__((constructor)) static void unit_add_##id(void)                                                       \
    {                                                                                                                  \
        unit_add(&unit_##id);                                                                                          \
    }                                                                                                                  \
    static void id(void **state)

/* A test whose body runs in a fiber: the file has a function run(body) for that. What stands behind the name is done before. */
#define FIBER_TEST(id, ...)                                                                                            \
    static void id##_body_(void *arg);                                                                                 \
    TEST(id)                                                                                                           \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        run(id##_body_);                                                                                               \
    }                                                                                                                  \
    static void id##_body_(void *arg)

/* The same in a file whose run(body, ...) takes more arguments: they stand behind the name. */
#define FIBER_TEST_WITH(id, ...)                                                                                       \
    static void id##_body_(void *arg);                                                                                 \
    TEST(id)                                                                                                           \
    {                                                                                                                  \
        run(id##_body_, __VA_ARGS__);                                                                                  \
    }                                                                                                                  \
    static void id##_body_(void *arg)

#define TEST_FILE(...)                                                                                                 \
    static struct unit_file unit_file_;                                                                                \
    __attribute__((constructor)) static void unit_add_file_(void)                                                      \
    {                                                                                                                  \
        unit_add_file(&unit_file_);                                                                                    \
    }                                                                                                                  \
    static struct unit_file unit_file_ = {.file = __FILE__, __VA_ARGS__}

/* How often a test tries something by chance: `all` when SYMLOOM_TEST_EFFORT=all, else `few`. */
unsigned effort(unsigned few, unsigned all);
