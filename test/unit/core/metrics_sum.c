#include "core/metrics_sum.h"

#include "../check.h"

static void expect(const struct sl_str *texts, size_t count, const char *sum)
{
    struct sl_buf out = {0};
    assert_true(metrics_sum(texts, count, &out));
    sl_buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, sum);
    sl_buf_free(&out);
}

TEST(counters_are_summed_over_processes)
{
    const struct sl_str texts[] = {
        SL_STR("# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 3\na_total{x=\"a b\"} 0.5\n"
               "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1.25\nh_count 2\n"),
        SL_STR("# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"2\"} 7\na_total{x=\"1\"} 4\n"
               "# HELP g G.\n# TYPE g gauge\ng 1\n"
               "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 0.5\nh_count 1\n"),
    };
    expect(texts, 2,
           "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 7\na_total{x=\"a b\"} 0.5\na_total{x=\"2\"} 7\n"
           "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 1.75\nh_count 3\n"
           "# HELP g G.\n# TYPE g gauge\ng 1\n");
}

TEST(state_gauges_take_the_worst_value)
{
    const struct sl_str texts[] = {
        SL_STR("# TYPE symloom_ready gauge\nsymloom_ready 1\n# TYPE symloom_draining gauge\nsymloom_draining 0\n"
               "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 200\n"
               "# TYPE symloom_build_info gauge\nsymloom_build_info{version=\"1\"} 1\n# EOF\n"),
        SL_STR("# TYPE symloom_ready gauge\nsymloom_ready 0\n# TYPE symloom_draining gauge\nsymloom_draining 1\n"
               "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 100\n"
               "# TYPE symloom_build_info gauge\nsymloom_build_info{version=\"1\"} 1\n# EOF\n"),
    };
    expect(texts, 2,
           "# TYPE symloom_ready gauge\nsymloom_ready 0\n# TYPE symloom_draining gauge\nsymloom_draining 1\n"
           "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 100\n"
           "# TYPE symloom_build_info gauge\nsymloom_build_info{version=\"1\"} 1\n# EOF\n");
}

TEST(malformed_lines_are_left_out)
{
    const struct sl_str texts[] = {SL_STR("# TYPE a gauge\na 1\n"), SL_STR("a 5\nb\n\n# TYPE a gauge\na 2\n 3\nb 1")};
    expect(texts, 2, "# TYPE a gauge\na 3\nb 1\n");
    expect(texts, 0, "");
}
