/* Obtains AWS keys that are not in the configuration: from the container's credential service, from the instance's metadata
 * service (IMDSv2), or from the Security Token Service for a web identity token. The environment variables are those
 * of the AWS SDKs ("Settings reference", AWS SDKs and Tools Reference Guide). */
#include <errno.h>
#include <time.h>

#include "base/json_fields.h"
#include "core/loop.h"
#include "objectstore/impl.h"

enum { ANSWER_MAX = 64 * 1024, UNDATED_S = 600 /* lifetime of keys without a readable expiration */ };
#define TIMEOUT_NS UINT64_C(10000000000)

struct keys_request {
    struct sl_arena arena;
    struct sl_str region;
    struct sl_buf *text; /* result of aws_keys_get() */
    uint64_t *life_s;
    struct sl_error *error;
};

/* ---- answers ---- */

/* Returns the seconds until the expiration; 0 if it has passed, UNDATED_S if the text is not a time. */
static uint64_t life_until(struct sl_str expiration)
{
    char text[64];
    struct tm tm = {0};
    snprintf(text, sizeof text, SL_STR_FMT, SL_STR_ARG(expiration));
    if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return UNDATED_S;
    int64_t left = (int64_t)timegm(&tm) - clock_wall_s();
    return left > 0 ? (uint64_t)left : 0;
}

/* Appends the keys to the result, a->text, as three NUL-terminated texts, the form in which they are cached. A key with a NUL inside is
 * refused: credentials_aws would take its rest for the next key. */
static enum sl_code keep_keys(struct keys_request *a, struct sl_str access, struct sl_str secret, struct sl_str token,
                              struct sl_str expiration)
{
    struct sl_str parts[] = {access, secret, token};
    if (!access.size || !secret.size)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "the response of AWS contains no credentials");
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].size && memchr(parts[i].data, 0, parts[i].size))
            return sl_fail(a->error, SL_DOWNLOAD_ERROR, "the response of AWS contains no credentials");
        sl_buf_str(a->text, parts[i]);
        sl_buf_u8(a->text, 0);
    }
    *a->life_s = life_until(expiration);
    return SL_OK;
}

/* Stores the keys of a JSON response. */
static enum sl_code keep_json(struct keys_request *a, struct sl_str json)
{
    struct credentials {
        struct sl_str access, secret, token, expiration;
    } c = {.access = {NULL, 0}};
    static const struct sl_field fields[] = {
        SL_FIELD(TEXT, false, credentials, access, "AccessKeyId"),
        SL_FIELD(TEXT, false, credentials, secret, "SecretAccessKey"),
        SL_FIELD(TEXT, false, credentials, token, "Token"),
        SL_FIELD(TEXT, false, credentials, expiration, "Expiration"),
        SL_FIELDS_END,
    };
    struct sl_json j = sl_json(json, &a->arena, false);
    sl_json_read_object(&j, fields, &c);
    if (!sl_json_end(&j))
        return j.busy ? sl_fail(a->error, SL_BUSY, "out of memory")
                      : sl_fail(a->error, SL_DOWNLOAD_ERROR, "the response of AWS contains no credentials");
    return keep_keys(a, c.access, c.secret, c.token, c.expiration);
}

/* Sends a request for keys; `*answer` is the response, in the arena. */
static enum sl_code request_service(struct keys_request *a, struct fetch_request request, struct sl_str *answer)
{
    struct sl_buf body = {0};
    request.source = "credentials";
    request.max_size = ANSWER_MAX;
    request.timeout_ns = TIMEOUT_NS;
    request.keep_wrapper = true; /* the response is text, not a compressed file */
    request.whole = true;        /* no ranges */
    enum sl_code code = fetch_text(&request, &body, a->error);
    *answer = sl_buf_move_to_arena(&body, &a->arena);
    return code != SL_OK || answer->data ? code : sl_fail(a->error, SL_BUSY, "out of memory");
}

/* Sends a request to a credential service of this machine (fetch_request.own); omits the header field if its value is empty.
 * `method`: NULL = GET. `url`: NULL if the caller had no memory for it, which fails with SL_BUSY. */
static enum sl_code request_machine(struct keys_request *a, const char *method, const char *url,
                                    struct fetch_header field, struct sl_str *answer)
{
    struct fetch_request request = {
        .url = url, .method = method, .own = true, .headers = &field, .header_count = field.value.hidden.size > 0};
    return url ? request_service(a, request, answer) : sl_fail(a->error, SL_BUSY, "out of memory");
}

/* Reads a token from a file, without white space at its end. Reads on the loop: the file has a few hundred bytes, and the container's
 * runtime keeps it in memory. */
