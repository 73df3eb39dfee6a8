/* PDB files of a compiler and a linker, for both sizes of machine and for ARM64. */
#include "dump.h"

#include "../fixture.h"
#include "base/file.h"
#include "symcache/symcache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static const char *const targets[] = {"x86_64", "i686", "aarch64"};

static int build(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        const char *flags = "-pc-windows-msvc -g -gcodeview -O1 -ffreestanding -fno-builtin";
        const char *t = targets[i];
        fixture_runf("cd " FIXTURES
                     " && clang --target=%s%s -fno-rtti -fno-exceptions -fdebug-compilation-dir='C:\\build' "
                     "-c sample.cpp -o %s/sample-%s.obj",
                     t, flags, fixture_dir, t);
        fixture_runf("cd " FIXTURES " && clang --target=%s%s -c second.c -o %s/second-%s.obj", t, flags, fixture_dir,
                     t);
        fixture_runf("lld-link /nodefaultlib /entry:entry /subsystem:console /debug /opt:noref /opt:noicf "
                     "/pdbstream:srcsrv=" FIXTURES "/srcsrv.txt "
                     "/out:sample-%s.exe sample-%s.obj second-%s.obj",
                     t, t, t);
    }
    return 0;
}

static struct sl_mapping map(const char *name, const char *target, const char *suffix)
{
    char path[256];
    struct sl_mapping mapping;
    snprintf(path, sizeof path, "%s/%s-%s%s", fixture_dir, name, target, suffix);
    assert_int_equal(sl_map_file(path, &mapping, NULL), SL_OK);
    return mapping;
}

TEST(pdb_and_pe_have_the_same_identity)
{
    static const enum sl_arch archs[] = {SL_ARCH_X86_64, SL_ARCH_X86, SL_ARCH_ARM64};
    for (size_t i = 0; i < 3; i++) {
        struct sl_mapping exe = map("sample", targets[i], ".exe"), pdb = map("sample", targets[i], ".pdb");
        struct sl_object *image, *debug;
        assert_int_equal(sl_object_open(exe.bytes, NULL, &image, NULL), SL_OK);
        assert_int_equal(sl_object_open(pdb.bytes, NULL, &debug, NULL), SL_OK);
        const struct sl_object_info *a = sl_object_info(image), *b = sl_object_info(debug);
        assert_true(sl_debug_id_equal(&a->debug_id, &b->debug_id) && b->debug_id.age == 1);
        assert_int_equal(a->arch, archs[i]);
        assert_int_equal(b->arch, archs[i]);
        assert_int_equal(a->kind, SL_KIND_EXE);
        assert_int_equal(b->kind, SL_KIND_DBG);
        assert_int_equal(a->load_address, archs[i] == SL_ARCH_X86 ? 0x400000 : 0x140000000);
        assert_true(sl_str_ends(a->debug_file, SL_STR(".pdb")));
        assert_true(a->code_id.size >= 12 && !b->code_id.size);
        assert_false(a->features.has_debug_info || a->features.has_symbols);
        assert_true(b->features.has_debug_info && b->features.has_symbols);
        assert_int_equal(b->features.has_unwind_info, archs[i] == SL_ARCH_X86);
        assert_true(sl_str_equal(b->features.srcsrv_vcs, SL_STR("perforce")));
        assert_int_equal(b->is_64bit, archs[i] != SL_ARCH_X86);
        sl_object_close(image);
        sl_object_close(debug);
        sl_unmap(&exe);
        sl_unmap(&pdb);
    }
}

/* ---- conversion ---- */

struct crew {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t count;
    atomic_size_t next;
    atomic_uint workers;
};

static void *member(void *arg)
{
    struct crew *crew = arg;
    unsigned worker = atomic_fetch_add(&crew->workers, 1);
    for (size_t i; (i = atomic_fetch_add(&crew->next, 1)) < crew->count;)
        crew->work(crew->arg, i, worker);
    return NULL;
}

static void run_threads(const struct sl_parallel *self, size_t count,
                        void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct crew crew = {.work = work, .arg = arg, .count = count};
    pthread_t threads[8];
    for (unsigned i = 0; i < self->workers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, member, &crew), 0);
    for (unsigned i = 0; i < self->workers; i++)
        pthread_join(threads[i], NULL);
}

