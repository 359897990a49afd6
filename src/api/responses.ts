/** Responses as bytes: heads of HTTP/1.1, and what is answered where no request was read. */
import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import { SECURITY_HEADERS } from "./headers.ts";

export type Fields = Iterable<readonly [string, string]>;

/** Methods that some endpoint knows, for the `Allow` of a request that names no path. */
const METHODS = "GET, HEAD, POST, PUT, DELETE";

/** Why a request was not read, by status. */
const REASONS: Readonly<Record<number, string>> = {
  400: "it is no well-formed request of HTTP/1.1 for a path",
  408: "it did not come in time",
  414: "its path and query string are too long",
  417: "no expectation but 100-continue is known",
  431: "its header fields are too many or too long",
  501: "no transfer coding but chunked is known",
  505: "versions are HTTP/1.1 and HTTP/1.0",
};

/** The head of a response with what all have in common; names are in lower case. */
export function headOf(status: number, fields: Fields): Buffer {
  const own = new Set<string>();
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (const [name, value] of fields) {
    own.add(name);
    text += `${name}: ${value}\r\n`;
  }
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
    if (!own.has(name)) text += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${text}date: ${new Date().toUTCString()}\r\n\r\n`, "latin1");
}

/** The whole answer to what could not be read; the connection ends behind it. */
export function refusal(status: number): Buffer {
  const ending = [["connection", "close"]] as const;
  // As everywhere, a wrong method is told by `Allow` and nothing else.
  if (status === 405) {
    return headOf(status, [["content-length", "0"], ["allow", METHODS], ...ending]);
  }
  const body = Buffer.from(
    JSON.stringify({
      error: { code: "bad_request", message: `request: ${REASONS[status] ?? REASONS[400]}` },
    }),
  );
  const head = headOf(status, [
    ["content-type", "application/json"],
    ["content-length", String(body.length)],
    ...ending,
  ]);
  return Buffer.concat([head, body]);
}

/** What is answered where the handler itself failed. */
export function failed(): Response {
  return Response.json({ error: { code: "internal", message: "the service failed" } }, {
    status: 500,
  });
}
