/* The JSON body of a request, read into a struct: on the loop when it is small, else on the pool. */
#pragma once

#include "api/impl.h"
#include "api/json_document.h"

struct json_body {
    struct sl_arena *arena; /* gets a copy of the body, which outlives the exchange with what was read */
    /* Reads it into what `arg` is. False: `failure`. Pure: loop or pool. */
    bool (*read)(void *arg, struct sl_str text, struct json_failure *failure);
    void *arg;
    /* Answers; NULL: as most APIs do, {"detail":...}, and a text when the body is at fault. */
    void (*refuse)(struct http_exchange *x, const struct json_failure *failure);
};

/* False: the answer is set, or the client gone. The request's memory is then what body and arena take. */
bool json_body_read(struct http_exchange *x, const struct json_body *body) SL_SUSPENDS;
