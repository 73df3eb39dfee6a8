/* The cache kind `mozilla_syms`: symcaches of modules from Mozilla's symbol stores; and whether these stores are reachable. A downloaded
 * Breakpad file is converted to a symcache and not kept. The key has `source:` and `location:` lines like those of files of other sources,
 * by which entries can be invalidated:
 *
 *     scope: global\n\ntype: mozilla_syms\nsources: <hash>\nsource: mozilla\nlocation: <debug file>/<DEBUG ID>\n */
#include "search/search.h"

#include <stdlib.h>

#include "base/map.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "conversion/conversion.h"
#include "search/converters.h"

/* ---- health of the stores; loop thread ---- */

enum {
    FRESH_MS = 10000, /* a store that answered is not probed for this time */
    FAILED_MS = 1000, /* a store that did not answer is not probed for this time */
    PROBE_MS = 3000,  /* time limit of a probe */
};

struct store_health {
    enum sl_code code;
    uint64_t until_ms; /* in time of loop_now_ms: when the store must be asked again; 0 = now */
    bool is_asked;     /* a probe is running */
};

static struct sl_map stores; /* by id, for all stores that were ever configured */

/* Returns the state of a store, created if necessary. NULL when out of memory. */
static struct store_health *get_health(const struct source *store)
{
    struct store_health *health = sl_map_get(&stores, store->id);
    return health ? health : sl_map_add(&stores, store->id, sizeof *health, NULL);
}

void mozilla_health_clear(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&stores, e));)
        free(e->value);
    sl_map_free(&stores);
}

/* Returns the state of a store by the result of a request to it: SL_OK for every answer of the store, also "not found" and "forbidden";
 * else SL_DOWNLOAD_ERROR, SL_TIMEOUT or, if the bucket does not exist, SL_NOT_FOUND. */
static enum sl_code get_store_state(enum sl_code code, const struct sl_error *error)
{
    bool no_bucket = code == SL_NOT_FOUND && strcmp(error->message, object_no_bucket) == 0;
    return code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || no_bucket ? code : SL_OK;
}

/* Records the result of a request for a file in the store's state. A failure may be temporary and does not change the state: it only makes
 * the next mozilla_check_stores() probe the store. */
