// Goal: the image does what its Containerfile and `dist/compose.yaml` say, on any base. Method: buildah
// on a Debian made by debootstrap, and the image run as the compose example has it: nobody but its
// user, no capability, a root file system that is read-only, one volume. What runs it is namespaces of
// the test's own, as runtimes of containers want more of the kernel than every machine gives.
//
// `SVC_CONTAINER=yes` asks for it: some minutes.
import assert from "node:assert/strict";
import { Build } from "./build.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, ROOT, runProgram, until } from "./harness.ts";
import { Running } from "./segment.ts";

const NEEDED = ["buildah", "debootstrap", "unshare"];
const USER = "953";
/** As its first process: the file system and the limits of `dist/compose.yaml`. */
const INSIDE = `set -e
root=$1
mount --bind "$root" "$root"
mount --bind "$2" "$root/var/lib/svc"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/tmp"
echo 53 >"$root/proc/sys/net/ipv4/ip_unprivileged_port_start"
ip link set lo up
mkdir -p "$root/mnt/old"
mount -o remount,bind,ro "$root"
cd "$root"
pivot_root . mnt/old
umount -l mnt/old
shift 2
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
  setpriv --reuid ${USER} --regid ${USER} --clear-groups --bounding-set=-all --inh-caps=-all \\
  --no-new-privs "$@"`;

interface ImageConfig {
  readonly User: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Volumes: Readonly<Record<string, unknown>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

async function succeed(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, ...args);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout.trim();
}

/** Ends a process, which may have ended. */
async function endOf(pid: number): Promise<void> {
  await runProgram("kill", "-KILL", String(pid));
}

Deno.test({
  name: "the container runs as its user, on a read-only root, and says whether it is well",
  permissions: PERMISSIONS,
  ignore: Deno.env.get("SVC_CONTAINER") !== "yes" || Deno.uid() !== 0 || !NEEDED.every(hasProgram),
}, async (t) => {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await OwnDirectory.make("svc-container-"));
  const { file, target } = stack.use(await Build.of());
  const places = ["--root", `${path}/storage`, "--runroot", `${path}/run`];
  const buildah = (...args: string[]) =>
    succeed("buildah", ...places, "--storage-driver", "vfs", ...args);
  await succeed("debootstrap", "--variant=minbase", "bookworm", `${path}/debian`);
  const base = await buildah("from", "scratch");
  await buildah("add", "--quiet", base, `${path}/debian`, "/");
  await buildah("commit", "--quiet", base, "localhost/debian");
  await Deno.mkdir(`${path}/context/dist/bin`, { recursive: true });
  await Deno.copyFile(`${ROOT}dist/container.toml`, `${path}/context/dist/container.toml`);
  await Deno.copyFile(file, `${path}/context/dist/bin/svc-${target}`);
  await buildah(
    ...["build", "--isolation", "chroot", "--format", "docker", "--tag", "svc"],
    ...["--build-arg", "BASE=localhost/debian", "--build-arg", `FILE=dist/bin/svc-${target}`],
    ...["--file", `${ROOT}dist/Containerfile`, `${path}/context`],
  );
  const inspected = JSON.parse(await buildah("inspect", "--type", "image", "svc"));
  const config: ImageConfig = inspected.Docker.config;
  const container = await buildah("from", "localhost/svc");
  const root = await buildah("mount", container);
  // As a runtime makes a new volume: with the rights of the folder in the image.
  const volume = `${path}/volume`;
  await succeed("cp", "-a", `${root}/var/lib/svc`, volume);

  const run = (...command: readonly string[]) => {
    const namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork"];
    const inside = ["sh", "-c", INSIDE, "sh", root, volume, ...command];
    return Running.start(inside, { prefix: ["unshare", ...namespaces, "--kill-child=SIGKILL"] });
  };

  await t.step("the image says who runs it, and how it is checked", () => {
    assert.equal(config.User, `${USER}:${USER}`);
    assert.deepEqual(Object.keys(config.Volumes), ["/var/lib/svc"]);
    assert.deepEqual(config.Healthcheck.Test, ["CMD", "svc", "health"]);
  });

  await t.step("it answers, and its root stays as it is", async () => {
    await using service = run(...config.Entrypoint, ...config.Cmd);
    await service.logged("answering");
    await service.logged("shut in", { user: "svc", landlock: true, seccomp: true });
    const { pid } = service;
    const inner = Number(await succeed("cat", `/proc/${pid}/task/${pid}/children`));
    // What it was started by does not end it, as it is somebody else's.
    await using _ended = { [Symbol.asyncDispose]: () => endOf(inner) };
    const enter = [`--target=${inner}`, "--mount", "--net", "--pid", "--wdns=/"];
    const who = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"];
    const path = "PATH=/usr/local/bin:/usr/bin:/bin";
    const inside = (...command: string[]) =>
      runProgram("nsenter", ...enter, ...who, "env", "-i", path, ...command);
    const [, ...check] = config.Healthcheck.Test;
    await until("it is well", async () => (await inside(...check)).code === 0);
    assert.equal((await inside("touch", "/usr/file")).code, 1, "the root is read-only");
    const status = await succeed("cat", `/proc/${inner}/status`);
    assert.match(status, /^CapEff:\t0+$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^Uid:\t953\t/m);
    // The end of the first process is that of its container.
    Deno.kill(inner, "SIGUSR2");
    const { error } = await service.logged("not upgraded, this program goes on");
    assert.match(String(error), /first process of its container.*: start a new container/);
    assert.equal((await inside(...check)).code, 0);
    Deno.kill(inner, "SIGTERM");
    assert.equal((await service.ended).code, 0, service.transcript());
    assert.ok([...Deno.readDirSync(volume)].length > 0, "its state is on the volume");
  });

  await buildah("rm", "--all");
});
