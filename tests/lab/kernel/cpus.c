/* CPU lists and masks as the kernel parses and prints them (lib/bitmap.c of Linux 5.10). */
#define _GNU_SOURCE
#include "tree.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cpus_has(const struct cpus *set, unsigned cpu) { return set->word[cpu / 32] >> (cpu % 32) & 1; }

void cpus_put(struct cpus *set, unsigned cpu, bool present) {
    if (present)
        set->word[cpu / 32] |= 1u << (cpu % 32);
    else
        set->word[cpu / 32] &= ~(1u << (cpu % 32));
}

bool cpus_empty(const struct cpus *set) {
    for (unsigned i = 0; i < MAX_CPUS / 32; i++)
        if (set->word[i])
            return false;
    return true;
}

bool cpus_within(const struct cpus *set, const struct cpus *outer) {
    for (unsigned i = 0; i < MAX_CPUS / 32; i++)
        if (set->word[i] & ~outer->word[i])
            return false;
    return true;
}

bool cpus_equal(const struct cpus *a, const struct cpus *b) { return !memcmp(a, b, sizeof *a); }

struct cpus cpus_and(const struct cpus *a, const struct cpus *b) {
    struct cpus both;
    for (unsigned i = 0; i < MAX_CPUS / 32; i++)
        both.word[i] = a->word[i] & b->word[i];
    return both;
}

struct cpus cpus_online(void) {
    struct cpus online = {0};
    struct node *file = node_find(root, "sys/devices/system/cpu/online");
    if (file)
        cpus_parse_list(file->text, &online, nr_cpus);
    return online;
}

static bool number(const char **at, unsigned long *value) {
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *value = strtoul(*at, &end, 10);
    *at = end;
    return !errno;
}

/* `N`, `A-B`, `A-B:used/group`, separated by commas or blanks. */
int cpus_parse_list(const char *at, struct cpus *set, unsigned limit) {
    memset(set, 0, sizeof *set);
    for (;;) {
        unsigned long first, last, used, group;
        while (*at == ',' || isspace((unsigned char)*at))
            at++;
        if (!*at)
            return 0;
        if (!number(&at, &first))
            return -EINVAL;
        last = first;
        used = group = 1;
        if (*at == '-') {
            at++;
            if (!number(&at, &last))
                return -EINVAL;
            if (*at == ':') {
                at++;
                if (!number(&at, &used) || *at++ != '/' || !number(&at, &group))
                    return -EINVAL;
            }
        }
        if (*at && *at != ',' && !isspace((unsigned char)*at))
            return -EINVAL;
        if (first > last || !group || used > group)
            return -EINVAL;
        if (last >= limit)
            return -ERANGE;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            if ((cpu - first) % group < used)
                cpus_put(set, cpu, true);
    }
}

/* Comma-separated words of up to 8 hexadecimal digits, the most significant first. */
int cpus_parse_mask(const char *text, struct cpus *set, unsigned limit) {
    char copy[4096];
    unsigned chunk = 0, words = (limit + 31) / 32;
    memset(set, 0, sizeof *set);
    if (strlen(text) >= sizeof copy)
        return -EOVERFLOW;
    strcpy(copy, text);
    for (char *end = copy + strlen(copy); end > copy;) {
        char *start = end;
        uint32_t value = 0;
        while (start > copy && start[-1] != ',')
            start--;
        if (start < end) {
            if (end - start > 8)
                return -EOVERFLOW;
            for (char *c = start; c < end; c++) {
                if (!isxdigit((unsigned char)*c))
                    return -EINVAL;
                value = value << 4 | (isdigit((unsigned char)*c) ? *c - '0' : tolower((unsigned char)*c) - 'a' + 10);
            }
            if (chunk >= words)
                return -EOVERFLOW;
            set->word[chunk++] = value;
        }
        end = start > copy ? start - 1 : copy;
    }
    if (limit % 32 && set->word[words - 1] >> (limit % 32))
        return -EOVERFLOW;
    return 0;
}

void cpus_format_list(const struct cpus *set, char *buffer, size_t size) {
    size_t used = 0;
    buffer[0] = 0;
    for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
        unsigned last = cpu;
        if (!cpus_has(set, cpu))
            continue;
        while (last + 1 < MAX_CPUS && cpus_has(set, last + 1))
            last++;
        used += snprintf(buffer + used, size - used, last > cpu ? "%s%u-%u" : "%s%u", used ? "," : "", cpu, last);
        cpu = last;
    }
}

void cpus_format_mask(const struct cpus *set, unsigned limit, char *buffer, size_t size) {
    unsigned words = (limit + 31) / 32;
    size_t used = 0;
    for (unsigned i = words; i-- > 0;) {
        int digits = i == words - 1 && limit % 32 ? (int)(limit % 32 + 3) / 4 : 8;
        used += snprintf(buffer + used, size - used, "%s%0*x", used ? "," : "", digits, set->word[i]);
    }
}
