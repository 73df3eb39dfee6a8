/* The schema of sources: what is accepted, what is refused and with which words. */
#include "../check.h"

#include "origin/origin.h"

static struct sl_arena arena;
static struct source *sources;
static size_t source_count;
static struct value_problems problems;
static const struct source_policy all = {.filesystem = true, .ambient_credentials = true, .internal_sentry = true};
static const struct source_policy request = {.internal_sentry = true};

/* The JSON has ' where " belongs. */
static enum sl_code parse(const char *json, const struct source_policy *policy)
{
    char *text = sl_arena_strndup(&arena, json, strlen(json));
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    struct sl_json j = sl_json(sl_str(text), &arena, false);
    problems = (struct value_problems){.arena = &arena};
    enum sl_code code = source_read_list(&j, "sources", policy, &sources, &source_count, &problems);
    if (j.failed)
        fail_msg("%s: %s", json, j.problem);
    return code;
}

static const struct source *accepted(const char *json)
{
    if (parse(json, &all) != SL_OK)
        fail_msg("%s: " SL_STR_FMT ": " SL_STR_FMT, json, SL_STR_ARG(problems.items[0].path),
                 SL_STR_ARG(problems.items[0].what));
    assert_int_equal(problems.errors, 0);
    assert_int_equal(source_count, 1);
    return &sources[0];
}

static void refused_by(const struct source_policy *policy, const char *json, const char *path, const char *what)
{
    if (parse(json, policy) != SL_MALFORMED)
        fail_msg("accepted: %s", json);
    assert_true(problems.errors >= 1);
    if (!sl_str_equal(problems.items[0].path, sl_str(path)) ||
        (what && !sl_str_equal(problems.items[0].what, sl_str(what))))
        fail_msg("%s\n" SL_STR_FMT ": " SL_STR_FMT, json, SL_STR_ARG(problems.items[0].path),
                 SL_STR_ARG(problems.items[0].what));
}

static void refused(const char *json, const char *path)
{
    refused_by(&all, json, path, NULL);
}

#define same(str, text) assert_true(sl_str_equal((str), SL_STR(text)))

TEST(common_keys_are_read)
{
    const struct source *s = accepted("[{'id':'a','type':'http','url':'https://h/'}]");
    same(s->id, "a");
    assert_int_equal(s->type, SOURCE_HTTP);
    assert_int_equal(s->layout, LAYOUT_NATIVE);
    assert_int_equal(s->casing, CASING_DEFAULT);
    assert_int_equal(s->filetypes, 0);
    assert_int_equal(s->path_pattern_count, 0);
    assert_false(s->requires_checksum || s->is_public || s->has_index || s->file_ptr || s->accept_invalid_certs);
    s = accepted("[{'id':'a','type':'http','url':'https://h/','name':'unknown keys are ignored','is_public':true,"
                 "'has_index':true,'file_ptr':true,'filters':{'filetypes':['pe','mach_code'],"
                 "'path_patterns':['*/x','?:/windows/**'],'requires_checksum':true,'more':1},"
                 "'layout':{'type':'symstore_index2','casing':'uppercase'}}]");
    assert_int_equal(s->filetypes, 1u << FILE_PE | 1u << FILE_MACH_CODE);
    assert_int_equal(s->path_pattern_count, 2);
    same(s->path_patterns[1], "?:/windows/**");
    assert_int_equal(s->layout, LAYOUT_SYMSTORE_INDEX2);
    assert_int_equal(s->casing, CASING_UPPERCASE);
    assert_true(s->requires_checksum && s->is_public && s->has_index && s->file_ptr);
    assert_int_equal(parse("[]", &all), SL_OK);
    assert_int_equal(source_count, 0);
}

TEST(type_and_layout_names_are_read)
{
    static const char *const types[] = {"pe",           "pdb",      "portablepdb", "mach_debug", "mach_code",
                                        "elf_debug",    "elf_code", "wasm_debug",  "wasm_code",  "breakpad",
                                        "sourcebundle", "uuidmap",  "bcsymbolmap", "il2cpp",     "proguard"};
    static const char *const layouts[] = {"native",     "symstore", "symstore_index2", "ssqp",
                                          "debuginfod", "unified",  "slashsymbols"};
    char json[256];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(json, sizeof json, "[{'id':'a','type':'http','url':'https://h/','filters':{'filetypes':['%s']}}]",
                 types[i]);
        assert_int_equal(accepted(json)->filetypes, 1u << i);
    }
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        snprintf(json, sizeof json, "[{'id':'a','type':'http','url':'https://h/','layout':{'type':'%s'}}]", layouts[i]);
        assert_int_equal(accepted(json)->layout, i);
    }
}

