/* What is a script and what is none; where positions are. */
#include "scope.h"

/* Each of them is a script with as many functions. */
static const struct {
    const char *source;
    unsigned count;
} scripts[] = {
    {"", 0},
    {"#!/usr/bin/node\n()=>1", 1},
    {"\xEF\xBB\xBF/* a */ // b\n\xE2\x80\xA8 \xC2\xA0 () => 1 // c", 1},
    {"a\n++b\nc\n--d", 0},
    {"a = b\n(() => 1)()", 1},
    {"a = () => {}\n(b)\n[c]", 1},
    {"a = () => {}\n/b/g.test(c)", 1},
    {"var a\nvar b = 1\nlet c, d\nconst e = 1", 0},
    {"if (a) b; else if (c) d\nelse { e }", 0},
    {"if (a) while (b) if (c) d; else e; else f", 0},
    {"do a; while (b) c", 0},
    {"do { a } while (b); do a\nwhile (b)", 0},
    {"for (;;) {} for (a;b;c) {} for (var a = 1, b; ; ) {} for (let a in b) {} for (a of b) {} for (a.b in c);", 0},
    {"async () => { for await (const a of b) await c }", 1},
    {"for (async of => 1; ; );", 1},
    {"for (let in a); for (let a of b);", 0},
    {"while (a) /b/.test(c)", 0},
    {"if (a) /b/.test(c); else /d/", 0},
    {"a / b / c; (a) / b / c; a[0] / 1 / 2; a++ / 2; this / 2; ({}) / 1 / 2", 0},
    {"{} /a/.test(b)", 0},
    {"x = function(){} / 2 / 3", 1},
    {"switch (a) { case 1: case b ? c : d: e; break; default: f }", 0},
    {"try { a } catch { b } finally { c } try {} catch (e) {} try {} finally {}", 0},
    {"a: for (;;) { break a; continue a; continue\na }", 0},
    {"function f() { return\na } function g() { return a } function h() { return }", 3},
    {"return () => 1", 1},
    {"with (a) b", 0},
    {"debugger; throw a; ; ;", 0},
    {"import a, {b as c, default as d, \"e\" as f} from \"g\" with {type: \"json\"}; import * as h from 'i'\nimport "
     "'j'",
     0},
    {"import(\"a\").then(() => 1); import.meta.b", 1},
    {"export * from 'a'; export * as b from 'c'; export {d, e as f, g as \"h\"}; export {i} from 'j'; export var k = "
     "() => 1",
     1},
    {"export {a}\nb = () => 1", 1},
    {"export default (() => 1)()", 1},
    {"export default {a() {}}", 1},
    {"export class A {} export async function b() {} export function* c() {}", 3},
    {"`a${b}c${`d${() => 1}`}e\\`\\${`", 1},
    {"a`b${() => 1}c`.d`e`", 1},
    {"`${{a() {}}}`", 1},
    {"/[/\\]]/u; /\\//; /a/v.b; a = /=/; [/b/, /c/]; {/d/}", 0},
    {"1_000n + .5e-3 + 0x1F + 1. + 1e+5 + 0b1 + 1..a + 08.5", 0},
    {"'a\\\nb' + \"\\\"\" + 'a\\'b'", 0},
    {"a ?? b ?. c ?. [d] ?. (e) ? .5 : 1", 0},
    {"a ? b : c ? d : e ? f = () => 1 : g", 1},
    {"a ** b, a **= b, a <<= b, a >>>= b, a &&= b, a ?\?= () => 1", 1},
    {"a < b > c >= d <= e >>> f >> g << h != i !== j == k === l", 0},
    {"!a, ~b, +c, -d, ++e, --f, typeof g, void h, delete i.j, k++, l--", 0},
    {"new a, new a(), new a.b(c), new (a())(), new new a()(), new.target", 0},
    {"function* g() { yield; yield* a; yield /b/; (yield); [yield, yield a]; x = yield\n() => 1 }", 2},
    {"async function f() { await a; await /b/; await (() => 1) }", 2},
    {"var await = 1, yield = 2, async = 3, let1, of = 4, get = 5; async(a); async\n(b); yield / 2", 0},
    {"function f() { var await = 1; await / 2 }", 1},
    {"let\na = 1; let [b] = c; let {d} = e; let = 1; let + 2", 0},
    {"using a = b; { await using c = () => 1 } using(d); using\n.e", 1},
    {"[, a, , b, ,]; [...a, ...b]; f(...a, b,); ({...a, b, c: d, 'e': f, 1: g, [h]: i, get: j, async, static: k,})", 0},
    {"({a = 1} = b); [a = 1, ...b] = c; ({a: [b], ...c}) => d", 1},
    {"(a, b,) => c; () => {}; async () => {}; async a => a; async (a, b) => {}; (...a) => b", 6},
    {"function f(a, b = 1, {c, d = 2}, [e], ...g) {}", 1},
    {"class A extends B.c(d) { static #a = 1; static { b } 'c' = 2; [d] = 3; 4\n5 = 6; static async; get\nx() {} }", 2},
    {"class A { a\n*b() {} static\nc = 1\nget\n*d() {} }", 3},
    {"class A { static a; static static() {} static get get() {} static; get; set; in; accessor b = 1 }", 3},
    {"class A { has(a) { return #b in a && super.c() } #b }", 2},
    {"@a @b.c @d(() => 1) class A { @e f; @g() h() {} @(i) static j; @k [l]() {} }", 4},
    {"x = @a class {}; export @b class C {} @d export default class {}", 3},
    {"a = {if: 1, class: 2, function() {}, new() {}}; a.if.class.new", 2},
    {"\xC3\xA4\xC3\xB6 = (\xF0\x9D\x92\x9C) => \xC3\xBC", 1},
    {"'use strict'\nvar a = () => 1", 1},
    {"<!--a", UINT32_MAX},
    {"a =", UINT32_MAX},
    {"(", UINT32_MAX},
    {")", UINT32_MAX},
    {"{", UINT32_MAX},
    {"}", UINT32_MAX},
    {"[a", UINT32_MAX},
    {"a b", UINT32_MAX},
    {"()", UINT32_MAX},
    {"(a,)", UINT32_MAX},
    {"(a +)", UINT32_MAX},
    {"f(,)", UINT32_MAX},
    {"()\n=> 1", UINT32_MAX},
    {"1 => 2", UINT32_MAX},
    {"a.b => c", UINT32_MAX},
    {"() => {} + 1", UINT32_MAX},
    {"'a\nb'", UINT32_MAX},
    {"`a", UINT32_MAX},
    {"`${}`", UINT32_MAX},
    {"/a", UINT32_MAX},
    {"/* a", UINT32_MAX},
    {"if (a)", UINT32_MAX},
    {"else b", UINT32_MAX},
    {"do a", UINT32_MAX},
    {"try {}", UINT32_MAX},
    {"for (a; b) c", UINT32_MAX},
    {"case 1:", UINT32_MAX},
    {"var 1", UINT32_MAX},
    {"x = return", UINT32_MAX},
    {"function () {", UINT32_MAX},
    {"function f(a {}", UINT32_MAX},
    {"class A { b: 1 }", UINT32_MAX},
    {"class A { a() {} , }", UINT32_MAX},
    {"({a() {} b})", UINT32_MAX},
    {"({get a})", UINT32_MAX},
    {"({'a'})", UINT32_MAX},
    {"({;})", UINT32_MAX},
    {"a ? b", UINT32_MAX},
    {"a ? b, c : d", UINT32_MAX},
    {"a = <div/>", UINT32_MAX},
    {"import a", UINT32_MAX},
    {"export {a", UINT32_MAX},
    {"#a", UINT32_MAX},
    {"a.#b => 1", UINT32_MAX},
    {"(a).#b => 1", UINT32_MAX},
    {"a.", UINT32_MAX},
    {"a\\", UINT32_MAX},
};

