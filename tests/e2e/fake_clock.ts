/** A wall clock that a test sets for a program while it runs, by libfaketime. */
import { hasProgram } from "./harness.ts";

/** The library behind the program, in the folder of this machine's kind. */
function library(): string | null {
  if (!hasProgram("faketime")) return null;
  for (const { name } of Deno.readDirSync("/usr/lib")) {
    const path = `/usr/lib/${name}/faketime/libfaketimeMT.so.1`;
    try {
      Deno.statSync(path);
      return path;
    } catch {
      // Another folder.
    }
  }
  console.log("skipped: there is no libfaketimeMT.so.1 on this machine");
  return null;
}

/** `null`: there is none on this machine; tests that need it are ignored then. */
export const FAKETIME_LIBRARY = library();

/** So many seconds, as the library reads them. */
export function offsetText(seconds: number): string {
  return `${seconds < 0 ? "" : "+"}${seconds}`;
}

/** The clock of one program, by a file. */
export class FakeClock {
  private constructor(private readonly file: string) {}

  /** `offset` is what the library reads: `+0`, `-400d`. */
  static async make(file: string, offset: string): Promise<FakeClock> {
    await Deno.writeTextFile(file, offset);
    return new FakeClock(file);
  }

  /** Before the program's command. */
  get prefix(): string[] {
    return [
      ...["env", `LD_PRELOAD=${FAKETIME_LIBRARY}`, `FAKETIME_TIMESTAMP_FILE=${this.file}`],
      ...["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"],
    ];
  }

  /** Sets the clock, as seen by the next look. */
  async set(offset: string): Promise<void> {
    await Deno.writeTextFile(`${this.file}.new`, offset);
    await Deno.rename(`${this.file}.new`, this.file);
  }
}
