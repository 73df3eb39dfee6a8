/* Where AWS keys come from: the source itself, or the machine: the container's credential service, the instance's
 * metadata service (IMDSv2), or a web identity token that the Security Token Service takes for keys. The environment
 * variables are those of the AWS SDKs ("Settings reference", AWS SDKs and Tools Reference Guide). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "core/loop.h"
#include "origin/impl.h"

enum { ANSWER_MAX = 64 * 1024, EARLY_S = 300, UNDATED_S = 600 };
#define TIMEOUT_NS UINT64_C(10000000000)
#define SECOND_NS  UINT64_C(1000000000)

static struct memo keys_memo = {.capacity = 100, .name = "s3"};

void aws_keys_init(size_t capacity)
{
    memo_resize(&keys_memo, capacity);
}

struct asking {
    struct sl_arena arena;
    struct sl_str region;
    struct sl_buf *text; /* the keys, one in a line */
    uint64_t *for_ns;
    struct sl_error *error;
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- answers ---- */
static uint64_t good_for(struct sl_str expiration)
{
    char text[64];
    struct tm tm = {0};
    snprintf(text, sizeof text, SL_STR_FMT, SL_STR_ARG(expiration));
    if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return UNDATED_S * SECOND_NS;
    int64_t left = (int64_t)timegm(&tm) - clock_wall_s() - EARLY_S;
    return left > 0 ? (uint64_t)left * SECOND_NS : 0;
}

static enum sl_code aws_keys_keep(struct asking *a, struct sl_str access, struct sl_str secret, struct sl_str token,
                                  struct sl_str expiration)
{
    struct sl_str parts[] = {access, secret, token};
    if (!access.size || !secret.size)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "no credentials in the answer");
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].size && memchr(parts[i].data, '\n', parts[i].size))
            return sl_fail(a->error, SL_DOWNLOAD_ERROR, "no credentials in the answer");
        sl_buf_str(a->text, parts[i]);
        sl_buf_u8(a->text, '\n');
    }
    *a->for_ns = good_for(expiration);
    return SL_OK;
}

static enum sl_code keep_json(struct asking *a, struct sl_str json)
{
    static const struct sl_str names[] = {SL_STR("AccessKeyId"), SL_STR("SecretAccessKey"), SL_STR("Token"),
                                          SL_STR("Expiration")};
    struct sl_json j = sl_json(json, &a->arena, false);
    struct sl_str texts[4] = {{NULL, 0}};
    sl_json_texts(&j, names, texts, 4);
    if (!sl_json_end(&j))
        return j.busy ? sl_fail(a->error, SL_BUSY, "out of memory")
                      : sl_fail(a->error, SL_DOWNLOAD_ERROR, "no credentials in the answer");
    return aws_keys_keep(a, texts[0], texts[1], texts[2], texts[3]);
}

static enum sl_code aws_keys_ask(struct asking *a, struct fetch_request request, struct sl_str *answer)
{
    struct sl_buf body = {0};
    request.source = "credentials";
    request.max_size = ANSWER_MAX;
    request.timeout_ns = TIMEOUT_NS;
    request.keep_wrapper = true;
    request.whole = true;
    enum sl_code code = fetch_text(&request, &body, a->error);
    const char *copy = code == SL_OK ? sl_arena_strndup(&a->arena, body.size ? (char *)body.data : "", body.size) : "";
    *answer = (struct sl_str){copy, body.size};
    sl_buf_wipe(&body);
    return copy ? code : sl_fail(a->error, SL_BUSY, "out of memory");
}

/* A file of a few hundred bytes that the container's runtime keeps in memory. */
static enum sl_code read_token(struct asking *a, const char *path, struct sl_str *token)
{
    char text[16 * 1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0 && sl_fail_errno(a->error, number, "") == SL_BUSY)
        return SL_BUSY;
    if (size < 0)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "cannot read the token: %s", strerror(number));
    while (size && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' '))
        size--;
    token->data = sl_arena_strndup(&a->arena, text, (size_t)size);
    token->size = (size_t)size;
    explicit_bzero(text, sizeof text);
    return token->data ? SL_OK : sl_fail(a->error, SL_BUSY, "out of memory");
}

