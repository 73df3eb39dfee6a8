#include <stdio.h>

struct item {
    const char *name;
    int price;
};

static int price(const struct item *item)
{
    return item->price;
}

int total(struct item *const *items, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += price(items[i]);
    return sum;
}

int main(void)
{
    struct item tea = {"tea", 3};
    struct item *basket[] = {&tea, NULL};
    printf("%d\n", total(basket, 2));
    return 0;
}
