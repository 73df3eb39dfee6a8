/* The reason phrases of HTTP status codes, as the registry of RFC 9110 has them. */
#pragma once

const char *status_reason(int status); /* "Not Found"; "<unknown status code>" */
