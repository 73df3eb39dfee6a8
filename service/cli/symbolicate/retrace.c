/* The program under the name `retrace`: traces as R8's and ProGuard's retrace take and write them. */
#include "cli/symbolicate/symbolicate.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "jvm/mapping.h"

static const struct option_spec retrace_specs[] = {
    {"verbose", 0, OPTION_FLAG, false, NULL, "methods with the types that they return and take"},
    {"regex", 0, OPTION_VALUE, false, "EXPRESSION",
     "lines to be read: where it has %c is a class (%C with slashes), %m a method, %f a field, %t a type, %a types of "
     "arguments, %s a source file, %l a line, %S both"},
    {"allclassnames", 0, OPTION_FLAG, false, NULL,
     "change names of classes wherever they stand, not only of exceptions"},
    {"verify-mapping-file-hash", 0, OPTION_FLAG, false, NULL,
     "refuse a mapping that is not as R8 wrote it; without TRACE do nothing else"},
    {"info", 0, OPTION_FLAG, false, NULL, "accepted: there are no further messages"},
    {"quiet", 0, OPTION_FLAG, false, NULL, "report errors only"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* ---- the hash of a mapping ---- */

static bool sha256_hex(struct sl_str text, char hex[65])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(text.data, text.size, digest, &size, EVP_sha256(), NULL) != 1)
        return false;
    for (unsigned i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

/* R8 writes `# pg_map_hash: SHA-256 <64 hex digits>`: the hash of all that follows that line. */
static enum sl_code check_hash(struct sl_str text, struct sl_error *error)
{
    static const struct sl_str kind = SL_STR("SHA-256 ");
    struct sl_jvm_reader reader = sl_jvm_reader(text);
    struct sl_jvm_record r;
    char hex[65];
    while (sl_jvm_reader_next(&reader, &r) && r.kind != SL_JVM_RECORD_CLASS) {
        if (r.kind != SL_JVM_RECORD_HEADER || !sl_str_equal(r.key, SL_STR("pg_map_hash")))
            continue;
        if (!sl_str_starts(r.value, kind))
            return sl_fail(error, SL_MALFORMED, "its pg_map_hash is not of SHA-256");
        struct sl_str wanted = {r.value.data + kind.size, r.value.size - kind.size};
        const char *line = memchr(r.value.data, '\n', (size_t)(text.data + text.size - r.value.data));
        const char *rest = line ? line + 1 : text.data + text.size;
        if (!sha256_hex((struct sl_str){rest, (size_t)(text.data + text.size - rest)}, hex))
            return sl_fail(error, SL_BUSY, "out of memory");
        if (!sl_str_equal_nocase(wanted, sl_str(hex)))
            return sl_fail(error, SL_MALFORMED,
                           "it was changed: its pg_map_hash is " SL_STR_FMT ", its contents have %s",
                           SL_STR_ARG(wanted), hex);
        return SL_OK;
    }
    fprintf(stderr, "warning: the mapping has no pg_map_hash: nothing tells whether it was changed\n");
    return SL_OK;
}

static int verify(const char *path)
{
    struct sl_mapping file;
    struct sl_error error = {0};
    enum sl_code code = sl_map_file(path, &file, &error);
    if (code == SL_OK) {
        code = check_hash((struct sl_str){(const char *)file.bytes.data, file.bytes.size}, &error);
        sl_unmap(&file);
    }
    return code == SL_OK ? 0 : report_file(path, code, &error);
}

/* ---- the command ---- */

static int retrace_run(const struct options *o)
{
    if (!o->argument_count)
        return options_wrong("retrace", "no mapping given");
    if (!options_arguments(o, 2, "retrace"))
        return 2;
    const char *mapping = o->arguments[0];
    struct missing_report missing;
    missing_init(&missing, &missing_mappings);
    const struct trace_words words = {.missing = &missing,
                                      .regex = option_value(o, "regex", NULL),
                                      .verbose = option_given(o, "verbose"),
                                      .all_classes = option_given(o, "allclassnames")};
    bool verifies = option_given(o, "verify-mapping-file-hash");
    int status = verifies ? verify(mapping) : 0;
    if (!status && (!verifies || o->argument_count > 1)) {
        status = symbolicate_trace(o->argument_count > 1 ? o->arguments[1] : "-", &mapping, 1, &words);
        if (!status)
            missing_tell(&missing, o);
    }
    missing_free(&missing);
    return status;
}

/* Other retraces take one dash for two. */
static char *with_two_dashes(char *word)
{
    static const char *const others[] = {"help", "version"};
    static char names[sizeof retrace_specs / sizeof *retrace_specs + 2][32];
    if (word[0] != '-' || word[1] == '-' || !word[1])
        return word;
    size_t count = 0;
    for (const struct option_spec *s = retrace_specs; s->name; s++, count++)
        if (strcmp(s->name, word + 1) == 0) {
            snprintf(names[count], sizeof names[count], "--%s", s->name);
            return names[count];
        }
    for (size_t i = 0; i < 2; i++)
        if (strcmp(others[i], word + 1) == 0) {
            snprintf(names[count + i], sizeof names[count + i], "--%s", others[i]);
            return names[count + i];
        }
    return word;
}

static int retrace_main(const struct command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        argv[i] = with_two_dashes(argv[i]);
    return command_parse_and_run(command, argc, argv);
}

const struct command command_retrace = {
    .name = "retrace",
    .usage = "retrace [OPTION..] MAPPING [TRACE]",
    .about = "A stack trace, or a log with such in it, with the names and lines of the source, as R8's "
             "retrace writes it.\nOptions may have one dash or two.",
    .options = retrace_specs,
    .run = retrace_run,
    .main = retrace_main,
};
