/* Runs a fuzz target over every file of the directories (or files) named on the command line, in a child process: an input that takes
 * too long is named, with a stack of every thread. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long run_count;
static struct watched *watched;
static char *current; /* the path of the input; shared */
enum { PATH_ROOM = 4096 };

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (data && size >= 0 && fread(data, 1, (size_t)size, file) == (size_t)size) {
        watch_step(watched, 0);
        snprintf(current, PATH_ROOM, "%s", path);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        run_count++;
    }
    free(data);
    fclose(file);
}

static void run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        run_file(path);
        return;
    }
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char child[PATH_ROOM];
        if (entry->d_name[0] != '.' && snprintf(child, sizeof child, "%s/%s", path, entry->d_name) < (int)sizeof child)
            run_path(child);
    }
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    watched = watch_new();
    current = watch_share(PATH_ROOM);
    watch_step(watched, 0);
    pid_t pid = watch_fork();
    if (pid == 0) {
        for (int i = 1; i < argc; i++)
            run_path(argv[i]);
        printf("%lu inputs replayed\n", run_count);
        exit(run_count ? 0 : 1);
    }
    int status = watch_wait(pid, watched);
    if (status != 0)
        printf("failed, with %s\n", current);
    return status != 0;
}
