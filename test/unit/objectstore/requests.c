/* What buckets are asked with and how their answers are read: signatures, names, XML, assertions. */
#include "../check.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "objectstore/impl.h"

static struct sl_arena arena;

static int forget(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

#define same(str, text) assert_true(sl_str_equal((str), sl_str(text)))

/* ---- signatures ---- */
TEST(s3_signature_equals_the_reference_example)
{
    /* The example of "Authenticating Requests: Using Query Parameters", Amazon S3 API Reference. */
    struct aws_signing s = {
        .method = "GET",
        .scheme = SL_STR("https://"),
        .host = SL_STR("examplebucket.s3.amazonaws.com"),
        .path = SL_STR("/test.txt"),
        .region = SL_STR("us-east-1"),
        .keys = {SL_STR("AKIAIOSFODNN7EXAMPLE"), SL_STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), {NULL, 0}},
        .now_s = 1369353600,
        .expires_s = 86400};
    assert_string_equal(aws_presign(&arena, &s),
                        "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    s.keys = (struct aws_keys){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    assert_non_null(strstr(aws_presign(&arena, &s), "X-Amz-Credential=%2F20130524%2F"));
}

TEST(object_urls_follow_bucket_region_and_endpoint)
{
    static const struct {
        const char *bucket, *region, *endpoint, *key, *url; /* NULL = refused */
    } rows[] = {
        {"b-1", "us-east-1", NULL, "k", "https://b-1.s3.us-east-1.amazonaws.com/k"},
        {"b", "cn-north-1", NULL, "k", "https://b.s3.cn-north-1.amazonaws.com.cn/k"},
        {"b.c", "us-east-1", NULL, "k", "https://s3.us-east-1.amazonaws.com/b.c/k"},
        {"-b", "us-east-1", NULL, "k", "https://s3.us-east-1.amazonaws.com/-b/k"},
        {"b/../c", "us-east-1", NULL, "k", "https://s3.us-east-1.amazonaws.com/b%2F..%2Fc/k"},
        {"b", "us-east-1", NULL, "a b/c+%\xC3\xA9~", "https://b.s3.us-east-1.amazonaws.com/a%20b/c%2B%25%C3%A9~"},
        {"b", "x", "http://minio:9000", "k", "http://minio:9000/b/k"},
        {"b", "x", "http://Minio:80/", "k", "http://minio/b/k"},
        {"b", "x", "https://h:443/s3//", "k", "https://h/s3/b/k"},
        {"b", "x", "https://h/s3/", "k", "https://h/s3/b/k"},
        {"b", "x", "minio:9000", "k", "https://minio:9000/b/k"},
        {"b", "x", "https://user:pass@h/?q=1#f", "k", "https://h/b/k"},
        {"b", "x", "http://[::1]:9000", "k", "http://[::1]:9000/b/k"},
        {"b", "evil.test/", NULL, "k", NULL},
        {"b", "", NULL, "k", NULL},
        {"b", "x", "", "k", NULL},
        {"b", "x", "http://", "k", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bucket_config bucket = {
            .s3_name = sl_str(rows[i].bucket), .region = sl_str(rows[i].region), .endpoint = sl_str(rows[i].endpoint)};
        struct aws_signing out = {0};
        bool ok = aws_address(&arena, &bucket, sl_str(rows[i].key), &out);
        char url[512];
        snprintf(url, sizeof url, SL_STR_FMT SL_STR_FMT SL_STR_FMT, SL_STR_ARG(out.scheme), SL_STR_ARG(out.host),
                 SL_STR_ARG(out.path));
        if (ok != (rows[i].url != NULL) || (ok && strcmp(url, rows[i].url) != 0))
            fail_msg("row %zu: %s", i, url);
    }
}

/* ---- XML ---- */
TEST(xml_element_texts_are_found)
{
    static const struct {
        const char *xml, *code, *message; /* NULL = not found */
        bool ok;
    } rows[] = {
        {"<E><Code>c</Code><Message>m</Message></E>", "c", "m", true},
        {"<E><In><Code>x</Code></In><Code>c</Code><Code>d</Code></E>", "c", NULL, true},
        {"<Code>root</Code>", NULL, NULL, true},
        {"<E><Code>a<!-- x -->&lt;<b>no</b>c</Code></E>", "a<c", NULL, true},
        {"<E><Code><![CDATA[<x>]]></Code></E>", "<x>", NULL, true},
        {"<E><Code/></E>", "", NULL, true},
        {"<E xmlns='urn:x'><Code>c</Code></E>", "c", NULL, true},
        {"<E><Code>c</Code>", "c", NULL, false},
        {"", NULL, NULL, false},
        {"<!DOCTYPE E [<!ENTITY a 'b'>]><E><Code>&a;</Code></E>", NULL, NULL, false},
        {"<!DOCTYPE E SYSTEM 'file:///etc/passwd'><E><Code>c</Code></E>", NULL, NULL, false},
        {"<E>\x01</E>", NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xml_text texts[] = {{.name = "Code", .depth = 2}, {.name = "Message", .depth = 2}};
        assert_int_equal(xml_texts(sl_str(rows[i].xml), texts, 2), rows[i].ok ? SL_OK : SL_MALFORMED);
        assert_int_equal(texts[0].found, rows[i].code != NULL);
        assert_int_equal(texts[1].found, rows[i].message != NULL);
        if (rows[i].code)
            same(sl_buf_view(&texts[0].text), rows[i].code);
        xml_texts_free(texts, 2);
    }
}

TEST(deep_and_long_xml_is_limited)
{
    struct sl_buf xml = {0};
    struct xml_text text = {.name = "Code"};
    for (int i = 0; i < 100000; i++)
        sl_buf_cstr(&xml, "<a>");
    assert_int_equal(xml_texts(sl_buf_view(&xml), &text, 1), SL_MALFORMED);
    sl_buf_clear(&xml);
    sl_buf_cstr(&xml, "<E><Code>");
    sl_buf_fill(&xml, 'x', 1 << 20);
    sl_buf_cstr(&xml, "</Code></E>");
    assert_int_equal(xml_texts(sl_buf_view(&xml), &text, 1), SL_OK);
    assert_true(text.text.size <= 16 * 1024);
    xml_texts_free(&text, 1);
    sl_buf_free(&xml);
}

/* ---- assertions of GCS ---- */
TEST(invalid_private_keys_are_refused)
{
    static const char *const keys[] = {
        "",
        "x",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nMIIB\n",
        /* an elliptic curve's */
        "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\n"
        "OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n"
        "1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G\n-----END PRIVATE KEY-----\n",
        "AAAA",
        "not base64!",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct sl_buf out = {0};
        struct google_account account = {sl_str(keys[i]), SL_STR("a@b"), SL_STR("")};
        assert_false(google_assertion(&account, "scope", 0, &out));
        sl_buf_free(&out);
    }
}

TEST(gcs_assertion_is_signed)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    assert_true(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL));
    long size = BIO_get_mem_data(bio, &pem);
    struct sl_buf out = {0};
    struct google_account account = {{pem, (size_t)size}, SL_STR("a@b"), SL_STR("")};
    assert_true(google_assertion(&account, "https://www.googleapis.com/auth/devstorage.read_only", 1700000000, &out));
    /* The texts are those that base64url makes of the header and the claims. */
    static const char begin[] =
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9."
        "eyJpc3MiOiJhQGIiLCJzY29wZSI6Imh0dHBzOi8vd3d3Lmdvb2dsZWFwaXMuY29tL2F1dGgvZGV2c3RvcmFnZS5yZWFkX29ubHkiLCJhdWQiOi"
        "Jo"
        "dHRwczovL3d3dy5nb29nbGVhcGlzLmNvbS9vYXV0aDIvdjQvdG9rZW4iLCJleHAiOjE3MDAwMDM1MTAsImlhdCI6MTcwMDAwMDAwMH0.";
    assert_true(out.size == sizeof begin - 1 + 342); /* 256 bytes */
    assert_memory_equal(out.data, begin, sizeof begin - 1);
    sl_buf_free(&out);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

/* ---- names and configurations ---- */
TEST(object_names_are_joined_to_the_prefix)
{
    static const struct {
        const char *prefix, *key; /* of "a/b" */
    } rows[] = {{NULL, "a/b"}, {"", "a/b"}, {"/", "a/b"}, {"x", "x/a/b"}, {"//x/y/", "x/y/a/b"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bucket_config config = {.s3_name = SL_STR("b"), .prefix = sl_str(rows[i].prefix)};
        same(bucket_key(&arena, &config, SL_STR("a/b")), rows[i].key);
    }
    struct bucket_config config = {.prefix = SL_STR("x")};
    same(bucket_key(&arena, &config, SL_STR("")), "x/");
}

/* The key at fault; NULL: the store is opened. */
static const char *fault_of(struct bucket_config config)
{
    struct object_store store;
    struct sl_error error;
    const char *key;
    return object_store_open(&store, &config, "label", &arena, &key, &error) == SL_OK ? NULL : key;
}

TEST(invalid_bucket_configurations_are_refused)
{
    const struct bucket_config good = {
        .s3_name = SL_STR("b"), .access_key = {SL_STR("a")}, .secret_key = {SL_STR("s")}};
    struct bucket_config config = good;
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    assert_null(fault_of(config));
    config.region = SL_STR("a b");
    assert_string_equal(fault_of(config), "s3.region");
    config.endpoint = SL_STR("http://minio");
    assert_null(fault_of(config));
    config.endpoint = SL_STR("not a url");
    assert_string_equal(fault_of(config), "s3.endpoint");
    config = good;
    config.access_key.hidden = (struct sl_str){NULL, 0};
    assert_string_equal(fault_of(config), "s3");
    config.credentials = CREDENTIALS_WEB_IDENTITY; /* the machine has them */
    assert_null(fault_of(config));
    config = (struct bucket_config){.gcs_name = SL_STR("b")};
    assert_null(fault_of(config));
    config.service_account_path = SL_STR("/nowhere");
    assert_string_equal(fault_of(config), "gcs.service_account_path");
}

TEST(s3_error_documents_map_to_errors)
{
    struct sl_error error;
    assert_int_equal(s3_explain(500, SL_STR("<E><Code>NoSuchBucket</Code></E>"), &error), SL_NOT_FOUND);
    assert_string_equal(error.message, object_no_bucket);
    assert_int_equal(s3_explain(500, SL_STR("<E><Code>AccessDenied</Code><Message>m</Message></E>"), &error),
                     SL_PERMISSION_DENIED);
    assert_string_equal(error.message, "AccessDenied: m");
    assert_int_equal(s3_explain(503, SL_STR(""), &error), SL_DOWNLOAD_ERROR);
    assert_string_equal(error.message, "503 Service Unavailable");
}

TEST_FILE(.teardown = forget);
