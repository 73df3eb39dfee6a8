/* Loads and renews the certificate of an HTTPS server, and warns before it expires. */
#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

enum sl_code server_load_certificate(const struct http_options *o, struct tls_context **context, struct sl_error *error)
{
    struct tls_files files = {o->certificate_path, o->key_path, o->client_ca_path};
    return tls_context_server(&files, context, error);
}

void http_server_check_certificate(const struct http_server *server)
{
    enum { DAY_S = 24 * 60 * 60, SOON_DAYS = 14 };
    if (!server->tls)
        return;
    int64_t left = tls_context_expiry(server->tls) - clock_wall_s();
    if (left <= 0)
        log_error("http", "the certificate has expired; clients will reject it",
                  LOG_STR("path", server->options.certificate_path));
    else if (left < SOON_DAYS * DAY_S)
        log_warn("http", "the certificate expires soon; renew it and reload the configuration",
                 LOG_STR("path", server->options.certificate_path), LOG_I64("hours_left", left / 3600));
}

void server_renew_certificate(struct http_server *server)
{
    struct tls_context *fresh;
    struct sl_error error;
    if (!server->tls)
        return;
    if (server_load_certificate(&server->options, &fresh, &error) != SL_OK) {
        log_error("http", "cannot load the new certificate; keeping the old one", LOG_ERR(&error));
        return;
    }
    tls_context_free(server->tls); /* open connections keep it until they end */
    server->tls = fresh;
    http_server_check_certificate(server);
}
