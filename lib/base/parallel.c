#include "base/parallel.h"

void sl_parallel_run(const struct sl_parallel *parallel, size_t count,
                     void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    if (sl_parallel_workers(parallel) > 1 && count > 1) {
        parallel->run(parallel, count, work, arg);
        return;
    }
    for (size_t i = 0; i < count; i++)
        work(arg, i, 0);
}