TEST(javascript_syntax_is_accepted)
{
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct sl_js_scopes scopes;
        struct sl_error error = {0};
        enum sl_code code = sl_js_scopes_read(&scopes, sl_str(scripts[i].source), false, NULL, &error);
        unsigned count = code == SL_OK ? scopes.count : UINT32_MAX;
        if (count != scripts[i].count)
            fail_msg("%s\n  has %d functions, not %d: %s", scripts[i].source, (int)count, (int)scripts[i].count,
                     error.message);
        sl_js_scopes_free(&scopes);
    }
}

/* That two never overlap is the reader's to hold, whatever it reads: the fuzz target of scopes looks at each of them. */
TEST(scopes_have_starts_ends_and_parents)
{
    const char *source = "a;function p(){()=>1;b;function c(){}d}e;()=>2";
    static const struct {
        uint32_t start, end, outer;
    } wanted[] = {{2, 39, SL_JS_NONE}, {15, 20, 0}, {23, 37, 0}, {41, 46, SL_JS_NONE}};
    struct sl_js_scopes scopes;
    assert_int_equal(sl_js_scopes_read(&scopes, sl_str(source), false, NULL, NULL), SL_OK);
    assert_int_equal(scopes.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(scopes.items[i].start, wanted[i].start);
        assert_int_equal(scopes.items[i].end, wanted[i].end);
        assert_int_equal(scopes.items[i].outer, wanted[i].outer);
    }
    sl_js_scopes_free(&scopes);
}

