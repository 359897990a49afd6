/** Tokens of the event queue: listeners count up from 0, upstream sockets carry this bit. */
export const UPSTREAM_TOKEN = 1 << 30;
export const WAKE_TOKEN = UPSTREAM_TOKEN - 1;
/** Somebody connects to a listener of the runtime's. */
export const CONNECT_TOKEN = UPSTREAM_TOKEN - 2;
/** Signatures have been checked. Those of listeners are below. */
export const CHECKED_TOKEN = UPSTREAM_TOKEN - 3;
