import { type AccessRequest, authenticate } from "../auth/mod.ts";
import { SvcError } from "../errors.ts";
import type { ApiDeps } from "./ports.ts";

/** How often each open stream's credentials are looked at: a session also ends by itself. */
const CHECK_MS = 1_000;

interface OpenStream {
  readonly from: AccessRequest;
  readonly end: () => void;
}

/**
 * Streams that are being sent, each with the request that opened it. A stream lives as long as that
 * request would still be let in: it ends with its session or token, its user, their role, or with
 * the first account of a node that was open to this machine.
 */
export class OpenStreams {
  readonly #deps: Pick<ApiDeps, "access" | "auth">;
  readonly #open = new Set<OpenStream>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(deps: Pick<ApiDeps, "access" | "auth" | "replicator">) {
    this.#deps = deps;
    // Also what another member or the command line changed.
    deps.replicator.subscribe(({ change }) => {
      const isOfAccess = change === null || /^(user_|credential_|restore$)/.test(change.type);
      if (isOfAccess) void this.check();
    });
  }

  /** Passes a body on while `from` may have it; then a file breaks off, and anything else ends. */
  guard(
    body: ReadableStream<Uint8Array<ArrayBuffer>>,
    from: AccessRequest,
    isFile: boolean,
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const reader = body.getReader();
    let isRefused = false;
    const stream: OpenStream = {
      from,
      end: () => {
        isRefused = true;
        this.#forget(stream);
        reader.cancel().catch(() => undefined); // Whoever waits for the next piece gets the end.
      },
    };
    this.#open.add(stream);
    this.#timer ??= setInterval(() => void this.check(), CHECK_MS);
    return new ReadableStream({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (isRefused && isFile) throw new SvcError("unauthorized", "the access is over");
          if (!done && !isRefused) return controller.enqueue(value);
          this.#forget(stream);
          controller.close();
        } catch (error) {
          this.#forget(stream);
          throw error;
        }
      },
      cancel: async () => {
        this.#forget(stream);
        await reader.cancel();
      },
    }, { highWaterMark: 0 });
  }

  /** Ends each stream whose request would not be let in any more. */
  async check(): Promise<void> {
    const { auth, access } = this.#deps;
    await Promise.all([...this.#open].map(async ({ from, end }) => {
      try {
        await authenticate(auth, access, from, "viewer");
      } catch {
        end();
      }
    }));
  }

  #forget(stream: OpenStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
