/* Connects to a Redis server, sends commands and matches its answers to them. */
#include "redis/redis.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "redis/wire.h"

enum { MAX_WORDS = 8, MAX_ANSWER = 1 << 30 /* limit of an incomplete answer in bytes */ };

enum redis_state { REDIS_DOWN, REDIS_RESOLVING, REDIS_CONNECTING, REDIS_READY };

struct redis {
    struct redis_options options;
    struct fiber_group *group;
    enum redis_state state;
    struct redis_connection *link;
    uint64_t attempts; /* number of attempts so far; a command waits for the end of one */
    unsigned turn;     /* which address of the host to try, modulo their number */
    struct fiber_wait_list changed;
    const char *channel; /* for redis_listen */
    void (*heard)(void *arg, struct sl_str message);
    void *heard_arg;
    char last_error[160]; /* why the last attempt failed, as it was logged; empty after a success */
};

/* A command in flight; the fiber that sent it and the connection each hold a reference. The commands sent after connecting (AUTH, SELECT,
 * PING) have only that of the connection. */
struct redis_call {
    struct sl_link link;
    unsigned references;
    const char *greeting; /* "AUTH", "SELECT" or "PING", sent after connecting; NULL: a command of a fiber */
    bool done, answered;
    struct redis_answer answer;
    struct fiber_wait_list waiters;
};

/* One connection and its unanswered commands, oldest first. */
struct redis_connection {
    struct redis *redis;
    struct wire *wire;
    redisReader *reader;
    struct sl_list calls;
    bool listening; /* subscribed: answers are messages */
};

/* Removes the oldest unanswered command from the list and returns it; NULL if there is none. */
static struct redis_call *take_call(struct redis_connection *link)
{
    struct redis_call *call = SL_LIST_FIRST(&link->calls, struct redis_call, link);
    if (call)
        sl_list_remove(&link->calls, &call->link);
    return call;
}

static void call_release(struct redis_call *call)
{
    if (--call->references)
        return;
    sl_buf_free(&call->answer.text);
    free(call);
}

/* Wakes the fiber that waits for the command's answer, and drops the connection's reference to the command. */
static void call_end(struct redis_call *call)
{
    call->done = true;
    fiber_wake_all(&call->waiters);
    call_release(call);
}

/* ---- the connection ---- */
/* Changes the state and wakes all that wait for a change. */
static void set_state(struct redis *redis, enum redis_state state)
{
    redis->state = state;
    fiber_wake_all(&redis->changed);
}

/* Closes the connection in any state; its commands in flight end without an answer. */
static void redis_drop(struct redis *redis)
{
    struct redis_connection *link = redis->link;
    redis->link = NULL;
    redis->turn += redis->state == REDIS_CONNECTING; /* this address failed: the next attempt uses another one */
    if (link) {
        wire_close(link->wire);
        for (struct redis_call *call; (call = take_call(link));)
            call_end(call);
        redisReaderFree(link->reader);
        free(link);
    }
    set_state(redis, REDIS_DOWN);
}

/* Records why there is no connection, logs it (as a warning if the reason is new), and closes what there is. */
static void redis_fail(struct redis *redis, const char *why)
{
    char last_error[sizeof redis->last_error];
    snprintf(last_error, sizeof last_error, "%s", why);
    if (strcmp(last_error, redis->last_error) == 0)
        log_debug("shared", "cannot connect to Redis", LOG_STR("error", last_error));
    else
        log_warn("shared", "cannot connect to Redis", LOG_STR("error", last_error));
    memcpy(redis->last_error, last_error, sizeof last_error);
    redis_drop(redis);
}

/* Sends a command and appends `call`, which gets the answer, to the commands in flight. False, without appending it, when out of memory. */
static bool link_send(struct redis_connection *link, struct redis_call *call, const struct sl_str *words, size_t count)
{
    const char *data[MAX_WORDS];
    size_t sizes[MAX_WORDS];
    char *text;
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data;
        sizes[i] = words[i].size;
    }
    int size = redisFormatCommandArgv(&text, (int)count, data, sizes);
    if (size < 0)
        return false;
    if (!wire_send(link->wire, text, (size_t)size))
        return false;
    sl_list_append(&link->calls, &call->link);
    return true;
}

