/* The recorded kernel: what its files share. One process serves the /proc and /sys of one host. */
#ifndef TREE_H
#define TREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_CPUS 1024

struct cpus { uint32_t word[MAX_CPUS / 32]; };

struct irq;
struct nic;

/* A file's kind says what a write to it does; `parameter` holds what follows the colon in the machine file. */
struct kind;

struct node {
    struct node *parent, *first, *last, *next;
    char *name;
    char *text;         /* a file's content without its last newline, or a link's target */
    const struct kind *kind; /* files only */
    const char *parameter;
    void *object;       /* the irq, cpuset or network interface behind a file or directory */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    unsigned nlink;
    bool dead;          /* removed, while a program may hold it open */
    bool changing;      /* a directory whose entries come and go: the machine must not cache them */
    bool proc;          /* below /proc: size 0, as procfs has it; below /sys 4096 */
};

struct kind {
    const char *name;
    /* Takes a write; 0 or a negative errno. Null: the file is read-only. */
    int (*store)(struct node *, const char *text, size_t size);
    /* Renders what a reader sees into a malloc'ed string; null: the text as it is. */
    char *(*show)(struct node *);
};

extern const struct kind kinds[];
extern unsigned nr_cpus, nr_nodes, vectors_per_cpu;
extern struct node *root;

/* tree.c */
struct node *node_find(struct node *from, const char *path);
struct node *node_make_directory(struct node *from, const char *path);
struct node *node_make_file(struct node *from, const char *path, const char *kind, const char *text);
struct node *node_make_link(struct node *from, const char *path, const char *target);
struct node *node_child(struct node *, const char *name);
void node_remove(struct node *);
void node_text(struct node *, const char *text);
const char *node_sibling(struct node *, const char *name);
char *node_show(struct node *);
void tree_load(const char *path);

/* cpus.c */
int cpus_parse_list(const char *text, struct cpus *, unsigned limit);
int cpus_parse_mask(const char *text, struct cpus *, unsigned limit);
void cpus_format_list(const struct cpus *, char *buffer, size_t size);
void cpus_format_mask(const struct cpus *, unsigned limit, char *buffer, size_t size);
bool cpus_has(const struct cpus *, unsigned cpu);
void cpus_put(struct cpus *, unsigned cpu, bool present);
bool cpus_empty(const struct cpus *);
bool cpus_within(const struct cpus *, const struct cpus *outer);
bool cpus_equal(const struct cpus *, const struct cpus *);
struct cpus cpus_and(const struct cpus *, const struct cpus *);
struct cpus cpus_online(void);

/* store.c */
int trimmed(const char *text, size_t size, char *buffer, size_t capacity);

/* irq.c */
void irq_make(unsigned number, const char *cpus, int node, const char *chip, const char *label, const char *flags);
void nic_make(char *fields[], int count);
int irq_store_mask(struct node *, const char *, size_t);
int irq_store_list(struct node *, const char *, size_t);
char *irq_show_mask(struct node *);
char *irq_show_list(struct node *);
char *irq_show_effective_mask(struct node *);
char *irq_show_effective_list(struct node *);
char *irq_show_all(struct node *);
int nic_store_channels(struct node *, const char *, size_t);

/* cpuset.c */
void cpuset_make(struct node *directory);
int cpuset_mkdir(struct node *parent, const char *name);
int cpuset_rmdir(struct node *);
bool cpuset_is(const struct node *);
int cpuset_store_cpus(struct node *, const char *, size_t);
int cpuset_store_mems(struct node *, const char *, size_t);
int cpuset_store_task(struct node *, const char *, size_t);
int cpuset_store_flag(struct node *, const char *, size_t);

#endif
