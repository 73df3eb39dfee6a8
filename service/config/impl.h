/* Declarations that the files of config/ share. YAML text becomes a tree of values (yaml.c, scalar.c); references to the environment and to
 * files are replaced in it (env.c); the table in keys.c has a row for each dotted key, with its type, default and field, by which read.c
 * fills struct config; check.c finds keys without a row; dump.c writes the configuration back. */
#pragma once

#include "config/config.h"
#include "config/tree.h"

enum {
    CONFIG_MAX_BYTES = 1 << 20,
    CONFIG_MAX_NODES = 20000, /* after aliases have been expanded */
    CONFIG_MAX_DEPTH = 32,
    CONFIG_MAX_KEY = 128,      /* bytes */
    CONFIG_MAX_PROBLEMS = 100, /* after so many problems, the rest of the file is not checked */
};

static inline bool config_has_enough_problems(const struct value_problems *problems)
{
    return problems->count >= CONFIG_MAX_PROBLEMS;
}

/* ---- path.c: position of a walk in the tree ---- */

/* The dotted key of the current value, twice: `shown` for messages, "sources[0].token", and `pattern` to look it up in the table of keys,
 * "sources[].token". */
struct config_path {
    struct sl_buf shown, pattern;
};
struct path_mark { /* sizes of both texts of struct config_path before something was appended */
    size_t shown, pattern;
};

/* Append a key, or the index of an element of a list, to the path. The result is for path_up(), which removes what was appended. */
struct path_mark path_key(struct config_path *path, struct sl_str key);
struct path_mark path_index(struct config_path *path, size_t index);
void path_up(struct config_path *path, struct path_mark end);
const char *path_shown(struct config_path *path); /* NUL-terminated; valid until the path changes */
struct sl_str path_pattern(const struct config_path *path);
void path_free(struct config_path *path);

/* ---- yaml.c ---- */

/* Returns the position of a key in the file, as a value for value_problem(). `key` must be one of value.keys of a map of yaml_read(). */
struct value yaml_key_position(struct sl_str key);

/* ---- scalar.c ---- */

/* Turns a string into the number, boolean or null that its text stands for as a plain (unquoted) YAML scalar: core schema, YAML 1.2.2,
 * section 10.3.2. Other texts stay strings. The text must be NUL-terminated. */
void scalar_resolve(struct value *value);

/* Describes a value for messages: "\"7dayz\"", "5", "a list". Cuts long values to 80 bytes, and leaves out user info and query of a URL.
 * Returns `out`, or a constant text. */
const char *scalar_describe(const struct value *value, char out[120]);

/* ---- keys.c ---- */

enum key_type {
    KEY_BOOL,
    KEY_UNSIGNED, /* unsigned */
    KEY_COUNT,    /* uint64_t */
    KEY_SIZE,     /* uint64_t, bytes */
    KEY_DURATION, /* uint64_t, nanoseconds */
    KEY_STRING,   /* const char * */
    KEY_STR,      /* struct sl_str, NUL-terminated */
    KEY_WORD,     /* char *, one of `words` */
    KEY_ENUM,     /* int, index into `words` */
    KEY_TEXTS,    /* list of struct sl_str, and its count */
    KEY_STRINGS,  /* list of const char *, and its count */
    KEY_HIDDEN,   /* struct sl_secret; of class KEY_SECRET */
    KEY_PAIRS,    /* map of texts as a list of struct text_pair, and its count */
    KEY_SOURCES,
};

struct config_key {
    const char *path;
    enum key_type type;
    size_t offset, count_offset; /* offsets of the fields in struct config */
    uint64_t value;              /* default of numbers, booleans and KEY_ENUM */
    const char *text;            /* default of texts, KEY_WORD and, separated by blanks, KEY_TEXTS */
    uint64_t min, max;     /* of numbers; max 0: maximum of the type. `min` of a list: its least number of elements */
    const char *none;      /* the word for "no limit" (UINT64_MAX) or "none" (NULL): null, off; NULL = not allowed */
    bool raise;            /* a number below `min` is raised to `min` */
    bool one;              /* a list of one element may be written as that element */
    const char *no_effect; /* text of the warning for a key without effect; NULL = the key has an effect */
    const char *const *words; /* the accepted words, NULL-terminated; of KEY_ENUM in the order of the enum */
    const char *(*check)(struct sl_str text); /* returns what is wrong with a text; NULL = nothing */
    void (*then)(struct config *config);      /* called after the key was read */
};

/* The table of keys, in the order in which dump.c and the documentation write them: keys of a group are neighbours. */
extern const struct config_key config_keys[];
extern const size_t config_key_count;

struct key_origin { /* origin of a key's value; line 0 = the default */
    uint32_t line, column;
    bool environment, option; /* `option`: of the command line */
};

enum key_class {
    KEY_UNKNOWN,
    KEY_ROW,       /* has a row in config_keys */
    KEY_GROUP,     /* contains further keys */
    KEY_FREE,      /* known, with all keys below it, but without a row: read by other code, or without effect */
    KEY_FREE_BOOL, /* a boolean that is read by other code */
    KEY_SECRET,    /* never shown; it has a row, or is read by other code with all keys below it */
};

/* Returns the class of a key ("sources[].token"). `*row` is its row in config_keys, or NULL. */
enum key_class key_classify(struct sl_str pattern, const struct config_key **row);

/* Documentation of a key: data of about.c, printed by table.c. */
struct key_about {
    const char *path;
    const char *text;
    const char
        *usual; /* the default, if the key has no row or it depends on the machine; NULL = the default of its row */
    const char *type;  /* for keys without a row */
    const char *title; /* heading of the chapter that begins here; NULL = none */
};
extern const struct key_about key_abouts[];
extern const size_t key_about_count;

