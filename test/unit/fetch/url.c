/* What downloads decide without a network: URLs, redirects' targets, ranges, addresses. */
#include "support.h"

static struct sl_arena arena;

static struct hop parsed(const char *url)
{
    struct hop hop;
    struct sl_error error = {.message = ""};
    if (hop_parse(&arena, url, &hop, &error) != SL_OK)
        fail_msg("%s: %s", url, error.message);
    return hop;
}

TEST(urls_are_parsed)
{
    struct hop hop = parsed("HTTPS://us%65r:p%40ss@EXAMPLE.org/a/../b?q=1#f");
    assert_string_equal(hop.scheme, "https");
    assert_string_equal(hop.host, "example.org");
    assert_string_equal(hop.port, "443");
    assert_string_equal(hop.user, "user");
    assert_string_equal(hop.password, "p@ss");
    assert_null(strstr(hop.url, "p@ss"));
    assert_null(strstr(hop.url, "user"));
    assert_null(strchr(hop.url, '#'));
    assert_non_null(strstr(hop.url, "?q=1"));
    hop = parsed("http://[2001:DB8::1]:8080");
    assert_string_equal(hop.host, "[2001:db8::1]");
    assert_string_equal(hop.port, "8080");
    static const char *const hosts[][2] = {{"http://2130706433/", "127.0.0.1"},
                                           {"http://0x7f.1/", "127.0.0.1"},
                                           {"http://0177.0.0.1/", "127.0.0.1"},
                                           {"http://127.1/", "127.0.0.1"}};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        assert_string_equal(parsed(hosts[i][0]).host, hosts[i][1]);
}

