/* Access keys in the configuration. */
#include "parse.h"

#define DIGEST "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" /* of "secret" */

TEST(access_keys_are_read)
{
    struct outcome o;
    parse(&o, "auth:\n  require: [symbols, metrics]\n  keys:\n"
              "    - {id: ci, sha256: " DIGEST ", rights: [symbols:write, symbols:read]}\n"
              "    - {id: old, sha256: " DIGEST ", rights: [], expires: 2027-01-31}\n"
              "    - {id: few, sha256: " DIGEST ", rights: [downloads], scopes: [a, global]}\n"
              "    - {id: none, sha256: " DIGEST ", rights: [symbolicate], scopes: []}\n");
    assert_string_equal(
        outcome_text(&o), /* keys that open nothing */
        "config.yml:5:99: warning: auth.keys[1].rights: the list is empty, so the key allows no requests\n"
        "config.yml:7:123: warning: auth.keys[3].scopes: the list is empty, so the key allows no requests\n");
    assert_int_equal(o.config->auth.require_count, 2);
    assert_int_equal(o.config->auth.key_count, 4);
    const struct access_key *key = o.config->auth.keys;
    assert_true(sl_str_equal(key->id, SL_STR("ci")));
    assert_int_equal(key->sha256[0], 0x2b);
    assert_int_equal(key->right_count, 2);
    assert_true(sl_str_equal(key->rights[1], SL_STR("symbols:read")));
    assert_true(key->expires_s == INT64_MAX);
    assert_null(key->scopes);                    /* any */
    assert_true(key[1].expires_s == 1801440000); /* the end of that day */
    assert_int_equal(key[2].scope_count, 2);
    assert_true(sl_str_equal(key[2].scopes[1], SL_STR("global")));
    assert_non_null(key[3].scopes);
    assert_int_equal(key[3].scope_count, 0);
    outcome_free(&o);
}

TEST(uploads_need_a_key_by_default)
{
    struct outcome o;
    parse_good(&o, "cache_dir: /x");
    assert_int_equal(o.config->auth.require_count, 2);
    assert_true(sl_str_equal(o.config->auth.require[0], SL_STR("symbols")));
    outcome_free(&o);
    parse_good(&o, "auth: {require: []}");
    assert_int_equal(o.config->auth.require_count, 0);
    outcome_free(&o);
}

TEST(invalid_access_keys_are_errors)
{
    expect_error("auth: {keys: 5}", "1:14: error: auth.keys: is not a list");
    expect_error("auth: {keys: [5]}", "1:15: error: auth.keys[0]: is not a map");
    expect_error("auth: {keys: [{id: 'a:b', sha256: " DIGEST ", rights: [page]}]}",
                 "1:20: error: auth.keys[0].id: is missing, or not printable ASCII without blanks and colons");
    expect_error("auth: {keys: [{id: a, sha256: abc, rights: [page]}]}",
                 "1:31: error: auth.keys[0].sha256: is not a SHA-256 in hex");
    expect_error(
        "auth: {require: [everything]}",
        "1:18: error: auth.require: \"everything\" is not one of symbolicate mozilla proxy symcache symbols metrics "
        "status page admin downloads debuginfod");
    expect_error(
        "auth: {keys: [{id: a, sha256: " DIGEST ", rights: [fly]}]}",
        "1:106: error: auth.keys[0].rights: \"fly\" is not one of symbolicate mozilla proxy symcache symbols:read "
        "symbols:write symbols:delete metrics status page admin downloads debuginfod");
    expect_error("auth: {keys: [{id: a, sha256: " DIGEST ", rights: [page], scopes: all}]}",
                 "1:121: error: auth.keys[0].scopes: is not a list");
    expect_error("auth: {keys: [{id: a, sha256: " DIGEST ", rights: [page], scopes: [1]}]}",
                 "1:122: error: auth.keys[0].scopes: is no text");
    expect_error("auth: {keys: [{id: a, sha256: " DIGEST ", rights: [page], expires: soon}]}",
                 "1:122: error: auth.keys[0].expires: is not a date (example: 2027-01-31)");
}
