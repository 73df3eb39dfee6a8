/* Which addresses a client's URL may lead to (RFC 6890; 2000::/3 is what IPv6 routes globally). */
#include "fetch/impl.h"

struct range {
    uint8_t bytes[4];
    unsigned bits;
};
static const struct range v4_reserved[] = {
    {{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},     {{100, 64, 0, 0}, 10}, {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12},  {{192, 0, 0, 0}, 24},  {{192, 0, 2, 0}, 24},
    {{192, 88, 99, 0}, 24}, {{192, 168, 0, 0}, 16}, {{198, 18, 0, 0}, 15}, {{198, 51, 100, 0}, 24},
    {{203, 0, 113, 0}, 24}, {{224, 0, 0, 0}, 4},    {{240, 0, 0, 0}, 4},
};

static bool v4_is_reserved(const uint8_t address[4])
{
    for (size_t i = 0; i < sizeof v4_reserved / sizeof *v4_reserved; i++) {
        struct network network = {.bits = v4_reserved[i].bits}, other = {0};
        memcpy(network.bytes, v4_reserved[i].bytes, 4);
        memcpy(other.bytes, address, 4);
        if (network_holds(&network, other.bytes))
            return true;
    }
    return false;
}

bool address_reserved(const uint8_t bytes[16])
{
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    if (network_is_v4(bytes) || memcmp(bytes, nat64, 12) == 0)
        return v4_is_reserved(bytes + 12);
    bool global_unicast = (bytes[0] & 0xE0) == 0x20;
    bool documentation = memcmp(bytes, (const uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4) == 0;
    bool six_to_four = bytes[0] == 0x20 && bytes[1] == 0x02;
    return !global_unicast || documentation || six_to_four;
}

/* The cloud providers' metadata and credential services. */
bool address_metadata(const uint8_t bytes[16])
{
    static const char *const services[] = {"169.254.169.254", "169.254.170.2", "fd00:ec2::254"};
    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        uint8_t service[16];
        if (network_address(sl_str(services[i]), service) && memcmp(service, bytes, 16) == 0)
            return true;
    }
    return false;
}

bool fetch_address_reserved(const struct sockaddr *address)
{
    uint8_t bytes[16];
    return !network_sockaddr(address, bytes) || address_reserved(bytes);
}

static bool held(const struct network *networks, size_t count, const uint8_t bytes[16])
{
    for (size_t i = 0; i < count; i++)
        if (network_holds(&networks[i], bytes))
            return true;
    return false;
}

bool address_refused(const struct sockaddr *address, bool trusted)
{
    uint8_t bytes[16];
    if (!network_sockaddr(address, bytes) || address_metadata(bytes))
        return true;
    if (trusted || fetch_state.options.connect_to_reserved_ips || !address_reserved(bytes))
        return false;
    return !held(fetch_state.allowed, fetch_state.allowed_count, bytes) &&
           !held(fetch_state.proxies, fetch_state.proxy_count, bytes);
}
