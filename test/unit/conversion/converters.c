/* Converters: everything they are told and tell is plain, and the same call makes the same bytes. */
#include "../cache/support.h"
#include "../fixture.h"
#include "../ppdb/image.h"
#include "stacks.h"

#include <sys/mman.h>

#include "cache_kinds/converters.h"
#include "conversion/archives.h"
#include "catalog/catalog.h"
#include "conversion/conversion.h"
#include "debug_file_store/converters.h"
#include "scan/converters.h"
#include "conversion/isolation.h"
#include "conversion/crashes.h"
#include "conversion/disassembly.h"
#include "search/converters.h"
#include "source/bundle.h"
#include "symbfile/symbfile.h"
#include "symbfile_store/converters.h"

/* ---- a call of each ---- */
struct sample {
    const struct converter *converter;
    struct converter_call call;
    bool writes;
};

static const struct reader_limits limits;
static const struct symcache_options symcache = {.variables = true, .complete = true};
static const struct sourcemap_options sourcemap = {.partial_scopes = true};
static const struct unpack_options unpack = {.format = UNPACK_GZIP, .max_size = 1 << 20, .max_ratio = 1000};
static const struct symbfile_index_options index_options = {.max_bytes = 1 << 20};
static const struct scan_file_options scan_options = {.max_member = 1 << 20, .kinds = SCAN_ALL_KINDS};
static const struct package_member_options member_options = {.size = 3};
static const struct gzip_check_options gzip_check = {.max_size = 5, .head_size = 3};
static const struct supplied_options supplied = {.max_unpacked = 1 << 20, .max_ratio = 1000};
static const struct source_text_options source_text;
static const struct sl_apple_options apple;
static const struct minidump_options minidump = {.details = true};
static const struct walk_options walk_options = {.steps = 1 << 20};
static struct disassembly_options disassembly = {.size = 1};
static const struct core_options core_options = {.command_line = true};
static const struct core_analysis_options core_analysis;
static struct member_check_options member_check;
static struct member_write_options member_write;
static struct object_check_options object_check;
static struct mozilla_syms_options mozilla_syms;
static struct sl_bytes program;
static struct sl_buf ppdb, symbfile, archive, dump, bundle;
static uint64_t symbfile_length;
static int scratch;

#define OBJECT                                                                                                         \
    "MODULE Linux x86_64 67452301AB89EFCD0123456789ABCDEF0 a\nFILE 0 a.c\nFUNC 10 20 0 f\n10 20 7 0\n"                 \
    "STACK CFI INIT 10 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
#define SCRIPT "function f(){g()}"
#define MAP    "{\"version\":3,\"sources\":[\"a.js\"],\"names\":[\"f\"],\"mappings\":\"AAAAA\"}"
#define PLIST                                                                                                          \
    "<plist version=\"1.0\"><dict><key>DBGOriginalUUID</key><string>C8374B6D-6E96-34D8-AE38-EFAA5FEC424F</string>"     \
    "</dict></plist>"

static const struct sl_str
    object = SL_STR(OBJECT),
    plist = SL_STR(PLIST), script = SL_STR(SCRIPT), map = SL_STR(MAP),
    symbol_map = SL_STR("BCSymbolMap Version: 2.0\n_a\n"), line_map = SL_STR("{\"a.cpp\":{\"main.cs\":{\"15\":29}}}"),
    packed =
        SL_STR("\037\213\010\000\000\000\000\000\002\003\313\110\315\311\311\007\000\206\246\020\066\005\000\000\000"),
    report = SL_STR("Process: a [1]\nThread 0:\n0   a   0x0000000000001001 0x1000 + 1\n\nBinary Images:\n"
                    "0x1000 - 0x1fff a x86_64 <c8374b6d6e9634d8ae38efaa5fec424f> /a\n"),
    latin1 = SL_STR("caf\xe9\n"), script_of_map = SL_STR("f()\n//# sourceMappingURL=a.js.map\n"),
    mapping = SL_STR("a.B -> c:\n    1:1:void d():2:2 -> e\n");

