/* Nodes of a cluster. A job's id begins with four hex digits of its node, so a node can forward a poll for another node's job:
 * to a process beside it by its unix socket, to another machine by cluster.peers.
 *
 *     3f2a0001-...   job of node 3f2a */
#pragma once

#include "api/api.h"
#include "fetch/fetch.h"

struct api_query;

/* Returns the node number of this process: cluster.node_id, or if that is not set the first 16 bits of the SHA-256 of the
 * host name; plus the index of the process within the service. */
uint16_t node_own_id(const struct config *config);

/* Returns the path of the socket of process `index` of this service; NULL when it is this process, or out of memory. */
const char *node_socket(const struct config *config, struct sl_arena *arena, size_t index);

/* Header of forwarded requests, so that they are not forwarded again. */
#define NODE_FORWARDED "X-Symloom-Forwarded"
bool node_is_forwarded(const struct http_exchange *x);

/* Copies the headers of a client's request that the other node needs; returns how many. */
enum { NODE_MAX_HEADERS = 4 };
size_t node_headers(const struct http_exchange *x, struct fetch_header headers[NODE_MAX_HEADERS]);

/* Returns the base URL of the node, and sets its socket path or NULL. Returns NULL if it is this node or unknown. A request
 * that another node forwarded is forwarded again only to processes of this service. */
const char *node_get_url(struct http_exchange *x, unsigned node, const char **socket);

/* Forwards the poll to the job's node, if that is another known node, and relays its answer. An owner that cannot be
 * reached, or has no such job, gives a bare 404, after which clients submit the work again. False: not forwarded. */
bool node_relay(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
