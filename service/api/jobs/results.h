/* Results of jobs for other nodes, in the Redis of the shared cache (cluster.results):
 *
 *     <namespace>:job:<id>   P<node>        it runs there; for 30 s, and renewed
 *                            R<zstd frame>  its answer (RFC 8878), for result_ttl
 *                            L<node>        its answer is there, and too large for here
 *     <namespace>:job:<id>@<owner>           of a job sent with an access key: 16 digits of the SHA-256 of the key's id
 *     <namespace>:jobs       a channel: the ids of those that have ended
 *
 * Only jobs whose ids somebody knows are told of. A Redis that cannot be reached delays nobody for longer than its time limit,
 * and is left alone for some seconds: then it is as if there were none. */
#pragma once

#include "api/jobs/jobs.h"

struct results;

/* NULL: off, or out of memory. Loop thread; before the first job. */
struct results *results_open(struct service *service);
/* Waits until everything that ended is told; NULL is allowed. */
void results_close(struct results *results) SL_SUSPENDS;

/* Says whose the job is; once per job. */
void results_announce(struct job *job) SL_SUSPENDS;
/* Of a job that has ended, with its outcome set. */
void results_publish(struct job *job);

/* Answers for a job of another node, waiting as the query's `timeout` says. False: nothing is known of it here. */
bool results_poll(struct http_exchange *x, const uint8_t id[16], const struct api_query *query) SL_SUSPENDS;
