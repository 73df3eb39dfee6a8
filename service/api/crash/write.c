/* Writes the answer of a job for a crash file. */
#include "api/crash/crash.h"

/* Returns the architecture that the crash file has; if it has none, that of the first module whose symbols were found. */
static enum sl_arch crash_arch(const struct native_request *request, const struct sl_crash *crash)
{
    enum sl_arch arch = crash->system.arch;
    for (size_t i = 0; i < request->module_count && arch == SL_ARCH_UNKNOWN; i++)
        if (request->modules[i].found)
            arch = request->modules[i].found->lookup.arch;
    return arch;
}

/* Writes the member `system_info`. */
static void write_system(const struct native_request *request, const struct sl_crash *crash, struct sl_json_writer *w)
{
    const struct sl_crash_system *system = &crash->system;
    sl_json_member_object(w, "system_info");
    sl_json_member_str(w, "os_name", system->os_name);
    sl_json_member_str(w, "os_version", system->os_version);
    sl_json_member_str(w, "os_build", system->os_build);
    sl_json_member_str(w, "cpu_arch", sl_str(sl_arch_name(crash_arch(request, crash))));
    sl_json_member_str(w, "device_model", system->device_model);
    sl_json_end_object(w);
}

void crash_write(const struct native_request *request, struct sl_json_writer *w, const void *arg)
{
    const struct sl_crash *crash = arg;
    if (crash->has_timestamp)
        sl_json_member_i64(w, "timestamp", crash->timestamp);
    write_system(request, crash, w);
    sl_json_member_boolean(w, "crashed", crash->crashed);
    sl_json_member_if_set(w, "crash_reason", crash->reason);
    sl_json_member_if_set(w, "crash_details", crash->details);
    sl_json_member_if_set(w, "assertion", crash->assertion);
    native_write(request, w, NULL); /* stacks and modules; its last argument is unused */
    for (size_t i = 0; i < crash->member_count; i++) {
        sl_json_put_key_str(w, crash->members[i].name);
        sl_json_put_raw(w, crash->members[i].json);
    }
    if (crash->extra_count) {
        sl_json_member_object(w, "details");
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
    sl_json_member_str(&w, "status", SL_STR("failed"));
    sl_json_member_str(&w, "message", sl_str(message));
    sl_json_member_if_set(&w, "detail", sl_str(detail));
    sl_json_end_object(&w);
}
