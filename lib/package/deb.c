/* Packages of Debian (deb(5)): an ar archive of debian-binary, control.tar.* and data.tar.*; and the names of its source
 * archives. */
#include <stdio.h>

#include "base/buf.h"
#include "object/ar.h"
#include "package/impl.h"

enum { CONTROL_MAX = 64 << 10 };

/* Returns the first member of the ar archive whose name begins with the text; data NULL if there is none. */
static struct sl_bytes find_member(struct sl_bytes file, struct sl_str begins)
{
    struct sl_ar ar;
    struct sl_ar_member member;
    sl_ar_open(file, &ar);
    for (int i = 0; i < 16 && sl_ar_next(&ar, &member); i++) /* packages have three or four members */
        if (sl_str_starts(member.name, begins))
            return member.bytes;
    return (struct sl_bytes){NULL, 0};
}

struct sl_bytes deb_payload(struct sl_bytes file)
{
    return find_member(file, SL_STR("data.tar"));
}

/* ---- control: begin_control, add_control and end_control collect the text of /control (struct sl_package_visitor) ---- */

struct control_reading {
    struct sl_buf text;
};

static enum sl_package_choice begin_control(void *arg, const struct sl_package_member *member)
{
    (void)arg;
    return sl_str_equal(member->path, SL_STR("/control")) && member->size <= CONTROL_MAX ? SL_PACKAGE_READ
                                                                                         : SL_PACKAGE_SKIP;
}

static enum sl_package_choice add_control(void *arg, struct sl_bytes piece)
{
    struct control_reading *r = arg;
    sl_buf_add(&r->text, piece.data, piece.size);
    return SL_PACKAGE_READ;
}

static enum sl_package_choice end_control(void *arg)
{
    (void)arg;
    return SL_PACKAGE_STOP;
}

/* Returns the value of the first field "Name: value" in the text, with the name in any case; empty if there is none. */
static struct sl_str find_field(struct sl_str text, struct sl_str name)
{
    struct sl_str line;
    while (sl_str_next_line(&text, &line))
        if (line.size > name.size && line.data[name.size] == ':' &&
            sl_str_equal_nocase((struct sl_str){line.data, name.size}, name))
            return sl_str_trimmed((struct sl_str){line.data + name.size + 1, line.size - name.size - 1});
    return (struct sl_str){NULL, 0};
}

/* Sets name and version of the source package by the field `Source: name (version)`. If the field has no version, the version is the binary
 * package's; without the field the name is, too. (A rebuild of the same source adds "+b1" to the binary package's version only: then the
 * field states the version of the source.) Leaves `source` empty if the text would be too long. */
static void set_by_control(struct sl_str control, struct sl_package_source *source)
{
    struct sl_str name = find_field(control, SL_STR("Source")), version = find_field(control, SL_STR("Version"));
    if (!name.size)
        name = find_field(control, SL_STR("Package"));
    const char *open = name.size ? memchr(name.data, '(', name.size) : NULL;
    const char *close = open ? memchr(open, ')', name.size - (size_t)(open - name.data)) : NULL;
    if (close) {
        version = (struct sl_str){open + 1, (size_t)(close - open) - 1};
        name.size = (size_t)(open - name.data);
    }
    name = sl_str_trimmed(name);
    if (name.size && name.size + version.size < SL_PACKAGE_NAME - 2) /* room for the blank and the NUL */
        snprintf(source->text, sizeof source->text, SL_STR_FMT " " SL_STR_FMT, SL_STR_ARG(name), SL_STR_ARG(version));
}

void deb_source(struct sl_bytes file, struct sl_package_source *source)
{
    struct control_reading r = {0};
    struct sl_budget budget;
    struct sl_bytes control = find_member(file, SL_STR("control.tar"));
    /* the source is a hint: whatever fails here, `source` stays empty */
    sl_budget_init(&budget, control.size);
    const struct sl_package_limits limits = {.budget = &budget};
    const struct sl_package_visitor visitor = {&r, begin_control, add_control, end_control};
    struct sl_error error;
    if (control.size && archive_walk(control, 0, &visitor, &limits, &error) == SL_OK && !r.text.failed)
        set_by_control(sl_buf_view(&r.text), source);
    sl_buf_free(&r.text);
}
