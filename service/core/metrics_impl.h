/* Between metrics.c (the table) and metrics_process.c (the standard metrics of a process). */
#pragma once

#include "base/buf.h"

void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics);
void metrics_write_process(struct sl_buf *out, bool open_metrics);
