/* Reads a file as a part of the service does that no command shows: for test/cost/run.py.
 *
 *     readers KIND FILE */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/named_file.h"
#include "api/page/page.h"
#include "api/pyroscope/pyroscope.h"
#include "api/sentry/sentry.h"
#include "api/sym_upload/sym_upload.h"
#include "text/text.h"
#include "apple/apple.h"
#include "apple/samples.h"
#include "base/file.h"
#include "cache/cache.h"
#include "config/config.h"
#include "cache_kinds/converters.h"
#include "conversion/archives.h"
#include "conversion/crashes.h"
#include "debug_file_store/converters.h"
#include "dwarf/listing.h"
#include "jit/jit.h"
#include "js/comment.h"
#include "js/smcache.h"
#include "js/scope.h"
#include "scan/converters.h"
#include "search/search.h"
#include "elfcore/elfcore.h"
#include "minidump/analysis.h"
#include "minidump/facts.h"
#include "ppdb/table.h"
#include "source/bundle.h"
#include "source/il2cpp.h"
#include "symbfile/symbfile.h"
#include "symcache/symcache.h"

static enum sl_code read_ppdb(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct sl_buf out = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    struct sl_ppdb_table table;
    enum sl_code code = sl_ppdb_open(file, &arena, &ppdb, &info, error);
    if (code == SL_OK)
        code = sl_ppdb_table_build(ppdb, &info, &out, NULL, error);
    if (code == SL_OK)
        code = sl_ppdb_table_open(sl_buf_bytes(&out), &table, error);
    if (code == SL_OK)
        code = sl_ppdb_table_verify(&table, error);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

static enum sl_code read_il2cpp(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_il2cpp *map;
    enum sl_code code = sl_il2cpp_open(file, budget, &map, error);
    sl_il2cpp_close(map);
    return code;
}

static enum sl_code read_symbfile(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_buf out = {0};
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(-1);
    if (!builder)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_symbfile_builder_limit(builder, budget);
    enum sl_code code = sl_symbfile_read(file, sl_symbfile_builder_sink(builder), error);
    if (code == SL_OK)
        code = sl_symbfile_builder_finish(builder, &out, error);
    sl_symbfile_builder_free(builder);
    sl_buf_free(&out);
    return code;
}

/* All files are looked for by their own path and URL, and what the links say of them. */
static enum sl_code read_bundle(struct sl_bytes bytes, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_bundle *bundle;
    struct sl_buf url = {.budget = budget};
    enum sl_code code = sl_bundle_open(bytes, budget, &bundle, error);
    for (size_t i = 0; code == SL_OK && i < sl_bundle_count(bundle); i++) {
        const struct sl_bundle_file *file = sl_bundle_file(bundle, i);
        sl_buf_clear(&url);
        sl_bundle_by_path(bundle, file->path);
        sl_bundle_by_url(bundle, file->url);
        sl_bundle_link(bundle, file->path, &url);
    }
    sl_bundle_close(bundle);
    sl_buf_free(&url);
    return code;
}

/* All names are put together. */
static enum sl_code read_scopes(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_js_scopes scopes;
    struct sl_buf name = {0};
    struct sl_account account = {.budget = budget};
    enum sl_code code =
        sl_js_scopes_read(&scopes, (struct sl_str){(const char *)file.data, file.size}, false, budget, error);
    for (uint32_t i = 0; i < scopes.count && sl_js_scope_name(&scopes, i, NULL, &account, &name); i++)
        sl_buf_clear(&name);
    sl_buf_free(&name);
    sl_js_scopes_free(&scopes);
    return code;
}

/* A script, for what its last comments say. */
static enum sl_code read_comments(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_str script = {(const char *)file.data, file.size}, reference;
    struct sl_debug_id id;
    (void)budget; /* it takes no memory */
    (void)error;
    sl_js_map_comment(script, &reference);
    sl_js_debug_id_comment(script, &id);
    return SL_OK;
}

/* A source map, and behind a NUL its script. */
static enum sl_code read_smcache(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    const char *text = (const char *)file.data, *nul = memchr(text, 0, file.size);
    struct sl_str map = {text, nul ? (size_t)(nul - text) : file.size};
    struct sl_str script = {nul ? nul + 1 : "", nul ? file.size - map.size - 1 : 0};
    struct sl_buf out = {0};
    struct sl_smcache cache;
    enum sl_code code = sl_smcache_write(script, map, &(struct sl_smcache_options){0}, budget, &out, error);
    if (code == SL_OK)
        code = sl_smcache_open(sl_buf_bytes(&out), &cache, error);
    sl_buf_free(&out);
    return code;
}

/* A program whose functions are to have their variables. */
static enum sl_code read_variables(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_object *object;
    struct sl_symcache cache;
    struct sl_buf out = {0};
    (void)budget; /* the object has its own */
    enum sl_code code = sl_object_open(file, NULL, &object, error);
    if (code != SL_OK)
        return code;
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .variables = true};
    code = sl_symcache_convert(object, NULL, &options, NULL, &out, error);
    if (code == SL_OK)
        code = sl_symcache_open(sl_buf_bytes(&out), &cache, error);
    if (code == SL_OK)
        code = sl_symcache_verify(&cache, error);
    sl_buf_free(&out);
    sl_object_close(object);
    return code;
}

