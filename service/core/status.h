/* Reason phrases of HTTP status codes, from the registry of RFC 9110. */
#pragma once

/* 404: "Not Found"; "<unknown status code>" if the status is not in the registry */
const char *status_reason(int status);
