/* The operating system and the processor, from the SystemInfo stream. */
#include "minidump/impl.h"

/* `platform` is VER_PLATFORM_* of Windows; numbers from 0x8101 are Breakpad's MD_OS_*. */
static const struct {
    uint32_t platform;
    enum sl_minidump_os os;
    enum sl_format format;
    struct sl_str name;
} systems[] = {
    {2, SL_MINIDUMP_WINDOWS, SL_FORMAT_PE, SL_STR("Windows")},
    {3, SL_MINIDUMP_WINDOWS, SL_FORMAT_PE, SL_STR("Windows")},
    {0x8101, SL_MINIDUMP_MACOS, SL_FORMAT_MACHO, SL_STR("macOS")},
    {0x8102, SL_MINIDUMP_IOS, SL_FORMAT_MACHO, SL_STR("iOS")},
    {0x8201, SL_MINIDUMP_LINUX, SL_FORMAT_ELF, SL_STR("Linux")},
    {0x8202, SL_MINIDUMP_SOLARIS, SL_FORMAT_ELF, SL_STR("Solaris")},
    {0x8203, SL_MINIDUMP_ANDROID, SL_FORMAT_ELF, SL_STR("Android")},
    {0x8204, SL_MINIDUMP_PS3, SL_FORMAT_UNKNOWN, SL_STR("PS3")},
    {0x8205, SL_MINIDUMP_NACL, SL_FORMAT_UNKNOWN, SL_STR("NaCl")},
};

/* `cpu` is PROCESSOR_ARCHITECTURE_* of Windows; numbers from 0x8001 are Breakpad's MD_CPU_ARCHITECTURE_*. */
static const struct {
    uint16_t cpu;
    enum sl_arch arch;
} processors[] = {
    {0, SL_ARCH_X86},        {10, SL_ARCH_X86},        {9, SL_ARCH_X86_64},     {3, SL_ARCH_PPC},
    {0x8002, SL_ARCH_PPC64}, {5, SL_ARCH_ARM},         {12, SL_ARCH_ARM64},     {0x8003, SL_ARCH_ARM64},
    {1, SL_ARCH_MIPS},       {0x8004, SL_ARCH_MIPS64}, {0x8005, SL_ARCH_RISCV}, {0x8006, SL_ARCH_RISCV64},
};

enum { SPARC = 0x8001 };

/* Sets the operating system, the format of its executables and its name. If the platform is unknown, the name is empty; system and format
 * stay as they were (0: other, unknown). */
static void name_system(struct sl_minidump *dump, uint32_t platform)
{
    dump->crash.system.os_name = SL_STR("");
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (systems[i].platform == platform) {
            dump->os = systems[i].os;
            dump->crash.format = systems[i].format;
            dump->crash.system.os_name = systems[i].name;
        }
}

/* Processors of Windows' and Breakpad's lists whose contexts are not supported. */
static const struct dump_name unread_processors[] = {
    {2, "Alpha"},
    {6, "Itanium"},
    {7, "Alpha 64"},
    {0, NULL},
};

/* Sets the architecture of the dump's processor. If its registers cannot be read, sets `unread_processor` to the processor's name. */
static void name_processor(struct sl_minidump *dump)
{
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
        if (processors[i].cpu == dump->cpu)
            dump->crash.system.arch = processors[i].arch;
    dump->family = sl_arch_family(dump->crash.system.arch);
    /* contexts of 32-bit SPARC can be shown, although its family is not one whose stacks can be walked */
    bool is_known = dump->family != SL_CPU_UNKNOWN || dump->cpu == SPARC;
    if (!is_known && !(dump->unread_processor = dump_find_name(unread_processors, dump->cpu)))
        dump->unread_processor = "unknown";
}

/* Moves the text before the next blank from `*rest` to `*word` and drops the blank. The last word leaves `rest->data` NULL; the call after
 * it returns false. */
static bool take_word(struct sl_str *rest, struct sl_str *word)
{
    if (!rest->data)
        return false;
    const char *blank = rest->size ? memchr(rest->data, ' ', rest->size) : NULL;
    size_t size = blank ? (size_t)(blank - rest->data) : rest->size;
    *word = (struct sl_str){rest->data, size};
    *rest = blank ? (struct sl_str){blank + 1, rest->size - size - 1} : (struct sl_str){NULL, 0};
    return true;
}

