/* Nodes of a cluster: every process of a service is one. A job's id begins with the number of its node (four hex digits), so that a
 * node which gets a poll for another node's job can forward it: to another process of this service by its unix socket, to another
 * machine by its URL in cluster.peers.
 *
 *     3f2a0001-...   job of node 3f2a */
#pragma once

#include "api/api.h"
#include "fetch/fetch.h"

struct api_query;

/* Returns the node number of this process: the number of the service (cluster.node_id, or the first 16 bits of the SHA-256 of the
 * host name), plus the index of this process among the service's processes. */
uint16_t node_own_id(const struct config *config);

/* Returns the path of the unix socket of process `index` of this service. NULL when out of memory, if there is no such process, if
 * `index` is this process, or if the service has only one process (no process.directory). */
const char *node_socket(const struct config *config, struct sl_arena *arena, size_t index);

/* Header that marks a request as forwarded by another node. Such a request is forwarded once more only to a process on the same
 * machine. */
#define NODE_FORWARDED "X-Symloom-Forwarded"
bool node_is_forwarded(const struct http_exchange *x);

enum { NODE_MAX_HEADERS = 4 };
/* Sets the headers for a request to another node: NODE_FORWARDED, and the client's credentials and request id. Returns how many. */
size_t node_headers(const struct http_exchange *x, struct fetch_header headers[NODE_MAX_HEADERS]);

/* Returns the base URL of the node, and sets `*socket` to the path of its unix socket, or NULL to connect to the URL's host. Returns
 * NULL if the node is this process or unknown, or lies on another machine and the request was already forwarded once. */
const char *node_get_url(struct http_exchange *x, unsigned node, const char **socket);

/* Forwards the poll to the node in the id, if that is another known node, and answers as it does. If it cannot be reached or does
 * not answer 200, answers 404 without a body, after which clients submit the work again. False: not forwarded, and no answer set. */
bool node_relay(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
