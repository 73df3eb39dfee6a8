/* converter_symbfile_index: makes the index for look-ups out of the uploaded parts of a symbfile. */
#include "symbfile_store/converters.h"
#include "symbfile_store/impl.h"

/* Creates the decoder r->part, unless it exists. It is made for "part 0 of 1", even if it gets several parts of a split symbfile one
 * after the other: so it checks at the end that the symbfile is complete. False when out of memory. */
static bool open_part(struct set_reader *r, struct symbfile_failure *failure)
{
    if (!r->part)
        r->part = symbfile_part_new(0, 1, r->max_bytes, r->sink);
    if (!r->part)
        symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
    return r->part;
}

bool set_reader_feed(struct set_reader *r, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    return open_part(r, failure) && symbfile_part_feed(r->part, bytes, failure);
}

/* A symbfile that is split continues in the next part, so only at the end of its last part it is checked to be complete; the decoder is
 * kept until then. */
bool set_reader_end_part(struct set_reader *r, bool is_last, struct symbfile_failure *failure)
{
    if (!open_part(r, failure))
        return false;
    if (r->is_split && !is_last)
        return true;
    bool good = symbfile_part_finish(r->part, failure);
    r->records += symbfile_part_records(r->part);
    set_reader_close(r);
    return good;
}

void set_reader_close(struct set_reader *r)
{
    symbfile_part_free(r->part);
    r->part = NULL;
}

/* Removes the i-th part, whose length is in `lengths`, from the front of `rest`; false if `rest` is shorter. */
static bool cut_part(struct sl_bytes *rest, struct sl_bytes lengths, size_t i, struct sl_bytes *part)
{
    uint64_t length;
    memcpy(&length, lengths.data + i * sizeof length, sizeof length);
    if (length > rest->size)
        return false;
    *part = (struct sl_bytes){rest->data, (size_t)length};
    rest->data += length;
    rest->size -= (size_t)length;
    return true;
}

/* Decodes all parts of the converter's input; their records go to the sink. */
static enum sl_code read_parts(const struct converter_call *call, struct sl_symbfile_sink *sink, struct sl_error *error)
{
    const struct symbfile_index_options *options = converter_options(call);
    struct sl_bytes rest = converter_input_bytes(call, INPUT_FILE), part;
    struct sl_bytes lengths = converter_input_bytes(call, INPUT_LENGTHS);
    struct set_reader reader = {.max_bytes = options->max_bytes, .is_split = options->is_split, .sink = sink};
    struct symbfile_failure failure = {0};
    size_t count = lengths.size / sizeof(uint64_t);
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        if (!cut_part(&rest, lengths, i, &part)) {
            set_reader_close(&reader);
            return sl_fail(error, SL_INTERNAL, "a part of an upload is shorter than its length says");
        }
        good = set_reader_feed(&reader, part, &failure) && set_reader_end_part(&reader, i + 1 == count, &failure);
    }
    set_reader_close(&reader);
    return good ? SL_OK : store_failure_code(&failure, error);
}

/* The converter's function: decodes the parts, sorts their records in a builder, and writes the index. */
static enum sl_code make_index(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    (void)result;
    const struct converter_input *scratch = converter_input(call, INPUT_SCRATCH);
    /* the builder stores large arrays in the scratch file; -1: in memory */
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(scratch ? scratch->fd : -1);
    struct sl_buf out = {0};
    if (!builder)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_symbfile_builder_limit(builder, &conversion->budget);
    enum sl_code code = read_parts(call, sl_symbfile_builder_sink(builder), error);
    if (code == SL_OK)
        code = sl_symbfile_builder_finish(builder, &out, error);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &out, error);
    sl_symbfile_builder_free(builder);
    sl_buf_free(&out);
    return code;
}

const struct converter converter_symbfile_index = {"symbfile_index", sizeof(struct symbfile_index_options), 0,
                                                   make_index};
