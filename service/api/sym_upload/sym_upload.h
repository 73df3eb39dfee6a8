/* Breakpad's `sym_upload` and `symupload`, in both versions of their protocol:
 *
 *     GET  /v1/symbols/{debug file}/{debug id}:checkStatus    {"status": "FOUND"} or "MISSING"
 *     POST /v1/uploads:create                                 {"uploadUrl": "...", "uploadKey": "..."}
 *     PUT  <uploadUrl>                                        the file; valid once, for an hour
 *     POST /v1/uploads/{key}:complete                         {"result": "OK"} or "DUPLICATE_DATA"
 *     POST /v1/symupload                                      version 1: one form
 *
 * Between the requests a file is in the store, so that any process or node may get the next one:
 *
 *     chunks/received/<key>.secret     SHA-256 of the secret in the URL, and when the URL expires
 *     chunks/received/<key>            the file */
#pragma once

#include "api/impl.h"
#include "debug_file_store/debug_file_store.h"

struct symbol_description { /* what the client says of the file; data NULL: nothing */
    struct sl_str debug_file, debug_id, type;
};

/* Reads what the body of `complete` says. The clients do not send valid JSON: keys may be bare, in camel or snake case. Texts are
 * views of the body, with their escapes. Pure. */
void symbol_description_read(struct sl_str body, struct symbol_description *description);
