/* `symloom bundle --jvm`: packs the sources of a project under URLs that follow from the package and file name of a stack frame:
 *
 *     app/src/main/java/io/x/Foo.java ──▶ ~/io/x/Foo.jvm */
#include "cli/bundle/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 100, MAX_PATTERN = 4096 };

static const char *const suffixes[] = {".java", ".kt", ".scala", ".sc",  ".groovy",
                                       ".gvy",  ".gy", ".gsh",   ".clj", ".cljc"};
static const char *const languages[] = {"java", "kotlin", "scala", "groovy", "clojure"};
static const char *const output_directories[] = {"build", "out", "target", "bin"};

struct bundle_rule {          /* a line of a .gitignore file, or an --exclude */
    struct bundle_rule *next; /* the rule read before it, which has lower precedence */
    const char *pattern;      /* glob for names or, if `anchored`, for paths below the rule's directory */
    size_t directory;         /* length of the path of the .gitignore's directory, with its slash, in bytes */
    bool negated, directories_only, anchored;
};

struct jvm_source_walk {
    struct sl_arena arena;
    const char *top;
    struct sl_str *paths; /* of sources, relative to `top` */
    size_t count, capacity;
    bool failed;
};

/* ---- rules (gitignore(5)) ---- */

static bool is_one_of(struct sl_str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(name, sl_str(names[i])))
            return true;
    return false;
}

/* True if the pattern matches the whole path. Compares them component by component; `**` matches any number of components. Components that
 * are too long do not match, nor paths that need a recursion deeper than MAX_DEPTH. */
static bool matches(const char *pattern, const char *path, unsigned depth)
{
    char part[MAX_PATTERN], name[256];
    size_t size = strcspn(pattern, "/"), length = strcspn(path, "/");
    bool last = pattern[size] == '\0'; /* `part` is the last name of the pattern */
    bool ends = path[length] == '\0';  /* `name` is the last name of the path */
    if (depth > MAX_DEPTH || size >= sizeof part || length >= sizeof name)
        return false;
    if (size == 2 && memcmp(pattern, "**", 2) == 0)
        return last || matches(pattern + size + 1, path, depth + 1) ||
               (!ends && matches(pattern, path + length + 1, depth + 1));
    memcpy(part, pattern, size);
    part[size] = '\0';
    memcpy(name, path, length);
    name[length] = '\0';
    if (fnmatch(part, name, 0) != 0)
        return false;
    return last || ends ? last && ends : matches(pattern + size + 1, path + length + 1, depth + 1);
}

/* True if the rules exclude the path. Of the rules that match, the one read last decides: the first in the list. A rule whose pattern has
 * no slash (not `anchored`) is compared with the file name alone. */
static bool is_ignored(const struct bundle_rule *rules, const char *path, bool directory)
{
    for (const struct bundle_rule *r = rules; r; r = r->next) {
        const char *below = path + r->directory; /* relative to the directory of the rule's .gitignore */
        const char *name = strrchr(below, '/');
        if (r->directories_only && !directory)
            continue;
        if (matches(r->pattern, r->anchored || !name ? below : name + 1, 0))
            return !r->negated;
    }
    return false;
}

/* Adds the rule of a line of a .gitignore file in the directory whose path has `directory` bytes. Ignores blank lines, comments, lines
 * that are too long, and lines for which there is no memory. */
static void add_rule(struct jvm_source_walk *w, struct bundle_rule **rules, struct sl_str line, size_t directory)
{
    struct bundle_rule rule = {.next = *rules, .directory = directory};
    while (line.size && (line.data[line.size - 1] == '\r' || line.data[line.size - 1] == ' '))
        line.size--;
    if (!line.size || line.data[0] == '#' || line.size >= MAX_PATTERN)
        return;
    if (line.data[0] == '!') {
        rule.negated = true;
        line = (struct sl_str){line.data + 1, line.size - 1};
    }
    if (sl_str_ends(line, SL_STR("/"))) {
        rule.directories_only = true;
        line.size--;
    }
    /* a slash that is not the last character ties the pattern to the rule's directory */
    rule.anchored = line.size && memchr(line.data, '/', line.size);
    if (sl_str_starts(line, SL_STR("/")))
        line = (struct sl_str){line.data + 1, line.size - 1};
    struct bundle_rule *copy = line.size ? SL_ARENA_NEW(&w->arena, struct bundle_rule) : NULL;
    rule.pattern = copy ? sl_arena_strndup(&w->arena, line.data, line.size) : NULL;
    if (!rule.pattern)
        return;
    *copy = rule;
    *rules = copy;
}