static struct sample make_sample(const struct converter *converter, struct sl_bytes options, struct sl_str file,
                                 bool writes)
{
    struct sample sample = {converter, {.options = options, .out = -1}, writes};
    converter_add_text(&sample.call, INPUT_FILE, file);
    return sample;
}

static struct sl_str program_text(void)
{
    return (struct sl_str){(const char *)program.data, program.size};
}

static struct sample make_sourcemap_sample(void)
{
    struct sample sample = {&converter_sourcemap, {.options = CONVERTER_OPTIONS(sourcemap), .out = -1}, true};
    converter_add_text(&sample.call, INPUT_SCRIPT, script);
    converter_add_text(&sample.call, INPUT_SOURCE_MAP, map);
    return sample;
}

static struct sample make_symcache_sample(void)
{
    struct sample sample = make_sample(&converter_symcache, CONVERTER_OPTIONS(symcache), program_text(), true);
    converter_add_text(&sample.call, INPUT_SYMBOL_MAP, symbol_map);
    converter_add_text(&sample.call, INPUT_LINE_MAP, line_map);
    return sample;
}

static struct sample make_index_sample(void)
{
    struct sample sample =
        make_sample(&converter_symbfile_index, CONVERTER_OPTIONS(index_options), sl_buf_view(&symbfile), true);
    converter_add_bytes(&sample.call, INPUT_LENGTHS, CONVERTER_OPTIONS(symbfile_length));
    converter_add_file(&sample.call, INPUT_SCRATCH, scratch);
    return sample;
}

static struct sample make_scan_sample(void)
{
    struct sample sample = make_sample(&converter_scan_file, CONVERTER_OPTIONS(scan_options), program_text(), true);
    converter_add_text(&sample.call, INPUT_NAME, SL_STR("a"));
    return sample;
}

/* A tar archive of one file "a" of three bytes. */
static struct sample make_member_sample(void)
{
    static char whole[1536];
    unsigned sum = 8 * ' ';
    memset(whole, 0, sizeof whole);
    memcpy(whole, "a", 1);
    memcpy(whole + 100, "0000644", 7); /* mode, owner, group, size, time */
    memcpy(whole + 124, "00000000003", 11);
    memcpy(whole + 136, "00000000000", 11);
    whole[156] = '0';
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)whole[i];
    snprintf(whole + 148, 8, "%06o", sum);
    whole[155] = ' ';
    memcpy(whole + 512, "abc", 3);
    struct sample sample = make_sample(&converter_package_member, CONVERTER_OPTIONS(member_options),
                                       (struct sl_str){whole, sizeof whole}, true);
    converter_add_text(&sample.call, INPUT_NAME, SL_STR("/a"));
    return sample;
}

static struct sample make_walk_sample(void)
{
    static struct test_stacks stacks;
    static struct sl_buf request;
    const struct walk_table none = {.module = 0};
    const struct thread_walk walk = {.thread = 0};
    if (!stacks.packed.size) {
        test_stacks_make(&stacks);
        walks_write_request(&walk, 1, &none, 1, &request);
    }
    struct sample sample = {&converter_walk, {.options = CONVERTER_OPTIONS(walk_options), .out = -1}, true};
    converter_add_bytes(&sample.call, INPUT_FILE, stacks.dump.bytes);
    converter_add_bytes(&sample.call, INPUT_STACKS, sl_buf_bytes(&stacks.packed));
    converter_add_bytes(&sample.call, INPUT_WALKS, sl_buf_bytes(&request));
    return sample;
}

/* A sample of a converter that looks for a name in a program. */
static struct sample make_name_sample(const struct converter *converter, struct sl_str name)
{
    struct sample sample = make_sample(converter, CONVERTER_OPTIONS(limits), program_text(), false);
    converter_add_text(&sample.call, INPUT_NAME, name);
    return sample;
}

