/* References: ${NAME} to the environment, and `x_file` to a file with the secret `x`. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/impl.h"

enum { SECRET_MAX_BYTES = 64 * 1024 };

struct resolver {
    struct config *config;
    struct value_problems *problems;
    struct config_path path; /* path of the current value */
    const char *written;     /* dotted key of the first secret in the configuration file itself; NULL: none */
};

/* True if a text is exactly ${NAME}; `*name` is the part between the braces. */
static bool is_reference(struct sl_str text, struct sl_str *name)
{
    if (text.size < 4 || text.data[0] != '$' || text.data[1] != '{')
        return false;
    *name = (struct sl_str){text.data + 2, text.size - 3};
    return memchr(text.data, '}', text.size) == text.data + text.size - 1;
}

/* Warns of the first ${NAME} inside a longer text, which is not replaced. Shows only this part of the text, as the rest may be secret. */
static void warn_partial(struct resolver *r, const struct value *value)
{
    const char *at = value->string.data, *end = at + value->string.size;
    while (at < end && (at = memmem(at, (size_t)(end - at), "${", 2))) {
        at += 2;
        size_t size = 0;
        while (at + size < end &&
               (sl_is_digit(at[size]) || ((at[size] | 32) >= 'a' && (at[size] | 32) <= 'z') || at[size] == '_'))
            size++;
        if (!size || at + size == end || at[size] != '}')
            continue;
        value_problem(r->problems, value, true, path_shown(&r->path),
                      "${%.*s} is not replaced: a variable must be the whole value", (int)size, at);
        return;
    }
}

/* Converts the text of an environment variable to the type of its key: for numbers and booleans, what the text would be in the file without
 * quotes; for all others a string. */
static void give_type(struct value *value, const struct config_key *row, enum key_class class)
{
    bool plain = class == KEY_FREE_BOOL;
    if (row)
        plain = row->type == KEY_BOOL || row->type == KEY_UNSIGNED || row->type == KEY_COUNT || row->type == KEY_SIZE ||
                row->type == KEY_DURATION;
    value->type = VALUE_STRING;
    if (plain)
        scalar_resolve(value);
    if (row && row->type == KEY_DURATION && value->type != VALUE_NULL)
        value->type = VALUE_STRING; /* numbers too: duration_parse() accepts "0", but no other number without a unit */
}

/* Replaces a value that is exactly ${NAME} by that environment variable. True if it was such a reference, even if the variable is not set,
 * which is reported. */
static bool resolve_text(struct resolver *r, struct value *value)
{
    struct sl_str name;
    if (value->type != VALUE_STRING)
        return false;
    if (!is_reference(value->string, &name)) {
        warn_partial(r, value);
        return false;
    }
    char *key = sl_arena_strndup(r->problems->arena, name.data, name.size);
    const char *text = key ? getenv(key) : NULL;
    if (!text) {
        value_problem(r->problems, value, false, path_shown(&r->path), "environment variable " SL_STR_FMT " is not set",
                      SL_STR_ARG(name));
        return true;
    }
    size_t size = strlen(text);
    char *copy = sl_arena_strndup(&r->config->arena, text, size);
    if (!copy) {
        value_problem(r->problems, value, false, path_shown(&r->path), "out of memory");
        return true;
    }
    const struct config_key *row;
    struct sl_str pattern = path_pattern(&r->path);
    /* an element of a list has the type and origin of the list's key */
    pattern.size -= sl_str_ends(pattern, SL_STR("[]")) ? 2 : 0;
    enum key_class class = key_classify(pattern, &row);
    value->string = (struct sl_str){copy, size};
    give_type(value, row, class);
    if (row)
        r->config->origins[row - config_keys].environment = true;
    return true;
}

/* ---- secrets in files ---- */

/* Reads a file of up to SECRET_MAX_BYTES; a `*size` above that means that it is larger. NULL with errno if reading fails; NULL with errno
 * 0, which the caller has set, when out of memory. */
