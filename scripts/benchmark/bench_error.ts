/** What stops a measurement and can be mended; printed as one line. */
export class BenchError extends Error {
  override readonly name = "BenchError";
}
