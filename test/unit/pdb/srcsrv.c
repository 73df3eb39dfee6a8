/* Templates of source server streams, and the streams as wholes. */
#include "../check.h"

#include "pdb/srcsrv.h"

static const char head[] = "SRCSRV: ini ----\r\nVERSION=2\r\nVERCTRL=http\r\nSRCSRV: variables ----\r\n";

/* A stream with these variables, and files behind "SRCSRV: source files". */
static struct srcsrv *stream(struct sl_arena *arena, const char *variables, const char *files)
{
    struct sl_buf text = {0};
    struct sl_str vcs;
    sl_buf_cstr(&text, head);
    sl_buf_cstr(&text, variables);
    sl_buf_cstr(&text, "\nSRCSRV: source files ---\n");
    sl_buf_cstr(&text, files);
    char *copy = sl_arena_strndup(arena, (char *)text.data, text.size);
    static _Atomic bool no_memory;
    struct srcsrv *s = srcsrv_open((struct sl_str){copy, text.size}, arena, &no_memory, &vcs);
    sl_buf_free(&text);
    return s;
}

static const struct srcsrv_fields fields = {
    {SL_STR("f:\\dd\\inc\\cvinfo.h"), SL_STR("VSTFDEVDIV_DEVDIV2"), SL_STR("/DevDiv/inc/cvinfo.h"), SL_STR("1363200")},
    4};

/* What the target works out to be; NULL: it cannot be. */
static void expect_target(const char *variables, const char *expected)
{
    struct sl_arena arena = {0};
    struct sl_buf target = {0};
    uint64_t work = 1 << 20;
    struct srcsrv *s = stream(&arena, variables, "");
    assert_non_null(s);
    bool good = srcsrv_evaluate(s, &fields, SL_STR("C:\\S"), &work, &target);
    assert_int_equal(good, expected != NULL);
    sl_buf_u8(&target, 0);
    if (expected)
        assert_string_equal((char *)target.data, expected);
    sl_buf_free(&target);
    sl_arena_free(&arena);
}

TEST(templates_are_expanded)
{
    expect_target("TFS_EXTRACT_TARGET=%targ%\\%var2%%fnbksl%(%var3%)\\%var4%\\%fnfile%(%var1%)\n"
                  "SRCSRVTRG=%TFS_extract_target%",
                  "C:\\S\\VSTFDEVDIV_DEVDIV2\\DevDiv\\inc\\cvinfo.h\\1363200\\cvinfo.h");
    expect_target("VSTFDEVDIV_DEVDIV2=http://server/DevDiv2\nSRCSRVTRG=%fnvar%(%var2%)", "http://server/DevDiv2");
    expect_target("HGSERVER=https://hg.mozilla.org/mozilla-central\n"
                  "HTTP_EXTRACT_TARGET=%hgserver%/raw-file/%var4%%var3%\nSRCSRVTRG=%http_extract_target%",
                  "https://hg.mozilla.org/mozilla-central/raw-file/1363200/DevDiv/inc/cvinfo.h");
    expect_target("SRCSRVTRG=plain (text)", "plain (text)");
    expect_target("SRCSRVTRG=", "");
    expect_target("srcsrvtrg=first\nSRCSRVTRG=second\nno assignment\n", "second");
    expect_target("SRCSRVTRG=%FnBksl%(a/%fnfile%(x\\y/z)/b)c", "a\\y\\z\\bc");
    expect_target("SRCSRVTRG=%fnfile%(no backslash)", "no backslash");
    expect_target("A=%b%\nB=%c%\nC=end\nSRCSRVTRG=%a%", "end");
}

TEST(templates_without_target_give_none)
{
    expect_target("A=%b%\nB=%c%\nC=%a%\nSRCSRVTRG=%a%", NULL);
    expect_target("SRCSRVTRG=%unknown%", NULL);
    expect_target("SRCSRVTRG=100%", NULL);
    expect_target("SRCSRVTRG=%%", NULL);
    expect_target("SRCSRVTRG=%fnbksl%", NULL);
    expect_target("SRCSRVTRG=%fnvar%()", NULL);
    expect_target("SRCSRVTRG=%fnbksl% (a)", NULL);
    expect_target("SRCSRVTRG=%fnbksl%(a", NULL);
    expect_target("SRCSRVTRG=%var5%", NULL);
    expect_target("SRCSRVTRG=%var0%%var11%%var01%", NULL);
    expect_target("SRCSRVTRG=x\nSRCSRVCMD=%unknown%", NULL);
    expect_target("SRCSRVTRG=x\nSRCSRVENV=%fnvar%(nothing)", NULL);
}

