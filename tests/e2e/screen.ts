/** A terminal that a test looks at and types into: a shell in tmux, with what it was sent kept. */
import assert from "node:assert/strict";
import { ROOT, runProgram, svcCommand, until } from "./harness.ts";

/** Longest wait for what a screen is to show. */
const SHOWN_MS_MAX = 20_000;

export interface ScreenOptions {
  readonly width?: number;
  readonly height?: number;
  /** Beside `LANG=C.UTF-8` and what tmux says of itself. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Screen implements AsyncDisposable {
  private constructor(readonly directory: string, readonly name: string) {}

  /** A shell's screen; `directory` is the test's own, `name` one of a kind in it. */
  static async open(directory: string, name: string, options: ScreenOptions = {}): Promise<Screen> {
    const { width = 80, height = 24, env = {} } = options;
    const screen = new Screen(directory, name);
    const size = ["-x", String(width), "-y", String(height)];
    const vars = Object.entries({ LANG: "C.UTF-8", ...env }).map(([key, value]) =>
      `${key}=${value}`
    );
    const shell = ["env", "-u", "NO_COLOR", "-u", "LC_ALL", "PS1=$ ", ...vars, "sh", "-i"];
    await screen.#tmux("new-session", "-d", ...size, ...shell);
    await screen.#tmux("pipe-pane", `cat >> ${screen.#file("out")}`);
    await screen.shows(/^\$ *$/m);
    return screen;
  }

  /** Starts `svc` with these arguments, as somebody would who types it. */
  async svc(...args: string[]): Promise<void> {
    const quoted = svcCommand(args).map((one) => `'${one.replaceAll("'", `'\\''`)}'`).join(" ");
    const script = `cd ${ROOT}\necho $$ > ${this.#file("pid")}\nexec ${quoted}\n`;
    await Deno.writeTextFile(this.#file("sh"), script);
    const [before, after] = [this.#file("before"), this.#file("after")];
    await this.types(
      `stty -a >${before}; sh ${this.#file("sh")}; echo "ended $?"; stty -a >${after}; echo ok`,
    );
    await this.press("Enter");
  }

  /** Presses keys, by tmux's names of them. */
  async press(...keys: string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  async types(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", text);
  }

  async text(): Promise<string> {
    return await this.#tmux("capture-pane", "-p");
  }

  /** Waits until the screen shows this. */
  async shows(...wanted: readonly (RegExp | string)[]): Promise<string> {
    let text = "";
    const has = (want: RegExp | string) =>
      typeof want === "string" ? text.includes(want) : want.test(text);
    try {
      await until(`${wanted}`, async () => {
        text = await this.text();
        return wanted.every(has);
      }, SHOWN_MS_MAX);
    } catch {
      assert.fail(`${wanted.filter((want) => !has(want))} on\n${text}`);
    }
    return text;
  }

  async lacks(unwanted: RegExp | string): Promise<void> {
    let text = "";
    const has = () => typeof unwanted === "string" ? text.includes(unwanted) : unwanted.test(text);
    try {
      await until(`no ${unwanted}`, async () => {
        text = await this.text();
        return !has();
      }, SHOWN_MS_MAX);
    } catch {
      assert.fail(`${unwanted} is still on\n${text}`);
    }
  }

  async resize(width: number, height: number): Promise<void> {
    await this.#tmux("resize-window", "-x", String(width), "-y", String(height));
  }

  /** All that was written to it. */
  async written(): Promise<string> {
    return await Deno.readTextFile(this.#file("out"));
  }

  /** The process that `svc` started. */
  async pid(): Promise<number> {
    return Number(await Deno.readTextFile(this.#file("pid")));
  }

  /** The shell is back, its screen, cursor and line discipline as they were. */
  async isClean(code: number): Promise<void> {
    const text = await this.shows(`ended ${code}`, /^ok$/m);
    assert.ok(!text.includes("[1 Status]"), text);
    const flags = "#{alternate_on} #{cursor_flag}";
    assert.equal((await this.#tmux("display-message", "-p", flags)).trim(), "0 1");
    const [before, after] = await Promise.all(
      ["before", "after"].map((name) => Deno.readTextFile(this.#file(name))),
    );
    assert.equal(after, before);
    assert.ok((await this.written()).lastIndexOf("\x1b[?2004l") > 0);
  }

  /** The terminal goes, as when a line hangs up. */
  async hangUp(): Promise<void> {
    await this.#tmux("kill-session");
  }

  #file(name: string): string {
    return `${this.directory}/${this.name}.${name}`;
  }

  async #tmux(command: string, ...args: string[]): Promise<string> {
    const where = ["-u", "-S", this.#file("tmux"), "-f", "/dev/null"];
    const { code, stdout, stderr } = await runProgram("tmux", ...where, command, ...args);
    assert.equal(code, 0, `tmux ${command} ${args}: ${stderr}`);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Its server may have ended with its last session.
    await runProgram("tmux", "-S", this.#file("tmux"), "kill-server");
  }
}
