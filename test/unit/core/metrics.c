/* Metrics: series, bounds, threads, and the text that Prometheus reads. */
#include "../check.h"

#include <pthread.h>

#include "core/metrics.h"

static struct sl_buf text;

static const char *scrape(bool open_metrics)
{
    sl_buf_clear(&text);
    metrics_collect();
    metrics_write(&text, open_metrics);
    sl_buf_u8(&text, 0);
    text.size--;
    return (const char *)text.data;
}

TEST(series_are_written_with_their_labels)
{
    metric_add(METRIC_CACHE_LOOKUPS, 1, "symcaches", "computed", "ok");
    metric_add(METRIC_CACHE_LOOKUPS, 2, "symcaches", "memory", "ok");
    metric_add(METRIC_CACHE_LOOKUPS, 3, "symcaches", "memory", "ok");
    metric_set(METRIC_READY, 1, NULL, NULL, NULL);
    metric_add(METRIC_POLLS, 1, "a\"b\\c\nd", NULL, NULL);
    const char *out = scrape(false);
    assert_non_null(
        strstr(out, "\nsymloom_cache_lookups_total{cache=\"symcaches\",layer=\"computed\",result=\"ok\"} 1\n"));
    assert_non_null(
        strstr(out, "\nsymloom_cache_lookups_total{cache=\"symcaches\",layer=\"memory\",result=\"ok\"} 5\n"));
    assert_non_null(strstr(out, "\nsymloom_ready 1\n"));
    assert_non_null(strstr(out, "\nsymloom_starts_total 0\n")); /* without labels: there from the start */
    assert_non_null(strstr(out, "{result=\"a\\\"b\\\\c\\nd\"} 1\n"));
    assert_non_null(strstr(out, "\nprocess_resident_memory_bytes "));
    assert_non_null(strstr(out, "\nsymloom_build_info{version=\"" SYMLOOM_VERSION "\",commit="));
}

TEST(histograms_are_cumulative)
{
    metric_observe(METRIC_JOB_DURATION, 0.005, "t", NULL, NULL);
    metric_observe(METRIC_JOB_DURATION, 0.006, "t", NULL, NULL);
    metric_observe(METRIC_JOB_DURATION, 1e9, "t", NULL, NULL);
    const char *out = scrape(false);
    assert_non_null(strstr(out, "symloom_job_duration_seconds_bucket{task=\"t\",le=\"0.005\"} 1\n"));
    assert_non_null(strstr(out, "symloom_job_duration_seconds_bucket{task=\"t\",le=\"0.01\"} 2\n"));
    assert_non_null(strstr(out, "symloom_job_duration_seconds_bucket{task=\"t\",le=\"900\"} 2\n"));
    assert_non_null(strstr(out, "symloom_job_duration_seconds_bucket{task=\"t\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(out, "symloom_job_duration_seconds_sum{task=\"t\"} 1000000000.011\n"));
    assert_non_null(strstr(out, "symloom_job_duration_seconds_count{task=\"t\"} 3\n"));
}

TEST(a_metric_keeps_at_most_500_series)
{
    char name[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "source-%d", i);
        metric_add(METRIC_DOWNLOAD_ATTEMPTS, 1, name, NULL, NULL);
    }
    const char *out = scrape(false);
    size_t count = 0;
    for (const char *at = out; (at = strstr(at, "\nsymloom_download_attempts_total{")); at++)
        count++;
    assert_int_equal(count, 501);
    assert_non_null(strstr(out, "symloom_download_attempts_total{source=\"overflow\"} 1500\n"));
}

static void *bump(void *arg)
{
    struct metric_series *series = metric_series(METRIC_CONVERSIONS, "c", "ok", NULL);
    for (int i = 0; i < 10000; i++) {
        metric_series_add(series, 1);
        metric_observe(METRIC_CONVERSION_SECONDS, 0.5, "c", NULL, NULL);
    }
    return NULL;
}

TEST(concurrent_threads_lose_no_count)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, bump, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    const char *out = scrape(false);
    assert_non_null(strstr(out, "symloom_conversions_total{cache=\"c\",result=\"ok\"} 40000\n"));
    assert_non_null(strstr(out, "symloom_conversion_seconds_sum{cache=\"c\"} 20000\n"));
}

/* Every sample follows the header of its family, families are not repeated, lines are complete. */
TEST(exposition_text_is_well_formed)
{
    metric_set(METRIC_HTTP_CONNECTIONS, 3, "idle", NULL, NULL);
    metric_add(METRIC_HTTP_CONNECTIONS_TOTAL, 4, "accepted", NULL, NULL);
    assert_non_null(strstr(scrape(true), "# TYPE symloom_http_connections gauge\n"));
    assert_non_null(strstr(scrape(true), "\nsymloom_http_connections_total{result=\"accepted\"} 4\n"));
    for (int open = 0; open < 2; open++) {
        char *copy = strdup(scrape(open)), *save = NULL, family[128] = "", seen[16384] = ";";
        assert_int_equal(copy[strlen(copy) - 1], '\n');
        bool end = false;
        for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            assert_false(end);
            if (strcmp(line, "# EOF") == 0) {
                end = true;
            } else if (strncmp(line, "# HELP ", 7) == 0) {
                char key[140];
                assert_int_equal(sscanf(line + 7, "%127s", family), 1);
                snprintf(key, sizeof key, ";%s;", family);
                assert_null(strstr(seen, key));
                strncat(seen, key + 1, sizeof seen - strlen(seen) - 1);
            } else if (strncmp(line, "# TYPE ", 7) == 0) {
                assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
                bool counter = strstr(line, " counter") != NULL;
                bool total = strlen(family) > 6 && strcmp(family + strlen(family) - 6, "_total") == 0;
                bool unknown = strstr(line, " unknown") != NULL; /* the family's name is another metric's */
                assert_int_equal(total, (counter && !open) || unknown);
            } else {
                assert_int_equal(strncmp(line, family, strlen(family)), 0);
                assert_non_null(strrchr(line, ' '));
                char *rest;
                strtod(strrchr(line, ' '), &rest);
                assert_int_equal(*rest, 0);
            }
        }
        assert_int_equal(end, open);
        free(copy);
    }
    sl_buf_free(&text);
}
