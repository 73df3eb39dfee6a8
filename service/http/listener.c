/* Listening sockets: our own and those passed by the service manager. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/impl.h"

/* Sets the options of a TCP socket. A client that vanished without closing its connection is probed after 60 s of silence, and given
 * up if it has not acknowledged data for 30 s. */
static void tune(int fd)
{
    static const int on = 1, off = 0, idle_s = 60;
    static const unsigned user_timeout_ms = 30000;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* [::] accepts IPv4, too; fails on IPv4, harmlessly */
    /* Accepted sockets inherit these, which saves system calls per connection. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

/* Parses "<IPv4>:<port>" or "[<IPv6>]:<port>". Names are not resolved. */
static bool parse_address(const char *text, struct sockaddr_storage *address)
{
    char host[64], *end;
    const char *colon = strrchr(text, ':');
    if (!colon || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    bool v6 = text[0] == '[';
    size_t size = (size_t)(colon - text) - (v6 ? 2 : 0); /* 2: the brackets */
    if (*end || port > 65535 || (v6 && (colon - text < 3 || colon[-1] != ']')) || size >= sizeof host)
        return false;
    memcpy(host, text + v6, size);
    host[size] = '\0';
    if (v6)
        return uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)address) == 0;
    return uv_ip4_addr(host, (int)port, (struct sockaddr_in *)address) == 0;
}

/* Stores the address that the socket is bound to, as text, and whether it is a loopback address. The kernel is asked for it, as it has
 * chosen the port if that is 0 in the configuration. */
static void note_bound(struct http_listener *listener)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[ADDRESS_MAX] = "";
    if (getsockname(listener->fd, (struct sockaddr *)&address, &size) != 0)
        return;
    bool v6 = address.ss_family == AF_INET6;
    unsigned port =
        ntohs(v6 ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
    listener->loopback = v6 ? IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address)->sin6_addr)
                            : ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    uv_ip_name((struct sockaddr *)&address, host, sizeof host);
    snprintf(listener->address, sizeof listener->address, v6 ? "[%s]:%u" : "%s:%u", host, port);
}

/* Creates the listener's socket and binds it; returns 0 or an errno. On failure the socket may be open; listener_close closes it. */
static int bind_socket(struct http_listener *listener, const void *address, size_t size)
{
    const struct sockaddr *generic = address;
    listener->fd = socket(generic->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0)
        return errno;
    if (generic->sa_family != AF_UNIX)
        tune(listener->fd);
    if (generic->sa_family != AF_UNIX && listener->server->options.reuseport) {
        static const int on = 1;
        if (setsockopt(listener->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
            return errno;
    }
    return bind(listener->fd, generic, (socklen_t)size) == 0 ? 0 : errno;
}

/* Binds to IP:PORT; returns 0 or an errno. */
static int bind_tcp(struct http_listener *listener, const char *text)
{
    struct sockaddr_storage address;
    if (!parse_address(text, &address))
        return EINVAL;
    return bind_socket(listener, &address,
                       address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

/* Removes a socket file that nobody listens on, left by a process that died. */
static void remove_stale(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
    close(fd);
}

/* Gives the socket file to the group `name` (http.unix_group; NULL = leaves the group) and lets it connect. A file that has the group
 * already, as in a set-group-ID directory, needs no chown and no permission for it. Returns 0 or an errno; `*what` explains those that
 * are about the group. */
static int share_with_group(const char *path, const char *name, const char **what)
{
    struct stat st;
    const struct group *group = name ? getgrnam(name) : NULL; /* not thread-safe, but called only at the start */
    if (name && !group) {
        *what = "no such group (http.unix_group)";
        return ENOENT;
    }
    if (group && (stat(path, &st) != 0 || st.st_gid != group->gr_gid) && chown(path, (uid_t)-1, group->gr_gid) != 0) {
        *what = "http.unix_group: the process must be a member of the group, or be allowed to call chown";
        return errno;
    }
    return chmod(path, 0660) == 0 ? 0 : errno;
}

/* Binds a Unix socket, restricted to the user and one group. Returns 0 or an errno; `*what` explains those that are about the group. */
static int bind_unix(struct http_listener *listener, const char *path, const char **what)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    listener->unix_socket = true;
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    remove_stale(&address);
    int result = bind_socket(listener, &address, sizeof address);
    if (result)
        return result;
    listener->bound = true; /* listener_close removes the socket file */
    return share_with_group(path, listener->server->options.unix_group, what);
}

void listener_close(struct http_listener *listener)
{
    sl_close(listener->fd);
    if (listener->bound)
        unlink(listener->address + 5); /* after "unix:" */
}

enum sl_code listener_open(struct http_listener *listener, const char *address, struct sl_error *error)
{
    listener->fd = -1;
    snprintf(listener->address, sizeof listener->address, "%s", address);
    const char *what = "";
    int result =
        strncmp(address, "unix:", 5) == 0 ? bind_unix(listener, address + 5, &what) : bind_tcp(listener, address);
    if (result == 0 && listen(listener->fd, listener->server->options.backlog) != 0)
        result = errno;
    if (result != 0) {
        listener_close(listener);
        return sl_fail(error, result == EACCES ? SL_PERMISSION_DENIED : SL_INTERNAL, "cannot listen on %s: %s%s%s",
                       address, strerror(result), *what ? "; " : "", what);
    }
    if (!listener->unix_socket)
        note_bound(listener);
    return SL_OK;
}

/* ---- sockets of the service manager: sd_listen_fds(3) ---- */
size_t listeners_get_passed(const char *wanted, int fds[MAX_PASSED_LISTENERS])
{
    enum { FIRST = 3 }; /* number of the first descriptor, SD_LISTEN_FDS_START */
    const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
    unsigned long all = pid && number && strtol(pid, NULL, 10) == (long)getpid() ? strtoul(number, NULL, 10) : 0;
    size_t count = 0;
    for (unsigned long i = 0; i < all && i < MAX_PASSED_LISTENERS; i++) {
        struct sl_str name = {names, names ? strcspn(names, ":") : 0};
        names = names && names[name.size] ? names + name.size + 1 : NULL;
        if (!sl_str_equal(name, SL_STR("https")) && !sl_str_equal(name, SL_STR("admin")))
            name = SL_STR("http");
        if (sl_str_equal(name, sl_str(wanted)))
            fds[count++] = FIRST + (int)i;
    }
    return count;
}

void listeners_unset_environment(void)
{
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

enum sl_code listener_adopt(struct http_listener *listener, int fd, struct sl_error *error)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address, int_size = sizeof(int);
    int type = 0;
    snprintf(listener->address, sizeof listener->address, "systemd");
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0 || type != SOCK_STREAM)
        return sl_fail(error, SL_INTERNAL, "cannot listen on systemd: descriptor %d is not a stream socket", fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    listener->fd = fd;
    listener->passed = true;
    listener->unix_socket = address.ss_family == AF_UNIX;
    if (!listener->unix_socket) {
        tune(fd);
        note_bound(listener);
    }
    return SL_OK;
}
