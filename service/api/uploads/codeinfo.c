/* Metadata of a symbol file from its first lines: MODULE and INFO records of Breakpad's format.
 *
 *     MODULE Linux x86_64 0123456789ABCDEF0123456789ABCDEF0 libfoo.so
 *     INFO CODE_ID 67452301AB89EFCD libfoo.so
 *     INFO GENERATOR mozilla/dump_syms 2.3.4 */
#include "api/uploads/uploads.h"

struct codeinfo {
    struct sl_str debug_id, debug_file, code_id, code_file, generator;
};

/* Takes the next word of a line; words are separated by single blanks. */
static struct sl_str codeinfo_word(struct sl_str *line)
{
    const char *blank = line->size ? memchr(line->data, ' ', line->size) : NULL;
    struct sl_str word = {line->data, blank ? (size_t)(blank - line->data) : line->size};
    size_t step = word.size + (blank != NULL);
    *line = (struct sl_str){line->data + step, line->size - step};
    return word;
}

/* Takes the next line of the text, without white space at its ends. */
static struct sl_str codeinfo_line(struct sl_str *text)
{
    struct sl_str line = {text->data, 0};
    sl_str_next_line(text, &line);
    return sl_str_trimmed(line);
}

/* Reads a line of the header, a MODULE or INFO record, into `info`. False for any other record: the header has ended. */
static bool take_line(struct codeinfo *info, struct sl_str line)
{
    struct sl_str record = codeinfo_word(&line);
    if (sl_str_equal(record, SL_STR("MODULE"))) {
        codeinfo_word(&line); /* operating system */
        codeinfo_word(&line); /* architecture */
        info->debug_id = codeinfo_word(&line);
        info->debug_file = line;
        return true;
    }
    if (!sl_str_equal(record, SL_STR("INFO")))
        return false;
    struct sl_str what = codeinfo_word(&line);
    if (sl_str_equal(what, SL_STR("CODE_ID"))) {
        info->code_id = codeinfo_word(&line);
        info->code_file = line;
    } else if (sl_str_equal(what, SL_STR("GENERATOR"))) {
        info->generator = line;
    }
    return true;
}

/* Writes an id as a JSON string in upper case. Out of memory marks the output as failed. */
static void write_upper(struct sl_json_writer *w, struct sl_arena *arena, struct sl_str id)
{
    char *upper = sl_arena_strndup(arena, id.data, id.size);
    w->out->failed |= !upper;
    for (size_t i = 0; upper && i < id.size; i++)
        upper[i] = (char)(upper[i] >= 'a' && upper[i] <= 'z' ? upper[i] - 32 : upper[i]);
    sl_json_put_str(w, (struct sl_str){upper ? upper : "", upper ? id.size : 0});
}

/* Returns "<file>/<ID>", with the ID in upper case. It is made as a key, "<file>/<ID>/x", without the last part, so that the rules for keys
 * apply. Empty if a part is invalid, or when out of memory, which marks `out` as failed. */
static struct sl_str pair_name(struct sl_arena *arena, struct sl_str file, struct sl_str id, struct sl_buf *out)
{
    struct sl_str key, parts[3] = {file, id, SL_STR("x")};
    if (!file.data)
        return SL_STR("");
    if (!uploads_make_key(arena, parts, &key)) {
        out->failed |= key.size > 0; /* uploads_make_key sets the size when out of memory */
        return SL_STR("");
    }
    return (struct sl_str){key.data, key.size - 2}; /* without "/x" */
}

/* Reads the lines up to the first record that is neither MODULE nor INFO: they are the header of the file. */
bool codeinfo_read(struct sl_str head, struct sl_str key, struct sl_arena *arena, struct sl_buf *out,
                   struct sl_str names[2])
{
    struct codeinfo info = {0};
    while (head.size && take_line(&info, codeinfo_line(&head)))
        ;
    names[0] = pair_name(arena, info.debug_file, info.debug_id, out);
    names[1] = info.code_id.size
                   ? pair_name(arena, info.code_file.size ? info.code_file : info.debug_file, info.code_id, out)
                   : SL_STR("");
    if (!names[0].size)
        return false;
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_put_key(&w, "debug_id");
    write_upper(&w, arena, info.debug_id);
    sl_json_member_str(&w, "debug_filename", info.debug_file);
    sl_json_member_str(&w, "code_file", info.code_file);
    sl_json_put_key(&w, "code_id");
    write_upper(&w, arena, info.code_id);
    sl_json_member_str(&w, "generator", info.generator);
    sl_json_member_str(&w, "key", key);
    sl_json_end_object(&w);
    return true;
}
