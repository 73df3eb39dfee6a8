/* Text reports, by sections, lines and what is wrong with them. */
#include "crash.h"

static const char report[] =
    "Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940\n"
    "Hardware Model:      MacBookPro14,3\n"
    "Code Type:       X86-64 (Native)\n"
    "\n"
    "Date/Time:       2019-01-09 17:42:22 +0000\n"
    "OS Version:      Mac OS X 10.14.0 (18A391)\n"
    "Report Version:  104\n"
    "\n"
    "Exception Type:  SIGSEGV\n"
    "Exception Codes: SEGV_MAPERR at 0x88\n"
    "Crashed Thread:  5\n"
    "\n"
    "Application Specific Information:\n"
    "objc_msgSend() selector name: respondsToSelector:\n"
    "  more information here\n"
    "\n"
    "Thread 0:\n"
    "0   libsystem_kernel.dylib              0x00007fff61bc6c2a 0x7fff61bc6000 + 3114\n"
    "10  YetAnotherMac                       0x0000000108b7092b 0x10864e000 + 5384491\n"
    "13  YetanotherMac                       0x00000000000ea004 main (main.m:16)\n"
    "\n"
    "Thread 1 Crashed: Test Thread Name\n"
    "0   libsystem_kernel.dylib              0x00007fff61bc85be 0x7fff61bc6000 + 9662\n"
    "2   ???                                 0x0000000054485244 0x0 + 0\n"
    "\n"
    "Thread 1 crashed with X86-64 Thread State:\n"
    "   rip: 0x00000001090a0132    rbp: 0x0000700015a616d0    rsp: 0x0000700015a613f0    rax: 0x20261bb4775b008f \n"
    "   r15: 0x0000000000000000 rflags: 0x0000000000010206     cs: 0x000000000000002b     fs: 0x0000000000000000\n"
    "\n"
    "Binary Images:\n"
    "       0x10864e000 -        0x10ee0ffff +YetAnotherMac x86_64 (400.9.4 - 1.0.0) "
    "<2d903291397d3d14bfca52c7fb8c5e00> /Apps/YetAnotherMac\n"
    "       0x112bb2000 -        0x112dc3fff  libPhysX3PROFILE.dylib x86_64 (0.0.0 - 0.0.0) "
    "<6deccee4a0523ea4bb67957b06f53ad1> /Apps/libPhysX3PROFILE.dylib\n";

static void expect_report(void)
{
    assert_true(crash.has_timestamp);
    assert_int_equal(crash.timestamp, 1547055742);
    expect_text(crash.system.os_name, "macOS");
    expect_text(crash.system.os_version, "10.14.0");
    expect_text(crash.system.os_build, "18A391");
    expect_text(crash.system.device_model, "MacBookPro14,3");
    assert_int_equal(crash.system.arch, SL_ARCH_X86_64);
    assert_true(crash.crashed);
    expect_text(crash.reason, "SIGSEGV");
    expect_text(crash.details, "objc_msgSend() selector name: respondsToSelector:\n  more information here");
    assert_int_equal(crash.thread_count, 2);
    assert_int_equal(crash.threads[0].id, 0);
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_NO);
    expect_text(crash.threads[0].name, NULL);
    expect_addresses(&crash.threads[0], "7fff61bc6c2a 108b7092b ea004");
    expect_text(crash.threads[0].frames[2].package, "YetanotherMac");
    expect_registers(&crash.threads[0], "");
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_YES);
    expect_text(crash.threads[1].name, "Test Thread Name");
    expect_registers(&crash.threads[1], "cs=2b fs=0 r15=0 rax=20261bb4775b008f rbp=700015a616d0 rflags=10206 "
                                        "rip=1090a0132 rsp=700015a613f0");
    expect_addresses(&crash.threads[1], "7fff61bc85be 54485244");
    expect_text(crash.threads[1].frames[1].package, NULL);
    assert_int_equal(crash.module_count, 2);
    assert_int_equal(crash.format, SL_FORMAT_MACHO);
    assert_int_equal(crash.modules[0].address, 0x10864e000);
    assert_int_equal(crash.modules[0].size, 108797951);
    expect_text(crash.modules[0].code_id, "2d903291397d3d14bfca52c7fb8c5e00");
    expect_text(crash.modules[0].code_file, "/Apps/YetAnotherMac");
    expect_text(crash.modules[0].debug_file, "/Apps/YetAnotherMac");
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&crash.modules[1].debug_id, id);
    assert_string_equal(id, "6deccee4-a052-3ea4-bb67-957b06f53ad1");
    assert_int_equal(crash.modules[1].size, 2170879);
}

