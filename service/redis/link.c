#include "redis/redis.h"

#include <hiredis/async.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "id/id.h"

enum { MAX_WORDS = 8 };

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_READY };

struct redis {
    struct redis_options options;
    struct fiber_group *group;
    enum link_state state;
    redisAsyncContext *context; /* its `data` is this */
    uint64_t attempts;          /* begun so far: a command waits for the end of one */
    struct fiber_wait_list changed;
    const char *channel; /* of redis_listen */
    void (*heard)(void *arg, struct sl_str message);
    void *heard_arg;
};

/* A command on its way; its fiber and hiredis each hold a reference. */
struct call {
    unsigned references;
    bool done, answered;
    struct redis_answer answer;
    struct fiber_wait_list waiters;
};

static void call_release(struct call *call)
{
    if (--call->references)
        return;
    sl_buf_free(&call->answer.text);
    free(call);
}

/* ---- URL ---- */
/* Percent-encoded octets decoded; what is no such is taken as it stands. */
static bool copy_decoded(struct sl_str part, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < part.size; i++) {
        uint8_t octet = (uint8_t)part.data[i];
        size_t one;
        if (octet == '%' && part.size - i > 2 && sl_hex_decode((struct sl_str){part.data + i + 1, 2}, &octet, 1, &one))
            i += 2;
        if (octet == '\0' || used + 1 >= size)
            return false;
        out[used++] = (char)octet;
    }
    out[used] = '\0';
    return true;
}

static bool copy_part(struct sl_str part, char *out, size_t size)
{
    if (part.size >= size)
        return false;
    memcpy(out, part.data, part.size);
    out[part.size] = '\0';
    return true;
}

static struct sl_str until(struct sl_str text, char stop, bool last, struct sl_str *rest)
{
    const char *at = !text.data ? NULL
                     : last     ? memrchr(text.data, stop, text.size)
                                : memchr(text.data, stop, text.size);
    size_t size = at ? (size_t)(at - text.data) : text.size;
    *rest = at ? (struct sl_str){at + 1, text.size - size - 1} : (struct sl_str){NULL, 0};
    return (struct sl_str){text.data, size};
}

static bool parse_user(struct sl_str authority, struct redis_options *o, struct sl_str *host)
{
    struct sl_str rest, password, user = until(authority, '@', true, &rest);
    if (!rest.data) {
        *host = authority;
        return true;
    }
    *host = rest;
    user = until(user, ':', false, &password);
    return copy_decoded(user, o->user, sizeof o->user) &&
           copy_decoded(password.data ? password : SL_STR(""), o->password, sizeof o->password);
}

