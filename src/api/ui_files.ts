/** The dashboard's files over HTTP: one shell for every page, and assets named after their content. */

/** A file as it is sent to whoever takes gzip, which is every browser. */
export interface UiFile {
  /** Its content type. */
  readonly type: string;
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** Of its content, in hexadecimal. */
  readonly hash: string;
}

/** The dashboard as it was built. */
export interface UiFiles {
  /** Of the script and the style inside the shell, SHA-256 in base64. */
  readonly digests: { readonly script: string; readonly style: string };
  /** What is answered for every page. */
  readonly shell: UiFile;
  /** By path, such as `/assets/main-5DZ3.js`; `undefined`: there is none. */
  asset(path: string): UiFile | undefined;
  /** Whether the dashboard has a page there. */
  hasPage(path: string): boolean;
}

/** Paths that are somebody else's. */
const OTHERS = /^\/(api|metrics)(\/|$)/;
const ASSETS = "/assets/";

/**
 * Scripts, styles and requests of this origin alone, and inside the shell what was built into it; no
 * text becomes HTML or script. The images are the leak test's: names below it are asked for, and
 * nothing is loaded.
 */
export function uiPolicy({ script, style }: UiFiles["digests"]): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${script}'`,
    `style-src 'self' 'sha256-${style}'`,
    "connect-src 'self'",
    "img-src 'self' data: http://*.leak.svc.test https://*.leak.svc.test",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/**
 * The answer to a request for the dashboard; `null` where the path is none of its. Whoever asks may
 * have it: it is public, and tells who is refused by the API why.
 */
export function serveUi(files: UiFiles, request: Request): Response | null {
  const { pathname } = new URL(request.url);
  const reads = request.method === "GET" || request.method === "HEAD";
  if (!reads || OTHERS.test(pathname)) return null;
  if (!pathname.startsWith(ASSETS)) {
    const status = files.hasPage(pathname) ? 200 : 404;
    const policy = uiPolicy(files.digests);
    return send(files.shell, request, status, {
      "Cache-Control": "no-cache",
      "Content-Security-Policy": policy,
    });
  }
  const asset = files.asset(pathname);
  return asset === undefined
    ? null
    : send(asset, request, 200, { "Cache-Control": "public, max-age=31536000, immutable" });
}

function send(
  file: UiFile,
  request: Request,
  status: number,
  own: Readonly<Record<string, string>>,
): Response {
  const isGzip = takesGzip(request.headers.get("accept-encoding") ?? "");
  const etag = `"${file.hash}${isGzip ? "-gzip" : ""}"`;
  const headers: Record<string, string> = {
    ...own,
    "ETag": etag,
    "Vary": "Accept-Encoding",
  };
  if (status === 200 && isKnown(request.headers.get("if-none-match"), etag)) {
    return new Response(null, { status: 304, headers });
  }
  headers["Content-Type"] = file.type;
  if (isGzip) {
    headers["Content-Encoding"] = "gzip";
    headers["Content-Length"] = String(file.gzip.length);
  }
  if (request.method === "HEAD") return new Response(null, { status, headers });
  if (isGzip) return new Response(file.gzip, { status, headers });
  const plain = new Blob([file.gzip]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain, { status, headers });
}

/** Whether gzip is among the codings that are taken (RFC 9110 §12.5.3). */
function takesGzip(accepted: string): boolean {
  return accepted.split(",").some((one) => {
    const [coding, ...parameters] = one.trim().toLowerCase().split(/\s*;\s*/);
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return coding === "gzip" && !isRefused;
  });
}

function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  return ifNoneMatch.split(",").some((one) => {
    const tag = one.trim().replace(/^W\//, "");
    return tag === etag || tag === "*";
  });
}