/* ---- answers ---- */
/* Handles the answer to a command sent after connecting. An error closes the connection; the answer to the last command, PING, makes it
 * ready. */
static void call_greeting(struct redis *redis, const struct redis_call *call, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        char why[128];
        snprintf(why, sizeof why, "Redis answered the command %s with %s", call->greeting, reply->str);
        redis_fail(redis, why);
    } else if (!redis->link->calls.first) { /* no answer is outstanding: this one was to PING */
        redis->last_error[0] = '\0';
        set_state(redis, REDIS_READY);
    }
}

/* Stores the answer for the fiber that sent the command. Of an array, only the last element matters to the commands in use. */
static void call_answer(struct redis_call *call, const redisReply *reply)
{
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
    call->answered = true;
}

/* Passes a message of the subscribed channel on: an array of the word "message", the channel and the text. */
static void link_message(const struct redis *redis, const redisReply *reply)
{
    const redisReply *const *element = (const redisReply *const *)reply->element;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && element[2]->type == REDIS_REPLY_STRING)
        redis->heard(redis->heard_arg, (struct sl_str){element[2]->str, element[2]->len});
}

/* True for the error by which a replica refuses writes. After a failover, the host name may already stand for another server. */
static bool is_replica_answer(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && sl_str_starts(sl_str(reply->str), SL_STR("READONLY "));
}

/* Gives a reply to the oldest unanswered command, as Redis answers commands in order. If there is none, the reply is a message of the
 * subscribed channel; on a connection without a subscription it is an error. */
static void link_reply(struct redis *redis, const redisReply *reply)
{
    struct redis_connection *link = redis->link;
    struct redis_call *call = take_call(link);
    if (!call && link->listening) { /* a message of the subscribed channel */
        link_message(redis, reply);
        return;
    }
    if (!call) {
        redis_fail(redis, "Redis sent a response to no command");
        return;
    }
    if (call->greeting)
        call_greeting(redis, call, reply);
    else
        call_answer(call, reply);
    call_end(call);
    /* reconnects, as the host name may stand for another server now; redis->link: it was not closed meanwhile */
    if (is_replica_answer(reply) && redis->link == link)
        redis_fail(redis, reply->str);
}

/* Feeds received bytes to hiredis and handles complete replies. Handling one may close the connection: redis->link changes then. */
static void on_received(void *arg, struct sl_bytes bytes)
{
    struct redis *redis = arg;
    const struct redis_connection *link = redis->link;
    if (link->reader->len - link->reader->pos > MAX_ANSWER) {
        redis_fail(redis, "a response of Redis is too large");
        return;
    }
    int code = redisReaderFeed(link->reader, (const char *)bytes.data, bytes.size);
    while (redis->link == link) {
        void *reply = NULL;
        if (code == REDIS_OK)
            code = redisReaderGetReply(link->reader, &reply);
        if (code != REDIS_OK)
            redis_fail(redis,
                       link->reader->err == REDIS_ERR_OOM ? "a response of Redis is too large" : link->reader->errstr);
        if (!reply) /* the rest of it was not received yet, or reading has failed */
            return;
        link_reply(redis, reply);
        freeReplyObject(reply);
    }
}

/* ---- limits of answers ----
 * hiredis allocates an array when it reads its header: 13 bytes could allocate 8 GB. No expected answer has more elements than this. */
enum { MAX_ELEMENTS = 64 };

static void *(*make_array)(const redisReadTask *task, int elements);

/* Used instead of hiredis's createArray: refuses arrays of more than MAX_ELEMENTS with NULL, by which the reader fails. */
static void *make_bounded_array(const redisReadTask *task, int elements)
{
    return elements > MAX_ELEMENTS ? NULL : make_array(task, elements);
}

/* Makes a reader of replies with a limit of array elements (make_bounded_array); NULL when out of memory. */
static redisReader *new_reader(void)
{
    static redisReplyObjectFunctions functions;
    redisReader *reader = redisReaderCreate();
    if (!reader)
        return NULL;
    if (!make_array) { /* the first time: copies hiredis's functions and replaces one */
        functions = *reader->fn;
        make_array = functions.createArray;
        functions.createArray = make_bounded_array;
    }
    reader->fn = &functions;
    return reader;
}

