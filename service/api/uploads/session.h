/* Upload sessions of single files: the client gets a URL with the session's secret and sends the file there. A session lives in
 * the process that began it; other processes of the service forward what they receive for it. A client whose session is gone
 * starts again, as the protocol defines. */
#pragma once

#include "api/uploads/uploads.h"

/* Begins a session on this node for a file of this scope, key, size and MD5. `secret` gets 32 hex digits that begin with the
 * node. False when out of memory. */
enum { SESSION_SECRET = 33 };
bool session_new(uint16_t node, const char *scope, enum store_part part, struct sl_str key, uint64_t size,
                 const uint8_t md5[16], char secret[SESSION_SECRET]);

/* PUT /upload/v2/session/{secret}. */
void session_put(struct http_exchange *x) SL_SUSPENDS;
uint64_t session_limit(const struct http_exchange *x);
