/** What a measurement uses and leaves nothing of: a folder and the processes it started. */
import { Child, isInstalled } from "./processes.ts";

/** The checkout. */
export const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

export class Workspace implements AsyncDisposable {
  readonly directory: string;
  readonly #children = new Set<Child>();
  #disposed: Promise<void> | null = null;

  constructor() {
    this.directory = Deno.makeTempDirSync({ prefix: "svc-bench-" });
  }

  /** Where a file of this name lies, or is to lie. */
  path(name: string): string {
    return `${this.directory}/${name}`;
  }

  /** Writes a file; returns its path. */
  async write(name: string, text: string): Promise<string> {
    const path = this.path(name);
    await Deno.writeTextFile(path, text);
    return path;
  }

  async makeFolder(name: string): Promise<string> {
    const path = this.path(name);
    await Deno.mkdir(path, { recursive: true });
    return path;
  }

  start(name: string, program: string, args: readonly string[]): Child {
    const child = new Child(name, program, args);
    this.#children.add(child);
    return child;
  }

  async stop(child: Child): Promise<void> {
    await child.stop();
    this.#children.delete(child);
  }

  /** Once, also when a signal and the end of a measurement come together. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#disposed ??= this.#dispose();
  }

  async #dispose(): Promise<void> {
    await Promise.all(Array.from(this.#children, (child) => this.stop(child)));
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** The programs of `wanted` that this machine lacks. */
export function missingPrograms(wanted: readonly string[]): string[] {
  return wanted.filter((program) => !isInstalled(program));
}
