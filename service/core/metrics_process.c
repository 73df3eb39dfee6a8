/* The process_* metrics that every Prometheus client offers, from /proc and getrusage. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "core/metrics_impl.h"

/* Writes a metric that has one series without labels. */
static void write_one(struct sl_buf *out, bool open_metrics, const char *name, const char *type, const char *help,
                      double value)
{
    metrics_write_header(out, name, type, help, open_metrics);
    sl_buf_printf(out, "%s %.15g\n", name, value);
}

/* Returns the number of open descriptors; 0 if /proc cannot be read. */
static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count ? count - 1 : 0; /* without the descriptor that reads the directory */
}

/* Returns when this process was started, in seconds since the epoch: the boot time of the machine, plus the clock ticks from then on. 0 if
 * /proc does not tell the boot time. */
static double start_time(void)
{
    char text[1024] = "";
    unsigned long long ticks = 0, boot = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    if (file && fgets(text, sizeof text, file)) {
        /* Field 22 (starttime). Counts from the end of field 2, the command's name, which may have blanks and brackets. */
        char *at = strrchr(text, ')');
        for (int field = 2; at && field < 22; field++)
            at = strchr(at + 1, ' ');
        if (at)
            sscanf(at, " %llu", &ticks);
    }
    if (file)
        fclose(file);
    file = fopen("/proc/stat", "re");
    while (file && boot == 0 && fgets(text, sizeof text, file))
        sscanf(text, "btime %llu", &boot);
    if (file)
        fclose(file);
    return boot ? (double)boot + (double)ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* Sets the size of the address space and of its resident part, in pages; both 0 if /proc cannot be read. */
static void pages(unsigned long long *all, unsigned long long *resident)
{
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%llu %llu", all, resident) != 2)
        *all = *resident = 0;
    if (file)
        fclose(file);
}

uint64_t metrics_resident_bytes(void)
{
    unsigned long long all, resident;
    pages(&all, &resident);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void metrics_write_times(struct sl_buf *out, bool open_metrics, double cpu_seconds, double busy_seconds)
{
    write_one(out, open_metrics, "symloom_loop_busy_seconds_total", "counter", "Time the event loop was busy.",
              busy_seconds);
    write_one(out, open_metrics, "process_cpu_seconds_total", "counter", "User and system CPU time.", cpu_seconds);
}

/* Writes the process_* metrics that every Prometheus client library has, and the busy time of the loop. CPU time and busy time also go into
 * this process's store, which may be in shared memory, so that they are not lost when the process dies. */
void metrics_write_process(struct sl_buf *out, bool open_metrics)
{
    struct rusage usage;
    struct rlimit files;
    unsigned long long pages_virtual, pages_resident;
    pages(&pages_virtual, &pages_resident);
    double page = (double)sysconf(_SC_PAGESIZE);
    double cpu = getrusage(RUSAGE_SELF, &usage) != 0
                     ? 0
                     : (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    double busy = loop_busy_seconds();
    metrics_write_times(out, open_metrics, cpu, busy);
    atomic_store(&metrics_own->cpu_seconds, metric_bits(cpu));
    atomic_store(&metrics_own->busy_seconds, metric_bits(busy));
    write_one(out, open_metrics, "process_resident_memory_bytes", "gauge", "Resident memory size.",
              (double)pages_resident * page);
    write_one(out, open_metrics, "process_virtual_memory_bytes", "gauge", "Virtual memory size.",
              (double)pages_virtual * page);
    write_one(out, open_metrics, "process_open_fds", "gauge", "Open file descriptors.", open_descriptors());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        write_one(out, open_metrics, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
                  (double)files.rlim_cur);
    write_one(out, open_metrics, "process_start_time_seconds", "gauge",
              "Start time of the process, in seconds since the Unix epoch.", start_time());
}
