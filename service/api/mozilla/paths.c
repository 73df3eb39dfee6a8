/* Paths of source files in the form in which builds of Firefox and of Rust crates write them into symbols. */
#include "api/mozilla/mozilla.h"
#include "fetch/fetch.h"

/* Moves the text before the next colon from `rest` to `part`, and removes the colon; false if there is none. */
static bool path_part(struct sl_str *rest, struct sl_str *part)
{
    const char *colon = rest->size ? memchr(rest->data, ':', rest->size) : NULL;
    if (!colon)
        return false;
    *part = (struct sl_str){rest->data, (size_t)(colon - rest->data)};
    *rest = (struct sl_str){colon + 1, rest->size - part->size - 1};
    return true;
}

/* Appends `before` as it is, then `piece` percent-encoded. */
static void add_piece(struct sl_buf *url, const char *before, struct sl_str piece)
{
    sl_buf_cstr(url, before);
    fetch_encode(url, piece, true);
}

/* Returns the name of a crate from "<name>-<version>"; size 0 if the text has no such form. Names have no dots, and versions have
 * one after their first number, so the last dash before the first dot separates the two. */
static struct sl_str crate_name(struct sl_str crate)
{
    const char *dot = crate.size ? memchr(crate.data, '.', crate.size) : NULL;
    const char *dash = dot ? memrchr(crate.data, '-', (size_t)(dot - crate.data)) : NULL;
    return (struct sl_str){crate.data, dash ? (size_t)(dash - crate.data) : 0};
}

/* True if the directory of Cargo's cache, "<host>-<hash>", has the crates of crates.io. */
static bool is_crates_io(struct sl_str registry)
{
    return sl_str_starts(registry, SL_STR("github.com-")) || sl_str_starts(registry, SL_STR("index.crates.io-"));
}

/* Appends the URL of a crate on crates.io to `url`, and the path of the file in its archive to `member`; nothing for crates of other
 * registries, whose hosts are not known. */
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

/* Splits the path at its colons: <kind>:<place>:<file>:<revision>, of which `path` has the last part. For cargo the parts
 * after the kind are registry, crate, and the path in the crate. */
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
