/* Decides which IP addresses downloads may connect to: URLs that clients choose must not lead into the operator's network (reserved
 * addresses, RFC 6890; of IPv6 only 2000::/3 is global unicast). */
#include "fetch/impl.h"

#include <netdb.h>
#include <netinet/in.h>

#include "core/pool.h"

struct address_range {
    uint8_t bytes[4];
    unsigned bits;
};
static const struct address_range v4_reserved[] = {
    {{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},     {{100, 64, 0, 0}, 10}, {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12},  {{192, 0, 0, 0}, 24},  {{192, 0, 2, 0}, 24},
    {{192, 88, 99, 0}, 24}, {{192, 168, 0, 0}, 16}, {{198, 18, 0, 0}, 15}, {{198, 51, 100, 0}, 24},
    {{203, 0, 113, 0}, 24}, {{224, 0, 0, 0}, 4},    {{240, 0, 0, 0}, 4},
};

/* True if the IPv4 address is in one of the blocks of v4_reserved, which no public host uses. */
static bool v4_is_reserved(const uint8_t address[4])
{
    for (size_t i = 0; i < sizeof v4_reserved / sizeof *v4_reserved; i++) {
        /* both have the IPv4 address in their first 4 bytes: network_contains only compares the first `bits` bits */
        struct network network = {.bits = v4_reserved[i].bits}, other = {0};
        memcpy(network.bytes, v4_reserved[i].bytes, 4);
        memcpy(other.bytes, address, 4);
        if (network_contains(&network, other.bytes))
            return true;
    }
    return false;
}

/* The first 12 bytes of NAT64 addresses: IPv6 addresses that stand for an IPv4 address, 64:ff9b::/96 (RFC 6052, 2.1). */
static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};

/* True if no public host uses the address. An IPv4 address, also one in a NAT64 address (64:ff9b::/96), is looked up in v4_reserved. An
 * IPv6 address is public if it is global unicast (2000::/3), but not if it is for documentation (2001:db8::/32) or 6to4 (2002::/16), which
 * leads to an IPv4 address. */
bool address_reserved(const uint8_t bytes[16])
{
    if (network_is_v4(bytes) || memcmp(bytes, nat64, 12) == 0)
        return v4_is_reserved(bytes + 12);
    bool global_unicast = (bytes[0] & 0xE0) == 0x20;
    bool documentation = memcmp(bytes, (const uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4) == 0;
    bool six_to_four = bytes[0] == 0x20 && bytes[1] == 0x02;
    return !global_unicast || documentation || six_to_four;
}

/* True if the address is that of a metadata or credential service of a cloud provider, also as a NAT64 address. */
bool address_metadata(const uint8_t bytes[16])
{
    static const char *const services[] = {"169.254.169.254", "169.254.170.2", "fd00:ec2::254"};
    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        uint8_t service[16];
        if (!network_address(sl_str(services[i]), service))
            continue;
        /* of a NAT64 address, the last 4 bytes are the IPv4 address */
        bool translated = memcmp(bytes, nat64, 12) == 0 && network_is_v4(service);
        if (memcmp(service + (translated ? 12 : 0), bytes + (translated ? 12 : 0), translated ? 4 : 16) == 0)
            return true;
    }
    return false;
}

bool fetch_address_reserved(const struct sockaddr *address)
{
    uint8_t bytes[16];
    return !network_sockaddr(address, bytes) || address_reserved(bytes);
}

/* True if the configuration allows connections to this reserved address. Such addresses are rare, so the networks are parsed for each: this
 * needs no memory, whose lack would refuse an allowed address. */
static bool is_allowed(const uint8_t bytes[16])
{
    const struct fetch_options *options = &fetch_state.options;
    struct network network;
    for (size_t i = 0; i < options->allowed_reserved_network_count; i++)
        if (network_parse(options->allowed_reserved_networks[i], &network) && network_contains(&network, bytes))
            return true;
    return false;
}

