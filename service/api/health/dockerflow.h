/* Mozilla's health checks (Dockerflow): what runs, how what it needs does, and whether it lives. Stores are asked whether they
 * answer; the rest is known. */
#pragma once

#include "http/http.h"

http_handler dockerflow_version;   /* GET /__version__ */
http_handler dockerflow_heartbeat; /* GET /__heartbeat__: 500 when something has failed */
http_handler dockerflow_alive;     /* GET /__lbheartbeat__ */
http_handler dockerflow_broken;    /* GET /__broken__: an error on purpose, where that is configured */
