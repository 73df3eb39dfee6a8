/* TLS 1.2 and 1.3 (RFC 5246, RFC 8446) over memory buffers, client and server: the caller reads and writes the sockets. Uses OpenSSL. No
 * renegotiation, no compression; a server issues stateless session tickets and accepts only http/1.1 in ALPN (RFC 7301). A connection must
 * be used by one thread at a time; contexts may be created on any thread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct tls_files {           /* paths */
    const char *certificate; /* PEM chain, own certificate first; optional for clients */
    const char *key;         /* PEM */
    /* PEM: the authorities by which the peer's certificate is verified. NULL: a client uses those of the system; a server does not request
     * client certificates. */
    const char *ca;
};

/* Certificate, key and authorities for new connections. */
struct tls_context;

/* Make the context of a server or a client. SL_MALFORMED if a file cannot be read or key and certificate do not match; the message says
 * which and why. SL_BUSY. */
enum sl_code tls_context_server(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
enum sl_code tls_context_client(const struct tls_files *files, struct tls_context **context, struct sl_error *error);
void tls_context_free(struct tls_context *context);            /* may be NULL; existing connections continue */
int64_t tls_context_expiry(const struct tls_context *context); /* expiry of the certificate, seconds since the epoch */

/* One connection. */
struct tls;
/* Makes the server's end of a connection. NULL when out of memory. */
struct tls *tls_accept(struct tls_context *context);
/* Makes the client's end of a connection. The server must have a certificate for `host`, a name or an address (RFC 9525). The first
 * tls_read() starts the handshake. NULL when out of memory. */
struct tls *tls_connect(struct tls_context *context, const char *host);
void tls_free(struct tls *tls);

/* True if the first bytes of a connection can be those of TLS: a handshake record. HTTP and other text protocols begin with another
 * byte. */
bool tls_is_handshake_record(struct sl_bytes first);

/* Passes received bytes to the connection, without a copy. They must stay valid, and tls_feed() must not be called again, until tls_read()
 * has returned TLS_MORE. */
void tls_feed(struct tls *tls, struct sl_bytes encrypted);

enum tls_result {
    TLS_DATA,  /* `*size` bytes, at least one */
    TLS_MORE,  /* all bytes of tls_feed() are used up: more must be received */
    TLS_END,   /* the peer will send no more */
    TLS_FAILED /* the connection is broken */
};
/* Decrypts received bytes into `out`, at most `capacity` bytes. Performs the handshake first. */
enum tls_result tls_read(struct tls *tls, uint8_t *out, size_t capacity, size_t *size);

bool tls_is_ready(const struct tls *tls);       /* the handshake is finished */
const char *tls_version(const struct tls *tls); /* "TLSv1.3" */
const char *tls_failure(const struct tls *tls); /* reason of TLS_FAILED, for the log */
/* Encrypts to the output (tls_output). False: the connection is broken. */
bool tls_write(struct tls *tls, struct sl_bytes plaintext);
/* Adds a close_notify alert to the output, once. */
void tls_close_notify(struct tls *tls);

/* Returns the encrypted bytes to be sent, which the caller removes. tls_read(), tls_write() and tls_close_notify() may add some. */
struct sl_buf *tls_output(struct tls *tls);