TEST(whole_report_is_read)
{
    expect_read(report);
    expect_report();
    expect_text(crash.threads[0].frames[2].function, NULL);
    options.names_from_report = true;
    expect_read(report);
    expect_report();
    expect_text(crash.threads[0].frames[2].function, "main");
    expect_text(crash.threads[0].frames[2].filename, "main.m");
    assert_int_equal(crash.threads[0].frames[2].line, 16);
    expect_text(crash.threads[0].frames[0].function, NULL);
}

TEST(crlf_line_ends_are_accepted)
{
    char text[2 * sizeof report];
    size_t size = 0;
    for (const char *at = report; *at; at++) {
        if (*at == '\n')
            text[size++] = '\r';
        text[size++] = *at;
    }
    text[size] = '\0';
    expect_read(text);
    expect_report();
}

/* ---- lines ---- */

#define IMAGES "\nBinary Images:\n0x10 - 0x20 a x86_64 <2d903291397d3d14bfca52c7fb8c5e00> /a\n"

TEST(times_are_converted_to_utc_seconds)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: none */
    } cases[] = {
        {"2020-03-27 18:06:51.4969 -0700", 1585357611},
        {"2019-01-09 12:44:22.075 +0000", 1547037862},
        {"2019-01-09 12:44:22 +00:30", 1547036062},
        {"1969-12-31 23:59:58 +0000", -2},
        {"2019-02-29 12:44:22 +0000", -1},
        {"2019-13-09 12:44:22 +0000", -1},
        {"2019-01-09 24:44:22 +0000", -1},
        {"2019-01-09 12:44:22", -1},
        {"2019-01-09 12:44:22 +00000", -1},
        {"2019-01-09 12:44:22 0000", -1},
        {"yesterday", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[256]; /* the crash refers to it */
        snprintf(text, sizeof text, "Date/Time: %s\n" IMAGES, cases[i].text);
        expect_read(text);
        assert_int_equal(crash.has_timestamp, cases[i].seconds != -1);
        assert_int_equal(crash.has_timestamp ? crash.timestamp : -1, cases[i].seconds);
    }
}

