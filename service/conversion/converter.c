#include "conversion/converter.h"

#include "conversion/conversion.h"
#include "core/loop.h"

const struct converter_input *converter_input(const struct converter_call *call, enum input_role role)
{
    for (size_t i = 0; i < call->input_count; i++)
        if (call->inputs[i].role == role)
            return &call->inputs[i];
    return NULL;
}

struct sl_bytes converter_input_bytes(const struct converter_call *call, enum input_role role)
{
    const struct converter_input *input = converter_input(call, role);
    return input ? input->bytes : (struct sl_bytes){NULL, 0};
}

enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, const struct reader_limits *limits,
                             struct sl_object **object, struct sl_error *error)
{
    return open_object_in_limits(file, limits, &conversion->budget, object, error);
}

enum sl_code conversion_write(struct conversion *conversion, const struct converter_call *call,
                              const struct sl_buf *made, struct sl_error *error)
{
    if (made->failed || !sl_budget_charge(&conversion->budget, made->capacity))
        return sl_budget_fail(&conversion->budget, error);
    uint64_t begin = clock_mono_ns();
    enum sl_code code = write_whole_file(call->out, sl_buf_bytes(made), error);
    conversion->written_ns += clock_mono_ns() - begin;
    sl_budget_uncharge(&conversion->budget, made->capacity);
    return code;
}

static void add_input(struct converter_call *call, struct converter_input input)
{
    if (call->input_count < CONVERTER_MAX_INPUTS)
        call->inputs[call->input_count] = input;
    call->input_count++; /* conversion_run refuses a call with too many inputs */
}

void converter_add_bytes(struct converter_call *call, enum input_role role, struct sl_bytes bytes)
{
    if (!bytes.data)
        bytes.data = (const uint8_t *)"";
    add_input(call, (struct converter_input){bytes, -1, role});
}

void converter_add_text(struct converter_call *call, enum input_role role, struct sl_str text)
{
    converter_add_bytes(call, role, (struct sl_bytes){(const uint8_t *)text.data, text.size});
}

void converter_add_file(struct converter_call *call, enum input_role role, int fd)
{
    add_input(call, (struct converter_input){{NULL, 0}, fd, role});
}
