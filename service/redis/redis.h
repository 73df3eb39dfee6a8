/* Connections to a Redis: commands of fibers, in a pipeline. A connection is made when a command needs it, and dropped when
 * an answer does not come in time: what else is on its way then ends too. It is dropped as well when the Redis says that it
 * is a replica, so that the next one is made to whatever the name stands for by then. RESP2. Loop thread only. */
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
        files; /* with `tls`: who is trusted, and what is shown. Read for each connection, so they may change */
    uint64_t timeout_ms; /* of a command, a new connection included */
};

/* redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], unix:///PATH. User and password may be percent-encoded
 * (RFC 3986, 2.1). The error does not say which key the URL is of. */
enum sl_code redis_url_parse(const char *url, struct redis_options *options, struct sl_error *error);

struct redis;

/* NULL when out of memory. `group`: of the fibers that connect; it outlives the connection. */
struct redis *redis_open(const struct redis_options *options, struct fiber_group *group);
/* No command may be on its way. NULL is allowed. */
void redis_close(struct redis *redis);

enum redis_answer_type { REDIS_NIL, REDIS_TEXT, REDIS_NUMBER, REDIS_STATUS, REDIS_FAILURE };
struct redis_answer {
    enum redis_answer_type type;
    struct sl_buf text; /* of an array its last element is the answer; of TEXT, STATUS, FAILURE; freed by the caller */
    long long number;
};

/* Why there is no connection, for people; empty when there is no reason, or none is known. Until the next command. */
const char *redis_trouble(const struct redis *redis);

/* Hears what is published on a channel: a connection that nothing else is asked on, made anew when it breaks, for as long as its
 * group is not cancelled. What is published meanwhile is lost. `channel` and `arg` outlive the group's fibers. False: no fiber. */
bool redis_listen(struct redis *redis, const char *channel, void (*heard)(void *arg, struct sl_str message), void *arg);

/* REDIS_ANSWERED: there is an answer, of whatever type. REDIS_UNREACHABLE: no connection, or it broke. */
enum redis_result { REDIS_ANSWERED, REDIS_TIMED_OUT, REDIS_UNREACHABLE, REDIS_CANCELLED };
enum redis_result redis_command(struct redis *redis, const struct sl_str *words, size_t count,
                                struct redis_answer *answer) SL_SUSPENDS;
