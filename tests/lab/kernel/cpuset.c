/* The cpuset hierarchy of cgroup v1 (kernel/cgroup/cpuset.c of Linux 5.10). */
#define _GNU_SOURCE
#include "tree.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool marked(const struct node *node) { return node->object != NULL; }

bool cpuset_is(const struct node *node) { return S_ISDIR(node->mode) && marked(node); }

static struct node *file_of(struct node *group, const char *name) { return node_child(group, name); }

static struct cpus set_of(struct node *group, const char *name) {
    struct cpus set = {0};
    struct node *file = file_of(group, name);
    if (file)
        cpus_parse_list(file->text, &set, MAX_CPUS);
    return set;
}

static bool is_set(struct node *group, const char *name) { return atoi(file_of(group, name)->text); }

static bool populated(struct node *group) { return *file_of(group, "cgroup.procs")->text; }

/* Makes the files of a group; the first group of a machine has every CPU and node. */
void cpuset_make(struct node *group) {
    struct node *parent = group->parent && cpuset_is(group->parent) ? group->parent : NULL;
    char cpus[32] = "", mems[32] = "";
    static int mark;
    if (cpuset_is(group))
        return;
    if (!parent) {
        snprintf(cpus, sizeof cpus, nr_cpus > 1 ? "0-%u" : "0", nr_cpus - 1);
        snprintf(mems, sizeof mems, nr_nodes > 1 ? "0-%u" : "0", nr_nodes - 1);
    }
    group->object = &mark;
    group->changing = true;
    node_make_file(group, "cpuset.cpus", parent ? "cpuset_cpus" : "ro", cpus);
    node_make_file(group, "cpuset.mems", parent ? "cpuset_mems" : "ro", mems);
    node_make_file(group, "cpuset.effective_cpus", "ro", cpus);
    node_make_file(group, "cpuset.effective_mems", "ro", mems);
    node_make_file(group, "cpuset.cpu_exclusive", "cpuset_flag", parent ? "0" : "1");
    node_make_file(group, "cpuset.mem_exclusive", "cpuset_flag", parent ? "0" : "1");
    node_make_file(group, "cpuset.mem_hardwall", "cpuset_flag", "0");
    node_make_file(group, "cpuset.memory_migrate", "cpuset_flag", "0");
    node_make_file(group, "cpuset.memory_pressure", "ro", "0");
    node_make_file(group, "cpuset.memory_spread_page", "cpuset_flag", "0");
    node_make_file(group, "cpuset.memory_spread_slab", "cpuset_flag", "0");
    node_make_file(group, "cpuset.sched_load_balance", "cpuset_flag", "1");
    node_make_file(group, "cpuset.sched_relax_domain_level", "number:-1:5", "-1");
    node_make_file(group, "cgroup.clone_children", "cpuset_flag", "0");
    node_make_file(group, "notify_on_release", "cpuset_flag", "0");
    node_make_file(group, "tasks", "cpuset_task:empty", "");
    node_make_file(group, "cgroup.procs", "cpuset_task:empty", "");
    if (parent && is_set(parent, "cgroup.clone_children")) {
        static const char *const copied[] = {"cpuset.cpus", "cpuset.mems", "cpuset.effective_cpus",
                                             "cpuset.effective_mems", "cgroup.clone_children"};
        for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
            node_text(file_of(group, copied[i]), file_of(parent, copied[i])->text);
    }
}

int cpuset_mkdir(struct node *parent, const char *name) {
    if (node_child(parent, name))
        return -EEXIST;
    cpuset_make(node_make_directory(parent, name));
    return 0;
}

int cpuset_rmdir(struct node *group) {
    if (!group->parent || !cpuset_is(group->parent) || populated(group))
        return -EBUSY;
    for (struct node *child = group->first; child; child = child->next)
        if (S_ISDIR(child->mode))
            return -EBUSY;
    node_remove(group);
    return 0;
}

/* The checks of validate_change, in its order. */
static int store(struct node *file, const char *text, size_t size, bool cpus) {
    struct node *group = file->parent, *parent = group->parent;
    const char *name = cpus ? "cpuset.cpus" : "cpuset.mems";
    const char *exclusive = cpus ? "cpuset.cpu_exclusive" : "cpuset.mem_exclusive";
    struct cpus wanted, outer = set_of(parent, name);
    char copy[4096];
    int error = trimmed(text, size, copy, sizeof copy);
    if (!error)
        error = cpus_parse_list(copy, &wanted, cpus ? nr_cpus : MAX_CPUS);
    if (error)
        return error;
    if (!cpus && !cpus_empty(&wanted)) {
        struct cpus online = {0};
        for (unsigned node = 0; node < nr_nodes; node++)
            cpus_put(&online, node, true);
        if (!cpus_within(&wanted, &online))
            return -EINVAL;
    }
    for (struct node *child = group->first; child; child = child->next)
        if (S_ISDIR(child->mode)) {
            struct cpus inner = set_of(child, name);
            if (!cpus_within(&inner, &wanted))
                return -EBUSY;
        }
    if (!cpus_within(&wanted, &outer))
        return -EACCES;
    for (struct node *other = parent->first; other; other = other->next)
        if (S_ISDIR(other->mode) && other != group && (is_set(group, exclusive) || is_set(other, exclusive))) {
            struct cpus theirs = set_of(other, name), both = cpus_and(&wanted, &theirs);
            if (!cpus_empty(&both))
                return -EINVAL;
        }
    if (populated(group) && cpus_empty(&wanted))
        return -ENOSPC;
    cpus_format_list(&wanted, copy, sizeof copy);
    node_text(file, copy);
    if (cpus) {
        struct cpus online = cpus_online();
        wanted = cpus_and(&wanted, &online);
        cpus_format_list(&wanted, copy, sizeof copy);
    }
    node_text(file_of(group, cpus ? "cpuset.effective_cpus" : "cpuset.effective_mems"), copy);
    return 0;
}

int cpuset_store_cpus(struct node *file, const char *text, size_t size) { return store(file, text, size, true); }
int cpuset_store_mems(struct node *file, const char *text, size_t size) { return store(file, text, size, false); }

/* Keeps the number only: a recorded group moves no process. */
int cpuset_store_task(struct node *file, const char *text, size_t size) {
    struct node *group = file->parent;
    char copy[32], *end, *list;
    long pid;
    if (trimmed(text, size, copy, sizeof copy))
        return -EINVAL;
    pid = strtol(copy, &end, 10);
    if (!*copy || *end || pid < 0)
        return -EINVAL;
    if (!*file_of(group, "cpuset.effective_cpus")->text || !*file_of(group, "cpuset.effective_mems")->text)
        return -ENOSPC;
    if (asprintf(&list, "%s%s%ld", file->text, *file->text ? "\n" : "", pid) < 0)
        return -ENOMEM;
    node_text(file_of(group, "tasks"), list);
    node_text(file_of(group, "cgroup.procs"), list);
    free(list);
    return 0;
}

int cpuset_store_flag(struct node *file, const char *text, size_t size) {
    char copy[32], *end;
    if (trimmed(text, size, copy, sizeof copy))
        return -EINVAL;
    unsigned long value = strtoul(copy, &end, 0);
    if (!*copy || *end || copy[0] == '-')
        return -EINVAL;
    node_text(file, value ? "1" : "0");
    return 0;
}
