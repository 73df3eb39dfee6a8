/* Symbols of executables: names, coverage, instructions, and what comes out of compiled programs. */
#include "../check.h"
#include "../directory.h"
#include "records.h"

#include "base/file.h"
#include "symbfile/coverage.h"
#include "symbfile/extract.h"
#include "symbfile/fileid.h"
#include "symbfile/names.h"
#include "symbfile/pads.h"

#include <unistd.h>

/* ---- file ids ---- */
static void check_file_id(struct sl_bytes file, const char *hex, const char *base64)
{
    char text[SL_FILE_ID_HEX], short_text[SL_FILE_ID_BASE64];
    struct sl_file_id id = sl_file_id_compute(file), parsed;
    sl_file_id_format_hex(&id, text);
    sl_file_id_format_base64(&id, short_text);
    assert_string_equal(text, hex);
    assert_string_equal(short_text, base64);
    assert_true(sl_file_id_parse_any(sl_str(hex), &parsed));
    assert_memory_equal(&id, &parsed, sizeof id);
    assert_true(sl_file_id_parse_any(sl_str(base64), &parsed));
    assert_memory_equal(&id, &parsed, sizeof id);
}

TEST(file_ids_are_the_hash_of_size_head_and_tail)
{
    static uint8_t bytes[9000];
    check_file_id((struct sl_bytes){bytes, 123}, "f4c1e5fe2f28034fcceb0776ec00b125", "9MHl_i8oA0_M6wd27ACxJQ");
    check_file_id((struct sl_bytes){bytes, 0}, "af5570f5a1810b7af78caf4bc70a660f", "r1Vw9aGBC3r3jK9LxwpmDw");
    check_file_id((struct sl_bytes){(const uint8_t *)"hello world\n", 12}, "2ce54797688b1f770b04e463f8efd041",
                  "LOVHl2iLH3cLBORj-O_QQQ");
    memset(bytes, 'A', sizeof bytes);
    check_file_id((struct sl_bytes){bytes, 4096}, "dbc80cf8a78af58d99e245783e9d1564", "28gM-KeK9Y2Z4kV4Pp0VZA");
    check_file_id((struct sl_bytes){bytes, 4097}, "da9b660c2e44074e3607dc68282ae4ae", "2ptmDC5EB042B9xoKCrkrg");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    check_file_id((struct sl_bytes){bytes, 9000}, "87c6dc3b6cbee2b7e14e7708bb706222", "h8bcO2y-4rfhTncIu3BiIg");
}

/* The same id in its two forms, read and written. */
static void check_forms(const char *hex, const char *base64)
{
    struct sl_file_id a, b;
    char text[SL_FILE_ID_HEX];
    assert_true(sl_file_id_parse_any(sl_str(hex), &a));
    assert_true(sl_file_id_parse_any(sl_str(base64), &b));
    assert_memory_equal(&a, &b, sizeof a);
    sl_file_id_format_hex(&b, text);
    assert_string_equal(text, hex);
}

TEST(file_ids_are_read_in_both_forms)
{
    check_forms("77efa716a912a49217445787329fd29a", "d--nFqkSpJIXRFeHMp_Smg");
    check_forms("c34f3585fca1b579fb458e827851a599", "w081hfyhtXn7RY6CeFGlmQ");
    check_forms("136e8f69d518059e4437b4d5488878fd", "E26PadUYBZ5EN7TVSIh4_Q");
    static const char *const good[] = {"2CE54797688B1F770B04E463F8EFD041",
                                       "LOVHl2iLH3cLBORj+O/QQQ==", "0x2ce54797688b1f770b04e463f8efd041",
                                       "2ce54797-688b-1f77-0b04-e463f8efd041"};
    static const char *const bad[] = {"LOVHl2iLH3cLBORj-O_QQR",
                                      "LOVHl2iLH3cLBORj-O_QQ",
                                      "xyz",
                                      "",
                                      "LOVHl2iLH3cLBORj-O_QQQ=",
                                      "2ce54797688b1f770b04e463f8efd04",
                                      "2ce54797688b1f770b04e463f8efd0411",
                                      "zce54797688b1f770b04e463f8efd041",
                                      "LOVHl2iLH3cLBORj O_QQQ"};
    struct sl_file_id id, first;
    assert_true(sl_file_id_parse_any(sl_str("LOVHl2iLH3cLBORj-O_QQQ"), &first));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(sl_file_id_parse_any(sl_str(good[i]), &id));
        assert_memory_equal(&id, &first, sizeof id);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sl_file_id_parse_any(sl_str(bad[i]), &id));
}

