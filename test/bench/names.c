/* What our reader of Rust's newer mangling gains over LLVM's.
 *
 * usage: names FILE (a name a line); prints microseconds a name: ours, LLVM's */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "demangle/demangle.h"

enum { ROUNDS = 7, MIN_NAMES = 20000 };

/* llvm::rustDemangle(std::string_view) */
struct view {
    size_t size;
    const char *data;
};
char *rust_of_llvm(struct view name) __asm__("_ZN4llvm12rustDemangleESt17basic_string_viewIcSt11char_traitsIcEE");

struct names {
    struct sl_mapping mapping;
    struct sl_str *items;
    size_t count;
};

static struct names read_names(const char *path)
{
    struct names names = {0};
    struct sl_error error = {0};
    if (sl_map_file(path, &names.mapping, &error) != SL_OK) {
        fprintf(stderr, "names: %s\n", error.message);
        exit(1);
    }
    const char *at = (const char *)names.mapping.bytes.data, *end = at + names.mapping.bytes.size, *stop;
    names.items = calloc(names.mapping.bytes.size + 1, sizeof *names.items);
    for (; names.items && at < end && (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1)
        names.items[names.count++] = (struct sl_str){at, (size_t)(stop - at)};
    if (!names.count) {
        fprintf(stderr, "names: none in %s\n", path);
        exit(1);
    }
    return names;
}

static void rust(struct sl_str name, struct sl_buf *out)
{
    sl_demangle(name, SL_LANG_RUST, out);
}

static void rust_by_llvm(struct sl_str name, struct sl_buf *out)
{
    char *text = rust_of_llvm((struct view){name.size, name.data});
    if (text)
        sl_buf_cstr(out, text);
    free(text);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Microseconds a name, the best of several rounds. */
static double measure(const struct names *names, void (*demangle)(struct sl_str name, struct sl_buf *out))
{
    struct sl_buf out = {0};
    double best = 1e9;
    size_t times = MIN_NAMES / names->count + 1;
    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_seconds();
        for (size_t i = 0; i < times * names->count; i++) {
            sl_buf_clear(&out);
            demangle(names->items[i % names->count], &out);
        }
        double took = (cpu_seconds() - start) * 1e6 / (double)(times * names->count);
        best = took < best ? took : best;
    }
    sl_buf_free(&out);
    return best;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct names rust_names = read_names(argv[1]);
    printf("%f %f\n", measure(&rust_names, rust), measure(&rust_names, rust_by_llvm));
    free(rust_names.items);
    sl_unmap(&rust_names.mapping);
    return 0;
}
