/* Job results shared between nodes, in the Redis of the shared cache (cluster.results):
 *
 *     <namespace>:job:<id>   P<node>        pending, runs on <node>; expires after 30 s, renewed meanwhile
 *                            R<zstd frame>  the answer (RFC 8878), kept for result_ttl
 *                            L<node>        the answer is on <node>, it is too large for Redis
 *     <namespace>:job:<id>@<owner>           the same for a job sent with an access key: 16 digits of the SHA-256 of the key's id
 *     <namespace>:jobs       a channel: ids of jobs that have ended
 *
 * Only jobs whose id a client knows are published. An unreachable Redis delays a request by its time limit at most, and is then
 * left alone for some seconds, as if it were not configured. */
#pragma once

#include "api/jobs/jobs.h"

struct job_results;

/* NULL: off, or out of memory. Loop thread; before the first job. */
struct job_results *results_open(struct service *service);
/* Waits until all pending results are published; NULL is allowed. */
void results_close(struct job_results *results) SL_SUSPENDS;

/* Publishes the owner of the job (P<node>); once per job. */
void results_announce(struct job *job) SL_SUSPENDS;
/* Publishes the result of a job that has ended; its outcome is set. */
void results_publish(struct job *job);

/* Answers for a job of another node, waiting as the query's `timeout` says. False: Redis has no such job. */
bool results_poll(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
