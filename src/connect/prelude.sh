# The verbs of the wire, for any POSIX sh (dash, bash, busybox ash). Sent once, before the first batch of a shell;
# comments and indentation are left out on the way. t_k and t_l, set before this, are the halves of the token:
# kept apart so that no listing of the variables (`set`) ever shows the whole. Nothing forks unless said.
LC_ALL=C
export LC_ALL
unset CDPATH ENV
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
for t_x in /usr/local/sbin /usr/sbin /sbin; do
  case :$PATH: in *:"$t_x":*) ;; *) PATH=$PATH:$t_x ;; esac
done
# Scripts start where the login did; the shell itself waits in / so that it keeps no file system busy.
t_home=$PWD
cd /
t_nl='
'
t_tab='	'
t_a=0
t_ok=true
t_last=
t_dir=
t_base64=0
if command -v base64 >/dev/null 2>&1; then t_base64=1; fi
# Some shells read files byte by byte, and integers under /proc/sys answer only a read from their start:
# such a shell sees one digit of a number that has at least three. Two are asked, for a part of /proc/sys can be served
# by something else than the kernel.
t_bytewise=0
for t_f in /proc/sys/kernel/pid_max /proc/sys/net/ipv4/ip_local_port_range; do
  t_x=
  { read -r t_x <"$t_f"; } 2>/dev/null
  case $t_x in ? | ??) t_bytewise=1 ;; esac
done

# t_mark WORD...: ends a frame on both streams.
t_mark() {
  printf '%s %s\n' "$t_k$t_l" "$*"
  printf '%s %s\n' "$t_k$t_l" "$*" >&2
}

# t_announce: begins a batch whose text others could see (it came in an argument vector). They must not know how the
# frames end, or a file of theirs could hold some: from here on the token is the kernel's.
t_announce() {
  t_x=
  read -r t_x 2>/dev/null </proc/sys/kernel/random/uuid
  [ "${#t_x}" -eq 36 ] || t_x=$(od -An -N16 -tx1 </dev/urandom | tr -d ' \n')
  t_mark "b $t_base64${t_x:+ $t_x}"
  [ -z "$t_x" ] || t_k=${t_x%????????????????}
  t_l=${t_x#"$t_k"} t_x=
}

# t_batch LENGTH: stands before each long batch. A shell that reads its input byte by byte takes the batch through one
# `head` (a fork) instead, where head is known to read no byte too many; any other simply reads on.
t_batch() {
  [ -n "$BASH_VERSION" ] || return 0
  case ${t_head=$(head --version 2>/dev/null)} in
  *GNU*) eval "$(head -c "$1")" ;;
  esac
}

# t_end INDEX CODE: the answer to one request.
t_end() {
  t_mark "o $1 $2 $t_a"
  t_last=$2$t_a t_a=0
}

# t_chain: stops the chain unless the request before it succeeded by its own name.
t_chain() {
  [ "$t_last" = 00 ] || t_ok=false
}

