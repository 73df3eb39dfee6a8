/* Intrusive doubly linked list: the links are members of the items. All zeros is an empty list, or a link that is in no list.
 *
 *     struct job { struct sl_link queued; ... };
 *     struct sl_list queue = {0};
 *     sl_list_append(&queue, &job->queued);
 *     for (struct job *j = SL_LIST_FIRST(&queue, struct job, queued); j; j = SL_LIST_NEXT(j, queued))
 *
 * The list owns nothing. Remove an item before freeing it. */
#pragma once

#include <stddef.h>

struct sl_link {
    struct sl_link *next, *previous; /* NULL at the ends */
};

struct sl_list {
    struct sl_link *first, *last; /* NULL = empty */
};

static inline void sl_list_append(struct sl_list *list, struct sl_link *link)
{
    link->next = NULL;
    link->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = link; /* in an empty list it becomes the first */
    list->last = link;
}

static inline void sl_list_prepend(struct sl_list *list, struct sl_link *link)
{
    link->previous = NULL;
    link->next = list->first;
    *(list->first ? &list->first->previous : &list->last) = link; /* in an empty list it becomes the last */
    list->first = link;
}

/* Removes `link`, which must be in the list. */
static inline void sl_list_remove(struct sl_list *list, struct sl_link *link)
{
    *(link->previous ? &link->previous->next : &list->first) = link->next;
    *(link->next ? &link->next->previous : &list->last) = link->previous;
    link->next = link->previous = NULL;
}

/* Returns the item that has the link at `offset`; NULL for NULL. */
static inline void *sl_list_item(const struct sl_link *link, size_t offset)
{
    return link ? (char *)link - offset : NULL;
}

/* Returns the item whose `member` is the link; NULL for NULL. */
#define SL_LIST_ITEM(link, type, member)  ((type *)sl_list_item((link), offsetof(type, member)))
#define SL_LIST_FIRST(list, type, member) SL_LIST_ITEM((list)->first, type, member)
#define SL_LIST_LAST(list, type, member)  SL_LIST_ITEM((list)->last, type, member)
#define SL_LIST_NEXT(item, member)        SL_LIST_ITEM((item)->member.next, __typeof__(*(item)), member)
#define SL_LIST_PREVIOUS(item, member)    SL_LIST_ITEM((item)->member.previous, __typeof__(*(item)), member)
