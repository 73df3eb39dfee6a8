/* GET /: a page that symbolicates what is dropped on it and shows how the service is. Its files are in the program (embed.py
 * makes page_files of assets/); all that it does it does by the APIs that everybody has. */
#pragma once

#include "api/impl.h"

struct page_file {
    struct sl_str
        name; /* below /page/; index.html and mozilla.html are what / is, openapi.yaml is what /openapi.yaml is */
    const char *type;  /* NULL behind the last */
    struct sl_str tag; /* of `packed` */
    struct sl_bytes plain, packed;
};
extern const struct page_file page_files[];

/* ---- read.c ---- */

/* The handler of POST /page/read. */
void page_read(struct http_exchange *x) SL_SUSPENDS;

/* Its answer to these bytes; `as` is that of the query, data NULL: none. False, and no whole answer, when it would be longer than
 * `max` bytes. Pure. */
bool page_recognise(struct sl_bytes bytes, struct sl_str as, uint64_t max, struct sl_buf *json);

/* ---- example.c ---- */

/* A request for /symbolicate, as JSON: the stack of the thread that writes it, with the modules that it runs through. Where
 * they are loaded is not told: they lie one behind the other. False when there is no memory. */
bool page_example(struct sl_buf *out);