static void mozilla_health_note(const struct source *store, enum sl_code code, const struct sl_error *error)
{
    struct store_health *health = get_health(store);
    if (!health || code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return;
    if (get_store_state(code, error) == SL_OK) {
        health->code = SL_OK;
        health->until_ms = loop_now_ms() + FRESH_MS;
    } else {
        health->until_ms = 0; /* probe it at the next check */
    }
}

/* ---- probing a store ---- */

struct store_probe {
    const struct source *store;
    struct store_health *health;
    struct sl_arena arena;
    bool has_answer; /* the request succeeded or failed because of the store; its result is in `health` */
};

/* A fiber: asks the store for a module that cannot exist, without retries, and sets the store's state by the answer. Errors of this
 * process (no memory, cancelled) say nothing about the store: the state stays. */
static void request_from_store(void *arg)
{
    struct store_probe *p = arg;
    struct source once = *p->store;
    struct remote_file file = {.source = &once, .type = FILE_BREAKPAD};
    struct cache_tmp text;
    struct sl_error error = {0};
    /* not a real module: stores answer that they do not have it */
    static const struct sl_str location = SL_STR("heartbeat.pdb/000000000000000000000000000000001/heartbeat.sym");
    once.attempts = 1;
    if (!origin_set_path(&file, location, &p->arena) || cache_tmp_create(&text, true, &error) != SL_OK)
        return;
    enum sl_code code = origin_fetch(&file, text.fd, &error);
    cache_tmp_discard(&text);
    if (code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED)
        return;
    p->has_answer = true;
    p->health->code = get_store_state(code, &error);
    p->health->until_ms = loop_now_ms() + (p->health->code == SL_OK ? FRESH_MS : FAILED_MS);
}

/* Probes a store, for at most PROBE_MS. If it has not answered by then, its state is SL_TIMEOUT. If the probe ended earlier without an
 * answer, this process was short of memory: the last known state stays. */
static void probe_store(void *arg)
{
    struct store_probe *p = arg;
    struct fiber_group group;
    uint64_t begin = loop_now_ms();
    fiber_group_init(&group, fiber_group_current());
    fiber_group_deadline(&group, PROBE_MS);
    p->health->is_asked = true;
    if (fiber_start(&group, request_from_store, p))
        fiber_group_wait(&group);
    else
        fiber_group_finish(&group); /* no fiber was started: there is nothing to wait for */
    p->health->is_asked = false;
    if (!p->has_answer && loop_now_ms() - begin >= PROBE_MS && !fiber_cancelled()) {
        p->health->code = SL_TIMEOUT;
        p->health->until_ms = loop_now_ms() + FAILED_MS;
    }
    sl_arena_free(&p->arena);
}

enum sl_code mozilla_check_stores(const struct config *config)
{
    struct sl_arena arena = {0};
    size_t count = config->mozilla.source_count, asked = 0;
    struct store_probe *probes =
        SL_ARENA_ARRAY(&arena, struct store_probe, count + 1); /* + 1, as the number may be 0 */
    void **waiting = SL_ARENA_ARRAY(&arena, void *, count + 1);
    enum sl_code failure = SL_OK;
    for (size_t i = 0; probes && waiting && i < count; i++) {
        struct store_health *health = get_health(&config->mozilla.stores[i]);
        probes[i] = (struct store_probe){.store = &config->mozilla.stores[i], .health = health};
        if (health && !health->is_asked && health->until_ms <= loop_now_ms()) /* else the last known state counts */
            waiting[asked++] = &probes[i];
    }
    if (asked)
        fiber_for_each(probe_store, waiting, asked, asked);
    for (size_t i = 0; probes && i < count; i++) /* out of memory: the stores count as reachable */
        if (probes[i].health && probes[i].health->code != SL_OK)
            failure = probes[i].health->code;
    sl_arena_free(&arena);
    return failure;
}

/* ---- the kind ---- */

const char mozilla_wrong_id_message[] = "the file has another id";

struct mozilla_store_request {
    const struct source *stores;
    size_t store_count;
    struct sl_str location; /* <debug file>/<DEBUG ID> */
    struct object_id id;
};

/* ---- names ---- */

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
}

/* Makes `<debug file>/<DEBUG ID>`, with the id in upper case as on Mozilla's stores. False when out of memory. */
static bool make_location(const struct object_id *id, struct sl_arena *arena, struct sl_str *location)
{
    char text[SL_DEBUG_ID_TEXT];
    struct sl_buf out = {0};
    sl_debug_id_format_breakpad(&id->debug_id, text);
    sl_buf_str(&out, id->debug_file);
    sl_buf_u8(&out, '/');
    for (const char *c = text; *c; c++)
        sl_buf_u8(&out, (uint8_t)upper(*c));
    *location = sl_buf_move_to_arena(&out, arena);
    return location->data;
}

/* Sets `*file` to the module's file on a store, at the path <debug file>/<DEBUG ID>/<debug file without .pdb>.sym. False when out of
 * memory. */
static bool make_file(const struct mozilla_store_request *request, const struct source *store, struct sl_arena *arena,
                      struct remote_file *file)
{
    struct sl_str stem = request->id.debug_file;
    struct sl_buf path = {0};
    if (sl_str_ends(stem, SL_STR(".pdb")))
        stem.size -= 4;
    sl_buf_str(&path, request->location);
    sl_buf_u8(&path, '/');
    sl_buf_str(&path, stem);
    sl_buf_cstr(&path, ".sym");
    struct sl_str kept = sl_buf_move_to_arena(&path, arena);
    /* may_be_empty: else an empty file would be a download error, as if the store were down. So it only counts as malformed. */
    *file = (struct remote_file){.source = store, .type = FILE_BREAKPAD, .may_be_empty = true};
    return kept.data && origin_set_path(file, kept, arena);
}

