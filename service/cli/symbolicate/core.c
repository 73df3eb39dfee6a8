/* `symloom symbolicate` for ELF core files. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <unistd.h>

#include "elfcore/elfcore.h"

/* Maps a smaller core with the same stacks. */
static enum sl_code map_trimmed(struct sl_bytes bytes, struct sl_mapping *trimmed, struct sl_error *error)
{
    int fd = temporary_file();
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create a temporary file");
    enum sl_code code = sl_elfcore_trim(bytes, fd, error);
    if (code == SL_OK)
        code = sl_map_fd(fd, trimmed, error);
    close(fd);
    return code;
}

static int report_core_error(enum sl_code code, const struct sl_error *error)
{
    return report_error(code == SL_MALFORMED ? STATUS_NOTHING : 1, error->message, NULL);
}

/* Writes the smaller core to the file. */
static int trim_core(const char *path, struct sl_bytes bytes)
{
    struct sl_mapping trimmed;
    struct sl_error error;
    enum sl_code code = map_trimmed(bytes, &trimmed, &error);
    if (code != SL_OK)
        return report_core_error(code, &error);
    code = output_file_put(path, trimmed.bytes, &error);
    sl_unmap(&trimmed);
    return code == SL_OK ? 0 : report_error(1, path, error.message);
}

/* Sends the service only what it needs: a core may be as large as the memory of the process. */
static int send_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    struct sl_mapping trimmed;
    struct sl_error error;
    enum sl_code code = map_trimmed(bytes, &trimmed, &error);
    if (code != SL_OK)
        return report_core_error(code, &error);
    int status = symbolicate_crash(o, project, CRASH_FILE_CORE, trimmed.bytes);
    sl_unmap(&trimmed);
    return status;
}

/* Warns about a truncated core, whose stacks may be missing. */
static void warn_missing_memory(const struct options *o, struct sl_bytes bytes)
{
    struct sl_arena arena = {0};
    struct sl_elfcore core;
    if (!option_given(o, "quiet") && sl_elfcore_read(bytes, &arena, &core, NULL) == SL_OK && core.missing)
        print_note("warning: the core file is truncated: %llu bytes of memory are missing, and stacks in them end "
                   "early; raise the size limit of core files (ulimit -c, ProcessSizeMax of systemd-coredump)\n",
                   (unsigned long long)core.missing);
    sl_arena_free(&arena);
}

int symbolicate_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    const char *path = option_value(o, "trim", NULL);
    if (path)
        return trim_core(path, bytes);
    warn_missing_memory(o, bytes);
    return option_given(o, "server") ? send_core(o, project, bytes)
                                     : symbolicate_crash(o, project, CRASH_FILE_CORE, bytes);
}