static char *read_whole(struct sl_arena *arena, int fd, size_t *size)
{
    char *text = sl_arena_alloc(arena, SECRET_MAX_BYTES + 1, 1);
    *size = 0;
    while (text && *size <= SECRET_MAX_BYTES) {
        ssize_t got = read(fd, text + *size, SECRET_MAX_BYTES + 1 - *size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return NULL;
        if (got == 0)
            break;
        *size += (size_t)got;
    }
    return text;
}

/* Reads a secret from a file, without a line break at its end. Returns NULL, or what is wrong with the file. */
static const char *read_secret(struct sl_arena *arena, const char *path, struct sl_str *secret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO does not block: it is rejected below */
    if (fd < 0)
        return strerror(errno);
    struct stat st;
    size_t size = 0;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    errno = 0;
    char *text = regular ? read_whole(arena, fd, &size) : NULL;
    int reason = errno;
    close(fd);
    if (!regular)
        return "not a regular file";
    if (!text)
        return reason ? strerror(reason) : "out of memory";
    if (size > SECRET_MAX_BYTES)
        return "larger than 64 KiB";
    size -= size > 0 && text[size - 1] == '\n';
    size -= size > 0 && text[size - 1] == '\r';
    if (size == 0 || memchr(text, '\0', size))
        return size == 0 ? "empty" : "contains a NUL byte";
    text[size] = '\0';
    *secret = (struct sl_str){text, size};
    return NULL;
}

/* True if the current key `key` is named `x_file` and `x` is a secret key; sets `*secret` to the name `x`. */
static bool names_secret_file(struct resolver *r, struct sl_str key, struct sl_str *secret)
{
    struct sl_str pattern = path_pattern(&r->path), suffix = SL_STR("_file");
    const struct config_key *row;
    if (!sl_str_ends(key, suffix))
        return false;
    pattern.size -= suffix.size;
    *secret = (struct sl_str){key.data, key.size - suffix.size};
    return key_classify(pattern, &row) == KEY_SECRET;
}

/* Replaces member `index` of the map, `x_file`, by `x` (`secret`) with the text of the named file. Reports a file that cannot be read, and
 * a map that has both keys. `path_known`: false if the file's path is a ${NAME} that could not be replaced, which was reported. */
static void resolve_file(struct resolver *r, struct value *map, size_t index, struct sl_str secret, bool path_known)
{
    struct value *value = &map->items[index];
    struct sl_str text;
    const char *shown = path_shown(&r->path);
    for (size_t i = 0; i < map->count; i++) {
        if (sl_str_equal(map->keys[i], secret)) {
            value_problem(r->problems, value, false, shown, "set only one of " SL_STR_FMT " and " SL_STR_FMT "_file",
                          SL_STR_ARG(secret), SL_STR_ARG(secret));
            return;
        }
    }
    /* even if the file cannot be read, so that the key `x` is not reported as missing, too */
    map->keys[index] = secret;
    if (!path_known)
        return;
    if (value->type != VALUE_STRING) {
        char what[120];
        value_problem(r->problems, value, false, shown, "%s is not the path of a file", scalar_describe(value, what));
        value->type = VALUE_STRING; /* so that no second problem is reported for `x` */
        return;
    }
    const char *wrong = read_secret(&r->config->arena, value->string.data, &text);
    if (wrong) {
        char what[120];
        value_problem(r->problems, value, false, shown, "%s: %s", scalar_describe(value, what), wrong);
        return;
    }
    value->string = text;
}

/* ---- the walk; its depth is limited by yaml_read ---- */

/* Notes the first secret that is written in the configuration file itself, for a warning if every user may read the file. "[redacted]",
 * which config_dump() writes, is no secret. */
static void note_written(struct resolver *r, const struct value *value)
{
    bool is_secret = value->type != VALUE_NULL && !sl_str_equal(value->string, SL_STR("[redacted]"));
    if (!r->written && is_secret && value->string.size) {
        const char *shown = path_shown(&r->path);
        r->written = sl_arena_strndup(r->problems->arena, shown, strlen(shown));
    }
}

static void env_walk(struct resolver *r, struct value *value, bool secret);

/* Resolves a member of a map: first references in its value; then, if its key is `x_file` for a secret `x`, the file that the value
 * names. */
static void walk_member(struct resolver *r, struct value *map, size_t index, bool secret)
{
    const struct config_key *row;
    struct sl_str named;
    struct path_mark up = path_key(&r->path, map->keys[index]);
    size_t errors = r->problems->errors;
    env_walk(r, &map->items[index], secret || key_classify(path_pattern(&r->path), &row) == KEY_SECRET);
    if (names_secret_file(r, map->keys[index], &named))
        resolve_file(r, map, index, named, r->problems->errors == errors);
    path_up(&r->path, up);
}

/* Resolves ${NAME} and files of secrets in a value and all values below it. With `secret` the value belongs to a secret key, and a text
 * that is no reference is noted (note_written). Stops when there are enough problems. */
static void env_walk(struct resolver *r, struct value *value, bool secret)
{
    if (config_has_enough_problems(r->problems))
        return;
    if (value->type == VALUE_LIST) {
        for (size_t i = 0; i < value->count; i++) {
            struct path_mark up = path_index(&r->path, i);
            env_walk(r, &value->items[i], secret);
            path_up(&r->path, up);
        }
    } else if (value->type == VALUE_MAP) {
        for (size_t i = 0; i < value->count; i++)
            walk_member(r, value, i, secret);
    } else if (!resolve_text(r, value) && secret) {
        note_written(r, value);
    }
}

void env_resolve(struct config *config, struct value *root, struct value_problems *problems, const char **written)
{
    struct resolver r = {.config = config, .problems = problems};
    env_walk(&r, root, false);
    path_free(&r.path);
    *written = r.written;
}
