/* Networks of IP addresses: parses them, and tells which contain an address. */
#include "core/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* The first 12 bytes of an IPv4-mapped IPv6 address, ::ffff:1.2.3.4 (RFC 4291, 2.5.5.2). IPv4 addresses are kept in this form, so that one
 * comparison serves both families. */
static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool network_is_v4(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped, sizeof mapped) == 0;
}

bool network_address(struct sl_str text, uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN];
    if (text.size == 0 || text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    memcpy(bytes, mapped, sizeof mapped);
    return inet_pton(AF_INET, copy, bytes + 12) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
}

/* Converts a socket address to the 16 bytes of an IPv6 address; IPv4 becomes ::ffff:1.2.3.4. False for other address families. */
bool network_sockaddr(const struct sockaddr *address, uint8_t bytes[16])
{
    if (address->sa_family == AF_INET) {
        memcpy(bytes, mapped, sizeof mapped);
        memcpy(bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    return true;
}

bool network_parse(struct sl_str text, struct network *network)
{
    const char *slash = text.size ? memchr(text.data, '/', text.size) : NULL;
    struct sl_str address = {text.data, slash ? (size_t)(slash - text.data) : text.size};
    if (!network_address(address, network->bytes))
        return false;
    uint64_t most = memchr(address.data, ':', address.size) ? 128 : 32, bits = most; /* a colon: IPv6 */
    if (slash && (!sl_parse_u64((struct sl_str){slash + 1, text.size - address.size - 1}, &bits) || bits > most))
        return false;
    network->bits = bits + (128 - most); /* the 96 bits before an IPv4 address count too */
    return true;
}

bool network_contains(const struct network *network, const uint8_t bytes[16])
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(network->bytes, bytes, whole) != 0)
        return false;
    return rest == 0 || ((network->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}