static bool parse_host(struct sl_str text, struct redis_options *o)
{
    struct sl_str port, host;
    if (text.size && text.data[0] == '[') { /* RFC 3986, 3.2.2 */
        struct sl_str behind;
        host = until((struct sl_str){text.data + 1, text.size - 1}, ']', false, &behind);
        if (!behind.data || (behind.size && behind.data[0] != ':'))
            return false;
        port = behind.size ? (struct sl_str){behind.data + 1, behind.size - 1} : SL_STR("6379");
    } else {
        host = until(text, ':', true, &port);
        port = port.data ? port : SL_STR("6379");
    }
    uint32_t number = 0;
    for (size_t i = 0; i < port.size && number <= UINT16_MAX; i++) {
        if (port.data[i] < '0' || port.data[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(port.data[i] - '0');
    }
    return host.size && number && number <= UINT16_MAX && copy_part(host, o->host, sizeof o->host) &&
           copy_part(port, o->port, sizeof o->port);
}

enum sl_code redis_url_parse(const char *url, struct redis_options *options, struct sl_error *error)
{
    struct sl_str text = sl_str(url), scheme = SL_STR("redis://"), rest, host, database;
    *options = (struct redis_options){0};
    if (sl_str_starts(text, SL_STR("unix:///")) &&
        copy_part((struct sl_str){text.data + 7, text.size - 7}, options->socket, sizeof options->socket))
        return SL_OK;
    bool good = sl_str_starts(text, scheme);
    if (good) {
        text = until((struct sl_str){text.data + scheme.size, text.size - scheme.size}, '?', false, &rest);
        text = until(text, '/', false, &database);
        good = parse_user(text, options, &host) && parse_host(host, options) && database.size < 6;
    }
    for (size_t i = 0; good && i < database.size; i++) {
        good = database.data[i] >= '0' && database.data[i] <= '9';
        options->database = options->database * 10 + (unsigned)(database.data[i] - '0');
    }
    return good ? SL_OK : sl_fail(error, SL_MALFORMED, "not the URL of a Redis");
}

/* ---- the connection ---- */
static void set_state(struct redis *redis, enum link_state state)
{
    redis->state = state;
    fiber_wake_all(&redis->changed);
}

/* Takes the context away from its connection, which is down then. */
static redisAsyncContext *redis_detach(struct redis *redis)
{
    redisAsyncContext *context = redis->context;
    redis->context = NULL;
    if (context)
        context->data = NULL;
    set_state(redis, LINK_DOWN);
    return context;
}

/* Ends the connection, whatever its state. The calls on it are told, now or when hiredis comes round to it. */
static void redis_drop(struct redis *redis)
{
    redisAsyncContext *context = redis_detach(redis);
    if (context)
        redisAsyncFree(context);
}

/* hiredis ends the process over an answer that nobody has asked for. Bytes that come when nothing is asked are such an
 * answer, or the end of the connection; and so is what is left in the buffer after the last answer. */
static bool idle(const redisAsyncContext *context)
{
    return context->replies.head == NULL && !(context->c.flags & REDIS_SUBSCRIBED);
}

static void drop_surplus(const redisAsyncContext *context)
{
    if (context->data && idle(context) && context->c.reader->pos < context->c.reader->len)
        redis_drop(context->data);
}

/* ---- hiredis on the loop; its own adapter has no place for the check above ---- */
struct watch { /* malloc; lives until the loop has closed the handle */
    uv_poll_t handle;
    redisAsyncContext *context; /* NULL: gone */
    int events;
};

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct watch *watch = handle->data;
    (void)status; /* reading or writing meets the error too */
    if (events == 0)
        events = watch->events;
    if (watch->context && (events & UV_READABLE)) {
        if (idle(watch->context) && watch->context->data)
            redis_drop(watch->context->data);
        else
            redisAsyncHandleRead(watch->context);
    }
    if (watch->context && (events & UV_WRITABLE))
        redisAsyncHandleWrite(watch->context);
}

static void set_events(struct watch *watch, int events)
{
    if (events == watch->events)
        return;
    watch->events = events;
    if (events)
        uv_poll_start(&watch->handle, events, on_poll);
    else
        uv_poll_stop(&watch->handle);
}

static void add_read(void *arg)
{
    set_events(arg, ((struct watch *)arg)->events | UV_READABLE);
}
static void del_read(void *arg)
{
    set_events(arg, ((struct watch *)arg)->events & ~UV_READABLE);
}
static void add_write(void *arg)
{
    set_events(arg, ((struct watch *)arg)->events | UV_WRITABLE);
}
static void del_write(void *arg)
{
    set_events(arg, ((struct watch *)arg)->events & ~UV_WRITABLE);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void cleanup(void *arg)
{
    struct watch *watch = arg;
    watch->context = NULL;
    uv_close((uv_handle_t *)&watch->handle, on_closed);
}

static bool attach(redisAsyncContext *context)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch || uv_poll_init(loop_get(), &watch->handle, context->c.fd) != 0) {
        free(watch);
        return false;
    }
    watch->handle.data = watch;
    watch->context = context;
    context->ev.data = watch;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = cleanup;
    return true;
}

static void on_connect(const redisAsyncContext *context, int status)
{
    if (!context->data || status == REDIS_OK)
        return;
    log_debug("shared", "no connection to Redis", LOG_STR("error", context->errstr ? context->errstr : ""));
    redis_detach(context->data); /* hiredis frees it */
}

static void on_disconnect(const redisAsyncContext *context, int status)
{
    (void)status;
    if (context->data)
        redis_detach(context->data);
}

static char auth[] = "AUTH", select_database[] = "SELECT", ping[] = "PING"; /* what was sent */

