/* What the files of config share: YAML text becomes a tree (yaml.c, scalar.c), references to the environment and to
 * files are put in (env.c), the table of keys (keys.c) says what each dotted key means and where it goes, read.c fills
 * the struct by it, check.c finds what no row stands for, dump.c writes it back. */
#pragma once

#include "config/config.h"
#include "config/tree.h"

enum {
    CONFIG_MAX_BYTES = 1 << 20,
    CONFIG_MAX_NODES = 20000, /* after aliases have been expanded */
    CONFIG_MAX_DEPTH = 32,
    CONFIG_MAX_KEY = 128,      /* bytes */
    CONFIG_MAX_PROBLEMS = 100, /* enough to stop looking for more */
};

static inline bool config_enough(const struct value_problems *problems)
{
    return problems->count >= CONFIG_MAX_PROBLEMS;
}

/* ---- path.c: where in the tree a walk is ---- */

/* The dotted key as messages show it, "sources[0].token", and as tables have it, "sources[].token". */
struct path {
    struct sl_buf shown, pattern;
};
struct path_place {
    size_t shown, pattern;
};

/* One step down; the place to give to path_up afterwards. */
struct path_place path_key(struct path *path, struct sl_str key);
struct path_place path_index(struct path *path, size_t index);
void path_up(struct path *path, struct path_place place);
const char *path_shown(struct path *path); /* terminated; valid until the next step */
struct sl_str path_pattern(const struct path *path);
void path_free(struct path *path);

/* ---- yaml.c ---- */

/* Where a key of a map of yaml_read stands, as a value for value_problem. */
struct value yaml_key_place(struct sl_str key);

/* ---- scalar.c ---- */

/* Gives a string the type that a plain scalar of its text has (YAML 1.2.2, section 10.3.2, core schema). The text must be
 * terminated. */
void scalar_resolve(struct value *value);

/* "\"7dayz\"", "5", "a list": the value as a message names it, cut when it is long; a URL without
 * user info and query. */
const char *scalar_describe(const struct value *value, char out[120]);

/* ---- keys.c ---- */

enum key_type {
    KEY_BOOL,
    KEY_UNSIGNED, /* unsigned */
    KEY_COUNT,    /* uint64_t */
    KEY_SIZE,     /* uint64_t, bytes */
    KEY_DURATION, /* uint64_t, nanoseconds */
    KEY_STRING,   /* const char * */
    KEY_STR,      /* struct sl_str, terminated */
    KEY_WORD,     /* char *, one of `words` */
    KEY_ENUM,     /* int, index in `words` */
    KEY_TEXTS,    /* list of struct sl_str, and its length */
    KEY_STRINGS,  /* list of const char *, and its length */
    KEY_HIDDEN,   /* struct sl_secret; of class KEY_SECRET */
    KEY_PAIRS,    /* map of texts as a list of struct text_pair, and its length */
    KEY_SOURCES,
};

struct key {
    const char *path;
    enum key_type type;
    size_t offset, count_offset; /* of the fields in struct config */
    uint64_t value;              /* default of numbers, switches and enums */
    const char *text;            /* default of strings and words */
    uint64_t min, max;           /* max 0: what the type can hold */
    const char *none;            /* the word for "no limit" (UINT64_MAX) or "none" (NULL): null, off; NULL = no such */
    bool raise;                  /* a number below `min` acts as `min` */
    bool one;                    /* a list may be written as its only element */
    const char *no_effect;       /* what a warning says of a key that nothing reads; NULL = it is read */
    const char *const *words;    /* NULL terminated, in the order of the enum; of texts: the only ones */
    const char *(*check)(struct sl_str text); /* what is wrong with a text; NULL = nothing */
    void (*then)(struct config *config);      /* after the key was read */
};

/* In the order in which they are written: groups stay together. */
extern const struct key config_keys[];
extern const size_t config_key_count;

struct key_origin { /* where a key's value comes from; line 0 = the default */
    uint32_t line, column;
    bool environment, option; /* of the command line */
};

enum key_class {
    KEY_UNKNOWN,
    KEY_ROW,   /* has a row */
    KEY_GROUP, /* holds further keys */
    KEY_FREE,  /* belongs to the configuration, with all below it, and has no row: others read it, or nothing does */
    KEY_FREE_BOOL,
    KEY_SECRET, /* never to be shown; has a row, or is as KEY_FREE */
};

/* What a pattern ("sources[].token") stands for; `*row` is its row, or NULL. */
enum key_class key_classify(struct sl_str pattern, const struct key **row);

/* What the reference says of a key (about.c). */
struct key_about {
    const char *path;
    const char *text;
    const char *usual; /* the default, where the table has none or it depends on the machine; NULL = the table's */
    const char *type;  /* of keys without a row */
    const char *title; /* of the chapter that begins here; NULL = none does */
};
extern const struct key_about key_abouts[];
extern const size_t key_about_count;

