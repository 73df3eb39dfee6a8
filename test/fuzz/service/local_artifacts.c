/* Files of JavaScript in a directory, as a request finds them: a script, a map or a bundle, as the first byte says, under names that
 * follow. What is found is one of them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/symbolicate/artifacts.h"
#include "js/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"app.js", "app.js.map", "app.zip"};
enum { NAMES = sizeof names / sizeof *names };
static char directory[] = "/tmp/symloom-fuzz-XXXXXX";

static void must(bool good)
{
    if (!good)
        abort();
}

static void remove_directory(void)
{
    char path[64];
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

static void put_file(const char *name, struct sl_str text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, text.data, text.size) == (ssize_t)text.size);
    close(fd);
}

static void look_up(struct local_artifacts *artifacts, const struct local_file_query *query)
{
    struct sl_arena arena = {0};
    struct artifact *items;
    size_t count;
    must(local_artifacts_find(artifacts, query, &arena, &items, &count));
    must(count <= NAMES + 1);
    for (size_t i = 0; i < count; i++)
        must(items[i].file.uri.size && items[i].file.path.size);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    static const char *const places[] = {directory};
    static const struct sl_str script = SL_STR("x()\n//# debugId=2f259f80-58b7-44cb-d7cd-de1505e7e718\n");
    struct sl_debug_id id;
    if (!size)
        return 0;
    if (!made) {
        made = mkdtemp(directory) != NULL && atexit(remove_directory) == 0;
        must(made && (stderr = fopen("/dev/null", "w"))); /* what is no bundle is warned of */
    }
    size_t which = data[0] % NAMES;
    struct sl_str text = {(const char *)data + 1, size - 1}, line = {text.data, 0};
    while (line.size < text.size && line.size < 100 && line.data[line.size] != '\n')
        line.size++;
    put_file(names[0], script);
    put_file(names[which], text);
    must(sl_debug_id_parse(SL_STR("2f259f80-58b7-44cb-d7cd-de1505e7e718"), &id));
    struct local_artifacts *artifacts = local_artifacts_new(places, 1);
    must(artifacts);
    const struct sl_str paths[] = {SL_STR("http://example.com/a/app.js"), SL_STR("~/app.js.map"), line};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct local_file_query query = {.path = paths[i],
                                         .is_map = i == 1,
                                         .id = data[0] & 0x80 ? &id : NULL,
                                         .stem = sl_js_stem(paths[i]),
                                         .release = SL_STR("1")};
        look_up(artifacts, &query);
    }
    local_artifacts_free(artifacts);
    return 0;
}
