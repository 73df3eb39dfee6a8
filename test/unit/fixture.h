/* Fixtures made by compilers and other commands in a temporary directory. */
#pragma once

#include "check.h"
#include "directory.h"

#include <unistd.h>

#include "base/file.h"

static char fixture_dir[64];

static inline int fixture_begin(void **state)
{
    snprintf(fixture_dir, sizeof fixture_dir, "/tmp/symloom-fixture-XXXXXX");
    return mkdtemp(fixture_dir) ? 0 : -1;
}

static inline int fixture_end(void **state)
{
    return directory_remove(fixture_dir);
}

/* Runs a command in the directory; it must succeed. */
static inline void fixture_run(const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && { %s; } >log 2>&1 || { cat log; false; }", fixture_dir, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

/* The same with a command like that of printf. */
static inline void fixture_runf(const char *format, ...)
{
    char command[1900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    fixture_run(command);
}

static inline void fixture_write(const char *name, const void *data, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    if (!directory_write(path, data, size))
        fail_msg("%s", path);
}

/* The file's contents in memory of their own, so that reading past the end is noticed. Free `data`. */
static inline struct sl_bytes fixture_read(const char *name)
{
    char path[160];
    struct sl_mapping mapping;
    struct sl_error error = {0};
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    if (sl_map_file(path, &mapping, &error) != SL_OK)
        fail_msg("%s: %s", path, error.message);
    uint8_t *copy = malloc(mapping.bytes.size);
    assert_non_null(copy);
    memcpy(copy, mapping.bytes.data, mapping.bytes.size);
    struct sl_bytes bytes = {copy, mapping.bytes.size};
    sl_unmap(&mapping);
    return bytes;
}