/* What a process says of its code, as a map or as a dump. */
static enum sl_code read_jit(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    const struct sl_breakpad_options options = {.os = SL_STR("Linux"), .arch = SL_STR("x86_64"), .id = SL_STR("0")};
    struct sl_jit_code code = {0};
    struct sl_buf out = {0};
    size_t count;
    enum sl_code result = sl_jit_is_dump(file) ? sl_jit_read_dump(file, &code, budget, error)
                                               : sl_jit_read_perf_map(file, &code, budget, error);
    if (result == SL_OK)
        result = sl_jit_finish(&code, error);
    if (result == SL_OK)
        result = sl_jit_write(&code, 0, UINT64_MAX, &options, &out, &count, error);
    sl_jit_free(&code);
    sl_buf_free(&out);
    return result;
}

/* A minidump with all that it tells beside the crash, and what is made of its crash. */
static enum sl_code read_facts(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct sl_minidump dump;
    struct sl_minidump_facts facts;
    struct sl_minidump_analysis analysis;
    enum sl_code code = sl_minidump_read(file, &arena, &dump, error);
    if (code == SL_OK && !sl_minidump_enter_wow64(&dump, &arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = sl_minidump_read_facts(&dump, &arena, &facts, error);
    if (code == SL_OK)
        code = sl_minidump_analyse(&dump, &arena, &analysis, error);
    for (size_t i = 0; code == SL_OK && i < dump.crash.thread_count; i++)
        sl_minidump_last_error(&dump, i, &arena);
    sl_arena_free(&arena);
    return code;
}

/* An ELF core file, and the smaller one that is made of it. */
static enum sl_code read_core(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct sl_elfcore core;
    int fd = sl_unlinked_file("/tmp");
    enum sl_code code =
        fd < 0 ? sl_fail(error, SL_INTERNAL, "no temporary file") : sl_elfcore_read(file, &arena, &core, error);
    if (code == SL_OK)
        code = sl_elfcore_trim(file, fd, error);
    sl_arena_free(&arena);
    sl_close(fd);
    return code;
}

/* The analysis of the crash of an ELF core file. The file of its first module follows, then the size of that file in 8 bytes. */
static enum sl_code read_core_code(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct core_analysis_options options = {.module = 0x10000};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = memfd_create("packed", MFD_CLOEXEC)};
    struct conversion *conversion = calloc(1, sizeof *conversion);
    struct core_analysis_result result;
    uint64_t size = 0;
    if (file.size < sizeof size || !conversion || call.out < 0)
        return sl_fail(error, SL_INTERNAL, "no size of the module's file, or no memory");
    (void)budget; /* the conversion has its own */
    sl_budget_init(&conversion->budget, file.size);
    memcpy(&size, file.data + file.size - sizeof size, sizeof size);
    file.size -= sizeof size;
    converter_add_bytes(&call, INPUT_FILE, sl_bytes_part(file, 0, file.size - size));
    if (size)
        converter_add_bytes(&call, INPUT_CODE, sl_bytes_part(file, file.size - size, size));
    enum sl_code code = converter_core_analysis.convert(conversion, &call, &result, error);
    close(call.out);
    free(conversion);
    return code;
}

/* A report of Apple's systems. */
static enum sl_code read_report(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    const struct sl_apple_options options = {.names_from_report = true, .split_os_version = true, .all_causes = true};
    struct sl_arena arena = {.budget = budget};
    struct sl_crash crash;
    enum sl_code code = sl_apple_read(file, &options, &arena, &crash, error);
    sl_arena_free(&arena);
    return code;
}

static enum sl_code read_listing(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_object_limits limits = {.budget = budget};
    struct sl_object *object;
    enum sl_code code = sl_object_open(file, &limits, &object, error);
    if (code != SL_OK)
        return code;
    struct sl_arena arena = {.budget = budget};
    struct sl_dwarf_listing *listing = sl_dwarf_listing_new(object, NULL);
    for (size_t i = 0; listing && i < sl_dwarf_listing_count(listing); i++) {
        const struct sl_dwarf_range *ranges;
        struct sl_dwarf_unit unit;
        sl_dwarf_listing_ranges(listing, i, &ranges);
        code = sl_dwarf_listing_read(listing, i, &arena, &unit, error);
    }
    sl_arena_free(&arena);
    sl_dwarf_listing_free(listing);
    sl_object_close(object);
    return code;
}

/* Whether a file of debug information names a source file; and the sections of the file, by name. */
static enum sl_code read_source_path(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    static const struct reader_limits limits;
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits), .out = -1};
    struct conversion conversion = {.clock = {0}};
    struct source_path_result named = {.named = false};
    struct raw_section_result section;
    sl_budget_init(&conversion.budget, file.size);
    (void)budget;
    converter_add_bytes(&call, INPUT_FILE, file);
    converter_add_text(&call, INPUT_NAME, SL_STR("/nowhere/f"));
    enum sl_code code = converter_source_path.convert(&conversion, &call, &named, error);
    return code == SL_OK ? converter_raw_section.convert(&conversion, &call, &section, error) : code;
}

