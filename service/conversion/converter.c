/* Helpers of converters (access to inputs, output, checks of results) and of their callers (adding inputs). */
#include "conversion/converter.h"

#include <string.h>

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

enum sl_code converter_run_here(const struct converter *converter, const struct converter_call *call, void *result,
                                struct sl_error *error)
{
    struct conversion conversion;
    uint64_t size = 0;
    memset(&conversion, 0, sizeof conversion);
    for (size_t i = 0; i < call->input_count; i++)
        size += call->inputs[i].bytes.size;
    sl_budget_init(&conversion.budget, size);
    cpu_clock_init(&conversion.clock, UINT64_MAX); /* no limit of time */
    if (converter->result_size)
        memset(result, 0, converter->result_size);
    return converter->convert(&conversion, call, result, error);
}

/* ---- checks of results ----
 *
 * A worker that was taken over can return a bool of value 7. To read it as a bool would be undefined, so these functions read bytes. */

bool converter_bool_is_valid(const bool *value)
{
    return *(const uint8_t *)value <= 1;
}

bool converter_arch_is_valid(const enum sl_arch *arch)
{
    uint32_t value;
    _Static_assert(sizeof value == sizeof *arch, "an enum is an int");
    memcpy(&value, arch, sizeof value);
    return value == SL_ARCH_UNKNOWN || strcmp(sl_arch_name((enum sl_arch)value), sl_arch_name(SL_ARCH_UNKNOWN)) != 0;
}

bool converter_text_is_valid(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);
    return end && sl_str_is_utf8((struct sl_str){text, (size_t)(end - text)});
}

bool converter_error_is_valid(const struct sl_error *error)
{
    uint32_t code;
    memcpy(&code, &error->code, sizeof code);
    return code < SL_CODES && converter_text_is_valid(error->message, sizeof error->message);
}

/* ---- calls ---- */

/* Appends an input. One that does not fit is only counted: conversion_run() refuses the call. */
static void add_input(struct converter_call *call, struct converter_input input)
{
    if (call->input_count < CONVERTER_MAX_INPUTS)
        call->inputs[call->input_count] = input;
    call->input_count++;
}

void converter_add_mapped(struct converter_call *call, enum input_role role, struct sl_bytes bytes,
                          const struct file_place *place)
{
    if (!bytes.data) /* NULL would mean that conversion_run() has to map a descriptor */
        bytes.data = (const uint8_t *)"";
    add_input(call, (struct converter_input){bytes, -1, role, place});
}

void converter_add_bytes(struct converter_call *call, enum input_role role, struct sl_bytes bytes)
{
    converter_add_mapped(call, role, bytes, NULL);
}

void converter_add_text(struct converter_call *call, enum input_role role, struct sl_str text)
{
    converter_add_bytes(call, role, (struct sl_bytes){(const uint8_t *)text.data, text.size});
}

void converter_add_file(struct converter_call *call, enum input_role role, int fd)
{
    add_input(call, (struct converter_input){{NULL, 0}, fd, role, NULL});
}

void converter_add_part(struct converter_call *call, enum input_role role, struct sl_bytes bytes, int fd,
                        uint64_t offset)
{
    if (!bytes.data) /* NULL would mean that conversion_run() has to map `fd` */
        bytes.data = (const uint8_t *)"";
    add_input(call, (struct converter_input){bytes, fd, role, NULL, offset});
}