/* A core file of Linux on amd64 (core(5)): ELF header, one program header, NT_PRSTATUS of a thread with id 7. */
static struct sample make_core_sample(const struct converter *converter, struct sl_bytes options)
{
    enum { HEADERS = 64 + 56, NOTE = 12 + 8 + 336 };
    static uint8_t whole[HEADERS + NOTE];
    static const uint8_t ident[] = {0x7F, 'E', 'L', 'F', 2, 1, 1};
    memcpy(whole, ident, sizeof ident);
    whole[16] = 4;  /* e_type: ET_CORE */
    whole[18] = 62; /* e_machine: EM_X86_64 */
    whole[20] = 1;
    whole[32] = 64; /* e_phoff */
    whole[52] = 64;
    whole[54] = 56;     /* e_phentsize */
    whole[56] = 1;      /* e_phnum */
    whole[64 + 48] = 4; /* p_align */
    whole[64] = 4;      /* p_type: PT_NOTE */
    whole[64 + 8] = HEADERS;
    whole[64 + 32] = NOTE & 0xFF; /* p_filesz */
    whole[64 + 33] = NOTE >> 8;
    whole[HEADERS] = 5; /* size of the name */
    whole[HEADERS + 4] = 336 & 0xFF;
    whole[HEADERS + 5] = 336 >> 8;
    whole[HEADERS + 8] = 1; /* NT_PRSTATUS */
    memcpy(whole + HEADERS + 12, "CORE", 4);
    whole[HEADERS + 20 + 32] = 7; /* pr_pid */
    return make_sample(converter, options, (struct sl_str){(char *)whole, sizeof whole}, true);
}

static struct sample make_archive_sample(const struct converter *converter, struct sl_bytes options, bool writes)
{
    return make_sample(converter, options, sl_buf_view(&archive), writes);
}

static struct sl_bytes no_options(void)
{
    return (struct sl_bytes){NULL, 0};
}

enum { MAX_SAMPLES = 64 };