/* ---- connecting ---- */
/* Sends a command that prepares the connection: AUTH, SELECT or PING, with up to two arguments (NULL = none). */
static void greet(struct redis_connection *link, const char *command, const char *one, const char *two)
{
    struct sl_str words[3] = {sl_str(command)};
    size_t count = 1;
    if (one)
        words[count++] = sl_str(one);
    if (two)
        words[count++] = sl_str(two);
    struct redis_call *call = calloc(1, sizeof *call);
    if (!call)
        return; /* then the connection never becomes ready, and is closed */
    *call = (struct redis_call){.greeting = command, .references = 1};
    if (!link_send(link, call, words, count))
        call_release(call);
}

/* The connection is open: authenticates and selects the database. PING is last; its answer makes the connection ready. */
static void on_opened(void *arg)
{
    struct redis *redis = arg;
    const struct redis_options *o = &redis->options;
    char database[16];
    snprintf(database, sizeof database, "%u", o->database);
    if (o->password[0] || o->user[0])
        greet(redis->link, "AUTH", o->user[0] ? o->user : o->password, o->user[0] ? o->password : NULL);
    if (o->database)
        greet(redis->link, "SELECT", database, NULL);
    greet(redis->link, "PING", NULL, NULL);
}

static void on_broke(void *arg, const char *why)
{
    redis_fail(arg, why);
}

/* The slow parts of connecting, done on the pool. */
struct preparation {
    const struct redis_options *options;
    unsigned turn;
    char address[64];
    struct tls_context *tls;
    struct sl_error error;
};

/* Returns the address for this attempt to connect: `turn` grows with each failure, so that all addresses of the host are tried. */
static const struct addrinfo *pick_address(const struct addrinfo *found, unsigned turn)
{
    unsigned count = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        count++;
    for (unsigned n = turn % count; n; n--)
        found = found->ai_next;
    return found;
}

/* Reads certificates and resolves the host, on the pool, since both may take long. */
static void prepare(void *arg)
{
    struct preparation *p = arg;
    const struct redis_options *o = p->options;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    if (o->tls && tls_context_client(&o->files, &p->tls, &p->error) != SL_OK)
        return;
    int code = getaddrinfo(o->host, o->port, &hints, &found);
    const struct addrinfo *at = code == 0 ? pick_address(found, p->turn) : NULL;
    if (at)
        code = getnameinfo(at->ai_addr, at->ai_addrlen, p->address, sizeof p->address, NULL, 0, NI_NUMERICHOST);
    if (code != 0) {
        p->address[0] = '\0';
        sl_fail(&p->error, SL_DOWNLOAD_ERROR, "%s: %s", o->host, gai_strerror(code));
    }
    freeaddrinfo(found);
}

/* Begins to connect; NULL when out of memory, or if connecting fails at once. */
static struct redis_connection *link_open(struct redis *redis, const struct preparation *p)
{
    static const struct wire_events events = {on_opened, on_received, on_broke};
    const struct redis_options *o = &redis->options;
    struct wire_target target = {.socket = o->socket[0] ? o->socket : NULL,
                                 .address = p->address,
                                 .port = (uint16_t)strtoul(o->port, NULL, 10),
                                 .tls = p->tls,
                                 .host = o->host}; /* the name that the server's certificate must have */
    struct redis_connection *link = calloc(1, sizeof *link);
    if (link && (link->reader = new_reader()) && (link->wire = wire_open(&target, &events, redis)))
        return link;
    if (link && link->reader)
        redisReaderFree(link->reader);
    free(link);
    return NULL;
}

