/* Reads `mozilla.tokens`: the tokens by which clients upload symbols through Mozilla's API, with their owners and permissions. */
#include <openssl/sha.h>
#include <stdio.h>

#include "config/impl.h"
#include "id/id.h"

struct token_reading {
    struct config *config;
    struct value_problems *problems;
    size_t index; /* index of the entry in mozilla.tokens */
};

/* Reports an error in member `name` of the entry that is being read; "": in the entry itself. */
static void token_complain(const struct token_reading *r, const struct value *at, const char *name, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "mozilla.tokens[%zu]%s%s", r->index, *name ? "." : "", name);
    value_problem(r->problems, at, false, path, "%s", what);
}

/* Reads the list of permissions. A token for uploads of releases cannot be one for uploads of try builds too. */
static void read_permissions(const struct token_reading *r, const struct value *map, struct mozilla_token *token)
{
    static const char *const words[] = {"upload_symbols", "upload_try_symbols", "view_all_uploads", NULL};
    const struct value *list = value_get(map, "permissions");
    bool *const fields[] = {&token->upload, &token->upload_try, &token->view_all};
    if (!list || list->type != VALUE_LIST) {
        token_complain(r, list ? list : map, "permissions", "is not a list");
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t word = 0;
        while (words[word] &&
               !(list->items[i].type == VALUE_STRING && sl_str_equal(list->items[i].string, sl_str(words[word]))))
            word++;
        if (words[word])
            *fields[word] = true;
        else
            token_complain(r, &list->items[i], "permissions",
                           "is not one of upload_symbols upload_try_symbols view_all_uploads");
    }
    if (token->upload && token->upload_try)
        token_complain(r, list, "permissions", "upload_symbols and upload_try_symbols cannot be combined");
}

/* Sets the token's SHA-256, from the token itself (`key`) or from its digest (`sha256`). Clients may append "-label" to a token, so the
 * token itself has no '-'. */
static void read_digest(const struct token_reading *r, const struct value *map, struct mozilla_token *token)
{
    const struct value *key = value_get(map, "key"), *digest = value_get(map, "sha256");
    size_t size = 0;
    if (key && key->type == VALUE_STRING && key->string.size && !memchr(key->string.data, '-', key->string.size))
        SHA256((const uint8_t *)key->string.data, key->string.size, token->sha256);
    else if (key)
        token_complain(r, key, "key", "is not a text without '-'");
    else if (!digest || !sl_hex_decode(digest->string, token->sha256, sizeof token->sha256, &size) || size != 32)
        token_complain(r, digest ? digest : map, "sha256", "is not a SHA-256 in hex");
}

/* Reads the last day on which the token is valid. */
static void read_expiry(const struct token_reading *r, const struct value *date, struct mozilla_token *token)
{
    char path[64];
    snprintf(path, sizeof path, "mozilla.tokens[%zu].expires_at", r->index);
    if (!config_read_expiry(date->string, date, path, &token->expires_s, r->problems))
        token_complain(r, date, "expires_at", "is not a date (example: 2027-01-31)");
}

/* Reads an entry of mozilla.tokens. By default a token is active, is for version 1 of the upload API, is valid for ever and uploads to the
 * global scope. */
static void read_token(const struct token_reading *r, const struct value *map, struct mozilla_token *token)
{
    const struct value *email = value_get(map, "email"), *user = value_get(map, "user_id");
    const struct value *expires = value_get(map, "expires_at"), *active = value_get(map, "active");
    const struct value *api = value_get(map, "upload_api"), *scope = value_get(map, "scope");
    *token = (struct mozilla_token){.active = true, .upload_api = 1, .expires_s = INT64_MAX};
    read_digest(r, map, token);
    read_permissions(r, map, token);
    if (!email || email->type != VALUE_STRING)
        token_complain(r, email ? email : map, "email", "is not a text");
    else
        token->email = email->string;
    if (user && (user->type != VALUE_INT || user->negative || user->integer > INT64_MAX))
        token_complain(r, user, "user_id", "is not an integer");
    else if (user)
        token->user_id = user->integer;
    if (expires && expires->type != VALUE_NULL)
        read_expiry(r, expires, token);
    if (active && active->type != VALUE_BOOL)
        token_complain(r, active, "active", "is not true or false");
    else if (active)
        token->active = active->boolean;
    if (api && (api->type != VALUE_INT || api->negative || api->integer < 1 || api->integer > 2))
        token_complain(r, api, "upload_api", "is not 1 or 2");
    else if (api)
        token->upload_api = (unsigned)api->integer;
    if (scope && scope->type != VALUE_NULL && (scope->type != VALUE_STRING || !scope->string.size))
        token_complain(r, scope, "scope", "is not the name of a scope");
    else if (scope && scope->type == VALUE_STRING)
        token->scope = scope->string;
}

void config_read_tokens(struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *list = config_find(root, "mozilla.tokens");
    if (!list || list->type == VALUE_NULL)
        return;
    if (list->type != VALUE_LIST) {
        value_problem(problems, list, false, "mozilla.tokens", "is not a list");
        return;
    }
    config->mozilla.tokens = SL_ARENA_ARRAY(&config->arena, struct mozilla_token, list->count);
    for (size_t i = 0; config->mozilla.tokens && i < list->count && !config_has_enough_problems(problems); i++) {
        struct token_reading r = {config, problems, i};
        if (list->items[i].type == VALUE_MAP)
            read_token(&r, &list->items[i], &config->mozilla.tokens[config->mozilla.token_count++]);
        else
            token_complain(&r, &list->items[i], "", "is not a map");
    }
}
