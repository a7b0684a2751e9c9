/* Interrupts, and network interfaces whose channels own some of them. */
#define _GNU_SOURCE
#include "tree.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_IRQS 4096

struct irq {
    unsigned number, effective;
    int node;
    char *chip, *label;
    bool managed, counting; /* counting: traffic makes its row of /proc/interrupts grow */
    struct cpus affinity;
    unsigned long count[MAX_CPUS];
    struct node *directory;
};

struct nic {
    char *name, *label, *chip;
    struct node *device, *queues, *channels;
    unsigned maximum, current, first_irq, step, control_irqs;
    struct cpus local;
    int node;
};

static struct irq *irqs[MAX_IRQS];

static unsigned vectors_on(unsigned cpu) {
    unsigned count = 0;
    for (unsigned i = 0; i < MAX_IRQS; i++)
        count += irqs[i] && irqs[i]->effective == cpu;
    return count;
}

/* The CPU of the set that serves the fewest vectors, the first among equals; -ENOSPC when every one is full. */
static int settle(struct irq *irq, const struct cpus *set) {
    struct cpus online = cpus_online(), allowed = cpus_and(set, &online);
    unsigned best = MAX_CPUS, fewest = 0;
    if (cpus_empty(&allowed))
        return -EINVAL;
    for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
        if (cpus_has(&allowed, cpu)) {
            unsigned here = vectors_on(cpu) - (irq->effective == cpu);
            if (here < vectors_per_cpu && (best == MAX_CPUS || here < fewest))
                best = cpu, fewest = here;
        }
    if (best == MAX_CPUS)
        return -ENOSPC;
    irq->affinity = *set;
    irq->effective = best;
    return 0;
}

/* flags: `managed` (a write gives EIO), `counting`, or `-`. */
void irq_make(unsigned number, const char *cpus, int node, const char *chip, const char *label, const char *flags) {
    struct irq *irq = calloc(1, sizeof *irq);
    struct cpus set;
    char path[64];
    if (!irq || number >= MAX_IRQS || cpus_parse_list(cpus, &set, nr_cpus)) {
        fprintf(stderr, "kernel: irq %u on `%s`: not possible\n", number, cpus);
        exit(2);
    }
    irq->number = number;
    irq->node = node;
    irq->chip = strdup(chip);
    irq->label = strdup(label);
    irq->managed = strstr(flags, "managed");
    irq->counting = strstr(flags, "counting");
    irq->effective = MAX_CPUS;
    if (settle(irq, &set))
        irq->effective = 0, irq->affinity = set;
    irqs[number] = irq;
    snprintf(path, sizeof path, "proc/irq/%u", number);
    irq->directory = node_make_directory(NULL, path);
    irq->directory->changing = irq->directory->parent->changing = true;
    node_make_file(irq->directory, "smp_affinity", "irq_mask", "")->object = irq;
    node_make_file(irq->directory, "smp_affinity_list", "irq_list", "")->object = irq;
    node_make_file(irq->directory, "effective_affinity", "irq_effective_mask", "")->object = irq;
    node_make_file(irq->directory, "effective_affinity_list", "irq_effective_list", "")->object = irq;
    cpus_format_mask(&set, nr_cpus, path, sizeof path);
    node_make_file(irq->directory, "affinity_hint", "ro", irq->counting ? path : "0")->mode = 0100400;
    snprintf(path, sizeof path, "%d", node);
    node_make_file(irq->directory, "node", "ro", path);
    node_make_file(irq->directory, "spurious", "ro", "count 0\nunhandled 0\nlast_unhandled 0 ms");
    if (*label)
        node_make_directory(irq->directory, label);
}

static void irq_unmake(unsigned number) {
    struct irq *irq = number < MAX_IRQS ? irqs[number] : NULL;
    if (!irq)
        return;
    irqs[number] = NULL;
    node_remove(irq->directory); /* the memory stays: a program may hold a file of it open */
}

