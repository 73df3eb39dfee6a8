/* Many clients of one HTTP server out of one thread, cheap enough to share a small machine with what it loads.
 *
 *     load PORT SECONDS DIRECTORY <PLAN
 *
 * Each line of the plan is a group of clients: KIND COUNT NAME... Of a name, DIRECTORY/NAME.request is what is sent, byte by
 * byte, and DIRECTORY/NAME.answer, if it is there, what the body of a 200 has to be. Kinds:
 *     ask     one request after the other, of the names in turn; a refusal is followed by a pause
 *     probe   the same every 20 ms, at once when one was late
 *     deaf    sends a request and never reads the answer
 *     slow    sends the head, and a byte of the body every half second
 * Clients whose connection ends connect again. When the time is over a line of JSON for each group says what was answered,
 * with the bodies of refusals, and how long it took in milliseconds; answers that are wrong are left in DIRECTORY/wrong-N. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NAMES = 1024, MAX_GROUPS = 32, MAX_TEXTS = 32, TEXTS_A_STATUS = 4, TEXT = 160, MAX_WRONG = 5, STEP_MS = 5 };
static const uint64_t MS = 1000000, PAUSE = 250 * 1000000ull, PROBE_EVERY = 20 * 1000000ull, DRIP = 500 * 1000000ull;

enum kind { ASK, PROBE, DEAF, SLOW };

struct bytes {
    char *data;
    size_t size, room;
};

struct name {
    struct bytes request, answer; /* answer.data NULL: anything is right */
    size_t head;                  /* of the request */
};

struct times {
    uint32_t *us;
    size_t count, room;
};

struct group {
    enum kind kind;
    char title[64];
    struct name *names;
    size_t name_count, turn;
    struct {
        int status;
        char text[TEXT]; /* empty for 200 */
        size_t count;
    } answers[MAX_TEXTS];
    size_t answer_count, wrong, cut, lost; /* cut: within an answer; lost: before one */
    struct times good, refused;
};

struct client {
    struct group *group;
    const struct name *name;
    int fd; /* -1: connects when `due` */
    bool busy, fresh;
    size_t sent;
    uint64_t begin, due;
    struct bytes in;
    size_t head, want; /* of the answer: its head; of its body what is known to come, SIZE_MAX = chunks */
    size_t chunk;      /* where the next one begins, in `in` */
    struct bytes body; /* of chunks */
};

static int epoll_fd;
static struct sockaddr_in server;
static const char *directory;
static size_t wrong_files;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "load: %s: %s\n", what, why);
    exit(2);
}

static void *grown(void *old, size_t size)
{
    void *fresh = realloc(old, size);
    if (!fresh)
        fail("memory", "none left");
    return fresh;
}

static void append(struct bytes *b, const char *data, size_t size)
{
    if (b->size + size > b->room) {
        b->room = (b->size + size) * 2;
        b->data = grown(b->data, b->room);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void note_time(struct times *t, uint64_t ns)
{
    if (t->count == t->room) {
        t->room = t->room ? t->room * 2 : 1024;
        t->us = grown(t->us, t->room * sizeof *t->us);
    }
    t->us[t->count++] = (uint32_t)(ns / 1000);
}

/* ---- the plan ---- */
static bool read_file(const char *name, const char *suffix, struct bytes *out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, suffix);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    *out = (struct bytes){grown(NULL, (size_t)st.st_size + 1), 0, (size_t)st.st_size};
    while (out->size < out->room) {
        ssize_t got = read(fd, out->data + out->size, out->room - out->size);
        if (got <= 0)
            fail(path, "cannot be read");
        out->size += (size_t)got;
    }
    close(fd);
    return true;
}

static void add_name(struct group *g, const char *name)
{
    struct name *n = &g->names[g->name_count++];
    if (!read_file(name, "request", &n->request))
        fail(name, "there is no such request");
    read_file(name, "answer", &n->answer);
    const char *end = memmem(n->request.data, n->request.size, "\r\n\r\n", 4);
    if (!end)
        fail(name, "the request has no head");
    n->head = (size_t)(end - n->request.data) + 4;
}

static size_t read_group(char *line, struct group *g)
{
    static const char *const kinds[] = {"ask", "probe", "deaf", "slow"};
    char *at = NULL, *kind = strtok_r(line, " \n", &at), *count = strtok_r(NULL, " \n", &at), *name;
    if (!kind || !count)
        fail("plan", "a line needs kind, count and names");
    for (g->kind = ASK; g->kind <= SLOW && strcmp(kinds[g->kind], kind) != 0;)
        g->kind++;
    g->names = grown(NULL, MAX_NAMES * sizeof *g->names);
    memset(g->names, 0, MAX_NAMES * sizeof *g->names);
    while ((name = strtok_r(NULL, " \n", &at)) && g->name_count < MAX_NAMES) {
        if (!g->name_count)
            snprintf(g->title, sizeof g->title, "%s %s", kind, name);
        add_name(g, name);
    }
    if (g->kind > SLOW || !g->name_count)
        fail(kind, "is no kind, or has no names");
    return strtoul(count, NULL, 10);
}

/* ---- a client ---- */
static void watch(struct client *c, int operation, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};
    epoll_ctl(epoll_fd, operation, c->fd, &e);
}