/* ---- names ---- */
TEST(compiler_suffixes_are_removed_from_names)
{
    static const char *const names[][2] = {
        {"blah.cold", "blah"},
        {"blah.constprop.0.cold", "blah"},
        {"blah.part.x", "blah.part.x"},
        {"blah.lto_priv.0", "blah.lto_priv.0"},
        {"_RustIsNotTheOnlyLangWhoseSymbolsCanStartWith_R", "_RustIsNotTheOnlyLangWhoseSymbolsCanStartWith_R"},
        {"_ZN2js8HeapSlot4postEPNS_12NativeObjectENS0_4KindEjRKN2JS5ValueE.isra.0.cold",
         "js::HeapSlot::post(js::NativeObject*, js::HeapSlot::Kind, unsigned int, JS::Value const&)"},
        {"_ZN5media13MojoDecryptor21DecryptAndDecodeVideoE13scoped_refptrINS_13DecoderBufferEERKN4base17Repeating"
         "CallbackIFvNS_9Decryptor6StatusES1_INS_10VideoFrameEEEEE",
         "media::MojoDecryptor::DecryptAndDecodeVideo(scoped_refptr, base::RepeatingCallback const&)"},
        {"_ZNSt3__111__introsortINS_12__debug_lessINS_6__lessIN14arrow_vendored4date9time_zoneES5_EEEEPS5_EEvT0_S9_T_"
         "NS_15iterator_traitsIS9_E15difference_typeE",
         "void std::__1::__introsort(arrow_vendored::date::time_zone*, arrow_vendored::date::time_zone*, "
         "std::__1::__debug_less, std::__1::iterator_traits::difference_type)"},
        {"_ZN50_$LT$$RF$mut$u20$W$u20$as$u20$core..fmt..Write$GT$10write_char17h40d2a72f9527ade5E.llvm."
         "5999636307758439825",
         "<&mut W as core::fmt::Write>::write_char"},
        {"runtime.(*mheap).grow", "runtime.(*mheap).grow"},
        {"type..eq.k8s.io/api/core/v1.NodeSystemInfo", "type..eq.k8s.io/api/core/v1.NodeSystemInfo"},
        {"github.com/googleapis/gnostic/openapiv2..stmp_173", "github.com/googleapis/gnostic/openapiv2..stmp_173"},
        {"pkg.F[go.shape.int]", "pkg.F[go.shape.int]"},
        {"_ZlsRSoRK3Foo", "operator<<(std::ostream&, Foo const&)"},
        {"_ZNK3FoossIiEEbT_", "bool Foo::operator<=>(int) const"},
        {"_ZNK3FoortEv", "_ZNK3FoortEv"},
        {"_ZNK3FooptEv", "Foo::operator->() const"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sl_buf out = {0}, scratch = {0};
        name_readable(sl_str(names[i][0]), &scratch, &out);
        sl_buf_u8(&out, 0);
        assert_string_equal((char *)out.data, names[i][1]);
        sl_buf_free(&out);
        sl_buf_free(&scratch);
    }
}

/* ---- coverage ---- */

enum { EM_AARCH64 = 183 };

/* An image with one executable segment, code included. */
static struct sl_buf elf_image(uint16_t machine, uint64_t address, size_t size)
{
    struct sl_buf out = {0};
    sl_buf_add(&out, "\177ELF\2\1\1", 7);
    sl_buf_fill(&out, 0, 9);
    sl_buf_u16(&out, 3);
    sl_buf_u16(&out, machine);
    sl_buf_u32(&out, 1);
    sl_buf_u64(&out, 0);
    sl_buf_u64(&out, 64); /* program headers */
    sl_buf_u64(&out, 0);
    sl_buf_u32(&out, 0);
    sl_buf_u16(&out, 64);
    sl_buf_u16(&out, 56);
    sl_buf_u16(&out, 1);
    sl_buf_fill(&out, 0, 6);
    sl_buf_u32(&out, 1);
    sl_buf_u32(&out, 5);
    sl_buf_u64(&out, 120);
    sl_buf_u64(&out, address);
    sl_buf_u64(&out, address);
    sl_buf_u64(&out, size);
    sl_buf_u64(&out, size);
    sl_buf_u64(&out, 1);
    sl_buf_fill(&out, 0, size);
    return out;
}

TEST(overlapping_ranges_are_refused)
{
    enum { C = 0x10000 };
    static const struct {
        uint64_t start, end;
        uint32_t depth;
        int source;
        bool accepted;
    } ranges[] = {
        {0x10, 0x20, 0, 1, true}, {0x1a, 0x1f, 1, 1, true},  {0x1c, 0x1f, 2, 1, true},  {0xcc, 0xdd, 2, 1, false},
        {0x30, 0x40, 0, 1, true}, {0x3a, 0x60, 0, 1, false}, {0x40, 0x41, 1, 1, false}, {0x10, 0x20, 0, 2, false},
        {0x50, 0x70, 0, 2, true}, {0x32, 0x3b, 0, 2, false},
    };
    struct sl_buf file = elf_image(EM_AARCH64, C, 0x1000);
    struct sl_object *object;
    struct sl_symbfile_image *image;
    struct coverage *coverage;
    struct coverage_counts counts[3] = {0};
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_symbfile_image_open(object, &image, NULL), SL_OK);
    assert_int_equal(coverage_new(image, NULL, &coverage, NULL), SL_OK);
    int source = 1;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].source != source)
            coverage_next_source(coverage);
        source = ranges[i].source;
        assert_int_equal(
            coverage_accept(coverage, C + ranges[i].start, C + ranges[i].end, ranges[i].depth, &counts[source]),
            ranges[i].accepted);
    }
    assert_int_equal(counts[1].produced, 7);
    assert_int_equal(counts[1].accepted, 4);
    assert_int_equal(counts[1].rejected, 3);
    assert_int_equal(counts[1].unexpected, 1);
    assert_int_equal(counts[2].produced, 3);
    assert_int_equal(counts[2].accepted, 1);
    assert_int_equal(counts[2].rejected, 2);
    assert_int_equal(counts[2].unexpected, 0);
    /* outside of all segments: always taken; past the end of one: counts inside of it */
    assert_true(coverage_accept(coverage, 5, 9, 0, &counts[2]));
    assert_true(coverage_accept(coverage, 5, 9, 0, &counts[2]));
    assert_true(coverage_accept(coverage, C + 0xff0, C + 0x2000, 0, &counts[2]));
    assert_false(coverage_accept(coverage, C + 0xffc, C + 0x1000, 0, &counts[2]));
    coverage_free(coverage);
    sl_symbfile_image_close(image);
    sl_object_close(object);
    sl_buf_free(&file);
}

