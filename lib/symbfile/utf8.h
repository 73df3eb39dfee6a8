/* Whether a text is UTF-8 (RFC 3629: no overlong forms, no surrogates). Private to this folder. */
#pragma once

#include "base/bytes.h"

bool symbfile_is_utf8(struct sl_str text);
