/* Private to print.c and print_analysis.c. */
#pragma once

#include "cli/symbolicate/answer.h"

/* Lines behind that of the crash; none of what is not known. */
void answer_put_analysis(const struct answer_analysis *analysis, struct sl_buf *out);
