import { BACKUP_BYTES_MAX } from "../backup/mod.ts";
import { SvcError } from "../errors.ts";
import { BodyError } from "./errors.ts";
import { parseStrictJson } from "./strict_json.ts";

/** Largest body of a request. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Where one is larger: whoever restores sends the whole configuration. */
const LARGER_BODIES: Readonly<Record<string, number>> = { "/api/v1/restore": BACKUP_BYTES_MAX };

/** The largest body for a path, which may have a query behind it. Nobody reads it but who may. */
export function bodyBytesMax(target: string): number {
  const path = target.split("?", 1)[0];
  return Object.hasOwn(LARGER_BODIES, path) ? LARGER_BODIES[path] : BODY_BYTES_MAX;
}

/** Says whether a request brings a body at all (RFC 9112 §6.3). */
export function hasBody(headers: Headers): boolean {
  const length = headers.get("content-length");
  return headers.has("transfer-encoding") || (length !== null && length !== "0");
}

/**
 * Reads a JSON body: its type, its size, then its text. No more than the limit is ever held.
 *
 * @throws {BodyError} Of a wrong type, or too large.
 * @throws {SvcError} `bad_request`, if it is no JSON, or says something twice.
 */
export async function readJsonBody(request: Request): Promise<unknown> {
  const type = request.headers.get("content-type");
  if (hasBody(request.headers) || type !== null) {
    const essence = (type ?? "").split(";", 1)[0].trim().toLowerCase();
    if (essence !== "application/json") {
      throw new BodyError(415, "Content-Type: it is not application/json");
    }
  }
  const bytes = await readBytes(request, bodyBytesMax(new URL(request.url).pathname));
  if (bytes.length === 0) throw new SvcError("bad_request", "body: it is empty");
  return parseStrictJson(bytes);
}

export function bodyTooLarge(bytesMax: number): BodyError {
  return new BodyError(413, `body: it is larger than ${bytesMax} bytes`);
}

async function readBytes({ headers, body }: Request, bytesMax: number): Promise<Uint8Array> {
  if (Number(headers.get("content-length") ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
  if (body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      if (length > bytesMax) throw bodyTooLarge(bytesMax);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError("bad_request", "body: it breaks off", { cause: error });
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
