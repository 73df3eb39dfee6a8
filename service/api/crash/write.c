/* What answers say of a crash, before its threads and modules. */
#include "api/crash/crash.h"

static void crash_member(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_put_key(w, key);
    sl_json_put_str(w, text);
}

static void known_member(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.data)
        crash_member(w, key, text);
}

/* Of the file, else of the first module whose file was found. */
static enum sl_arch crash_arch(const struct native_request *request, const struct sl_crash *crash)
{
    enum sl_arch arch = crash->system.arch;
    for (size_t i = 0; i < request->module_count && arch == SL_ARCH_UNKNOWN; i++)
        if (request->modules[i].found)
            arch = request->modules[i].found->lookup.arch;
    return arch;
}

static void write_system(const struct native_request *request, const struct sl_crash *crash, struct sl_json_writer *w)
{
    const struct sl_crash_system *system = &crash->system;
    sl_json_put_key(w, "system_info");
    sl_json_begin_object(w);
    crash_member(w, "os_name", system->os_name);
    crash_member(w, "os_version", system->os_version);
    crash_member(w, "os_build", system->os_build);
    crash_member(w, "cpu_arch", sl_str(sl_arch_name(crash_arch(request, crash))));
    crash_member(w, "device_model", system->device_model);
    sl_json_end_object(w);
}

void crash_write(const struct native_request *request, struct sl_json_writer *w, void *arg)
{
    const struct sl_crash *crash = arg;
    if (crash->has_timestamp) {
        sl_json_put_key(w, "timestamp");
        sl_json_put_i64(w, crash->timestamp);
    }
    write_system(request, crash, w);
    sl_json_put_key(w, "crashed");
    sl_json_put_boolean(w, crash->crashed);
    known_member(w, "crash_reason", crash->reason);
    known_member(w, "crash_details", crash->details);
    known_member(w, "assertion", crash->assertion);
    native_write(request, w, NULL);
    if (crash->extra_count) {
        sl_json_put_key(w, "details");
        sl_json_begin_object(w);
        for (size_t i = 0; i < crash->extra_count; i++) {
            sl_json_put_key_str(w, crash->extras[i].name);
            sl_json_put_raw(w, crash->extras[i].json);
        }
        sl_json_end_object(w);
    }
}

void crash_write_failure(struct sl_buf *answer, const char *message, const char *detail)
{
    struct sl_json_writer w = sl_json_writer(answer);
    sl_json_begin_object(&w);
    crash_member(&w, "status", SL_STR("failed"));
    crash_member(&w, "message", sl_str(message));
    known_member(&w, "detail", sl_str(detail));
    sl_json_end_object(&w);
}
