/* Names of files and of types. */
#include "mapper.h"

#include "jvm/names.h"

TEST(file_names_are_derived_from_classes)
{
    static const struct {
        const char *class, *reference, *file;
    } rows[] = {
        {"com.example.MainKt", "Other.java", "Main.kt"},
        {"com.example.MainKt", NULL, "Main.kt"},
        {"com.example.Main", "Other.kt", "Main.kt"},
        {"com.example.Main$Inner", NULL, "Main.java"},
        {"com.example.ComposableSingletons$MainKt", NULL, "Main.kt"},
        {"com.example.Foo$Kt", NULL, "Foo.java"},
        {"x.-$$Lambda$r3", NULL, "-.java"},
        {"a.B", "AndroidUi.android.kt", "B.kt"},
        {"Main", "SourceFile", "Main.java"},
        {"", NULL, ".java"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str stem, suffix;
        char text[64];
        sl_jvm_file_name(sl_str(rows[i].class), sl_str(rows[i].reference), &stem, &suffix);
        snprintf(text, sizeof text, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(stem), SL_STR_ARG(suffix));
        assert_string_equal(text, rows[i].file);
    }
}

TEST(signatures_are_made_readable)
{
    static const struct {
        const char *in, *readable, *parameters;
    } rows[] = {
        {"()V", "()", ""},
        {"([I)V", "(int[])", "int[]"},
        {"(III)V", "(int, int, int)", "int,int,int"},
        {"([[J)V", "(long[][])", "long[][]"},
        {"(I)I", "(int): int", "int"},
        {"(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;",
         "(java.lang.String, java.lang.String): java.lang.String", "java.lang.String,java.lang.String"},
        {"(Lorg/a/b/g$a;)V", "(org.slf4j.helpers.Util$X)", "org.slf4j.helpers.Util$X"},
        {"(La/b;)[La/b;", "(second.B): second.B[]", "second.B"},
        {"(ZBCSFD)V", "(boolean, byte, char, short, float, double)", "boolean,byte,char,short,float,double"},
        {"(xIx[)V", "(int)", "int"},
        {"()[V", "(): void[]", ""},
        {"", NULL, NULL},
        {"()", NULL, NULL},
        {"(L)", NULL, NULL},
        {"(L)V", NULL, NULL},
        {"()X", NULL, NULL},
        {"()La", NULL, NULL},
        {"I)V", NULL, NULL},
        {"(I", NULL, NULL},
    };
    struct made first, second;
    make_mapper("org.slf4j.helpers.Util$X -> org.a.b.g$a:\n    int a -> b\n", &first);
    make_mapper("second.Util -> org.a.b.g$a:\n    int a -> b\nsecond.B -> a.b:\n", &second);
    const struct sl_jvm_mapper *mappers[] = {&first.mapper, &second.mapper};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf readable = {0}, parameters = {0};
        sl_buf_cstr(&readable, "=");
        bool good = sl_jvm_signature(sl_str(rows[i].in), mappers, 2, &readable, &parameters);
        assert_int_equal(good, rows[i].readable != NULL);
        sl_buf_u8(&readable, '\0');
        sl_buf_u8(&parameters, '\0');
        assert_string_equal(readable.data + 1, good ? rows[i].readable : "");
        assert_string_equal(parameters.data, good ? rows[i].parameters : "");
        sl_buf_free(&readable);
        sl_buf_free(&parameters);
    }
    sl_buf_free(&first.file);
    sl_buf_free(&second.file);
}
