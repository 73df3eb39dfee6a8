#include "function/undecorate.h"

static bool decimal(struct sl_str text, uint32_t *value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || number > UINT32_MAX)
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *value = (uint32_t)number;
    return text.size > 0 && number <= UINT32_MAX;
}

static bool is_mangled(struct sl_str name)
{
    if (name.data[0] == '?' || (name.size > 2 && name.data[0] == '_' && (name.data[1] == 'Z' || name.data[1] == 'R')))
        return true;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == ':' || name.data[i] == '(' || name.data[i] == '<')
            return true;
    return false;
}

struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters)
{
    uint32_t size = 0;
    if (parameters)
        *parameters = 0;
    if (!name.size || is_mangled(name))
        return name;
    const char *at = memrchr(name.data, '@', name.size);
    size_t position = at ? (size_t)(at - name.data) : 0;
    bool counted = position && decimal((struct sl_str){at + 1, name.size - position - 1}, &size);
    bool prefixed = name.data[0] == '@' || name.data[0] == '_';
    if (counted && (name.data[position - 1] == '@' || prefixed)) {
        size_t skip = name.data[position - 1] == '@' ? 0 : 1;
        if (parameters)
            *parameters = size;
        return (struct sl_str){name.data + skip, position - 1};
    }
    return name.data[0] == '_' ? (struct sl_str){name.data + 1, name.size - 1} : name;
}