/* Adds the rules of a directory's .gitignore, if there is one. `directory` is relative to w->top; it is empty or ends with a slash. */
static void read_rules(struct jvm_source_walk *w, struct bundle_rule **rules, const char *directory)
{
    struct sl_buf text = {0};
    char path[4096];
    size_t top = strlen(directory);
    if (snprintf(path, sizeof path, "%s/%s.gitignore", w->top, directory) < (int)sizeof path &&
        !read_source(path, 1 << 20, &text)) /* a file of at most 1 MiB that could be read */
        for (struct sl_str rest = sl_buf_view(&text), line; sl_str_next_line(&rest, &line);)
            add_rule(w, rules, line, top);
    sl_buf_free(&text);
}

/* ---- paths ---- */

/* Returns the part of the path after a source root, `src/<source set>/<language>/` (Gradle and Maven layout); NULL if it has none. */
static const char *behind_source_root(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        const char *set = strncmp(at, "src/", 4) == 0 ? at + 4 : NULL;
        const char *language = set ? strchr(set, '/') : NULL;
        const char *end = language ? strchr(++language, '/') : NULL;
        if (end && is_one_of((struct sl_str){language, (size_t)(end - language)}, languages,
                             sizeof languages / sizeof *languages))
            return end + 1;
    }
    return NULL;
}

/* True for directories that the search skips: hidden ones and build output. Below a source root, however, a directory such as `build` is a
 * package. */
static bool is_skipped_directory(const char *path, const char *name)
{
    char below[4096];
    if (name[0] == '.')
        return true;
    snprintf(below, sizeof below, "%s/", path); /* behind_source_root needs the slash after a language */
    return !behind_source_root(below) &&
           is_one_of(sl_str(name), output_directories, sizeof output_directories / sizeof *output_directories);
}

static bool is_source(struct sl_str name)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (sl_str_ends(name, sl_str(suffixes[i])) && name.size > strlen(suffixes[i]))
            return true;
    return false;
}

/* Adds the path of a source to the list; sets w->failed when out of memory. */
static void add_path(struct jvm_source_walk *w, const char *path)
{
    char *copy = sl_arena_strndup(&w->arena, path, strlen(path));
    if (copy && w->count == w->capacity) {
        size_t capacity = w->capacity * 2 + 256;
        struct sl_str *grown = reallocarray(w->paths, capacity, sizeof *grown);
        w->paths = grown ? grown : w->paths;
        w->capacity = grown ? capacity : w->capacity;
    }
    w->failed |= !copy || w->count == w->capacity;
    if (!w->failed)
        w->paths[w->count++] = sl_str(copy);
}

/* Lists the sources in a directory and below. `directory` is relative to w->top; it is empty or ends with a slash. `outer`: the rules of
 * the directories around it. Directories that cannot be read and paths that are too long are skipped. */
static void bundle_jvm_walk(struct jvm_source_walk *w, const char *directory, const struct bundle_rule *outer,
                            unsigned depth)
{
    char path[4096];
    struct bundle_rule *rules = (struct bundle_rule *)outer; /* not changed: read_rules puts new rules before it */
    struct dirent *entry;
    DIR *dir = snprintf(path, sizeof path, "%s/%s", w->top, directory) < (int)sizeof path ? opendir(path) : NULL;
    read_rules(w, &rules, directory);
    while (dir && !w->failed && (entry = readdir(dir))) {
        struct stat st;
        size_t top = strlen(w->top) + 1;
        if (entry->d_name[0] == '.') /* hidden files, `.` and `..` */
            continue;
        int size = snprintf(path, sizeof path, "%s/%s%s", w->top, directory, entry->d_name);
        if (size < 0 || (size_t)size + 1 >= sizeof path) /* room for a slash */
            continue;
        /* lstat: symbolic links are not followed */
        if (lstat(path, &st) != 0 || is_ignored(rules, path + top, S_ISDIR(st.st_mode)))
            continue;
        if (S_ISREG(st.st_mode) && is_source(sl_str(entry->d_name)))
            add_path(w, path + top);
        if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH && !is_skipped_directory(path + top, entry->d_name)) {
            memcpy(path + size, "/", 2);
            bundle_jvm_walk(w, path + top, rules, depth + 1);
        }
    }
    if (dir)
        closedir(dir);
}

