/* Job results shared between nodes, in the Redis server of the shared cache (cluster.results). Keys, and their values:
 *
 *     <namespace>:job:<id>   P<node>        pending: the job runs on <node>; expires after 30 s, renewed meanwhile
 *                            R<zstd frame>  the answer (RFC 8878), kept for result_ttl
 *                            L<node>        the answer is on <node> only, as it is too large for Redis
 *     <namespace>:job:<id>@<owner>          the same for a job sent with an access key: 16 digits of the SHA-256 of the key's id
 *     <namespace>:jobs                      a channel: ids of jobs that have ended
 *
 * Only jobs whose id a client knows are published. When Redis cannot be reached, the first command waits until its time limit; for
 * some seconds after that no command is sent, as if Redis were not configured. */
#pragma once

#include "api/jobs/jobs.h"

struct job_results;

/* Connects to Redis. NULL: results are not shared, or out of memory. Loop thread; before the first job. */
struct job_results *results_open(struct service *service);
/* Waits until all pending results are published and all polls that wait are answered, then closes the connections and frees `results`.
 * NULL is allowed. */
void results_close(struct job_results *results) SL_SUSPENDS;

/* Publishes that the job runs on this node (P<node>). Does nothing if an earlier call for this job has done it. */
void results_announce(struct job *job) SL_SUSPENDS;
/* Publishes the result of an ended job, if results_announce has told Redis of the job before. */
void results_publish(struct job *job);

/* Answers a poll for another node's job, waiting as the query's `timeout` says. False without an answer: Redis does not know the job
 * or has no result of it. */
bool results_poll(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