/* Returns the text before the last blank; empty if there is none. */
static struct sl_str without_last_word(struct sl_str text)
{
    const char *blank = text.size ? memrchr(text.data, ' ', text.size) : NULL;
    return blank ? (struct sl_str){text.data, (size_t)(blank - text.data)} : (struct sl_str){"", 0};
}

/* Splits uname(1) output, which Breakpad stores in place of the service pack: "Linux <version> <build> x86_64", perhaps with " Linux/GNU"
 * behind it. The version 0.0.0 means unknown: then `system` is not changed. */
static void split_uname(struct sl_str uname, struct sl_crash_system *system)
{
    struct sl_str rest = uname, word, last;
    /* the first word is "Linux", the second the version */
    if (!take_word(&rest, &word) || !take_word(&rest, &word) || !word.size || sl_str_equal(word, SL_STR("0.0.0")))
        return;
    system->os_version = word;
    rest = rest.data ? rest : (struct sl_str){"", 0}; /* NULL: nothing follows the version */
    struct sl_str build = without_last_word(rest);    /* drops the machine, or Linux/GNU */
    last = (struct sl_str){rest.data + build.size, rest.size - build.size};
    if (sl_str_equal(sl_str_trimmed(last), SL_STR("Linux/GNU")))
        build = without_last_word(build); /* the machine in front of it */
    system->os_build = build;
}

/* Returns a text such as "GenuineIntel family 6 model 13 stepping 8", made of the values of CPUID leaves 0 and 1. `level` is the family,
 * `revision` has the model and the stepping in its two bytes. The vendor ends at its first character that is not printable; for amd64
 * there is none. */
static struct sl_str describe_processor(struct dump_reader *d, struct sl_bytes vendor, unsigned level,
                                        unsigned revision)
{
    size_t size = 0;
    bool has_vendor = d->dump->family == SL_CPU_X86; /* for other processors these bytes are feature flags */
    while (has_vendor && size < vendor.size && vendor.data[size] > ' ' && vendor.data[size] < 0x7F)
        size++;
    return dump_printf(d, "%.*s%sfamily %u model %u stepping %u", (int)size, (const char *)vendor.data, size ? " " : "",
                       level, revision >> 8, revision & 0xFF);
}

/* Reads the SystemInfo stream. Its text is the service pack on Windows and the build on Apple's systems. On Linux the three numbers of the
 * version are 0 and the text is the output of uname(1), which is split. False if the stream is missing or too short. */
bool dump_read_system(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_crash_system *system = &dump->crash.system;
    struct sl_reader r = dump_stream_reader(dump, STREAM_SYSTEM_INFO);
    dump->cpu = sl_read_u16(&r);
    uint16_t level = sl_read_u16(&r), revision = sl_read_u16(&r);
    dump->cpu_count = sl_read_u8(&r);
    sl_reader_skip(&r, 1); /* product */
    uint32_t major = sl_read_u32(&r), minor = sl_read_u32(&r), build = sl_read_u32(&r);
    uint32_t platform = dump->platform = sl_read_u32(&r), text = sl_read_u32(&r);
    sl_reader_skip(&r, 4); /* suite */
    struct sl_bytes vendor = sl_read_bytes(&r, 12);
    sl_reader_skip(&r, 12); /* processor features */
    if (r.failed)
        return false;
    name_system(dump, platform);
    name_processor(dump);
    struct sl_str service_pack = dump_string(d, text);
    service_pack = sl_str_trimmed(service_pack.data ? service_pack : SL_STR(""));
    system->os_version = dump_printf(d, "%u.%u.%u", major, minor, build);
    dump->os_text = dump_printf(d, "%u.%u.%u " SL_STR_FMT, major, minor, build, SL_STR_ARG(service_pack));
    dump->cpu_text = SL_STR("");
    if (dump->family == SL_CPU_X86 || dump->family == SL_CPU_X86_64)
        dump->cpu_text = describe_processor(d, vendor, level, revision);
    system->os_build = service_pack;
    system->device_model = SL_STR("");
    if (dump->os == SL_MINIDUMP_LINUX && !major && !minor && !build)
        split_uname(service_pack, system);
    return true;
}
