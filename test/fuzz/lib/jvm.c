/* Mappings: read, made into a table, and what is in them looked up there, with signatures. */
#include "jvm/mapping.h"
#include "jvm/signatures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FRAMES = 1 << 17, MAX_ASKED = 64 };

static void put_signatures(const struct sl_jvm_frames *frames)
{
    struct sl_buf out = {0};
    for (size_t i = 0; i < frames->count && i < MAX_ASKED; i++) {
        size_t before = out.size;
        sl_jvm_signatures_put(&frames->items[i], &out);
        if (out.size - before < frames->items[i].method.size)
            __builtin_trap();
    }
    sl_buf_free(&out);
}

static void look_up(const struct sl_jvm_mapper *mapper, const struct sl_jvm_signatures *signatures, struct sl_str class,
                    const struct sl_jvm_member *m)
{
    struct sl_arena arena = {0};
    struct sl_jvm_frames frames = {.arena = &arena, .limit = MAX_FRAMES};
    struct sl_jvm_outline outline = {.is_carried_over = m->start & 1, .line = m->line};
    struct sl_jvm_query query = {.class = class, .method = m->obfuscated, .line = m->start, .thrown = class};
    query.signatures = m->end & 1;
    sl_jvm_mapper_frame(mapper, &query, &outline, &frames);
    query.types = query.signatures ? signatures : NULL;
    sl_jvm_mapper_retrace(mapper, &query, &outline, &frames);
    query.line = 0;
    sl_jvm_mapper_retrace(mapper, &query, &outline, &frames);
    sl_jvm_mapper_frame(mapper, &query, &outline, &frames);
    query.by = SL_JVM_BY_PARAMETERS;
    query.parameters = query.descriptor = m->arguments;
    sl_jvm_mapper_frame(mapper, &query, &outline, &frames);
    for (size_t i = 0; i < frames.count; i++)
        if (!sl_str_is_utf8(frames.items[i].class) || !sl_str_is_utf8(frames.items[i].method))
            __builtin_trap();
    put_signatures(&frames);
    sl_arena_free(&arena);
}

/* Every class and member that the reader finds is one that the table knows. */
static void look_everything_up(struct sl_str text, const struct sl_jvm_mapper *mapper,
                               const struct sl_jvm_signatures *signatures)
{
    struct sl_jvm_reader reader = sl_jvm_reader(text);
    struct sl_jvm_record r;
    struct sl_str class = {NULL, 0}, original;
    unsigned asked = 0;
    while (sl_jvm_reader_next(&reader, &r)) {
        if (r.kind == SL_JVM_RECORD_CLASS) {
            class = r.obfuscated;
            if (!sl_jvm_mapper_class(mapper, class, &original))
                __builtin_trap();
        }
        if (r.kind == SL_JVM_RECORD_METHOD && class.data && asked++ < MAX_ASKED)
            look_up(mapper, signatures, class, &r.member);
        struct sl_str name;
        if (r.kind == SL_JVM_RECORD_FIELD && class.data && asked < MAX_ASKED)
            sl_jvm_signatures_field(signatures, class, r.member.obfuscated, r.member.type, &name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size};
    struct sl_budget budget;
    struct sl_buf file = {0};
    struct sl_jvm_mapper mapper;
    struct sl_jvm_signatures signatures = {.arena = {0}};
    sl_budget_init(&budget, size);
    sl_jvm_summarise(text);
    if (sl_jvm_mapper_build(text, &budget, &file, NULL) == SL_OK) {
        if (sl_jvm_mapper_open(sl_buf_bytes(&file), &mapper, NULL) != SL_OK)
            __builtin_trap();
        if (sl_jvm_signatures_add(&signatures, text))
            look_everything_up(text, &mapper, &signatures);
        sl_jvm_signatures_free(&signatures);
    }
    sl_buf_free(&file);
    return 0;
}
