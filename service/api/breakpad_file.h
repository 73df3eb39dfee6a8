/* For upload APIs other than Mozilla's: stores an uploaded Breakpad symbol file in the store of the Mozilla-compatible symbol server. */
#pragma once

#include "config/config.h"
#include "core/fiber.h"

/* Stores a Breakpad symbol file under the module name and debug id that its MODULE record has. `*same`: the store had the same file
 * already. SL_MALFORMED if it is no Breakpad symbol file; `error` is for the client. The store must be open. */
enum sl_code uploads_store_breakpad_file(const struct config *config, struct sl_bytes file, struct sl_arena *arena,
                                         bool *same, struct sl_error *error) SL_SUSPENDS;