/* ---- return pads ---- */
TEST(call_instructions_are_recognised)
{
    static const struct {
        enum sl_cpu_family family;
        const char *hex;
        enum instruction instruction;
        unsigned length;
    } cases[] = {
        {SL_CPU_X86_64, "cc", INSTRUCTION_OTHER, 1},        {SL_CPU_X86_64, "90", INSTRUCTION_OTHER, 1},
        {SL_CPU_X86_64, "e811223344", INSTRUCTION_CALL, 5}, {SL_CPU_X86_64, "e900000000", INSTRUCTION_OTHER, 5},
        {SL_CPU_X86_64, "e9", INSTRUCTION_BAD, 0},          {SL_CPU_X86_64, "ffd0", INSTRUCTION_CALL, 2},
        {SL_CPU_X86_64, "0f05", INSTRUCTION_CALL, 2},       {SL_CPU_X86_64, "cd80", INSTRUCTION_CALL, 2},
        {SL_CPU_X86_64, "0f34", INSTRUCTION_OTHER, 2},      {SL_CPU_X86_64, "ffe0", INSTRUCTION_OTHER, 2},
        {SL_CPU_ARM64, "00003fd6", INSTRUCTION_CALL, 4},    {SL_CPU_ARM64, "8d040094", INSTRUCTION_CALL, 4},
        {SL_CPU_ARM64, "8d040014", INSTRUCTION_OTHER, 4},   {SL_CPU_ARM64, "1f2003d5", INSTRUCTION_OTHER, 4},
        {SL_CPU_ARM64, "aa", INSTRUCTION_BAD, 0},           {SL_CPU_ARM64, "010000d4", INSTRUCTION_CALL, 4},
        {SL_CPU_ARM64, "000c3fd6", INSTRUCTION_CALL, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned length;
        struct sl_bytes code = from_hex(cases[i].hex);
        assert_int_equal(pads_instruction(cases[i].family, code, &length), cases[i].instruction);
        assert_int_equal(length, cases[i].length);
        free((void *)(uintptr_t)code.data);
    }
}

struct pad_writer {
    struct sl_symbfile_sink sink;
    struct sl_symbfile_writer *writer;
};

static enum sl_code write_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    return sl_symbfile_write_pad(((struct pad_writer *)sink)->writer, pad, error);
}

