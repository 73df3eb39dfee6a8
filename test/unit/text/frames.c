/* Frames in texts, their modules, and lines that are written again. */
#include "../check.h"

#include "text/text.h"

/* Appends the text with the calls at every native frame that has a module; `found` counts pieces by format. */
static void rewrite(struct sl_text *reader, const char *text, const struct sl_text_call *calls, size_t count,
                    struct sl_buf *out)
{
    struct sl_text_piece piece;
    struct sl_str rest = sl_str(text), line;
    uint64_t shift = 0;
    while (sl_text_next_line(&rest, &line)) {
        while (sl_text_next(reader, &line, &piece)) {
            if (piece.kind != SL_TEXT_NATIVE) {
                sl_buf_str(out, piece.text);
                continue;
            }
            sl_text_resolve(reader, &piece.native);
            sl_text_write(&piece.native, calls, piece.native.module == SL_TEXT_NO_MODULE ? 0 : count, &shift, out);
        }
    }
    sl_text_flush(reader, out);
    sl_buf_u8(out, 0);
}

static void assert_rewritten(const char *text, const struct sl_text_call *calls, size_t count, const char *wanted)
{
    struct sl_text reader;
    struct sl_buf out = {0};
    sl_text_begin(&reader);
    rewrite(&reader, text, calls, count, &out);
    assert_string_equal((char *)out.data, wanted);
    sl_buf_free(&out);
    sl_text_end(&reader);
}

static const struct sl_text_call one = {
    .function = {"f", 1}, .path = {"/a.c", 4}, .line = 3, .offset = 5, .has_offset = true};
static const struct sl_text_call two[] = {{.function = {"g", 1}, .path = {"/a.c", 4}, .line = 2},
                                          {.function = {"f", 1}, .path = {"/a.c", 4}, .line = 3}};
static const struct sl_text_call bare = {.function = {"f", 1}, .offset = 5, .has_offset = true};

TEST(inlined_calls_of_sanitizers_shift_the_numbers_behind_them)
{
    assert_rewritten(
        "x\n  #0 0x1  (/a+0x1)\n  #1 0x2  (/a+0x2) (BuildId: ab)\n  #2 0x3 in h /b.c:1:2\n  #0 0x4  (/a+0x4)", two, 2,
        "x\n  #0 0x1 in g /a.c:2\n  #1 0x1 in f /a.c:3\n  #2 0x2 in g /a.c:2\n  #3 0x2 in f /a.c:3\n"
        "  #4 0x3 in h /b.c:1:2\n  #0 0x4 in g /a.c:2\n  #1 0x4 in f /a.c:3");
    assert_rewritten("#0 0x1  (/a+0x1) (BuildId: ab)\r\n", &bare, 1, "#0 0x1 in f (/a+0x1) (BuildId: ab)\r\n");
    assert_rewritten("#0 <null> <null> (a+0x4) (BuildId: ab)\n", &one, 1, "#0 f /a.c:3 (a+0x4) (BuildId: ab)\n");
}