/* ---- statistics for callers ---- */
struct watcher { /* a waiting look-up that wants the statistics of the computation */
    struct sl_link link;
    const struct mozilla_store_request *request;
    struct mozilla_stats *work; /* gets the statistics */
};
static struct sl_list watchers; /* of all look-ups that wait */

/* Copies the statistics of a computation to all look-ups that wait for the module: several requests may share one computation. */
static void update_watchers(const struct mozilla_store_request *request, const struct mozilla_stats *work)
{
    for (struct watcher *w = SL_LIST_FIRST(&watchers, struct watcher, link); w; w = SL_LIST_NEXT(w, link))
        if (sl_str_equal(w->request->location, request->location))
            *w->work = *work;
}

/* ---- one file ---- */
static double seconds_since(uint64_t begin_ns)
{
    return (double)(clock_mono_ns() - begin_ns) / 1e9;
}

/* Converts a Breakpad file. A file with another id than that of its location is refused: its symbols are those of another
 * program. */
static enum sl_code convert_store_file(struct conversion *conversion, const struct converter_call *call, void *result,
                                       struct sl_error *error)
{
    const struct mozilla_syms_options *asked = converter_options(call);
    struct mozilla_syms_result *done = result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, file, &asked->limits, &object, error);
    if (code != SL_OK)
        return code;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {
        .arch = info->arch, .debug_id = info->debug_id, .image_size = info->image_size, .module_file = info->code_file};
    struct sl_buf out = {0};
    if (info->format != SL_FORMAT_BREAKPAD)
        code = sl_fail(error, SL_MALFORMED, "the file is not a Breakpad symbol file");
    else if (!sl_debug_id_equal(&info->debug_id, &asked->debug_id))
        code = sl_fail(error, SL_MALFORMED, "%s", mozilla_wrong_id_message);
    else /* NULL: a Breakpad file needs no further files */
        code = sl_symcache_convert(object, NULL, &options, &conversion->parallel.parallel, &out, error);
    done->has_table = code == SL_OK;
    if (done->has_table)
        code = conversion_write(conversion, call, &out, error);
    done->is_written = code == SL_OK;
    done->written_ns = conversion->written_ns;
    sl_buf_free(&out);
    sl_object_close(object);
    return code;
}

static bool check_result(const void *result)
{
    const struct mozilla_syms_result *converted = result;
    return converter_bool_is_valid(&converted->has_table) && converter_bool_is_valid(&converted->is_written);
}

const struct converter converter_mozilla_syms = {"mozilla_syms", sizeof(struct mozilla_syms_options),
                                                 sizeof(struct mozilla_syms_result), convert_store_file, check_result};

/* Counts a conversion in Eliot's metrics: its duration or, if it failed, whether the file was malformed or had another id than its
 * location says. */
static void count_parsing(enum sl_code code, double seconds, const struct sl_error *error)
{
    bool another = code == SL_MALFORMED && strcmp(error->message, mozilla_wrong_id_message) == 0;
    if (code == SL_OK)
        metric_observe(METRIC_ELIOT_PARSE, seconds, NULL, NULL, NULL);
    else if (code == SL_MALFORMED || code == SL_UNSUPPORTED)
        metric_add(METRIC_ELIOT_PARSE_ERROR, 1, another ? "sym_debug_id_lookup_error" : "sym_malformed", NULL, NULL);
}