static enum sl_code read_token(struct keys_request *a, const char *path, struct sl_str *token)
{
    struct sl_buf text = {0};
    if (!credentials_read_file(path, &text))
        return sl_fail_errno(a->error, errno, "") == SL_BUSY /* a shortage that passes, as of memory */
                   ? SL_BUSY
                   : sl_fail(a->error, SL_DOWNLOAD_ERROR, "cannot read the AWS token from %.120s: %s", path,
                             strerror(errno));
    while (text.size && strchr("\n\r ", text.data[text.size - 1]))
        text.size--;
    *token = sl_buf_move_to_arena(&text, &a->arena);
    return token->data ? SL_OK : sl_fail(a->error, SL_BUSY, "out of memory");
}

/* Joins base and path; removes slashes at the end of `base` if `path` begins with one. NULL when out of memory. */
static const char *join_url(struct keys_request *a, const char *base, const char *path)
{
    struct sl_buf url = {0};
    size_t size = strlen(base);
    while (size && base[size - 1] == '/' && path[0] == '/')
        size--;
    sl_buf_add(&url, base, size);
    sl_buf_cstr(&url, path);
    return sl_buf_move_to_arena(&url, &a->arena).data;
}

/* ---- container ---- */

/* Requests keys from the container's agent, whose address is in the environment: a path at a fixed address (ECS), or a full
 * URL (EKS). */
static enum sl_code from_container(struct keys_request *a)
{
    const char *relative = credentials_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *url = relative ? join_url(a, "http://169.254.170.2", relative)
                               : credentials_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *token_file = credentials_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct sl_str token = sl_str(credentials_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")), answer;
    enum sl_code code = SL_OK;
    if (!relative && !url) /* with `relative`, NULL means out of memory, which request_machine reports */
        return sl_fail(a->error, SL_DOWNLOAD_ERROR,
                       "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set");
    if (token_file)
        code = read_token(a, token_file, &token);
    if (code == SL_OK)
        code = request_machine(a, NULL, url, (struct fetch_header){SL_STR("Authorization"), {token}}, &answer);
    return code == SL_OK ? keep_json(a, answer) : code;
}

/* ---- instance: "Use IMDSv2", Amazon EC2 User Guide ---- */

/* Requests keys from the instance's metadata service: first a session token, then the name of the instance's role, then the keys of that
 * role. The first request is a PUT with the token's lifetime; the others, GET requests (NULL), send the token. */
static enum sl_code from_instance(struct keys_request *a)
{
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    const char *base = credentials_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    base = base ? base : "http://169.254.169.254";
    struct fetch_header life = {SL_STR("X-aws-ec2-metadata-token-ttl-seconds"),
                                {SL_STR("21600")}}; /* 6 h, the longest allowed */
    struct fetch_header token = {SL_STR("X-aws-ec2-metadata-token"), {{NULL, 0}}};
    struct sl_str answer;
    struct sl_buf path = {0};
    enum sl_code code = request_machine(a, "PUT", join_url(a, base, "/latest/api/token"), life, &token.value.hidden);
    if (code == SL_OK)
        code = request_machine(a, NULL, join_url(a, base, roles), token, &answer);
    if (code != SL_OK)
        return code;
    sl_buf_cstr(&path, roles);
    /* the first line of the response is the role's name */
    fetch_encode(&path, (struct sl_str){answer.data, strcspn(answer.data, "\r\n")}, false);
    const char *role = sl_buf_move_to_arena(&path, &a->arena).data;
    code = request_machine(a, NULL, role ? join_url(a, base, role) : NULL, token, &answer);
    return code == SL_OK ? keep_json(a, answer) : code;
}

/* ---- web identity: AssumeRoleWithWebIdentity, AWS Security Token Service API Reference ---- */

/* Converts an error response of the Security Token Service. SL_DOWNLOAD_ERROR, after which fetch tries again, if the service is
 * overloaded (5xx, 429) or the response contains no error code. Otherwise SL_PERMISSION_DENIED, with that error code as the message. */
static enum sl_code sts_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct xml_text code = {.name = "Code"};
    enum sl_code read = body.size ? xml_texts(body, &code, 1) : SL_MALFORMED;
    bool ok = read == SL_OK && code.text.size;
    enum sl_code result =
        ok ? sl_fail(error, SL_PERMISSION_DENIED, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&code.text)))
           : sl_fail(error, SL_DOWNLOAD_ERROR, "the AWS token service responded with status %d", status);
    xml_texts_free(&code, 1);
    if (read == SL_BUSY)
        return sl_fail(error, SL_BUSY, "out of memory");
    return status >= 500 || status == 429 ? error->code = SL_DOWNLOAD_ERROR : result;
}

