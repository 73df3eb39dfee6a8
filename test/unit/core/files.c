/* Files of the service's own making: directories made on the way, names that nobody else has, and what a walk finds. */
#include "core/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"

#include "../fixture.h"

static const char *below(const char *name)
{
    static char paths[4][600];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", fixture_dir, name);
    return path;
}

static void make(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(directories_are_made_with_their_parents_and_only_once)
{
    for (int i = 0; i < 2; i++)
        assert_true(files_make_directory(below("a/b/c"), 0750, FILES_DURABLE));
    assert_true(files_make_parents(below("a/d/file"), 0750));
    assert_true(is_there(below("a/b/c")) && is_there(below("a/d")));
    assert_false(is_there(below("a/d/file")));
    make(below("file"), "");
    assert_false(files_make_directory(below("file/a/b"), 0750, FILES_UNSYNCED));
    assert_int_equal(errno, ENOTDIR);
}

TEST(temporary_files_have_unique_names)
{
    char one[600], two[600], cut[20];
    assert_int_equal(files_temp(below("tmp"), "x", 0, one, sizeof one), -1);
    assert_int_equal(errno, ENOENT);
    int fd = files_temp(below("tmp"), "x", 0750, one, sizeof one),
        other = files_temp(below("tmp"), "x", 0, two, sizeof two);
    assert_true(fd >= 0 && other >= 0);
    assert_string_not_equal(one, two);
    assert_true(is_there(one) && strstr(one, "/tmp/x"));
    close(fd);
    close(other);
    assert_int_equal(files_temp(below("tmp"), "x", 0750, cut, sizeof cut), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

TEST(publishing_makes_missing_directories)
{
    char path[600];
    for (enum files_sync sync = FILES_UNSYNCED; sync <= FILES_DURABLE; sync++) {
        int fd = files_temp(fixture_dir, "", 0, path, sizeof path);
        char to[40];
        snprintf(to, sizeof to, "%d/is/here", (int)sync);
        assert_true(files_publish(fd, path, below(to), sync));
        assert_true(is_there(below(to)) && !is_there(path));
        close(fd);
    }
    assert_false(files_publish(-1, below("missing"), below("0/is/other"), FILES_UNSYNCED));
    assert_int_equal(errno, ENOENT);
}

struct seen {
    size_t files, directories;
    char path[64]; /* of the deepest file */
    bool remove;
};

static bool see(void *arg, const struct dir_entry *entry)
{
    struct seen *seen = arg;
    if (S_ISDIR(entry->st->st_mode)) {
        seen->directories++;
        return seen->remove && entry->emptied && unlinkat(entry->at, entry->name, AT_REMOVEDIR) == 0;
    }
    seen->files++;
    if (entry->depth == 2)
        snprintf(seen->path, sizeof seen->path, "%s/%s/%s", entry->parent->parent->name, entry->parent->name,
                 entry->name);
    return seen->remove && unlinkat(entry->at, entry->name, 0) == 0;
}

TEST(directory_walk_respects_depth_and_skips_links)
{
    struct seen seen = {0};
    struct dir_walk walk = {.depth = 2, .visit = see, .arg = &seen};
    assert_true(files_make_directory(below("a/b/c"), 0750, FILES_UNSYNCED));
    make(below("a/b/file"), "x");
    make(below("a/b/c/deeper"), "x");
    assert_int_equal(symlink("a", below("link")), 0);
    assert_false(dir_walk(&walk, AT_FDCWD, fixture_dir));
    assert_int_equal(seen.files, 2); /* the link, and the file */
    assert_int_equal(seen.directories, 3);
    assert_string_equal(seen.path, "a/b/file");
    seen.remove = true;
    assert_false(dir_walk(&walk, AT_FDCWD, fixture_dir)); /* c was not entered */
    assert_true(is_there(below("a/b/c/deeper")) && !is_there(below("a/b/file")));
    walk.depth = 3;
    assert_true(dir_walk(&walk, AT_FDCWD, fixture_dir));
    assert_false(is_there(below("a")));
    assert_true(dir_walk(&walk, AT_FDCWD, below("a"))); /* what is not there is empty */
}

TEST(a_file_is_opened_again_only_if_it_is_the_same)
{
    struct timespec times[2] = {{1000, 0}, {1000, 0}};
    fixture_write("file", "abc", 3);
    int fd = open(below("file"), O_RDONLY);
    struct file_place *place = file_place_new(below("file"), fd);
    assert_non_null(place);
    futimens(fd, times);
    close(fd);
    fd = file_place_open(place);
    assert_true(fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    close(fd);
    assert_int_equal(truncate(below("file"), 2), 0);
    assert_int_equal(file_place_open(place), -1);
    assert_int_equal(errno, ESTALE);
    fixture_write("other", "abc", 3);
    assert_int_equal(rename(below("other"), below("file")), 0);
    assert_int_equal(file_place_open(place), -1);
    assert_int_equal(rename(below("file"), below("target")), 0);
    assert_int_equal(symlink("target", below("file")), 0);
    assert_int_equal(file_place_open(place), -1);
    file_place_free(place);
}

TEST(a_file_without_a_name_is_opened_again_for_reading)
{
    int fd = sl_unlinked_file(fixture_dir);
    assert_int_equal(write(fd, "abc", 3), 3);
    struct file_place *place = file_place_new_unnamed(fd);
    assert_non_null(place);
    close(fd);
    char byte;
    fd = file_place_open(place);
    assert_true(fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    assert_true(pread(fd, &byte, 1, 2) == 1 && byte == 'c');
    close(fd);
    file_place_free(place);
}

TEST(files_without_a_name_take_at_most_an_eighth_of_the_descriptors)
{
    struct rlimit files, few = {.rlim_cur = 64};
    struct file_place *places[9];
    int fd = sl_unlinked_file(fixture_dir);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    few.rlim_max = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (size_t i = 0; i < 9; i++)
        places[i] = file_place_new_unnamed(fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_non_null(places[7]);
    assert_null(places[8]);
    for (size_t i = 0; i < 9; i++)
        file_place_free(places[i]);
    places[0] = file_place_new_unnamed(fd);
    assert_non_null(places[0]);
    file_place_free(places[0]);
    close(fd);
}

TEST(change_counter_is_strictly_increasing)
{
    struct change_counter before, last = {0};
    int64_t made = 0;
    const char *path = below("generation");
    assert_int_equal(change_counter_read(path, true).ns, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(change_counter_bump(path, i % 2, &before, &made));
        assert_int_equal(before.ns, last.ns);
        assert_true(made > last.ns);
        last = change_counter_read(path, i % 3);
        assert_int_equal(last.ns, made);
    }
}

TEST_FILE(.setup = fixture_begin, .teardown = fixture_end);
