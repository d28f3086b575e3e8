/*
 * Device names: every spelling, read into fields and written in the long form.
 * Pure functions. The grammar is TensorFlow's:
 *
 *     [/job:NAME][/replica:N][/task:N][/device:TYPE:N | /TYPE:N | TYPE:N]
 *
 * TYPE is cpu or gpu in any case; N of a TYPE may be left out (0).
 */
#include "tensor/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

static ls_status bad(const char *text, const char *why)
{
    return ls__hint(ls__fail(LS_INVALID, "device '%s': %s", text, why),
                    "write /cpu:0, or /job:worker/replica:0/task:1/device:CPU:0");
}

static bool read_number(const char *text, int *out)
{
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value > 65535)
        return false;
    *out = (int)value;
    return true;
}

static ls_status read_type(const char *whole, const char *part, ls__device_name *out)
{
    char type[16];
    size_t length = strcspn(part, ":");
    if (length >= sizeof type)
        return bad(whole, "there are CPU and GPU devices");
    for (size_t i = 0; i < length; i++)
        type[i] = (char)toupper((unsigned char)part[i]);
    type[length] = '\0';
    if (strcmp(type, "CPU") != 0 && strcmp(type, "GPU") != 0)
        return bad(whole, "there are CPU and GPU devices");
    if (out->type[0])
        return bad(whole, "two devices in one name");
    int index = 0;
    if (part[length] == ':' && !read_number(part + length + 1, &index))
        return bad(whole, "the number of a device runs from 0 to 65535");
    memcpy(out->type, type, sizeof type);
    out->index = index;
    return LS_OK;
}

static ls_status read_job(const char *whole, const char *name, ls__device_name *out)
{
    size_t length = strlen(name);
    bool fine = length > 0 && length < sizeof out->job && isalpha((unsigned char)name[0]);
    for (size_t i = 0; fine && i < length; i++)
        fine = isalnum((unsigned char)name[i]) || name[i] == '_';
    if (!fine)
        return bad(whole, "a job is a name of letters, digits and _");
    if (out->job[0])
        return bad(whole, "a field is given twice");
    memcpy(out->job, name, length + 1);
    return LS_OK;
}

/* replica and task: once each. */
static ls_status read_field(const char *whole, const char *number, const char *wants, int *out)
{
    if (*out >= 0)
        return bad(whole, "a field is given twice");
    return read_number(number, out) ? LS_OK : bad(whole, wants);
}

static ls_status read_part(const char *whole, const char *part, ls__device_name *out)
{
    if (strncasecmp(part, "job:", 4) == 0)
        return read_job(whole, part + 4, out);
    if (strncasecmp(part, "replica:", 8) == 0)
        return read_field(whole, part + 8, "replica wants a number", &out->replica);
    if (strncasecmp(part, "task:", 5) == 0)
        return read_field(whole, part + 5, "task wants a number", &out->task);
    if (strncasecmp(part, "device:", 7) == 0)
        return read_type(whole, part + 7, out);
    return read_type(whole, part, out);
}

ls_status ls__device_name_parse(const char *text, ls__device_name *out)
{
    *out = (ls__device_name){ .replica = -1, .task = -1, .index = -1 };
    if (!text)
        return ls__fail(LS_INVALID, "device: the name is NULL");
    if (strlen(text) >= LS_DEVICE_NAME_MAX)
        return ls__fail(LS_INVALID, "device: a name of %zu characters", strlen(text));
    const char *at = text[0] == '/' ? text + 1 : text;
    if (*at == '\0')
        return bad(text, "the name is empty");
    while (at) {
        char part[LS_DEVICE_NAME_MAX];
        const char *slash = strchr(at, '/');
        size_t length = slash ? (size_t)(slash - at) : strlen(at);
        memcpy(part, at, length);
        part[length] = '\0';
        ls_status st = read_part(text, part, out);
        if (st)
            return st;
        at = slash ? slash + 1 : NULL;
    }
    return LS_OK;
}

void ls__device_name_merge(ls__device_name *name, const ls__device_name *defaults)
{
    if (!name->job[0])
        memcpy(name->job, defaults->job, sizeof name->job);
    if (name->replica < 0)
        name->replica = defaults->replica;
    if (name->task < 0)
        name->task = defaults->task;
    if (!name->type[0]) {
        memcpy(name->type, defaults->type, sizeof name->type);
        name->index = defaults->index;
    }
}

void ls__device_name_format(const ls__device_name *n, char *out, size_t out_size)
{
    snprintf(out, out_size, "/job:%s/replica:%d/task:%d/device:%s:%d", n->job, n->replica, n->task,
             n->type, n->index);
}

static const ls__device_name own = { "localhost", 0, 0, "CPU", 0 };

ls_status ls_device_canonical(const char *name, const char *defaults, char *out, size_t out_size)
{
    ls__device_name parsed, from = own;
    ls_status st = ls__device_name_parse(name, &parsed);
    if (st)
        return st;
    if (defaults) {
        st = ls__device_name_parse(defaults, &from);
        if (st)
            return st;
        ls__device_name_merge(&from, &own);
    }
    if (!out || out_size < LS_DEVICE_NAME_MAX)
        return ls__fail(LS_INVALID, "ls_device_canonical: room for %zu characters, wants %d",
                        out ? out_size : 0, LS_DEVICE_NAME_MAX);
    ls__device_name_merge(&parsed, &from);
    ls__device_name_format(&parsed, out, out_size);
    return LS_OK;
}
