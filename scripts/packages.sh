# Sourced. `need_packages` installs what tests and benchmarks call and this machine lacks, where it
# may; where it may not, it says so, and those tests skip.

# Seconds for apt-get altogether, and for one answer of a mirror.
APT_TIMEOUT_S=300
MIRROR_TIMEOUT_S=20

PATH=$PATH:/usr/sbin:/sbin

# The Debian package of each program, with those that it is of no use without.
package_of() {
  case "$1" in
    dnsmasq) echo dnsmasq-base ;;
    kdig) echo knot-dnsutils ;;
    h2load) echo nghttp2-client ;;
    dig | delv) echo bind9-dnsutils ;;
    dnssec-keygen | dnssec-signzone) echo bind9-utils ;;
    drill) echo ldnsutils ;;
    ip) echo iproute2 ;;
    kresd) echo knot-resolver ;;
    qemu-aarch64-static)
      echo qemu-user-static libc6-arm64-cross libgcc-s1-arm64-cross libstdc++6-arm64-cross ;;
    *) echo "$1" ;;
  esac
}

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive timeout "$APT_TIMEOUT_S" apt-get -qq \
    -o Acquire::http::Timeout="$MIRROR_TIMEOUT_S" -o Acquire::https::Timeout="$MIRROR_TIMEOUT_S" \
    -o Acquire::Retries=1 -o DPkg::Lock::Timeout="$MIRROR_TIMEOUT_S" "$@" >&2
}

# Installs packages without starting the name servers among them, which would take port 53. A policy
# that is there already is somebody's own and stays. The body is a subshell for its traps.
install_packages() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null || return 1
    $as_root chmod 755 "$policy"
  fi
  apt update
  apt install --no-install-recommends -y "$@"
)

# need_packages PROGRAM...
need_packages() {
  missing=
  for program; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $(package_of "$program")"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -eq 0 ]; then
    as_root=
  elif sudo -n true 2>/dev/null; then
    as_root='sudo -n'
  else
    echo "not installed, and no right to install:$missing; what needs them is skipped" >&2
    return 0
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed, and no apt-get to install with:$missing; what needs them is skipped" >&2
    return 0
  fi
  echo "installing$missing" >&2
  install_packages $missing ||
    echo "could not install$missing: see apt-get's message above; what needs them is skipped" >&2
}