/* Each variable is twice the one before: 2^30 steps, or bytes, if nobody counted. */
TEST(growing_templates_are_limited)
{
    for (int text = 0; text < 2; text++) {
        struct sl_buf variables = {0};
        sl_buf_cstr(&variables, text ? "V0=text\n" : "V0=\n");
        for (int i = 1; i <= 30; i++)
            sl_buf_printf(&variables, "V%d=%%v%d%%%%v%d%%\n", i, i - 1, i - 1);
        sl_buf_cstr(&variables, "SRCSRVTRG=%v30%");
        sl_buf_u8(&variables, 0);
        expect_target((char *)variables.data, NULL);
        sl_buf_free(&variables);
    }
}

/* "path revision <url>", or "-". */
static void expect_origin(struct srcsrv *s, const char *path, const char *expected)
{
    struct sl_arena arena = {0};
    struct sl_file_origin origin = {{NULL, 0}};
    struct sl_buf text = {0};
    if (srcsrv_origin(s, sl_str(path), &arena, &origin))
        sl_buf_printf(&text, SL_STR_FMT " " SL_STR_FMT " <" SL_STR_FMT ">", SL_STR_ARG(origin.path),
                      SL_STR_ARG(origin.revision), SL_STR_ARG(origin.url));
    else
        sl_buf_cstr(&text, "-");
    sl_buf_u8(&text, 0);
    assert_string_equal((char *)text.data, expected);
    sl_buf_free(&text);
    sl_arena_free(&arena);
}

TEST(entries_give_links)
{
    static const char files[] = "C:\\src\\a.c*old*1\nc:\\SRC\\a.c*dir/a.c*2\nc:\\src\\b.c\n";
    struct sl_arena arena = {0};
    struct srcsrv *s = stream(&arena, "SRCSRVTRG=https://host/%var3%/%var2%", files);
    expect_origin(s, "c:\\src\\x\\..\\A.c", "  <https://host/2/dir/a.c>"); /* the last of two */
    expect_origin(s, "c:\\src\\b.c", "-");                                 /* lacks fields */
    expect_origin(s, "c:\\src\\c.c", "-");
    /* a command to run, even an empty one, is no download */
    s = stream(&arena, "SRCSRVTRG=https://host/%var3%\nSRCSRVCMD=", files);
    expect_origin(s, "c:\\src\\a.c", "-");
    s = stream(&arena, "SRCSRVTRG=ftp://host/%var3%", files);
    expect_origin(s, "c:\\src\\a.c", "-");
    sl_arena_free(&arena);
}

TEST(malformed_streams_are_ignored)
{
    struct sl_arena arena = {0};
    struct sl_str vcs;
    static const char *const rows[] = {
        "",
        "SRCSRV",
        "SRCSRV: ini --\n",
        "SRCSRV: variables --\nSRCSRVTRG=x\nSRCSRV: source files --\n",
        "SRCSRV: ini --\nVERSION=1\nSRCSRV: source files --\nSRCSRV: variables --\nSRCSRVTRG=x\n",
        "SRCSRV: ini --\nVERSION=1\nSRCSRV: variables --\nSRCSRVTRG=x\n",
        "SRCSRV: ini --\nVERSION=1\nSRCSRV: variables --\nSRCSRVTRG=\xFF\nSRCSRV: source files --\n",
        "SRCSRV: ini --\nVERSION=9\nSRCSRV: variables --\nSRCSRVTRG=x\nSRCSRV: source files --\n",
    };
    _Atomic bool no_memory = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_null(srcsrv_open(sl_str(rows[i]), &arena, &no_memory, &vcs));
    assert_false(no_memory);
    sl_arena_free(&arena);
}

/* All files together have a budget: a small stream cannot cost hours. */
TEST(work_is_bounded)
{
    struct sl_arena arena = {0};
    struct sl_buf variables = {0}, files = {0};
    sl_buf_cstr(&variables, "BIG=https://");
    sl_buf_fill(&variables, 'x', 60000);
    sl_buf_cstr(&variables, "\nSRCSRVTRG=%big%");
    sl_buf_u8(&variables, 0);
    for (int i = 0; i < 1000; i++)
        sl_buf_printf(&files, "f%d*\n", i);
    sl_buf_u8(&files, 0);
    struct srcsrv *s = stream(&arena, (char *)variables.data, (char *)files.data);
    size_t good = 0;
    for (int i = 0; i < 1000; i++) {
        char path[16];
        struct sl_arena scratch = {0};
        struct sl_file_origin origin = {{NULL, 0}};
        snprintf(path, sizeof path, "f%d", i);
        good += srcsrv_origin(s, sl_str(path), &scratch, &origin);
        sl_arena_free(&scratch);
    }
    assert_in_range(good, 1, 100);
    sl_buf_free(&variables);
    sl_buf_free(&files);
    sl_arena_free(&arena);
}