static const char *joined(struct asking *a, const char *base, const char *path)
{
    struct sl_buf url = {0};
    size_t size = strlen(base);
    while (size && base[size - 1] == '/' && path[0] == '/')
        size--;
    sl_buf_add(&url, base, size);
    sl_buf_cstr(&url, path);
    return sl_buf_keep(&url, &a->arena).data;
}

/* ---- container ---- */
static enum sl_code from_container(struct asking *a)
{
    const char *relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *url =
        relative ? joined(a, "http://169.254.170.2", relative) : environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *token_file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct sl_str token = sl_str(environment("AWS_CONTAINER_AUTHORIZATION_TOKEN")), answer;
    enum sl_code code = SL_OK;
    if (!url)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set");
    if (token_file)
        code = read_token(a, token_file, &token);
    struct fetch_header header = {SL_STR("Authorization"), {token}};
    if (code == SL_OK)
        code = aws_keys_ask(
            a, (struct fetch_request){.url = url, .own = true, .headers = &header, .header_count = token.size > 0},
            &answer);
    return code == SL_OK ? keep_json(a, answer) : code;
}

/* ---- instance: "Use IMDSv2", Amazon EC2 User Guide ---- */
static enum sl_code from_instance(struct asking *a)
{
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    const char *base = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    base = base ? base : "http://169.254.169.254";
    struct fetch_header life = {SL_STR("X-aws-ec2-metadata-token-ttl-seconds"), {SL_STR("21600")}};
    struct fetch_header token = {SL_STR("X-aws-ec2-metadata-token"), {{NULL, 0}}};
    struct sl_str answer;
    enum sl_code code = aws_keys_ask(a,
                                     (struct fetch_request){.url = joined(a, base, "/latest/api/token"),
                                                            .method = "PUT",
                                                            .own = true,
                                                            .headers = &life,
                                                            .header_count = 1},
                                     &answer);
    token.value.hidden = answer;
    struct fetch_request request = {.url = joined(a, base, roles), .own = true, .headers = &token, .header_count = 1};
    if (code == SL_OK)
        code = aws_keys_ask(a, request, &answer);
    if (code != SL_OK)
        return code;
    struct sl_buf path = {0};
    sl_buf_cstr(&path, roles);
    fetch_encode(&path, (struct sl_str){answer.data, strcspn(answer.data, "\r\n")}, false);
    sl_buf_u8(&path, 0);
    request.url = path.failed ? NULL : joined(a, base, (char *)path.data);
    sl_buf_free(&path);
    if (!request.url)
        return sl_fail(a->error, SL_BUSY, "out of memory");
    code = aws_keys_ask(a, request, &answer);
    return code == SL_OK ? keep_json(a, answer) : code;
}

/* ---- web identity: AssumeRoleWithWebIdentity, AWS Security Token Service API Reference ---- */
static enum sl_code sts_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct xml_text code = {.name = "Code"};
    bool ok = body.size && xml_texts(body, &code, 1) && code.text.size;
    enum sl_code result = ok ? sl_fail(error, SL_PERMISSION_DENIED, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&code.text)))
                             : sl_fail(error, SL_DOWNLOAD_ERROR, "status %d", status);
    xml_texts_free(&code, 1);
    return status >= 500 || status == 429 ? error->code = SL_DOWNLOAD_ERROR : result;
}

static void add_pair(struct sl_buf *form, const char *name, struct sl_str value)
{
    sl_buf_cstr(form, form->size ? "&" : "");
    sl_buf_cstr(form, name);
    sl_buf_u8(form, '=');
    fetch_encode(form, value, false);
}

static enum sl_code keep_xml(struct asking *a, struct sl_str xml)
{
    struct xml_text texts[] = {
        {.name = "AccessKeyId"}, {.name = "SecretAccessKey"}, {.name = "SessionToken"}, {.name = "Expiration"}};
    enum sl_code code = xml_texts(xml, texts, 4)
                            ? aws_keys_keep(a, sl_buf_view(&texts[0].text), sl_buf_view(&texts[1].text),
                                            sl_buf_view(&texts[2].text), sl_buf_view(&texts[3].text))
                            : sl_fail(a->error, SL_DOWNLOAD_ERROR, "no credentials in the answer");
    xml_texts_free(texts, 4);
    return code;
}

