/* Joining and cleaning the paths of debug information, Windows and POSIX forms alike. Pure text: no file is looked at. */
#pragma once

#include "base/buf.h"

bool sl_path_is_windows(struct sl_str path);

/* Appends join(base, other) / clean(path) to `out`. `out` must not hold the inputs. */
void sl_path_join(struct sl_buf *out, struct sl_str base, struct sl_str other);
void sl_path_clean(struct sl_buf *out, struct sl_str path);

/* clean(join(join(comp_dir, directory), name)). */
void sl_path_full(struct sl_buf *out, struct sl_str comp_dir, struct sl_str directory, struct sl_str name);

/* The same without clean: as the debug information has it, with its `.` and `..`. */
void sl_path_written(struct sl_buf *out, struct sl_str comp_dir, struct sl_str directory, struct sl_str name);

/* Directory (may be empty) and last component; both are views of `path`. */
void sl_path_split(struct sl_str path, struct sl_str *directory, struct sl_str *name);
