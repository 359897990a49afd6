import type { Abilities, Canvas } from "./canvas.ts";
import { type Key, KeyReader } from "./keys.ts";

/** The other screen, without a cursor and with pasted text marked; and all of it taken back. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?2004h";
const LEAVE = "\x1b[m\x1b[?2004l\x1b[?25h\x1b[?1049l";

/** How long ESC may be the beginning of a key that is still on its way. */
const ESCAPE_MS = 50;
/** At most 10 frames a second. */
const FRAME_MS = 100;

const encoder = new TextEncoder();

/** Why it ended: a key, a signal, or a terminal that is gone. */
export type End = "key" | "signal" | "gone";

export interface TerminalOptions {
  readonly abilities: Abilities;
  readonly draw: (width: number, height: number) => Canvas;
  readonly onKey: (key: Key) => void;
}

/** What the environment says of the terminal. */
export function abilitiesOf(env: (name: string) => string | undefined): Abilities {
  const locale = [env("LC_ALL"), env("LC_CTYPE"), env("LANG")].find((one) => one) ?? "";
  return {
    colour: !env("NO_COLOR") && env("TERM") !== "dumb",
    unicode: /utf-?8/i.test(locale),
  };
}

/**
 * The terminal of this process: keys come in, pictures go out. A frame is the difference of two
 * pictures in cells, written at once and only when the one before is through: a slow line gets fewer
 * frames, never a queue of them. This is our own rather than a library: Ink with React takes 65 MiB and
 * 39 packages more, wants all of the environment, and others there are do not run here.
 */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #keys = new KeyReader();
  readonly #ended = Promise.withResolvers<End>();
  #shown: Canvas | null = null;
  #isIn = false;
  #isDirty = false;
  #isDrawing = false;
  #drawnAtMs = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #escape: ReturnType<typeof setTimeout> | undefined;

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  /** Shows the screen until the end, and restores what was there, whatever the end was. */
  async run(): Promise<End> {
    const end = () => this.end("signal");
    const resize = () => this.redraw();
    // Whoever stopped and continued this may have changed the terminal.
    const comeBack = () => {
      if (this.#isIn) this.#enter();
      this.redraw();
    };
    const lost = (event: ErrorEvent | PromiseRejectionEvent) => {
      event.preventDefault();
      this.fail("reason" in event ? event.reason : event.error);
    };
    const signals = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const;
    for (const signal of signals) Deno.addSignalListener(signal, end);
    Deno.addSignalListener("SIGWINCH", resize);
    Deno.addSignalListener("SIGCONT", comeBack);
    addEventListener("error", lost);
    addEventListener("unhandledrejection", lost);
    try {
      this.#enter();
      void this.#read();
      this.requestDraw();
      return await this.#ended.promise;
    } finally {
      clearTimeout(this.#timer);
      clearTimeout(this.#escape);
      this.#leave();
      for (const signal of signals) Deno.removeSignalListener(signal, end);
      Deno.removeSignalListener("SIGWINCH", resize);
      Deno.removeSignalListener("SIGCONT", comeBack);
      removeEventListener("error", lost);
      removeEventListener("unhandledrejection", lost);
    }
  }

  end(why: End): void {
    this.#ended.resolve(why);
  }

  /** @throws Out of `run`, when the screen has been restored. */
  fail(error: unknown): void {
    this.#ended.reject(error);
  }

  /** Something is other than it is shown. */
  requestDraw(): void {
    this.#isDirty = true;
    if (this.#timer !== undefined || this.#isDrawing || !this.#isIn) return;
    const waitMs = Math.max(0, this.#drawnAtMs + FRAME_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#draw();
    }, waitMs);
  }

  /** Draws all of it anew. */
  redraw(): void {
    this.#shown = null;
    this.requestDraw();
  }

  /** Stops as any program does at Ctrl+Z, with the terminal as it was; comes back whole. */
  suspend(): void {
    this.#leave();
    Deno.kill(Deno.pid, "SIGTSTP");
    // The signal may come a moment later; until then nothing is to be drawn.
    setTimeout(() => {
      this.#enter();
      this.redraw();
    }, FRAME_MS);
  }

  async #draw(): Promise<void> {
    if (!this.#isIn) return;
    this.#isDrawing = true;
    this.#isDirty = false;
    this.#drawnAtMs = performance.now();
    try {
      const { columns, rows } = Deno.consoleSize();
      const canvas = this.#options.draw(columns, rows);
      const text = canvas.differenceFrom(this.#shown);
      this.#shown = canvas;
      if (text !== "") await writeAll(encoder.encode(text));
    } catch (error) {
      if (isGone(error)) this.end("gone");
      else this.fail(error);
    } finally {
      this.#isDrawing = false;
    }
    if (this.#isDirty) this.requestDraw();
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(4_096);
    try {
      for (;;) {
        const length = await Deno.stdin.read(buffer);
        if (length === null) return this.end("gone");
        clearTimeout(this.#escape);
        this.#tell(this.#keys.read(buffer.subarray(0, length)));
        if (this.#keys.isWaiting) {
          this.#escape = setTimeout(() => this.#tell(this.#keys.flush()), ESCAPE_MS);
        }
      }
    } catch (error) {
      if (isGone(error)) this.end("gone");
      else this.fail(error);
    }
  }

  #tell(keys: readonly Key[]): void {
    try {
      for (const key of keys) this.#options.onKey(key);
    } catch (error) {
      this.fail(error);
    }
    if (keys.length > 0) this.requestDraw();
  }

  #enter(): void {
    Deno.stdin.setRaw(true);
    this.#isIn = true;
    Deno.stdout.writeSync(encoder.encode(ENTER));
  }

  #leave(): void {
    if (!this.#isIn) return;
    this.#isIn = false;
    try {
      Deno.stdout.writeSync(encoder.encode(LEAVE));
      Deno.stdin.setRaw(false);
    } catch (error) {
      if (!isGone(error)) throw error; // Nobody is left to see it.
    }
  }
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
}

/** What a terminal that hung up answers: EIO, EPIPE, ENOTTY or ENXIO. */
function isGone(error: unknown): boolean {
  if (error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.BadResource) {
    return true;
  }
  return error instanceof Error && /os error (5|6|25|32)\b/.test(error.message);
}