/* The names of all keys that nothing reads, as a list in Markdown. */
void key_list_no_effect(struct sl_buf *out);

/* What a warning says of the key because nothing reads it nor what is below it; NULL when something does. */
const char *key_no_effect(struct sl_str pattern);

/* Whether the pattern, or what it lies below, is of the class. */
bool key_within(struct sl_str pattern, enum key_class class);

/* The key of the same group that is at most two edits away from the unknown `pattern`; empty when there is none. */
struct sl_str key_nearest(struct sl_str pattern);

/* ---- texts.c: checks of texts; each returns what is wrong, or NULL ---- */
const char *text_is_path_prefix(struct sl_str text); /* empty, or /a/b */
const char *text_is_listener(struct sl_str text);    /* IP:PORT, [IPv6]:PORT, unix:/path, systemd */
const char *text_is_group(struct sl_str text);       /* that this machine has */
const char *text_is_network(struct sl_str text);     /* address or CIDR */
const char *text_is_proxy(struct sl_str text);       /* the same, or unix */
const char *text_is_host(struct sl_str text);        /* name or *.domain */
const char *text_is_statsd(struct sl_str text);      /* host:port, [address]:port, unix:/path */
const char *text_is_origin(struct sl_str text);      /* scheme://host[:port], or * */
const char *text_is_redis_url(struct sl_str text);   /* redis[s]://HOST[:PORT][/DATABASE], unix:///path */

/* A URL in two parts, scheme and what follows its user info, up to the query; another text is all `rest`. */
void text_hide_user(struct sl_str text, struct sl_str *scheme, struct sl_str *rest);

/* Appends the text with control bytes, C1 and bytes that are not UTF-8 as \xNN or \uNNNN; with `quotes`, fit for
 * between the double quotes of YAML. */
void text_escape(struct sl_buf *out, struct sl_str text, bool quotes);

/* ---- env.c ---- */

/* Replaces strings that are exactly ${NAME} by the environment, with the type that their key wants, and secret keys
 * `x_file` by `x` with the file's text. What cannot be replaced is reported and stays, so that later complaints about its
 * place are echoes. `config->origins` notes what came from the environment. `*written` becomes the
 * path of the first secret that the file itself holds, in the arena of the problems; else NULL. */
void env_resolve(struct config *config, struct value *root, struct value_problems *problems, const char **written);

/* ---- read.c, access.c, mozilla.c, check.c ---- */

void config_defaults(struct config *config);

/* Fills the struct from the tree; sources excepted. */
void config_read(struct config *config, const struct value *root, struct value_problems *problems);

/* Sets the keys of `mozilla` that `mozilla.compat` has a say in (keys.c). */
void config_apply_compat(struct config *config);

/* What Eliot's environment says of `mozilla` and others. Before config_read_mozilla. */
void config_read_eliot(struct config *config, struct value_problems *problems);

/* What the lists of `mozilla` mean, by the sources. */
void config_read_mozilla(struct config *config, const struct value *root, struct value_problems *problems);

/* Reports that the value is not one of the words, which a NULL ends. */
void config_not_one_of(struct value_problems *problems, const struct value *value, const char *path,
                       const char *const *words);

/* dump.c: the value of a row, as YAML; a secret is not shown. */
void config_put_value(const struct config *config, const struct key *key, struct sl_buf *out);

/* The groups of routes that may need a key; NULL ends them. */
extern const char *const access_route_groups[];

/* `auth.keys`: a list of maps. */
void config_read_access_keys(struct config *config, const struct value *root, struct value_problems *problems);

/* The end of the day "2027-01-31", UTC, until which a key is good; false when the text is no date. Warns, at `path`, of a day
 * that is over or less than 14 days away. */
bool config_read_expiry(struct sl_str text, const struct value *at, const char *path, int64_t *seconds,
                        struct value_problems *problems);

/* ---- transcoders.c ---- */

/* `ms_symcache.transcoders`: a list of maps. */
void config_read_transcoders(struct config *config, const struct value *root, struct value_problems *problems);

/* ---- tokens.c ---- */

/* `mozilla.tokens`: a list of maps. */
void config_read_tokens(struct config *config, const struct value *root, struct value_problems *problems);

/* Unknown keys, keys without effect, groups that are no maps. */
void config_check_keys(const struct value *root, struct value_problems *problems);

/* What only the keys together show: rules across keys, ids of sources. */
void config_check_rules(const struct config *config, const struct value *root, struct value_problems *problems);

/* The value at a dotted key, NULL when absent. */
const struct value *config_find(const struct value *root, const char *path);
