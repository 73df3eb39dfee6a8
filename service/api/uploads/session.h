/* Uploads of single files: what a client is told to send, and where it sends it. Sessions live in the process that began them; its
 * neighbours, whom the client may reach as well, pass on to it what they are sent. A client whose session is gone begins anew, as
 * the protocol has it. */
#pragma once

#include "api/uploads/uploads.h"

/* A new session of this node for a file of this scope, key, size and MD5; its secret, of 32 hex digits that begin with the node, in
 * `secret`. False when out of memory. */
enum { SESSION_SECRET = 33 };
bool session_new(uint16_t node, const char *scope, enum store_part part, struct sl_str key, uint64_t size,
                 const uint8_t md5[16], char secret[SESSION_SECRET]);

/* PUT /upload/v2/session/{secret}. */
void session_put(struct http_exchange *x) SL_SUSPENDS;
uint64_t session_limit(const struct http_exchange *x);
