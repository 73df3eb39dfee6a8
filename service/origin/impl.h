/* What the files of origin share. Private to this folder. */
#pragma once

#include "origin/origin.h"

/* `text` appended with what a path segment of a URL may not hold percent-encoded; '/' separates and stays. */
void url_add_path(struct sl_buf *url, struct sl_str text);

/* ---- http.c ---- */
/* The URL of a location below the source's; `secret`: with the user info and query that candidates do not show.
 * Text in the arena; data NULL when the base can have no path. */
struct sl_str http_location_url(struct sl_arena *arena, struct sl_str base, struct sl_str location, bool secret);
enum sl_code http_source_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* ---- filesystem.c ---- */
struct sl_str filesystem_uri(struct sl_arena *arena, const struct source *source, struct sl_str location);
enum sl_code filesystem_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;
