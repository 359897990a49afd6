/**
 * The isolates of `svc run`: what each may touch, what is said between them, and who starts them
 * again. Scope: each entry's own. @module
 */
export { type CompiledRules, compileRules } from "./compile.ts";
export type { CompileRequest, DnsUpstream } from "./messages.ts";
export { type Isolate, SCOPES } from "./scopes.ts";
export { type DnsOptions, DnsSupervisor } from "./supervisor.ts";