/* What the page says of a text. */
static enum sl_code read_page(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_buf json = {0};
    (void)budget, (void)error; /* its answer is small */
    page_recognise(file, &json);
    sl_buf_free(&json);
    return SL_OK;
}

/* A text with stacks: its pieces, and each frame with two calls. */
static enum sl_code read_text(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    static const struct sl_text_call calls[] = {{.function = {"f", 1}, .path = {"/a.c", 4}, .line = 1},
                                                {.function = {"g", 1}}};
    struct sl_text text;
    struct sl_text_piece piece;
    struct sl_buf out = {0};
    uint64_t shift = 0;
    (void)budget; /* what it keeps is limited */
    sl_text_begin(&text);
    for (const char *at = (const char *)file.data, *end = at + file.size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;
        struct sl_str line = {at, (size_t)(next - at)};
        while (sl_text_next(&text, &line, &piece))
            if (piece.kind == SL_TEXT_NATIVE) {
                sl_text_resolve(&text, &piece.native);
                sl_text_write(&piece.native, calls, 2, &shift, &out);
            }
        sl_buf_clear(&out);
        at = next;
    }
    bool good = !text.out_of_memory && !out.failed;
    sl_text_end(&text);
    sl_buf_free(&out);
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* A file that is written back with names: at each address there are inlined calls. */
static enum sl_code read_named(struct sl_bytes bytes, struct sl_budget *budget, struct sl_error *error)
{
    static const struct named_call items[] = {{SL_STR("f"), SL_STR("/a/b.c"), SL_STR("b.c"), 1},
                                              {SL_STR("g"), SL_STR("/a/b.c"), SL_STR("b.c"), 2},
                                              {SL_STR("main"), SL_STR(""), SL_STR(""), 0}};
    const struct named_calls calls = {items, 3, 16, true};
    struct sl_arena arena = {.budget = budget};
    struct named_file file;
    struct sl_buf out = {.budget = budget};
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    enum sl_code code = sl_samples_is_text(text) ? named_samples_read(bytes, &arena, &file, error)
                                                 : named_profile_read(text, &arena, &file, error);
    for (size_t i = 0; code == SL_OK && i < file.address_count; i++)
        if (!file.format->take(&file, i, &calls))
            code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = file.format->write(&file, &out, error);
    named_file_end(&file);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

static void find_own(const struct supplied_objects *own, const struct supplied_object *object)
{
    struct object_id id = {.type = OBJECT_ELF, .debug_id = object->debug_id, .has_debug_id = true};
    supplied_objects_find(own, search_symbols_target(&id, false), &id);
    supplied_objects_find(own, &search_unwind_target, &id);
    id.has_debug_id = false;
    id.code_id = object->code_id;
    supplied_objects_find(own, search_symbols_target(&id, false), &id);
}

/* A debug file that came with a request, whose modules are all that are in it. */
static enum sl_code read_own(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct supplied_objects *own = SL_ARENA_NEW(&arena, struct supplied_objects);
    (void)budget;
    bool good = own != NULL;
    if (good) {
        *own = (struct supplied_objects){.arena = &arena, .bytes_left = 1 << 30};
        good = supplied_objects_add(own, SL_STR("a"), file, error) == SL_OK;
    }
    for (size_t i = 0; good && i < own->count; i++)
        find_own(own, &own->items[i]);
    sl_arena_free(&arena);
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* An uploaded archive: its directory, and each of its members, as long as they can be different parts of it. */
static enum sl_code read_archive(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct member_check_options options = {.window = {0, file.size}};
    struct conversion_description about = {.size = file.size};
    struct member_check_result told;
    struct sl_zip zip;
    int entries;
    uint64_t packed = 0;
    enum sl_code code = archive_list(-1, &options.window, file, &entries, error);
    if (code != SL_OK)
        return code;
    code = archive_read_entries(entries, file, &arena, &zip, error);
    for (size_t i = 0; code == SL_OK && i < zip.count && (packed += zip.entries[i].packed) <= file.size; i++) {
        struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = -1};
        converter_add_bytes(&call, INPUT_FILE, file);
        options.entry = archive_pack_entry(&zip, &zip.entries[i]);
        conversion_run(&about, &converter_member_check, &call, &told, error);
    }
    close(entries);
    sl_arena_free(&arena);
    return code;
}

/* A compressed download. */
static enum sl_code read_packed(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    const struct unpack_options options = {unpack_detect(file), UINT64_C(1) << 30, 1000};
    struct conversion_description about = {.size = file.size};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = memfd_create("packed", MFD_CLOEXEC)};
    struct unpack_result told;
    (void)budget;
    converter_add_bytes(&call, INPUT_FILE, file);
    enum sl_code code = conversion_run(&about, &converter_unpack, &call, &told, error);
    close(call.out);
    return code;
}

/* Makes the paths, one a line, below the directory; those that end with a slash are directories. */
static void make_paths(const char *directory, struct sl_str paths)
{
    struct sl_str line;
    char path[4096];
    while (sl_str_next_line(&paths, &line)) {
        snprintf(path, sizeof path, "%s/" SL_STR_FMT, directory, SL_STR_ARG(line));
        FILE *file = sl_str_ends(line, SL_STR("/")) ? NULL : fopen(path, "w");
        if (file)
            fclose(file);
        else
            mkdir(path, 0700);
    }
}

/* What of a cache is on disk: the file is a list of its paths. */
static enum sl_code read_measure(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    static const struct cache_kind kind = {.name = "kind"};
    const struct cache_kind *const measured[] = {&kind};
    char directory[] = "/tmp/symloom-cost-XXXXXX", command[64];
    (void)budget;
    if (!mkdtemp(directory))
        return sl_fail(error, SL_INTERNAL, "no temporary directory");
    make_paths(directory, (struct sl_str){(const char *)file.data, file.size});
    for (int i = 0; i < 20; i++) /* making them counts little then */
        cache_measure(directory, measured, 1);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) == 0 ? SL_OK : sl_fail(error, SL_INTERNAL, "%s stays", directory);
}

