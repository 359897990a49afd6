/** What the pages of tokens and webhooks say in English. */

export const access = {
  tokens: {
    one: "token",
    lead: "Programs show a token instead of signing in; each has its own, which can be revoked.",
    add: "Add token",
    edit: "Edit token",
    empty: "No token yet.",
    nameHint: "The audit log calls whoever sends it so.",
    ends: "Valid until",
    endsIn: "Valid for",
    periods: {
      stays: "As it is",
      forGood: "For good",
      30: "30 days",
      90: "90 days",
      365: "A year",
    },
    ended: "Ended",
    used: "Last used",
    never: "Never",
    made: (name: string) => `Token ${name}`,
    madeText: "Copy it now: it is kept nowhere and shown this once.",
    revoke: "Revoke",
    revokeTitle: (name: string) => `Revoke ${name}?`,
    revokeText: "Whoever uses it is refused at once, on every node. This can't be undone.",
  },
};