TEST(published_return_pads_are_reproduced)
{
    static const uint32_t calls[] = {0x648, 0x654, 0x7b0, 0x7c8, 0x7dc, 0x7f8};
    struct sl_buf file = elf_image(EM_AARCH64, 0, 0x1000), out = {0};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        file.data[120 + calls[i] + 3] = 0x94;
    struct sl_object *object;
    struct sl_symbfile_image *image;
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_symbfile_image_open(object, &image, NULL), SL_OK);
    struct sl_symbfile_pads *pads = sl_symbfile_pads_new(image, NULL);
    struct pad_writer w = {{.pad = write_pad}, sl_symbfile_writer_new(append_output, &out, NULL)};
    const struct sl_symbfile_range *ranges = golden_ranges();
    for (size_t first = 0, next; first < GOLDEN_RANGES; first = next) {
        for (next = first + 1; next < GOLDEN_RANGES && ranges[next].depth; next++)
            continue;
        assert_int_equal(sl_symbfile_pads_of_tree(pads, ranges + first, next - first, &w.sink, NULL), SL_OK);
    }
    assert_int_equal(sl_symbfile_writer_finish(w.writer, NULL), SL_OK);
    char digest[65];
    sha256_hex(sl_buf_bytes(&out), digest);
    assert_string_equal(digest, "17806e46f06bf953e94b07e017d2d053f8d2f020b4578a45bd4d6e5f1b95ee0a");
    sl_symbfile_writer_free(w.writer);
    sl_symbfile_pads_free(pads);
    sl_symbfile_image_close(image);
    sl_object_close(object);
    sl_buf_free(&file);
    sl_buf_free(&out);
}

static enum sl_code take_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    (void)sink, (void)pad, (void)error;
    return SL_OK;
}

