/* Sources in Google Cloud Storage buckets: a download with a bearer token, which a service account's key is exchanged for. */
#include "core/loop.h"
#include "fetch/google.h"
#include "origin/impl.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_only"

static struct memo tokens = {.capacity = 100, .name = "gcs"};

void gcs_init(size_t capacity)
{
    memo_resize(&tokens, capacity);
}

/* ---- the token ---- */
struct asking {
    struct google_account account;
    const char *label;
};

static enum sl_code ask_token(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    const struct asking *a = context;
    uint64_t told_s;
    *for_ns = GOOGLE_TOKEN_LIFE_S * UINT64_C(1000000000);
    return google_token(&a->account, SCOPE, a->label, text, &told_s, error);
}

/* ---- the download ---- */
static enum sl_code fetch(struct sl_arena *arena, const struct remote_file *file, int fd, struct sl_error *error)
{
    const struct source *source = file->source;
    struct sl_str token = secret_open(source->bearer_token);
    struct asking asking = {{secret_open(source->private_key), source->client_email, SL_STR("")},
                            origin_label(arena, source)};
    struct sl_str key[] = {asking.account.private_key, asking.account.client_email};
    if (!secret_present(source->bearer_token)) {
        enum sl_code code = memo_get(&tokens, key, 2, ask_token, &asking, arena, &token, error);
        if (code != SL_OK)
            return code;
    }
    struct sl_buf bearer = {0}, url = {0};
    sl_buf_cstr(&bearer, "Bearer ");
    sl_buf_str(&bearer, token);
    sl_buf_cstr(&url, "https://storage.googleapis.com/storage/v1/b/");
    fetch_encode(&url, source->bucket, false);
    sl_buf_cstr(&url, "/o/");
    fetch_encode(&url, file->location, false);
    sl_buf_cstr(&url, "?alt=media");
    struct fetch_header header = {SL_STR("Authorization"), {sl_buf_keep(&bearer, arena)}};
    struct fetch_request request = {.url = sl_buf_keep(&url, arena).data,
                                    .headers = &header,
                                    .header_count = 1,
                                    .source = asking.label,
                                    .max_size = file->max_size,
                                    .refuse_empty = !file->may_be_empty,
                                    .refuse_pages = !file->may_be_page};
    if (!request.url || !request.source || !header.value.hidden.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    return fetch_get(&request, fd, error);
}

enum sl_code gcs_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    enum sl_code code = fetch(&arena, file, fd, error);
    sl_arena_free(&arena);
    return code;
}