static void hang_up(struct client *c, uint64_t due)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->busy = false;
    c->due = due;
}

static void connect_client(struct client *c, uint64_t now)
{
    int one = 1, small = 4096;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        fail("socket", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (c->group->kind == DEAF)
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (connect(c->fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) {
        hang_up(c, now + PAUSE);
        return;
    }
    c->fresh = true;
    watch(c, EPOLL_CTL_ADD, c->group->kind == DEAF ? EPOLLOUT | EPOLLRDHUP : EPOLLIN | EPOLLOUT);
}

static void send_more(struct client *c, uint64_t now)
{
    size_t until = c->group->kind != SLOW            ? c->name->request.size
                   : c->sent < c->name->head         ? c->name->head
                   : now < c->due                    ? c->sent
                   : c->sent < c->name->request.size ? c->sent + 1
                                                     : c->sent;
    while (c->busy && c->sent < until) {
        ssize_t put = send(c->fd, c->name->request.data + c->sent, until - c->sent, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) {
            watch(c, EPOLL_CTL_MOD, c->group->kind == DEAF ? EPOLLOUT | EPOLLRDHUP : EPOLLIN | EPOLLOUT);
            return;
        }
        if (put < 0) { /* there may be an answer all the same: reading tells */
            c->sent = c->name->request.size;
            break;
        }
        c->sent += (size_t)put;
    }
    if (c->group->kind == SLOW && now >= c->due)
        c->due = now + DRIP;
    watch(c, EPOLL_CTL_MOD, c->group->kind == DEAF ? EPOLLRDHUP : EPOLLIN);
}

static void begin(struct client *c, uint64_t now)
{
    struct group *g = c->group;
    c->name = &g->names[g->turn++ % g->name_count];
    c->begin = g->kind == PROBE && c->due ? c->due : now;
    c->sent = c->in.size = c->body.size = c->head = c->chunk = 0;
    c->busy = true;
    if (c->fd < 0)
        connect_client(c, now);
    else
        send_more(c, now);
}

/* ---- answers ---- */
static const char *header(const struct client *c, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = c->in.data; (at = memmem(at, c->head - (size_t)(at - c->in.data), "\r\n", 2));) {
        at += 2;
        if ((size_t)(c->in.data + c->head - at) > size && strncasecmp(at, name, size) == 0)
            return at + size;
    }
    return NULL;
}

static void read_head(struct client *c)
{
    const char *end = memmem(c->in.data, c->in.size, "\r\n\r\n", 4), *length;
    if (!end)
        return;
    c->head = (size_t)(end - c->in.data) + 4;
    length = header(c, "content-length:");
    c->want = header(c, "transfer-encoding: chunked") ? SIZE_MAX : length ? strtoul(length, NULL, 10) : 0;
    c->chunk = c->head;
}

/* True when the last one is there. */
static bool read_chunks(struct client *c)
{
    for (;;) {
        const char *at = c->in.data + c->chunk, *line = memmem(at, c->in.size - c->chunk, "\r\n", 2);
        if (!line)
            return false;
        size_t size = strtoul(at, NULL, 16), start = (size_t)(line - c->in.data) + 2;
        if (c->in.size < start + size + 2)
            return false;
        append(&c->body, c->in.data + start, size);
        c->chunk = start + size + 2;
        if (!size)
            return true;
    }
}

static void keep_wrong(const struct client *c, const char *body, size_t size)
{
    char path[512];
    c->group->wrong++;
    if (wrong_files >= MAX_WRONG)
        return;
    snprintf(path, sizeof path, "%s/wrong-%zu", directory, wrong_files++);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "%.*s\n", (int)c->name->head, c->name->request.data);
    fwrite(body, 1, size, f);
    fclose(f);
}

static void count_answer(struct group *g, int status, const char *body, size_t size)
{
    char text[TEXT] = "";
    if (status != 200)
        snprintf(text, sizeof text, "%.*s", (int)(size < TEXT ? size : TEXT - 1), body);
    size_t alike = 0; /* of bodies that are never the same, a few stand for all */
    for (size_t i = 0; i < g->answer_count; i++) {
        alike += g->answers[i].status == status;
        if (g->answers[i].status == status && (alike == TEXTS_A_STATUS || strcmp(g->answers[i].text, text) == 0)) {
            g->answers[i].count++;
            return;
        }
    }
    if (g->answer_count == MAX_TEXTS)
        fail(g->title, "too many kinds of answers");
    g->answers[g->answer_count].status = status;
    memcpy(g->answers[g->answer_count].text, text, sizeof text);
    g->answers[g->answer_count++].count = 1;
}