TEST(invalid_sources_name_the_key)
{
#define HTTP "'id':'a','type':'http','url':'https://h/'"
    refused("{}", "sources");
    refused("[1]", "sources[0]");
    refused("[null]", "sources[0]");
    refused("[{'type':'http','url':'https://h/'}]", "sources[0].id");
    refused("[{'id':null,'type':'http','url':'https://h/'}]", "sources[0].id");
    refused("[{'id':1,'type':'http','url':'https://h/'}]", "sources[0].id");
    refused("[{'id':'a'}]", "sources[0].type");
    refused("[{'id':'a','type':'objectstore'}]", "sources[0].type");
    refused("[{'id':'a','type':'HTTP','url':'https://h/'}]", "sources[0].type");
    refused("[{'id':'a','type':'http'}]", "sources[0].url");
    refused("[{'id':'a','type':'http','url':'h/x'}]", "sources[0].url");
    refused("[{'id':'a','type':'http','url':'/x'}]", "sources[0].url");
    refused("[{'id':'a','type':'http','url':'https://h/\\u0000'}]", "sources[0].url");
    refused("[{" HTTP "},{" HTTP ",'filters':null}]", "sources[1].filters");
    refused("[{" HTTP ",'filters':{'filetypes':null}}]", "sources[0].filters.filetypes");
    refused("[{" HTTP ",'filters':{'filetypes':['mach-code']}}]", "sources[0].filters.filetypes");
    refused("[{" HTTP ",'filters':{'filetypes':[1]}}]", "sources[0].filters.filetypes");
    refused("[{" HTTP ",'filters':{'path_patterns':['[a']}}]", "sources[0].filters.path_patterns");
    refused("[{" HTTP ",'filters':{'path_patterns':['***']}}]", "sources[0].filters.path_patterns");
    refused("[{" HTTP ",'filters':{'path_patterns':['a**']}}]", "sources[0].filters.path_patterns");
    refused("[{" HTTP ",'filters':{'requires_checksum':null}}]", "sources[0].filters.requires_checksum");
    refused("[{" HTTP ",'layout':null}]", "sources[0].layout");
    refused("[{" HTTP ",'layout':{'type':'Native'}}]", "sources[0].layout.type");
    refused("[{" HTTP ",'layout':{'casing':'mixed'}}]", "sources[0].layout.casing");
    refused("[{" HTTP ",'is_public':null}]", "sources[0].is_public");
    refused("[{" HTTP ",'is_public':'true'}]", "sources[0].is_public");
    refused("[{" HTTP ",'has_index':1}]", "sources[0].has_index");
    refused("[{" HTTP ",'headers':[]}]", "sources[0].headers");
    refused("[{" HTTP ",'headers':{'a':1}}]", "sources[0].headers");
    refused("[{" HTTP ",'accept_invalid_certs':null}]", "sources[0].accept_invalid_certs");
    refused("[{'id':'a','type':'filesystem'}]", "sources[0].path");
}

TEST(headers_are_sorted)
{
    const struct source *s = accepted("[{" HTTP ",'headers':{'b':'2','a':'1','B':''}}]");
    assert_int_equal(s->header_count, 3);
    same(s->headers[0].name, "B");
    same(s->headers[1].name, "a");
    same(s->headers[2].name, "b");
    same(secret_open(s->headers[2].value), "2");
}

TEST(s3_sources_are_read)
{
    const struct source *s = accepted("[{'id':'a','type':'s3','bucket':'b','prefix':'//eggs/bacon/"
                                      "','region':'us-east-1','access_key':'k','secret_key':'s'}]");
    same(s->bucket.prefix, "eggs/bacon");
    same(s->bucket.region, "us-east-1");
    assert_int_equal(s->bucket.endpoint.size, 0);
    assert_int_equal(s->bucket.credentials, CREDENTIALS_STATIC);
    same(secret_open(s->bucket.secret_key), "s");
    s = accepted("[{'id':'a','type':'s3','bucket':'b','region':['r','http://minio:9000'],"
                 "'aws_credentials_provider':'container'}]");
    same(s->bucket.region, "r");
    same(s->bucket.endpoint, "http://minio:9000");
    assert_int_equal(s->bucket.credentials, CREDENTIALS_CONTAINER);
    static const char *const regions[] = {"null", "[]", "['r']", "['r','e','x']", "['r',1]", "1", "{}"};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        char json[128];
        snprintf(json, sizeof json, "[{'id':'a','type':'s3','bucket':'b','region':%s}]", regions[i]);
        refused(json, "sources[0].region");
    }
    refused("[{'id':'a','type':'s3','bucket':'b'}]", "sources[0].region");
    refused("[{'id':'a','type':'s3','region':'r'}]", "sources[0].bucket");
    refused("[{'id':'a','type':'s3','bucket':'b','region':'r','aws_credentials_provider':'Static'}]",
            "sources[0].aws_credentials_provider");
}