static int set_affinity(struct irq *irq, struct cpus *set) { return irq->managed ? -EIO : settle(irq, set); }

int irq_store_mask(struct node *node, const char *text, size_t size) {
    struct cpus set;
    char copy[4096];
    int error = trimmed(text, size, copy, sizeof copy);
    if (((struct irq *)node->object)->managed)
        return -EIO;
    if (!error)
        error = cpus_parse_mask(copy, &set, nr_cpus);
    return error ? error : set_affinity(node->object, &set);
}

int irq_store_list(struct node *node, const char *text, size_t size) {
    struct cpus set;
    char copy[4096];
    int error = trimmed(text, size, copy, sizeof copy);
    if (((struct irq *)node->object)->managed)
        return -EIO;
    if (!error)
        error = cpus_parse_list(copy, &set, nr_cpus);
    return error ? error : set_affinity(node->object, &set);
}

static char *render(const struct cpus *set, bool list) {
    char text[4096];
    if (list)
        cpus_format_list(set, text, sizeof text);
    else
        cpus_format_mask(set, nr_cpus, text, sizeof text);
    return strdup(text);
}

static struct cpus effective_of(struct node *node) {
    struct cpus one = {0};
    cpus_put(&one, ((struct irq *)node->object)->effective, true);
    return one;
}

char *irq_show_mask(struct node *node) { return render(&((struct irq *)node->object)->affinity, false); }
char *irq_show_list(struct node *node) { return render(&((struct irq *)node->object)->affinity, true); }

char *irq_show_effective_mask(struct node *node) {
    struct cpus one = effective_of(node);
    return render(&one, false);
}

char *irq_show_effective_list(struct node *node) {
    struct cpus one = effective_of(node);
    return render(&one, true);
}

/* /proc/interrupts: a column for each online CPU. Counting interrupts have had 100 a second since the last look. */
char *irq_show_all(struct node *node) {
    static struct timespec last;
    struct timespec now;
    struct cpus online = cpus_online();
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    unsigned long passed;
    (void)node;
    clock_gettime(CLOCK_MONOTONIC, &now);
    passed = last.tv_sec ? (now.tv_sec - last.tv_sec) * 100 + (now.tv_nsec - last.tv_nsec) / 10000000 : 100000;
    if (passed)
        last = now;
    fprintf(out, "     ");
    for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
        if (cpus_has(&online, cpu))
            fprintf(out, "CPU%-8u", cpu);
    for (unsigned i = 0; i < MAX_IRQS; i++) {
        struct irq *irq = irqs[i];
        if (!irq)
            continue;
        if (irq->counting)
            irq->count[irq->effective] += passed;
        fprintf(out, "\n%3u: ", i);
        for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
            if (cpus_has(&online, cpu))
                fprintf(out, "%10lu ", irq->count[cpu]);
        fprintf(out, "  %s      %s", irq->chip, irq->label);
    }
    fclose(out);
    return text;
}

