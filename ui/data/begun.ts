/**
 * Requests that the shell's own script begins while the rest of the scripts is on its way. It and they
 * are built apart, so what was begun lies where both find it.
 */
interface One {
  readonly response: Promise<Response>;
  /** When it was sent, by the browser's clock. */
  readonly sentMs: number;
}
type Begun = Map<string, One>;

const NAME = "svcBegun";
const MS_MAX = 30_000;

function begun(): Begun {
  const holder = globalThis as { [NAME]?: Begun };
  return holder[NAME] ??= new Map();
}

export function begin(path: string): Promise<Response> {
  const response = ask(path);
  response.catch(() => undefined); // Whoever takes it says so.
  begun().set(path, { response, sentMs: Date.now() });
  return response;
}

async function ask(path: string): Promise<Response> {
  const response = await fetch(path, { signal: AbortSignal.timeout(MS_MAX) });
  // Read by the time that it is taken: what shows it is drawn with it, not once without it first.
  const body = await response.text();
  response.json = async () => await JSON.parse(body);
  return response;
}

/** Resolves once there is an answer to all that was begun. */
export async function allBegun(): Promise<void> {
  await Promise.allSettled(Array.from(begun().values(), ({ response }) => response));
}

/** The answer to come, if it was begun; each is for one that asks. */
export function takeBegun(path: string): One | undefined {
  const one = begun().get(path);
  begun().delete(path);
  return one;
}

/** What nobody took by now would be old by the time that somebody does. */
export function forgetBegun(): void {
  begun().clear();
}
