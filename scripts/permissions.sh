# Sourced by scripts/svc and copied into the self-extracting file: the one place that says what a
# command may touch. `permissions_of COMMAND` sets `permissions` to Deno's flags for it; what is not
# named is denied. `run` needs most, and its flags are what a compiled file gets for every command.

# Argon2's loader asks for these; left out of the environment, they can lead it to no other file.
argon2_env=--ignore-env=NAPI_RS_NATIVE_LIBRARY_PATH,NAPI_RS_FORCE_WASI,NAPI_RS_WASI_FLAVOR
argon2_env=$argon2_env,NAPI_RS_ENFORCE_VERSION_CHECK

# Each isolate's space for young objects would grow to tens of MiB, and its garbage to more than what
# it holds: more than its work ever needs. Each isolate collects its own: the threads that would help
# stand behind all others, and whoever collects would have to wait for them.
#
# A household asks a few hundred times an hour: the compilers, which wait for thousands of calls, would
# leave it with the interpreter for days.
v8_flags=--v8-flags=--single-threaded-gc,--max-semi-space-size=1,--heap-growing-percent=20
v8_flags=$v8_flags,--invocation-count-for-maglev=20,--invocation-count-for-turbofan=200
v8_flags=$v8_flags,--minimum-invocations-after-ic-update=10

permissions_of() {
  case "${1-}" in
    # Any name server and any listener; paths stand in the configuration file, which is read later.
    # The query log steps back behind those who answer.
    run) permissions="--allow-ffi --allow-net --allow-read --allow-write --allow-sys=setPriority"
      permissions="$permissions $argon2_env $v8_flags" ;;
    # The store and the Argon2 add-on.
    user) permissions="--allow-ffi --allow-read --allow-write $argon2_env" ;;
    import) permissions='--allow-read --allow-write' ;;
    # The API of a node, wherever it is, and the token's file.
    explain) permissions='--allow-net --allow-read' ;;
    # The C library opens its sockets; the configuration is a file.
    vrrp) permissions="--allow-ffi --allow-read $v8_flags" ;;
    # The C library knows the limit on open files.
    check-config) permissions='--allow-ffi --allow-read' ;;
    *) permissions='' ;;
  esac
}
