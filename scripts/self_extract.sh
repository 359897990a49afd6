#!/bin/sh
# svc @VERSION@ for @TARGET@: one file that carries its runtime and its program, a
# gzipped tar behind this script. The first start extracts them into a private cache directory,
# where later starts find them. Where the file is installed they lie beside it, for all users.

target=@TARGET@
# SHA-256 of the tar, which names its extraction; the tar's first byte, counted from 1; what
# extracting gives.
payload_sha256=@SHA256@
payload_offset=@OFFSET@
payload_files=@FILES@
payload_mib=@MIB@

# Times a changed extraction is replaced when other starts do the same at once.
REPLACE_TRIES=3

# An empty environment has no PATH, and a narrow one may lack the tools below.
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin

fail() {
  printf 'svc: %s\n' "$1" >&2
  exit 1
}

# @PERMISSIONS@

# Sets `cache`: the directory that holds extractions, and `mask`: what is kept from others there.
# Whoever root becomes has to read what root extracts; there is nothing secret in it.
find_cache() {
  user=$(id -u) || fail "cannot run id: install coreutils"
  mask=077
  [ "$user" -ne 0 ] || mask=022
  if [ -n "${SVC_CACHE_DIR-}" ]; then
    cache=$SVC_CACHE_DIR
  elif [ -n "${XDG_CACHE_HOME-}" ]; then
    cache=$XDG_CACHE_HOME/svc
  elif [ -n "${HOME-}" ]; then
    cache=$HOME/.cache/svc
  elif [ "$user" -eq 0 ]; then
    cache=/var/cache/svc
  else
    cache=${TMPDIR:-/tmp}/svc-$user
    # Anybody may make a link there, and could point it elsewhere after it was checked.
    [ ! -L "$cache" ] || fail "$cache is a symbolic link: remove it or set SVC_CACHE_DIR"
  fi
  case $cache in
    /*) ;;
    *) cache=$PWD/$cache ;;
  esac
}

# Whether nobody but this user and root can put a program into a directory.
is_safe() {
  listing=$(LC_ALL=C ls -ldn -- "$1/" 2>/dev/null) || return 1
  # Split on purpose: mode, number of links, owner.
  set -- $listing
  case $1 in
    ?????w* | ????????w*) return 1 ;;
  esac
  [ "$3" -eq 0 ] || [ "$3" = "$(id -u)" ]
}

# Refuses a cache directory in which somebody else could have put a program, or still could.
check_cache() {
  [ -d "$cache" ] || (umask "$mask" && mkdir -p -- "$cache") 2>/dev/null ||
    fail "cannot make the cache directory $cache: set SVC_CACHE_DIR to one that can be written"
  listing=$(LC_ALL=C ls -ldn -- "$cache/") || fail "cannot look at the cache directory $cache"
  # Split on purpose: mode, number of links, owner.
  set -- $listing
  [ "$3" = "$user" ] ||
    fail "the cache directory $cache belongs to user $3, not $user: set SVC_CACHE_DIR to your own"
  case $1 in
    ?????w* | ????????w*)
      fail "others may write to the cache directory $cache: chmod go-w it or set SVC_CACHE_DIR"
      ;;
  esac
}

# Whether an extraction is whole: it bears the mark that is made last, and as many files as it
# should have are no newer than the mark. One that was changed or removed is missing in that count.
is_whole() {
  [ -f "$1/complete" ] && read -r mark <"$1/complete" && [ "$mark" = "$payload_sha256" ] &&
    [ "$(find "$1/deno" "$1/program" -type f ! -newer "$1/complete" 2>/dev/null | wc -l)" \
      -eq "$payload_files" ]
}

payload() {
  tail -c "+$payload_offset" <"$self"
}

# Extracts next to the final place and renames, so that no start sees half of it. The body is a
# subshell: its umask and its traps stay here.
extract() (
  umask "$mask"
  [ "$(uname -s)-$(uname -m)" = "Linux-${target%%-*}" ] ||
    fail "this file is for $target, the machine is $(uname -s) on $(uname -m): use its own file"
  for tool in tail sha256sum gzip tar mktemp find wc; do
    command -v "$tool" >/dev/null 2>&1 || fail "cannot extract without $tool: install it"
  done
  sum=$(payload | sha256sum) || fail "cannot read $self"
  [ "${sum%% *}" = "$payload_sha256" ] ||
    fail "$self is damaged, its content does not match its SHA-256: download or build it again"
  # What a start that was killed left behind; a day is longer than any extraction.
  find "$cache/." ! -name . -prune -name 'new.*' -mtime +0 -exec rm -rf {} + 2>/dev/null
  new=$(mktemp -d "$cache/new.XXXXXX" 2>/dev/null) ||
    fail "cannot write to the cache directory $cache: set SVC_CACHE_DIR to one that can be written"
  [ "$mask" = 077 ] || chmod 755 "$new"
  trap 'rm -rf "$new"' EXIT
  trap 'exit 1' HUP INT TERM
  if ! trouble=$(payload 2>/dev/null | { gzip -dc | tar -xof - -C "$new"; } 2>&1); then
    trouble=$(printf '%s' "$trouble" | head -n 1)
    fail "cannot extract into $cache ($trouble): free $payload_mib MiB there or set SVC_CACHE_DIR"
  fi
  (cd "$new" && sha256sum -c manifest) >/dev/null 2>&1 ||
    fail "what was extracted into $cache does not match its manifest: check that disk"
  "$new/deno" --version >/dev/null 2>&1 ||
    fail "cannot run a program from $cache: it is mounted noexec, or this system has no glibc"
  echo "$payload_sha256" >"$new/complete" || fail "cannot write to the cache directory $cache"
  tries=0
  while [ "$tries" -lt "$REPLACE_TRIES" ]; do
    # -T: into the place itself, which fails if another start has filled it.
    mv -T -- "$new" "$extracted" 2>/dev/null && return 0
    is_whole "$extracted" && return 0
    echo "svc: $extracted was changed since it was extracted: extracting it again" >&2
    mv -T -- "$extracted" "$new.old" 2>/dev/null
    rm -rf "$new.old"
    tries=$((tries + 1))
  done
  fail "cannot replace $extracted, which was changed: remove it"
)

# Who installs for all makes Deno's caches as well: others can't write them.
prepare_for_all() (
  umask "$mask"
  cd "$extracted/program" || return
  DENO_DIR="$extracted/deno_dir" "$extracted/deno" cache --quiet --no-lock --config deno.json \
    main.js $(find src -name '*_worker.js' -o -name '*_main.js') >/dev/null 2>&1
)

self=$(readlink -f -- "$0") || fail "cannot run readlink: install coreutils"
extracted=${self%/*}/svc-$payload_sha256
if [ -n "${SVC_CACHE_DIR-}" ] || ! is_safe "${self%/*}" || ! is_whole "$extracted"; then
  find_cache
  check_cache
  extracted=$cache/svc-$payload_sha256
  is_whole "$extracted" || extract || exit 1
  [ -z "${SVC_FOR_ALL-}" ] || prepare_for_all
fi

permissions_of "$@"
# Deno's caches lie beside the program: nothing is compiled twice, the user's are not touched.
export DENO_DIR="$extracted/deno_dir" DENO_NO_UPDATE_CHECK=1
# What an upgrade starts: by then it may be another file of this name. It is also what is installed.
export SVC_FILE="$self"
# The running program reads here how it is to start this one, in place of this script; as below.
# svc run: run --quiet --no-prompt --no-remote --cached-only --no-lock --config @EXTRACTED@/program/deno.json @RUN_PERMISSIONS@ @EXTRACTED@/program/src/cli/run_main.js
# svc vrrp: run --quiet --no-prompt --no-remote --cached-only --no-lock --config @EXTRACTED@/program/deno.json @VRRP_PERMISSIONS@ @EXTRACTED@/program/src/cli/vrrp_main.js
# Unquoted on purpose: a list of flags, none of which holds a space.
exec "$extracted/deno" run --quiet --no-prompt --no-remote --cached-only --no-lock \
  --config "$extracted/program/deno.json" $permissions "$extracted/program/${entry%.ts}.js" "$@"
exit 1
