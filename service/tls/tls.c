/* TLS connections over memory buffers, by OpenSSL. */
#include "tls/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tls_context {
    SSL_CTX *ssl;
    int64_t expiry; /* of the certificate, in seconds since the epoch */
};

struct tls {
    SSL *ssl;
    struct sl_bytes fed; /* received bytes that OpenSSL has not read yet */
    struct sl_buf out;   /* encrypted bytes to be sent */
    bool failed, ended;  /* the connection is broken; close_notify was sent */
    char failure[96];    /* reason, if `failed` */
};

/* ---- a BIO that reads fed bytes and writes to the output buffer (BIO_meth_new(3)) ---- */
/* The BIO's read: gives OpenSSL the bytes of tls_feed(). When there are none, it asks for a retry, so that SSL_read_ex() fails with
 * SSL_ERROR_WANT_READ. */
static int bytes_read(BIO *bio, char *out, int capacity)
{
    struct tls *tls = BIO_get_data(bio);
    size_t size = tls->fed.size < (size_t)capacity ? tls->fed.size : (size_t)capacity;
    BIO_clear_retry_flags(bio);
    if (size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, tls->fed.data, size);
    tls->fed = (struct sl_bytes){tls->fed.data + size, tls->fed.size - size};
    return (int)size;
}

/* The BIO's write: appends the encrypted bytes to the output buffer. */
static int bytes_write(BIO *bio, const char *data, int size)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    sl_buf_add(&tls->out, data, (size_t)size);
    return tls->out.failed ? -1 : size;
}

/* The BIO's control: OpenSSL asks to flush after a handshake message. There is nothing to do, but it must succeed; all else fails. */
static long bytes_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bytes_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

/* Returns the BIO type through which OpenSSL reads and writes a connection's buffers instead of its socket, which the event loop reads and
 * writes itself. Made at the first call; NULL when out of memory. */
static const BIO_METHOD *bytes_method(void)
{
    static BIO_METHOD *method;
    if (method)
        return method;
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bytes");
    if (method) {
        BIO_meth_set_read(method, bytes_read);
        BIO_meth_set_write(method, bytes_write);
        BIO_meth_set_ctrl(method, bytes_control);
        BIO_meth_set_create(method, bytes_create);
    }
    return method;
}

/* ---- contexts ---- */
/* ALPN callback: chooses http/1.1. Ends the handshake with an alert if the client offers only other protocols (RFC 7301, 3.2). */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *size, const unsigned char *offered,
                           unsigned offered_size, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl, (void)arg;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, size, ours, sizeof ours - 1, offered,
                                 offered_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Sets the error "<what> <path>: <reason>" for a file that cannot be used; if `path` is NULL, "is missing" stands in place of it. The
 * reason is OpenSSL's last error or, if a system call failed, the text of its errno. */
static enum sl_code refuse(struct sl_error *error, const char *what, const char *path)
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    if (code && ERR_SYSTEM_ERROR(code))
        reason = strerror(ERR_GET_REASON(code));
    ERR_clear_error();
    return sl_fail(error, SL_MALFORMED, "%s %s: %s", what, path ? path : "is missing",
                   reason ? reason : "cannot be used");
}

/* Loads the certificate chain and its key. */
static enum sl_code load_pair(SSL_CTX *ssl, const struct tls_files *files, struct sl_error *error)
{
    if (!files->certificate || SSL_CTX_use_certificate_chain_file(ssl, files->certificate) != 1)
        return refuse(error, "the certificate", files->certificate);
    if (!files->key || SSL_CTX_use_PrivateKey_file(ssl, files->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ssl) != 1)
        return refuse(error, "the key", files->key);
    return SL_OK;
}

/* Loads the server's files. With `ca`, every client must show a certificate of that authority. */
static enum sl_code load_server(SSL_CTX *ssl, const struct tls_files *files, struct sl_error *error)
{
    enum sl_code code = load_pair(ssl, files, error);
    if (code != SL_OK || !files->ca)
        return code;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(files->ca);
    if (!names || SSL_CTX_load_verify_file(ssl, files->ca) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return refuse(error, "the certificate authority for clients", files->ca);
    }
    SSL_CTX_set_client_CA_list(ssl, names);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return SL_OK;
}

/* Loads the client's files: the authorities it trusts, and its own certificate if there is one. */
static enum sl_code load_client(SSL_CTX *ssl, const struct tls_files *files, struct sl_error *error)
{
    if (files->ca ? SSL_CTX_load_verify_file(ssl, files->ca) != 1 : SSL_CTX_set_default_verify_paths(ssl) != 1)
        return refuse(error, "the certificate authority", files->ca ? files->ca : "of the system");
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    return files->certificate || files->key ? load_pair(ssl, files, error) : SL_OK;
}

/* Returns when the certificate expires, in seconds since the epoch; INT64_MAX without a certificate. */
static int64_t get_expiry(SSL_CTX *ssl)
{
    struct tm tm;
    const X509 *certificate = SSL_CTX_get0_certificate(ssl);
    return certificate && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1 ? (int64_t)timegm(&tm) : INT64_MAX;
}

/* Loads the files of a context: load_server or load_client. */
typedef enum sl_code loader(SSL_CTX *ssl, const struct tls_files *files, struct sl_error *error);

