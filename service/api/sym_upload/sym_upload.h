/* Breakpad's `sym_upload` and `symupload`, in both versions of their protocol:
 *
 *     GET  /v1/symbols/{debug file}/{debug id}:checkStatus    {"status": "FOUND"} or "MISSING"
 *     POST /v1/uploads:create                                 {"uploadUrl": "...", "uploadKey": "..."}
 *     PUT  <uploadUrl>                                        the file; the URL is valid for one file and one hour
 *     POST /v1/uploads/{key}:complete                         {"result": "OK"} or "DUPLICATE_DATA"
 *     POST /v1/symupload                                      version 1: one form
 *
 * Between these requests an upload is in the store of debug files, so that any process or node may receive the next request:
 *
 *     chunks/received/<key>.secret     SHA-256 of the secret in the URL, and when the URL expires
 *     chunks/received/<key>            the file */
#pragma once

#include "api/impl.h"
#include "debug_file_store/debug_file_store.h"

struct symbol_description { /* what the client says of an uploaded file; data NULL: nothing */
    struct sl_str debug_file, debug_id, type;
};

/* Reads the description of the file from the body of a request to complete an upload. The body need not be valid JSON, as Breakpad's
 * clients do not send it: keys may lack quotes, and are in camel or snake case. Texts are views of the body; escapes stay in them. Pure. */
void symbol_description_read(struct sl_str body, struct symbol_description *description);
