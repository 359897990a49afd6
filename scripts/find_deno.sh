# Sourced by the other scripts with `scripts` set to their folder. Sets `root` (the checkout) and
# `deno` (the pinned Deno): the one in .deno/, which was checked when it came there, else the same on
# PATH, else npm's, which goes into .deno/.

PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export PATH

. "$scripts/fetch_deno.sh"

root=$(CDPATH='' cd -- "$scripts/.." && pwd -P) || fail "cannot enter the checkout around $scripts"

is_pinned() {
  [ -x "$1" ] || return 1
  version=$("$1" --version 2>/dev/null | sed -n '1s/^deno \([^ ]*\).*/\1/p')
  [ "$version" = "$deno_version" ]
}

find_deno() {
  deno=$root/.deno/deno
  is_pinned "$deno" && return
  npm_platform "$(uname -s)" "$(uname -m)"
  if on_path=$(command -v deno) && is_pinned "$on_path" && has_pinned_sum "$platform" "$on_path"
  then
    deno=$on_path
    return
  fi
  fetch_deno "$platform" "$deno" || exit 1
  is_pinned "$deno" || fail "the Deno in $deno does not run on this machine: it needs glibc"
}

# Deno keeps npm packages below HOME; without one it can write, they go where Deno itself went.
caches=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
if [ -z "${DENO_DIR-}" ] && ! { [ -n "$caches" ] && mkdir -p "$caches/deno" 2>/dev/null &&
  [ -w "$caches/deno" ]; }; then
  export DENO_DIR="$root/.deno/cache"
fi
export DENO_NO_UPDATE_CHECK=1
# npm packages come through whatever proxy this machine trusts.
export DENO_TLS_CA_STORE="${DENO_TLS_CA_STORE:-mozilla,system}"

find_deno
