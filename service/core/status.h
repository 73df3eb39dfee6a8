/* Reason phrases of HTTP status codes, from the registry of RFC 9110. */
#pragma once

const char *status_reason(int status); /* "Not Found"; "<unknown status code>" */