/* A thousand functions, one inlined in the other, around code that is nothing but calls. */
TEST(return_pads_keep_to_the_work_budget)
{
    enum { DEPTH = 1000, SIZE = 0x4000 };
    static struct sl_symbfile_range ranges[DEPTH];
    struct sl_buf file = elf_image(EM_AARCH64, 0, SIZE);
    struct sl_object *object;
    struct sl_symbfile_image *image;
    struct sl_symbfile_sink sink = {.pad = take_pad};
    struct sl_budget budget;
    struct sl_error error;
    for (size_t i = 120; i + 3 < file.size; i += 4)
        file.data[i + 3] = 0x94;
    for (uint32_t i = 0; i < DEPTH; i++)
        ranges[i] =
            (struct sl_symbfile_range){.length = SIZE, .depth = i, .function = {SL_STR("f"), SL_SYMBFILE_INLINE}};
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_symbfile_image_open(object, &image, NULL), SL_OK);
    sl_budget_init(&budget, file.size);
    struct sl_symbfile_pads *pads = sl_symbfile_pads_new(image, &budget);
    assert_int_equal(sl_symbfile_pads_of_tree(pads, ranges, DEPTH / 10, &sink, &error), SL_OK);
    assert_int_equal(sl_symbfile_pads_of_tree(pads, ranges, DEPTH, &sink, &error), SL_MALFORMED);
    assert_non_null(strstr(error.message, "reading the file needs more work than allowed for a file of"));
    sl_symbfile_pads_free(pads);
    sl_symbfile_image_close(image);
    sl_object_close(object);
    sl_buf_free(&file);
}

/* ---- compiled programs ---- */
static const char program[] = "#include <algorithm>\n"
                              "#include <map>\n"
                              "#include <string>\n"
                              "#include <vector>\n"
                              "#include <cstdio>\n"
                              "static volatile int sink;\n"
                              "static inline int inner(int a) { sink = a; return a * 3; }\n"
                              "static inline int middle(int a) { return inner(a) + inner(a + 1); }\n"
                              "__attribute__((noinline)) int outer(int a) { std::puts(\"x\"); return middle(a) - 1; }\n"
                              "int main(int argc, char **argv)\n"
                              "{\n"
                              "    std::map<std::string, std::vector<int>> m;\n"
                              "    for (int i = 0; i < argc; i++) m[argv[i]].push_back(outer(i));\n"
                              "    std::vector<std::string> names;\n"
                              "    for (auto &p : m) names.push_back(p.first + std::to_string(p.second.size()));\n"
                              "    std::sort(names.begin(), names.end());\n"
                              "    for (auto &n : names) std::puts(n.c_str());\n"
                              "    return (int)names.size();\n"
                              "}\n";

struct compiled {
    char dir[64];
    struct sl_mapping mapping;
    struct sl_object *object;
    struct sl_symbfile_image *image;
};

static void run(const char *dir, const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && %s", dir, command);
    assert_int_equal(system(line), 0);
}

static void open_compiled(struct compiled *c, const char *name)
{
    char path[128];
    struct sl_error error;
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    assert_int_equal(sl_map_file(path, &c->mapping, &error), SL_OK);
    assert_int_equal(sl_object_open(c->mapping.bytes, NULL, &c->object, &error), SL_OK);
    assert_int_equal(sl_symbfile_image_open(c->object, &c->image, &error), SL_OK);
}

static void close_compiled(struct compiled *c)
{
    sl_symbfile_image_close(c->image);
    sl_object_close(c->object);
    sl_unmap(&c->mapping);
}

static void make_dir(struct compiled *c, const char *source)
{
    char path[128];
    *c = (struct compiled){.dir = "/tmp/symbfile-XXXXXX"};
    assert_non_null(mkdtemp(c->dir));
    snprintf(path, sizeof path, "%s/program.cc", c->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(source, file);
    fclose(file);
}

static void remove_dir(const struct compiled *c)
{
    assert_int_equal(directory_remove(c->dir), 0);
}

struct pipe { /* extracted trees into two files */
    struct sl_symbfile_tree_sink sink;
    struct sl_symbfile_pads *pads;
    struct sl_symbfile_writer *ranges;
    struct pad_writer pad_writer;
    struct sl_buf range_file, pad_file;
};

static enum sl_code on_tree(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                            struct sl_error *error)
{
    struct pipe *p = (struct pipe *)sink;
    assert_int_equal(ranges[0].depth, 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || ranges[i].depth > 0);
        assert_int_equal(sl_symbfile_write_range(p->ranges, &ranges[i], error), SL_OK);
    }
    return sl_symbfile_pads_of_tree(p->pads, ranges, count, &p->pad_writer.sink, error);
}

