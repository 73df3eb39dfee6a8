/* libcurl, loaded when it is first used: it and the libraries that it brings along would be half of the start of a
 * command that downloads nothing. Its functions are declared by <curl/curl.h> as ever and defined in libcurl.c, each of
 * which loads the library and calls the real one; no other function of it may be used without a row there. */
#pragma once

#include "base/error.h"

/* Loads libcurl, once: SL_OK, or SL_INTERNAL with the loader's text. Any thread; blocks for milliseconds the first time.
 * A function of libcurl that is called when it cannot be loaded says so on stderr and ends the process with status 1. */
enum sl_code libcurl_load(struct sl_error *error);
