/* What a write to each kind of file does. The rules are those of Linux 5.10: kernel/sysctl.c, mm/page-writeback.c,
 * block/blk-sysfs.c, block/elevator.c, net/core/net-sysfs.c, mm/huge_memory.c. */
#define _GNU_SOURCE
#include "tree.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_number(struct node *node, unsigned long value) {
    char text[32];
    snprintf(text, sizeof text, "%lu", value);
    node_text(node, text);
}

static void put_sibling(struct node *node, const char *name, unsigned long value) {
    struct node *sibling = node_child(node->parent, name);
    if (sibling)
        put_number(sibling, value);
}

/* The written text without the blanks around it. */
int trimmed(const char *text, size_t size, char *buffer, size_t capacity) {
    while (size && isspace((unsigned char)*text))
        text++, size--;
    while (size && (isspace((unsigned char)text[size - 1]) || !text[size - 1]))
        size--;
    if (size >= capacity)
        return -EINVAL;
    memcpy(buffer, text, size);
    buffer[size] = 0;
    return 0;
}

static int whole_number(const char *text, int base, unsigned long *value) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    *value = strtoul(text, &end, base);
    return errno == ERANGE ? -ERANGE : *end ? -EINVAL : 0;
}

static int take_number(const char *text, size_t size, int base, unsigned long *value) {
    char copy[64];
    int error = trimmed(text, size, copy, sizeof copy);
    return error ? error : whole_number(copy, base, value);
}

static int store_text(struct node *node, const char *text, size_t size) {
    char copy[4096];
    int error = trimmed(text, size, copy, sizeof copy);
    if (!error)
        node_text(node, copy);
    return error;
}

static int store_nothing(struct node *node, const char *text, size_t size) {
    (void)node, (void)text, (void)size;
    return 0;
}

static int store_uevent(struct node *node, const char *text, size_t size) {
    static const char *const actions[] = {"add", "remove", "change", "move", "online", "offline", "bind", "unbind"};
    char copy[256];
    int error = trimmed(text, size, copy, sizeof copy);
    (void)node;
    copy[strcspn(copy, " ")] = 0;
    for (size_t i = 0; !error && i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(copy, actions[i]))
            return 0;
    return error ? error : -EINVAL;
}

/* `number:MIN:MAX`, a sysctl: any base; a leading minus only where MIN is negative. */
static int store_number(struct node *node, const char *text, size_t size) {
    char copy[64], *end;
    long long low = 0, high = 2147483647, value;
    int error = trimmed(text, size, copy, sizeof copy);
    if (error)
        return error;
    if (node->parameter)
        sscanf(node->parameter, "%lld:%lld", &low, &high);
    if (!isdigit((unsigned char)copy[copy[0] == '-']))
        return -EINVAL;
    errno = 0;
    value = strtoll(copy, &end, 0);
    if (errno || *end || value < low || value > high)
        return -EINVAL;
    snprintf(copy, sizeof copy, "%lld", value);
    node_text(node, copy);
    return 0;
}

/* `numbers:MIN`, a vector: fewer numbers change the first ones only. */
static int store_numbers(struct node *node, const char *text, size_t size) {
    char copy[256], out[256] = "", *rest = copy, *word;
    long values[16];
    int count = 0, written = 0, error = trimmed(text, size, copy, sizeof copy);
    long low = node->parameter ? atol(node->parameter) : 0;
    char *old = strdupa(node->text);
    if (error)
        return error;
    while (count < 16 && (word = strsep(&old, "\t ")))
        if (*word)
            values[count++] = atol(word);
    while (written < count && (word = strsep(&rest, "\t "))) {
        char *end;
        if (!*word)
            continue;
        values[written] = strtol(word, &end, 0);
        if (*end || values[written] < low || values[written] > 2147483647)
            return -EINVAL;
        written++;
    }
    if (!written)
        return -EINVAL;
    for (int i = 0; i < count; i++)
        sprintf(out + strlen(out), "%s%ld", i ? "\t" : "", values[i]);
    node_text(node, out);
    return 0;
}

/* vm.dirty_*: a ratio and its bytes are an either/or pair. */
static int store_dirty(struct node *node, const char *text, size_t size) {
    bool bytes = strstr(node->name, "_bytes"), background = strstr(node->name, "background");
    char other[64];
    unsigned long value, before = strtoul(node->text, NULL, 10);
    char copy[64];
    int error = trimmed(text, size, copy, sizeof copy);
    if (!error)
        error = whole_number(copy, 0, &value);
    if (error == -ERANGE)
        return -EINVAL;
    if (error)
        return error;
    if (bytes ? value < (background ? 1 : 2 * 4096) : value > 100)
        return -EINVAL;
    put_number(node, value);
    snprintf(other, sizeof other, "dirty_%s%s", background ? "background_" : "", bytes ? "ratio" : "bytes");
    if (background || value != before)
        put_sibling(node, other, 0);
    return 0;
}

