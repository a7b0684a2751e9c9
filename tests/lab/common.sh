# shellcheck shell=sh disable=SC2034
# What the scripts of the lab share.
lab=${TRIMTAB_LAB:-/run/trimtab-lab}             # everything of the hosts that run: a tmpfs
cache=${TRIMTAB_LAB_CACHE:-/var/cache/trimtab-lab} # what takes long to make: the hosts' root, the compiled helpers
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
clone=$(CDPATH='' cd -- "$here/../.." && pwd)
target=$clone/target/lab
switch=trimtab-lab                               # the network namespace that the hosts' cables end in

say() { printf '%s\n' "$*"; }
die() {
    printf 'lab: %s\n' "$*" >&2
    exit 1
}

# The mount points of this machine's cgroup hierarchies that hosts get a group of their own in.
hierarchies() {
    awk '($3 == "cgroup" && $4 !~ /cpuset/) || $3 == "cgroup2" { print $2 }' /proc/mounts | sort -u
}

live_hosts() {
    for file in "$lab"/hosts/*/run.pid; do
        [ -e "$file" ] || continue
        directory=${file%/*}
        ! kill -0 "$(cat "$file")" 2>/dev/null || printf '%s ' "${directory##*/}"
    done
}
