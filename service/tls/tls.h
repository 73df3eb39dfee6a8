/* TLS 1.2 and 1.3 over memory (OpenSSL), of both sides: bytes in, bytes out, no sockets. RFC 8446, RFC 5246. No renegotiation,
 * no compression; a server gives tickets without state, and its ALPN (RFC 7301) is http/1.1 alone. One connection is one
 * thread's at a time; contexts may be made on any thread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct tls_files {
    const char *certificate; /* PEM: the chain, one's own first. A client may have none */
    const char *key;         /* PEM */
    const char
        *ca; /* PEM: who may sign the other side's certificate. NULL = the system's for clients; servers ask nobody */
};

/* What connections are made from: a certificate with its key. */
struct tls_context;

/* SL_MALFORMED when the files are no pair or cannot be read: says which and why. */
enum sl_code tls_context_server(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
enum sl_code tls_context_client(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
void tls_context_free(struct tls_context *context);            /* NULL is allowed; connections go on */
int64_t tls_context_expiry(const struct tls_context *context); /* seconds since the epoch: when the certificate ends */

/* One connection. */
struct tls;
struct tls *tls_accept(struct tls_context *context); /* NULL when out of memory */
/* The server must prove that it is `host`, a name or an address (RFC 9525). The handshake begins with the first tls_read. */
struct tls *tls_connect(struct tls_context *context, const char *host); /* NULL when out of memory */
void tls_free(struct tls *tls);

/* Whether bytes that begin so can be the beginning of a connection: another protocol does not look like it. */
bool tls_looks_like(struct sl_bytes first);

/* What came in: tls_read takes it, all of it, before the next call and while it is still there. */
void tls_feed(struct tls *tls, struct sl_bytes sealed);

enum tls_result {
    TLS_DATA,  /* `*size` bytes, at least one */
    TLS_MORE,  /* all that was fed is read */
    TLS_END,   /* the other side will send no more */
    TLS_FAILED /* the connection is of no use any more */
};
/* Reads what was sealed into `out`, at most `room`. Handshakes on the way. */
enum tls_result tls_read(struct tls *tls, uint8_t *out, size_t room, size_t *size);

bool tls_is_ready(const struct tls *tls);               /* the handshake is done */
const char *tls_version(const struct tls *tls);         /* "TLSv1.3" */
bool tls_write(struct tls *tls, struct sl_bytes plain); /* seals it; false: of no use any more */
void tls_end(struct tls *tls);                          /* says that nothing more comes, once */
const char *tls_failure(const struct tls *tls);         /* why it is of no use, for the log */

/* What is to be sent: the caller takes it out. After each of the functions above there may be more. */
struct sl_buf *tls_output(struct tls *tls);