TEST(architectures_are_recognised)
{
    static const struct {
        const char *text;
        enum sl_arch arch;
    } cases[] = {
        {"ARM-64 (Native)", SL_ARCH_ARM64}, {"X86-64", SL_ARCH_X86_64}, {"x86-64 (Translated)", SL_ARCH_X86_64},
        {"X86 (Native)", SL_ARCH_X86},      {"i386", SL_ARCH_X86},      {"ARM (Native)", SL_ARCH_ARM},
        {"arm64e", SL_ARCH_ARM64E},         {"ppc", SL_ARCH_PPC},       {"", SL_ARCH_UNKNOWN},
        {"Z80", SL_ARCH_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[256]; /* the crash refers to it */
        snprintf(text, sizeof text, "Code Type: %s\n" IMAGES, cases[i].text);
        expect_read(text);
        assert_int_equal(crash.system.arch, cases[i].arch);
    }
}

TEST(os_version_gives_name_version_and_build)
{
    static const struct {
        const char *text, *name, *version, *build, *split_name, *split_version, *split_build;
    } cases[] = {
        {"Mac OS X 10.14.0 (18A391)", "macOS", "10.14.0", "18A391", "macOS", "10.14.0", "18A391"},
        {"Mac OS X 10.14.0", "macOS", "10.14.0", "", "macOS", "10.14.0", ""},
        {"Mac OS X 10.14.6 (18G84)", "Mac OS X 10.14.6 (18G84)", NULL, NULL, "macOS", "10.14.6", "18G84"},
        {"Mac OS X 10.14 (18A391)", "Mac OS X 10.14 (18A391)", NULL, NULL, "macOS", "10.14", "18A391"},
        {"iPhone OS 13.3.1 (17D50)", "iPhone OS 13.3.1 (17D50)", NULL, NULL, "iOS", "13.3.1", "17D50"},
        {"macOS 12.0.1 (21A559)", "macOS 12.0.1 (21A559)", NULL, NULL, "macOS", "12.0.1", "21A559"},
        {"Apple TVOS 9.2 (13Y234)", "Apple TVOS 9.2 (13Y234)", NULL, NULL, "tvOS", "9.2", "13Y234"},
        {"Watch OS 2.2 (13V144)", "Watch OS 2.2 (13V144)", NULL, NULL, "watchOS", "2.2", "13V144"},
        {"visionOS 1.0 (21N305)", "visionOS 1.0 (21N305)", NULL, NULL, "visionOS", "1.0", "21N305"},
        {"Plan 9", "Plan 9", NULL, NULL, "Plan", "9", ""},
        {"Haiku", "Haiku", NULL, NULL, "Haiku", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[256]; /* the crash refers to it */
        snprintf(text, sizeof text, "OS Version: %s\n" IMAGES, cases[i].text);
        options.split_os_version = false;
        expect_read(text);
        expect_text(crash.system.os_name, cases[i].name);
        expect_text(crash.system.os_version, cases[i].version);
        expect_text(crash.system.os_build, cases[i].build);
        options.split_os_version = true;
        expect_read(text);
        expect_text(crash.system.os_name, cases[i].split_name);
        expect_text(crash.system.os_version, cases[i].split_version);
        expect_text(crash.system.os_build, cases[i].split_build);
    }
}

TEST(thread_names_and_crashed_marks_are_read)
{
    static const struct {
        const char *lines, *name;
        enum sl_requesting_thread requesting;
    } cases[] = {
        {"Thread 0:", NULL, SL_REQUESTING_THREAD_NO},
        {"Thread 0 Crashed: Dispatch queue: q", "Dispatch queue: q", SL_REQUESTING_THREAD_YES},
        {"Thread 0 Crashed:: Dispatch queue: com.apple.main-thread", "com.apple.main-thread", SL_REQUESTING_THREAD_YES},
        {"Thread 0:: CVDisplayLink", "CVDisplayLink", SL_REQUESTING_THREAD_NO},
        {"Thread 0:: main Dispatch queue: q", "main", SL_REQUESTING_THREAD_NO},
        {"Thread 0::", NULL, SL_REQUESTING_THREAD_NO},
        {"Thread 0: first\nThread 0 name: second", "second", SL_REQUESTING_THREAD_NO},
        {"Thread 0 name:  main Dispatch queue: q\nThread 0 Crashed:", "main", SL_REQUESTING_THREAD_YES},
        {"Thread 0 name:  Dispatch queue: q\nThread 0:", "q", SL_REQUESTING_THREAD_NO},
        {"Thread 0 name: a\nThread 1 name: b\nThread 0 name: c\nThread 0:", "c", SL_REQUESTING_THREAD_NO},
        {"Thread 0 name: noDispatch queue: q\nThread 0:", "noDispatch queue: q", SL_REQUESTING_THREAD_NO},
        {"Thread 0:\n\nCrashed Thread: 0  Dispatch queue: q", NULL, SL_REQUESTING_THREAD_YES},
        {"Triggered by Thread: 0, Dispatch Queue: q\nThread 0:", NULL, SL_REQUESTING_THREAD_YES},
        {"Crashed Thread: 1\nThread 0:", NULL, SL_REQUESTING_THREAD_NO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_read(cases[i].lines);
        assert_int_equal(crash.thread_count, 1);
        assert_int_equal(crash.threads[0].id, 0);
        expect_text(crash.threads[0].name, cases[i].name);
        assert_int_equal(crash.threads[0].requesting, cases[i].requesting);
    }
}

TEST(frame_lines_are_split_into_fields)
{
    static const struct {
        const char *line, *package, *function, *filename;
        uint64_t address;
        uint32_t number;
    } cases[] = {
        {"12  YetAnotherMac 0x10 -[A unscrambleSignature:] + 285", "YetAnotherMac", "-[A unscrambleSignature:]", NULL,
         0x10, 0},
        {"0 App Namespace 0x10 main (a.m:3)", "App Namespace", "main", "a.m", 0x10, 3},
        {"0\tApp\t0x10\t0x1000 + 35 (file.swift:12)", "App", NULL, "file.swift", 0x10, 12},
        {"0 App 0x10 main + 8 (a.m:3)", "App", "main", "a.m", 0x10, 3},
        {"0 App 0x10 main + 8 (a.m:3) [inlined]", "App", "main", "a.m", 0x10, 3},
        {"0 App 0x10 thunk + 8 (<compiler-generated>:0)", "App", "thunk", NULL, 0x10, 0},
        {"0 ??? 0x10 ???", NULL, NULL, NULL, 0x10, 0},
        {"0 App 0x10", "App", NULL, NULL, 0x10, 0},
        {"0 App 0x10 0x20", "App", NULL, NULL, 0x10, 0},
        {"0 ??? 0x10 0x0 + 16", NULL, NULL, NULL, 0x10, 0},
        {"0 0xApp 0x10 f", "0xApp", "f", NULL, 0x10, 0},
        {"0 App 0x10 f (b) (a.m:4294967296)", "App", "f (b)", "a.m", 0x10, 0},
        {"0 App 0x10 f(int)", "App", "f(int)", NULL, 0x10, 0},
        {"0 App 0x10 + 7", "App", "+ 7", NULL, 0x10, 0},
    };
    options.names_from_report = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[256]; /* the crash refers to it */
        snprintf(text, sizeof text, "Thread 0:\n%s\n", cases[i].line);
        expect_read(text);
        assert_int_equal(crash.threads[0].frame_count, 1);
        const struct sl_crash_frame *frame = crash.threads[0].frames;
        assert_int_equal(frame->address, cases[i].address);
        expect_text(frame->package, cases[i].package);
        expect_text(frame->function, cases[i].function);
        expect_text(frame->filename, cases[i].filename);
        assert_int_equal(frame->line, cases[i].number);
    }
}

#define UUID "<2d903291397d3d14bfca52c7fb8c5e00>"

TEST(image_lines_are_recognised)
{
    static const struct {
        const char *line, *file; /* NULL: it is none */
    } cases[] = {
        {"0x10 - 0x20 App Namespace arm64  " UUID " /private/x", "/private/x"},
        {"0x10 - 0x20 com.example.foo (1.0) " UUID " /path", "/path"},
        {"0x10 - 0x20 +com.example.foo (1.0 - ?\?\?) " UUID " /path with blanks", "/path with blanks"},
        {"0x10 - 0x20 libfoo.dylib (*) <2D903291-397D-3D14-BFCA-52C7FB8C5E00> /usr/lib/libfoo.dylib",
         "/usr/lib/libfoo.dylib"},
        {"0x10-0x20\t*My App arm64 (?\?\?)\t" UUID "\t/x", "/x"},
        {"0x10 - 0x20 My App arm64 (1) " UUID, "My App"},
        {"0x10 - 0x20 My App " UUID, "My App"},
        {"0x10 - 0x20 a<b> x86_64 " UUID " /a <b>/c", "/a <b>/c"},
        {"0x10 - 0x20 a x86_64 " UUID "/a", NULL},
        {"0x10 - 0x20 a x86_64 /a", NULL},
        {"0x10 - 0x20 a x86_64 <2d903291397d3d14bfca52c7fb8c5e> /a", NULL},
        {"0x10 - 0x20 a x86_64 <2d903291397d3d14bfca52c7fb8c5e000> /a", NULL},
        {"0x10 - 0x20 a x86_64 <418E89C3-1> /a", NULL},
        {"0x2 - 0x1 a x86_64 " UUID " /a", NULL},
        {"0x1 - 0x10000000000000000 a x86_64 " UUID " /a", NULL},
        {"0x0 - 0xffffffffffffffff ??? (*) <00000000-0000-0000-0000-000000000000> ???", NULL},
        {"0x10 a x86_64 " UUID " /a", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[256]; /* the crash refers to it */
        snprintf(text, sizeof text, "Binary Images:\n%s\n0x30 - 0x30 last x86_64  " UUID " /last\n", cases[i].line);
        expect_read(text);
        assert_int_equal(crash.module_count, cases[i].file ? 2 : 1);
        if (cases[i].file) {
            expect_text(crash.modules[0].code_file, cases[i].file);
            assert_int_equal(crash.modules[0].address, 0x10);
            assert_int_equal(crash.modules[0].size, 0x10);
        }
        expect_text(crash.modules[crash.module_count - 1].code_file, "/last");
        assert_int_equal(crash.modules[crash.module_count - 1].size, 0);
    }
}

TEST(registers_are_read_for_the_crashed_thread)
{
    expect_read("Thread 1 Crashed:\nThread 2 Crashed:\n"
                "Thread 1 crashed with ARM Thread State (64-bit):\n"
                "    x0: 0x0000000000000028   x1:\t0xa cpsr: 0x20 Status: 0x1 y:0x2 far: 3 x: z: 0x4\n"
                "   big: 0x10000000000000000 esr: 0x5 (Data Abort) byte: 0x6\n\n"
                "lr: 0x1\n"
                "Thread 2 crashed with X86 Thread State (32-bit):\n"
                "    x1: 0xb\n");
    expect_registers(&crash.threads[0], "byte=6 cpsr=20 esr=5 tatus=1 x0=28 x1=b z=4");
    expect_registers(&crash.threads[1], "");
    expect_read("Thread 1:\nThread 1 crashed with ARM Thread State:\n x0: 0x1\n");
    expect_registers(&crash.threads[0], "");
}

/* ---- sections ---- */

TEST(frames_end_at_the_first_other_line)
{
    expect_read("Thread 0:\n0 a 0x1 b\n\n1 a 0x2 b\nThread 1:\n0 a 0x3 b\nnonsense\n1 a 0x4 b\n"
                "Thread 2:\n0 a 0x5 b\nThread 2 name: x\n1 a 0x6 b\n");
    assert_int_equal(crash.thread_count, 3);
    expect_addresses(&crash.threads[0], "1");
    expect_addresses(&crash.threads[1], "3");
    expect_addresses(&crash.threads[2], "5");
}

TEST(image_list_ends_at_a_blank_line)
{
    expect_read("Binary Images\n\nnonsense\n0x10 - 0x20 a x86_64  " UUID " /a\nnonsense\n\n"
                "0x20 - 0x30 a x86_64  " UUID " /b\n\nOS Version: x\n0x30 - 0x40 a x86_64  " UUID " /c\n");
    assert_int_equal(crash.module_count, 2);
    expect_text(crash.system.os_name, "x");
}

TEST(application_specific_information_is_read)
{
    static const struct {
        const char *lines, *details;
    } cases[] = {
        {"Application Specific Information: lost\n\n\na: b\n\n c\n\nThread 0:", "a: b\n\n c"},
        {"Application Specific Information:\na\nApplication Specific Backtrace 1:\n0 a 0x1 b", "a"},
        {"Application Specific Information:\na\nApplication Specific Signatures:\nb", "a"},
        {"Application Specific Information:\na\nKernel Triage:\nb", "a"},
        {"Application Specific Information:\na\nVM Region Info: b\nc", "a"},
        {"Application Specific Information:\na\nFiltered syslog:\nnone", "a"},
        {"Application Specific Information:\n\nException Codes: x", "Exception Codes: x"},
        {"Exception Message: m\nException Subtype: s\nException Codes: c", "m"},
        {"Exception Subtype: s\nException Codes: c", "s"},
        {"Exception Codes: b\nException Codes: c", "c"},
        {"Exception Message:\n  Exception Codes  :  c", "c"},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[512];
        snprintf(text, sizeof text, "%s\n" IMAGES, cases[i].lines);
        expect_read(text);
        expect_text(crash.details, cases[i].details);
    }
}

TEST(function_addresses_are_derived_from_offsets)
{
    options.names_from_report = true;
    expect_read(
        "Thread 0:\n0 App 0x1010 f + 16\n1 App 0x1010 f + 99999 (a.m:3)\n2 App 0x1010 0x1000 + 16\n3 App 0x1010 g\n");
    const uint64_t wanted[] = {0x1000, 0, 0, 0};
    assert_int_equal(crash.threads[0].frame_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sl_crash_symbol_address(&crash.threads[0].frames[i]), wanted[i]);
    options.names_from_report = false;
    expect_read("Thread 0:\n0 App 0x1010 f + 16\n");
    assert_int_equal(sl_crash_symbol_address(&crash.threads[0].frames[0]), 0);
}

TEST(all_causes_are_listed)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"Exception Codes: KERN_INVALID_ADDRESS at 0x10\nException Codes: 0x1, 0x10\nTermination Reason: Namespace "
         "SIGNAL, Code 11 Segmentation fault: 11\n",
         "KERN_INVALID_ADDRESS at 0x10"},
        {"Exception Codes: 0x0, 0x0\nTermination Reason: FRONTBOARD 2343432205 \n<RBSTerminateContext| domain:10 "
         "code:0x8BADF00D>\nTriggered by Thread:  0\n",
         "FRONTBOARD 2343432205 (0x8BADF00D): <RBSTerminateContext| domain:10 code:0x8BADF00D>"},
        {"Exception Subtype: KERN_PROTECTION_FAILURE at 0x20\nException Codes: 0x2, 0x20\nTermination Reason: "
         "Namespace "
         "CODESIGNING, Code 2 Invalid Page\n",
         "KERN_PROTECTION_FAILURE at 0x20\nCODESIGNING 2 Invalid Page"},
        {"Termination Reason: Namespace SPRINGBOARD, Code 0x8badf00d\nTermination Description: SPRINGBOARD, "
         "<RBSTerminateContext| x>\n",
         "SPRINGBOARD 0x8badf00d: <RBSTerminateContext| x>"},
        {"Exception Codes: 0x0000000000000000, 0x0\nTermination Reason: Namespace SIGNAL, Code 9 Killed: 9\n",
         "SIGNAL 9 Killed: 9"},
        {"Exception Codes: 0x1, 0x10\n", "0x1, 0x10"},
        {"Exception Message: m\nException Codes: 0x1, 0x10\n\nApplication Specific Information:\nabort() "
         "called\nmore\n",
         "abort() called\nmore\nm"},
        {"Exception Type: SIGSEGV\n", NULL},
        {"Termination Reason: \n<x>\n", "<x>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[1024]; /* the crash refers to it */
        snprintf(text, sizeof text, "%s\nThread 0:\n0 App 0x10 f\n", cases[i].text);
        options.all_causes = true;
        expect_read(text);
        expect_text(crash.details, cases[i].wanted);
    }
    options.all_causes = false;
    expect_read("Exception Codes: KERN_INVALID_ADDRESS at 0x10\nException Codes: 0x1, 0x10\nThread 0:\n0 App 0x10 f\n");
    expect_text(crash.details, "KERN_INVALID_ADDRESS at 0x10");
    expect_read("Exception Codes: 0x0\nTermination Reason: FRONTBOARD 1\nThread 0:\n0 App 0x10 f\n");
    expect_text(crash.details, "0x0");
}

TEST(reports_are_told_from_other_texts)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"Thread 0:\n0   App 0x10 0x0 + 16\n", true},
        {"Thread 0 Crashed:: main\r\n0   App 0x10 0x0 + 16\r\n", true},
        {"Hardware Model: iPhone1,1\n\nBinary Images:\n", true},
        {"Thread 1:\nnothing of the kind\n", false},
        {"0   App 0x10 0x0 + 16\n", false},
        {"Error: x\n    at f (a.js:1:2)\n", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sl_apple_is_text(sl_str(cases[i].text)), cases[i].is);
}

