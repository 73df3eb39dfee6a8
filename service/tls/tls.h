/* TLS 1.2 and 1.3 over memory buffers (OpenSSL), client and server: bytes in, bytes out, no sockets. RFC 8446, RFC
 * 5246. No renegotiation, no compression; a server issues stateless session tickets and offers only http/1.1 in ALPN
 * (RFC 7301). A connection must be used by one thread at a time; contexts may be created on any thread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct tls_files {
    const char *certificate; /* PEM chain, own certificate first; optional for clients */
    const char *key;         /* PEM */
    /* PEM: CAs that verify the peer. NULL = clients: the system's; servers: do not request client certificates. */
    const char *ca;
};

/* Certificate and key for new connections. */
struct tls_context;

/* SL_MALFORMED if a file cannot be read or key and certificate do not match; the message says which and why. */
enum sl_code tls_context_server(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
enum sl_code tls_context_client(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
void tls_context_free(struct tls_context *context);            /* may be NULL; existing connections continue */
int64_t tls_context_expiry(const struct tls_context *context); /* expiry of the certificate, seconds since the epoch */

/* One connection. */
struct tls;
struct tls *tls_accept(struct tls_context *context); /* NULL when out of memory */
/* The server must have a certificate for `host`, a name or an address (RFC 9525). The first tls_read() starts the
 * handshake. */
struct tls *tls_connect(struct tls_context *context, const char *host); /* NULL when out of memory */
void tls_free(struct tls *tls);

/* True if the bytes can be the beginning of a TLS connection; other protocols begin differently. */
bool tls_is_handshake_record(struct sl_bytes first);

/* Sets the received bytes. They must stay valid until tls_read() has consumed all of them, before the next
 * tls_feed(). */
void tls_feed(struct tls *tls, struct sl_bytes encrypted);

enum tls_result {
    TLS_DATA,  /* `*size` bytes, at least one */
    TLS_MORE,  /* all bytes that were fed are consumed */
    TLS_END,   /* the peer will send no more */
    TLS_FAILED /* the connection is broken */
};
/* Decrypts into `out`, at most `capacity` bytes; performs the handshake first. */
enum tls_result tls_read(struct tls *tls, uint8_t *out, size_t capacity, size_t *size);

bool tls_is_ready(const struct tls *tls);                   /* the handshake is finished */
const char *tls_version(const struct tls *tls);             /* "TLSv1.3" */
bool tls_write(struct tls *tls, struct sl_bytes plaintext); /* encrypts; false: the connection is broken */
void tls_close_notify(struct tls *tls);                     /* sends close_notify, once */
const char *tls_failure(const struct tls *tls);             /* reason of TLS_FAILED, for the log */

/* Returns the bytes to send; the caller removes them. Each of the functions above may add some. */
struct sl_buf *tls_output(struct tls *tls);
