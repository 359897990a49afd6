/**
 * Requests that the shell's own script begins while the rest of the scripts is on its way. It and they
 * are built apart, so what was begun lies where both find it.
 */
type Begun = Map<string, Promise<Response>>;

const NAME = "svcBegun";
const MS_MAX = 30_000;

function begun(): Begun {
  const holder = globalThis as { [NAME]?: Begun };
  return holder[NAME] ??= new Map();
}

export function begin(path: string): Promise<Response> {
  const response = ask(path);
  response.catch(() => undefined); // Whoever takes it says so.
  begun().set(path, response);
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
  await Promise.allSettled(begun().values());
}

/** The answer to come, if it was begun; each is for one that asks. */
export function takeBegun(path: string): Promise<Response> | undefined {
  const response = begun().get(path);
  begun().delete(path);
  return response;
}

/** What nobody took by now would be old by the time that somebody does. */
export function forgetBegun(): void {
  begun().clear();
}