static size_t make_samples(struct sample samples[MAX_SAMPLES])
{
    struct sl_bytes readers = CONVERTER_OPTIONS(limits);
    const struct sample all[] = {
        make_sample(&converter_object_check, CONVERTER_OPTIONS(object_check), object, false),
        make_sample(&converter_object_meta, readers, program_text(), true),
        make_symcache_sample(),
        make_sample(&converter_ppdb_cache, readers, sl_buf_view(&ppdb), true),
        make_sample(&converter_cficache, readers, program_text(), true),
        make_sample(&converter_embedded_sources, readers, program_text(), true),
        make_sourcemap_sample(),
        make_sample(&converter_uuidmap, no_options(), plist, false),
        make_sample(&converter_bcsymbolmap, no_options(), symbol_map, false),
        make_sample(&converter_il2cpp, no_options(), line_map, false),
        make_sample(&converter_proguard, no_options(), mapping, true),
        make_sample(&converter_mozilla_syms, CONVERTER_OPTIONS(mozilla_syms), object, true),
        make_index_sample(),
        make_sample(&converter_upload_check, readers, program_text(), false),
        make_sample(&converter_artifact_index, no_options(), sl_buf_view(&bundle), false), /* it has no debug ids */
        make_name_sample(&converter_raw_section, SL_STR(".text")),
        make_name_sample(&converter_source_path, SL_STR("/src/f.c")),
        make_scan_sample(),
        make_member_sample(),
        make_sample(&converter_unpack, CONVERTER_OPTIONS(unpack), packed, true),
        make_archive_sample(&converter_archive_list, CONVERTER_OPTIONS(member_write.window), true),
        make_archive_sample(&converter_member_check, CONVERTER_OPTIONS(member_check), false),
        make_archive_sample(&converter_member_write, CONVERTER_OPTIONS(member_write), true),
        make_sample(&converter_gzip_check, CONVERTER_OPTIONS(gzip_check), packed, true),
        make_sample(&converter_supplied, CONVERTER_OPTIONS(supplied), object, true),
        make_sample(&converter_disassembly, CONVERTER_OPTIONS(disassembly), program_text(), true),
        make_sample(&converter_source_text, CONVERTER_OPTIONS(source_text), latin1, true),
        make_sample(&converter_script_facts, no_options(), script_of_map, true),
        make_sample(&converter_embedded_ppdb, readers, sl_buf_view(&ppdb), true),
        make_sample(&converter_apple_report, CONVERTER_OPTIONS(apple), report, true),
        make_sample(&converter_minidump, CONVERTER_OPTIONS(minidump), sl_buf_view(&dump), true),
        make_core_sample(&converter_core, CONVERTER_OPTIONS(core_options)),
        make_core_sample(&converter_core_analysis, CONVERTER_OPTIONS(core_analysis)),
        make_walk_sample(),
    };
    memcpy(samples, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* ---- their files ---- */
static enum sl_code append(void *buf, struct sl_bytes bytes, struct sl_error *failure)
{
    sl_buf_add(buf, bytes.data, bytes.size);
    return SL_OK;
}

static void make_symbfile(void)
{
    struct sl_error error;
    struct sl_symbfile_writer *writer = sl_symbfile_writer_new(append, &symbfile, NULL);
    struct sl_symbfile_range range = {.va = 0x1000, .length = 16, .function = {.str = SL_STR("f")}};
    assert_non_null(writer);
    assert_int_equal(sl_symbfile_write_range(writer, &range, &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(writer, &error), SL_OK);
    sl_symbfile_writer_free(writer);
    symbfile_length = symbfile.size;
}

/* A minidump of Linux on amd64 without threads (minidumpapiset.h of the Windows SDK): header, directory, two streams. */
static void make_dump(void)
{
    const uint32_t words[] = {0x504D444D, 0xA793, 2,  32, 0, 0,      0,  0, /* header */
                              7,          56,     56, 3,  4, 112,           /* SystemInfoStream, ThreadListStream */
                              9,          0,      10, 0,  1, 0x8201, 112};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sl_buf_u32(&dump, words[i]);
    sl_buf_fill(&dump, 0, 28 + 4); /* the rest of the system, no threads */
}

static void make_archive(void)
{
    struct sl_zip_writer writer = {.out = &archive};
    struct sl_arena arena = {0};
    struct sl_error error;
    struct sl_zip zip;
    sl_zip_add(&writer, SL_STR("a"), (struct sl_bytes){(const uint8_t *)"hello", 5});
    assert_int_equal(sl_zip_finish(&writer, &error), SL_OK);
    assert_int_equal(sl_zip_open(sl_buf_bytes(&archive), 0, &arena, &zip, &error), SL_OK);
    member_check.window.size = archive.size;
    member_check.entry = archive_pack_entry(&zip, zip.entries);
    member_write = (struct member_write_options){member_check.window, member_check.entry};
    sl_arena_free(&arena);
}

static void make_bundle(void)
{
    struct sl_error error;
    struct sl_bundle_writer *writer = sl_bundle_writer_new(&bundle);
    assert_non_null(writer);
    assert_true(sl_bundle_add(writer, SL_BUNDLE_MINIFIED_SOURCE, SL_STR(""), SL_STR("~/a.js"),
                              (struct sl_bytes){(const uint8_t *)"f()", 3}));
    assert_int_equal(sl_bundle_finish(writer, NULL, 0, &error), SL_OK);
    sl_bundle_writer_free(writer);
}

static void make_program(void)
{
    static const char text[] = "int f(int a)\n{\n    return a + 1;\n}\n";
    fixture_write("a.c", text, sizeof text - 1);
    fixture_run("clang-14 -g -gdwarf-5 -gembed-source -shared -fPIC -Wl,--build-id -o a.so a.c");
    program = fixture_read("a.so");
}

/* Chooses the address of a function of the program. */
static void find_code(void)
{
    struct sl_arena arena = {0};
    struct sl_error error;
    struct sl_object *opened;
    struct sl_symbol *symbols;
    size_t count;
    assert_int_equal(sl_object_open(program, NULL, &opened, &error), SL_OK);
    assert_int_equal(sl_object_symbols(opened, &arena, &symbols, &count, &error), SL_OK);
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(symbols[i].name, SL_STR("f")))
            disassembly.address = symbols[i].address;
    assert_true(disassembly.address);
    sl_object_close(opened);
    sl_arena_free(&arena);
}

static int begin(void **state)
{
    if (fixture_begin(state))
        return -1;
    make_program();
    struct image image = {.method_rows = 1};
    image_method(&image, image_document(&image, "a/b.cs", guid_csharp), NULL, 0);
    ppdb = image_file(&image);
    image_free(&image);
    make_symbfile();
    make_archive();
    make_dump();
    make_bundle();
    scratch = memfd_create("scratch", MFD_CLOEXEC);
    assert_true(sl_debug_id_parse(SL_STR("67452301-ab89-efcd-0123-456789abcdef"), &mozilla_syms.debug_id));
    object_check.has_debug_id = true;
    object_check.debug_id = mozilla_syms.debug_id;
    find_code();
    struct sl_error error;
    assert_true(isolation_prepare(catalog_converters, catalog_converter_count, catalog_prepare_workers, &error));
    loop_init(4);
    return scratch < 0;
}

static int end(void **state)
{
    free((void *)program.data);
    sl_buf_free(&ppdb);
    sl_buf_free(&symbfile);
    sl_buf_free(&archive);
    sl_buf_free(&dump);
    sl_buf_free(&bundle);
    close(scratch);
    isolation_close();
    loop_close();
    return fixture_end(state);
}

static int configure(void **state)
{
    test_config.conversion.max_memory = 1 << 30;
    test_config.conversion.max_time_ns = 30 * S;
    test_config.conversion.max_heavy = 1;
    conversions_configure(&test_config);
    return 0;
}

/* ---- tests ---- */
TEST(converters_have_names_of_their_own_and_small_options_and_results)
{
    for (size_t i = 0; i < catalog_converter_count; i++) {
        const struct converter *c = catalog_converters[i];
        assert_true(*c->name);
        assert_true(c->options_size <= CONVERTER_MAX_OPTIONS);
        assert_true(c->result_size <= CONVERTER_MAX_RESULT);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(c->name, catalog_converters[j]->name);
    }
}

TEST(there_is_a_sample_of_every_converter)
{
    struct sample samples[MAX_SAMPLES];
    size_t count = make_samples(samples);
    assert_int_equal(count, catalog_converter_count);
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < count && samples[j].converter != catalog_converters[i])
            j++;
        assert_true(j < count);
    }
}