/* The answer to the last command of the greeting; those before it are told apart by `what`. */
static void on_greeting(redisAsyncContext *context, void *arg, void *what)
{
    const redisReply *reply = arg;
    struct redis *redis = context->data;
    if (!redis || !reply)
        return;
    if (reply->type == REDIS_REPLY_ERROR) {
        log_warn("shared", "Redis refuses the connection", LOG_STR("command", what), LOG_STR("error", reply->str));
        redisAsyncDisconnect(redis_detach(redis));
    } else if (what == ping) {
        set_state(redis, LINK_READY);
        drop_surplus(context);
    }
}

static void greet(const struct redis *redis)
{
    const struct redis_options *o = &redis->options;
    redisAsyncContext *context = redis->context;
    if (o->user[0])
        redisAsyncCommand(context, on_greeting, auth, "AUTH %s %s", o->user, o->password);
    else if (o->password[0])
        redisAsyncCommand(context, on_greeting, auth, "AUTH %s", o->password);
    if (o->database)
        redisAsyncCommand(context, on_greeting, select_database, "SELECT %u", o->database);
    redisAsyncCommand(context, on_greeting, ping, "PING");
}

struct resolve {
    const struct redis_options *options;
    char address[64];
};

/* Of several addresses the first one serves; hiredis by itself would look the name up on the loop. */
static void resolve(void *arg)
{
    struct resolve *r = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    r->address[0] = '\0';
    if (getaddrinfo(r->options->host, r->options->port, &hints, &found) != 0 || !found)
        return;
    if (getnameinfo(found->ai_addr, found->ai_addrlen, r->address, sizeof r->address, NULL, 0, NI_NUMERICHOST) != 0)
        r->address[0] = '\0';
    freeaddrinfo(found);
}

static void connect_to(struct redis *redis, const char *address)
{
    redisAsyncContext *context = address ? redisAsyncConnect(address, (int)strtoul(redis->options.port, NULL, 10))
                                         : redisAsyncConnectUnix(redis->options.socket);
    if (!context || context->err || !attach(context)) {
        if (context)
            redisAsyncFree(context);
        set_state(redis, LINK_DOWN);
        return;
    }
    redis->context = context;
    context->data = redis;
    if (address)
        redisEnableKeepAlive(&context->c); /* who listens would not notice that the other side is gone */
    set_state(redis, LINK_CONNECTING);
    redisAsyncSetConnectCallback(context, on_connect);
    redisAsyncSetDisconnectCallback(context, on_disconnect);
    greet(redis);
}

static void connect_fiber(void *arg)
{
    struct redis *redis = arg;
    struct resolve r = {.options = &redis->options};
    bool local = redis->options.socket[0];
    if (!local && pool_run(POOL_IO, resolve, &r, NULL) != SL_OK)
        r.address[0] = '\0';
    if (redis->state != LINK_RESOLVING)
        return; /* given up meanwhile */
    if (local || r.address[0])
        connect_to(redis, local ? NULL : r.address);
    else
        set_state(redis, LINK_DOWN);
}

struct redis *redis_open(const struct redis_options *options, struct fiber_group *group)
{
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis) {
        redis->options = *options;
        redis->group = group;
    }
    return redis;
}

void redis_close(struct redis *redis)
{
    if (redis)
        redis_drop(redis);
    free(redis);
}

/* Waits until the connection can be used: for one attempt at most. */
static enum redis_result ready(struct redis *redis, uint64_t end_ms)
{
    if (redis->state == LINK_DOWN) {
        redis->state = LINK_RESOLVING;
        redis->attempts++;
        if (!fiber_start(redis->group, connect_fiber, redis)) {
            redis->state = LINK_DOWN;
            return REDIS_UNREACHABLE;
        }
    }
    uint64_t attempt = redis->attempts;
    while (redis->state != LINK_READY) {
        uint64_t now = loop_now_ms();
        enum fiber_wait woken = now >= end_ms ? FIBER_TIMED_OUT : fiber_wait_on(&redis->changed, end_ms - now);
        if (woken == FIBER_CANCELLED)
            return REDIS_CANCELLED;
        if (redis->attempts != attempt || redis->state == LINK_DOWN)
            return REDIS_UNREACHABLE;
        if (woken == FIBER_TIMED_OUT) {
            redis_drop(redis);
            return REDIS_TIMED_OUT;
        }
    }
    return REDIS_ANSWERED;
}

