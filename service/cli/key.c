/* `symloom key new`: makes an access key, shows it once, and prints its entry for the configuration:
 *
 *     auth:
 *       keys:
 *         - id: "ci"
 *           sha256: <hex digest of the key's text>
 *           rights: ["symbols:write"] */
#include "cli/cli.h"
#include "cli/options.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

enum { KEY_BYTES = 32 };

static const struct option_spec specs[] = {
    {"id", 0, OPTION_VALUE, false, "ID", "Name the holder, as shown in logs"},
    {"right", 0, OPTION_VALUE, true, "RIGHT", "Grant this right: symbols:write, admin, ... (repeatable)"},
    {"scope", 0, OPTION_VALUE, true, "SCOPE", "Allow requests for this scope only (repeatable)"},
    {"expires", 0, OPTION_VALUE, false, "YYYY-MM-DD", "Expire after this day (UTC)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* A key with a colon is a pair "id:key", which is encoded as base64; one without was issued as base64, and is copied. */
bool access_key_encode(const char *key, char *out, size_t size)
{
    bool is_pair = strchr(key, ':') != NULL;
    size_t length = strlen(key);
    if ((is_pair ? (length + 2) / 3 * 4 : length) >= size)
        return false;
    if (is_pair)
        EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)key, (int)length);
    else
        memcpy(out, key, length + 1);
    return true;
}

/* Appends the values of a repeatable option as a YAML list with the key `name`; nothing if the option was not given. */
static void key_list(const struct options *o, const char *option, const char *name, struct sl_buf *out)
{
    size_t count;
    const char *const *values = option_values(o, option, &count);
    if (count == 0)
        return;
    sl_buf_printf(out, "      %s: [", name);
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(out, "%s\"%s\"", i ? ", " : "", values[i]);
    sl_buf_cstr(out, "]\n");
}

/* Writes the YAML that the user adds to the configuration: id, digest of the key, rights, scopes, expiry. False when out of memory, or the
 * digest cannot be computed. */
static bool key_write(const struct options *o, struct sl_str key, struct sl_buf *yaml)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(key.data, key.size, digest, &size, EVP_sha256(), NULL) != 1)
        return false;
    sl_buf_printf(yaml, "auth:\n  keys:\n    - id: \"%s\"\n      sha256: ", option_value(o, "id", ""));
    sl_buf_hex(yaml, digest, size);
    sl_buf_u8(yaml, '\n');
    key_list(o, "right", "rights", yaml);
    key_list(o, "scope", "scopes", yaml);
    if (option_given(o, "expires"))
        sl_buf_printf(yaml, "      expires: %s\n", option_value(o, "expires", ""));
    return !yaml->failed;
}

/* True if one of the problems of a configuration is in its list `auth.keys`. */
static bool names_key(const struct value_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        if (sl_str_starts(problems->items[i].path, SL_STR("auth.keys")))
            return true;
    return false;
}

/* True if the service would accept the new key: the YAML, read as a configuration, has no errors, and no warnings about auth.keys. Other
 * warnings do not concern the key. Reports all problems otherwise. */
static bool key_is_sound(struct sl_str yaml)
{
    struct config *config = NULL;
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct sl_error error = {0};
    struct sl_buf text = {0};
    bool sound = config_parse(yaml, "key", &config, &problems, &error) == SL_OK && !names_key(&problems);
    config_format_problems("key", &problems, &text);
    if (!sound)
        report_error(2, "the configuration would reject this key", NULL);
    if (!sound && text.size)
        fwrite(text.data, 1, text.size, stderr);
    config_release(config);
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return sound;
}

/* `key new`: makes a random key, and prints it with the YAML that grants its rights; the YAML has only the key's digest. Wrong values of
 * the options are found by reading the YAML as the service would. Returns the exit status. */
static int key_run(const struct options *o)
{
    uint8_t bytes[KEY_BYTES];
    struct sl_buf key = {0}, yaml = {0};
    int status = 0;
    if (o->argument_count != 1 || strcmp(o->arguments[0], "new") != 0 || !option_given(o, "id") ||
        !option_given(o, "right"))
        return options_wrong(o, "expected 'key new --id ID --right RIGHT'");
    if (RAND_bytes(bytes, KEY_BYTES) != 1)
        return report_error(1, "cannot make a key: the system returned no random bytes", NULL);
    sl_buf_hex(&key, bytes, KEY_BYTES);
    if (!key_write(o, sl_buf_view(&key), &yaml))
        status = report_error(1, "cannot compute the key's digest", NULL);
    else if (!key_is_sound(sl_buf_view(&yaml)))
        status = options_try_help("key");
    else {
        output_write(SL_STR("# The key (shown only once): "));
        output_write(sl_buf_view(&key));
        output_write(SL_STR("\n"));
        output_write(sl_buf_view(&yaml));
    }
    sl_buf_wipe(&key);
    sl_buf_free(&yaml);
    return status;
}

const struct command command_key = {
    .name = "key",
    .summary = "create an access key",
    .usage = "key new [OPTION...]",
    .about = "Creates an access key of 32 random bytes. The key itself is shown only once; the configuration "
             "stores its SHA-256.",
    .examples = "symloom key new --id ci --right symbols:write",
    .options = specs,
    .run = key_run,
};
