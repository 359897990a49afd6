/**
 * The entries of every isolate, for who has the runtime keep what it makes of them; nothing begins.
 * Scope: none. @module
 */
import "./check/check_worker.ts";
import "./compile/compile_worker.ts";
import "./dns/dns_worker.ts";
import "./dns/encrypted.ts";
import "./querylog/querylog_worker.ts";
