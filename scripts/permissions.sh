# Sourced by scripts/svc and copied into the self-extracting file: the one place that says what a
# command may touch. `permissions_of COMMAND` sets `permissions` to Deno's flags for it; what is not
# named is denied; and `entry` to the file that the command begins with. `self` is the built file, where
# there is one. A compiled file has one set for every command, that of `compiled`.

# Argon2's loader asks for these; left out of the environment, they can lead it to no other file.
argon2_env=--ignore-env=NAPI_RS_NATIVE_LIBRARY_PATH,NAPI_RS_FORCE_WASI,NAPI_RS_WASI_FLAVOR
argon2_env=$argon2_env,NAPI_RS_ENFORCE_VERSION_CHECK

# Each isolate's space for young objects would grow to tens of MiB, and its garbage to more than what
# it holds: more than its work ever needs. Isolates can't differ in it: V8 has these flags once.
#   space for young objects, MiB: 1 | 2 | 4 | 16. 10,000 queries over QUIC take 226 | 113 | 45 to 70 |
#   45 collections, at 58 | 51 | 48 | 49 us a query; at rest 4 takes some 10 MiB more than 1. Recursion
#   leaves as much garbage, nothing else enough to count.
#   heap-growing-percent: 20 | 50 | 100 | default. 1 to 4 markings in 10,000 queries, over whatever, with
#   each; at rest 90 | 89 | 89 | 91 MiB that are of no file; most, with the log under load and three
#   builds of a million rules behind it, 285 to 291 | 289 | 270 | 311; CPU of a query over UDP, and the time
#   of a build, alike.
# Each isolate collects its own: the threads that would help stand behind all others, and whoever
# collects would have to wait for them. What is at rest after work collects by itself (expose-gc).
#
# A household asks a few hundred times an hour: the compilers, which wait for thousands of calls, would
# leave it with the interpreter for days.
v8_flags=--v8-flags=--single-threaded-gc,--max-semi-space-size=2,--heap-growing-percent=20
v8_flags=$v8_flags,--invocation-count-for-maglev=20,--invocation-count-for-turbofan=200
v8_flags=$v8_flags,--minimum-invocations-after-ic-update=10,--expose-gc

# Whoever has little to do is to be small: no compilers, and memory goes back to the system.
small=--v8-flags=--single-threaded,--max-semi-space-size=1,--heap-growing-percent=20,--lite-mode
small=$small,--expose-gc

# Colours and characters that a terminal has.
terminal_env=NO_COLOR,TERM,LC_ALL,LC_CTYPE,LANG

administration=systemctl,useradd,userdel,getent,id,chown

permissions_of() {
  entry=main.ts
  # A list of flags holds no path that would need quotes.
  case ${self-} in
    '' | *[!A-Za-z0-9._/+-]*) own_file= ;;
    *) own_file=,$self ;;
  esac
  case "${1-}" in
    # Any name server and any listener; paths stand in the configuration file, which is read later.
    # The query log steps back behind those who answer; the status tells this machine's addresses.
    run) permissions="--allow-ffi --allow-net --allow-read --allow-write"
      permissions="$permissions --allow-sys=setPriority,networkInterfaces $argon2_env $v8_flags"
      entry=src/cli/run_main.ts ;;
    # The other members, its certificate and its store.
    witness) permissions="--allow-net --allow-read --allow-write --no-code-cache $small"
      entry=src/cli/witness_main.ts
      export MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 TOKIO_WORKER_THREADS=1 ;;
    # The store and the Argon2 add-on.
    user) permissions="--allow-ffi --allow-read --allow-write $argon2_env" ;;
    import | cluster) permissions='--allow-read --allow-write' ;;
    # The API of a node, wherever it is, and the token's file.
    explain | unblock | token) permissions='--allow-net --allow-read' ;;
    # The same; what the environment says of the terminal.
    tui) permissions="--allow-net --allow-read --allow-env=$terminal_env" ;;
    # Also the file that is made.
    backup | migrate) permissions='--allow-net --allow-read --allow-write' ;;
    restore) permissions='--allow-net --allow-read' ;;
    # The C library opens its sockets; the configuration is a file.
    vrrp) permissions="--allow-ffi --allow-read $v8_flags"
      entry=src/cli/vrrp_main.ts ;;
    # The C library opens its sockets; the configuration is a file. It also knows the limit on open
    # files.
    health | check-config) permissions='--allow-ffi --allow-read' ;;
    # Files of the system, its users and its services, and the file itself, which extracts what it
    # carries to where all find it.
    install) permissions="--allow-ffi --allow-read --allow-write --allow-sys=uid"
      permissions="$permissions --allow-env=SVC_FILE --allow-run=$administration$own_file" ;;
    uninstall) permissions="--allow-read --allow-write --allow-sys=uid --allow-env=SVC_FILE"
      permissions="$permissions --allow-run=$administration" ;;
    # Any name server and any release service. What was downloaded is started once before it is put
    # into place: Deno lets nothing be written that may be run, unless everything may be.
    update) permissions="--allow-ffi --allow-net --allow-read --allow-write"
      permissions="$permissions --allow-sys=setPriority --allow-env=SVC_FILE $v8_flags"
      permissions="$permissions --allow-run" ;;
    compiled) permissions_of run
      permissions="$permissions --allow-sys=setPriority,uid --allow-env=SVC_FILE,$terminal_env"
      permissions="$permissions --allow-run=$administration" ;;
    *) permissions='' ;;
  esac
}
