#pragma once

#include "config/config.h"
#include "core/fiber.h"

/* Warns of each configured source at a reserved address that no download may go to, so that the operator hears of it before the
 * first request does. */
void warn_of_refused_sources(const struct config *config) SL_SUSPENDS;