TEST(syntax_errors_report_line_and_byte)
{
    struct sl_js_scopes scopes;
    struct sl_error error = {0};
    assert_int_equal(sl_js_scopes_read(&scopes, SL_STR("a\n  b c"), false, NULL, &error), SL_MALFORMED);
    assert_string_equal(error.message, "line 2, byte 5: expected an operator");
    sl_js_scopes_free(&scopes);
}

TEST(partial_mode_keeps_scopes_before_an_error)
{
    struct sl_js_scopes scopes;
    assert_int_equal(
        sl_js_scopes_read(&scopes, SL_STR("function a(){} function b(){ c = () => 1; ) }"), true, NULL, NULL), SL_OK);
    assert_int_equal(scopes.count, 2);
    assert_int_equal(scopes.items[0].start, 0);
    assert_int_equal(scopes.items[1].start, 33);
    assert_int_equal(scopes.items[1].outer, SL_JS_NONE);
    sl_js_scopes_free(&scopes);
}

/* `open` and `close` around `middle`, `depth` times each. */
static enum sl_code nested(const char *open, const char *middle, const char *close, size_t depth)
{
    struct sl_buf text = {0};
    struct sl_js_scopes scopes;
    struct sl_budget budget;
    for (size_t i = 0; i < depth; i++)
        sl_buf_cstr(&text, open);
    sl_buf_cstr(&text, middle);
    for (size_t i = 0; i < depth; i++)
        sl_buf_cstr(&text, close);
    sl_budget_init(&budget, text.size);
    enum sl_code code = sl_js_scopes_read(&scopes, sl_buf_view(&text), false, &budget, NULL);
    sl_js_scopes_free(&scopes);
    sl_buf_free(&text);
    return code;
}

TEST(nesting_depth_is_limited)
{
    static const struct {
        const char *open, *middle, *close;
    } nests[] = {{"(", "a", ")"},     {"[", "a", "]"},    {"{", "a", "}"},      {"f(", "a", ")"},
                 {"`${", "a", "}`"},  {"a?", "b", ":c"},  {"(a=", "b", ")=>1"}, {"()=>", "1", ""},
                 {"({a:", "b", "})"}, {"if(a)", "b", ""}, {"a[", "b", "]"},     {"function f(){", "", "}"},
                 {"class{", "", "}"}};
    for (size_t i = 0; i < sizeof nests / sizeof nests[0]; i++) {
        enum sl_code code = nested(nests[i].open, nests[i].middle, nests[i].close, 100000);
        assert_int_equal(code, SL_MALFORMED);
        assert_int_equal(nested(nests[i].open, nests[i].middle, nests[i].close, 3000), i == 12 ? SL_MALFORMED : SL_OK);
    }
    /* These follow one another, however many. */
    assert_int_equal(nested("a?b:", "c", "", 100000), SL_OK);
    assert_int_equal(nested("a=", "()=>1", "", 100000), SL_OK);
    assert_int_equal(nested("a+", "1", "", 100000), SL_OK);
    assert_int_equal(nested("a.b[c].", "d=()=>1", "", 100000), SL_OK);
    assert_int_equal(nested("if(a)b;else ", "c", "", 100000), SL_OK);
    assert_int_equal(nested("!-", "a", "", 100000), SL_OK);
    assert_int_equal(nested("while(a)", "b", "", 100000), SL_OK);
}

TEST(offsets_are_converted_to_line_and_column)
{
    struct sl_buf text = {0};
    struct sl_js_line_index places;
    for (int i = 0; i < 300; i++)
        sl_buf_cstr(&text, i % 50 ? "a\xC3\xA4\xF0\x9D\x92\x9C" : "\n");
    assert_true(sl_js_line_index_build(&places, sl_buf_view(&text), NULL));
    uint32_t line = 0, column = 0;
    for (uint32_t i = 0; i <= text.size; i++) {
        uint8_t c = i < text.size ? text.data[i] : 0;
        if ((c & 0xC0) != 0x80) {
            struct sl_js_position place = sl_js_line_index_find(&places, i);
            assert_int_equal(place.line, line);
            assert_int_equal(place.column, column);
        }
        column += (c & 0xC0) == 0x80 ? 0 : c >= 0xF0 ? 2 : 1;
        if (c == '\n') {
            line++;
            column = 0;
        }
    }
    assert_int_equal(line, 6);
    sl_js_line_index_free(&places);
    sl_buf_free(&text);
}