/* Converts the downloaded file `from` to a symcache in the cache file `to`. The time for writing counts as save_s, the rest as parse_s. */
static enum sl_code convert_download(const struct mozilla_store_request *request, const struct remote_file *file,
                                     int from, int to, struct mozilla_stats *work, struct sl_error *error)
{
    struct mozilla_syms_options options = {current_reader_limits(), request->id.debug_id};
    struct mozilla_syms_result done;
    struct conversion_description about = {.location = file->location, .kind = kind_mozilla_syms.name};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = to};
    converter_add_file(&call, INPUT_FILE, from);
    uint64_t begin = clock_mono_ns();
    enum sl_code code = conversion_run(&about, &converter_mozilla_syms, &call, &done, error);
    work->parsed = true;
    work->is_bad = code != SL_OK;
    work->save_s = (double)done.written_ns / 1e9;
    if (done.has_table)
        metric_observe(METRIC_ELIOT_CACHE_SET, work->save_s, done.is_written ? "success" : "fail", NULL, NULL);
    double seconds = seconds_since(begin) - work->save_s;
    if (!(seconds >= 0)) /* save_s comes from the worker process, which is not trusted; also true for NaN */
        seconds = 0;
    work->parse_s += seconds; /* a sum, as the files of several stores may be converted until one is usable */
    count_parsing(code, seconds, error);
    return code;
}

/* Downloads the module's file from one store into a temporary file and converts it to a symcache in `fd`. Adds its durations and size to
 * `work`. */
static enum sl_code try_store(const struct mozilla_store_request *request, const struct source *store, int fd,
                              struct sl_arena *arena, struct mozilla_stats *work, struct sl_error *error)
{
    struct remote_file file;
    struct cache_tmp text;
    if (!make_file(request, store, arena, &file))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = cache_tmp_create(&text, true, error);
    if (code != SL_OK)
        return code;
    uint64_t begin = clock_mono_ns();
    code = origin_fetch(&file, text.fd, error);
    mozilla_health_note(store, code, error);
    if (code != SL_CANCELLED)
        metric_observe_since(METRIC_ELIOT_DOWNLOAD, begin, code == SL_OK ? "success" : "fail");
    if (code == SL_OK) {
        work->downloads++;
        work->download_s += seconds_since(begin);
        work->size += get_file_size(text.fd);
        code = convert_download(request, &file, text.fd, fd, work, error);
    } else {
        work->failed++;
        work->failed_s += seconds_since(begin);
    }
    if (code != SL_OK)
        log_debug("mozilla", "found no usable symbol file in a symbol store", LOG_SLSTR("store", store->id),
                  LOG_SLSTR("location", file.location), LOG_ERR(error));
    cache_tmp_discard(&text);
    return code;
}

/* ---- all stores ---- */

/* Fails with SL_DOWNLOAD_ERROR and the message of `reason`: a store did not answer, so it is not known whether the module exists. So the
 * error must not be cached: duration_ns is its lifetime in the cache, and 0 would mean the default. */
static enum sl_code unreachable(struct sl_error *error, const struct sl_error *reason)
{
    *error = *reason;
    error->code = SL_DOWNLOAD_ERROR;
    error->duration_ns = 1;
    return SL_DOWNLOAD_ERROR;
}

/* Asks the stores in order until one has a usable file, whose symcache is then in `fd`. If none has: SL_DOWNLOAD_ERROR if a store did not
 * answer; otherwise the error of the last unusable file, or SL_NOT_FOUND if there was no file at all. */
static enum sl_code request_from_stores(const struct mozilla_store_request *request, int fd, struct sl_arena *arena,
                                        struct mozilla_stats *work, struct sl_error *error)
{
    struct sl_error missing = {.code = SL_NOT_FOUND}, transport = {.code = SL_OK};
    for (size_t i = 0; i < request->store_count; i++) {
        enum sl_code code = try_store(request, &request->stores[i], fd, arena, work, error);
        error->code = code;
        if (code == SL_OK || code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
            return code;
        if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT)
            transport = *error;
        else if (code == SL_MALFORMED || code == SL_UNSUPPORTED)
            missing = *error;
    }
    if (transport.code != SL_OK)
        return unreachable(error, &transport);
    *error = missing;
    return missing.code;
}

