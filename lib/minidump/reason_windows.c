/* Names of Windows' exception codes: winnt.h, winerror.h, ntstatus.h. */
#include "minidump/impl.h"

#include "base/search.h"

#include <stdio.h>

enum {
    ACCESS_VIOLATION = 0xC0000005,
    IN_PAGE_ERROR = 0xC0000006,
    STACK_BUFFER_OVERRUN = 0xC0000409,
    FACILITY_VISUALCPP = 109,
};

static const struct dump_name exceptions[] = {
    {0x80000001, "EXCEPTION_GUARD_PAGE"},
    {0x80000002, "EXCEPTION_DATATYPE_MISALIGNMENT"},
    {0x80000003, "EXCEPTION_BREAKPOINT"},
    {0x80000004, "EXCEPTION_SINGLE_STEP"},
    {ACCESS_VIOLATION, "EXCEPTION_ACCESS_VIOLATION"},
    {IN_PAGE_ERROR, "EXCEPTION_IN_PAGE_ERROR"},
    {0xC0000008, "EXCEPTION_INVALID_HANDLE"},
    {0xC000001D, "EXCEPTION_ILLEGAL_INSTRUCTION"},
    {0xC0000025, "EXCEPTION_NONCONTINUABLE_EXCEPTION"},
    {0xC0000026, "EXCEPTION_INVALID_DISPOSITION"},
    {0xC000008C, "EXCEPTION_BOUNDS_EXCEEDED"},
    {0xC000008D, "EXCEPTION_FLT_DENORMAL_OPERAND"},
    {0xC000008E, "EXCEPTION_FLT_DIVIDE_BY_ZERO"},
    {0xC000008F, "EXCEPTION_FLT_INEXACT_RESULT"},
    {0xC0000090, "EXCEPTION_FLT_INVALID_OPERATION"},
    {0xC0000091, "EXCEPTION_FLT_OVERFLOW"},
    {0xC0000092, "EXCEPTION_FLT_STACK_CHECK"},
    {0xC0000093, "EXCEPTION_FLT_UNDERFLOW"},
    {0xC0000094, "EXCEPTION_INT_DIVIDE_BY_ZERO"},
    {0xC0000095, "EXCEPTION_INT_OVERFLOW"},
    {0xC0000096, "EXCEPTION_PRIV_INSTRUCTION"},
    {0xC00000FD, "EXCEPTION_STACK_OVERFLOW"},
    {0xC0000194, "EXCEPTION_POSSIBLE_DEADLOCK"},
    {0xE0000008, "Out of Memory"},
    {0xE06D7363, "Unhandled C++ Exception"},
    {0xE0434352, "MANAGED_EXCEPTION_CODE_V4"},
    {0x0517A7ED, "Simulated Exception"},
    {0, NULL},
};

static const struct dump_name win32_names[] = {
#include "minidump/win32_names.inc"
};

static const struct dump_name status_names[] = {
#include "minidump/ntstatus_names.inc"
};

static const struct dump_name fast_fails[] = {
    {0, "LEGACY_GS_VIOLATION"},
    {1, "VTGUARD_CHECK_FAILURE"},
    {2, "STACK_COOKIE_CHECK_FAILURE"},
    {3, "CORRUPT_LIST_ENTRY"},
    {4, "INCORRECT_STACK"},
    {5, "INVALID_ARG"},
    {6, "GS_COOKIE_INIT"},
    {7, "FATAL_APP_EXIT"},
    {8, "RANGE_CHECK_FAILURE"},
    {9, "UNSAFE_REGISTRY_ACCESS"},
    {10, "GUARD_ICALL_CHECK_FAILURE"},
    {11, "GUARD_WRITE_CHECK_FAILURE"},
    {12, "INVALID_FIBER_SWITCH"},
    {13, "INVALID_SET_OF_CONTEXT"},
    {14, "INVALID_REFERENCE_COUNT"},
    {18, "INVALID_JUMP_BUFFER"},
    {19, "MRDATA_MODIFIED"},
    {20, "CERTIFICATION_FAILURE"},
    {21, "INVALID_EXCEPTION_CHAIN"},
    {22, "CRYPTO_LIBRARY"},
    {23, "INVALID_CALL_IN_DLL_CALLOUT"},
    {24, "INVALID_IMAGE_BASE"},
    {25, "DLOAD_PROTECTION_FAILURE"},
    {26, "UNSAFE_EXTENSION_CALL"},
    {27, "DEPRECATED_SERVICE_INVOKED"},
    {28, "INVALID_BUFFER_ACCESS"},
    {29, "INVALID_BALANCED_TREE"},
    {30, "INVALID_NEXT_THREAD"},
    {31, "GUARD_ICALL_CHECK_SUPPRESSED"},
    {32, "APCS_DISABLED"},
    {33, "INVALID_IDLE_STATE"},
    {34, "MRDATA_PROTECTION_FAILURE"},
    {35, "UNEXPECTED_HEAP_EXCEPTION"},
    {36, "INVALID_LOCK_STATE"},
    {37, "GUARD_JUMPTABLE"},
    {38, "INVALID_LONGJUMP_TARGET"},
    {39, "INVALID_DISPATCH_CONTEXT"},
    {40, "INVALID_THREAD"},
    {41, "INVALID_SYSCALL_NUMBER"},
    {42, "INVALID_FILE_OPERATION"},
    {43, "LPAC_ACCESS_DENIED"},
    {44, "GUARD_SS_FAILURE"},
    {45, "LOADER_CONTINUITY_FAILURE"},
    {46, "GUARD_EXPORT_SUPPRESSION_FAILURE"},
    {47, "INVALID_CONTROL_STACK"},
    {48, "SET_CONTEXT_DENIED"},
    {49, "INVALID_IAT"},
    {50, "HEAP_METADATA_CORRUPTION"},
    {51, "PAYLOAD_RESTRICTION_VIOLATION"},
    {52, "LOW_LABEL_ACCESS_DENIED"},
    {53, "ENCLAVE_CALL_FAILURE"},
    {54, "UNHANDLED_LSS_EXCEPTON"},
    {55, "ADMINLESS_ACCESS_DENIED"},
    {56, "UNEXPECTED_CALL"},
    {57, "CONTROL_INVALID_RETURN_ADDRESS"},
    {58, "UNEXPECTED_HOST_BEHAVIOR"},
    {59, "FLAGS_CORRUPTION"},
    {60, "VEH_CORRUPTION"},
    {61, "ETW_CORRUPTION"},
    {62, "RIO_ABORT"},
    {63, "INVALID_PFN"},
    {64, "GUARD_ICALL_CHECK_FAILURE_XFG"},
    {65, "CAST_GUARD"},
    {66, "HOST_VISIBILITY_CHANGE"},
    {67, "KERNEL_CET_SHADOW_STACK_ASSIST"},
    {68, "PATCH_CALLBACK_FAILED"},
    {69, "NTDLL_PATCH_FAILED"},
    {70, "INVALID_FLS_DATA"},
    {71, "ASAN_ERROR"},
    {72, "CLR_EXCEPTION_AOT"},
    {73, "POINTER_AUTH_INVALID_RETURN_ADDRESS"},
    {74, "INVALID_THREAD_STATE"},
    {75, "CORRUPT_WOW64_STATE"},
    {76, "INVALID_EXTENDED_STATE"},
    {0, NULL},
};

