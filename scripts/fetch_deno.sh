# Sourced. `fetch_deno PLATFORM FILE` puts the pinned Deno of an npm platform, such as
# linux-x64-glibc, into FILE. npm keeps the binary in a package of its own for each platform; no
# install script has to run, and any platform can be fetched on any. What was fetched is held against
# the SHA-256 pinned here, whatever npm says of it.

deno_version=2.9.5

# Sets `deno_sha256`: that of the pinned Deno of an npm platform.
deno_pin() {
  case "$1" in
    linux-x64-glibc)
      deno_sha256=dc480c462c8c3582524f3e75c160613d0a975e1f66b5465995d58bae236da7d3 ;;
    linux-arm64-glibc)
      deno_sha256=e1a70c5eb03b0ebaf761077029ef86b9ba22d50e2b54ca45ce5437457f701b63 ;;
    darwin-x64)
      deno_sha256=befc4fee79127584c0f5c9f76ca6bb73c8e6ff523c01acd52e9c5db1968a09cb ;;
    darwin-arm64)
      deno_sha256=b5bd08edab254d42d7b05aa5b6cb4c9b8d4dede4975aff76951ce2cce18866fa ;;
    *) fail "no SHA-256 of Deno $deno_version is pinned for $1: add it to scripts/fetch_deno.sh" ;;
  esac
}

fail() {
  printf '%s: %s\n' "$(basename -- "$0")" "$1" >&2
  exit 1
}

# Sets `platform` from the operating system and the processor, spelled as uname does.
npm_platform() {
  case "$1-$2" in
    Linux-x86_64) platform=linux-x64-glibc ;;
    Linux-aarch64 | Linux-arm64) platform=linux-arm64-glibc ;;
    Darwin-x86_64) platform=darwin-x64 ;;
    Darwin-arm64) platform=darwin-arm64 ;;
    *) fail "no Deno for $1 on $2: use Linux or macOS on x86-64 or ARM64" ;;
  esac
}

# has_pinned_sum PLATFORM FILE: whether FILE is the pinned Deno of that platform.
has_pinned_sum() {
  deno_pin "$1"
  if command -v sha256sum >/dev/null 2>&1; then
    found_sha256=$(sha256sum <"$2") || return 1
  else
    found_sha256=$(shasum -a 256 <"$2") || return 1
  fi
  found_sha256=${found_sha256%% *}
  [ "$found_sha256" = "$deno_sha256" ]
}

# The body is a subshell: its trap and its folder end with it, however it ends.
fetch_deno() (
  command -v npm >/dev/null 2>&1 ||
    fail "Deno $deno_version is not here and npm is missing to fetch it: install Node.js with npm"
  printf 'fetching Deno %s for %s from npm\n' "$deno_version" "$1" >&2
  folder=$(dirname -- "$2")
  mkdir -p "$folder" && staging=$(mktemp -d "$folder/fetch.XXXXXX") ||
    fail "cannot write $folder: make it writable"
  trap 'rm -rf "$staging"' EXIT
  trap 'exit 1' HUP INT TERM
  # A cache of its own: HOME may be missing, read-only or another user's.
  (cd "$staging" &&
    npm pack --silent --cache "$staging/cache" "@deno/$1@$deno_version") >/dev/null ||
    fail "npm could not fetch @deno/$1@$deno_version: check the network and the npm registry"
  tar -xzof "$staging"/deno-*.tgz -C "$staging" package/deno && chmod 755 "$staging/package/deno" ||
    fail "cannot unpack @deno/$1@$deno_version into $folder: check that there is room"
  has_pinned_sum "$1" "$staging/package/deno" ||
    fail "@deno/$1@$deno_version is not the pinned one: its SHA-256 is ${found_sha256:-unknown} and \
should be $deno_sha256: do not use it, and look at where npm downloads from"
  # A rename, so that two first runs at once never see half a file.
  mv -f "$staging/package/deno" "$2" || fail "cannot write $2"
)
