/* Reason phrases of HTTP status codes, from the registry of RFC 9110. */
#pragma once

/* Returns the reason phrase of a status, such as "Not Found" for 404; "<unknown status code>" if it is not in the registry. */
const char *status_reason(int status);
