/* Mozilla's health checks (Dockerflow): version, dependencies, liveness. Only stores are queried; the rest is known. */
#pragma once

#include "http/http.h"

http_handler dockerflow_version;   /* GET /__version__ */
http_handler dockerflow_heartbeat; /* GET /__heartbeat__: 500 when a check fails */
http_handler dockerflow_alive;     /* GET /__lbheartbeat__ */
http_handler dockerflow_broken;    /* GET /__broken__: a deliberate error, if configured */
