// One program for every format: templates and inlined calls in quantity, and nothing of a standard library.
namespace shapes
{
template <typename T, int N> class row
{
    T items_[N];
    int count_ = 0;

  public:
    int size() const { return count_; }
    bool full() const { return count_ == N; }
    T &at(int i) { return items_[i < 0 ? 0 : i >= N ? N - 1 : i]; }
    const T &at(int i) const { return items_[i < 0 ? 0 : i >= N ? N - 1 : i]; }
    bool push(const T &item)
    {
        if (full())
            return false;
        items_[count_++] = item;
        return true;
    }
    template <typename F> void each(F f)
    {
        for (int i = 0; i < count_; i++)
            f(at(i));
    }
    template <typename F> void sort(F less)
    {
        for (int i = 1; i < count_; i++)
            for (int j = i; j > 0 && less(at(j), at(j - 1)); j--)
                swap(at(j), at(j - 1));
    }

  private:
    static void swap(T &a, T &b)
    {
        T kept = a;
        a = b;
        b = kept;
    }
};

struct point {
    int x, y;
    bool operator<(const point &other) const { return x != other.x ? x < other.x : y < other.y; }
    point operator+(const point &other) const { return {x + other.x, y + other.y}; }
};

static inline unsigned mix(unsigned hash, unsigned value)
{
    hash ^= value;
    hash *= 16777619u;
    return hash ^ hash >> 13;
}

namespace
{
inline unsigned hash(int value)
{
    return mix(2166136261u, (unsigned)value);
}
inline unsigned hash(const point &p)
{
    unsigned first = hash(p.x);
    return mix(first, hash(p.y));
}
template <typename T> inline unsigned hash(const T *items, int count)
{
    unsigned all = 0;
    for (int i = 0; i < count; i++)
        all = mix(all, hash(items[i]));
    return all;
}
} // namespace

struct shape {
    virtual int area(int scale) const = 0;
    virtual int edges() const { return 0; }
};

template <int N> struct polygon : shape {
    row<point, N> corners;
    int area(int scale) const override
    {
        int twice = 0;
        for (int i = 0; i < corners.size(); i++) {
            const point &a = corners.at(i), &b = corners.at((i + 1) % N);
            twice += a.x * b.y - b.x * a.y;
        }
        return twice / 2 * scale;
    }
    int edges() const override { return corners.full() ? N : corners.size() - 1; }
    void grow(int by)
    {
        corners.each([by](point &p) { p = p + point{by, -by}; });
    }
};
} // namespace shapes

volatile int sink;

template <typename T, int N> struct task {
    __attribute__((noinline)) static unsigned run(T first, int steps)
    {
        shapes::row<T, N> row;
        for (int i = 0; i < steps && row.push(first); i++)
            sink = i;
        row.sort([](const T &a, const T &b) {
            sink++;
            return a < b;
        });
        row.each([](T &item) { sink = (int)shapes::hash(item); });
        return shapes::hash(&row.at(0), row.size()) + task<T, N - 1>::run(first, steps - 1);
    }
};
template <typename T> struct task<T, 0> {
    static unsigned run(T, int) { return 0; }
};

template <int N> __attribute__((noinline)) int surface(int scale)
{
    shapes::polygon<N> p;
    for (int i = 0; i < N; i++)
        p.corners.push(shapes::point{i, sink});
    p.grow(scale);
    const shapes::shape &as_shape = p;
    switch (scale & 3) {
    case 0: sink = N; break;
    case 1: sink = as_shape.edges(); break;
    case 2: return as_shape.area(scale) + surface<N - 1>(scale + 1);
    }
    return as_shape.area(1) + surface<N - 1>(scale);
}
template <> __attribute__((noinline)) int surface<2>(int scale)
{
    return scale;
}

extern "C" int entry(int n)
{
    shapes::point origin = {n, 0};
    return (int)(task<int, 12>::run(n, n) + task<shapes::point, 12>::run(origin, n)) + surface<16>(n);
}
#if defined(__MINGW32__)
extern "C" void __cxa_pure_virtual() {}
int main(int argc, char **)
{
    return entry(argc);
}
#endif