/* Appends the names of all keys without effect, as a Markdown list. */
void key_list_no_effect(struct sl_buf *out);

/* Returns the text of the warning if the key ("sources[].token") and all keys below it have no effect; NULL if one of them has an
 * effect. */
const char *key_no_effect(struct sl_str pattern);

/* True if the key ("sources[].token"), or one of the keys above it, is of the class. */
bool key_within(struct sl_str pattern, enum key_class class);

/* Returns the name of the key in the same group that is most like the last name of the unknown key `pattern`: at most two letters are
 * inserted, deleted or replaced. Empty if there is none. */
struct sl_str key_nearest(struct sl_str pattern);

/* ---- texts.c: checks of texts; each returns what is wrong with the text, or NULL ---- */
const char *text_is_path_prefix(struct sl_str text); /* empty, or /a/b */
const char *text_is_listener(struct sl_str text);    /* IP:PORT, [IPv6]:PORT, unix:/path, systemd */
const char *text_is_group(struct sl_str text);       /* group of this machine */
const char *text_is_network(struct sl_str text);     /* address or CIDR */
const char *text_is_proxy(struct sl_str text);       /* address, CIDR or "unix" */
const char *text_is_host(struct sl_str text);        /* name or *.domain */
const char *text_is_statsd(struct sl_str text);      /* host:port, [address]:port, unix:/path */
const char *text_is_origin(struct sl_str text);      /* scheme://host[:port], or * */
const char *text_is_redis_url(struct sl_str text);   /* redis[s]://HOST[:PORT][/DATABASE], unix:///path */

/* Splits a URL into `scheme` ("https://") and `rest` ("host:80/path"), and leaves out what may be secret: the user info before the host
 * ("user:password@"), the query and the fragment. For any other text, `scheme` is empty and `rest` is the text. */
void text_hide_user(struct sl_str text, struct sl_str *scheme, struct sl_str *rest);

/* Appends the text with control characters and invalid UTF-8 as \xNN or \uNNNN; with `quotes` also with `"` and `\` escaped, for a
 * double-quoted YAML scalar. */
void text_escape(struct sl_buf *out, struct sl_str text, bool quotes);

/* ---- env.c ---- */

/* Replaces strings that are exactly ${NAME} by that environment variable, converted to the type of their key. Replaces a key `x_file`, if
 * `x` is a secret key, by `x` with the text of the named file. Reports values that cannot be replaced and leaves them: config.c drops later
 * problems at the same position. Records values from the environment in config->origins. Sets `*written` to the dotted key of the first
 * secret that is written in the configuration file itself, in the arena of the problems, or to NULL. */
void env_resolve(struct config *config, struct value *root, struct value_problems *problems, const char **written);

/* ---- read.c, access.c, mozilla.c, check.c ---- */

/* Sets the defaults of all keys. */
void config_defaults(struct config *config);

/* Stores the values of the file in `config`, except `sources` and other lists of maps. */
void config_read(struct config *config, const struct value *root, struct value_problems *problems);

/* Sets the keys of `mozilla` whose default depends on `mozilla.compat` (implemented in keys.c). */
void config_apply_compat(struct config *config);

/* Reads the environment variables of Eliot, Mozilla's service, into keys of `mozilla`, `bind`, `logging` and others that the file does not
 * set. Call it before config_read_mozilla(). */
void config_read_eliot(struct config *config, struct value_problems *problems);

/* Resolves the URLs and ids in `mozilla.sources` and `mozilla.fallback_sources` to sources. False when out of memory. */
bool config_read_mozilla(struct config *config, const struct value *root, struct value_problems *problems);

/* Reports that the value is not one of `words`, a NULL-terminated list. */
void config_report_not_one_of(struct value_problems *problems, const struct value *value, const char *path,
                              const char *const *words);

/* Writes the value of a key as YAML; "[redacted]" for a secret (implemented in dump.c). */
void config_put_value(const struct config *config, const struct config_key *key, struct sl_buf *out);

/* The groups of routes that may need a key; NULL-terminated. */
extern const char *const access_route_groups[];

/* Reads `auth.keys`: a list of maps. */
void config_read_access_keys(struct config *config, const struct value *root, struct value_problems *problems);

/* Parses "2027-01-31", the last day (UTC) on which an access key is valid, to `*seconds`, the end of that day; false if it is not a date.
 * Warns, for the key `path`, if the day is over or less than 14 days away. */
bool config_read_expiry(struct sl_str text, const struct value *at, const char *path, int64_t *seconds,
                        struct value_problems *problems);

/* ---- scans.c ---- */

/* Reads `debuginfod.scan`, a list of maps, and appends a source for each to config->sources. */
void config_read_scans(struct config *config, const struct value *root, struct value_problems *problems);

/* ---- transcoders.c ---- */

/* Reads `ms_symcache.transcoders`: a list of maps. */
void config_read_transcoders(struct config *config, const struct value *root, struct value_problems *problems);

/* ---- tokens.c ---- */

/* Reads `mozilla.tokens`: a list of maps. */
void config_read_tokens(struct config *config, const struct value *root, struct value_problems *problems);

/* Warns of unknown keys and keys without effect; reports groups of keys whose value is not a map. */
void config_check_keys(const struct value *root, struct value_problems *problems);

/* Checks what depends on several keys, such as TLS addresses without a certificate, and that ids of sources are unique. */
void config_check_rules(const struct config *config, const struct value *root, struct value_problems *problems);

/* Returns the value at a dotted key, or NULL. */
const struct value *config_find(const struct value *root, const char *path);