/* What it made; its result goes to `result`. */
static struct sl_buf run_sample(const struct sample *sample, uint8_t result[CONVERTER_MAX_RESULT])
{
    struct sl_error error = {0};
    struct conversion_description about = {.location = SL_STR("there")};
    struct converter_call call = sample->call;
    struct sl_mapping made;
    struct sl_buf bytes = {0};
    call.out = memfd_create("made", MFD_CLOEXEC);
    assert_true(call.out >= 0);
    memset(result, 0xaa, CONVERTER_MAX_RESULT); /* what was there before does not show */
    if (conversion_run(&about, sample->converter, &call, result, &error) != SL_OK)
        fail_msg("%s: %s", sample->converter->name, error.message);
    assert_int_equal(sl_map_fd(call.out, &made, &error), SL_OK);
    sl_buf_add(&bytes, made.bytes.data, made.bytes.size);
    sl_unmap(&made);
    close(call.out);
    return bytes;
}

/* The time that writing took is the one thing that differs. */
static void forget_times(const struct converter *converter, uint8_t result[CONVERTER_MAX_RESULT])
{
    if (converter == &converter_mozilla_syms)
        ((struct mozilla_syms_result *)(void *)result)->written_ns = 0;
}

static void twice_body(void *arg)
{
    struct sample samples[MAX_SAMPLES];
    size_t count = make_samples(samples);
    for (size_t i = 0; i < count; i++) {
        _Alignas(16) uint8_t first_told[CONVERTER_MAX_RESULT], then_told[CONVERTER_MAX_RESULT];
        struct sl_buf first = run_sample(&samples[i], first_told), then = run_sample(&samples[i], then_told);
        assert_int_equal(first.size > 0, samples[i].writes);
        assert_int_equal(first.size, then.size);
        if (first.size)
            assert_memory_equal(first.data, then.data, first.size);
        forget_times(samples[i].converter, first_told);
        forget_times(samples[i].converter, then_told);
        assert_memory_equal(first_told, then_told, CONVERTER_MAX_RESULT);
        sl_buf_free(&first);
        sl_buf_free(&then);
    }
}