TEST(redirects_are_resolved)
{
    static const char *const rows[][3] = {
        {"http://a/b/c?d", "e", "http://a/b/e"},      {"http://a/b/c?d", "/e?f#g", "http://a/e?f"},
        {"http://a/b/c?d", "//h/e", "http://h/e"},    {"http://a/b/c", "https://h:444", "https://h:444/"},
        {"http://a/b/c?d", "?x", "http://a/b/c?x"},   {"http://a/b/c", "/with blank", "http://a/with%20blank"},
        {"http://a/b/c", "../../../x", "http://a/x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hop from = parsed(rows[i][0]), to;
        assert_int_equal(hop_follow(&arena, &from, rows[i][1], &to, NULL), SL_OK);
        assert_string_equal(to.url, rows[i][2]);
    }
}

TEST(credentials_stay_with_their_host)
{
    struct hop from = parsed("https://u:p@a.example/x?sig=1"), to, back;
    static const struct {
        const char *location;
        bool is_other_host;
    } rows[] = {{"/y", false},
                {"https://A.example:443/y", false},
                {"https://a.example:8443/y", true},
                {"http://a.example/y", true},
                {"https://b.example/y", true},
                {"https://x:y@b.example/y", true},
                {"https://a.example.evil/y", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(hop_follow(&arena, &from, rows[i].location, &to, NULL), SL_OK);
        assert_int_equal(to.is_other_host, rows[i].is_other_host);
        assert_int_equal(to.user == NULL, rows[i].is_other_host);
        assert_int_equal(to.password == NULL, rows[i].is_other_host);
        assert_int_equal(hop_follow(&arena, &to, "https://a.example/z", &back, NULL), SL_OK);
        assert_int_equal(back.is_other_host, rows[i].is_other_host);
        assert_int_equal(back.user == NULL, rows[i].is_other_host);
    }
    hop_follow(&arena, &from, "/y", &to, NULL);
    assert_string_equal(hop_referer(&arena, &from, &to), "https://a.example/x?sig=1");
    hop_follow(&arena, &from, "https://b.example/", &to, NULL);
    assert_string_equal(hop_referer(&arena, &from, &to), "https://a.example/x");
    hop_follow(&arena, &from, "http://a.example/", &to, NULL);
    assert_null(hop_referer(&arena, &from, &to));
}

TEST(public_urls_hold_no_secrets)
{
    assert_string_equal(fetch_public_url(&arena, "https://u:p@h/x?sig=1#f"), "https://h/x");
    assert_null(fetch_public_url(&arena, "no url"));
    assert_string_equal(fetch_url_host(&arena, "https://u:p@Host.example:9/x"), "Host.example");
    assert_true(fetch_url_valid("https://h"));
    assert_true(fetch_url_valid("ftp://h/"));
    assert_false(fetch_url_valid("h/x"));
    assert_false(fetch_url_valid("/x"));
    assert_false(fetch_url_valid(""));
    assert_false(fetch_url_valid("http://a b/"));
}

TEST(ranges_are_split)
{
    static const struct {
        uint64_t end, total, split;
        size_t count;
        uint64_t starts[MAX_PARTS];
    } rows[] = {
        {9, 110, 100, 1, {10}},
        {9, 10, 100, 0, {0}},
        {99, 101, 100, 1, {100}},
        {99, 300, 100, 2, {100, 200}},
        {99, 303, 100, 3, {100, 167, 234}},
        {99, 1000, 100, 4, {100, 325, 550, 775}},
        {0, UINT64_MAX, 1, 4, {1, 4611686018427387904, 9223372036854775807, 13835058055282163710u}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct byte_range parts[MAX_PARTS], first = {0, rows[i].end, rows[i].total};
        size_t count = byte_range_split(&first, rows[i].split, parts);
        assert_int_equal(count, rows[i].count);
        uint64_t next = rows[i].end + 1;
        for (size_t n = 0; n < count; n++) {
            assert_int_equal(parts[n].start, rows[i].starts[n]);
            assert_int_equal(parts[n].start, next);
            assert_true(parts[n].end >= parts[n].start);
            next = parts[n].end + 1;
        }
        assert_int_equal(next, rows[i].total);
    }
}

TEST(reserved_and_metadata_addresses_are_recognised)
{
    static const struct {
        const char *text;
        bool reserved, metadata;
    } rows[] = {
        {"0.0.0.0", true},
        {"10.1.2.3", true},
        {"100.64.0.1", true},
        {"100.128.0.1", false},
        {"127.255.0.1", true},
        {"169.254.1.1", true},
        {"172.15.255.255", false},
        {"172.16.0.0", true},
        {"172.31.255.255", true},
        {"172.32.0.0", false},
        {"192.0.0.255", true},
        {"192.0.1.1", false},
        {"192.0.2.1", true},
        {"192.88.99.1", true},
        {"192.168.1.1", true},
        {"198.17.255.255", false},
        {"198.18.0.0", true},
        {"198.19.255.255", true},
        {"198.51.100.7", true},
        {"203.0.113.1", true},
        {"223.255.255.255", false},
        {"224.0.0.1", true},
        {"240.0.0.1", true},
        {"255.255.255.255", true},
        {"8.8.8.8", false},
        {"169.254.169.254", true, true},
        {"169.254.170.2", true, true},
        {"::", true},
        {"::1", true},
        {"::ffff:127.0.0.1", true},
        {"::ffff:8.8.8.8", false},
        {"::ffff:169.254.169.254", true, true},
        {"64:ff9b::10.0.0.1", true},
        {"64:ff9b::8.8.8.8", false},
        {"64:ff9b::169.254.169.254", true, true},
        {"64:ff9b:1::8.8.8.8", true},
        {"2001:db8::1", true},
        {"2001:4860:4860::8888", false},
        {"2002:7f00:1::", true},
        {"3fff::1", false},
        {"fc00::1", true},
        {"fd00:ec2::254", true, true},
        {"fe80::1", true},
        {"ff02::1", true},
        {"4000::1", true},
    };
    fetch_state = (struct fetch_state){.options = {.connect_to_reserved_ips = false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16];
        assert_true(network_address(sl_str(rows[i].text), bytes));
        if (address_reserved(bytes) != rows[i].reserved || address_metadata(bytes) != rows[i].metadata)
            fail_msg("%s", rows[i].text);
        struct sockaddr_in6 address = {.sin6_family = AF_INET6};
        memcpy(&address.sin6_addr, bytes, 16);
        assert_int_equal(fetch_address_reserved((struct sockaddr *)&address), rows[i].reserved);
        assert_int_equal(address_refused((struct sockaddr *)&address, DRIVER_RESTRICTED), rows[i].reserved);
        assert_int_equal(address_refused((struct sockaddr *)&address, DRIVER_TRUSTED), rows[i].metadata);
        char host[64];
        snprintf(host, sizeof host, strchr(rows[i].text, ':') ? "[%s]" : "%s", rows[i].text);
        assert_int_equal(address_host_refused(host, DRIVER_RESTRICTED), rows[i].reserved);
        assert_int_equal(address_host_refused(host, DRIVER_TRUSTED), rows[i].metadata);
    }
    assert_false(address_host_refused("169.254.170.2", DRIVER_OWN));
    assert_false(address_host_refused("metadata.google.internal", DRIVER_OWN));
    struct sockaddr_storage other = {.ss_family = AF_UNIX};
    assert_true(address_refused((struct sockaddr *)&other, DRIVER_TRUSTED));
    assert_false(address_host_refused("example.org", DRIVER_RESTRICTED));
    assert_true(address_host_refused("METADATA.google.internal.", DRIVER_TRUSTED));
    assert_true(address_host_refused("[fe80::1%25eth0]", DRIVER_RESTRICTED));
}

TEST(allowed_networks_are_not_refused)
{
    struct sl_str network = SL_STR("10.1.0.0/16");
    fetch_state =
        (struct fetch_state){.options = {.allowed_reserved_networks = &network, .allowed_reserved_network_count = 1}};
    assert_false(address_host_refused("10.1.2.3", DRIVER_RESTRICTED));
    assert_true(address_host_refused("10.2.2.3", DRIVER_RESTRICTED));
    assert_false(address_host_refused("[::ffff:10.1.0.1]", DRIVER_RESTRICTED));
    network = SL_STR("0.0.0.0/0"); /* the metadata stay out of reach */
    assert_true(address_host_refused("169.254.169.254", DRIVER_RESTRICTED));
    fetch_state = (struct fetch_state){.options = {.connect_to_reserved_ips = true}};
    assert_false(address_host_refused("127.0.0.1", DRIVER_RESTRICTED));
    assert_true(address_host_refused("169.254.169.254", DRIVER_RESTRICTED));
}

/* The proxy may be connected to, but nothing else at its address. */
TEST(only_the_proxy_port_is_allowed)
{
    struct sockaddr_in proxy = {.sin_family = AF_INET, .sin_port = htons(3128), .sin_addr.s_addr = htonl(0x0A000001)};
    fetch_state = (struct fetch_state){.proxy_count = 1};
    fetch_state.proxies[0].address.bits = 128;
    fetch_state.proxies[0].port = 3128;
    network_sockaddr((struct sockaddr *)&proxy, fetch_state.proxies[0].address.bytes);
    assert_false(address_refused((struct sockaddr *)&proxy, DRIVER_RESTRICTED));
    assert_true(address_host_refused("10.0.0.1", DRIVER_RESTRICTED));
    proxy.sin_port = htons(80);
    assert_true(address_refused((struct sockaddr *)&proxy, DRIVER_RESTRICTED));
}

static int teardown(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

TEST_FILE(.end = teardown);