/* Makes a context for TLS 1.2 or later, with the files that `load` loads. To save memory, buffers of idle connections are released, and
 * sessions are not kept. */
static enum sl_code make_context(const SSL_METHOD *method, loader *load, const struct tls_files *files,
                                 struct tls_context **out, struct sl_error *error)
{
    struct tls_context *context = calloc(1, sizeof *context);
    *out = NULL;
    ERR_clear_error();
    if (!context || !(context->ssl = SSL_CTX_new(method))) {
        tls_context_free(context);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    enum sl_code code = load(context->ssl, files, error);
    if (code != SL_OK) {
        tls_context_free(context);
        return code;
    }
    context->expiry = get_expiry(context->ssl);
    *out = context;
    return SL_OK;
}

enum sl_code tls_context_server(const struct tls_files *files, struct tls_context **out, struct sl_error *error)
{
    static const unsigned char session_context[] = "symloom";
    enum sl_code code = make_context(TLS_server_method(), load_server, files, out, error);
    if (code != SL_OK)
        return code;
    SSL_CTX_set_options((*out)->ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* OpenSSL requires such a name of servers that check client certificates */
    SSL_CTX_set_session_id_context((*out)->ssl, session_context, sizeof session_context - 1);
    SSL_CTX_set_alpn_select_cb((*out)->ssl, choose_protocol, NULL);
    return SL_OK;
}

enum sl_code tls_context_client(const struct tls_files *files, struct tls_context **out, struct sl_error *error)
{
    return make_context(TLS_client_method(), load_client, files, out, error);
}

void tls_context_free(struct tls_context *context)
{
    if (context)
        SSL_CTX_free(context->ssl);
    free(context);
}

int64_t tls_context_expiry(const struct tls_context *context)
{
    return context->expiry;
}

/* ---- connections ---- */
/* Returns a TLS connection without a socket. NULL when out of memory. */
static struct tls *make_tls(struct tls_context *context)
{
    struct tls *tls = calloc(1, sizeof *tls);
    BIO *bio = tls && bytes_method() ? BIO_new(bytes_method()) : NULL;
    if (!bio || !(tls->ssl = SSL_new(context->ssl))) {
        BIO_free(bio);
        free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    return tls;
}

struct tls *tls_accept(struct tls_context *context)
{
    struct tls *tls = make_tls(context);
    if (tls)
        SSL_set_accept_state(tls->ssl);
    return tls;
}

struct tls *tls_connect(struct tls_context *context, const char *host)
{
    struct tls *tls = make_tls(context);
    if (!tls)
        return NULL;
    /* Setting an address fails if `host` is a name: then the name is set, also as the SNI, which an address does not have. */
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) != 1 &&
        (SSL_set1_host(tls->ssl, host) != 1 || SSL_set_tlsext_host_name(tls->ssl, host) != 1)) {
        tls_free(tls);
        return NULL;
    }
    SSL_set_connect_state(tls->ssl);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    sl_buf_free(&tls->out);
    free(tls);
}

bool tls_is_handshake_record(struct sl_bytes first)
{
    enum { HANDSHAKE_RECORD = 22 };
    return first.size > 0 && first.data[0] == HANDSHAKE_RECORD;
}

void tls_feed(struct tls *tls, struct sl_bytes encrypted)
{
    tls->fed = encrypted;
}

/* Marks the connection as broken and keeps the reason: that of the certificate check if it failed, which is more precise than OpenSSL's
 * error, else OpenSSL's error. */
static void set_failure(struct tls *tls)
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    long verified = SSL_get_verify_result(tls->ssl);
    if (verified != X509_V_OK)
        reason = X509_verify_cert_error_string(verified);
    tls->failed = true;
    snprintf(tls->failure, sizeof tls->failure, "%s", reason ? reason : "broken connection");
    ERR_clear_error();
}

enum tls_result tls_read(struct tls *tls, uint8_t *out, size_t capacity, size_t *size)
{
    if (tls->failed)
        return TLS_FAILED;
    ERR_clear_error();
    if (SSL_read_ex(tls->ssl, out, capacity, size) == 1)
        return TLS_DATA;
    switch (SSL_get_error(tls->ssl, 0)) {
    case SSL_ERROR_WANT_READ: return TLS_MORE;
    case SSL_ERROR_ZERO_RETURN: return TLS_END;
    default: set_failure(tls); return TLS_FAILED;
    }
}

bool tls_is_ready(const struct tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

/* An empty text is allowed and does nothing. After a failure all later calls return false. */
bool tls_write(struct tls *tls, struct sl_bytes plaintext)
{
    size_t written;
    ERR_clear_error();
    if (!tls->failed && (plaintext.size == 0 || SSL_write_ex(tls->ssl, plaintext.data, plaintext.size, &written) == 1))
        return true;
    if (!tls->failed)
        set_failure(tls);
    return false;
}

/* Does nothing during the handshake, if the connection is broken, or at a second call. */
void tls_close_notify(struct tls *tls)
{
    if (tls->failed || tls->ended || !tls_is_ready(tls))
        return;
    tls->ended = true;
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

const char *tls_version(const struct tls *tls)
{
    return SSL_get_version(tls->ssl);
}

const char *tls_failure(const struct tls *tls)
{
    return tls->failure;
}

struct sl_buf *tls_output(struct tls *tls)
{
    return &tls->out;
}
