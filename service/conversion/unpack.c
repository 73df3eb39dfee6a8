/* Unpacks compressed files, which a client or a source has sent: content codings and wrappers. */
#include "conversion/conversion.h"

/* True while the work budget is not used up (unpack_call.may_continue). */
static bool has_time(void *budget)
{
    return sl_budget_spend(budget, 1);
}

/* The converter's function: decompresses a file, or extracts the member of an archive that the input INPUT_NAME names. unpack_bytes returns
 * SL_CANCELLED when `has_time` has returned false: then the work budget is used up, and sl_budget_fail gives the code for that. */
static enum sl_code unpack(struct conversion *conversion, const struct converter_call *call, void *result,
                           struct sl_error *error)
{
    struct sl_bytes member = converter_input_bytes(call, INPUT_NAME);
    struct unpack_call unpack = {.in = converter_input_bytes(call, INPUT_FILE),
                                 .options = *(const struct unpack_options *)converter_options(call),
                                 .member = {(const char *)member.data, member.size},
                                 .out = call->out,
                                 .may_continue = has_time,
                                 .arg = &conversion->budget};
    enum sl_code code = unpack_bytes(&unpack, result, error);
    return code == SL_CANCELLED ? sl_budget_fail(&conversion->budget, error) : code;
}

/* Checks the result, which a worker process has sent and which is not trusted: to read a bool whose byte is neither 0 nor 1 would be
 * undefined behaviour. */
static bool check_result(const void *result)
{
    const struct unpack_result *unpacked = result;
    return converter_bool_is_valid(&unpacked->over_limit);
}

const struct converter converter_unpack = {"unpack", sizeof(struct unpack_options), sizeof(struct unpack_result),
                                           unpack, check_result};

/* Decompresses request->in into request->out; with request->member, extracts the member of this name from the archive request->in. The
 * converter for this may run in a worker process. Sets request->result. */
enum sl_code conversion_unpack(struct unpack_request *request, struct sl_error *error)
{
    /* the location is for the log */
    struct conversion_description about = {.location = SL_STR("a compressed file"), .time_ns = request->time_ns};
    struct converter_call call = {.options = CONVERTER_OPTIONS(request->options), .out = request->out};
    converter_add_file(&call, INPUT_FILE, request->in);
    if (request->member.data)
        converter_add_text(&call, INPUT_NAME, request->member);
    return conversion_run(&about, &converter_unpack, &call, &request->result, error);
}