static const char *sts_url(struct asking *a)
{
    const char *own = environment("AWS_ENDPOINT_URL_STS");
    struct sl_buf url = {0};
    if (own)
        return own;
    sl_buf_cstr(&url, "https://sts.");
    fetch_encode(&url, a->region, false);
    sl_buf_cstr(&url, sl_str_starts(a->region, SL_STR("cn-")) ? ".amazonaws.com.cn/" : ".amazonaws.com/");
    return sl_buf_keep(&url, &a->arena).data;
}

static enum sl_code from_web_identity(struct asking *a)
{
    const char *role = environment("AWS_ROLE_ARN"), *file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *session = environment("AWS_ROLE_SESSION_NAME");
    struct sl_str token, answer;
    if (!role || !file)
        return sl_fail(a->error, SL_DOWNLOAD_ERROR, "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are not set");
    enum sl_code code = read_token(a, file, &token);
    if (code != SL_OK)
        return code;
    struct sl_buf form = {0};
    add_pair(&form, "Action", SL_STR("AssumeRoleWithWebIdentity"));
    add_pair(&form, "Version", SL_STR("2011-06-15"));
    add_pair(&form, "RoleArn", sl_str(role));
    add_pair(&form, "RoleSessionName", sl_str(session ? session : "symloom"));
    add_pair(&form, "WebIdentityToken", token);
    struct fetch_header type = {SL_STR("Content-Type"), {SL_STR("application/x-www-form-urlencoded")}};
    struct fetch_request request = {.url = sts_url(a),
                                    .method = "POST",
                                    .body = {sl_buf_view(&form)},
                                    .trusted = true,
                                    .headers = &type,
                                    .header_count = 1,
                                    .refused = sts_refused};
    code =
        form.failed || !request.url ? sl_fail(a->error, SL_BUSY, "out of memory") : aws_keys_ask(a, request, &answer);
    sl_buf_wipe(&form);
    return code == SL_OK ? keep_xml(a, answer) : code;
}

/* ---- all ---- */
static const struct provider {
    const char *name;
    enum sl_code (*get)(struct asking *a);
} providers[] = {
    [CREDENTIALS_STATIC] = {"static", NULL},
    [CREDENTIALS_CONTAINER] = {"container", from_container},
    [CREDENTIALS_INSTANCE] = {"instance", from_instance},
    [CREDENTIALS_WEB_IDENTITY] = {"web identity", from_web_identity},
};

/* Whatever went wrong is the machine's fault: another module's file would not be found either. */
static enum sl_code ask_provider(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    const struct source *source = context;
    struct sl_error why = {0};
    struct asking a = {.region = source->region, .text = text, .for_ns = for_ns, .error = &why};
    enum sl_code code = providers[source->credentials].get(&a);
    sl_arena_free(&a.arena);
    if (code == SL_OK)
        return SL_OK;
    if (code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return sl_fail(error, code, "%s", why.message);
    return sl_fail(error, SL_DOWNLOAD_ERROR, "no %s credentials: %s", providers[source->credentials].name,
                   code == SL_NOT_FOUND ? "not found" : why.message);
}

static struct sl_str aws_keys_next_line(struct sl_str *text)
{
    const char *end = memchr(text->data, '\n', text->size);
    struct sl_str line = {text->data, end ? (size_t)(end - text->data) : text->size};
    size_t step = line.size + (end != NULL);
    text->data += step;
    text->size -= step;
    return line;
}

enum sl_code aws_keys_get(const struct source *source, struct sl_arena *arena, struct aws_keys *keys,
                          struct sl_error *error)
{
    if (source->credentials == CREDENTIALS_STATIC) {
        *keys = (struct aws_keys){secret_open(source->access_key), secret_open(source->secret_key),
                                  secret_open(source->session_token)};
        return SL_OK;
    }
    struct sl_str key[] = {sl_str(providers[source->credentials].name), source->region}, text;
    enum sl_code code = memo_get(&keys_memo, key, 2, ask_provider, source, arena, &text, error);
    if (code == SL_OK) {
        keys->access_key = aws_keys_next_line(&text);
        keys->secret_key = aws_keys_next_line(&text);
        keys->session_token = aws_keys_next_line(&text);
    }
    return code;
}