# t_alias PATH DIRECTORY: notes whether either is or goes through a symbolic link. Empty: not asked.
t_alias() {
  if [ -n "$1" ] && [ -L "$1" ]; then t_a=1; fi
  [ -n "$2" ] || return 0
  if [ "$2" != "$t_dir" ]; then
    t_dir=$2 t_dir_alias=0 t_x=$2
    until cd -P "${t_x:-/}" 2>/dev/null; do t_x=${t_x%/*}; done
    [ "$PWD" = "${t_x:-/}" ] || t_dir_alias=1
    cd /
  fi
  if [ "$t_dir_alias" = 1 ]; then t_a=1; fi
}

# t_gone PATH: fails; says why if it is not for absence.
t_gone() {
  t_x=${1%/*}
  while [ -n "$t_x" ] && ! [ -e "$t_x" ]; do t_x=${t_x%/*}; done
  t_x=${t_x:-/}
  ! [ -d "$t_x" ] || [ -x "$t_x" ] || printf '%s: Permission denied\n' "$1" >&2
  return 1
}

# t_refuse REASON: the answer to what cannot be asked.
t_refuse() {
  printf '%s\n' "$1" >&2
  return 2
}

# t_line PATH: a short text file without a fork; cat (a fork) for one that is long, empty or refuses.
t_line() {
  [ -e "$1" ] || { t_gone "$1"; return; }
  t_o= t_n=0 t_more=1
  case $t_bytewise$1 in
  1/proc/sys/*) ;;
  *)
    while t_x=; IFS= read -r t_x || { t_more=; false; }; do
      t_n=$((t_n + 1))
      if [ "$t_n" -gt 8 ] || [ "${#t_x}" -gt 100 ]; then break; fi
      t_o=$t_o$t_x$t_nl
    done 2>/dev/null <"$1"
    if [ -z "$t_more" ] && [ "${#t_x}" -le 100 ]; then
      t_o=$t_o$t_x
      if [ -n "$t_o" ]; then printf %s "$t_o"; return 0; fi
    fi ;;
  esac
  cat -- "$1"
}

# t_lines (INDEX PATH)...: t_line of each; one grep (a fork) for all that this shell cannot read itself.
t_lines() {
  t_r=$(($# / 2)) t_m=
  while [ "$t_r" -gt 0 ]; do
    t_r=$((t_r - 1)) t_i=$1 t_f=$2
    shift 2
    case $t_bytewise$t_f in
    1/proc/sys/*)
      if [ -f "$t_f" ]; then
        t_m="$t_m $t_i"
        set -- "$@" "$t_f"
        continue
      fi ;;
    esac
    t_line "$t_f"
    t_end "$t_i" "$?"
  done
  [ "$#" -gt 0 ] || return 0
  grep -H '' -- "$@"
  t_mark "g $?$t_m"
}

# t_content PATH: the bytes of a file. Forks unless it is missing.
t_content() {
  [ -e "$1" ] || { t_gone "$1"; return; }
  cat -- "$1"
}

t_fields="%u$t_tab%g$t_tab%U$t_tab%G$t_tab%s$t_tab%i$t_tab%d$t_tab%h$t_tab%.9X$t_tab%.9Y$t_tab%.9Z"

# t_many KIND (INDEX PATH DIRECTORY)...: one process for all. KIND: s stat, S stat through links, else a digest.
t_many() {
  t_q=$1 t_m=
  shift
  t_r=$(($# / 3))
  while [ "$t_r" -gt 0 ]; do
    t_r=$((t_r - 1)) t_i=$1 t_f=$2 t_a=0
    case $t_q in
    s) t_alias '' "$3" ;;
    *) t_alias "$2" "$3" ;;
    esac
    shift 3
    if [ -e "$t_f" ] || { [ "$t_q" = s ] && [ -L "$t_f" ]; }; then
      case $t_q in
      s) if [ -L "$t_f" ]; then readlink -n -- "$t_f"; t_mark "l $t_i"; fi ;;
      S) ;;
      *) [ -f "$t_f" ] || { t_end "$t_i" 1; continue; } ;;
      esac
      t_m="$t_m $t_i:$t_a"
      set -- "$@" "$t_f"
    else
      t_gone "$t_f"
      t_end "$t_i" "$?"
    fi
  done
  t_a=0
  [ "$#" -gt 0 ] || return 0
  case $t_q in
  s) stat -c "%f$t_tab$t_fields$t_tab%n" -- "$@" ;;
  S) stat -L -c "%f$t_tab$t_fields$t_tab%n" -- "$@" ;;
  *) "${t_q}sum" -- "$@" ;;
  esac
  t_mark "$t_q $?$t_m"
}

# t_stat KIND PATH: one file, in the form that the controller gives the others.
t_stat() {
  [ -e "$2" ] || { [ "$1" = s ] && [ -L "$2" ]; } || { t_gone "$2"; return; }
  t_x=
  if [ "$1" = s ] && [ -L "$2" ]; then t_o=l t_x=$(readlink -n -- "$2"; printf x) t_x=${t_x%x}
  elif [ -f "$2" ]; then t_o=f
  elif [ -d "$2" ]; then t_o=d
  elif [ -b "$2" ]; then t_o=b
  elif [ -c "$2" ]; then t_o=c
  elif [ -p "$2" ]; then t_o=p
  else t_o=s
  fi
  if [ "$1" = s ]; then set -- "$2"; else set -- "$2" -L; fi
  t_o=$(stat $2 -c "$t_o$t_tab%a$t_tab$t_fields" -- "$1") || return
  printf '%s\t%s' "$t_o" "$t_x"
}

# t_sum ALGORITHM PATH: the digest alone. Forks.
t_sum() {
  [ -e "$2" ] || { t_gone "$2"; return; }
  [ -f "$2" ] || return
  t_x=$("${1}sum" -- "$2") || return
  t_x=${t_x#\\}
  printf %s "${t_x%% *}"
}

# t_unit NAME...: the properties of units. Forks.
t_unit() {
  command -v systemctl >/dev/null 2>&1 || return 127
  systemctl show --no-pager -p "$t_properties" -- "$@"
}

# t_units (INDEX NAME)...: one systemctl for all; one each if it refuses any.
t_units() {
  t_r=$(($# / 2)) t_m=
  while [ "$t_r" -gt 0 ]; do
    t_r=$((t_r - 1)) t_m="$t_m $1" t_f=$2
    shift 2
    set -- "$@" "$t_f"
  done
  if command -v systemctl >/dev/null 2>&1; then
    t_unit "$@"
    t_c=$?
    if [ "$t_c" = 0 ]; then t_mark "u 0$t_m"; return; fi
    t_mark x
  fi
  for t_f; do
    t_m=${t_m# }
    t_i=${t_m%% *} t_m=${t_m#"$t_i"}
    t_unit "$t_f"
    t_end "$t_i" "$?"
  done
}

# t_script TEXT: in a subshell that does not know the token. Forks.
t_script() (
  cd "$t_home" 2>/dev/null
  unset t_k t_l t_o
  eval "set --
$1"
)

# t_check INDEX EXPECTED: answers with what stands in t_o (output, newline, code) and stops the chain if it is not
# what was expected, blanks and tabs taken together.
t_check() {
  t_c=${t_o##*"$t_nl"} t_o=${t_o%"$t_nl"*}
  printf %s "$t_o"
  t_end "$1" "$t_c"
  t_chain
  t_x=$2 t_ifs=$IFS
  IFS=" $t_tab"
  set -f
  set -- $t_o
  t_o="$*"
  set +f
  IFS=$t_ifs
  while :; do
    case $t_o in
    [" $t_nl"]*) t_o=${t_o#?} ;;
    *[" $t_nl"]) t_o=${t_o%?} ;;
    *) break ;;
    esac
  done
  [ "$t_o" = "$t_x" ] || t_ok=false
}