/* The bodies of upload doors, each as what it says and as every other one. */
static enum sl_code read_door(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct sl_str body = {(const char *)file.data, file.size};
    struct symbol_description description;
    struct debuginfo_file asked;
    struct assembly_file *files;
    const char *problem;
    size_t count;
    struct sentry_release release;
    symbol_description_read(body, &description);
    sentry_read_release(body, &arena, &release, &problem);
    sentry_read_files(body, &arena, &files, &count, &problem);
    debuginfo_read(file, true, true, &arena, &asked, error);
    debuginfo_read(file, false, true, &arena, &asked, error);
    sl_arena_free(&arena);
    return SL_OK;
}

/* An uploaded file: what it is, and the debug ids of its files, if it is a bundle. */
static enum sl_code read_upload(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    static const struct reader_limits limits;
    struct conversion_description about = {.size = file.size};
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits), .out = -1},
                          indexing = {.out = memfd_create("ids", MFD_CLOEXEC)};
    struct upload_check_result *found = calloc(1, sizeof *found);
    struct artifact_index_result *index = calloc(1, sizeof *index);
    (void)budget; /* the conversion has its own */
    if (!found || !index || indexing.out < 0)
        return sl_fail(error, SL_BUSY, "out of memory");
    converter_add_bytes(&call, INPUT_FILE, file);
    converter_add_bytes(&indexing, INPUT_FILE, file);
    conversion_run(&about, &converter_upload_check, &call, found, error);
    enum sl_code code = conversion_run(&about, &converter_artifact_index, &indexing, index, error);
    close(indexing.out);
    free(found);
    free(index);
    return code == SL_MALFORMED || code == SL_UNSUPPORTED ? SL_OK : code; /* most uploads are no bundles */
}

