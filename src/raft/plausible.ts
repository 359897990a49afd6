import { isWellFormed } from "./configuration.ts";
import {
  APPEND_ENTRIES_MAX,
  ENTRY_BYTES_MAX,
  ID_LENGTH_MAX,
  INDEX_MAX,
  TERM_JUMP_MAX,
  TERM_MAX,
} from "./limits.ts";
import type { Entry, LogEnd, Message, RaftSnapshot } from "./messages.ts";

/**
 * Whether a member that works as this one does could have sent this. Types are the decoder's
 * matter; what the numbers say of each other is held against the log's own form here, so that
 * what follows need not ask.
 */
export function isPlausible(message: Message, currentTerm: number): boolean {
  const { from, term } = message;
  if (from === "" || from.length > ID_LENGTH_MAX) return false;
  if (!isTerm(term) || term > currentTerm + TERM_JUMP_MAX) return false;
  switch (message.type) {
    case "requestVote":
    case "preVote":
      return isLogEnd(message) && message.lastLogTerm < term;
    case "requestVoteResponse":
    case "preVoteResponse":
    case "timeoutNow":
      return true;
    case "appendEntries":
      return isIndex(message.leaderCommit) && isIndex(message.round) &&
        isRun(message.prevLogIndex, message.prevLogTerm, message.entries, term);
    case "appendEntriesResponse":
      return isIndex(message.matchIndex) && isIndex(message.rejectedIndex) &&
        isIndex(message.hintIndex) && isTerm(message.hintTerm) && isIndex(message.round);
    case "installSnapshot":
      return isRaftSnapshot(message.snapshot) && message.snapshot.term <= term;
    case "offerLog":
      return isLogEnd(message) && message.lastLogTerm <= term;
    case "fetchEntries":
      return isIndex(message.index) && isTerm(message.indexTerm);
    case "fetchedEntries": {
      const { prevLogIndex, prevLogTerm, entries, lastLogIndex, lastLogTerm } = message;
      return isLogEnd(message) && lastLogTerm <= term &&
        prevLogIndex + entries.length <= lastLogIndex &&
        isRun(prevLogIndex, prevLogTerm, entries, lastLogTerm);
    }
    case "fetchedSnapshot":
      return isLogEnd(message) && message.lastLogTerm <= term && isRaftSnapshot(message.snapshot) &&
        message.snapshot.index <= message.lastLogIndex &&
        message.snapshot.term <= message.lastLogTerm;
  }
}

function isTerm(term: number): boolean {
  return Number.isInteger(term) && term >= 0 && term <= TERM_MAX;
}

function isIndex(index: number): boolean {
  return Number.isInteger(index) && index >= 0 && index <= INDEX_MAX;
}

function isLogEnd({ lastLogIndex, lastLogTerm }: LogEnd): boolean {
  return isIndex(lastLogIndex) && isTerm(lastLogTerm) && (lastLogIndex > 0 || lastLogTerm === 0);
}

/** Whether entries follow a place, and one another, and none is of a term after `termMax`. */
function isRun(index: number, term: number, entries: readonly Entry[], termMax: number): boolean {
  if (!isIndex(index) || !isTerm(term) || term > termMax || (index === 0 && term > 0)) return false;
  if (entries.length > APPEND_ENTRIES_MAX || index + entries.length > INDEX_MAX) return false;
  let [lastIndex, lastTerm] = [index, Math.max(term, 1)];
  for (const entry of entries) {
    if (entry.index !== ++lastIndex || entry.term < lastTerm || entry.term > termMax) return false;
    if (!Number.isInteger(entry.term)) return false;
    lastTerm = entry.term;
    if (entry.type === "configuration") {
      if (entry.configuration.voters.length === 0 || !isWellFormed(entry.configuration)) {
        return false;
      }
    } else if (entry.type === "command" && entry.data.length > ENTRY_BYTES_MAX) return false;
  }
  return true;
}

function isRaftSnapshot({ index, term, configuration }: RaftSnapshot): boolean {
  return isIndex(index) && index > 0 && isTerm(term) && term > 0 &&
    configuration.voters.length > 0 && isWellFormed(configuration);
}
