/* A value that must never be printed: key, token, cookie, password, header of a source. Code that prints configurations writes
 * "[redacted]"; only code that sends, signs with or checks the value calls secret_open. */
#pragma once

#include "base/bytes.h"

struct sl_secret {
    struct sl_str hidden;
};

static inline struct sl_secret secret_make(struct sl_str text)
{
    return (struct sl_secret){text};
}
static inline struct sl_str secret_open(struct sl_secret secret)
{
    return secret.hidden;
}
static inline bool secret_present(struct sl_secret secret)
{
    return secret.hidden.data != NULL;
}
