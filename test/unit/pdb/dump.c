#include "dump.h"

#include "function/path.h"

static void put_function(struct sl_buf *out, const struct sl_function_batch *batch, const struct sl_function *f)
{
    sl_buf_str(out, f->name);
    sl_buf_printf(out, " %llx+%llx [", (unsigned long long)f->address, (unsigned long long)f->size);
    for (uint32_t i = 0; i < f->line_count; i++) {
        struct sl_str directory, name = {"?", 1};
        if (f->lines[i].file != SL_NO_FILE)
            sl_path_split(batch->files[f->lines[i].file].name, &directory, &name);
        sl_buf_printf(out, "%s%llx+%llx " SL_STR_FMT ":%u", i ? ", " : "", (unsigned long long)f->lines[i].address,
                      (unsigned long long)f->lines[i].size, SL_STR_ARG(name), f->lines[i].line);
    }
    sl_buf_cstr(out, "]");
    for (uint32_t i = 0; i < f->inlinee_count; i++) {
        sl_buf_cstr(out, i ? ", " : " { ");
        put_function(out, batch, &f->inlinees[i]);
    }
    sl_buf_cstr(out, f->inlinee_count ? " }" : "");
}

static void put_origin(struct dump *dump, struct sl_str path)
{
    struct sl_arena arena = {0};
    struct sl_file_origin origin;
    if (sl_object_file_origin(dump->object, path, &arena, &origin)) {
        sl_buf_printf(&dump->source_server, SL_STR_FMT " " SL_STR_FMT, SL_STR_ARG(origin.path),
                      SL_STR_ARG(origin.revision));
        if (origin.url.size)
            sl_buf_printf(&dump->source_server, "<" SL_STR_FMT ">", SL_STR_ARG(origin.url));
        sl_buf_u8(&dump->source_server, '\n');
    }
    sl_arena_free(&arena);
}

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    struct dump *dump = (struct dump *)sink;
    (void)error;
    for (size_t i = 0; i < batch->function_count; i++) {
        put_function(&dump->out, batch, &batch->functions[i]);
        sl_buf_cstr(&dump->out, "\n");
    }
    for (size_t i = 0; i < batch->file_count; i++)
        put_origin(dump, batch->files[i].name);
    dump->functions += batch->function_count;
    return SL_OK;
}

void dump_init(struct dump *dump)
{
    *dump = (struct dump){.sink = {.consume = consume}};
}

void dump_free(struct dump *dump)
{
    sl_buf_free(&dump->out);
    sl_buf_free(&dump->source_server);
}

enum sl_code dump_file(struct dump *dump, struct sl_bytes file, struct sl_error *error)
{
    struct sl_object *object;
    enum sl_code code = sl_object_open(file, NULL, &object, error);
    if (code != SL_OK)
        return code;
    dump->object = object;
    code = sl_object_read_functions(object, NULL, NULL, &dump->sink, error);
    sl_object_close(object);
    return code;
}
