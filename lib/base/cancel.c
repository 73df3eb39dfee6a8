#include "base/cancel.h"

_Thread_local const atomic_bool *sl_cancel_flag;
