/* Origins of source files: the source server stream, then the rules of Source Link, which linkers put into streams "sourcelink",
 * "sourcelink$1", "sourcelink$2" ... */
#include "pdb/impl.h"

/* ---- named streams ---- */

enum { MAX_NAME = 64 }; /* longer than all names that are looked up */

/* Iterates over the names of streams. */
struct srcsrv_names {
    struct sl_bytes texts;
    struct sl_reader pairs; /* offset of the name in `texts`, number of the stream */
    uint32_t left;          /* number of pairs left */
};

/* Begins to read the map of stream names in the info stream: a block of texts, then a hash table written as counts, two bit vectors and
 * pairs of name and stream. */
static struct srcsrv_names open_names(struct sl_bytes info)
{
    struct srcsrv_names names;
    struct sl_reader r = sl_reader(info, false);
    sl_reader_skip(&r, 28); /* version, time stamp, age, GUID */
    names.texts = sl_read_bytes(&r, sl_read_u32(&r));
    names.left = sl_read_u32(&r);
    sl_read_u32(&r);            /* rows of the hash table */
    for (int i = 0; i < 2; i++) /* which rows are used, and which were deleted */
        sl_reader_skip(&r, (uint64_t)sl_read_u32(&r) * 4);
    names.pairs = r;
    return names;
}

/* Reads the next pair of name and stream; a name of MAX_NAME bytes or more becomes empty. False at the end. */
static bool next_name(struct srcsrv_names *names, struct sl_str *name, uint32_t *stream)
{
    if (!names->left || sl_reader_left(&names->pairs) < 8)
        return false;
    names->left--;
    uint32_t offset = sl_read_u32(&names->pairs);
    *stream = sl_read_u32(&names->pairs);
    uint64_t left = offset < names->texts.size ? names->texts.size - offset : 0;
    *name = sl_cstr_at(sl_bytes_slice(names->texts, offset, left < MAX_NAME ? left : MAX_NAME, NULL), 0);
    return true;
}

bool pdb_find_named_stream(struct sl_bytes info, const char *wanted, uint32_t *stream)
{
    struct srcsrv_names names = open_names(info);
    struct sl_str name;
    while (next_name(&names, &name, stream))
        if (sl_str_equal(name, sl_str(wanted)))
            return true;
    return false;
}

/* ---- Source Link ---- */

/* The rules of Source Link streams, which map paths to URLs. */
struct srcsrv_rules {
    struct sl_arena arena;
    _Atomic bool *no_memory; /* msf.no_memory */
    struct sl_ppdb_link *items;
    size_t count;
};

/* Appends the rules of a stream to those of earlier ones. If there would be more than SL_PPDB_MAX_LINKS, the new ones are dropped. */
static void add_rules(struct srcsrv_rules *rules, const struct sl_ppdb_link *more, size_t count)
{
    if (!count || count > SL_PPDB_MAX_LINKS || rules->count > SL_PPDB_MAX_LINKS - count)
        return;
    struct sl_ppdb_link *all = SL_ARENA_ARRAY(&rules->arena, struct sl_ppdb_link, rules->count + count);
    if (!all) {
        *rules->no_memory = true;
        return;
    }
    if (rules->count)
        memcpy(all, rules->items, rules->count * sizeof *all);
    memcpy(all + rules->count, more, count * sizeof *all);
    rules->items = all;
    rules->count += count;
}

/* Limit of Source Link streams that are read: the map of names in a crafted file may name one stream a million times. */
enum { MAX_LINK_STREAMS = 64 };

/* Reads the rules of all Source Link streams. Ignores damaged streams, and any with which they would together be larger than the file. That
 * happens only if the map of names lists a stream repeatedly. */
static void read_rules(const struct sl_pdb *pdb, struct srcsrv_rules *rules)
{
    struct srcsrv_names names = open_names(pdb->info);
    struct sl_str name;
    uint32_t index;
    uint64_t left = pdb->msf.file.size;
    for (unsigned streams = 0; streams < MAX_LINK_STREAMS && next_name(&names, &name, &index);) {
        struct msf_stream stream;
        struct sl_bytes json;
        struct sl_ppdb_link *more;
        size_t count;
        if (!sl_str_equal(name, SL_STR("sourcelink")) && !sl_str_starts(name, SL_STR("sourcelink$")))
            continue;
        streams++;
        if (!msf_stream(&pdb->msf, index, &stream) || stream.size > left)
            continue;
        left -= stream.size;
        if (!msf_all(&stream, &rules->arena, &json))
            continue;
        struct sl_str text = {(const char *)json.data, json.size};
        enum sl_code code = sl_ppdb_links_parse(text, &rules->arena, &more, &count, NULL);
        if (code == SL_OK)
            add_rules(rules, more, count);
        else if (code == SL_BUSY)
            *rules->no_memory = true;
    }
}

/* Reads the Source Link rules and stores them in searchable form, in memory that lives as long as the PDB. Called at the first lookup. */
static void open_links(struct sl_pdb *pdb)
{
    struct srcsrv_rules rules = {.arena.budget = pdb->budget, .no_memory = pdb->msf.no_memory};
    struct sl_buf stored = {.budget = pdb->budget};
    pdb->links_tried = true;
    read_rules(pdb, &rules);
    uint8_t *copy = NULL;
    enum sl_code code = sl_ppdb_links_build(rules.items, rules.count, &stored, NULL);
    if (code == SL_OK && stored.size && !(copy = sl_arena_alloc(pdb->arena, stored.size, 1)))
        code = SL_BUSY;
    if (code == SL_BUSY)
        *pdb->msf.no_memory = true;
    if (copy) {
        memcpy(copy, stored.data, stored.size);
        sl_ppdb_links_open((struct sl_bytes){copy, stored.size}, &pdb->links); /* its own bytes: they are not damaged */
    }
    sl_buf_free(&stored);
    sl_arena_free(&rules.arena);
}

/* Sets `*url` to the URL that the rules give for the path; leaves it unchanged if no rule matches, or if the work budget is used up. */
static void find_link(struct sl_pdb *pdb, struct sl_str path, struct sl_arena *arena, struct sl_str *url)
{
    struct sl_buf text = {0};
    if (!pdb->links_tried)
        open_links(pdb);
    if (sl_ppdb_links_resolve(&pdb->links, path, &text) && !text.failed && sl_budget_spend(pdb->budget, text.size)) {
        char *copy = sl_arena_strndup(arena, (const char *)text.data, text.size);
        *url = (struct sl_str){copy, copy ? text.size : 0};
        if (!copy)
            *pdb->msf.no_memory = true;
    }
    sl_buf_free(&text);
}

bool sl_pdb_file_origin(struct sl_pdb *pdb, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin)
{
    *origin = (struct sl_file_origin){{NULL, 0}};
    if (pdb->srcsrv)
        srcsrv_origin(pdb->srcsrv, path, arena, origin);
    if (!origin->url.size)
        find_link(pdb, path, arena, &origin->url);
    return origin->path.size || origin->url.size;
}
