/* The two halves of the source server stream: srcsrv.c reads it, srcsrv_evaluate.c works out its templates. Private to this
 * folder. */
#pragma once

#include "pdb/impl.h"

enum { SRCSRV_MAX_FIELDS = 10 };

struct srcsrv_fields { /* var1 to var10 of a source file */
    struct sl_str items[SRCSRV_MAX_FIELDS];
    size_t count;
};

/* The value of a variable, as it is written. */
bool srcsrv_variable(const struct srcsrv *s, struct sl_str name, struct sl_str *value);

/* Works out what a source file's target is, appended to `target`, and whether everything that the debugger would work out
 * can be: SRCSRVTRG, SRCSRVCMD, SRCSRVENV, SRCSRVVERCTRL. `targ` is the debugger's own directory. False when a template is
 * bad or refers to itself, when the result is over 64 KiB, or when it takes more than `*work_left` steps, which are counted
 * down. */
bool srcsrv_evaluate(const struct srcsrv *s, const struct srcsrv_fields *fields, struct sl_str targ,
                     uint64_t *work_left, struct sl_buf *target);