static unsigned long power_of_two(unsigned long value) {
    unsigned long power = 1;
    while (power < value)
        power <<= 1;
    return value ? power : 0;
}

/* rps_sock_flow_entries, rps_flow_cnt: any base, rounded up to a power of two. */
static int store_flow_entries(struct node *node, const char *text, size_t size) {
    unsigned long value;
    int error = take_number(text, size, 0, &value);
    if (error || value > 1ul << 29)
        return -EINVAL;
    put_number(node, power_of_two(value));
    return 0;
}

/* One word in brackets among those offered. */
static int store_bracket(struct node *node, const char *text, size_t size) {
    char wanted[64], out[512] = "", *rest, *word;
    bool found = false;
    int error = trimmed(text, size, wanted, sizeof wanted);
    char *old = strdupa(node->text);
    if (error || !*wanted)
        return -EINVAL;
    for (rest = old; (word = strsep(&rest, " "));) {
        if (*word == '[') {
            word++;
            word[strlen(word) - 1] = 0;
        }
        if (!*word)
            continue;
        sprintf(out + strlen(out), !strcmp(word, wanted) ? "%s[%s]" : "%s%s", *out ? " " : "", word);
        found |= !strcmp(word, wanted);
    }
    if (!found)
        return -EINVAL;
    node_text(node, out);
    return 0;
}

/* `choice:A B C`: exactly one of the words. */
static int store_choice(struct node *node, const char *text, size_t size) {
    char wanted[64], list[256], find[80];
    if (trimmed(text, size, wanted, sizeof wanted) || !*wanted)
        return -EINVAL;
    snprintf(list, sizeof list, " %s ", node->parameter);
    snprintf(find, sizeof find, " %s ", wanted);
    if (!strstr(list, find))
        return -EINVAL;
    node_text(node, wanted);
    return 0;
}

/* queue/scheduler. The text is one name; what is offered is the parameter, such as `mq-deadline kyber bfq`. */
static char *show_scheduler(struct node *node) {
    char out[256] = "", *list, *word;
    if (!node->parameter) /* no choice: a bio-based device */
        return strdup("none");
    list = strdupa(node->parameter);
    if (!strcmp(node->text, "none"))
        strcpy(out, "[none] ");
    while ((word = strsep(&list, " ")))
        sprintf(out + strlen(out), !strcmp(word, node->text) ? "[%s] " : "%s ", word);
    if (strcmp(node->text, "none"))
        strcat(out, "none");
    return strdup(out);
}

static int store_scheduler(struct node *node, const char *text, size_t size) {
    char wanted[64], list[256], find[80];
    struct node *requests = node_child(node->parent, "nr_requests");
    unsigned long depth = requests && requests->parameter ? strtoul(requests->parameter, NULL, 10) : 128;
    if (trimmed(text, size, wanted, sizeof wanted))
        return -EINVAL;
    if (!node->parameter)
        return 0; /* success, and nothing happens */
    if (!strcmp(wanted, "deadline"))
        strcpy(wanted, "mq-deadline"); /* the alias that the module declares */
    if (!strcmp(wanted, node->text))
        return 0;
    snprintf(list, sizeof list, " none %s ", node->parameter);
    snprintf(find, sizeof find, " %s ", wanted);
    if (!strstr(list, find))
        return -EINVAL;
    node_text(node, wanted);
    if (requests)
        put_number(requests, !strcmp(wanted, "none") ? depth : 2 * (depth < 128 ? depth : 128));
    return 0;
}

/* `nr_requests:DEPTH`: the depth of the hardware bounds it without a scheduler, 2048 with one. */
static int store_nr_requests(struct node *node, const char *text, size_t size) {
    unsigned long value, depth = node->parameter ? strtoul(node->parameter, NULL, 10) : 128;
    int error = take_number(text, size, 10, &value);
    if (error)
        return error;
    if (value < 4)
        value = 4;
    if (value > (strcmp(node_sibling(node, "scheduler"), "none") ? 2048 : depth))
        return -EINVAL;
    put_number(node, value);
    return 0;
}

static int store_read_ahead(struct node *node, const char *text, size_t size) {
    unsigned long value, page = node->parameter ? strtoul(node->parameter, NULL, 10) : 4;
    int error = take_number(text, size, 10, &value);
    if (!error)
        put_number(node, value / page * page);
    return error;
}

