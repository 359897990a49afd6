import { SvcError } from "../errors.ts";
import { readSecretFile } from "./secret_file.ts";

/** Longest password that is typed. */
const PASSWORD_LENGTH_MAX = 1_024;
const [NEWLINE, RETURN, INTERRUPT, END, BACKSPACE, DELETE, KILL] = [10, 13, 3, 4, 8, 127, 21];

/** What a password is typed into. */
export interface Typed {
  /** `null`: nothing more comes. */
  read(into: Uint8Array): Promise<number | null>;
  setRaw(isRaw: boolean): void;
}

/**
 * The password from a file, or as somebody types it, which is not shown; `null` where there is
 * neither. `place` says what it is for; `null`: nobody is asked.
 *
 * @throws {SvcError} When the file can't be read, or nobody wants to type.
 */
export async function readPassword(
  file: string | undefined,
  place: string | null,
): Promise<string | null> {
  if (file !== undefined) return await readSecretFile(file);
  if (place === null || !Deno.stdin.isTerminal() || !Deno.stderr.isTerminal()) return null;
  const prompt = `password for ${place.replace(/\p{C}/gu, "")} (empty: none): `;
  await Deno.stderr.write(new TextEncoder().encode(prompt));
  try {
    const typed = await typedPassword({
      read: (into) => Deno.stdin.read(into),
      setRaw: (isRaw) => Deno.stdin.setRaw(isRaw),
    });
    return typed === "" ? null : typed;
  } finally {
    await Deno.stderr.write(new Uint8Array([NEWLINE]));
  }
}

/** One line as it is typed, without showing it. */
export async function typedPassword({ read, setRaw }: Typed): Promise<string> {
  const bytes: number[] = [];
  const buffer = new Uint8Array(256);
  setRaw(true);
  try {
    for (;;) {
      const length = await read(buffer);
      if (length === null) return textOf(bytes);
      for (const byte of buffer.subarray(0, length)) {
        if (byte === NEWLINE || byte === RETURN || byte === END) return textOf(bytes);
        if (byte === INTERRUPT) throw new SvcError("bad_request", "no password was given");
        if (byte === KILL) bytes.length = 0;
        else if (byte === BACKSPACE || byte === DELETE) dropLast(bytes);
        else bytes.push(byte);
        if (bytes.length > PASSWORD_LENGTH_MAX) {
          throw new SvcError("invalid", `password: it is longer than ${PASSWORD_LENGTH_MAX} bytes`);
        }
      }
    }
  } finally {
    setRaw(false);
  }
}

/** Takes the last letter away, which may be several bytes. */
function dropLast(bytes: number[]): void {
  while (bytes.length > 0 && (bytes.pop()! & 0xc0) === 0x80);
}

function textOf(bytes: readonly number[]): string {
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
