/* `symloom symbolicate`: reads which Sentry project to use, and downloads events from it. */
#include "cli/symbolicate/sentry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_fields.h"
#include "cli/locator/locator.h"
#include "cli/server.h"
#include "cli/symbolicate/symbolicate.h"
#include "fetch/fetch.h"

/* The largest answers that are read, in bytes: the list of an event's attachments; an event or an attachment. */
enum { MAX_LIST = 4 * 1024 * 1024, MAX_EVENT = 256 * 1024 * 1024 };

/* ---- the project ---- */

struct sentry_settings {
    const char *org, *project, *url; /* NULL: not given */
};

/* Returns the value of the option, else of the environment variable; NULL if neither is given. */
static const char *sentry_setting(const struct options *o, const char *option, const char *variable)
{
    return option_value(o, option, server_environment(variable));
}

/* Reads a secret from the first line of a file, of which at most 8191 bytes are used; `-` is standard input. Returns an exit status, after
 * a report unless 0. */
static int read_secret(const char *path, struct sl_arena *arena, struct sl_secret *secret)
{
    char line[8192];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    bool good = file && fgets(line, sizeof line, file);
    if (file && file != stdin)
        fclose(file);
    if (!file)
        return report_error(1, path, strerror(errno));
    if (!good)
        return report_error(1, path, "the file is empty; it must contain the secret in its first line");
    size_t size = strcspn(line, "\r\n");
    const char *copy = sl_arena_strndup(arena, line, size);
    explicit_bzero(line, sizeof line);
    if (!copy)
        return report_no_memory();
    *secret = secret_make((struct sl_str){copy, size});
    return 0;
}

/* Reads a secret from a file that the option `file` names; else from the value of `option` or of the environment variable. `*secret` is
 * unchanged if none is given. Returns an exit status. */
static int read_secret_option(const struct options *o, const char *option, const char *file, const char *variable,
                              struct sl_arena *arena, struct sl_secret *secret)
{
    const char *path = option_value(o, file, NULL), *value = sentry_setting(o, option, variable);
    if (option_given(o, option) && path)
        return options_wrong(o, "--%s and --%s cannot be combined", option, file);
    if (path)
        return read_secret(path, arena, secret);
    if (!value || !*value)
        return 0;
    const char *copy = sl_arena_strndup(arena, value, strlen(value));
    option_hide(o, option); /* overwrites the secret in argv, which `ps` shows */
    if (!copy)
        return report_no_memory();
    *secret = secret_make(sl_str(copy));
    return 0;
}

/* Returns the first of two texts that is not NULL. */
static const char *first_given(const char *a, const char *b)
{
    return a ? a : b;
}

/* Returns the token (with `token`) or the cookies of the first configuration in `layers` that has them; empty if none has. In one
 * configuration the value in `auth` (sentry.token) takes precedence over the keys auth_token and auth_cookies (sentry.plain_token). */
static struct sl_secret secret_of_files(struct config *const layers[2], struct sl_arena *arena, bool token)
{
    for (size_t i = 0; i < 2 && layers[i]; i++) {
        struct sl_secret both[2] = {token ? layers[i]->sentry.token : layers[i]->sentry.cookies,
                                    token ? layers[i]->sentry.plain_token : layers[i]->sentry.plain_cookies};
        for (size_t j = 0; j < 2; j++) {
            struct sl_str text = secret_open(both[j]);
            const char *copy = text.size ? sl_arena_strndup(arena, text.data, text.size) : NULL;
            if (copy)
                return secret_make((struct sl_str){copy, text.size});
        }
    }
    return (struct sl_secret){{NULL, 0}};
}

/* Fills in, from the user's configuration files (locator_load_config()), what neither the options nor the environment give. Cookies are not
 * read if there is a token. Returns an exit status. */
