/* `symloom version`: prints the version, and with options the libraries and the versions of cache formats. */
#include "cli/cli.h"
#include "cli/options.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <uv.h>
#include <zstd.h>

#include "base/json_write.h"
#include "commit.h"
#include "fetch/libcurl.h"
#include "catalog/catalog.h"

static const struct option_spec specs[] = {
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Also print commit, libraries and cache format versions"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print everything as JSON"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct version_library {
    const char *name, *version;
};
enum { LIBRARIES = 4 };

/* Fills the list with the libraries in use. libcurl is loaded only when it is needed, and may be missing. */
static void version_libraries(struct version_library list[LIBRARIES])
{
    list[0] = (struct version_library){"libuv", uv_version_string()};
    list[1] = (struct version_library){
        "libcurl", libcurl_load(NULL) == SL_OK ? curl_version_info(CURLVERSION_NOW)->version : "missing"};
    list[2] = (struct version_library){"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)};
    list[3] = (struct version_library){"zstd", ZSTD_versionString()};
}

/* Appends the version, the commit, and the versions of the libraries and of the cached formats, a line each. */
static void version_text(struct sl_buf *out)
{
    struct version_library libraries[LIBRARIES];
    version_libraries(libraries);
    sl_buf_printf(out, "symloom %s\ncommit %s\n", SYMLOOM_VERSION, SYMLOOM_COMMIT);
    for (size_t i = 0; i < LIBRARIES; i++)
        sl_buf_printf(out, "library %s %s\n", libraries[i].name, libraries[i].version);
    for (size_t i = 0; i < catalog_kind_count; i++)
        sl_buf_printf(out, "cache %s %u\n", catalog_kinds[i]->name, catalog_kinds[i]->version);
}

/* Appends the version, the commit, and the versions of the libraries and of the cached formats as one JSON object. */
static void version_json(struct sl_buf *out)
{
    struct version_library libraries[LIBRARIES];
    struct sl_json_writer w = sl_json_writer(out);
    version_libraries(libraries);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "version", SL_STR(SYMLOOM_VERSION));
    sl_json_member_str(&w, "commit", SL_STR(SYMLOOM_COMMIT));
    sl_json_member_object(&w, "libraries");
    for (size_t i = 0; i < LIBRARIES; i++)
        sl_json_member_str(&w, libraries[i].name, sl_str(libraries[i].version));
    sl_json_end_object(&w);
    sl_json_member_object(&w, "caches");
    for (size_t i = 0; i < catalog_kind_count; i++)
        sl_json_member_u64(&w, catalog_kinds[i]->name, catalog_kinds[i]->version);
    sl_json_end_object(&w);
    sl_json_end_object(&w);
    sl_buf_u8(out, '\n');
}

/* Runs the command `version`: prints one line, or all versions with --verbose or --json. Returns the exit status. */
static int version_run(const struct options *o)
{
    struct sl_buf out = {0};
    if (o->argument_count)
        return options_wrong(o, "unexpected argument '%s'", o->arguments[0]);
    if (option_given(o, "json"))
        version_json(&out);
    else if (option_given(o, "verbose"))
        version_text(&out);
    else
        sl_buf_cstr(&out, "symloom " SYMLOOM_VERSION "\n");
    output_write(sl_buf_view(&out));
    sl_buf_free(&out);
    return 0;
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "version [OPTION...]",
    .about = "Prints the version.",
    .options = specs,
    .run = version_run,
};

int version_of_program(void)
{
    if (strcmp(options_program_name(), "symbolicator") == 0) /* scripts that call symbolicator parse these lines */
        puts("version: " SYMLOOM_VERSION "\ngit commit: " SYMLOOM_COMMIT);
    else
        puts("symloom " SYMLOOM_VERSION);
    return 0;
}
