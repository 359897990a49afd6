import type { OtlpLogLine } from "../otlp/mod.ts";
import { showEntry, type StoredEntry } from "../querylog/entry.ts";

/** An entry of the query log as a log record; what it has not is left out. */
export function otlpLine(stored: StoredEntry): OtlpLogLine {
  const entry = showEntry(stored);
  const { name, type, outcome } = entry;
  const fields = {
    "svc.outcome": outcome,
    "svc.protocol": entry.protocol,
    "dns.question.name": name,
    "dns.question.type": type,
    "dns.response.code": entry.rcode,
    "dns.answers": entry.answers.length === 0 ? null : entry.answers.join(", "),
    "client.address": entry.client,
    "svc.client.name": entry.client_name,
    "svc.client.id": entry.client_id,
    "svc.group": entry.group,
    "svc.rule": entry.rule,
    "svc.list": entry.list,
    "svc.upstream": entry.upstream,
    "svc.cached": entry.cached,
    "svc.dnssec": entry.dnssec,
    "svc.dnssec.reason": entry.dnssec_reason,
    "svc.duration_us": entry.duration_us,
  };
  const told = Object.entries(fields).flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const]
  );
  return {
    timeMs: stored.timeMs,
    level: "info",
    message: `${outcome} ${name} ${type}`,
    fields: Object.fromEntries(told),
  };
}
