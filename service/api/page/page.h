/* GET /: the web page that symbolicates files which are dropped on it, and shows the state of the service. Its files are compiled
 * in: embed.py makes page_files from assets/. It uses public APIs only. */
#pragma once

#include "api/impl.h"

struct page_file {      /* a file of the page */
    struct sl_str name; /* path below /page/; but / is index.html or mozilla.html, /openapi.yaml is openapi.yaml */
    const char *type;   /* media type; NULL ends the list */
    struct sl_str tag;  /* ETag of `packed` */
    struct sl_bytes plain, packed; /* as it is; compressed with gzip */
};
extern const struct page_file page_files[];

/* ---- read.c ---- */

/* Handler of POST /page/read. */
void page_read(struct http_exchange *x) SL_SUSPENDS;

/* Writes the answer of POST /page/read for these bytes: what kind of input they are. */
void page_recognise(struct sl_bytes bytes, struct sl_buf *json);

/* ---- example.c ---- */

/* Writes a request for POST /symbolicate as JSON: the stack of the calling thread and its modules. True load addresses are not
 * revealed: the addresses say that modules lie one after another. False when out of memory. */
bool page_example(struct sl_buf *out);
