/* The tree of files: nodes, and reading a machine's description. */
#define _GNU_SOURCE
#include "tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct node *root;
unsigned nr_cpus = 1, nr_nodes = 1, vectors_per_cpu = 1024;

static void *need(void *memory) {
    if (!memory)
        abort();
    return memory;
}

struct node *node_child(struct node *directory, const char *name) {
    for (struct node *child = directory->first; child; child = child->next)
        if (!strcmp(child->name, name))
            return child;
    return NULL;
}

static struct node *add(struct node *parent, const char *name, mode_t mode) {
    struct node *node = need(calloc(1, sizeof *node));
    node->name = need(strdup(name));
    node->mode = mode;
    node->parent = parent;
    node->nlink = S_ISDIR(mode) ? 2 : 1;
    if (parent) {
        node->proc = parent->proc || (parent == root && !strcmp(name, "proc"));
        if (parent->last)
            parent->last->next = node;
        else
            parent->first = node;
        parent->last = node;
        if (S_ISDIR(mode))
            parent->nlink++;
    }
    return node;
}

struct node *node_find(struct node *from, const char *path) {
    char *copy = need(strdup(path)), *rest = copy, *name;
    while (from && (name = strsep(&rest, "/")))
        if (!strcmp(name, ".."))
            from = from->parent;
        else if (*name)
            from = node_child(from, name);
    free(copy);
    return from;
}

/* Makes the directory and those above it that are missing. */
struct node *node_make_directory(struct node *from, const char *path) {
    char *copy = need(strdup(path)), *rest = copy, *name;
    if (!root)
        root = add(NULL, "", S_IFDIR | 0755);
    if (!from)
        from = root;
    while ((name = strsep(&rest, "/"))) {
        struct node *child;
        if (!*name)
            continue;
        child = node_child(from, name);
        from = child ? child : add(from, name, S_IFDIR | 0755);
    }
    free(copy);
    return from;
}

static struct node *make(struct node *from, const char *path, mode_t mode) {
    char *copy = need(strdup(path)), *slash = strrchr(copy, '/');
    struct node *parent = from ? from : root, *node;
    const char *name = copy;
    if (slash) {
        *slash = 0;
        parent = node_make_directory(from, copy);
        name = slash + 1;
    }
    node = node_child(parent, name);
    if (node) { /* said again: the later word counts */
        free(node->text);
        node->text = NULL;
        node->mode = mode;
    } else {
        node = add(parent, name, mode);
    }
    free(copy);
    return node;
}

struct node *node_make_file(struct node *from, const char *path, const char *kind, const char *text) {
    size_t length = strcspn(kind, ":");
    struct node *node = make(from, path, S_IFREG | 0644);
    node->text = need(strdup(text));
    for (const struct kind *k = kinds; k->name; k++)
        if (strlen(k->name) == length && !strncmp(k->name, kind, length))
            node->kind = k;
    if (!node->kind) {
        fprintf(stderr, "kernel: `%s`: no kind `%s`\n", path, kind);
        exit(2);
    }
    node->parameter = kind[length] ? need(strdup(kind + length + 1)) : NULL;
    if (!node->kind->store)
        node->mode = S_IFREG | 0444;
    return node;
}

struct node *node_make_link(struct node *from, const char *path, const char *target) {
    struct node *node = make(from, path, S_IFLNK | 0777);
    node->text = need(strdup(target));
    return node;
}

static void mark_dead(struct node *node) {
    node->dead = true;
    for (struct node *child = node->first; child; child = child->next)
        mark_dead(child);
}

/* Takes the node out of the tree. Its memory stays: a program may hold it open. */
void node_remove(struct node *node) {
    struct node *parent = node->parent, *before = NULL;
    for (struct node *child = parent->first; child && child != node; child = child->next)
        before = child;
    if (before)
        before->next = node->next;
    else
        parent->first = node->next;
    if (parent->last == node)
        parent->last = before;
    if (S_ISDIR(node->mode))
        parent->nlink--;
    node->next = NULL;
    mark_dead(node);
}

void node_text(struct node *node, const char *text) {
    char *old = node->text;
    node->text = need(strdup(text));
    free(old);
}

const char *node_sibling(struct node *node, const char *name) {
    struct node *sibling = node_child(node->parent, name);
    return sibling && sibling->text ? sibling->text : "";
}

char *node_show(struct node *node) {
    if (node->kind && node->kind->show)
        return node->kind->show(node);
    return need(strdup(node->text ? node->text : ""));
}

/* `\n`, `\t` and `\\` in a field. */
static void unescape(char *text) {
    char *out = text;
    for (; *text; text++)
        if (*text == '\\' && text[1]) {
            text++;
            *out++ = *text == 'n' ? '\n' : *text == 't' ? '\t' : *text;
        } else {
            *out++ = *text;
        }
    *out = 0;
}

/* Reads a machine: one line a thing, fields separated by TABs. tests/lab/README.md lists them. */
void tree_load(const char *path) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    if (!file) {
        perror(path);
        exit(2);
    }
    node_make_directory(NULL, "");
    while (getline(&line, &capacity, file) > 0) {
        char *field[16] = {0}, *rest = line, *at;
        int count = 0;
        number++;
        line[strcspn(line, "\n")] = 0;
        while (count < 16 && (at = strsep(&rest, "\t")))
            field[count++] = at;
        for (int i = 0; i < count; i++)
            unescape(field[i]);
        if (!*field[0] || *field[0] == '#')
            continue;
        if (!strcmp(field[0], "cpus") && count == 4) {
            nr_cpus = atoi(field[1]);
            nr_nodes = atoi(field[2]);
            vectors_per_cpu = atoi(field[3]);
        } else if (!strcmp(field[0], "dir") && count == 2) {
            node_make_directory(NULL, field[1]);
        } else if (!strcmp(field[0], "link") && count == 3) {
            node_make_link(NULL, field[1], field[2]);
        } else if (!strcmp(field[0], "file") && count == 4) {
            node_make_file(NULL, field[1], field[2], field[3]);
        } else if (!strcmp(field[0], "irq") && count == 7) {
            irq_make(atoi(field[1]), field[2], atoi(field[3]), field[4], field[5], field[6]);
        } else if (!strcmp(field[0], "mode") && count == 3 && node_find(root, field[1])) {
            node_find(root, field[1])->mode = S_IFREG | strtoul(field[2], NULL, 8);
        } else if (!strcmp(field[0], "node") || !strcmp(field[0], "devlink") || !strcmp(field[0], "netns") ||
                   !strcmp(field[0], "udev")) {
            /* for /dev, the udev database and the network namespace: the host's own start-up reads these */
        } else if (!strcmp(field[0], "nic")) {
            nic_make(field + 1, count - 1);
        } else if (!strcmp(field[0], "cpuset") && count == 2) {
            cpuset_make(node_make_directory(NULL, field[1]));
        } else {
            fprintf(stderr, "kernel: %s:%u: cannot read `%s` with %d fields\n", path, number, field[0], count);
            exit(2);
        }
    }
    free(line);
    fclose(file);
}
