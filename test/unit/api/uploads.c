/* What is uploaded: keys, archives, their members, and what symbol files say of themselves. */
#include "../check.h"

#include <unistd.h>

#include "api/uploads/uploads.h"
#include "base/budget.h"

static struct config *config;
static struct sl_arena arena;
static struct sl_buf bytes;

static int setup(void **state)
{
    struct value_problems problems = {0};
    struct sl_error error;
    return config_parse(SL_STR("mozilla: {store: {scan_contents: true, max_members: 3}}\n"), "test", &config, &problems,
                        &error);
}

static int teardown(void **state)
{
    config_release(config);
    sl_arena_free(&arena);
    sl_buf_free(&bytes);
    return 0;
}

/* ---- keys ---- */

static void assert_key(const char *name, const char *expected)
{
    struct sl_str key;
    bool good = uploads_normalize_key(&arena, sl_str(name), &key);
    assert_int_equal(good, expected != NULL);
    if (expected)
        assert_true(sl_str_equal(key, sl_str(expected)));
}

TEST(keys_have_three_parts_and_their_id_is_in_upper_case)
{
    assert_key("flag/deadBEEF/flag.jpeg", "flag/DEADBEEF/flag.jpeg");
    assert_key("\xE6\xB1\x89 a~+.pdb/1a/x y", "\xE6\xB1\x89 a~+.pdb/1A/x y");
    static const char *const bad[] = {
        "",        "/",        "//",      "a",       "a/ab",     "a/ab/",         "/ab/c",      "a//c",
        "a/xy/c",  "a/ab/c/d", "../ab/c", "a/ab/..", "./ab/c",   "a/ab/.",        "a/..\\ab/c", "x%l/ab/c",
        "a/ab/c#", "a/ab/c|",  "a/ab/\"", "a/ab/'",  "a/ab/c\n", "a/ab/\xC3\xBC", "a/ab/\xFF",  "a/ab/<",
        "a/ab/{"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_key(bad[i], NULL);
    for (size_t size = 290; size < 310; size++) {
        char name[400];
        memset(name, 'x', sizeof name);
        memcpy(name + 100, "/ab/", 4);
        name[size] = '\0';
        struct sl_str key;
        assert_int_equal(uploads_normalize_key(&arena, sl_str(name), &key), size <= 300);
    }
}

TEST(extension_selects_compression_and_type)
{
    const struct config_store *store = &config->mozilla.store;
    assert_true(uploads_is_packed(store, SL_STR("a.SYM")) && uploads_is_packed(store, SL_STR("a.b.sym")));
    assert_false(uploads_is_packed(store, SL_STR("sym")) || uploads_is_packed(store, SL_STR("a.symx")));
    assert_string_equal(uploads_media_type(store, SL_STR("a.sym"), &arena), "text/plain");
    assert_string_equal(uploads_media_type(store, SL_STR("a"), &arena), "application/octet-stream");
}

/* ---- archives ---- */

static struct sl_zip_writer begin(void)
{
    sl_buf_clear(&bytes);
    return (struct sl_zip_writer){.out = &bytes};
}

static void add(struct sl_zip_writer *writer, const char *name, const char *contents)
{
    sl_zip_add(writer, sl_str(name), (struct sl_bytes){(const uint8_t *)contents, strlen(contents)});
}

static struct archive finish(struct sl_zip_writer *writer)
{
    struct sl_error error = {0};
    if (writer)
        assert_int_equal(sl_zip_finish(writer, &error), SL_OK);
    struct sl_bytes all = sl_buf_bytes(&bytes);
    struct archive archive = {
        .arena = &arena, .config = &config->mozilla.store, .filename = SL_STR("x.Zip"), .bytes = all};
    archive.body.bytes = all; /* nothing is mapped */
    archive.fd = -1;
    return archive;
}

static bool read_directory(struct archive *archive)
{
    int entries;
    if (!archive_list_directory(archive, &entries))
        return false;
    bool good = archive_read_directory(archive, entries);
    close(entries);
    return good;
}

static void assert_refused(struct archive *archive, int status, const char *text)
{
    assert_false(read_directory(archive));
    assert_int_equal(archive->failure.status, status);
    assert_true(sl_str_equal(archive->failure.text, sl_str(text)));
}

TEST(members_are_selected_by_name)
{
    struct sl_zip_writer writer = begin();
    add(&writer, "a-Symbols.TXT", "list");
    add(&writer, "a/ab/a.sym", "one");
    add(&writer, "a/AB/a.sym", "two"); /* the same key, later */
    struct archive archive = finish(&writer);
    assert_true(read_directory(&archive));
    assert_int_equal(archive.count, 1);
    assert_true(sl_str_equal(archive.members[0].key, SL_STR("a/AB/a.sym")) && archive.members[0].is_packed);
    assert_true(sl_str_equal(archive.members[0].entry->name, SL_STR("a/AB/a.sym")));
    writer = begin();
    for (int i = 0; i < 4; i++)
        add(&writer, i % 2 ? "d/" : "x/.DS_Store", "");
    archive = finish(&writer);
    assert_refused(&archive, 400, "Archive file has more than 3 members");
    writer = begin();
    add(&writer, "a/ab/a'\t\x01.sym", "");
    archive = finish(&writer);
    assert_refused(
        &archive, 400,
        "Unrecognized file pattern. Should only be <module>/<hex>/<file> or <name>-symbols.txt and nothing else. "
        "(First unrecognized pattern was 'a/ab/a\\'\\t\\x01.sym')");
}

TEST(damaged_archives_are_never_taken_for_others)
{
    struct sl_zip_writer writer = begin();
    add(&writer, "a/ab/a.sym", "MODULE a b AB a\nINFO CODE_ID cd\nFUNC 0 1 0 f\n");
    add(&writer, "b/ab/b.dll", "some contents, some contents, some contents");
    struct archive archive = finish(&writer);
    size_t size = bytes.size;
    for (size_t cut = 0; cut < size; cut++) {
        bytes.size = cut;
        archive = finish(NULL);
        assert_false(read_directory(&archive));
    }
    bytes.size = size;
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[at] ^= (uint8_t)(1 << bit);
            archive = finish(NULL);
            bool good = read_directory(&archive);
            assert_int_equal(good, archive.failure.status == 0);
            for (size_t i = 0; good && i < archive.count; i++) {
                struct member_job job = {.archive = &archive, .member = &archive.members[i]};
                member_check(&job);
                assert_true(job.code == SL_OK || job.code == SL_MALFORMED);
            }
            bytes.data[at] ^= (uint8_t)(1 << bit);
        }
    }
}

