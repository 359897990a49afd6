/** Bounds and times of the channel. Tests shorten the times. */
export interface ChannelLimits {
  /** From a connection until it is greeted; whoever takes longer is no member. */
  readonly handshakeMs: number;
  /** Until a member takes a connection at all. */
  readonly connectMs: number;
  /** Between two pings, and between two looks at who is silent. */
  readonly tickMs: number;
  /** A connection on which nothing came for so many ticks is given up. */
  readonly silentTicksMax: number;
  /** A message that has begun ends within so many ticks. */
  readonly messageTicksMax: number;
  /** The first wait before a member is tried again, and the longest; chance takes up to half. */
  readonly retryMsMin: number;
  readonly retryMsMax: number;
  /** Until a question is answered, the connection included. */
  readonly answerMs: number;
  /** Between two looks at the files of the certificate. */
  readonly renewMs: number;
  /** Between two tries to listen, where the address is taken. */
  readonly listenMs: number;
}

export const LIMITS: ChannelLimits = {
  handshakeMs: 4_000,
  connectMs: 1_500,
  tickMs: 1_000,
  silentTicksMax: 4,
  messageTicksMax: 60,
  retryMsMin: 50,
  retryMsMax: 1_000,
  answerMs: 5_000,
  renewMs: 10_000,
  listenMs: 1_000,
};

/** Most bytes that wait for one member; a frame that comes on top is dropped. */
export const QUEUE_BYTES_MAX = 4 << 20;
/** Most members; more than a configuration has. */
export const PEERS_MAX = 33;
/** A second node of a member's name tries more often; one that does not any more is forgotten. */
export const SECOND_TICKS = 10;
/** Most questions of one member that are answered at a time. */
export const QUESTIONS_MAX = 8;

/**
 * Most unfinished handshakes of a member's address; one more ends the oldest. So many that an honest
 * one is done before a flood from the same address has pushed it out.
 */
export const MEMBER_HANDSHAKES_MAX = 256;
/** The same of any other address, and of all the others together. */
export const SOURCE_HANDSHAKES_MAX = 8;
export const STRANGER_HANDSHAKES_MAX = 32;
/** Handshakes a second that one other address may begin, and how many at once. */
export const SOURCE_HANDSHAKES_PER_SECOND = 10;
export const SOURCE_HANDSHAKE_BURST = 32;
/** The same of all the others together. */
export const STRANGER_HANDSHAKES_PER_SECOND = 50;
export const STRANGER_HANDSHAKE_BURST = 100;
/** Other addresses whose rate is remembered; the one not seen for longest makes way. */
export const SOURCES_MAX = 1_024;