/* The kind's `compute`: makes the entry, gives its statistics to all look-ups that wait for it, and counts failures in the metrics. */
static enum sl_code mozilla_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                    struct sl_error *error)
{
    const struct mozilla_store_request *request = context;
    struct mozilla_stats work = {.computed = true, .begun_ns = clock_mono_ns()};
    enum sl_code code = request_from_stores(request, tmp->fd, arena, &work, error);
    if (code != SL_OK && code != SL_CANCELLED) /* also if no store has the module */
        metric_add(METRIC_TECKEN_DOWNLOAD_FAIL, 1, NULL, NULL, NULL);
    update_watchers(request, &work);
    return code;
}

/* The kind's `queue_name`: computations with the same first store share a queue, named after its URL or bucket. Data NULL: no stores. */
static struct sl_str mozilla_queue_name(const void *context)
{
    const struct mozilla_store_request *request = context;
    const struct source *first = request->stores;
    return !request->store_count ? (struct sl_str){NULL, 0}
           : first->url.size     ? first->url
                                 : bucket_name(&first->bucket);
}

/* The kind's `retain`: copies the request into the arena, as the computation may outlive the client that started it. The debug file's name
 * needs no copy of its own: the copied `location` begins with it. NULL when out of memory. */
static void *mozilla_retain(const void *context, struct sl_arena *arena)
{
    const struct mozilla_store_request *from = context;
    struct mozilla_store_request *to = SL_ARENA_NEW(arena, struct mozilla_store_request);
    struct source *stores =
        SL_ARENA_ARRAY(arena, struct source, from->store_count + 1); /* + 1, as the number may be 0 */
    if (!to || !stores)
        return NULL;
    for (size_t i = 0; i < from->store_count; i++) {
        const struct source *copy = source_copy(&from->stores[i], arena);
        if (!copy)
            return NULL;
        stores[i] = *copy;
    }
    *to = (struct mozilla_store_request){.stores = stores, .store_count = from->store_count};
    to->id = (struct object_id){.debug_id = from->id.debug_id, .has_debug_id = true};
    const char *location = sl_arena_strndup(arena, from->location.data, from->location.size);
    to->location = (struct sl_str){location, from->location.size};
    to->id.debug_file = (struct sl_str){location, from->id.debug_file.size};
    return location ? to : NULL;
}

static enum sl_code mozilla_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_symcache_open(bytes, into, error);
}

const struct cache_kind kind_mozilla_syms = {
    .name = "mozilla_syms",
    .section = CACHE_BOUNDED,
    .version = 1001,
    .random_access = true,
    .compute = mozilla_compute,
    .queue_name = mozilla_queue_name,
    .retain = mozilla_retain,
    .open = mozilla_open,
    .opened_size = sizeof(struct sl_symcache),
};

/* ---- look-ups ---- */

struct mozilla_asking { /* one query, prepared */
    struct mozilla_store_request request;
    struct cache_key key;
    struct search_result *found;
    struct mozilla_stats *work;
};

/* Makes the request and its cache key. The key contains a hash of the configured stores, as with other stores the result may differ. False
 * when out of memory. */
static bool make_request(const struct config *config, const struct mozilla_query *question, struct sl_arena *arena,
                         struct mozilla_asking *asking)
{
    struct sl_buf key = {0};
    struct sl_str location;
    if (!make_location(question->id, arena, &location))
        return false;
    sl_buf_cstr(&key, "scope: global\n\ntype: mozilla_syms\nsources: ");
    sl_buf_cstr(&key, config->mozilla.stores_key);
    sl_buf_cstr(&key, "\nsource: mozilla\nlocation: ");
    sl_buf_str(&key, location);
    sl_buf_u8(&key, '\n');
    *asking = (struct mozilla_asking){.request = {.stores = config->mozilla.stores,
                                                  .store_count = config->mozilla.source_count,
                                                  .location = location,
                                                  .id = *question->id},
                                      .key = {.text = sl_buf_move_to_arena(&key, arena)},
                                      .found = question->found,
                                      .work = question->work};
    return asking->key.text.data;
}

