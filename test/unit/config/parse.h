/* A text parsed as "config.yml", with its problems as the user sees them. */
#pragma once

#include "../check.h"

#include "config/config.h"

struct outcome {
    struct sl_arena arena;
    struct value_problems problems;
    struct sl_error error;
    struct sl_buf text; /* the problems, terminated */
    struct config *config;
    enum sl_code code;
};

static inline void outcome_format(struct outcome *o)
{
    config_format_problems("config.yml", &o->problems, &o->text);
    sl_buf_u8(&o->text, '\0');
}

static inline void parse_sized(struct outcome *o, struct sl_str yaml)
{
    *o = (struct outcome){0};
    o->problems.arena = &o->arena;
    o->code = config_parse(yaml, "config.yml", &o->config, &o->problems, &o->error);
    outcome_format(o);
    assert_int_equal(o->code == SL_OK, o->config != NULL);
    assert_int_equal(o->code == SL_OK, o->problems.errors == 0);
}

static inline void parse(struct outcome *o, const char *yaml)
{
    parse_sized(o, sl_str(yaml));
}

static inline void outcome_free(struct outcome *o)
{
    config_release(o->config);
    sl_buf_free(&o->text);
    sl_arena_free(&o->arena);
}

static inline const char *outcome_text(const struct outcome *o)
{
    return (const char *)o->text.data;
}

/* The problems are exactly `wanted`; "" = none. */
static inline void expect_problems(const char *yaml, const char *wanted)
{
    struct outcome o;
    parse(&o, yaml);
    if (strcmp(outcome_text(&o), wanted) != 0)
        fail_msg("of\n%s\nexpected:\n%sbut was:\n%s", yaml, wanted, outcome_text(&o));
    outcome_free(&o);
}

/* The text ends with exactly one problem: "<line>:<column>: error: <rest>". */
static inline void expect_error(const char *yaml, const char *wanted)
{
    char line[1024];
    snprintf(line, sizeof line, "config.yml:%s\n", wanted);
    expect_problems(yaml, line);
}

/* Parses without a problem. */
static inline void parse_good(struct outcome *o, const char *yaml)
{
    parse(o, yaml);
    if (o->text.size > 1 || o->code != SL_OK)
        fail_msg("of\n%s\nunexpected: %s%s", yaml, outcome_text(o), o->code == SL_OK ? "" : o->error.message);
}
