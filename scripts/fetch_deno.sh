# Sourced. `fetch_deno PLATFORM FILE` puts the pinned Deno of an npm platform, such as
# linux-x64-glibc, into FILE. npm keeps the binary in a package of its own for each platform and
# checks what it downloads; no install script has to run, and any platform can be fetched on any.

deno_version=2.9.5

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
  # A rename, so that two first runs at once never see half a file.
  mv -f "$staging/package/deno" "$2" || fail "cannot write $2"
)