/* True if a download may not connect to the address. DRIVER_RESTRICTED (URLs that clients choose): reserved addresses are refused unless
 * the configuration allows them. DRIVER_TRUSTED (the operator's sources): only metadata services are. DRIVER_OWN (downloads of the service
 * itself, e.g. its cloud credentials): none. */
static bool fetch_address_refused(const uint8_t bytes[16], enum driver_pool pool)
{
    if (pool == DRIVER_OWN)
        return false;
    if (address_metadata(bytes))
        return true;
    if (pool == DRIVER_TRUSTED || fetch_state.options.connect_to_reserved_ips || !address_reserved(bytes))
        return false;
    return !is_allowed(bytes);
}

/* True for address and port of a proxy that the operator has set: it may be reached although its address is reserved. */
static bool is_proxy(const struct sockaddr *address, const uint8_t bytes[16])
{
    in_port_t port = address->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                                                   : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
    for (size_t i = 0; i < fetch_state.proxy_count; i++)
        if (fetch_state.proxies[i].port == ntohs(port) && network_contains(&fetch_state.proxies[i].address, bytes))
            return true;
    return false;
}

bool address_refused(const struct sockaddr *address, enum driver_pool pool)
{
    uint8_t bytes[16];
    return !network_sockaddr(address, bytes) || (fetch_address_refused(bytes, pool) && !is_proxy(address, bytes));
}

/* Checks the host of a URL before the connection, if it is an IP address or the name of a metadata service. address_refused checks the
 * address of each connection, but with a proxy that is the proxy's. */
bool address_host_refused(const char *host, enum driver_pool pool)
{
    struct sl_str name = sl_str(host);
    if (sl_str_ends(name, SL_STR("."))) /* a fully qualified name */
        name.size--;
    if (sl_str_equal_nocase(name, SL_STR("metadata.google.internal")))
        return pool != DRIVER_OWN;
    if (name.size >= 2 && name.data[0] == '[') {
        const char *end = memchr(name.data, '%', name.size); /* a zone identifier (RFC 6874) */
        name = (struct sl_str){name.data + 1, end ? (size_t)(end - name.data) - 1 : name.size - 2};
    }
    uint8_t bytes[16];
    return network_address(name, bytes) && fetch_address_refused(bytes, pool);
}

/* ---- fetch_is_host_refused ---- */

enum { MAX_ADDRESSES = 16 };

struct resolution {
    const char *host;
    uint8_t addresses[MAX_ADDRESSES][16];
    size_t count;
};

/* On the pool, as getaddrinfo blocks: resolves a host to at most MAX_ADDRESSES addresses; none on failure. */
static void resolve_host(void *arg)
{
    struct resolution *r = arg;
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(r->host, NULL, &hints, &found) != 0)
        return;
    for (const struct addrinfo *a = found; a && r->count < MAX_ADDRESSES; a = a->ai_next)
        r->count += network_sockaddr(a->ai_addr, r->addresses[r->count]);
    freeaddrinfo(found);
}

bool fetch_is_host_refused(const char *host)
{
    struct resolution r = {.host = host};
    uint8_t bytes[16];
    if (address_host_refused(host, DRIVER_RESTRICTED))
        return true;
    bool is_address = host[0] == '[' || network_address(sl_str(host), bytes);
    /* an address was checked above; with a proxy, the proxy resolves the name */
    if (is_address || fetch_state.proxy_count || fetch_state.options.connect_to_reserved_ips)
        return false;
    if (strcmp(host, "localhost") == 0)
        r.host = "127.0.0.1"; /* libcurl resolves it without DNS (RFC 6761, 6.3) */
    if (pool_run(POOL_IO, resolve_host, &r, NULL) != SL_OK)
        return false;
    size_t refused = 0;
    for (size_t i = 0; i < r.count; i++)
        refused += fetch_address_refused(r.addresses[i], DRIVER_RESTRICTED);
    return r.count && refused == r.count;
}
