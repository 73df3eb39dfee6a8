/* A project of Sentry: where events, attachments, debug files and artifacts are that are not at hand. Private to this folder.
 *
 * Options and the environment name it ($SENTRY_ORG, $SENTRY_PROJECT, $SENTRY_URL, $SENTRY_AUTH_TOKEN, $SENTRY_AUTH_COOKIES). */
#pragma once

#include "base/file.h"
#include "cli/options.h"
#include "origin/origin.h"

/* Rows of the table of options. */
#define SENTRY_OPTIONS                                                                                                 \
    {"org", 'o', OPTION_VALUE, false, "SLUG", "Sentry: the organization ($SENTRY_ORG)"},                               \
        {"project", 'p', OPTION_VALUE, false, "SLUG", "Sentry: the project ($SENTRY_PROJECT)"},                        \
        {"url", 0,     OPTION_VALUE,                                                                                   \
         false, "URL", "Sentry: the server (default: $SENTRY_URL, `url` of the configuration, https://sentry.io/)"},   \
        {"auth-token", 0, OPTION_VALUE, false, "TOKEN", "Sentry: a token ($SENTRY_AUTH_TOKEN)"},                       \
        {"auth-token-file", 0, OPTION_VALUE, false, "FILE", "Sentry: a token, the first line of a file"},              \
        {"auth-cookies", 0, OPTION_VALUE, false, "COOKIES", "Sentry: cookies instead ($SENTRY_AUTH_COOKIES)"},         \
    {                                                                                                                  \
        "auth-cookies-file", 0, OPTION_VALUE, false, "FILE", "Sentry: cookies, the first line of a file"               \
    }

struct sentry_project { /* texts in the arena */
    bool online;
    struct sl_str url; /* of the project, with a slash at its end; terminated */
    struct sl_str project;
    struct sl_secret token, cookies; /* one of the two */
    struct source debug_files;
};

/* `required`: the input is an event's id. Not online unless the options or the environment say anything of Sentry, nor
 * offline; what they do not say, files of the user's configuration may. Returns a status, after a report unless 0. Secrets vanish from the command line. */
int sentry_project_read(const struct options *o, bool required, struct sl_arena *arena, struct sentry_project *project);

/* Maps the event of the id, or its attachment that is a crash file. Returns a status, after a report unless 0. */
int sentry_event(const struct options *o, const struct sentry_project *project, const char *id,
                 struct sl_mapping *mapping);