/* The fiber of one attempt to connect: resolves the host name, then starts the connection. A socket path needs no preparation. */
static void connect_fiber(void *arg)
{
    struct redis *redis = arg;
    struct preparation p = {.options = &redis->options, .turn = redis->turn};
    enum sl_code code = redis->options.socket[0] ? SL_OK : pool_run(POOL_IO, prepare, &p, NULL);
    if (redis->state == REDIS_RESOLVING) { /* not closed meanwhile */
        if (code != SL_OK || p.error.code != SL_OK)
            redis_fail(redis,
                       p.error.code != SL_OK ? p.error.message : "no thread is available to resolve the host of Redis");
        else if (!(redis->link = link_open(redis, &p)))
            redis_fail(redis, "cannot start a connection to Redis");
        else
            set_state(redis, REDIS_CONNECTING);
    }
    tls_context_free(p.tls);
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

const char *redis_last_error(const struct redis *redis)
{
    return redis->last_error;
}

void redis_close(struct redis *redis)
{
    if (redis)
        redis_drop(redis);
    free(redis);
}

/* Waits until the connection is ready, or an attempt to connect has failed. Starts an attempt if none is in progress. If the connection
 * is not ready at the time `end_ms`, gives up the attempt. */
static enum redis_result ready(struct redis *redis, uint64_t end_ms)
{
    if (redis->state == REDIS_DOWN) {
        redis->state = REDIS_RESOLVING;
        redis->attempts++;
        if (!fiber_start(redis->group, connect_fiber, redis)) {
            redis->state = REDIS_DOWN;
            return REDIS_BUSY;
        }
    }
    uint64_t attempt = redis->attempts;
    while (redis->state != REDIS_READY) {
        uint64_t now = loop_now_ms();
        enum fiber_wait woken = now >= end_ms ? FIBER_TIMED_OUT : fiber_wait_on(&redis->changed, end_ms - now);
        if (woken == FIBER_CANCELLED)
            return REDIS_CANCELLED;
        /* the attempt has failed, and another fiber may have begun a next one */
        if (redis->attempts != attempt || redis->state == REDIS_DOWN)
            return REDIS_UNREACHABLE;
        if (woken == FIBER_TIMED_OUT) {
            redis_drop(redis);
            return REDIS_TIMED_OUT;
        }
    }
    return REDIS_ANSWERED;
}

/* ---- commands ---- */
/* If the answer is late, the connection is closed: answers carry no ids, so the late one would be taken for that of a later command. */
enum redis_result redis_command(struct redis *redis, const struct sl_str *words, size_t count,
                                struct redis_answer *answer)
{
    uint64_t end = loop_now_ms() + redis->options.timeout_ms;
    *answer = (struct redis_answer){0};
    enum redis_result result = ready(redis, end);
    if (result != REDIS_ANSWERED)
        return result;
    uint64_t attempt = redis->attempts;
    struct redis_call *call = count <= MAX_WORDS ? calloc(1, sizeof *call) : NULL;
    if (!call)
        return REDIS_BUSY;
    call->references = 2; /* this fiber's and the connection's */
    if (!link_send(redis->link, call, words, count)) {
        free(call);
        return REDIS_BUSY;
    }
    while (!call->done && result == REDIS_ANSWERED) {
        uint64_t now = loop_now_ms();
        enum fiber_wait woken = now >= end ? FIBER_TIMED_OUT : fiber_wait_on(&call->waiters, end - now);
        if (woken != FIBER_WOKEN && !call->done)
            result = woken == FIBER_CANCELLED ? REDIS_CANCELLED : REDIS_TIMED_OUT;
    }
    if (result == REDIS_TIMED_OUT && redis->attempts == attempt) /* still the same connection */
        redis_drop(redis);
    if (result == REDIS_ANSWERED) {
        result = !call->answered ? REDIS_UNREACHABLE : call->answer.text.failed ? REDIS_BUSY : REDIS_ANSWERED;
        *answer = call->answer;
        call->answer.text = (struct sl_buf){0};
    }
    call_release(call);
    return result;
}

/* ---- listening ---- */
/* Subscribes to the channel; afterwards the connection only receives messages. No fiber waits for the answer. False when out of memory. */
static bool subscribe(struct redis *redis)
{
    struct redis_call *call = calloc(1, sizeof *call);
    if (!call)
        return false;
    call->references = 1;
    redis->link->listening =
        link_send(redis->link, call, (struct sl_str[]){SL_STR("SUBSCRIBE"), sl_str(redis->channel)}, 2);
    if (!redis->link->listening)
        free(call);
    return redis->link->listening;
}

/* Opens a connection, subscribes, and waits until it breaks; then does so again after a pause, until the group is cancelled. */
static void listen_fiber(void *arg)
{
    enum { AGAIN_MS = 1000 };
    struct redis *redis = arg;
    while (!fiber_cancelled()) {
        bool listens = ready(redis, loop_now_ms() + redis->options.timeout_ms) == REDIS_ANSWERED && subscribe(redis);
        uint64_t attempt = redis->attempts;
        while (listens && redis->link && redis->attempts == attempt)
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
