/* A project of Sentry: events, attachments, debug files, scripts and source maps come from it if they are not on this machine. Options and
 * the environment ($SENTRY_ORG, $SENTRY_PROJECT, $SENTRY_URL, $SENTRY_AUTH_TOKEN, $SENTRY_AUTH_COOKIES) name the project. Private to this
 * folder. */
#pragma once

#include "base/file.h"
#include "cli/options.h"
#include "origin/origin.h"

/* Rows of the table of options of `symbolicate` that name the Sentry project. */
#define SENTRY_OPTIONS                                                                                                  \
    {"org", 'o', OPTION_VALUE, false, "SLUG", "Use this Sentry organization ($SENTRY_ORG)"},                            \
        {"project", 'p', OPTION_VALUE, false, "SLUG", "Use this Sentry project ($SENTRY_PROJECT)"},                     \
        {"url", 0,     OPTION_VALUE,                                                                                    \
         false, "URL", "Use this Sentry server ($SENTRY_URL; default: `url` of the configuration)"},                    \
        {"auth-token", 0, OPTION_VALUE, false, "TOKEN", "Authenticate to Sentry with this token ($SENTRY_AUTH_TOKEN)"}, \
        {"auth-token-file", 0, OPTION_VALUE, false, "FILE", "Read the Sentry token from the first line of this file"},  \
        {"auth-cookies", 0,         OPTION_VALUE,                                                                       \
         false,          "COOKIES", "Authenticate to Sentry with these cookies ($SENTRY_AUTH_COOKIES)"},                \
    {                                                                                                                   \
        "auth-cookies-file", 0, OPTION_VALUE, false, "FILE", "Read Sentry cookies from the first line of this file"     \
    }

struct sentry_project { /* texts in the arena of sentry_project_read */
    bool online;        /* false: nothing is fetched from Sentry, and all but the credentials is unset */
    struct sl_str url;  /* URL of the project, with a trailing slash; NUL-terminated */
    struct sl_str project;
    struct sl_secret token, cookies; /* only one is set */
    struct source debug_files;
};

/* Reads the project from the options and the environment; the user's configuration files fill in what these leave out. `required`: the
 * input is an event's id. The project stays offline with --offline or --no-network. Unless `required`, it also does if neither options nor
 * environment name an organization, a project or credentials. Overwrites secrets in argv. Returns an exit status, after a report unless
 * 0. */
int sentry_project_read(const struct options *o, bool required, struct sl_arena *arena, struct sentry_project *project);

/* Downloads and maps the event with this id; if a crash file is attached to it, that file instead, decompressed. Returns an exit status,
 * after a report unless 0. */
int sentry_event(const struct options *o, const struct sentry_project *project, const char *id,
                 struct sl_mapping *mapping);
