/* Names of addresses in modules, whatever these are of: asked for by some thousands at a time, so that neither requests nor answers
 * grow with the number of addresses. Private to this folder. */
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
    struct sl_str scope; /* as that of struct local_request */
    size_t module_count, address_count;
    void (*put_module)(void *arg, size_t module, struct sl_json_writer *w); /* an object of `modules` of a request */
    /* Relative to the module, or of module NAMES_ABSOLUTE; inside of a call already. */
    void (*address)(void *arg, size_t index, uint32_t *module, uint64_t *relative);
    /* The calls at an address, the innermost first; each has a function or a symbol. Not called without such. Their texts do not
     * stay. False when out of memory. */
    bool (*take)(void *arg, size_t index, const struct answer_frame *calls, size_t count);
    bool line_starts;               /* the calls tell where their lines begin */
    struct missing_report *missing; /* modules without debug information are added; may be NULL */
    size_t done;                    /* addresses; 0 before */
};

/* By this process, in a fiber: as local_request_symbolicate. */
enum sl_code names_look_up(struct names_wanted *wanted, const struct source *sources, size_t source_count,
                           const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* By the service at --server, else by this process, which also has the files of `local`, and looks where the options and the project
 * (may be NULL) say. Returns a status, after a report unless 0. */
int names_symbolicate(struct names_wanted *wanted, const struct sentry_project *project, struct local_files *local);
