/* What more a minidump holds than all crashes have: `minidump.details` of the configuration. */
#include "api/crash/crash.h"

static void text_detail(struct json_writer *w, const char *key, struct sl_str text)
{
    if (!text.data)
        return;
    json_key(w, key);
    json_str(w, text);
}

static void write_annotations(struct json_writer *w, const struct sl_minidump *dump)
{
    json_array_begin(w);
    for (size_t i = 0; i < dump->annotation_count; i++) {
        const struct sl_minidump_annotation *annotation = &dump->annotations[i];
        json_object_begin(w);
        text_detail(w, "module", annotation->module);
        text_detail(w, "name", annotation->name);
        text_detail(w, "value", annotation->value);
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_unloaded(struct json_writer *w, const struct sl_minidump *dump)
{
    json_array_begin(w);
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        json_object_begin(w);
        text_detail(w, "name", dump->unloaded[i].name);
        json_key(w, "image_addr");
        json_hex(w, dump->unloaded[i].address);
        json_key(w, "image_size");
        json_u64(w, dump->unloaded[i].size);
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_crash_info(struct json_writer *w, const struct sl_minidump *dump)
{
    json_array_begin(w);
    for (size_t i = 0; i < dump->crash_info_count; i++)
        json_str(w, dump->crash_info[i]);
    json_array_end(w);
}

static void write_process_id(struct json_writer *w, const struct sl_minidump *dump)
{
    json_u64(w, dump->process_id);
}

static void write_create_time(struct json_writer *w, const struct sl_minidump *dump)
{
    json_u64(w, dump->create_time);
}

bool crash_details(struct sl_minidump *dump, struct sl_arena *arena)
{
    const struct {
        bool known;
        const char *name;
        void (*write)(struct json_writer *w, const struct sl_minidump *dump);
    } rows[] = {
        {dump->has_process_id, "process_id", write_process_id},
        {dump->has_create_time, "process_create_time", write_create_time},
        {dump->annotation_count, "annotations", write_annotations},
        {dump->crash_info_count, "crash_info", write_crash_info},
        {dump->unloaded_count, "unloaded_modules", write_unloaded},
    };
    struct sl_crash *crash = &dump->crash;
    crash->extras = SL_ARENA_ARRAY(arena, struct sl_crash_extra, sizeof rows / sizeof *rows);
    if (!crash->extras)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].known)
            continue;
        struct sl_buf text = {0};
        struct json_writer w = json_writer(&text);
        rows[i].write(&w, dump);
        struct sl_str json = sl_buf_keep(&text, arena);
        if (!json.data)
            return false;
        crash->extras[crash->extra_count++] = (struct sl_crash_extra){sl_str(rows[i].name), json};
    }
    return true;
}