static void extract(const struct compiled *c, struct pipe *p, struct sl_symbfile_extraction *extraction)
{
    struct sl_error error;
    *p = (struct pipe){.sink = {.tree = on_tree}, .pad_writer = {.sink = {.pad = write_pad}}};
    p->pads = sl_symbfile_pads_new(c->image, NULL);
    p->ranges = sl_symbfile_writer_new(append_output, &p->range_file, NULL);
    p->pad_writer.writer = sl_symbfile_writer_new(append_output, &p->pad_file, NULL);
    assert_int_equal(sl_symbfile_extract(c->object, c->image, NULL, NULL, &p->sink, extraction, &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(p->ranges, &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(p->pad_writer.writer, &error), SL_OK);
}

static void end_pipe(struct pipe *p)
{
    sl_symbfile_pads_free(p->pads);
    sl_symbfile_writer_free(p->ranges);
    sl_symbfile_writer_free(p->pad_writer.writer);
    sl_buf_free(&p->range_file);
    sl_buf_free(&p->pad_file);
}

static void build_index(const struct pipe *p, struct sl_buf *out, struct sl_symbfile_index *index)
{
    struct sl_error error;
    struct sl_symbfile_builder *b = sl_symbfile_builder_new(-1);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p->range_file), sl_symbfile_builder_sink(b), &error), SL_OK);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p->pad_file), sl_symbfile_builder_sink(b), &error), SL_OK);
    assert_int_equal(sl_symbfile_builder_finish(b, out, &error), SL_OK);
    assert_int_equal(sl_symbfile_index_open(sl_buf_bytes(out), index, &error), SL_OK);
    sl_symbfile_builder_free(b);
}

static void add_element(const struct sl_symcache *cache, const struct sl_location *location, bool readable,
                        bool with_line, struct sl_buf *out)
{
    struct sl_symcache_function function;
    struct sl_buf name = {0}, scratch = {0};
    assert_true(sl_symcache_function(cache, location->function, &function));
    sl_symcache_string(cache, function.name, &name);
    if (readable)
        sl_buf_str(out, sl_buf_view(&name));
    else
        name_readable(sl_buf_view(&name), &scratch, out);
    sl_buf_u8(out, ' ');
    if (with_line) {
        sl_symcache_file(cache, location->file, out);
        sl_buf_printf(out, ":%u", location->line);
    }
    sl_buf_cstr(out, " > ");
    sl_buf_free(&scratch);
    sl_buf_free(&name);
}

/* The chain as text. Code of line 0 counts to the line before it in one form and to none in the other: `with_line` is
 * only for the callers then. */
static void print_chain(const struct sl_symcache *cache, const struct sl_location *chain, size_t count, bool readable,
                        bool innermost_line, struct sl_buf *out)
{
    sl_buf_clear(out);
    for (size_t i = 0; i < count; i++)
        add_element(cache, &chain[i], readable, i || innermost_line, out);
    sl_buf_u8(out, 0);
}

/* The ranges of `name` are those of the program, whatever its debug information is packed with. */
static void check_same_ranges(struct compiled *c, const char *name, const struct sl_buf *expected)
{
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    open_compiled(c, name);
    extract(c, &p, &extraction);
    assert_int_equal(p.range_file.size, expected->size);
    assert_memory_equal(p.range_file.data, expected->data, expected->size);
    end_pipe(&p);
    close_compiled(c);
}

TEST(compressed_debug_information_gives_the_same_ranges)
{
    struct compiled c;
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    make_dir(&c, program);
    run(c.dir, "g++ -g -O1 -o program program.cc && objcopy --compress-debug-sections=zlib program zlib && "
               "objcopy --compress-debug-sections=zlib-gnu program old && "
               "objcopy --compress-debug-sections=zstd program zstd");
    open_compiled(&c, "program");
    extract(&c, &p, &extraction);
    close_compiled(&c);
    check_same_ranges(&c, "zlib", &p.range_file);
    check_same_ranges(&c, "old", &p.range_file);
    check_same_ranges(&c, "zstd", &p.range_file);
    end_pipe(&p);
    remove_dir(&c);
}

