/**
 * What the program on disk is by now, for whoever goes on as it. Scope: ffi, read. @module
 */
import { dirname } from "node:path/posix";
import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";
import { cString, environmentOf, ownProgram, type Program } from "../process/mod.ts";

/** The file that carries runtime and program, if they were extracted from one. */
export const FILE_VARIABLE = "SVC_FILE";
const CACHES_VARIABLE = "DENO_DIR";
/** The script at the head of such a file is shorter. */
const SCRIPT_BYTES_MAX = 64 * 1024;
const SHA256 = /^payload_sha256=([0-9a-f]{64})$/m;

/**
 * What this program is by now: the runtime and the modules as they stand on disk, or what the file
 * that they were extracted from holds today. That has to be extracted already: whoever is shut in
 * can't write where programs are. `command` is the one that it is to run.
 *
 * @throws {SvcError} `unavailable`, with what is in the way.
 */
export async function nextProgram(
  process: Process,
  command: "run" | "vrrp",
): Promise<Program> {
  const own = ownProgram(process);
  const file = environmentOf(process, FILE_VARIABLE);
  if (file === null) return own;
  const script = await headOf(file);
  const sha256 = SHA256.exec(script)?.[1];
  // The runtime's flags for the command, as the script has them.
  const flags = new RegExp(`^# svc ${command}: (.*)$`, "m").exec(script)?.[1];
  if (sha256 === undefined || flags === undefined) {
    throw new SvcError("unavailable", `${file}: it is no file of svc by now: put one there`);
  }
  const extracted = `${dirname(dirname(own.path))}/svc-${sha256}`;
  try {
    await Deno.stat(`${extracted}/complete`);
  } catch {
    throw new SvcError(
      "unavailable",
      `${file}: it is not extracted yet: run SVC_CACHE_DIR=${
        dirname(extracted)
      } ${file} version as ` +
        "who installed it, then send SIGUSR2 again",
    );
  }
  const { symbols } = process;
  symbols.setenv(cString(CACHES_VARIABLE), cString(`${extracted}/deno_dir`), 1);
  return {
    path: `${extracted}/deno`,
    args: [`${extracted}/deno`, ...argumentsOf(flags, extracted), ...Deno.args],
  };
}

/** As the script would start it. */
function argumentsOf(flags: string, extracted: string): string[] {
  return flags.split(" ").map((flag) => flag.replace("@EXTRACTED@", extracted));
}

async function headOf(path: string): Promise<string> {
  try {
    using file = await Deno.open(path);
    const bytes = new Uint8Array(SCRIPT_BYTES_MAX);
    const length = await file.read(bytes);
    return new TextDecoder().decode(bytes.subarray(0, length ?? 0));
  } catch (cause) {
    throw new SvcError("unavailable", `${path}: it can't be read: put the program there`, {
      cause,
    });
  }
}
