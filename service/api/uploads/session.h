/* Upload sessions of single files: the client gets a URL with the session's secret and sends the file there. A session is in the memory of
 * the process that began it; other processes of the service forward requests for it to that process. A client whose session is gone, which
 * gets 404, starts again, as the protocol defines. */
#pragma once

#include "api/uploads/uploads.h"

enum { SESSION_SECRET = 33 }; /* bytes of a secret: 32 hex digits and a NUL */
/* Begins a session for a file with this scope, key, size and MD5. Sets `secret` to 32 hex digits, of which the first four are the number of
 * this node, as session_put forwards requests by them. False when out of memory, or if the system has no random bytes. */
bool session_new(uint16_t node, const char *scope, enum store_part part, struct sl_str key, uint64_t size,
                 const uint8_t md5[16], char secret[SESSION_SECRET]);

/* Handler of PUT /upload/v2/session/{secret}. */
void session_put(struct http_exchange *x) SL_SUSPENDS;
/* http_route.body_limit of session_put. */
uint64_t session_limit(const struct http_exchange *x);
