# Sourced by scripts/svc and copied into the self-extracting file: the one place that says what a
# command may touch. `permissions_of COMMAND` sets `permissions` to Deno's flags for it; what is not
# named is denied. `run` needs most, and its flags are what a compiled file gets for every command.

permissions_of() {
  case "${1-}" in
    # Any name server and any listener; paths stand in the configuration file, which is read later.
    run) permissions='--allow-ffi --allow-net --allow-read --allow-write' ;;
    check-config) permissions='--allow-read' ;;
    *) permissions='' ;;
  esac
}