/* Takes the queues and vectors away and makes them anew, as the driver does when the number of channels changes. */
static void open_channels(struct nic *nic, unsigned count) {
    char path[256], number[32], mask[1024], label[256];
    unsigned cpu = 0;
    for (unsigned i = 0; i < nic->current; i++) {
        unsigned irq = nic->first_irq + nic->control_irqs + i;
        struct node *entry;
        irq_unmake(irq);
        snprintf(path, sizeof path, "msi_irqs/%u", irq);
        if ((entry = node_find(nic->device, path)))
            node_remove(entry);
        for (int side = 0; side < 2; side++) {
            snprintf(path, sizeof path, "%s-%u", side ? "tx" : "rx", i);
            if ((entry = node_find(nic->queues, path)))
                node_remove(entry);
        }
    }
    nic->current = count;
    for (unsigned i = 0; i < count; i++) {
        unsigned irq = nic->first_irq + nic->control_irqs + i;
        struct cpus one = {0};
        /* cpumask_local_spread: the CPUs of the interface's own node in turn */
        for (unsigned tries = 0; tries < nr_cpus && !cpus_has(&nic->local, cpu); tries++)
            cpu = (cpu + 1) % nr_cpus;
        cpus_put(&one, cpu, true);
        cpus_format_list(&one, number, sizeof number);
        cpu = (cpu + 1) % nr_cpus;
        snprintf(label, sizeof label, "%s", nic->label);
        {
            char *percent = strchr(label, '%');
            if (percent)
                snprintf(percent, sizeof label - (percent - label), "%u", i * nic->step);
        }
        irq_make(irq, number, nic->node, nic->chip, label, "counting");
        snprintf(path, sizeof path, "msi_irqs/%u", irq);
        node_make_file(nic->device, path, "ro", "msix");
        cpus_format_mask(&(struct cpus){{0}}, nr_cpus, mask, sizeof mask);
        snprintf(path, sizeof path, "rx-%u/rps_cpus", i);
        node_make_file(nic->queues, path, "mask", mask);
        snprintf(path, sizeof path, "rx-%u/rps_flow_cnt", i);
        node_make_file(nic->queues, path, "flow_count", "0");
        snprintf(path, sizeof path, "tx-%u/tx_timeout", i);
        node_make_file(nic->queues, path, "ro", "0");
        snprintf(path, sizeof path, "tx-%u/tx_maxrate", i);
        node_make_file(nic->queues, path, "number", "0");
        if (count > 1) {
            cpus_format_mask(&one, nr_cpus, mask, sizeof mask);
            snprintf(path, sizeof path, "tx-%u/xps_cpus", i);
            node_make_file(nic->queues, path, "mask", mask);
        }
    }
    snprintf(number, sizeof number, "%u %u", nic->maximum, count);
    node_text(nic->channels, number);
}

/* nic NAME DEVICE(path) MAXIMUM CURRENT FIRST_IRQ STEP NODE LOCAL_CPUS CHIP DATA_LABEL CONTROL_LABEL...
 * STEP: by how much the number in the label grows from one vector to the next. */
void nic_make(char *fields[], int count) {
    struct nic *nic = calloc(1, sizeof *nic);
    char path[256];
    if (!nic || count < 10) {
        fprintf(stderr, "kernel: a nic needs 10 fields\n");
        exit(2);
    }
    nic->name = strdup(fields[0]);
    nic->device = node_make_directory(NULL, fields[1]);
    nic->maximum = atoi(fields[2]);
    nic->first_irq = atoi(fields[4]);
    nic->step = atoi(fields[5]);
    nic->node = atoi(fields[6]);
    cpus_parse_list(fields[7], &nic->local, nr_cpus);
    nic->chip = strdup(fields[8]);
    nic->label = strdup(fields[9]);
    node_make_directory(nic->device, "msi_irqs")->changing = true;
    for (int i = 10; i < count; i++) {
        unsigned irq = nic->first_irq + nic->control_irqs++;
        irq_make(irq, fields[7], nic->node, nic->chip, fields[i], "-");
        snprintf(path, sizeof path, "msi_irqs/%u", irq);
        node_make_file(nic->device, path, "ro", "msix");
    }
    snprintf(path, sizeof path, "net/%s/queues", nic->name);
    nic->queues = node_make_directory(nic->device, path);
    nic->queues->changing = true;
    snprintf(path, sizeof path, "sys/kernel/recorded/channels/%s", nic->name);
    nic->channels = node_make_file(NULL, path, "channels", "");
    nic->channels->object = nic;
    open_channels(nic, atoi(fields[3]));
}

/* Written by the ethtool of the lab: the number of combined channels. Reads as `MAXIMUM CURRENT`. */
int nic_store_channels(struct node *node, const char *text, size_t size) {
    struct nic *nic = node->object;
    char copy[32];
    int error = trimmed(text, size, copy, sizeof copy), wanted = atoi(copy);
    if (error || wanted < 1 || (unsigned)wanted > nic->maximum)
        return -EINVAL;
    open_channels(nic, wanted);
    return 0;
}
