/* Whether Mozilla's symbol stores can be asked. Loop thread. */
#pragma once

#include "kinds/impl.h"

/* How a question to the store for one file ended. One that failed says little of the store: the next kinds_mozilla_reachable
 * asks the store itself. */
void mozilla_health_note(const struct source *store, enum sl_code code, const struct sl_error *error);

void mozilla_health_forget(void); /* at the end of the process */