static enum sl_code check_one(const char *contents, size_t size, struct member_job *job, struct archive *archive)
{
    struct sl_zip_writer writer = begin();
    sl_zip_add(&writer, SL_STR("a/ab/a.txt"), (struct sl_bytes){(const uint8_t *)contents, size});
    *archive = finish(&writer);
    assert_true(read_directory(archive));
    *job = (struct member_job){.archive = archive, .member = archive->members};
    member_check(job);
    return job->code;
}

TEST(contents_are_hashed_and_scanned)
{
    enum { SIZE = 600 << 10 };
    static char contents[SIZE];
    static const char snippet[] = "qcom/proprietary";
    static const uint8_t md5[16] = {0x90, 0x01, 0x50, 0x98, 0x3C, 0xD2, 0x4F, 0xB0,
                                    0xD6, 0x96, 0x3F, 0x7D, 0x28, 0xE1, 0x7F, 0x72};
    struct member_job job;
    struct archive archive;
    assert_int_equal(check_one("abc", 3, &job, &archive), SL_OK);
    assert_memory_equal(job.member->md5, md5, 16); /* RFC 1321, A.5 */
    assert_int_equal(job.member->used, job.member->entry->packed);
    for (size_t i = 0; i < SIZE; i++)
        contents[i] = (char)('a' + i * i % 17);
    assert_int_equal(check_one(contents, SIZE, &job, &archive), SL_OK);
    for (size_t at = 0; at + sizeof snippet < SIZE; at = at * 2 + 1) { /* on the boundaries of pieces, too */
        for (size_t k = 0; k < 2; k++) {
            size_t place = k ? at : (at + 1) / 2 * 2 > 8 ? (at + 1) - 8 : at;
            char kept[sizeof snippet];
            memcpy(kept, contents + place, sizeof kept);
            memcpy(contents + place, snippet, sizeof snippet - 1);
            assert_int_equal(check_one(contents, SIZE, &job, &archive), SL_PERMISSION_DENIED);
            memcpy(contents + place, kept, sizeof kept);
        }
    }
}

/* ---- symbol files ---- */

static bool read_info(const char *head, struct sl_buf *info, struct sl_str names[2])
{
    sl_buf_clear(info);
    return codeinfo_read(sl_str(head), SL_STR("a/AB/a.sym"), &arena, info, names);
}

TEST(symbol_file_header_gives_its_keys)
{
    struct sl_buf info = {0};
    struct sl_str names[2];
    assert_true(read_info("MODULE windows x86 ab1 x y.pdb\r\nINFO CODE_ID cd x y.dll\nINFO GENERATOR some thing\nFILE "
                          "0 a\nINFO CODE_ID ee z\n",
                          &info, names));
    assert_true(sl_str_equal(names[0], SL_STR("x y.pdb/AB1")) && sl_str_equal(names[1], SL_STR("x y.dll/CD")));
    assert_true(sl_str_equal(sl_buf_view(&info),
                             SL_STR("{\"debug_id\":\"AB1\",\"debug_filename\":\"x y.pdb\",\"code_file\":\"x y.dll\","
                                    "\"code_id\":\"CD\",\"generator\":\"some thing\",\"key\":\"a/AB/a.sym\"}")));
    assert_true(read_info("MODULE Linux x86 AB x\nINFO CODE_ID CD\nINFO OTHER", &info, names));
    assert_true(sl_str_equal(names[1], SL_STR("x/CD"))); /* without a name of its own */
    assert_true(read_info("MODULE Linux x86 AB x", &info, names));
    assert_int_equal(names[1].size, 0);
    static const char *const none[] = {"",
                                       "\n",
                                       "MODULE",
                                       "MODULE Linux x86 XY x",
                                       "MODULE Linux x86 AB ../x",
                                       "FILE 0 a\nMODULE a b AB x",
                                       "MODULE a b AB a/b"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(read_info(none[i], &info, names));
    sl_buf_free(&info);
}

/* ---- scopes ---- */

TEST(no_memory_for_scopes_is_no_list_without_scopes)
{
    struct config of_scopes = {.uploads_scope = UPLOADS_OF_SCOPE};
    struct service service = {.config = &of_scopes};
    const struct mozilla_token token = {.scope = SL_STR("mine")};
    struct sl_budget budget;
    sl_budget_init(&budget, 1);
    sl_budget_limit(&budget, 1, NULL, NULL);
    struct http_exchange x = {.service = &service, .arena = {.budget = &budget}};
    char(*scopes)[SYMBFILE_SCOPE];
    size_t count;
    assert_false(uploads_list_scopes(&x, &token, &scopes, &count));
    x.arena.budget = NULL;
    assert_true(uploads_list_scopes(&x, &token, &scopes, &count));
    assert_int_equal(count, 1);
    sl_arena_free(&x.arena);
}

TEST_FILE(.begin = setup, .end = teardown);
