/* libcurl, loaded at its first use: with its dependencies it would take half of the start-up time of a command that downloads
 * nothing. Its functions are declared by <curl/curl.h> as usual and defined in libcurl.c, where each loads the library and
 * calls the real one; other functions of libcurl need a row there. */
#pragma once

#include "base/error.h"
#include "base/bytes.h"

struct curl_slist;

/* Loads libcurl, once: SL_OK, or SL_INTERNAL with the loader's text. Any thread; blocks for milliseconds the first time. A
 * function of libcurl that is called although it cannot be loaded prints the reason to stderr and exits with status 1. */
enum sl_code libcurl_load(struct sl_error *error);

/* Appends a header to a list for CURLOPT_HTTPHEADER, `Name;` without a value: curl's form for a header with an empty one. The copy of
 * the value, which may be secret, is wiped here. False when out of memory; the list stays as it was. */
bool libcurl_add_header(struct curl_slist **list, struct sl_str name, struct sl_str value);
