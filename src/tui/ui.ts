/** What a page works with: the node, its API, and the screen around it. */
import type { ApiClient } from "../client/mod.ts";
import type { Canvas } from "./canvas.ts";
import type { Key } from "./keys.ts";
import type { NodeData } from "./node_data.ts";

/** A part of the screen. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** One of the screens that a number leads to. */
export interface Page {
  readonly title: string;
  /** What its keys do, for the line of hints. */
  readonly hints: string;
  draw(canvas: Canvas, area: Area): void;
  /** Says whether the key was one of its own. */
  onKey(key: Key, ui: Ui): boolean;
}

/** What stands over a page until it is closed. */
export interface Dialog {
  draw(canvas: Canvas, area: Area): void;
  /** Says whether it is done. */
  onKey(key: Key, ui: Ui): "stays" | "closes";
}

/** What came of a change. */
export interface Done {
  /** Takes it back. */
  readonly undo: (() => Promise<void>) | null;
  /** What is not as it was meant, in words. */
  readonly but: string | null;
}

export interface Ui {
  readonly node: NodeData;
  readonly client: ApiClient;
  open(dialog: Dialog): void;
  close(): void;
  /** Says something for a while. */
  say(text: string): void;
  /** Changes the node, and says what was done, or why it was not. */
  act(said: string, work: () => Promise<Done>): void;
  /** Shows the log with a filter. */
  showLog(filter: string): void;
}

/** Which row of many is chosen, and which are in sight. */
export class Cursor {
  index = 0;
  #top = 0;

  /** Says whether the key moved it. */
  move({ name }: Key, count: number, height: number): boolean {
    const page = Math.max(1, height - 1);
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      k: -1,
      down: 1,
      j: 1,
      pageup: -page,
      pagedown: page,
      g: -Infinity,
      home: -Infinity,
      G: Infinity,
      end: Infinity,
    };
    const step = steps[name];
    if (step === undefined) return false;
    this.index = Math.max(0, Math.min(count - 1, this.index + step));
    return true;
  }

  /** The first row in sight. */
  top(count: number, height: number): number {
    this.index = Math.max(0, Math.min(count - 1, this.index));
    this.#top = Math.min(this.#top, this.index, Math.max(0, count - height));
    this.#top = Math.max(this.#top, this.index - height + 1, 0);
    return this.#top;
  }
}