/* The record of a scanned package. */
static enum sl_code read_scanned(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error)
{
    static const struct scan_file_options options = {
        .max_member = UINT64_MAX, .max_ratio = 1000, .kinds = SCAN_ALL_KINDS};
    struct scan_file_result result = {0};
    struct conversion *conversion = calloc(1, sizeof *conversion);
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = open("/dev/null", O_RDWR)};
    (void)budget; /* the conversion has its own */
    if (!conversion || call.out < 0)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_budget_init(&conversion->budget, file.size);
    converter_add_bytes(&call, INPUT_FILE, file);
    converter_add_text(&call, INPUT_NAME, SL_STR("a_1.orig.tar.xz"));
    enum sl_code code = converter_scan_file.convert(conversion, &call, &result, error);
    close(call.out);
    free(conversion);
    return code;
}

static const struct {
    const char *name;
    enum sl_code (*read)(struct sl_bytes file, struct sl_budget *budget, struct sl_error *error);
} kinds[] = {
    {"ppdb", read_ppdb},           {"il2cpp", read_il2cpp},
    {"symbfile", read_symbfile},   {"bundle", read_bundle},
    {"scopes", read_scopes},       {"smcache", read_smcache},
    {"variables", read_variables}, {"jit", read_jit},
    {"comments", read_comments},   {"facts", read_facts},
    {"report", read_report},       {"page", read_page},
    {"named", read_named},         {"own", read_own},
    {"measure", read_measure},     {"text", read_text},
    {"listing", read_listing},     {"core", read_core},
    {"core_code", read_core_code}, {"source_path", read_source_path},
    {"scanned", read_scanned},     {"archive", read_archive},
    {"packed", read_packed},       {"door", read_door},
    {"upload", read_upload},
};

int main(int argc, char **argv)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++) {
        struct sl_budget budget;
        if (strcmp(kinds[i].name, argv[1]) != 0)
            continue;
        enum sl_code code = sl_map_file(argv[2], &mapping, &error);
        if (code == SL_OK) {
            sl_budget_init(&budget, mapping.bytes.size);
            code = kinds[i].read(mapping.bytes, &budget, &error);
            sl_unmap(&mapping);
        }
        printf("%s %s\n", sl_code_name(code), error.message);
        return code != SL_OK;
    }
    fprintf(stderr, "usage: readers KIND FILE\n");
    return 2;
}
