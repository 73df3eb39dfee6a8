/* The description of an executable, merged from its uploads (file `info`), and the files by-id/<id>/<file id>, by which the executable is
 * found by its build id or debug id. */
#include "symbfile_store/impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json_write.h"

/* Reads a JSON text into `out`; leaves `out` as it is if the text does not fit. */
static void copy_text(struct sl_json *j, char *out, size_t size)
{
    struct sl_str text;
    if (sl_json_text(j, &text) && text.size < size)
        snprintf(out, size, SL_STR_FMT, SL_STR_ARG(text));
}

/* Reads the member `key` of the JSON object into `info`; skips unknown members. */
static void read_member(struct sl_json *j, struct sl_str key, struct symbfile_info *info)
{
    const struct {
        struct sl_str key;
        char *out;
        size_t size;
    } texts[] = {{SL_STR("build_id"), info->build_id, sizeof info->build_id},
                 {SL_STR("debug_id"), info->debug_id, sizeof info->debug_id},
                 {SL_STR("go_build_id"), info->go_build_id, sizeof info->go_build_id},
                 {SL_STR("code_file"), info->code_file, sizeof info->code_file},
                 {SL_STR("arch"), info->arch, sizeof info->arch}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sl_str_equal(key, texts[i].key)) {
            copy_text(j, texts[i].out, texts[i].size);
            return;
        }
    if (sl_str_equal(key, SL_STR("base_address")))
        info->has_base = sl_json_u64(j, &info->base);
    else
        sl_json_skip(j);
}

/* Parses the JSON of a description. If it is damaged the description is empty, which is no error: uploads are useful without it. */
void info_parse(struct sl_str text, struct symbfile_info *info)
{
    struct sl_arena arena = {0};
    struct sl_str key;
    struct sl_json j = sl_json(text, &arena, false); /* false: strict JSON */
    *info = (struct symbfile_info){0};
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key))
            read_member(&j, key, info);
    if (!sl_json_end(&j))
        *info = (struct symbfile_info){0};
    sl_arena_free(&arena);
}

bool info_read(const char *home, struct symbfile_info *info)
{
    char path[STORE_PATH + 16];
    struct sl_mapping mapping;
    *info = (struct symbfile_info){0};
    snprintf(path, sizeof path, "%s/info", home);
    enum sl_code code = sl_map_file(path, &mapping, NULL);
    if (code == SL_BUSY)
        errno = ENOMEM;
    if (code != SL_OK)
        return code != SL_BUSY; /* no or an unreadable file: an empty description */
    info_parse((struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size}, info);
    sl_unmap(&mapping);
    return true;
}

static void write_member(struct sl_json_writer *w, const char *key, const char *text)
{
    if (!*text)
        return;
    sl_json_member_str(w, key, sl_str(text));
}

/* Writes the description as JSON; members without a value are left out. */
void info_format(const struct symbfile_info *info, struct sl_buf *json)
{
    struct sl_json_writer w = sl_json_writer(json);
    sl_json_begin_object(&w);
    write_member(&w, "build_id", info->build_id);
    write_member(&w, "debug_id", info->debug_id);
    write_member(&w, "go_build_id", info->go_build_id);
    write_member(&w, "code_file", info->code_file);
    write_member(&w, "arch", info->arch);
    if (info->has_base)
        sl_json_member_u64(&w, "base_address", info->base);
    sl_json_end_object(&w);
}

/* Replaces the stored description. False on failure, with errno set. */
static bool info_write(const char *home, const struct symbfile_info *info)
{
    char tmp[STORE_PATH], from[STORE_PATH + 32], path[STORE_PATH + 16];
    struct sl_buf json = {0};
    info_format(info, &json);
    snprintf(path, sizeof path, "%s/info", home);
    int fd = !json.failed && store_tmp(tmp) ? files_temp(tmp, "info-", 0750, from, sizeof from) : -1;
    bool ok = fd >= 0 && sl_write_all(fd, sl_buf_bytes(&json)) && files_publish(fd, from, path, FILES_DURABLE);
    int reason = errno;
    sl_close(fd);
    if (fd >= 0 && !ok)
        unlink(from);
    errno = reason;
    sl_buf_free(&json);
    return ok;
}

/* Creates an empty file in an existing directory. True also if it exists; `*made` is set to true only if it did not. False with errno. */
static bool make_empty_file(const char *directory, const char *name, bool *made)
{
    char path[STORE_PATH + SYMBFILE_ID_MAX + FILE_ID_HEX + 16];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        return errno == EEXIST;
    close(fd);
    *made = true;
    return files_sync_directory(directory);
}

/* Creates the empty file <root>/by-id/<id>/<file id>, by which the executable is found by this id. Sets `*changed` to true if it is new.
 * Does nothing for an empty id. False with errno. */
