# Sourced by the other scripts. Sets `root` (the checkout) and `deno` (the pinned Deno), installing
# the npm package `deno` at exactly that version into .deno/ when it is not there yet.

deno_version=2.9.6

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

fail() {
  printf '%s: %s\n' "$(basename -- "$0")" "$1" >&2
  exit 1
}

is_pinned() {
  [ -x "$1" ] && [ "$("$1" --version 2>/dev/null | sed -n '1s/^deno \([^ ]*\).*/\1/p')" = "$deno_version" ]
}

# npm keeps the binary in a package of its own for each platform; which of its install scripts run
# differs between machines, so the binary is taken from there and no script is needed.
platform_package() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo linux-x64-glibc ;;
    Linux-aarch64 | Linux-arm64) echo linux-arm64-glibc ;;
    Darwin-x86_64) echo darwin-x64 ;;
    Darwin-arm64) echo darwin-arm64 ;;
    *) fail "no Deno for $(uname -s) on $(uname -m): use Linux or macOS on x86-64 or ARM64" ;;
  esac
}

install_deno() {
  command -v npm >/dev/null 2>&1 ||
    fail "Deno $deno_version is neither in .deno/ nor on PATH, and npm is missing: install Node.js with npm"
  package=$(platform_package) || exit 1
  echo "installing Deno $deno_version into .deno/" >&2
  mkdir -p "$root/.deno" || fail "cannot write $root/.deno: make the checkout writable"
  # A folder of its own and a rename, so that two first runs at once do not see half an install.
  staging=$(mktemp -d "$root/.deno/install.XXXXXX") || fail "cannot write $root/.deno"
  if ! (cd "$staging" && echo '{"private":true}' >package.json &&
    npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error \
      "@deno/$package@$deno_version" >&2); then
    rm -rf "$staging"
    fail "npm could not install Deno $deno_version: see its message above"
  fi
  mv "$staging/node_modules/@deno/$package/deno" "$root/.deno/deno.$$" &&
    chmod 755 "$root/.deno/deno.$$" && mv -f "$root/.deno/deno.$$" "$root/.deno/deno" ||
    fail "cannot write $root/.deno/deno"
  rm -rf "$staging"
}

find_deno() {
  if is_pinned "$root/.deno/deno"; then
    deno=$root/.deno/deno
  elif on_path=$(command -v deno) && is_pinned "$on_path"; then
    deno=$on_path
  else
    install_deno
    is_pinned "$root/.deno/deno" || fail "the installed Deno does not run on this machine"
    deno=$root/.deno/deno
  fi
}

find_deno
