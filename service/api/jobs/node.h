/* The nodes of a cluster. A job's id begins with four hex digits that are its node, so that a node that is asked for a job of
 * another one can pass the question on: to a process beside it by its socket, to another machine by cluster.peers. */
#pragma once

#include "api/api.h"
#include "fetch/fetch.h"

struct api_query;

/* The node of this process: cluster.node_id, else the first 16 bits of the SHA-256 of the host's name; and its index among the
 * processes of the service. */
uint16_t node_own(const struct config *config);

/* The path of the socket of a process of this service; NULL when it is this one, or out of memory. */
const char *node_socket(const struct config *config, struct sl_arena *arena, size_t index);

/* The header that tells a neighbour's question from a client's. */
#define NODE_FORWARDED "X-Symloom-Forwarded"
bool node_is_forwarded(const struct http_exchange *x);

/* Those headers of a client's request that its neighbours need; returns how many. */
enum { NODE_HEADERS_MOST = 4 };
size_t node_headers(const struct http_exchange *x, struct fetch_header headers[NODE_HEADERS_MOST]);

/* Where the node is asked: the beginning of its URLs, and its socket, or NULL. NULL when it is this one or not known, and for
 * questions that come from a neighbour. */
const char *node_base(struct http_exchange *x, unsigned node, const char **socket);

/* Asks the owner of the job, if that is another node that is known, and answers as it did; an owner that cannot be reached, or
 * knows no such job, is a bare 404. False: nobody is to be asked. */
bool node_relay(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
