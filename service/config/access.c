/* Access keys and their rights. The configuration contains only the SHA-256 of a key. */
#include <stdio.h>
#include <time.h>

#include "config/impl.h"
#include "id/id.h"

/* The words of `auth.require`, and those of `auth.keys[].rights`. */
const char *const access_route_groups[] = {"symbolicate", "mozilla", "proxy", "symcache",  "symbols",    "metrics",
                                           "status",      "page",    "admin", "downloads", "debuginfod", NULL};
static const char *const rights[] = {"symbolicate",   "mozilla",        "proxy",      "symcache", "symbols:read",
                                     "symbols:write", "symbols:delete", "metrics",    "status",   "page",
                                     "admin",         "downloads",      "debuginfod", NULL};

/* True if the text is the name of a right. */
static bool is_right(struct sl_str text)
{
    for (const char *const *right = rights; *right; right++)
        if (sl_str_equal(text, sl_str(*right)))
            return true;
    return false;
}

struct access_key_reading {
    struct config *config;
    struct value_problems *problems;
    size_t index; /* index of the entry in auth.keys */
};

/* Reports an error in member `name` of the entry that is being read; "": in the entry itself. `at` (may be NULL) has the position. */
static void report_error_in(const struct access_key_reading *r, const struct value *at, const char *name,
                            const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "auth.keys[%zu]%s%s", r->index, *name ? "." : "", name);
    value_problem(r->problems, at, false, path, "%s", what);
}

/* Warns of an empty list of rights or scopes, as it allows no requests. */
static void warn_if_empty(const struct access_key_reading *r, const struct value *list, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "auth.keys[%zu].%s", r->index, name);
    if (list->count == 0)
        value_problem(r->problems, list, true, path, "the list is empty, so the key allows no requests");
}

/* True for the id of a key: printable ASCII without blanks, and without a colon, which separates id and secret in a request. */
static bool is_key_id(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < 0x21 || text.data[i] > 0x7E || text.data[i] == ':')
            return false;
    return text.size > 0;
}

/* Reads the rights of the key. Unknown ones are reported and dropped, and a missing list (NULL) is an error. */
static void read_rights(const struct access_key_reading *r, const struct value *list, struct access_key *key)
{
    struct sl_str *texts =
        list && list->type == VALUE_LIST ? SL_ARENA_ARRAY(&r->config->arena, struct sl_str, list->count + 1) : NULL;
    if (!texts) {
        report_error_in(r, list, "rights",
                        list && list->type == VALUE_LIST ? "cannot be read: out of memory" : "is not a list");
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        char path[64];
        snprintf(path, sizeof path, "auth.keys[%zu].rights", r->index);
        if (list->items[i].type == VALUE_STRING && is_right(list->items[i].string))
            texts[key->right_count++] = list->items[i].string;
        else
            config_report_not_one_of(r->problems, &list->items[i], path, rights);
    }
    warn_if_empty(r, list, "rights");
    key->rights = texts;
}

/* Reads the scopes that requests with the key may use. Values that are no texts are reported and dropped. */
static void read_scopes(const struct access_key_reading *r, const struct value *list, struct access_key *key)
{
    struct sl_str *texts =
        list->type == VALUE_LIST ? SL_ARENA_ARRAY(&r->config->arena, struct sl_str, list->count + 1) : NULL;
    if (!texts) {
        report_error_in(r, list, "scopes",
                        list->type == VALUE_LIST ? "cannot be read: out of memory" : "is not a list");
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].type == VALUE_STRING)
            texts[key->scope_count++] = list->items[i].string;
        else
            report_error_in(r, &list->items[i], "scopes", "is no text");
    }
    warn_if_empty(r, list, "scopes");
    key->scopes = texts;
}

/* Parses a date "2027-01-31" to the end of that day in UTC. False if it is no such date. */
static bool read_date(struct sl_str text, int64_t *seconds)
{
    char copy[16];
    struct tm tm = {0};
    if (text.size != 10)
        return false;
    memcpy(copy, text.data, 10);
    copy[10] = '\0';
    const char *end = strptime(copy, "%Y-%m-%d", &tm);
    if (!end || *end)
        return false;
    *seconds = (int64_t)timegm(&tm) + 24 * 3600;
    return true;
}

bool config_read_expiry(struct sl_str text, const struct value *at, const char *path, int64_t *seconds,
                        struct value_problems *problems)
{
    enum { DAY_S = 24 * 60 * 60, SOON_DAYS = 14 };
    if (!read_date(text, seconds))
        return false;
    int64_t left = *seconds - (int64_t)time(NULL);
    if (left <= 0)
        value_problem(problems, at, true, path, "it has expired and is no longer accepted");
    else if (left < SOON_DAYS * DAY_S)
        value_problem(problems, at, true, path, "it expires in %lld hours", (long long)(left / 3600));
    return true;
}

/* Reads the last day on which the key is valid. */
static void read_expiry(const struct access_key_reading *r, const struct value *date, struct access_key *key)
{
    char path[64];
    snprintf(path, sizeof path, "auth.keys[%zu].expires", r->index);
    if (!config_read_expiry(date->string, date, path, &key->expires_s, r->problems))
        report_error_in(r, date, "expires", "is not a date (example: 2027-01-31)");
}

/* Reads an entry of auth.keys. Without `scopes` the key may use any, and without `expires` it is valid for ever. */
static void read_key(const struct access_key_reading *r, const struct value *map, struct access_key *key)
{
    const struct value *id = value_get(map, "id"), *digest = value_get(map, "sha256");
    const struct value *expires = value_get(map, "expires"), *scopes = value_get(map, "scopes");
    size_t size = 0;
    key->expires_s = INT64_MAX;
    if (!id || !is_key_id(id->string))
        report_error_in(r, id ? id : map, "id", "is missing, or not printable ASCII without blanks and colons");
    else
        key->id = id->string;
    if (!digest || !sl_hex_decode(digest->string, key->sha256, sizeof key->sha256, &size) || size != 32)
        report_error_in(r, digest ? digest : map, "sha256", "is not a SHA-256 in hex");
    read_rights(r, value_get(map, "rights"), key);
    if (scopes && scopes->type != VALUE_NULL)
        read_scopes(r, scopes, key);
    if (expires && expires->type != VALUE_NULL)
        read_expiry(r, expires, key);
}

void config_read_access_keys(struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *list = config_find(root, "auth.keys");
    if (!list || list->type == VALUE_NULL)
        return;
    if (list->type != VALUE_LIST) {
        value_problem(problems, list, false, "auth.keys", "is not a list");
        return;
    }
    config->auth.keys = SL_ARENA_ARRAY(&config->arena, struct access_key, list->count);
    for (size_t i = 0; config->auth.keys && i < list->count && !config_has_enough_problems(problems); i++) {
        struct access_key_reading r = {config, problems, i};
        if (list->items[i].type == VALUE_MAP)
            read_key(&r, &list->items[i], &config->auth.keys[config->auth.key_count++]);
        else
            report_error_in(&r, &list->items[i], "", "is not a map");
    }
}
