/* Serves a recorded machine's /proc and /sys through FUSE: kernel MACHINE MOUNTPOINT [-f] */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include "tree.h"
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOREVER 86400.0

struct handle { struct node *node; char *text; size_t size; };

static struct node *node_of(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? root : (struct node *)(uintptr_t)number;
}

static struct stat stat_of(struct node *node) {
    struct stat st = {0};
    st.st_ino = node == root ? FUSE_ROOT_ID : (uintptr_t)node;
    st.st_mode = node->mode;
    st.st_nlink = node->nlink;
    st.st_uid = node->uid;
    st.st_gid = node->gid;
    st.st_size = S_ISREG(node->mode) && !node->proc ? 4096 : 0;
    st.st_blksize = 4096;
    return st;
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
    struct node *directory = node_of(parent), *node = directory->dead ? NULL : node_child(directory, name);
    struct fuse_entry_param entry = {0};
    double timeout = directory->changing ? 0 : FOREVER;
    entry.entry_timeout = timeout;
    if (node) {
        entry.ino = (uintptr_t)node;
        entry.attr = stat_of(node);
        entry.attr_timeout = S_ISDIR(node->mode) && node->changing ? 0 : FOREVER;
    }
    fuse_reply_entry(request, &entry); /* inode 0: absent, and may be remembered as such */
}

static void getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct stat st = stat_of(node_of(number));
    (void)info;
    fuse_reply_attr(request, &st, node_of(number)->changing ? 0 : FOREVER);
}

/* Truncation by `>` is accepted and does nothing, as in sysfs and procfs. */
static void setattr(fuse_req_t request, fuse_ino_t number, struct stat *wanted, int set, struct fuse_file_info *info) {
    struct node *node = node_of(number);
    struct stat st;
    (void)info;
    if (set & FUSE_SET_ATTR_MODE)
        node->mode = (node->mode & S_IFMT) | (wanted->st_mode & 07777);
    if (set & FUSE_SET_ATTR_UID)
        node->uid = wanted->st_uid;
    if (set & FUSE_SET_ATTR_GID)
        node->gid = wanted->st_gid;
    st = stat_of(node);
    fuse_reply_attr(request, &st, node->changing ? 0 : FOREVER);
}

static void get_link(fuse_req_t request, fuse_ino_t number) { fuse_reply_readlink(request, node_of(number)->text); }

static void open_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct node *node = node_of(number);
    struct handle *handle;
    if (node->dead) {
        fuse_reply_err(request, ENOENT);
        return;
    }
    if ((info->flags & O_ACCMODE) != O_RDONLY && !node->kind->store) {
        fuse_reply_err(request, EACCES);
        return;
    }
    handle = calloc(1, sizeof *handle);
    if (!handle) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    handle->node = node;
    info->fh = (uintptr_t)handle;
    info->direct_io = 1;
    fuse_reply_open(request, info);
}

static void read_file(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *info) {
    struct handle *handle = (struct handle *)(uintptr_t)info->fh;
    (void)number;
    if (handle->node->dead) {
        fuse_reply_err(request, ENODEV);
        return;
    }
    if (!handle->text || offset == 0) { /* a reader that starts again sees the present value */
        free(handle->text);
        handle->text = node_show(handle->node);
        handle->size = strlen(handle->text);
        handle->text[handle->size++] = '\n'; /* in the place of the final zero */
        if (handle->size == 1 && handle->node->parameter && !strcmp(handle->node->parameter, "empty"))
            handle->size = 0;
    }
    if ((size_t)offset >= handle->size)
        fuse_reply_buf(request, NULL, 0);
    else
        fuse_reply_buf(request, handle->text + offset, size < handle->size - offset ? size : handle->size - offset);
}

static void write_file(fuse_req_t request, fuse_ino_t number, const char *text, size_t size, off_t offset,
                       struct fuse_file_info *info) {
    struct handle *handle = (struct handle *)(uintptr_t)info->fh;
    int error = handle->node->dead ? -ENODEV : size == 0 ? 0 : handle->node->kind->store(handle->node, text, size);
    (void)number;
    (void)offset;
    if (error)
        fuse_reply_err(request, -error);
    else
        fuse_reply_write(request, size);
}

static void release_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct handle *handle = (struct handle *)(uintptr_t)info->fh;
    (void)number;
    free(handle->text);
    free(handle);
    fuse_reply_err(request, 0);
}

static void read_directory(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                           struct fuse_file_info *info) {
    struct node *directory = node_of(number), *child = directory->first;
    char *buffer = malloc(size);
    size_t used = 0;
    off_t at = 0;
    (void)info;
    if (!buffer) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    for (; at < 2 || child; at++) {
        struct node *node = at == 0 ? directory : at == 1 ? (directory->parent ? directory->parent : root) : child;
        const char *name = at == 0 ? "." : at == 1 ? ".." : child->name;
        struct stat st = stat_of(node);
        size_t length;
        if (at >= 2)
            child = child->next;
        if (at < offset)
            continue;
        length = fuse_add_direntry(request, buffer + used, size - used, name, &st, at + 1);
        if (length > size - used)
            break;
        used += length;
    }
    fuse_reply_buf(request, buffer, used);
    free(buffer);
}

static void make_directory(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode) {
    struct node *directory = node_of(parent);
    int error = cpuset_is(directory) ? cpuset_mkdir(directory, name) : -EPERM;
    (void)mode;
    if (error)
        fuse_reply_err(request, -error);
    else
        lookup(request, parent, name);
}

static void remove_directory(fuse_req_t request, fuse_ino_t parent, const char *name) {
    struct node *directory = node_of(parent), *node = node_child(directory, name);
    fuse_reply_err(request, !node ? ENOENT : cpuset_is(node) ? -cpuset_rmdir(node) : EPERM);
}

/* A new file is refused as each file system refuses it. */
static void make_node(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
    (void)name;
    (void)mode;
    (void)device;
    fuse_reply_err(request, cpuset_is(node_of(parent)) ? EACCES : node_of(parent)->proc ? ENOENT : EACCES);
}

static void remove_file(fuse_req_t request, fuse_ino_t parent, const char *name) {
    (void)parent;
    (void)name;
    fuse_reply_err(request, EPERM);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = lookup, .getattr = getattr, .setattr = setattr, .readlink = get_link,
    .open = open_file, .read = read_file, .write = write_file, .release = release_file,
    .readdir = read_directory, .mkdir = make_directory, .rmdir = remove_directory, .mknod = make_node,
    .unlink = remove_file,
};

int main(int argc, char *argv[]) {
    char *arguments[] = {argv[0], "-o", "allow_other,default_permissions,fsname=recorded", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *session;
    int result;
    if (argc < 3) {
        fprintf(stderr, "usage: kernel MACHINE MOUNTPOINT [-f]\n");
        return 2;
    }
    tree_load(argv[1]);
    session = fuse_session_new(&args, &operations, sizeof operations, NULL);
    if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, argv[2]))
        return 1;
    fuse_daemonize(argc > 3); /* the caller goes on once the tree is mounted */
    result = fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return result != 0;
}