/* Counts a look-up in the metrics of Eliot and Tecken, in which an error is neither hit nor miss. */
static void count_lookup(enum sl_code code, bool computed, double seconds)
{
    bool is_hit = code == SL_OK && !computed, failed = code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED;
    metric_observe(METRIC_ELIOT_CACHE_GET, seconds, is_hit ? "hit" : failed ? "error" : "miss", NULL, NULL);
    if (!failed)
        metric_add(is_hit ? METRIC_TECKEN_CACHE_HIT : METRIC_TECKEN_CACHE_MISS, 1, NULL, NULL, NULL);
}

/* Stores the answer and its statistics. The time of the look-up in the cache goes from begin_ns to the first request to a store or, if the
 * cache had the answer, until now. */
static void take_answer(const struct mozilla_asking *asking, enum sl_code code, struct mozilla_stats *work,
                        uint64_t begin_ns)
{
    struct search_result *found = asking->found;
    double seconds = (double)((work->computed ? work->begun_ns : clock_mono_ns()) - begin_ns) / 1e9;
    found->code = found->error.code = code;
    count_lookup(code, work->computed, seconds);
    if (!work->computed)
        work->lookup_s = seconds;
    if (code != SL_OK)
        return;
    found->symcache = found->item->loaded;
    found->arch = found->symcache->arch;
    if (!work->computed) {
        work->is_hit = true;
        work->size = found->item->mapping.bytes.size;
    }
}

/* Answers from the cache's memory layer, without suspending; false if the entry is not there. */
static bool peek_answer(const struct mozilla_asking *asking)
{
    enum sl_code code;
    struct mozilla_stats own = {0};
    uint64_t begin = clock_mono_ns();
    if (!cache_peek(&kind_mozilla_syms, &asking->key, &code, &asking->found->item, &asking->found->error))
        return false;
    take_answer(asking, code, asking->work ? asking->work : &own, begin);
    return true;
}

/* In a fiber: gets the answer from the cache or the stores. Meanwhile it is in the list `watchers`, by which mozilla_compute() gives it
 * the statistics, also if another look-up started the computation. */
static void get_answer(void *arg)
{
    const struct mozilla_asking *asking = arg;
    struct mozilla_stats own = {0}, *work = asking->work ? asking->work : &own;
    struct watcher watcher = {.request = &asking->request, .work = work};
    uint64_t begin = clock_mono_ns();
    sl_list_prepend(&watchers, &watcher.link);
    enum sl_code code =
        cache_get(&kind_mozilla_syms, &asking->key, &asking->request, &asking->found->item, &asking->found->error);
    sl_list_remove(&watchers, &watcher.link);
    take_answer(asking, code, work, begin);
}

bool search_find_mozilla(const struct config *config, const struct mozilla_query *questions, size_t count,
                         struct sl_arena *arena)
{
    struct mozilla_asking *asking =
        SL_ARENA_ARRAY(arena, struct mozilla_asking, count + 1); /* + 1, as the number may be 0 */
    void **waiting = SL_ARENA_ARRAY(arena, void *, count + 1);
    size_t waiting_count = 0;
    for (size_t i = 0; i < count; i++) {
        questions[i].found->code = SL_BUSY; /* stays if memory is short */
        if (asking && waiting && make_request(config, &questions[i], arena, &asking[i]) && !peek_answer(&asking[i]))
            waiting[waiting_count++] = &asking[i];
    }
    return !waiting_count || fiber_for_each(get_answer, waiting, waiting_count, waiting_count);
}
