/* Special paths of source files, as builds of Firefox and its crates write them into symbols. */
#include "api/mozilla/mozilla.h"
#include "fetch/fetch.h"

/* Takes the part before the next colon; false if there is none. */
static bool path_part(struct sl_str *rest, struct sl_str *part)
{
    const char *colon = rest->size ? memchr(rest->data, ':', rest->size) : NULL;
    if (!colon)
        return false;
    *part = (struct sl_str){rest->data, (size_t)(colon - rest->data)};
    *rest = (struct sl_str){colon + 1, rest->size - part->size - 1};
    return true;
}

static void add_piece(struct sl_buf *url, const char *before, struct sl_str piece)
{
    sl_buf_cstr(url, before);
    fetch_encode(url, piece, true);
}

/* Returns the name part of "name-version". A name has no dot, and a version has one after its first number: so the dash
 * before the first dot separates them. */
static struct sl_str crate_name(struct sl_str crate)
{
    const char *dot = crate.size ? memchr(crate.data, '.', crate.size) : NULL;
    const char *dash = dot ? memrchr(crate.data, '-', (size_t)(dot - crate.data)) : NULL;
    return (struct sl_str){crate.data, dash ? (size_t)(dash - crate.data) : 0};
}

/* True for a directory of Cargo's cache (name, dash, hash) with crates of crates.io. */
static bool is_crates_io(struct sl_str registry)
{
    return sl_str_starts(registry, SL_STR("github.com-")) || sl_str_starts(registry, SL_STR("index.crates.io-"));
}

/* Appends the URL of a crate on crates.io, and the path of the file in its archive. Nothing for crates of other registries. */
static void crate_url(struct sl_str registry, struct sl_str crate, struct sl_str path, struct sl_buf *url,
                      struct sl_buf *member)
{
    struct sl_str name = crate_name(crate);
    if (!is_crates_io(registry) || !name.size || !path.size)
        return;
    add_piece(url, "https://static.crates.io/crates/", name);
    add_piece(url, "/", crate);
    sl_buf_cstr(url, ".crate");
    sl_buf_printf(member, SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(crate), SL_STR_ARG(path));
}

/* Converts "<kind>:<place>:<file>:<revision>" to a URL; kinds are hg, git, s3 and cargo. For cargo the URL is that of the
 * crate's archive, and `member` the file in it. False for other paths. */
bool mozilla_source_url(struct sl_str path, struct sl_buf *url, struct sl_buf *member)
{
    static const struct sl_str github = SL_STR("github.com/");
    struct sl_str kind, place, file;
    if (!path_part(&path, &kind) || !path_part(&path, &place) || !path_part(&path, &file))
        return false;
    if (sl_str_equal(kind, SL_STR("hg"))) {
        add_piece(url, "https://", place);
        add_piece(url, "/raw-file/", path);
        add_piece(url, "/", file);
    } else if (sl_str_equal(kind, SL_STR("git")) && sl_str_starts(place, github)) {
        add_piece(url, "https://raw.githubusercontent.com/",
                  (struct sl_str){place.data + github.size, place.size - github.size});
        add_piece(url, "/", path);
        add_piece(url, "/", file);
    } else if (sl_str_equal(kind, SL_STR("s3"))) {
        add_piece(url, "https://", place);
        add_piece(url, ".s3.amazonaws.com/", file);
    } else if (sl_str_equal(kind, SL_STR("cargo"))) {
        crate_url(place, file, path, url, member);
    }
    return url->size && !url->failed && !member->failed;
}
