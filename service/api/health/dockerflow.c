/* Mozilla's health checks (Dockerflow): version, dependencies, liveness. */
#include "api/health/dockerflow.h"

#include <fcntl.h>
#include <unistd.h>

#include "api/impl.h"
#include "cache/cache.h"
#include "core/build.h"
#include "core/log.h"
#include "core/pool.h"
#include "search/search.h"

/* ---- version ---- */

enum { MAX_VERSION = 64 * 1024 };

struct version_text {
    const char *file; /* NULL: version.json in the program's directory */
    struct sl_buf text;
};

/* Writes the path of version.json in the program's directory into `path`. False if that directory is unknown. */
static bool beside_program(char *path, size_t size)
{
    static const char name[] = "version.json";
    ssize_t length = readlink("/proc/self/exe", path, size - sizeof name);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (slash)
        memcpy(slash + 1, name, sizeof name);
    return slash;
}

/* Pool work: reads the version file. If it is not a JSON document of at most about MAX_VERSION bytes, version->text stays empty.
 * O_NONBLOCK, because opening a named pipe must not block the pool thread. */
static void read_version(void *arg)
{
    struct version_text *version = arg;
    char path[4096];
    if (!version->file && !beside_program(path, sizeof path))
        return;
    int fd = open(version->file ? version->file : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    for (ssize_t got = 1; fd >= 0 && got > 0 && version->text.size < MAX_VERSION;) {
        if (!sl_buf_reserve(&version->text, 4096))
            break;
        got = read(fd, version->text.data + version->text.size, 4096);
        version->text.size += got > 0 ? (size_t)got : 0;
    }
    sl_close(fd);
    struct sl_json j = sl_json(sl_buf_view(&version->text), NULL, false);
    sl_json_skip(&j);
    if (!version->text.size || !sl_json_end(&j))
        sl_buf_clear(&version->text);
}

/* Writes version, commit and compiler of this program, as the answer of a service without a version file. */
static void own_version(struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "source", SL_STR("symloom"));
    sl_json_member_str(&w, "version", SL_STR(SYMLOOM_VERSION));
    sl_json_member_str(&w, "commit", sl_str(build_commit()));
    sl_json_member_str(&w, "build", SL_STR(__VERSION__));
    sl_json_end_object(&w);
}

/* GET /__version__: answers with the version file. If the configured file cannot be read, the answer is {}; if none is configured and there
 * is no version.json in the program's directory, the program describes itself. */
void dockerflow_version(struct http_exchange *x)
{
    struct version_text version = {.file = ((const struct service *)x->service)->config->mozilla.version_file};
    struct sl_error error;
    if (pool_run(POOL_IO, read_version, &version, &error) != SL_OK) {
        sl_buf_free(&version.text);
        http_reply_detail(x, 503, "cannot read the version file", NULL);
        return;
    }
    if (!version.text.size && version.file)
        sl_buf_cstr(&version.text, "{}");
    else if (!version.text.size)
        own_version(&version.text);
    http_reply_json(x, 200, &version.text);
}

/* ---- dependencies ---- */

enum { FINE = 0, WARNING = 30, ERROR = 40 };

struct health_check {
    const char *name;
    int level;                /* FINE, WARNING or ERROR */
    const char *id, *message; /* of the problem, unless FINE */
};

static const char *level_name(int level)
{
    return level == ERROR ? "error" : level == WARNING ? "warning" : "ok";
}

/* Writes the member of "details" for a check that found a problem: status, level and message. */
static void write_details(struct sl_json_writer *w, const struct health_check *check)
{
    sl_json_member_object(w, check->name);
    sl_json_member_str(w, "status", sl_str(level_name(check->level)));
    sl_json_member_u64(w, "level", (uint64_t)check->level);
    sl_json_member_object(w, "messages");
    sl_json_member_str(w, check->id, sl_str(check->message));
    sl_json_end_object(w);
    sl_json_end_object(w);
}

/* Writes the answer of Dockerflow's heartbeat: the status of all checks together (`worst`, the highest level of any), that of each check,
 * and details of those that found a problem. */
static void write_checks(struct sl_json_writer *w, const struct health_check *checks, size_t count, int worst)
{
    sl_json_begin_object(w);
    sl_json_member_str(w, "status", sl_str(level_name(worst)));
    sl_json_member_object(w, "checks");
    for (size_t i = 0; i < count; i++)
        sl_json_member_str(w, checks[i].name, sl_str(level_name(checks[i].level)));
    sl_json_end_object(w);
    sl_json_member_object(w, "details");
    for (size_t i = 0; i < count; i++)
        if (checks[i].level != FINE)
            write_details(w, &checks[i]);
    sl_json_end_object(w);
    sl_json_end_object(w);
}

/* GET /__heartbeat__: answers with the state of the service's dependencies. Status 500 if requests would fail, because a symbol store or
 * the cache directory does not work. Without Redis they would not, so its errors are warnings. */
void dockerflow_heartbeat(struct http_exchange *x)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    enum sl_code stores = config->mozilla.on ? mozilla_check_stores(config) : SL_OK;
    config_release(config);
    struct health_check checks[] = {
        {"check_storage_urls", stores == SL_OK ? FINE : ERROR,
         stores == SL_NOT_FOUND ? "tecken.health.E001" : "tecken.health.E002",
         stores == SL_NOT_FOUND ? "the bucket of a symbol store does not exist" : "a symbol store does not respond"},
        {"check_redis_connected", cache_redis_state() & CACHE_REDIS_DOWN ? WARNING : FINE, "tecken.health.E003",
         "Redis does not respond"},
        {"check_redis_policy", cache_redis_state() & CACHE_REDIS_KEEPS ? WARNING : FINE, "tecken.health.W001",
         "Redis has no eviction policy"},
        {"check_cache_dir", cache_writable() ? FINE : ERROR, "symloom.health.E001",
         "cannot write to the cache directory"},
    };
    enum { CHECKS = sizeof checks / sizeof *checks };
    int worst = FINE;
    for (size_t i = 0; i < CHECKS; i++)
        worst = checks[i].level > worst ? checks[i].level : worst;
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    write_checks(&w, checks, CHECKS, worst);
    http_reply_json(x, worst == ERROR ? 500 : 200, &text);
}

/* ---- liveness ---- */

void dockerflow_alive(struct http_exchange *x)
{
    const struct service *service = x->service;
    http_reply(x, service->draining ? 503 : 200, "application/json; charset=utf-8", SL_STR(""));
}

/* GET /__broken__: fails on purpose with status 500 and an error in the log, so that operators can test error reports. 404 unless it is
 * enabled. */
void dockerflow_broken(struct http_exchange *x)
{
    const struct service *service = x->service;
    if (!service->config->mozilla.on || !service->config->mozilla.broken_endpoint) {
        http_reply_empty(x, 404);
        return;
    }
    log_error("health", "a client requested this error to test error reports", LOG_SLSTR("path", x->path));
    http_reply(x, 500, "application/json", SL_STR("{\"title\": \"500 Internal Server Error\"}"));
}