static void answered(struct client *c, const char *body, size_t size, uint64_t now)
{
    struct group *g = c->group;
    int status = c->in.size > 12 ? (int)strtol(c->in.data + 9, NULL, 10) : 0;
    const char *connection = header(c, "connection: close");
    const struct bytes *right = &c->name->answer;
    count_answer(g, status, body, size);
    if (status == 200 && right->data && (right->size != size || memcmp(right->data, body, size) != 0))
        keep_wrong(c, body, size);
    note_time(status == 200 ? &g->good : &g->refused, now - c->begin);
    c->busy = c->fresh = false;
    c->due = g->kind == PROBE ? c->begin + PROBE_EVERY : status == 200 ? now : now + PAUSE;
    if (connection || g->kind == SLOW)
        hang_up(c, c->due);
}

/* Nothing on a connection that was used before: the server may end it at any time, and the request is sent again. */
static void ended(struct client *c, uint64_t now)
{
    if (c->busy && c->in.size)
        c->group->cut++;
    else if (c->busy && c->fresh)
        c->group->lost++;
    hang_up(c, now + (c->fresh ? PAUSE : 0));
}

static void receive(struct client *c, uint64_t now)
{
    char buffer[65536];
    for (;;) {
        ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            ended(c, now);
            return;
        }
        append(&c->in, buffer, (size_t)got);
        if (!c->head)
            read_head(c);
        if (c->head && c->want == SIZE_MAX) {
            if (read_chunks(c)) {
                answered(c, c->body.data, c->body.size, now);
                return;
            }
        } else if (c->head && c->in.size >= c->head + c->want) {
            answered(c, c->in.data + c->head, c->want, now);
            return;
        }
    }
}

static void on_event(struct client *c, uint32_t events, uint64_t now)
{
    if (c->fd < 0)
        return;
    if (c->group->kind == DEAF && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        ended(c, now);
        return;
    }
    if (events & EPOLLOUT && c->busy)
        send_more(c, now);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(c, now);
}

static void on_step(struct client *c, uint64_t now)
{
    if (!c->busy && now >= c->due)
        begin(c, now);
    else if (c->busy && c->group->kind == SLOW && c->fd >= 0 && c->sent >= c->name->head && now >= c->due)
        send_more(c, now);
    else if (c->busy && c->fd < 0 && now >= c->due)
        connect_client(c, now);
}

/* ---- the end ---- */
static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, struct times *t)
{
    qsort(t->us, t->count, sizeof *t->us, by_size);
    if (t->count)
        printf(", \"%s\": {\"p50\": %.2f, \"p99\": %.2f, \"worst\": %.2f}", name, t->us[t->count / 2] / 1e3,
               t->us[t->count * 99 / 100] / 1e3, t->us[t->count - 1] / 1e3);
}

static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_group(struct group *g)
{
    printf("{\"group\": \"%s\", \"wrong\": %zu, \"cut\": %zu, \"lost\": %zu, \"answers\": [", g->title, g->wrong,
           g->cut, g->lost);
    for (size_t i = 0; i < g->answer_count; i++) {
        printf("%s[%d, %zu, ", i ? ", " : "", g->answers[i].status, g->answers[i].count);
        print_quoted(g->answers[i].text);
        putchar(']');
    }
    putchar(']');
    print_times("ms", &g->good);
    print_times("refusal_ms", &g->refused);
    puts("}");
}

static void run(struct client *clients, size_t count, uint64_t until)
{
    struct epoll_event events[256];
    uint64_t stepped = 0;
    for (uint64_t now; (now = now_ns()) < until;) {
        if (now - stepped >= STEP_MS * MS) {
            for (size_t i = 0; i < count; i++)
                on_step(&clients[i], now);
            stepped = now;
        }
        int got = epoll_wait(epoll_fd, events, 256, STEP_MS);
        now = now_ns();
        for (int i = 0; i < got; i++) {
            struct client *c = events[i].data.ptr;
            on_event(c, events[i].events, now);
            if (!c->busy && c->group->kind == ASK && now >= c->due)
                begin(c, now);
        }
    }
}

int main(int argc, char **argv)
{
    static struct group groups[MAX_GROUPS];
    struct client *clients = NULL;
    size_t group_count = 0, count = 0, room = 0;
    char *line = NULL;
    if (argc != 4)
        fail("usage", "load PORT SECONDS DIRECTORY <PLAN");
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    directory = argv[3];
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    while (getline(&line, &room, stdin) > 0 && group_count < MAX_GROUPS) {
        struct group *g = &groups[group_count++];
        size_t more = read_group(line, g);
        clients = grown(clients, (count + more) * sizeof *clients);
        for (size_t i = 0; i < more; i++)
            clients[count++] = (struct client){.group = g, .fd = -1};
    }
    run(clients, count, now_ns() + (uint64_t)(atof(argv[2]) * 1e9));
    uint64_t now = now_ns();
    for (size_t i = 0; i < count; i++) /* what still waits has waited at least so long */
        if (clients[i].group->kind == PROBE && clients[i].busy)
            note_time(&clients[i].group->good, now - clients[i].begin);
    for (size_t i = 0; i < group_count; i++)
        print_group(&groups[i]);
    free(clients);
    free(line);
    return 0;
}
