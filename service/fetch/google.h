/* Tokens for Google's APIs: a service account's key is exchanged for them ("Using OAuth 2.0 for server to server
 * applications", Google Identity; RFC 7523), or the machine's metadata server gives them ("Access tokens", Compute
 * Engine; GCE_METADATA_HOST in the environment names another one, as for Google's own libraries). */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"

enum { GOOGLE_TOKEN_LIFE_S = 58 * 60 }; /* of tokens got by a key, when the answer does not tell */

struct google_account {
    /* PEM, or the base64 of it; no key: the account of the machine. No URL: Google's. */
    struct sl_str private_key, client_email, token_url;
};

/* Reads a service account's key file; texts in the arena. SL_INTERNAL, SL_MALFORMED with the path. Blocks. */
enum sl_code google_account_read(const char *path, struct sl_arena *arena, struct google_account *account,
                                 struct sl_error *error);

/* Appends the signed assertion (RS256 of RFC 7518, 3.3) that a token is asked for with. False for a key that is none.
 * About a millisecond. */
bool google_assertion(const struct google_account *account, const char *scope, int64_t now_s, struct sl_buf *out);

/* Appends a token. `*life_s`: for how long it is good, 0 when that is not told. `label`: of the download's metrics. The
 * account must stay until it returns. SL_DOWNLOAD_ERROR "failed encoding JWT" or "failed to send authentication request"
 * with the reason, if there was one in the answer; SL_CANCELLED, SL_INTERNAL. */
enum sl_code google_token(const struct google_account *account, const char *scope, const char *label,
                          struct sl_buf *token, uint64_t *life_s, struct sl_error *error) SL_SUSPENDS;
