/**
 * What checks signatures and tells of it: two libraries, by their files, and of each no more than that
 * takes. An entrance of its own, so that a thread that checks holds nothing else. Scope: ffi. @module
 */
export { LibCrypto, LIBCRYPTO_PATHS, type LibraryHash, type LibraryKey } from "./libcrypto.ts";
export { Waker, WAKER_PATHS } from "./waker.ts";