/* Looks up a number in a table sorted by number; NULL if it is not there. */
static const char *windows_name(const struct dump_name *names, size_t count, uint32_t number)
{
    size_t low = SL_PARTITION_POINT(middle, 0, count, names[middle].number < number);
    return low < count && names[low].number == number ? names[low].name : NULL;
}

static const char *win32_name(uint32_t number)
{
    return windows_name(win32_names, sizeof win32_names / sizeof *win32_names, number);
}

static const char *status_name(uint32_t number)
{
    return windows_name(status_names, sizeof status_names / sizeof *status_names, number);
}

static const char *access_kind(uint64_t access)
{
    static const struct dump_name kinds[] = {{0, "READ"}, {1, "WRITE"}, {8, "EXEC"}, {0, NULL}};
    return dump_find_name(kinds, access);
}

/* Returns `text`, " / ", and then a name, which is `prefix` and `name` joined; the number if `name` is NULL. */
static struct sl_str name_or_number(struct dump_reader *d, const char *text, const char *prefix, const char *name,
                                    uint64_t number)
{
    return name ? dump_printf(d, "%s / %s%s", text, prefix, name)
                : dump_printf(d, "%s / 0x%08llx", text, (unsigned long long)number);
}

/* Describes exceptions whose parameters say more: the kind of access, the status of a failed read, the cause of a fast fail. Data NULL for
 * any other exception. */
static struct sl_str describe_exception(struct dump_reader *d, const struct dump_exception *exception)
{
    const char *kind = exception->parameter_count >= 1 ? access_kind(exception->parameters[0]) : NULL;
    char text[40];
    if (exception->code == ACCESS_VIOLATION && kind)
        return dump_printf(d, "EXCEPTION_ACCESS_VIOLATION_%s", kind);
    if (exception->code == IN_PAGE_ERROR && exception->parameter_count >= 3 && kind) {
        uint32_t status = (uint32_t)exception->parameters[2];
        snprintf(text, sizeof text, "EXCEPTION_IN_PAGE_ERROR_%s", kind);
        return name_or_number(d, text, "", status_name(status), status);
    }
    if (exception->code == STACK_BUFFER_OVERRUN && exception->parameter_count >= 1)
        return name_or_number(d, "EXCEPTION_STACK_BUFFER_OVERRUN", "FAST_FAIL_",
                              dump_find_name(fast_fails, exception->parameters[0]), exception->parameters[0]);
    return (struct sl_str){NULL, 0};
}

/* Returns the text of an exception: its name, with what its parameters say. A code that is no exception is named like a GetLastError(). */
struct sl_str dump_windows_reason(struct dump_reader *d, const struct dump_exception *exception)
{
    struct sl_str text = describe_exception(d, exception);
    const char *name = dump_find_name(exceptions, exception->code);
    if (text.data)
        return text;
    return name ? sl_str(name) : dump_windows_error(d, exception->code);
}

/* Returns the name of an error (winerror.h) or status (ntstatus.h), or of the error that Visual C++ has wrapped into a code of its own
 * facility. Numbers without a name are shown in hexadecimal. */
struct sl_str dump_windows_error(struct dump_reader *d, uint32_t code)
{
    const char *name = win32_name(code);
    name = name ? name : status_name(code);
    if (name)
        return sl_str(name);
    /* severity (upper 4 bits), facility (12 bits), error (16 bits) */
    if (code >> 28 && (code >> 16 & 0xFFF) == FACILITY_VISUALCPP && (name = win32_name(code & 0xFFFF)))
        return dump_printf(d, "FACILITY_VISUALCPP / %s", name);
    return dump_printf(d, "unknown 0x%08x", code);
}