static int store_max_sectors(struct node *node, const char *text, size_t size) {
    unsigned long value, most = strtoul(node_sibling(node, "max_hw_sectors_kb"), NULL, 10);
    int error = take_number(text, size, 10, &value);
    if (error)
        return error;
    if (value > most || value < 4)
        return -EINVAL;
    put_number(node, value);
    return 0;
}

/* A yes or no of a queue: any number but 0 is 1. */
static int store_queue_flag(struct node *node, const char *text, size_t size) {
    unsigned long value;
    int error = take_number(text, size, 10, &value);
    if (!error)
        put_number(node, value != 0);
    return error;
}

static int store_nomerges(struct node *node, const char *text, size_t size) {
    unsigned long value;
    int error = take_number(text, size, 10, &value);
    if (!error)
        put_number(node, value == 2 ? 2 : value != 0);
    return error;
}

static int store_rq_affinity(struct node *node, const char *text, size_t size) {
    unsigned long value;
    int error = take_number(text, size, 10, &value);
    if (!error && value <= 2)
        put_number(node, value);
    return error;
}

/* rps_cpus, xps_cpus: kept as a mask; CPUs that are not online are dropped. */
static int store_mask(struct node *node, const char *text, size_t size) {
    char copy[4096];
    struct cpus set, online = cpus_online();
    int error = trimmed(text, size, copy, sizeof copy);
    if (!error)
        error = cpus_parse_mask(copy, &set, nr_cpus);
    if (error)
        return error;
    set = cpus_and(&set, &online);
    cpus_format_mask(&set, nr_cpus, copy, sizeof copy);
    node_text(node, copy);
    return 0;
}

/* cpuN/online: takes the CPU out of /sys/devices/system/cpu/online or puts it back. */
static int store_online(struct node *node, const char *text, size_t size) {
    unsigned long value;
    char list[4096];
    struct cpus online = cpus_online(), offline = {0};
    struct node *file;
    int error = take_number(text, size, 10, &value);
    if (error || value > 1)
        return -EINVAL;
    put_number(node, value);
    cpus_put(&online, atoi(node->parent->name + 3), value);
    cpus_format_list(&online, list, sizeof list);
    node_text(node_find(root, "sys/devices/system/cpu/online"), list);
    for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
        cpus_put(&offline, cpu, !cpus_has(&online, cpu));
    cpus_format_list(&offline, list, sizeof list);
    if ((file = node_find(root, "sys/devices/system/cpu/offline")))
        node_text(file, list);
    return 0;
}

/* cpufreq/scaling_{min,max}_freq: held within what the hardware can. */
static int store_frequency(struct node *node, const char *text, size_t size) {
    unsigned long value, least = strtoul(node_sibling(node, "cpuinfo_min_freq"), NULL, 10),
                         most = strtoul(node_sibling(node, "cpuinfo_max_freq"), NULL, 10);
    if (take_number(text, size, 10, &value))
        return -EINVAL;
    put_number(node, value < least ? least : value > most ? most : value);
    return 0;
}

const struct kind kinds[] = {
    {"ro", NULL, NULL},
    {"text", store_text, NULL},
    {"nothing", store_nothing, NULL},
    {"uevent", store_uevent, NULL},
    {"number", store_number, NULL},
    {"numbers", store_numbers, NULL},
    {"dirty", store_dirty, NULL},
    {"flow_entries", store_flow_entries, NULL},
    {"flow_count", store_flow_entries, NULL},
    {"bracket", store_bracket, NULL},
    {"choice", store_choice, NULL},
    {"scheduler", store_scheduler, show_scheduler},
    {"nr_requests", store_nr_requests, NULL},
    {"read_ahead", store_read_ahead, NULL},
    {"max_sectors", store_max_sectors, NULL},
    {"queue_flag", store_queue_flag, NULL},
    {"nomerges", store_nomerges, NULL},
    {"rq_affinity", store_rq_affinity, NULL},
    {"mask", store_mask, NULL},
    {"online", store_online, NULL},
    {"frequency", store_frequency, NULL},
    {"irq_mask", irq_store_mask, irq_show_mask},
    {"irq_list", irq_store_list, irq_show_list},
    {"irq_effective_mask", NULL, irq_show_effective_mask},
    {"irq_effective_list", NULL, irq_show_effective_list},
    {"interrupts", NULL, irq_show_all},
    {"channels", nic_store_channels, NULL},
    {"cpuset_cpus", cpuset_store_cpus, NULL},
    {"cpuset_mems", cpuset_store_mems, NULL},
    {"cpuset_task", cpuset_store_task, NULL},
    {"cpuset_flag", cpuset_store_flag, NULL},
    {NULL, NULL, NULL},
};
