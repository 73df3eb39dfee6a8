/* The source server stream: srcsrv.c reads it, srcsrv_evaluate.c evaluates its templates. Private to this folder. */
#pragma once

#include "pdb/impl.h"

enum { SRCSRV_MAX_FIELDS = 10 };

struct srcsrv_fields { /* var1 to var10 of a source file */
    struct sl_str items[SRCSRV_MAX_FIELDS];
    size_t count;
};

/* Sets `*value` to the text of a variable of the stream, with its own %references% not yet expanded. False if it is not defined. */
bool srcsrv_variable(const struct srcsrv *s, struct sl_str name, struct sl_str *value);

/* Appends a source file's target (SRCSRVTRG) to `target`, and checks that the other templates of a debugger (SRCSRVCMD, SRCSRVENV,
 * SRCSRVVERCTRL) can be evaluated, too. `targ` is the value of %targ%, the debugger's own directory; `*work_left` is counted down by the
 * steps taken. False if no steps are left, there is no target, a template is bad or refers to itself, a result is over 64 KiB, or memory
 * runs out. */
bool srcsrv_evaluate(const struct srcsrv *s, const struct srcsrv_fields *fields, struct sl_str targ,
                     uint64_t *work_left, struct sl_buf *target);
