/* Looks up the functions and lines at many addresses, in batches of some thousands, so that the size of requests and answers is limited.
 * Private to this folder. */
#pragma once

#include "api/local_request.h"
#include "base/json_write.h"
#include "cli/symbolicate/answer.h"

struct local_files;
struct options;
struct sentry_project;

/* Module of an absolute address (names_wanted.address). */
#define NAMES_ABSOLUTE UINT32_MAX

/* Addresses to look up, and the callbacks that describe them and get the results. */
struct names_wanted {
    const struct options *o; /* used by names_symbolicate; else NULL */
    void *arg;               /* passed to the callbacks */
    struct sl_str scope;     /* cache scope; data NULL: the global one */
    size_t module_count, address_count;
    /* Writes a module as an element of `modules` of a request to /symbolicate. */
    void (*put_module)(void *arg, size_t module, struct sl_json_writer *w);
    /* Sets the index of the address's module, and the address relative to it; or NAMES_ABSOLUTE and the absolute address. The address is
     * looked up as it is: for a return address, set an address inside of the call instruction that ends there. */
    void (*address)(void *arg, size_t index, uint32_t *module, uint64_t *relative);
    /* Receives the chain of calls at an address, innermost first; each has a function or a symbol. Not called for unknown addresses. The
     * texts do not outlive the call. False when out of memory. */
    bool (*take)(void *arg, size_t index, const struct answer_frame *calls, size_t count);
    bool line_starts;               /* the calls passed to take() have line_start */
    struct missing_report *missing; /* gets the modules without debug information; may be NULL */
    size_t done;                    /* number of addresses looked up so far; initially 0 */
};

/* Looks up all addresses in this process, in the sources in their order: call it in a fiber. SL_BUSY when out of memory, SL_CANCELLED,
 * SL_INTERNAL; SL_MALFORMED if the callbacks made an invalid request. */
enum sl_code names_find(struct names_wanted *wanted, const struct source *sources, size_t source_count,
                        const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Looks up all addresses: at the service of --server if that is given; else in this process, in the sources of the options and of the
 * Sentry project, and in the files of `local`. Returns an exit status, after a report unless 0. */
int names_symbolicate(struct names_wanted *wanted, const struct sentry_project *project, struct local_files *local);
