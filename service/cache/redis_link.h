/* One connection to a Redis: commands of fibers, in a pipeline. It is made when a command needs it, and dropped when an
 * answer does not come in time: what else is on its way then ends too. RESP as of Redis 2.0. Private to this folder. */
#pragma once

#include "cache/shared.h"

struct redis_options {
    char socket[108]; /* path; empty = TCP */
    char host[256], port[8];
    char user[128], password[512]; /* empty = none */
    unsigned database;
    uint64_t timeout_ms; /* of a command, a new connection included */
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], unix:///PATH. */
enum sl_code redis_url_parse(const char *url, struct redis_options *options, struct sl_error *error);

void redis_link_init(const struct redis_options *options, struct fiber_group *group);
void redis_link_close(void);

enum redis_answer_type { REDIS_NIL, REDIS_TEXT, REDIS_NUMBER, REDIS_STATUS, REDIS_FAILURE };
struct redis_answer {
    enum redis_answer_type type;
    struct sl_buf text; /* of TEXT, STATUS, FAILURE; freed by the caller */
    long long number;
};

/* SHARED_HIT when there is an answer, of whatever type; SHARED_TIMEOUT, SHARED_UNREACHABLE, SHARED_CANCELLED. */
enum shared_result redis_command(const struct sl_str *words, size_t count, struct redis_answer *answer) SL_SUSPENDS;
