/* Loads libcurl at the first call of one of its functions, and passes the calls on to it. */
#include "fetch/libcurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/buf.h"

/* The type of curl_url_get's first parameter without the pointer: `const CURLU` in newer versions of libcurl. */
typedef __typeof__(*_Generic(&curl_url_get, CURLUcode (*)(CURLU *, CURLUPart, char **, unsigned)
                             : (CURLU *)NULL, default
                             : (const CURLU *)NULL)) readable_url;

/* The functions of libcurl that are used, each as (result type, name without "curl_", parameters, arguments). */
#define FUNCTIONS(_)                                                                                                   \
    _(CURL *, easy_init, (void), ())                                                                                   \
    _(void, easy_cleanup, (CURL * easy), (easy))                                                                       \
    _(CURLcode, easy_pause, (CURL * easy, int mask), (easy, mask))                                                     \
    _(CURLcode, easy_perform, (CURL * easy), (easy))                                                                   \
    _(const char *, easy_strerror, (CURLcode code), (code))                                                            \
    _(void, free, (void *text), (text))                                                                                \
    _(time_t, getdate, (const char *text, const time_t *unused), (text, unused))                                       \
    _(void, global_cleanup, (void), ())                                                                                \
    _(CURLcode, global_init, (long flags), (flags))                                                                    \
    _(CURLMcode, multi_add_handle, (CURLM * multi, CURL * easy), (multi, easy))                                        \
    _(CURLMcode, multi_assign, (CURLM * multi, curl_socket_t socket, void *of_socket), (multi, socket, of_socket))     \
    _(CURLMcode, multi_cleanup, (CURLM * multi), (multi))                                                              \
    _(CURLMsg *, multi_info_read, (CURLM * multi, int *left), (multi, left))                                           \
    _(CURLM *, multi_init, (void), ())                                                                                 \
    _(CURLMcode, multi_perform, (CURLM * multi, int *running), (multi, running))                                       \
    _(CURLMcode, multi_poll, (CURLM * multi, struct curl_waitfd fds[], unsigned count, int ms, int *ready),            \
      (multi, fds, count, ms, ready))                                                                                  \
    _(CURLMcode, multi_remove_handle, (CURLM * multi, CURL * easy), (multi, easy))                                     \
    _(CURLMcode, multi_socket_action, (CURLM * multi, curl_socket_t socket, int events, int *running),                 \
      (multi, socket, events, running))                                                                                \
    _(struct curl_slist *, slist_append, (struct curl_slist * list, const char *text), (list, text))                   \
    _(void, slist_free_all, (struct curl_slist * list), (list))                                                        \
    _(CURLU *, url, (void), ())                                                                                        \
    _(void, url_cleanup, (CURLU * url), (url))                                                                         \
    _(CURLUcode, url_get, (readable_url * url, CURLUPart part, char **text, unsigned flags), (url, part, text, flags)) \
    _(CURLUcode, url_set, (CURLU * url, CURLUPart part, const char *text, unsigned flags), (url, part, text, flags))   \
    _(const char *, url_strerror, (CURLUcode code), (code))                                                            \
    _(curl_version_info_data *, version_info, (CURLversion version), (version))
/* Functions of libcurl whose third argument has a type that depends on the second: (result type, name, handle, type of the second). */
#define OPTIONS(_)                                                                                                     \
    _(CURLcode, easy_getinfo, CURL, CURLINFO)                                                                          \
    _(CURLcode, easy_setopt, CURL, CURLoption)                                                                         \
    _(CURLMcode, multi_setopt, CURLM, CURLMoption)

static const char name_of_library[] = "libcurl.so.4";
static struct {
#define MEMBER(result, name, ...) __typeof__(&curl_##name) name;
    FUNCTIONS(MEMBER)
    OPTIONS(MEMBER)
} functions;
static struct sl_error failure; /* code SL_OK: `functions` is complete */

/* Loads libcurl and looks up all functions that are used. Only when a download needs them: so commands without downloads start faster, and
 * work without libcurl. */
static void libcurl_open(void)
{
    void *library = dlopen(name_of_library, RTLD_NOW | RTLD_LOCAL);
    bool complete = library != NULL;
#define FIND(result, name, ...)                                                                                        \
    if (complete)                                                                                                      \
        complete = (functions.name = (__typeof__(functions.name))dlsym(library, "curl_" #name)) != NULL;
    FUNCTIONS(FIND)
    OPTIONS(FIND)
    if (!complete)
        sl_fail(&failure, SL_INTERNAL, "cannot load libcurl: %s", dlerror());
}

enum sl_code libcurl_load(struct sl_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, libcurl_open);
    if (failure.code != SL_OK && error)
        *error = failure;
    return failure.code;
}

/* Loads libcurl, and ends the process if that fails. A caller that can report the error calls libcurl_load first, which returns it. */
static void must_be_loaded(void)
{
    struct sl_error error;
    if (libcurl_load(&error) == SL_OK)
        return;
    fprintf(stderr, "error: %s\n", error.message);
    _exit(1);
}

#define DEFINE(result, name, parameters, arguments)                                                                    \
    result curl_##name parameters                                                                                      \
    {                                                                                                                  \
        must_be_loaded();                                                                                              \
        return functions.name arguments;                                                                               \
    }
FUNCTIONS(DEFINE)

/* The third argument of these functions is a long, a pointer to data or to a function, or a curl_off_t. All have the same size on symloom's
 * platforms and are passed in the same way, so each can be passed on as a `void *`. */
_Static_assert(sizeof(long) == sizeof(void *) && sizeof(curl_off_t) == sizeof(void *), "arguments of options");
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt
#define DEFINE_OPTION(result, name, handle, what)                                                                      \
    result curl_##name(handle *of, what option, ...)                                                                   \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, option);                                                                                        \
        void *argument = va_arg(rest, void *);                                                                         \
        va_end(rest);                                                                                                  \
        must_be_loaded();                                                                                              \
        return functions.name(of, option, argument);                                                                   \
    }
OPTIONS(DEFINE_OPTION)

bool libcurl_add_header(struct curl_slist **list, struct sl_str name, struct sl_str value)
{
    struct sl_buf line = {0};
    sl_buf_str(&line, name);
    sl_buf_cstr(&line, value.size ? ": " : ";");
    sl_buf_str(&line, value);
    sl_buf_u8(&line, 0);
    struct curl_slist *longer = line.failed ? NULL : curl_slist_append(*list, (const char *)line.data);
    sl_buf_wipe(&line);
    if (longer)
        *list = longer;
    return longer != NULL;
}
