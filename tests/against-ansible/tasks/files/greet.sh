#!/bin/sh
[ $# -gt 0 ] || { echo 'who?' >&2; exit 4; }
echo "hello $1 from $(pwd)"