static void convert(const char *target, const struct sl_parallel *parallel, struct sl_buf *out,
                    struct sl_symcache *cache)
{
    struct sl_mapping pdb = map("sample", target, ".pdb");
    struct sl_object *object;
    assert_int_equal(sl_object_open(pdb.bytes, NULL, &object, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch,
                                          .debug_id = sl_object_info(object)->debug_id};
    assert_int_equal(sl_symcache_convert(object, NULL, &options, parallel, out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(out), cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_verify(cache, NULL), SL_OK);
    sl_object_close(object);
    sl_unmap(&pdb);
}

/* "inner:2@x.c outer:3@x.c" with the files' last components. */
static void chain_text(const struct sl_symcache *cache, uint64_t address, struct sl_buf *out)
{
    struct sl_location chain[8];
    struct sl_buf path = {0};
    size_t n = sl_symcache_lookup(cache, address, chain, 8);
    sl_buf_clear(out);
    for (size_t i = 0; i < n; i++) {
        struct sl_symcache_function f;
        assert_true(sl_symcache_function(cache, chain[i].function, &f));
        sl_buf_cstr(out, i ? " < " : "");
        sl_symcache_string(cache, f.name, out);
        sl_buf_clear(&path);
        sl_symcache_file(cache, chain[i].file, &path);
        const char *last = path.size ? memrchr(path.data, path.data[0] == '/' ? '/' : '\\', path.size) : NULL;
        size_t skip = last ? (size_t)(last + 1 - (char *)path.data) : 0;
        sl_buf_printf(out, ":%u@%.*s", chain[i].line, (int)(path.size - skip), (char *)path.data + skip);
    }
    sl_buf_free(&path);
}

static bool has_chain(const struct sl_symcache *cache, const char *text)
{
    struct sl_symcache_cursor cursor;
    struct sl_buf out = {0};
    bool found = false;
    sl_symcache_first(cache, &cursor);
    while (!found && sl_symcache_next(cache, &cursor)) {
        chain_text(cache, cursor.address, &out);
        found = sl_str_equal(sl_buf_view(&out), sl_str(text));
    }
    sl_buf_free(&out);
    return found;
}

TEST(lines_and_inlined_calls_are_read)
{
    static const char *const chains[] = {
        "outer::base::run(wchar_t, bool):17@sample.cpp",
        "`anonymous namespace'::crash(`anonymous namespace'::hidden&, `anonymous namespace'::hidden&&, outer::color)"
        ":23@sample.cpp",
        "`anonymous namespace'::start(int):32@sample.cpp < entry(int):49@sample.cpp",
        "`anonymous namespace'::inner(int):27@sample.cpp < `anonymous namespace'::start(int):33@sample.cpp < "
        "entry(int):49@sample.cpp",
        "`anonymous namespace'::inner(int):28@sample.cpp < `anonymous namespace'::start(int):33@sample.cpp < "
        "entry(int):49@sample.cpp",
        "`anonymous namespace'::start(int):34@sample.cpp < entry(int):49@sample.cpp",
        "outer::box<int>::add(int):10@sample.cpp < entry(int):50@sample.cpp",
        "outer::box<int>::get(int const&, int (*)(int, char)) const:8@sample.cpp",
        "outer::box<int>::put(int* const, const unsigned int):9@sample.cpp",
        "callback(int, char):38@sample.cpp",
        "variadic(char const*, <NoType>):39@sample.cpp",
        "arrays(int[3][4]&, double**, int::*, int (outer::box<int>::*)(int const&, int (*)(int, char)), char const* "
        "const*):40@sample.cpp",
        "simple(signed char, unsigned char, char, wchar_t, char16_t, char32_t, short, unsigned short, int, unsigned "
        "int, long, unsigned long, long long, unsigned long long, float, double, bool, void*):41@sample.cpp",
        "unique(int):3@second.c",
        "second(int*):7@second.c",
    };
    for (size_t i = 0; i < 3; i++) {
        struct sl_buf file = {0};
        struct sl_symcache cache;
        convert(targets[i], NULL, &file, &cache);
        for (size_t j = 0; j < sizeof chains / sizeof *chains; j++)
            if (!has_chain(&cache, chains[j]))
                fail_msg("%s: no %s", targets[i], chains[j]);
        sl_buf_free(&file);
    }
}

TEST(symcache_is_the_same_for_any_number_of_threads)
{
    for (size_t i = 0; i < 3; i++) {
        struct sl_buf alone = {0}, together = {0};
        struct sl_parallel parallel = {.workers = 4, .run = run_threads};
        struct sl_symcache cache;
        convert(targets[i], NULL, &alone, &cache);
        convert(targets[i], &parallel, &together, &cache);
        assert_int_equal(alone.size, together.size);
        assert_memory_equal(alone.data, together.data, alone.size);
        sl_buf_free(&alone);
        sl_buf_free(&together);
    }
}

TEST(public_symbols_are_functions)
{
    struct sl_mapping pdb = map("sample", "i686", ".pdb");
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count, entries = 0;
    assert_int_equal(sl_object_open(pdb.bytes, NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++) {
        assert_false(sl_str_equal(symbols[i].name, SL_STR("__fltused"))); /* data */
        entries += sl_str_equal(symbols[i].name, SL_STR("_entry"));
    }
    assert_int_equal(entries, 1);
    sl_object_close(object);
    sl_arena_free(&arena);
    sl_unmap(&pdb);
}

TEST(source_server_files_are_listed)
{
    struct sl_mapping pdb = map("sample", "x86_64", ".pdb");
    struct dump dump;
    dump_init(&dump);
    assert_int_equal(dump_file(&dump, pdb.bytes, NULL), SL_OK);
    sl_buf_u8(&dump.source_server, 0);
    assert_string_equal((char *)dump.source_server.data, "depot/sample.cpp 12345\n");
    dump_free(&dump);
    sl_unmap(&pdb);
}

TEST_FILE(.begin = build, .end = fixture_end);
