/* How --help arranges the options of commands that have many: groups of at most ten, most used first. */
#include "cli/options.h"

#include <string.h>

const struct options_group options_groups[] = {
    {"", "Options of all commands", "config cache-dir jobs verbose quiet color progress"},
    {"", "Network and log", "offline no-network log-level log-format"},

    {"symbolicate", "Most used", "symbols mapping format json output server type all-threads context fail-on-missing"},
    {"symbolicate", "Where files are looked for",
     "source nt-symbol-path debuginfod local-debug-info config cache-dir candidates scope timeout use-request-sources"},
    {"symbolicate", "What is shown",
     "crashed-only thread thread-index no-trim no-source-context extract-variables indent verbose"},
    {"symbolicate", "Of --format stackwalk", "brief stack-contents stack-pointers"},
    {"symbolicate", "Addresses", "module maps pid return-addresses"},
    {"symbolicate", "Events, requests, scripts and logs",
     "platform release dist no-scrape rewrite-first-module microdump"},
    {"symbolicate", "Sentry", "org project url auth-token auth-token-file auth-cookies auth-cookies-file"},

    {"lookup", "Most used", "exe build-id functions inlines no-inlines addresses pretty-print output-style json names"},
    {"lookup", "Where files are looked for",
     "symbols source nt-symbol-path debuginfod config cache-dir debug-file-directory dsym-hint dwp sup"},
    {"lookup", "Addresses", "section adjust-vma relative-address return-addresses all default-arch obj"},
    {"lookup", "What is shown",
     "demangle no-demangle inlining basenames relativenames no-trim llvm verbose print-source-context-lines"},
    {"lookup", "Work and caches", "symcache-out cache jobs fallback-debug-path"},

    {"dump-syms", "Most used", "output store inlines arch list-arch debug-file code-file multiple jobs verbose"},
    {"dump-syms", "Where files are looked for",
     "symbols source nt-symbol-path debuginfod symbol-server config cache-dir"},
    {"dump-syms", "What is written",
     "check-cfi no-cfi header-only unwind-functions prefer-public preserve-load-address no-generator extra-info pe "
     "no-multiple"},
    {"dump-syms", "What the file says of itself", "name id os debug-id code-id"},
    {"dump-syms", "Paths of sources", "mapping-var mapping-src mapping-dest mapping-file"},

    {"push-symbols", "Most used", "executable pid url api-key api-key-file force dry-run output progress verbose"},
    {"push-symbols", "What is sent",
     "debug-file debug-file-directory no-ranges no-returnpads no-follow-alt-link file-id ranges returnpads"},
    {"push-symbols", "How it is sent", "chunk-size compress zstd-level concurrency retries timeout ca-file insecure"},

    {"inspect", "Most used", "check recursive json symbols functions files sources arch id verbose"},
    {"inspect", "More", "type verify statistics sections cfi raw demangle"},

    {"bundle", "Most used", "output root embedded exclude list json jvm debug-id verbose"},
    {"bundle", "More", "il2cpp il2cpp-mapping max-file-size arch id"},

    {"sort", "Most used", "output prefix compress with-sources force dry-run json jobs quiet verbose"},
    {"sort", "More", "bundle-id multiple-bundles level ignore-errors progress"},

    {"stress", "Most used", "workloads duration server rate warmup cold json compare metrics config"},
    {"stress", "More", "tracing sentry cache-dir log-level log-format verbose quiet"},

    {"cleanup", "Most used", "config cache-dir dry-run repeat only all json"},
    {"cleanup", "Log", "log-level log-format verbose quiet"},

    {"cache", "Most used", "config cache-dir source location debug-file debug-id hosts clear"},
    {"cache", "Log", "log-level log-format verbose quiet"},

    {"config", "Most used", "config cache-dir strict user connect json"},
    {"config", "Log", "log-level log-format verbose quiet"},
};
const size_t options_group_count = sizeof options_groups / sizeof *options_groups;

bool options_group_has(const struct options_group *group, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = group->names; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0)
            return true;
        at += word;
    }
    return false;
}
