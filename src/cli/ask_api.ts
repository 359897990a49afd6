import { ApiClient } from "../client/mod.ts";
import { SvcError } from "../errors.ts";
import { readSecretFile } from "./secret_file.ts";

export const DEFAULT_API = "http://127.0.0.1:8053";

/** Where the API is, and the file of its token, as options of a command have them. */
export interface ApiOptions {
  readonly api?: string | undefined;
  readonly "token-file"?: string | undefined;
}

/**
 * A client of the API that the options name, or what is wrong with them.
 *
 * @throws {SvcError} When the token can't be read.
 */
export async function clientOf(options: ApiOptions): Promise<ApiClient | string> {
  const base = URL.parse(options.api ?? DEFAULT_API);
  if (base === null || !/^https?:$/.test(base.protocol)) {
    return `--api: ${options.api} is no http or https URL`;
  }
  const file = options["token-file"];
  const token = file === undefined ? null : await readSecretFile(file);
  return new ApiClient({ base, token });
}

/** Asks; where the token is missing or wrong it says how one is given. @throws {SvcError} */
export async function askApi<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "unauthorized") throw error;
    throw new SvcError(error.code, `${error.message} (--token-file FILE gives the token)`);
  }
}