TEST(the_same_call_makes_the_same_bytes, .setup = configure)
{
    loop_run_fiber(twice_body, NULL);
}

/* An input is a file or bytes in memory: that makes no difference. */
static void as_files_body(void *arg)
{
    struct sample samples[MAX_SAMPLES];
    size_t count = make_samples(samples);
    for (size_t i = 0; i < count; i++) {
        _Alignas(16) uint8_t told[CONVERTER_MAX_RESULT];
        struct sample files = samples[i];
        for (size_t j = 0; j < files.call.input_count; j++) {
            struct converter_input *input = &files.call.inputs[j];
            if (input->fd >= 0)
                continue;
            input->fd = memfd_create("input", MFD_CLOEXEC);
            assert_true(sl_write_all_at(input->fd, input->bytes, 0));
            input->bytes = (struct sl_bytes){NULL, 0};
        }
        struct sl_buf first = run_sample(&samples[i], told), then = run_sample(&files, told);
        assert_int_equal(first.size, then.size);
        if (first.size)
            assert_memory_equal(first.data, then.data, first.size);
        for (size_t j = 0; j < files.call.input_count; j++)
            if (files.call.inputs[j].fd != scratch)
                close(files.call.inputs[j].fd);
        sl_buf_free(&first);
        sl_buf_free(&then);
    }
}

TEST(files_and_bytes_are_converted_alike, .setup = configure)
{
    loop_run_fiber(as_files_body, NULL);
}

/* ---- in workers ---- */
static void in_workers_body(void *arg)
{
    struct sample samples[MAX_SAMPLES];
    size_t count = make_samples(samples);
    _Alignas(16) uint8_t told[MAX_SAMPLES][CONVERTER_MAX_RESULT], then_told[CONVERTER_MAX_RESULT];
    struct sl_buf made[MAX_SAMPLES];
    for (size_t i = 0; i < count; i++)
        made[i] = run_sample(&samples[i], told[i]);
    isolation_open(&test_config);
    assert_non_null(isolation_pool());
    for (size_t i = 0; i < count; i++) {
        struct sl_buf then = run_sample(&samples[i], then_told);
        assert_int_equal(made[i].size, then.size);
        if (then.size)
            assert_memory_equal(made[i].data, then.data, then.size);
        forget_times(samples[i].converter, told[i]);
        forget_times(samples[i].converter, then_told);
        assert_memory_equal(told[i], then_told, CONVERTER_MAX_RESULT);
        sl_buf_free(&made[i]);
        sl_buf_free(&then);
    }
    struct isolation_status status;
    isolation_get_status(&status);
    assert_true(status.is_process && status.counts.started >= 1 && !status.reason);
    for (int i = 0; i < WORKER_ENDS; i++)
        assert_int_equal(status.counts.ended[i], 0);
}

TEST(workers_and_threads_convert_alike, .setup = configure)
{
    loop_run_fiber(in_workers_body, NULL);
    isolation_close();
}

/* ---- results of a worker that was taken over ---- */
static const struct converter *find_converter(const char *name)
{
    for (size_t i = 0; i < catalog_converter_count; i++)
        if (strcmp(catalog_converters[i]->name, name) == 0)
            return catalog_converters[i];
    fail();
    return NULL;
}

/* Whether a result with this byte at the offset, and zeros besides, is valid. */
static bool is_valid_with(const char *name, size_t offset, uint8_t byte)
{
    _Alignas(16) uint8_t result[CONVERTER_MAX_RESULT] = {0};
    result[offset] = byte;
    return find_converter(name)->check_result(result);
}

