#include "core/build.h"

#include "commit.h"

const char *build_commit(void)
{
    return COMMIT;
}