static int complete_from_files(const struct options *o, struct sl_arena *arena, struct sentry_settings *settings,
                               struct sentry_project *p)
{
    struct config *layers[2]; /* of the project and of the user: the first takes precedence; the second may be NULL */
    struct sl_error error;
    if (locator_load_config(o, layers, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    for (size_t i = 0; i < 2 && layers[i]; i++) {
        settings->org = first_given(settings->org, layers[i]->sentry.org);
        settings->project = first_given(settings->project, layers[i]->sentry.project);
        settings->url = first_given(settings->url, layers[i]->sentry.url);
    }
    /* copies, since some of the texts belong to the configuration, which is released below */
    const char **stored[] = {&settings->org, &settings->project, &settings->url};
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (*stored[i])
            *stored[i] = sl_arena_strndup(arena, *stored[i], strlen(*stored[i]));
    if (!secret_present(p->token) && !secret_present(p->cookies))
        p->token = secret_of_files(layers, arena, true);
    if (!secret_present(p->token) && !secret_present(p->cookies))
        p->cookies = secret_of_files(layers, arena, false);
    config_release(layers[0]);
    config_release(layers[1]);
    return 0;
}

/* Reads the credentials of the options and the environment: a token, else cookies. Options for cookies take precedence over a token of the
 * environment. Returns an exit status. */
static int read_secrets(const struct options *o, struct sl_arena *arena, struct sentry_project *p)
{
    bool token = option_given(o, "auth-token") || option_given(o, "auth-token-file");
    bool cookies = option_given(o, "auth-cookies") || option_given(o, "auth-cookies-file");
    if (token && cookies)
        return options_wrong(o, "--auth-token and --auth-cookies cannot be combined");
    int status =
        cookies ? 0 : read_secret_option(o, "auth-token", "auth-token-file", "SENTRY_AUTH_TOKEN", arena, &p->token);
    if (!status && !secret_present(p->token))
        status = read_secret_option(o, "auth-cookies", "auth-cookies-file", "SENTRY_AUTH_COOKIES", arena, &p->cookies);
    return status;
}

/* Makes the URL <base>/api/0/projects/<org>/<project>/ of a project in Sentry's API; the names are percent-encoded. False when out of
 * memory. */
static bool make_url(const char *base, const char *org, const char *project, struct sl_arena *arena, struct sl_str *url)
{
    struct sl_buf text = {0};
    size_t size = strlen(base);
    sl_buf_add(&text, base, size);
    sl_buf_cstr(&text, size && base[size - 1] == '/' ? "api/0/projects/" : "/api/0/projects/");
    fetch_encode(&text, sl_str(org), false);
    sl_buf_u8(&text, '/');
    fetch_encode(&text, sl_str(project), false);
    sl_buf_cstr(&text, "/");
    /* a copy with a NUL at its end */
    const char *copy = text.failed ? NULL : sl_arena_strndup(arena, (const char *)text.data, text.size);
    *url = (struct sl_str){copy, copy ? text.size : 0};
    sl_buf_free(&text);
    return copy != NULL;
}

/* Makes p->debug_files, a symbol source of the project's debug files, with the same credentials. False when out of memory. */
static bool add_debug_files(struct sentry_project *p, struct sl_arena *arena)
{
    struct sl_buf url = {0};
    sl_buf_str(&url, p->url);
    sl_buf_cstr(&url, "files/dsyms/");
    struct sl_str text = sl_buf_move_to_arena(&url, arena);
    p->debug_files = (struct source){.type = SOURCE_SENTRY,
                                     .id = SL_STR("sentry:project"),
                                     .url = text,
                                     .token = p->token,
                                     .cookies = p->cookies,
                                     .configured = true, /* by the user, not by a request */
                                     .internal = true};  /* a Sentry server may have a private address */
    return text.data != NULL;
}

int sentry_project_read(const struct options *o, bool required, struct sl_arena *arena, struct sentry_project *p)
{
    struct sentry_settings settings = {.org = sentry_setting(o, "org", "SENTRY_ORG"),
                                       .project = sentry_setting(o, "project", "SENTRY_PROJECT"),
                                       .url = sentry_setting(o, "url", "SENTRY_URL")};
    bool offline = option_given(o, "offline") || server_environment("SYMLOOM_OFFLINE") || server_is_offline(o);
    *p = (struct sentry_project){.online = false};
    int status = read_secrets(o, arena, p); /* also when offline, to hide the secrets in argv */
    if (status || offline)
        return status;
    /* a project that only the configuration files name is used only if the input is an event's id (`required`) */
    if (!required && !secret_present(p->token) && !secret_present(p->cookies) && !settings.org && !settings.project)
        return 0;
    status = complete_from_files(o, arena, &settings, p);
    if (status)
        return status;
    if (!secret_present(p->token) && !secret_present(p->cookies))
        return report_error(STATUS_DENIED,
                            "No auth token or cookies provided. Give --auth-token-file, or set $SENTRY_AUTH_TOKEN.",
                            NULL);
    if (!settings.org)
        return options_wrong(o, "No organization provided. Give --org, or set $SENTRY_ORG.");
    if (!settings.project)
        return options_wrong(o, "No project provided. Give --project, or set $SENTRY_PROJECT.");
    const char *copy = sl_arena_strndup(arena, settings.project, strlen(settings.project));
    if (!copy ||
        !make_url(settings.url ? settings.url : "https://sentry.io/", settings.org, settings.project, arena, &p->url) ||
        !add_debug_files(p, arena))
        return report_no_memory();
    p->project = sl_str(copy);
    p->online = true;
    return 0;
}

/* ---- events ---- */

struct event_fetch {
    const struct sentry_project *project;
    const char *id; /* id of the event */
    int fd;         /* the temporary file that gets the event or its crash file */
    struct sl_arena arena;
    struct sl_error error;
    enum sl_code code;
};

/* Turns an HTTP error status of Sentry into an error (fetch_request.refused). */
static enum sl_code sentry_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{400, "Bad Request"}, {401, "Unauthorized"},       {403, "Forbidden"},
                   {404, "Not Found"},   {429, "Too Many Requests"},  {500, "Internal Server Error"},
                   {502, "Bad Gateway"}, {503, "Service Unavailable"}};
    const char *reason = NULL;
    (void)arg;
    (void)body;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            reason = reasons[i].reason;
    enum sl_code code = status == 401 || status == 403 ? SL_PERMISSION_DENIED
                        : status >= 500                ? SL_DOWNLOAD_ERROR
                                                       : SL_NOT_FOUND;
    return reason ? sl_fail(error, code, "Response from server: %s", reason)
                  : sl_fail(error, code, "Response from server: status %d", status);
}