TEST(lines_are_written_as_their_tools_write_them)
{
    static const struct {
        const char *line, *one, *two, *bare;
    } rows[] = {
        {"p./a(+0x1)[0x2]", "p./a(+0x1)[0x2] f at /a.c:3", "p./a(+0x1)[0x2] g at /a.c:2\n  (inlined by) f at /a.c:3",
         "p./a(+0x1)[0x2] f"},
        {"  #00 pc 0001  /a (f+1)", "  #00 pc 0001  /a (f+1) f (/a.c:3)",
         "  #00 pc 0001  /a (f+1) g (/a.c:2)\n    (inlined by) f (/a.c:3)", "  #00 pc 0001  /a (f+1) f"},
        {"C  [a+0x1]  x+0x2", "C  [a+0x1]  f+0x5  (/a.c:3)", "C  [a+0x1]  g  (/a.c:2)\n  (inlined by) f  (/a.c:3)",
         "C  [a+0x1]  f+0x5"},
        {"#1  0x2 n/a (a + 0x1)", "#1  0x2 f (a + 0x1) (/a.c:3)",
         "#1  0x2 g (a + 0x1) (/a.c:2)\n  (inlined by) f (/a.c:3)", "#1  0x2 f (a + 0x1)"},
        {"a!<BaseAddress>+0x1", "a!f+0x5 [/a.c @ 3]", "a!g [/a.c @ 2]\n  (inlined by) f [/a.c @ 3]", "a!f+0x5"},
        {"0   a  0x11 0x10 + 1", "0   a  0x11 f + 5 (/a.c:3)",
         "0   a  0x11 g (/a.c:2) [inlined]\n0   a  0x11 f (/a.c:3)", "0   a  0x11 f + 5"},
        {"a + 0x1", "a + 0x1 f (/a.c:3)", "a + 0x1 g (/a.c:2)\n  (inlined by) f (/a.c:3)", "a + 0x1 f"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_rewritten(rows[i].line, &one, 1, rows[i].one);
        assert_rewritten(rows[i].line, two, 2, rows[i].two);
        assert_rewritten(rows[i].line, &bare, 1, rows[i].bare);
        assert_rewritten(rows[i].line, NULL, 0, rows[i].line);
    }
}

TEST(absolute_addresses_are_found_in_the_mappings_of_the_text)
{
    static const char maps[] = "10000-20000 r--p 00000000 fe:00 1  /a\n20000-30000 r-xp 00010000 fe:00 1  /a\n";
    struct sl_text reader;
    struct sl_buf out = {0};
    uint32_t module;
    uint64_t value;
    bool of_file;
    sl_text_begin(&reader);
    rewrite(&reader, maps, NULL, 0, &out);
    assert_string_equal((char *)out.data, maps);
    assert_true(sl_text_find(&reader, 0x21234, &module, &value, &of_file));
    assert_int_equal(module, 0);
    assert_int_equal(value, 0x11234);
    assert_false(of_file);
    assert_false(sl_text_find(&reader, 0x30000, &module, &value, &of_file));
    assert_false(sl_text_find(&reader, 0xffff, &module, &value, &of_file));
    sl_buf_clear(&out);
    rewrite(&reader, "#1  0x0000000000021234 in ?? () from /a\n   4:  0x21234 - <unknown>\n0x21234\n#0  0x21234\n",
            &one, 1, &out);
    assert_string_equal(
        (char *)out.data,
        "#1  0x0000000000021234 in f () at /a.c:3\n   4:  0x21234 - f\n                              at /a.c:3\n"
        "0x21234 f (/a.c:3)\n#0  0x21234 f\n    /a.c:3\n");
    sl_buf_free(&out);
    sl_text_end(&reader);
}

TEST(mappings_are_read_as_gdb_lists_them)
{
    static const char given[] = "      0x555555554000     0x555555555000     0x1000        0x0  r--p   /a b\n"
                                "      0x555555555000     0x555555556000     0x1000     0x1000  r-xp   /a b\n"
                                "      0x7ffff7fb3000     0x7ffff7fb5000     0x2000        0x0  rw-p   \n"
                                "      0x555555557000     0x555555558000     0x2000        0x0\n";
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_buf out = {0};
    struct sl_str frame = SL_STR("#0  0x0000555555555130 in ?? ()\n");
    sl_text_begin(&reader);
    rewrite(&reader, given, &one, 1, &out);
    assert_string_equal((char *)out.data, given);
    assert_int_equal(reader.module_count, 1);
    assert_int_equal(reader.counts[SL_TEXT_ADDRESSES], 1); /* the last line: its size is wrong */
    assert_true(sl_text_next(&reader, &frame, &piece));
    sl_text_resolve(&reader, &piece.native);
    assert_int_equal(piece.native.base, SL_TEXT_OF_IMAGE);
    assert_int_equal(piece.native.address, 0x1130);
    assert_true(sl_str_equal(reader.modules[piece.native.module].name, SL_STR("/a b")));
    sl_buf_free(&out);
    sl_text_end(&reader);
}

TEST(frames_show_where_the_module_of_others_was_loaded)
{
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_str first = SL_STR("/l/c.so(+0x2724a)[0x7f965014a24a]\n"),
                  second = SL_STR("/l/c.so(f+0x85)[0x7f965014a305]\n");
    sl_text_begin(&reader);
    assert_true(sl_text_next(&reader, &second, &piece));
    sl_text_resolve(&reader, &piece.native);
    assert_int_equal(piece.native.base, SL_TEXT_OF_SYMBOL);
    assert_true(sl_text_next(&reader, &first, &piece));
    second = SL_STR("/l/c.so(f+0x85)[0x7f965014a305]\n");
    assert_true(sl_text_next(&reader, &second, &piece));
    sl_text_resolve(&reader, &piece.native);
    assert_int_equal(piece.native.base, SL_TEXT_OF_FILE);
    assert_int_equal(piece.native.address, 0x27305);
    sl_text_end(&reader);
}

TEST(markup_ends_with_the_mappings_of_a_module)
{
    assert_rewritten("{{{reset}}}\n{{{module:1:a:elf:ab}}} "
                     "gone\n{{{mmap:0x10:0x10:load:1:rx:0x100}}}\n{{{mmap:0x20:0x10:load:1:r:0x110}}}\n"
                     "at {{{pc:0x11}}}, {{{bt:3:0x12}}}\n{{{pc:0x99}}} {{{foo}}} {{{\n{{{reset}}}\n{{{pc:0x11}}}",
                     &one, 1,
                     "[[[ELF module #0x1 \"a\"; BuildID=ab [0x10-0x1f](rx),[0x20-0x2f](r)]]]\n"
                     "at f[/a.c:3],     #3    0x0000000000000011 f /a.c:3:0 (a+0x101)\n[[[pc:0x99]]] {{{foo}}} "
                     "{{{\n[[[reset]]]\n[[[pc:0x11]]]");
    assert_rewritten("{{{module:1:a:elf:ab}}}", NULL, 0, "[[[ELF module #0x1 \"a\"; BuildID=ab]]]\n");
}

/* Logs of Fuchsia list all modules again before each stack. */
TEST(markup_is_read_after_any_number_of_resets)
{
    enum { STACKS = 60000 };
    struct sl_text reader;
    struct sl_buf out = {0};
    sl_text_begin(&reader);
    for (unsigned i = 0; i < STACKS; i++) {
        sl_text_part(&reader);
        sl_buf_clear(&out);
        rewrite(&reader,
                "{{{reset}}}\n{{{module:0:a:elf:ab}}}\n{{{mmap:0x10:0x10:load:0:rx:0x0}}}\n{{{module:1:b:elf:cd}}}\n"
                "{{{mmap:0x20:0x10:load:1:rx:0x0}}}\n{{{pc:0x21}}}\n",
                &one, 1, &out);
    }
    assert_non_null(strstr((char *)out.data, "\nf[/a.c:3]\n"));
    assert_false(sl_text_is_nearly_full(&reader));
    sl_buf_free(&out);
    sl_text_end(&reader);
}

TEST(a_reader_says_that_it_stores_many_mappings)
{
    struct sl_text reader;
    struct sl_buf out = {0};
    char line[80];
    unsigned count = 0;
    sl_text_begin(&reader);
    while (!sl_text_is_nearly_full(&reader) && count < 100000) {
        snprintf(line, sizeof line, "%x000-%x000 r-xp 00000000 fe:00 1  /a\n", 2 * count, 2 * count + 1);
        rewrite(&reader, line, NULL, 0, &out);
        sl_buf_clear(&out);
        count++;
    }
    assert_in_range(count, 1000, 10000);
    sl_buf_free(&out);
    sl_text_end(&reader);
}

TEST(other_lines_are_no_frames)
{
    static const char *const lines[] = {
        "0x602000000010 is located 0 bytes inside of 16-byte region",
        "  0x0c047fff7fb0: 00 00 00 00",
        "=>0x0c: fa fa[fd]fd",
        "took 0x10 ns",
        "issue #12 is open",
        "#include <a.h>",
        "#0  inner (p=0x0) at a.c:3",
        "\t/src/p.go:3 +0x16",
        "==1==    at 0x109149: f (a.c:3)",
        "a [0x12] b",
        "x!y",
        "C [a+0x1]",
        "#0 0x12345678901234567 (a+0x1)",
        "(+0x1)[0x2]",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct sl_text reader;
        struct sl_text_piece piece;
        struct sl_str line = sl_str(lines[i]);
        sl_text_begin(&reader);
        while (sl_text_next(&reader, &line, &piece))
            if (piece.kind != SL_TEXT_COPY)
                fail_msg("a frame: %s", lines[i]);
        sl_text_end(&reader);
    }
}

TEST(memory_does_not_grow_with_the_text)
{
    struct sl_text reader;
    struct sl_buf out = {0};
    char line[200];
    size_t after = 0;
    sl_text_begin(&reader);
    for (unsigned i = 0; i < 200000; i++) {
        snprintf(line, sizeof line,
                 "%x000-%x000 r-xp 0 0 0 /m%u\n#0 0x1  "
                 "(/m%u+0x1)\n{{{module:%u:m%u:elf:ab}}}\n{{{mmap:0x%x:0x1:load:%u:rx:0x0}}}\n{{{reset}}}\n",
                 2 * i, 2 * i + 1, i, i, i, i, i, i);
        sl_text_part(&reader);
        sl_buf_clear(&out);
        rewrite(&reader, line, &one, 1, &out);
        if (i == 100000)
            after = reader.arena.used + reader.made.used + reader.numbers.used;
    }
    assert_true(reader.arena.used + reader.made.used + reader.numbers.used <= after + 4096);
    assert_true(after < 32 << 20);
    sl_buf_free(&out);
    sl_text_end(&reader);
}

/* ---- Apple's reports as JSON ---- */

#define IPS_HEADER "{\"app_name\":\"Demo\",\"timestamp\":\"2024\",\"bug_type\":\"309\"}\n"
#define IPS_IMAGE                                                                                                      \
    "{\"base\":4096,\"size\":99,\"uuid\":\"2d903291-397d-3d14-bfca-52c7fb8c5e00\",\"path\":\"\\/bin\\/Demo\"}"

/* Names are members of the frame's object; callers of inlined calls are objects of their own. */
TEST(frames_of_json_reports_get_names_as_members)
{
    assert_rewritten("log\n" IPS_HEADER "{\"usedImages\":[{\"base\":0,\"name\":\"?\"}," IPS_IMAGE
                     "],\"threads\":[{\"id\":1,\"frames\":[{\"imageOffset\":16,\"imageIndex\":1},\n"
                     " {\"imageIndex\" : 1, \"imageOffset\" : 32\n }]}]}\nmore {\"imageOffset\":1,\"imageIndex\":1}\n",
                     two, 2,
                     "log\n" IPS_HEADER "{\"usedImages\":[{\"base\":0,\"name\":\"?\"}," IPS_IMAGE
                     "],\"threads\":[{\"id\":1,\"frames\":[{\"imageOffset\":16,\"imageIndex\":1,\"symbol\":\"g\","
                     "\"sourceFile\":\"/a.c\",\"sourceLine\":2,\"inline\":true},{\"imageOffset\":16,\"imageIndex\":1,"
                     "\"symbol\":\"f\",\"sourceFile\":\"/a.c\",\"sourceLine\":3},\n"
                     " {\"imageIndex\" : 1, \"imageOffset\" : 32\n ,\"symbol\":\"g\",\"sourceFile\":\"/a.c\","
                     "\"sourceLine\":2,\"inline\":true},{\"imageOffset\":32,\"imageIndex\":1,\"symbol\":\"f\","
                     "\"sourceFile\":\"/a.c\",\"sourceLine\":3}]}]}\nmore "
                     "{\"imageOffset\":1,\"imageIndex\":1}\n");
}

/* Objects that are no frames, frames with names, images that do not exist, reports without header: nothing is changed. */
TEST(other_objects_of_json_reports_stay)
{
    static const char *const texts[] = {
        IPS_HEADER
        "{\"usedImages\":[" IPS_IMAGE "],\"x\":[{\"imageOffset\":16},{\"imageOffset\":1,\"imageIndex\":1},"
        "{\"imageOffset\":1,\"imageIndex\":0,\"symbol\":\"a\"},{\"imageOffset\":1,\"imageIndex\":0,\"b\":{}}]}\n",
        "{\"usedImages\":[" IPS_IMAGE "],\"x\":[{\"imageOffset\":1,\"imageIndex\":0}]}\n",
        IPS_HEADER "\n\nno report {\"imageOffset\":1,\"imageIndex\":0}\n",
        IPS_HEADER
        "{\"a\":[{\"imageOffset\":1,\"imageIndex\":99999999999}, 'x'\n{\"imageOffset\":1,\"imageIndex\":0}\n",
        IPS_HEADER "{\"usedImages\":[" IPS_IMAGE "]}\n" IPS_HEADER "{\"a\":[{\"imageOffset\":1,\"imageIndex\":0}]}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_rewritten(texts[i], &one, 1, texts[i]);
}

/* Behind a truncated report other formats are read again. */
TEST(truncated_json_reports_do_not_hide_what_follows)
{
    assert_rewritten(IPS_HEADER "{\"a\":[{\"imageOffset\":1,\n    #0 0x1314  (/tmp/a+0x1314)\n", &one, 1,
                     IPS_HEADER "{\"a\":[{\"imageOffset\":1,\n    #0 0x1314 in f /a.c:3\n");
}

/* A part of a text that grows ends in front of a report that goes on. */
TEST(parts_end_in_front_of_reports_that_are_not_complete)
{
    static const struct {
        const char *text;
        size_t rest;
    } rows[] = {
        {"a\nb\n", 0},
        {"a\n" IPS_HEADER, sizeof IPS_HEADER - 1},
        {"a\n" IPS_HEADER "{\"b\":[\n", sizeof IPS_HEADER - 1 + 7},
        {"a\n" IPS_HEADER "{\"b\":[\n]}\n", 0},
        {"a\n" IPS_HEADER "{\"b\":[\n]}\n" IPS_HEADER "{\n", sizeof IPS_HEADER - 1 + 2},
        {"a\n" IPS_HEADER "no report\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sl_text_complete_size(sl_str(rows[i].text)), strlen(rows[i].text) - rows[i].rest);
}
