/* libcurl, loaded at its first use: with its dependencies it would take half of the start-up time of a command that downloads
 * nothing. Its functions are declared by <curl/curl.h> as usual and defined in libcurl.c: each loads the library if necessary and
 * calls the library's function of the same name. A function of libcurl that is not used yet needs a row there. */
#pragma once

#include "base/error.h"
#include "base/bytes.h"

struct curl_slist;

/* Loads libcurl unless it is loaded: SL_OK, or SL_INTERNAL with the dynamic loader's text. Any thread; blocks for milliseconds the first
 * time. If libcurl cannot be loaded, a call of one of its functions prints the reason to stderr and exits with status 1. */
enum sl_code libcurl_load(struct sl_error *error);

/* Appends the header "Name: value" to a list for CURLOPT_HTTPHEADER; if the value is empty "Name;", which is curl's form for that. The
 * value may be secret: the copy of it that is made here is wiped. False when out of memory; the list stays as it was. */
bool libcurl_add_header(struct curl_slist **list, struct sl_str name, struct sl_str value);
