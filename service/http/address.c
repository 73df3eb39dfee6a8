/* Finds the client's address behind trusted proxies, and the request's id; counts connections by address. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/random.h>

#include "http/blank.h"
#include "http/impl.h"

/* True for a proxy whose X-Forwarded-For and X-Request-ID are believed. */
static bool is_trusted(const struct http_server *server, struct sl_str address)
{
    uint8_t bytes[16];                         /* an IPv6 address; IPv4 as ::ffff:10.1.2.3 */
    if (sl_str_equal(address, SL_STR("unix"))) /* what connection_peer returns for a Unix socket */
        return server->trust_unix;
    if (!network_address(address, bytes))
        return false;
    for (size_t i = 0; i < server->proxy_count; i++)
        if (network_contains(&server->proxies[i], bytes))
            return true;
    return false;
}

bool http_is_proxied(const struct http_exchange *x)
{
    const struct request *r = (const struct request *)x; /* *x is the first member of a request */
    return is_trusted(r->server, sl_str(connection_peer(r->connection)));
}

/* ---- X-Forwarded-For; several headers form one list ---- */
struct forwarded_for_list {
    const struct http_exchange *x;
    size_t header;      /* index of the header that is being read; header_count at first */
    struct sl_str left; /* the part of its value that was not returned yet */
};

/* Removes the last remaining entry from the list and sets `*entry` to it; false if there is none. Reads the headers named
 * X-Forwarded-For from the last to the first: list->header is the index of the current one, list->left what remains of its value. */
static bool cut_last(struct forwarded_for_list *list, struct sl_str *entry)
{
    while (list->left.size == 0) {
        do {
            if (list->header == 0)
                return false;
            list->header--;
        } while (!sl_str_equal(list->x->headers[list->header].name, SL_STR("x-forwarded-for")));
        list->left = list->x->headers[list->header].value;
    }
    const char *comma = memrchr(list->left.data, ',', list->left.size);
    const char *start = comma ? comma + 1 : list->left.data;
    *entry = http_trim((struct sl_str){start, list->left.size - (size_t)(start - list->left.data)});
    list->left.size = comma ? (size_t)(comma - list->left.data) : 0;
    return true;
}

/* Each proxy appends the address that it was connected from. So from the end, the first address that is not a trusted proxy is the
 * client; what precedes it may be invented. An entry that is no address ends the search at the proxy that sent it. `peer` is the address
 * at the other end of the socket. */
static struct sl_str client_address(const struct request *r, struct sl_str peer)
{
    struct forwarded_for_list list = {.x = &r->x, .header = r->x.header_count};
    struct sl_str current = peer, entry;
    uint8_t bytes[16];
    while (is_trusted(r->server, current) && cut_last(&list, &entry) && network_address(entry, bytes))
        current = entry;
    return current;
}

/* ---- request ids ---- */
static uint64_t rotate(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

/* Returns the next random number for ids, by xoshiro256**: ids must be unique, but need not be secret. */
static uint64_t next_random(struct http_server *server)
{
    uint64_t *s = server->random;
    /* seeds it once; if getrandom fails, the time is good enough */
    if (!(s[0] | s[1] | s[2] | s[3]) && getrandom(s, sizeof server->random, 0) < 0)
        s[0] = uv_hrtime();
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* Writes a random UUID (RFC 9562, version 4) with a NUL. */
void random_uuid(struct http_server *server, char out[37])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t high = next_random(server), low = next_random(server);
    high = (high & ~0xF000ull) | 0x4000;      /* version 4 */
    low = (low & ~(3ull << 62)) | 2ull << 62; /* variant 10 (binary) */
    /* 16 digits of each number; the conditions leave room for the hyphens */
    for (int i = 15; i >= 0; i--, high >>= 4, low >>= 4) {
        out[i + (i >= 8) + (i >= 12)] = digits[high & 15];
        out[i + 19 + (i >= 4)] = digits[low & 15];
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[36] = '\0';
}

/* True if a proxy's X-Request-ID has 1 to 128 characters, none of which needs escaping in logs or headers. */
static bool is_request_id(struct sl_str text)
{
    if (text.size == 0 || text.size > 128)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

void set_client_and_request_id(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct http_server *server = r->server;
    struct sl_str peer = sl_str(connection_peer(r->connection));
    x->client = peer;
    if (server->proxy_count > 0 || server->trust_unix) {
        x->client = client_address(r, peer);
        struct sl_str given = http_header(x, "x-request-id");
        if (given.data && is_request_id(given) && is_trusted(server, peer))
            x->request_id = given;
    }
    if (!x->request_id.size) {
        random_uuid(server, r->id);
        x->request_id = (struct sl_str){r->id, 36};
    }
}

/* ---- connections per address ---- */
struct client_address *address_entry(struct http_server *server, struct sl_str address)
{
    if (address.size >= ADDRESS_MAX) /* valid addresses are shorter; this bounds the memory for the key */
        address.size = ADDRESS_MAX - 1;
    struct client_address *entry = sl_map_get(&server->ips, address);
    if (entry)
        return entry;
    entry = sl_map_add(&server->ips, address, sizeof *entry, &address); /* sets `address` to the map's copy of it */
    if (entry)
        entry->address = address;
    return entry;
}

void address_remove_entry(struct http_server *server, struct client_address *entry)
{
    if (entry->connections || entry->halves)
        return;
    sl_map_remove(&server->ips, entry->address);
    free(entry);
}

bool address_add_connection(struct request *r)
{
    struct connection *c = r->connection;
    struct http_server *server = r->server;
    unsigned limit = server->options.max_connections_per_ip;
    struct client_address *entry = limit == 0 || c->ip ? NULL : address_entry(server, r->x.client);
    if (!entry) /* there is no limit, an earlier request has counted the connection, or memory is out */
        return true;
    entry->connections++;
    c->ip = entry;
    return entry->connections <= limit;
}

void address_remove_connection(struct connection *c)
{
    if (!c->ip)
        return;
    c->ip->connections--;
    address_remove_entry(c->server, c->ip);
}