static void assert_bool_checked(const char *name, size_t offset)
{
    assert_true(is_valid_with(name, offset, 0) && is_valid_with(name, offset, 1));
    assert_false(is_valid_with(name, offset, 2) || is_valid_with(name, offset, 255));
}

TEST(every_result_is_checked)
{
    for (size_t i = 0; i < catalog_converter_count; i++)
        assert_int_equal(catalog_converters[i]->result_size > 0, catalog_converters[i]->check_result != NULL);
    assert_bool_checked("object_check", offsetof(struct object_check_result, same_id));
    assert_bool_checked("object_check", offsetof(struct object_check_result, same_checksum));
    assert_bool_checked("object_check", offsetof(struct object_check_result, is_fat));
    assert_bool_checked("mozilla_syms", offsetof(struct mozilla_syms_result, has_table));
    assert_bool_checked("mozilla_syms", offsetof(struct mozilla_syms_result, is_written));
    assert_bool_checked("symcache", offsetof(struct symcache_result, wanting));
    assert_bool_checked("symcache", offsetof(struct symcache_result, damaged));
    assert_bool_checked("symcache", offsetof(struct symcache_result, wants.package));
    assert_false(is_valid_with("symcache", offsetof(struct symcache_result, wants.dwz_id_size), 65));
    assert_true(is_valid_with("symcache", offsetof(struct symcache_result, wants.dwz_id_size), 64));
    assert_false(is_valid_with("symcache", offsetof(struct symcache_result, arch), 7));
    assert_true(is_valid_with("symcache", offsetof(struct symcache_result, arch), SL_ARCH_X86_64));
    assert_false(is_valid_with("symcache", offsetof(struct symcache_result, gaps.first.code), SL_CODES));
    assert_false(is_valid_with("symcache", offsetof(struct symcache_result, gaps.first.message), 0xff)); /* not UTF-8 */
    assert_false(is_valid_with("cficache", offsetof(struct cficache_result, arch), 7));
    assert_false(is_valid_with("disassembly", offsetof(struct disassembly_result, arch), 7));
    assert_false(is_valid_with("disassembly", offsetof(struct disassembly_result, problem), DISASSEMBLY_PROBLEMS));
    assert_true(is_valid_with("disassembly", offsetof(struct disassembly_result, problem), DISASSEMBLY_NO_BYTES));
    assert_bool_checked("unpack", offsetof(struct unpack_result, over_limit));
    assert_bool_checked("member_check", offsetof(struct member_check_result, is_forbidden));
    assert_bool_checked("minidump", offsetof(struct minidump_result, is_foreign));
    assert_bool_checked("source_text", offsetof(struct source_text_result, is_written));
    assert_bool_checked("script_facts", offsetof(struct script_facts_result, has_map));
    assert_bool_checked("script_facts", offsetof(struct script_facts_result, embeds_map));
    assert_bool_checked("script_facts", offsetof(struct script_facts_result, has_debug_id));
    assert_bool_checked("script_facts", offsetof(struct script_facts_result, debug_id.pdb20));
}

TEST(texts_must_end_within_their_arrays)
{
    char text[8] = "1234567";
    assert_true(converter_text_is_valid(text, sizeof text));
    text[7] = '8';
    assert_false(converter_text_is_valid(text, sizeof text));
}

static void refused_body(void *arg)
{
    struct sl_error error;
    struct conversion_description about = {.location = SL_STR("there")};
    struct converter_call call = {.out = -1}; /* without its options */
    struct object_check_result told;
    assert_int_equal(conversion_run(&about, &converter_object_check, &call, &told, &error), SL_INTERNAL);
    struct converter_call crowded = {.out = -1};
    for (int i = 0; i <= CONVERTER_MAX_INPUTS; i++)
        converter_add_text(&crowded, (enum input_role)i, script);
    assert_int_equal(conversion_run(&about, &converter_uuidmap, &crowded, NULL, &error), SL_INTERNAL);
}

TEST(calls_that_do_not_fit_the_converter_are_refused, .setup = configure)
{
    loop_run_fiber(refused_body, NULL);
}

TEST_FILE(.begin = begin, .end = end);