/* ---- packing ---- */

/* Returns the URL of a source, `~/` and its path below the source root (or below w->top without one) with the extension .jvm: a stack frame
 * tells the package, but neither the source root nor the language. Sets w->failed when out of memory. */
static struct sl_str make_url(struct jvm_source_walk *w, struct sl_str path)
{
    const char *rest = behind_source_root(path.data);
    struct sl_buf url = {0};
    rest = rest ? rest : path.data;
    const char *dot = strrchr(rest, '.'); /* not NULL: every listed source has an extension */
    sl_buf_cstr(&url, "~/");
    sl_buf_add(&url, rest, (size_t)(dot - rest));
    sl_buf_cstr(&url, ".jvm");
    struct sl_str copy = sl_buf_move_to_arena(&url, &w->arena);
    w->failed |= !copy.data;
    return copy;
}

/* Adds the listed sources to the bundle, and counts them in `*count`. If two have the same URL, the first by path is packed. Sources that
 * cannot be read are left out; `verbose`: with a note. */
static void bundle_jvm_pack(struct jvm_source_walk *w, uint64_t max_size, bool verbose, struct sl_bundle_writer *writer,
                            size_t *count)
{
    struct sl_map urls = {0};
    struct sl_buf text = {0};
    char local[8192];
    for (size_t i = 0; i < w->count && !w->failed; i++) {
        bool is_new = false;
        struct sl_str url = make_url(w, w->paths[i]);
        void **slot = url.data ? sl_map_find_or_add(&urls, url, &is_new) : NULL;
        w->failed |= !slot;
        if (w->failed)
            break;
        if (!is_new) {
            print_note("warning: " SL_STR_FMT " has the same URL as " SL_STR_FMT ", which is packed instead\n",
                       SL_STR_ARG(w->paths[i]), SL_STR_ARG(*(struct sl_str *)*slot));
            continue;
        }
        *slot = &w->paths[i];
        snprintf(local, sizeof local, "%s/" SL_STR_FMT, w->top, SL_STR_ARG(w->paths[i]));
        const char *reason = read_source(local, max_size, &text);
        if (!reason && sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR(""), url, sl_buf_bytes(&text)))
            ++*count;
        else if (verbose) /* `reason` is set: read_source refuses all texts that sl_bundle_add would refuse */
            print_note("Skipped file %s due to: %s\n", local, reason);
    }
    sl_buf_free(&text);
    sl_map_free(&urls);
}

int bundle_jvm(const char *directory, const char *const *exclude, size_t exclude_count, uint64_t max_size, bool verbose,
               struct sl_bundle_writer *writer, size_t *count)
{
    struct jvm_source_walk w = {.top = directory};
    struct bundle_rule *rules = NULL;
    struct stat st;
    char message[4200];
    bool exists = stat(directory, &st) == 0;
    *count = 0;
    if (!exists || !S_ISDIR(st.st_mode)) {
        snprintf(message, sizeof message,
                 exists ? "Given path is not a directory: %s" : "Given path does not exist: %s", directory);
        return report_error(1, message, NULL);
    }
    for (size_t i = 0; i < exclude_count; i++)
        add_rule(&w, &rules, sl_str(exclude[i]), 0);
    bundle_jvm_walk(&w, "", rules, 0);
    if (w.count) /* so that the bundle does not depend on the order of directory entries */
        qsort(w.paths, w.count, sizeof *w.paths, sl_str_order);
    bundle_jvm_pack(&w, max_size, verbose, writer, count);
    free(w.paths);
    sl_arena_free(&w.arena);
    return w.failed ? report_no_memory() : 0;
}