/* Returns the URL of the event, or of its attachment with this id (NULL: none), followed by `end`; NULL when out of memory. */
static const char *event_url(struct event_fetch *e, const char *attachment, const char *end)
{
    struct sl_buf url = {0};
    sl_buf_str(&url, e->project->url);
    sl_buf_cstr(&url, "events/");
    fetch_encode(&url, sl_str(e->id), false);
    sl_buf_u8(&url, '/');
    if (attachment) {
        sl_buf_cstr(&url, "attachments/");
        fetch_encode(&url, sl_str(attachment), false);
        sl_buf_u8(&url, '/');
    }
    sl_buf_cstr(&url, end);
    const char *copy = url.failed ? NULL : sl_arena_strndup(&e->arena, (const char *)url.data, url.size);
    sl_buf_free(&url);
    return copy;
}

/* Sends a GET request with the project's credentials. The answer goes into `body`, or if that is NULL into the file e->fd. False with
 * e->code and e->error set; also if `url` is NULL, which means out of memory. */
static bool sentry_fetch(struct event_fetch *e, const char *url, struct sl_buf *body)
{
    struct sl_buf bearer = {0};
    bool by_token = secret_present(e->project->token);
    sl_buf_cstr(&bearer, "Bearer ");
    sl_buf_str(&bearer, secret_open(e->project->token));
    struct fetch_header header = {SL_STR("Authorization"), secret_make(sl_buf_view(&bearer))};
    if (!by_token)
        header = (struct fetch_header){SL_STR("Cookie"), e->project->cookies};
    struct fetch_request request = {.url = url,
                                    .headers = &header,
                                    .header_count = 1,
                                    .trusted = true, /* a Sentry server may have a private address */
                                    .source = "sentry",
                                    .max_size = body ? MAX_LIST : MAX_EVENT,
                                    .refused = sentry_refused};
    if (!url || bearer.failed)
        e->code = sl_fail(&e->error, SL_BUSY, "out of memory");
    else
        e->code = body ? fetch_text(&request, body, &e->error) : fetch_get(&request, e->fd, &e->error);
    sl_buf_wipe(&bearer);
    return e->code == SL_OK;
}