static bool write_id(const char *root, const char *id, const struct sl_file_id *file_id, bool *changed)
{
    char path[STORE_PATH + SYMBFILE_ID_MAX + 8], hex[FILE_ID_HEX];
    if (!*id)
        return true;
    sl_hex_encode(file_id->bytes, sizeof file_id->bytes, hex);
    snprintf(path, sizeof path, "%s/by-id/%s", root, id);
    if (!files_make_directory(path, 0750, FILES_DURABLE))
        return false;
    return make_empty_file(path, hex, changed);
}

/* Overwrites the members of `info` that are present in `news`; true if that changes something. If `news` has a build id but no debug id,
 * the debug id is made from the build id. */
bool info_merge(struct symbfile_info *info, const struct symbfile_info *news)
{
    struct symbfile_info before = *info;
    if (*news->build_id) {
        uint8_t bytes[64];
        size_t size;
        memcpy(info->build_id, news->build_id, sizeof info->build_id);
        if (!*news->debug_id && sl_hex_decode(sl_str(news->build_id), bytes, sizeof bytes, &size)) {
            struct sl_debug_id id =
                sl_debug_id_from_build_id((struct sl_bytes){bytes, size}, false); /* little-endian */
            sl_debug_id_format(&id, info->debug_id);
        }
    }
    if (*news->debug_id)
        memcpy(info->debug_id, news->debug_id, sizeof info->debug_id);
    if (*news->go_build_id)
        memcpy(info->go_build_id, news->go_build_id, sizeof info->go_build_id);
    if (*news->code_file)
        memcpy(info->code_file, news->code_file, sizeof info->code_file);
    if (*news->arch)
        memcpy(info->arch, news->arch, sizeof info->arch);
    if (news->has_base) {
        info->has_base = true;
        info->base = news->base;
    }
    return strcmp(info->build_id, before.build_id) != 0 || strcmp(info->debug_id, before.debug_id) != 0 ||
           strcmp(info->go_build_id, before.go_build_id) != 0 || strcmp(info->code_file, before.code_file) != 0 ||
           strcmp(info->arch, before.arch) != 0 || info->has_base != before.has_base || info->base != before.base;
}

/* Merges the description of a new upload into the stored one, and creates the by-id files of its ids. False with errno. */
bool info_update(const char *root, const char *home, const struct sl_file_id *file_id, const struct symbfile_info *news,
                 bool *changed)
{
    struct symbfile_info info;
    if (!info_read(home, &info)) /* going on with an empty description would overwrite the stored one */
        return false;
    bool other = info_merge(&info, news);
    *changed |= other;
    return (!other || info_write(home, &info)) && write_id(root, info.build_id, file_id, changed) &&
           write_id(root, info.debug_id, file_id, changed);
}

/* True if an id of a request can be a file name: not hidden, without a slash, not too long. */
bool info_id_is_safe(const char *id)
{
    return *id && *id != '.' && !strchr(id, '/') && strlen(id) < SYMBFILE_ID_MAX;
}

/* Sets file_key->file_id to the executable with this build id or debug id. If several executables have the id, compares the first
 * MAX_ALIASES of them and takes the one whose symbfiles were published last. */
enum sl_code symbfile_store_find(const char *id, struct symbfile_key *file_key)
{
    char root[STORE_PATH], path[STORE_PATH + SYMBFILE_ID_MAX + 8];
    if (!info_id_is_safe(id) || !store_root(file_key->scope, root))
        return SL_NOT_FOUND;
    snprintf(path, sizeof path, "%s/by-id/%s", root, id);
    store_refresh(path);
    DIR *dir = opendir(path);
    enum sl_code code = dir ? SL_OK : store_code(errno);
    uint64_t newest = 0;
    unsigned looked_at = 0;
    /* `dir` is NULL if no executable has the id: then there are no entries */
    for (struct dirent *e; code == SL_OK && looked_at < MAX_ALIASES; looked_at++) {
        if (!(e = dir_next(dir, NULL))) {
            code = errno ? store_code(errno) : SL_OK;
            break;
        }
        struct symbfile_set sets[SYMBFILE_KINDS];
        struct symbfile_key candidate = *file_key;
        if (strlen(e->d_name) != FILE_ID_HEX - 1 ||
            !sl_hex_decode(sl_str(e->d_name), candidate.file_id.bytes, sizeof candidate.file_id.bytes, NULL))
            continue;
        code = symbfile_store_published(&candidate, sets);
        for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
            if (sets[kind].generation > newest) {
                newest = sets[kind].generation;
                *file_key = candidate;
            }
        }
    }
    if (dir)
        closedir(dir);
    return code == SL_OK && newest == 0 ? SL_NOT_FOUND : code;
}
