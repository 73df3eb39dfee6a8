/* Stores Breakpad files that come through other APIs in the store of Mozilla's symbol server. */
#pragma once

#include "config/config.h"
#include "core/fiber.h"

/* Stores the file; its key is in the file. SL_MALFORMED: it is no Breakpad file; `error` is for the client. `*same`: it was there
 * already. The store must be open. */
enum sl_code uploads_store_breakpad_file(const struct config *config, struct sl_bytes file, struct sl_arena *arena,
                                         bool *same, struct sl_error *error) SL_SUSPENDS;
