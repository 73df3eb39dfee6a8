/* Connections to a Redis server (RESP2): fibers send commands, pipelined over one connection. It is opened when a command needs it, and
 * closed when an answer does not come in time: all commands in flight then fail. It is also closed if the server says that it is a
 * replica, so that the host name is resolved again for the next connection. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"
#include "tls/tls.h"

struct redis_options {
    char socket[108]; /* path; empty = TCP */
    char host[256], port[8];
    char user[128], password[512]; /* empty = none */
    unsigned database;
    bool tls;
    struct tls_files
        files; /* with `tls`: trusted CAs and the client certificate. Read for each connection, so they may change */
    uint64_t timeout_ms; /* for a command, including the time to open a connection for it */
};

/* Parses redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] or unix:///PATH. User and password may be percent-encoded (RFC 3986,
 * 2.1). The error message does not name the configuration key: callers add it. */
enum sl_code redis_url_parse(const char *url, struct redis_options *options, struct sl_error *error);

struct redis;

/* NULL when out of memory. `group`: for the fibers that connect; must outlive the connection. */
struct redis *redis_open(const struct redis_options *options, struct fiber_group *group);
/* No command may be in flight. NULL is allowed. */
void redis_close(struct redis *redis);

enum redis_answer_type { REDIS_NIL, REDIS_TEXT, REDIS_NUMBER, REDIS_STATUS, REDIS_FAILURE };
struct redis_answer {
    enum redis_answer_type type;
    /* of TEXT, STATUS, FAILURE; an array is represented by its last element; freed by the caller */
    struct sl_buf text;
    long long number;
};

/* Why there is no connection, as text; empty if no reason is known. Valid until the next command. */
const char *redis_last_error(const struct redis *redis);

/* Subscribes to a channel, and calls `heard` on the loop for each message, until the group of redis_open is cancelled. `redis` can then not
 * be used for commands. A broken connection is opened again; messages published while there is none are lost. `channel` and `arg` must
 * outlive the group's fibers. False: no fiber. */
bool redis_listen(struct redis *redis, const char *channel, void (*heard)(void *arg, struct sl_str message), void *arg);

/* REDIS_ANSWERED: there is an answer of any type. REDIS_UNREACHABLE: no connection, or it broke. REDIS_BUSY: this process lacks memory or
 * a fiber, which says nothing about the server. */
enum redis_result { REDIS_ANSWERED, REDIS_TIMED_OUT, REDIS_UNREACHABLE, REDIS_CANCELLED, REDIS_BUSY };
/* Sends a command of `count` words, at most 8, and waits for its answer. */
enum redis_result redis_command(struct redis *redis, const struct sl_str *words, size_t count,
                                struct redis_answer *answer) SL_SUSPENDS;