/* What an index of the extracted ranges answers is what the symcache of the same file answers, everywhere. */
TEST(ranges_give_the_answers_of_the_symcache)
{
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct compiled c;
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    struct sl_buf index_file = {0}, cache_file = {0}, expected = {0}, got = {0};
    struct sl_symbfile_index index;
    struct sl_symcache cache;
    struct sl_symcache_options options = {0};
    make_dir(&c, program);
    run(c.dir, "g++ -g -O2 -o program program.cc");
    open_compiled(&c, "program");
    extract(&c, &p, &extraction);
    assert_true(extraction.sources[SL_SOURCE_DWARF].accepted > 100);
    assert_int_equal(extraction.sources[SL_SOURCE_DWARF].unexpected, 0);
    assert_true(extraction.sources[SL_SOURCE_GO].absent);
    assert_true(extraction.sources[SL_SOURCE_SYMBOLS].accepted > 0);
    build_index(&p, &index_file, &index);
    assert_int_equal(sl_symcache_convert(c.object, NULL, &options, NULL, &cache_file, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&cache_file), &cache, NULL), SL_OK);
    uint64_t load = sl_object_info(c.object)->load_address, start;
    struct sl_bytes text;
    assert_true(sl_object_section(c.object, "text", &text, &start));
    size_t compared = 0, lines = 0;
    for (uint64_t at = start; at < start + text.size; at++) {
        size_t count = sl_symcache_lookup(&cache, at, chain, SL_SYMCACHE_MAX_CHAIN);
        bool line = count && chain[0].line;
        print_chain(&cache, chain, count, false, line, &expected);
        count = sl_symbfile_lookup_range(&index, at + load, chain, SL_SYMCACHE_MAX_CHAIN);
        print_chain(&index.ranges, chain, count, true, line, &got);
        if (strcmp((char *)got.data, (char *)expected.data) != 0)
            print_message("at 0x%llx\n", (unsigned long long)at);
        assert_string_equal((char *)got.data, (char *)expected.data);
        compared++;
        lines += line;
    }
    assert_true(compared > 2000 && lines > 1000);
    sl_buf_free(&index_file);
    sl_buf_free(&cache_file);
    sl_buf_free(&expected);
    sl_buf_free(&got);
    end_pipe(&p);
    close_compiled(&c);
    remove_dir(&c);
}

