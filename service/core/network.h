/* Networks of IP addresses (CIDR, RFC 4632 and RFC 4291); IPv4 is the ::ffff:0:0/96 part of IPv6. */
#pragma once

#include "base/bytes.h"

struct network {
    uint8_t bytes[16];
    unsigned bits; /* prefix length, counted in the IPv6 form */
};

/* Parses "10.0.0.0/8", "fd00::/8" or "::1", a network of one address. False if the text is invalid. */
bool network_parse(struct sl_str text, struct network *network);

/* Converts the text of an IP address ("::1", "10.1.2.3") to 16 bytes; IPv4 becomes ::ffff:10.1.2.3. False if it is invalid. */
bool network_address(struct sl_str text, uint8_t bytes[16]);

/* Converts a socket address to 16 bytes, IPv4 as ::ffff:1.2.3.4; false for other address families. */
struct sockaddr;
bool network_sockaddr(const struct sockaddr *address, uint8_t bytes[16]);

/* True if the address, as 16 bytes, lies in the network. */
bool network_contains(const struct network *network, const uint8_t bytes[16]);
bool network_is_v4(const uint8_t bytes[16]); /* true for ::ffff:1.2.3.4 */
