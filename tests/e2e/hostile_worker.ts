/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Tries what no isolate may do; tells how each attempt ended. See `hostile_service.ts`. */

const text = (value: string) => new TextEncoder().encode(`${value}\0`);
const NUMBERS = {
  x86_64: { ptrace: 101n, vmRead: 310n, unshare: 272n, mount: 165n, bpf: 321n, uring: 425n },
  aarch64: { ptrace: 117n, vmRead: 270n, unshare: 97n, mount: 40n, bpf: 280n, uring: 425n },
}[Deno.build.arch];
const O_WRONLY_CREAT = 0o101;
const CLONE_NEWUSER = 0x1000_0000n;

/** By the C library, past all that the runtime denies. */
function calls(directory: string): Record<string, string> {
  const { symbols } = Deno.dlopen("libc.so.6", {
    open: { parameters: ["buffer", "i32", "i32"], result: "i32" },
    write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
    close: { parameters: ["i32"], result: "i32" },
    socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
    getppid: { parameters: [], result: "i32" },
    kill: { parameters: ["i32", "i32"], result: "i32" },
    setresuid: { parameters: ["u32", "u32", "u32"], result: "i32" },
    posix_spawn: {
      parameters: ["buffer", "buffer", "pointer", "pointer", "buffer", "pointer"],
      result: "i32",
    },
    syscall: { parameters: ["i64", "u64", "u64", "u64", "u64"], result: "i64" },
  });
  const ended = (result: number | bigint) => Number(result) < 0 ? "refused" : "DONE";
  const open = (path: string, flags = 0) => {
    const fd = symbols.open(text(path), flags, 0o755);
    if (fd >= 0) symbols.close(fd);
    return ended(fd);
  };
  const spawn = (path: string) => {
    const pid = new Uint8Array(8);
    const args = new Uint8Array(16); // No argument at all.
    return symbols.posix_spawn(pid, text(path), null, null, args, null) === 0 ? "DONE" : "refused";
  };
  const script = `${directory}/store/script`;
  const fd = symbols.open(text(script), O_WRONLY_CREAT, 0o755);
  const line = text("#!/bin/sh\n").subarray(0, -1);
  const isWritten = fd >= 0 && symbols.write(fd, line, BigInt(line.length)) > 0n;
  if (fd >= 0) symbols.close(fd);
  const { ptrace, vmRead, unshare, mount, bpf, uring } = NUMBERS;
  const parent = BigInt(symbols.getppid());
  return {
    "write in the store": isWritten ? "DONE" : "refused",
    "read /etc/shadow": open("/etc/shadow"),
    "read /etc/passwd": open("/etc/passwd"),
    "read the folder above": open(`${directory}/../outside-${directory.split("/").at(-1)}`),
    "write beside the configuration": open(`${directory}/planted`, O_WRONLY_CREAT),
    "write into the program": open(new URL("planted.ts", import.meta.url).pathname, O_WRONLY_CREAT),
    "execute /bin/true": spawn("/bin/true"),
    "execute a file of its own": spawn(script),
    "a raw socket": ended(symbols.socket(2, 3, 1)),
    "a packet socket": ended(symbols.socket(17, 3, 0)),
    "a socket to a host machine": ended(symbols.socket(40, 1, 0)),
    "ptrace": ended(symbols.syscall(ptrace, 16n, parent, 0n, 0n)),
    "read another's memory": ended(symbols.syscall(vmRead, parent, 0n, 0n, 0n)),
    "signal another": ended(symbols.kill(Number(parent), 0)),
    "become root": ended(symbols.setresuid(0, 0, 0)),
    "a namespace of its own": ended(symbols.syscall(unshare, CLONE_NEWUSER, 0n, 0n, 0n)),
    "mount": ended(symbols.syscall(mount, 0n, 0n, 0n, 0n)),
    "bpf": ended(symbols.syscall(bpf, 0n, 0n, 0n, 0n)),
    "io_uring": ended(symbols.syscall(uring, 1n, 0n, 0n, 0n)),
  };
}

/** As the runtime has it. */
async function runtime(): Promise<Record<string, string>> {
  const attempts: Record<string, () => unknown> = {
    "connect out": () => Deno.connect({ hostname: "127.0.0.1", port: 9 }),
    "send a datagram": () => Deno.listenDatagram({ transport: "udp", port: 0 }),
    "read a file": () => Deno.readTextFile("/etc/hostname"),
    "write a file": () => Deno.writeTextFile("planted", ""),
    "run a program": () => new Deno.Command("/bin/true").output(),
    "call the C library": () => Deno.dlopen("libc.so.6", {}),
    "read the environment": () => Deno.env.get("HOME"),
  };
  const found: Record<string, string> = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt();
      found[name] = "DONE";
    } catch (error) {
      found[name] = error instanceof Deno.errors.NotCapable ? "refused" : String(error);
    }
  }
  return found;
}

self.onmessage = async ({ data }: MessageEvent<{ attempts: string; directory: string }>) => {
  self.postMessage(data.attempts === "calls" ? calls(data.directory) : await runtime());
};