/* Every pad is what the ranges say of the call before it. */
TEST(return_pads_agree_with_ranges)
{
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct compiled c;
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    struct sl_buf index_file = {0}, expected = {0}, got = {0};
    struct sl_symbfile_index index;
    make_dir(&c, program);
    run(c.dir, "g++ -g -O2 -o program program.cc && "
               "objdump -d --no-show-raw-insn program | awk '/>:$/{f=$2} /call/{sub(\":\",\"\",$1); n++} END{print n}' "
               "> calls");
    open_compiled(&c, "program");
    extract(&c, &p, &extraction);
    build_index(&p, &index_file, &index);
    uint64_t load = sl_object_info(c.object)->load_address, start;
    struct sl_bytes text;
    size_t pads = 0;
    assert_true(sl_object_section(c.object, "text", &text, &start));
    for (uint64_t va = start + load; va < start + load + text.size; va++) {
        size_t count = sl_symbfile_lookup_pad(&index, va, chain, SL_SYMCACHE_MAX_CHAIN);
        if (!count)
            continue;
        pads++;
        print_chain(&index.pads, chain, count, true, true, &got);
        count = sl_symbfile_lookup_range(&index, va, chain, SL_SYMCACHE_MAX_CHAIN);
        print_chain(&index.ranges, chain, count, true, true, &expected);
        assert_string_equal((char *)got.data, (char *)expected.data);
    }
    unsigned calls = 0;
    char path[128];
    snprintf(path, sizeof path, "%s/calls", c.dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u", &calls), 1);
    fclose(file);
    assert_true(pads > 20 && pads <= calls && pads + 10 >= calls);
    sl_buf_free(&index_file);
    sl_buf_free(&expected);
    sl_buf_free(&got);
    end_pipe(&p);
    close_compiled(&c);
    remove_dir(&c);
}

TEST(aarch64_with_separate_debug_file_is_extracted)
{
    struct compiled stripped, debug;
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    struct collector records;
    make_dir(&stripped, "");
    run(stripped.dir,
        "printf '%s\\n' 'void callee(void); static inline int in(int a) { callee(); return a; }' "
        "'int f(int a) { return in(a) + 1; }' '__attribute__((noinline)) void callee(void) { __asm__(\"\"); }' "
        "'void _start(void) { f(2); }' > a.c && "
        "aarch64-linux-gnu-gcc -g -O1 -nostdlib -static -o full a.c && "
        "aarch64-linux-gnu-objcopy --only-keep-debug full debug && aarch64-linux-gnu-strip -o stripped full");
    debug = stripped;
    open_compiled(&stripped, "stripped");
    open_compiled(&debug, "debug");
    struct sl_symbfile_image *own = debug.image;
    struct sl_error error;
    p = (struct pipe){.sink = {.tree = on_tree}, .pad_writer = {.sink = {.pad = write_pad}}};
    p.pads = sl_symbfile_pads_new(stripped.image, NULL); /* the code is in the stripped file only */
    p.ranges = sl_symbfile_writer_new(append_output, &p.range_file, NULL);
    p.pad_writer.writer = sl_symbfile_writer_new(append_output, &p.pad_file, NULL);
    assert_int_equal(sl_symbfile_extract(debug.object, own, NULL, NULL, &p.sink, &extraction, &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(p.ranges, &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(p.pad_writer.writer, &error), SL_OK);
    collector_init(&records);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p.pad_file), &records.sink, &error), SL_OK);
    assert_non_null(strstr(collector_text(&records), " f["));
    assert_non_null(strstr(collector_text(&records), "a.c]:2 in["));
    sl_buf_free(&records.text);
    collector_init(&records);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p.range_file), &records.sink, &error), SL_OK);
    assert_non_null(strstr(collector_text(&records), " d1 in ["));
    sl_buf_free(&records.text);
    end_pipe(&p);
    close_compiled(&debug);
    close_compiled(&stripped);
    remove_dir(&stripped);
}

TEST(stripped_go_program_is_extracted)
{
    struct compiled c;
    struct pipe p;
    struct sl_symbfile_extraction extraction;
    struct collector records;
    make_dir(&c, "");
    run(c.dir,
        "printf '%s\\n' 'package main' 'import \"fmt\"' '//go:noinline' 'func work(n int) { fmt.Println(n) }' "
        "'func main() { work(3) }' > main.go && HOME=$PWD GO111MODULE=off CGO_ENABLED=0 go build -ldflags='-s -w' -o "
        "program main.go && chmod -R u+w .");
    open_compiled(&c, "program");
    extract(&c, &p, &extraction);
    assert_true(extraction.sources[SL_SOURCE_DWARF].absent);
    assert_false(extraction.sources[SL_SOURCE_GO].failed);
    assert_true(extraction.sources[SL_SOURCE_GO].accepted > 1000);
    assert_int_equal(extraction.sources[SL_SOURCE_GO].rejected, 0);
    collector_init(&records);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p.range_file), &records.sink, NULL), SL_OK);
    assert_non_null(strstr(collector_text(&records), " main.main ["));
    assert_non_null(strstr(collector_text(&records), "/main.go] call -:0 {+0:5"));
    assert_non_null(strstr(collector_text(&records), " d1 fmt.Println ["));
    assert_non_null(strstr(collector_text(&records), "/main.go]:4 {"));
    sl_buf_free(&records.text);
    collector_init(&records);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&p.pad_file), &records.sink, NULL), SL_OK);
    assert_non_null(strstr(collector_text(&records), " runtime.goexit"));
    assert_non_null(strstr(collector_text(&records), " main.work["));
    sl_buf_free(&records.text);
    end_pipe(&p);
    close_compiled(&c);
    remove_dir(&c);
}
