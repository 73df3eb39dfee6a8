/* Mozilla's health checks (Dockerflow): version, dependencies, liveness. The heartbeat queries the symbol stores; the state of all other
 * dependencies is known from their use. */
#pragma once

#include "http/http.h"

http_handler dockerflow_version;   /* GET /__version__ */
http_handler dockerflow_heartbeat; /* GET /__heartbeat__: 500 when a check fails */
http_handler dockerflow_alive;     /* GET /__lbheartbeat__: 200, or 503 while the service drains */
http_handler dockerflow_broken;    /* GET /__broken__: a deliberate error, if configured */
