/* Looks up names of many addresses, in batches of some thousands, so that the size of requests and answers does not depend on their
 * number. Private to this folder. */
#pragma once

#include "api/local_request.h"
#include "base/json_write.h"
#include "cli/symbolicate/answer.h"

struct local_files;
struct options;
struct sentry_project;

#define NAMES_ABSOLUTE UINT32_MAX

struct names_wanted {
    const struct options *o;
    void *arg;
    struct sl_str scope; /* as in struct local_request */
    size_t module_count, address_count;
    void (*put_module)(void *arg, size_t module, struct sl_json_writer *w); /* an element of `modules` */
    /* Returns the address relative to its module, or an absolute one with NAMES_ABSOLUTE. Return addresses are already adjusted to point
     * into the call. */
    void (*address)(void *arg, size_t index, uint32_t *module, uint64_t *relative);
    /* Receives the chain of calls at an address, innermost first; each has a function or a symbol. Not called for unknown addresses. The
     * texts do not outlive the call. False when out of memory. */
    bool (*take)(void *arg, size_t index, const struct answer_frame *calls, size_t count);
    bool line_starts;               /* fills line_start of the calls */
    struct missing_report *missing; /* gets the modules without debug information; may be NULL */
    size_t done;                    /* finished addresses; initially 0 */
};

/* Looks up the names in this process, in a fiber; parameters as for local_request_symbolicate. */
enum sl_code names_find(struct names_wanted *wanted, const struct source *sources, size_t source_count,
                        const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Looks up the names through the service at --server, else in this process, which searches the files of `local` and the sources of the
 * options and the project (may be NULL). Returns a status, after a report unless 0. */
int names_symbolicate(struct names_wanted *wanted, const struct sentry_project *project, struct local_files *local);
