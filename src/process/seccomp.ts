import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";

type Architecture = typeof Deno.build.arch;

/** What `seccomp_data.arch` says, and the number of the call itself. */
const AUDIT_ARCH = { x86_64: 0xc000_003e, aarch64: 0xc000_00b7 } as const;
const SECCOMP = { x86_64: 317n, aarch64: 277n } as const;
const SET_MODE_FILTER = 1n;
/** Every thread of the process gets the filter, or none. */
const FLAG_TSYNC = 1n;

/**
 * What a resolver never calls: numbers on x86-64 and on ARM64, `null` where there is no such call.
 * `execve` is left, as an upgrade starts a program; Landlock says which.
 */
const DENIED: Readonly<Record<string, readonly [number | null, number | null]>> = {
  execveat: [322, 281],
  // Of other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  // File systems and namespaces.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  unshare: [272, 97],
  setns: [308, 268],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  quotactl: [179, 60],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  mknod: [133, null],
  mknodat: [259, 33],
  // The kernel.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  // The machine.
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  syslog: [103, 116],
  vhangup: [153, 58],
  personality: [135, 92],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  // Becoming somebody else.
  setuid: [105, 146],
  setgid: [106, 144],
  setreuid: [113, 145],
  setregid: [114, 143],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setgroups: [116, 159],
  setfsuid: [122, 151],
  setfsgid: [123, 152],
  capset: [126, 91],
};
const CLONE = { x86_64: 56, aarch64: 220 } as const;
const CLONE3 = 435;
const SOCKET = { x86_64: 41, aarch64: 198 } as const;
/** From here on x86-64 has the calls of its 32-bit sister, past every rule. */
const X32_MIN = 0x4000_0000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const CLONE_NAMESPACES = 0x7e02_0000;
/** AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK, by which the C library learns of addresses. */
const FAMILIES = [1, 2, 10, 16] as const;

const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const ERRNO = 0x0005_0000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Offsets in `seccomp_data`. */
const NUMBER = 0;
const ARCH = 4;
const ARGUMENT_0 = 16;

// Classic BPF: code, where to if true, where to if not (both count from the next one), operand.
type Instruction = readonly [number, number, number, number];
const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const ifEqual = (value: number, yes: number, no: number): Instruction => [0x15, yes, no, value];
const ifAtLeast = (value: number, yes: number, no: number): Instruction => [0x35, yes, no, value];
const ifAny = (bits: number, yes: number, no: number): Instruction => [0x45, yes, no, bits];
const end = (verdict: number): Instruction => [0x06, 0, 0, verdict];
const INSTRUCTION_BYTES = 8;

/** The filter as the kernel takes it. */
export function denyProgram(arch: Architecture): readonly Instruction[] {
  const column = arch === "x86_64" ? 0 : 1;
  const numbers = Object.values(DENIED).map((row) => row[column]).filter((n) => n !== null);
  return [
    load(ARCH),
    ifEqual(AUDIT_ARCH[arch], 1, 0),
    end(KILL_PROCESS),
    load(NUMBER),
    ...arch === "x86_64" ? [ifAtLeast(X32_MIN, 0, 1), end(KILL_PROCESS)] : [],
    // A filter can't read its flags; who is told that there is no such call takes `clone`.
    ifEqual(CLONE3, 0, 1),
    end(ERRNO | ENOSYS),
    ifEqual(CLONE[arch], 0, 4),
    load(ARGUMENT_0),
    ifAny(CLONE_NAMESPACES, 0, 1),
    end(ERRNO | EPERM),
    end(ALLOW),
    ifEqual(SOCKET[arch], 0, FAMILIES.length + 3),
    load(ARGUMENT_0),
    ...FAMILIES.map((family, i) => ifEqual(family, FAMILIES.length - i, 0)),
    end(ERRNO | EAFNOSUPPORT),
    end(ALLOW),
    ...numbers.flatMap((number) => [ifEqual(number, 0, 1), end(ERRNO | EPERM)]),
    end(ALLOW),
  ];
}

/**
 * Denies every thread of this process, and whatever it executes, the calls that a resolver never
 * makes. `no_new_privs` has to be set.
 *
 * @throws {SvcError} `unavailable`, when the kernel takes no filter.
 */
export function denySystemCalls({ symbols }: Process): void {
  const { arch } = Deno.build;
  const program = denyProgram(arch);
  const bytes = new Uint8Array(program.length * INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  for (const [i, [code, yes, no, operand]] of program.entries()) {
    const at = i * INSTRUCTION_BYTES;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, yes);
    view.setUint8(at + 3, no);
    view.setUint32(at + 4, operand, true);
  }
  const head = new Uint8Array(16); // `sock_fprog`: a length, and where the program is.
  const headView = new DataView(head.buffer);
  headView.setUint16(0, program.length, true);
  headView.setBigUint64(8, Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes)), true);
  const done = symbols.seccomp(SECCOMP[arch], SET_MODE_FILTER, FLAG_TSYNC, head);
  bytes.fill(0); // Until here it was in use: the pointer leads into it.
  if (done !== 0n) {
    throw new SvcError("unavailable", "seccomp: the kernel takes no filter for every thread");
  }
}