TEST(gcs_sources_are_read)
{
    const struct source *s = accepted(
        "[{'id':'a','type':'gcs','bucket':'b','private_key':'x\\\\ny','client_email':'m','bearer_token':'t'}]");
    same(secret_open(s->bucket.private_key), "x\ny");
    assert_false(secret_present(s->bucket.bearer_token));
    s = accepted("[{'id':'a','type':'gcs','bucket':'b','private_key':'half','bearer_token':'t'}]");
    assert_false(secret_present(s->bucket.private_key));
    same(secret_open(s->bucket.bearer_token), "t");
    s = accepted("[{'id':'a','type':'gcs','bucket':'b','private_key':'','client_email':''}]");
    assert_true(secret_present(s->bucket.private_key));
    refused("[{'id':'a','type':'gcs','bucket':'b'}]", "sources[0].private_key");
    refused("[{'id':'a','type':'gcs','bucket':'b','private_key':'k'}]", "sources[0].private_key");
    refused("[{'id':'a','type':'gcs','bucket':'b','client_email':'m'}]", "sources[0].private_key");
}

TEST(sentry_sources_are_read)
{
    const struct source *s =
        accepted("[{'id':'a','type':'sentry','url':'http://10.0.0.1/','token':'t','filters':null}]");
    assert_true(s->internal);
    same(secret_open(s->token), "t");
    accepted("[{'id':'a','type':'sentry','url':'http://h/','cookies':'c'}]");
    refused("[{'id':'a','type':'sentry','url':'http://h/'}]", "sources[0].token");
    refused("[{'id':'a','type':'sentry','url':'http://h/','token':'t','cookies':'c'}]", "sources[0].token");
}

TEST(requests_may_not_use_privileged_sources)
{
    refused_by(&request, "[{" HTTP "},{'id':'a','type':'filesystem','path':'/'}]", "sources[1].type",
               "filesystem sources are refused in requests (allow_filesystem_sources_in_requests)");
    refused_by(&request, "[{'id':'a','type':'s3','bucket':'b','region':'r','aws_credentials_provider':'container'}]",
               "sources[0].aws_credentials_provider",
               "only static credentials are accepted in requests (allow_ambient_credentials_in_requests)");
    assert_int_equal(
        parse("[{'id':'a','type':'s3','bucket':'b','region':'r','aws_credentials_provider':'static'}]", &request),
        SL_OK);
    assert_int_equal(parse("[{'id':'a','type':'sentry','url':'http://h/','token':'t'}]",
                           &(struct source_policy){.internal_sentry = false}),
                     SL_OK);
    assert_false(sources[0].internal);

    static const struct sl_str hosts[] = {{"sentry.example", 14}, {"*.sentry.io", 11}};
    const struct source_policy narrow = {.sentry_hosts = hosts, .sentry_host_count = 2};
    static const struct {
        const char *host;
        bool allowed;
    } rows[] = {{"sentry.example", true},    {"SENTRY.example:8443", true},  {"a.sentry.io", true},
                {"a.b.sentry.io", true},     {"sentry.io", false},           {"evilsentry.io", false},
                {"a.sentry.io.evil", false}, {"sentry.example@evil", false}, {"x.sentry.example", false},
                {"127.0.0.1", false},        {"evil#@sentry.example", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[128];
        snprintf(json, sizeof json, "[{'id':'a','type':'sentry','url':'https://%s/','token':'t'}]", rows[i].host);
        assert_int_equal(parse(json, &narrow) == SL_OK, rows[i].allowed);
    }
}

/* Secrets come as text only: a request must not name files. */
TEST(requests_may_not_name_secret_files)
{
    refused("[{'id':'a','type':'sentry','url':'http://h/','token_file':'/etc/hostname'}]", "sources[0].token");
    const struct source *s =
        accepted("[{'id':'a','type':'s3','bucket':'b','region':'r','secret_key_file':'/etc/hostname'}]");
    assert_false(secret_present(s->bucket.secret_key));
}

static int forget(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

TEST_FILE(.teardown = forget);