struct attachment {
    struct sl_str id, type;
};

static const struct sl_field attachment_fields[] = {
    SL_FIELD(TEXT, false, attachment, id, "id"),
    SL_FIELD(TEXT, false, attachment, type, "type"),
    SL_FIELDS_END,
};

/* Returns the id of the first attachment in a JSON list that is a minidump or an Apple crash report; NULL if there is none. */
static const char *crash_attachment(struct event_fetch *e, struct sl_str list)
{
    struct sl_json j = sl_json(list, &e->arena, false);
    struct sl_str key;
    if (!sl_json_array(&j))
        return NULL;
    while (sl_json_next(&j, &key)) {
        struct attachment a = {.id = {NULL, 0}};
        if (sl_json_read_object(&j, attachment_fields, &a) && a.id.size &&
            (sl_str_equal(a.type, SL_STR("event.minidump")) || sl_str_equal(a.type, SL_STR("event.applecrashreport"))))
            return sl_arena_strndup(&e->arena, a.id.data, a.id.size);
    }
    return NULL;
}

/* Downloads the event to e->fd; if a crash file is attached to it, replaces the event by that file. Runs in a fiber, as fetches suspend. */
static void fetch_event(void *arg)
{
    struct event_fetch *e = arg;
    struct sl_buf list = {0};
    if (sentry_fetch(e, event_url(e, NULL, "json/"), NULL) &&
        sentry_fetch(e, event_url(e, NULL, "attachments/"), &list)) {
        const char *id = crash_attachment(e, sl_buf_view(&list));
        /* a failed fetch has set e->code; if it is SL_OK, ftruncate has failed */
        if (id && (ftruncate(e->fd, 0) != 0 || !sentry_fetch(e, event_url(e, id, "?download=1"), NULL)) &&
            e->code == SL_OK)
            e->code = sl_fail_errno(&e->error, errno,
                                    "cannot empty the temporary file that holds the event, for its crash file");
    }
    sl_buf_free(&list);
}

int sentry_event(const struct options *o, const struct sentry_project *p, const char *id, struct sl_mapping *mapping)
{
    struct event_fetch e = {.project = p, .id = id, .fd = temporary_file()};
    struct locator *locator = NULL;
    struct sl_error error = {0};
    int status = 0;
    if (e.fd < 0)
        status = report_error(1, "cannot create a temporary file for the event", strerror(errno));
    else if (locator_open(o, NULL, server_verbosity(o), &locator, &error) != SL_OK)
        status = report_error(1, error.message, NULL);
    else
        status = symbolicate_in_time(o, locator, fetch_event, &e);
    locator_close(locator);
    if (!status && e.code != SL_OK)
        status = report_error(e.code == SL_PERMISSION_DENIED ? STATUS_DENIED : 1, e.error.message, NULL);
    if (!status && (sl_map_fd(e.fd, mapping, &error) != SL_OK || map_unpacked(mapping, &error) != SL_OK))
        status = report_error(1, error.message, NULL);
    sl_close(e.fd);
    sl_arena_free(&e.arena);
    return status;
}
