/** A system without libcrypto, for one program: its files have something else in their place. */
import { LIBCRYPTO_PATHS } from "../../src/native/checking.ts";

const HIDE = `for file in ${LIBCRYPTO_PATHS.join(" ")}; do
  if [ -e "$file" ]; then mount --bind /dev/null "$file" || exit 1; fi
done
exec "$@"`;

/** The command to run a program by, or `null` where this machine does not let mounts be made. */
export async function withoutLibcrypto(): Promise<readonly string[] | null> {
  const user = Deno.uid() === 0 ? [] : ["--map-root-user"];
  const prefix = ["unshare", ...user, "--mount", "sh", "-c", HIDE, "sh"];
  const [command, ...args] = [...prefix, "true"];
  const { success } = await new Deno.Command(command, { args, stdin: "null", stderr: "null" })
    .output()
    .catch(() => ({ success: false }));
  if (!success) console.log("skipped: this machine has no mounts of one's own");
  return success ? prefix : null;
}