/* ---- commands ---- */
static void on_reply(redisAsyncContext *context, void *arg, void *data)
{
    const redisReply *reply = arg;
    struct call *call = data;
    call->done = true;
    call->answered = reply != NULL;
    if (reply) {
        struct redis_answer *answer = &call->answer;
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements)
            reply = reply->element[reply->elements - 1];
        answer->number = reply->integer;
        answer->type = reply->type == REDIS_REPLY_STRING    ? REDIS_TEXT
                       : reply->type == REDIS_REPLY_INTEGER ? REDIS_NUMBER
                       : reply->type == REDIS_REPLY_STATUS  ? REDIS_STATUS
                       : reply->type == REDIS_REPLY_NIL     ? REDIS_NIL
                                                            : REDIS_FAILURE;
        if (reply->str)
            sl_buf_add(&answer->text, reply->str, reply->len);
    }
    fiber_wake_all(&call->waiters);
    call_release(call);
    if (reply)
        drop_surplus(context);
}

static struct call *send_call(const struct redis *redis, const struct sl_str *words, size_t count)
{
    const char *data[MAX_WORDS];
    size_t sizes[MAX_WORDS];
    struct call *call = count <= MAX_WORDS ? calloc(1, sizeof *call) : NULL;
    if (!call)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data;
        sizes[i] = words[i].size;
    }
    call->references = 2;
    if (redisAsyncCommandArgv(redis->context, on_reply, call, (int)count, data, sizes) != REDIS_OK) {
        free(call);
        return NULL;
    }
    return call;
}

enum redis_result redis_command(struct redis *redis, const struct sl_str *words, size_t count,
                                struct redis_answer *answer)
{
    uint64_t end = loop_now_ms() + redis->options.timeout_ms;
    *answer = (struct redis_answer){0};
    enum redis_result result = ready(redis, end);
    if (result != REDIS_ANSWERED)
        return result;
    const redisAsyncContext *context = redis->context;
    struct call *call = send_call(redis, words, count);
    if (!call)
        return REDIS_UNREACHABLE;
    while (!call->done && result == REDIS_ANSWERED) {
        uint64_t now = loop_now_ms();
        enum fiber_wait woken = now >= end ? FIBER_TIMED_OUT : fiber_wait_on(&call->waiters, end - now);
        if (woken != FIBER_WOKEN && !call->done)
            result = woken == FIBER_CANCELLED ? REDIS_CANCELLED : REDIS_TIMED_OUT;
    }
    if (result == REDIS_TIMED_OUT && context == redis->context)
        redis_drop(redis);
    if (result == REDIS_ANSWERED) {
        result = call->answered && !call->answer.text.failed ? REDIS_ANSWERED : REDIS_UNREACHABLE;
        *answer = call->answer;
        call->answer.text = (struct sl_buf){0};
    }
    call_release(call);
    return result;
}

/* ---- listening ---- */
static void on_message(redisAsyncContext *context, void *arg, void *data)
{
    const redisReply *reply = arg;
    const struct redis *redis = data;
    if (context->data && reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
        reply->element[2]->type == REDIS_REPLY_STRING)
        redis->heard(redis->heard_arg, (struct sl_str){reply->element[2]->str, reply->element[2]->len});
}

static void listen_fiber(void *arg)
{
    enum { AGAIN_MS = 1000 };
    struct redis *redis = arg;
    while (!fiber_cancelled()) {
        const redisAsyncContext *context = NULL;
        if (ready(redis, loop_now_ms() + redis->options.timeout_ms) == REDIS_ANSWERED &&
            redisAsyncCommand(redis->context, on_message, redis, "SUBSCRIBE %s", redis->channel) == REDIS_OK)
            context = redis->context;
        while (context && redis->context == context)
            if (fiber_wait_on(&redis->changed, UINT64_MAX) == FIBER_CANCELLED)
                return;
        if (!fiber_sleep(AGAIN_MS))
            return;
    }
}

bool redis_listen(struct redis *redis, const char *channel, void (*heard)(void *arg, struct sl_str message), void *arg)
{
    redis->channel = channel;
    redis->heard = heard;
    redis->heard_arg = arg;
    return fiber_start(redis->group, listen_fiber, redis);
}