TEST(last_exception_backtrace_becomes_a_thread)
{
    expect_read("Last Exception Backtrace:\n0 a 0x1 b\n1 a 0x2 b\n\nThread 0 Crashed:\n0 a 0x3 b\n");
    assert_int_equal(crash.thread_count, 2);
    expect_addresses(&crash.threads[0], "3");
    assert_false(crash.threads[1].has_id);
    expect_text(crash.threads[1].name, "Last Exception Backtrace");
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_NO);
    expect_addresses(&crash.threads[1], "1 2");
    expect_read("Last Exception Backtrace:\n(0x1 0x2\n0x10000000000000000 0x3)\n0 a 0x4 b\nThread 0:\n(0x1)\n");
    expect_addresses(&crash.threads[0], "");
    expect_addresses(&crash.threads[1], "1 2 3 4");
}

/* ---- what is wrong ---- */

TEST(malformed_element_leaves_the_rest_readable)
{
    expect_read("Incident Identifier: none\nReport Version: 4294967296\nDate/Time: never\n"
                "Thread 18446744073709551616:\n0 a 0x1 b\n\n"
                "Thread 0 Crashed:\n0 a 0x10000000000000000 b\n1 a 0x2 b (c.m:4294967296)\n\n"
                "Thread 0 crashed with X86-64 Thread State:\nrip: 0x10000000000000000 rsp: 0x1\n\n"
                "Binary Images:\n0x2 - 0x1 a x86_64 " UUID " /a\n0x1 - 0x2 a x86_64  " UUID " /b\n");
    assert_int_equal(crash.thread_count, 1);
    expect_addresses(&crash.threads[0], "2");
    expect_registers(&crash.threads[0], "rsp=1");
    assert_int_equal(crash.module_count, 1);
    assert_false(crash.has_timestamp);
}

TEST(invalid_utf8_is_replaced)
{
    expect_read("\xEF\xBB\xBF \nHardware Model: a\xFF\nThread 0: b\xC3\n");
    expect_text(crash.system.device_model, "a\xEF\xBF\xBD");
    expect_text(crash.threads[0].name, "b\xEF\xBF\xBD");
}

TEST(other_texts_are_malformed)
{
    static const char *const texts[] = {"", "random text\n", "OS Version: x\n", "{\"a\":1}", "[1]", "{", "MDMP"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_failure(texts[i], SL_MALFORMED, "the crash report has neither a thread nor an image");
}

TEST(exhausted_memory_is_not_reported_as_malformed)
{
    for (size_t limit = 1; limit < 4096; limit += 128) {
        struct sl_arena small;
        struct sl_error error = {0};
        sl_arena_init(&small, limit);
        enum sl_code code = sl_apple_read((struct sl_bytes){(const uint8_t *)report, sizeof report - 1}, &options,
                                          &small, &crash, &error);
        assert_int_equal(code, SL_BUSY);
        sl_arena_free(&small);
    }
}

TEST_FILE(.teardown = forget);
