/* GET /: the web page that symbolicates dropped files and shows the service's state. Its files are compiled in (embed.py makes
 * page_files from assets/). It uses public APIs only. */
#pragma once

#include "api/impl.h"

struct page_file {
    struct sl_str name; /* below /page/; / serves index.html or mozilla.html, /openapi.yaml serves openapi.yaml */
    const char *type;   /* media type; NULL ends the list */
    struct sl_str tag;  /* ETag of `packed` */
    struct sl_bytes plain, packed;
};
extern const struct page_file page_files[];

/* ---- read.c ---- */

/* Handler of POST /page/read. */
void page_read(struct http_exchange *x) SL_SUSPENDS;

/* Writes its answer for these bytes. Pure. */
void page_recognise(struct sl_bytes bytes, struct sl_buf *json);

/* ---- example.c ---- */

/* Writes a request for /symbolicate as JSON: the stack of the calling thread and its modules. Load addresses are not revealed:
 * modules are placed one after another. False when out of memory. */
bool page_example(struct sl_buf *out);