/* Stores the keys of an XML response. */
static enum sl_code keep_xml(struct keys_request *a, struct sl_str xml)
{
    struct xml_text texts[] = {
        {.name = "AccessKeyId"}, {.name = "SecretAccessKey"}, {.name = "SessionToken"}, {.name = "Expiration"}};
    enum sl_code code = xml_texts(xml, texts, 4);
    if (code == SL_OK)
        code = keep_keys(a, sl_buf_view(&texts[0].text), sl_buf_view(&texts[1].text), sl_buf_view(&texts[2].text),
                         sl_buf_view(&texts[3].text));
    else if (code == SL_BUSY)
        sl_fail(a->error, SL_BUSY, "out of memory");
    else
        code = sl_fail(a->error, SL_DOWNLOAD_ERROR, "the response of AWS contains no credentials");
    xml_texts_free(texts, 4);
    return code;
}

/* Returns the URL of the Security Token Service: the one in AWS_ENDPOINT_URL_STS or, without it, Amazon's for the bucket's region. NULL
 * when out of memory. */
static const char *sts_url(struct keys_request *a)
{
    const char *own = credentials_variable("AWS_ENDPOINT_URL_STS");
    struct sl_buf url = {0};
    if (own)
        return own;
    sl_buf_cstr(&url, "https://sts.");
    fetch_encode(&url, a->region, false);
    sl_buf_cstr(&url, sl_str_starts(a->region, SL_STR("cn-")) ? ".amazonaws.com.cn/" : ".amazonaws.com/");
    return sl_buf_move_to_arena(&url, &a->arena).data;
}

/* Sends a token, which the Kubernetes cluster wrote to a file, to the Security Token Service and gets keys of a role for it. */
static enum sl_code from_web_identity(struct keys_request *a)
{
    const char *role = credentials_variable("AWS_ROLE_ARN"),
               *file = credentials_variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *session = credentials_variable("AWS_ROLE_SESSION_NAME");
    struct sl_str token, answer;
    if (!role || !file)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are not set");
    enum sl_code code = read_token(a, file, &token);
    if (code != SL_OK)
        return code;
    struct sl_buf form = {0};
    aws_add_parameter(&form, "Action", SL_STR("AssumeRoleWithWebIdentity"));
    aws_add_parameter(&form, "Version", SL_STR("2011-06-15"));
    aws_add_parameter(&form, "RoleArn", sl_str(role));
    aws_add_parameter(&form, "RoleSessionName", sl_str(session ? session : "symloom"));
    aws_add_parameter(&form, "WebIdentityToken", token);
    struct fetch_header type = {SL_STR("Content-Type"), {SL_STR("application/x-www-form-urlencoded")}};
    struct fetch_request request = {.url = sts_url(a),
                                    .method = "POST",
                                    .body = {sl_buf_view(&form)},
                                    .trusted = true, /* AWS_ENDPOINT_URL_STS may have a reserved address */
                                    .headers = &type,
                                    .header_count = 1,
                                    .refused = sts_refused};
    code = form.failed || !request.url ? sl_fail(a->error, SL_BUSY, "out of memory")
                                       : request_service(a, request, &answer);
    sl_buf_wipe(&form);
    return code == SL_OK ? keep_xml(a, answer) : code;
}

/* ---- entry point ---- */
static const struct provider {
    const char *name;
    enum sl_code (*get)(struct keys_request *a);
} providers[] = {
    [CREDENTIALS_CONTAINER] = {"container", from_container},
    [CREDENTIALS_INSTANCE] = {"instance", from_instance},
    [CREDENTIALS_WEB_IDENTITY] = {"web identity", from_web_identity},
};

/* Gets keys from the configured provider. Failures other than SL_CANCELLED, SL_BUSY and SL_INTERNAL become SL_DOWNLOAD_ERROR: callers would
 * take SL_NOT_FOUND, for example, for the result of the object that they request. */
enum sl_code aws_keys_get(const struct bucket_config *config, struct sl_buf *text, uint64_t *life_s,
                          struct sl_error *error)
{
    const struct provider *provider = &providers[config->credentials];
    struct sl_error why = {0};
    struct keys_request a = {.region = s3_region(config), .text = text, .life_s = life_s, .error = &why};
    enum sl_code code = provider->get(&a);
    sl_arena_free(&a.arena);
    if (code == SL_OK)
        return SL_OK;
    if (code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return sl_fail(error, code, "%s", why.message);
    /* SL_NOT_FOUND has no message */
    return sl_fail(error, SL_DOWNLOAD_ERROR, "no %s credentials: %s", provider->name,
                   code == SL_NOT_FOUND ? "not found" : why.message);
}
