/** What is said of backups and of the cluster in English. */

export const backup = {
  title: "Backup",
  lead:
    "All that is set here as one file: settings, lists, rules, records, groups, devices, schedules, users, tokens, webhooks.",
  passphrase: "Passphrase",
  passphraseHint:
    "With it alone what is secret is in the file, sealed by it: passwords, tokens, addresses and keys of webhooks. At least 8 characters.",
  download: "Download backup",
  daily:
    "Each node keeps a copy of each of the last 7 days by itself, without what is secret: in the folder backups beside its store.",
  restore: "Restore",
  restoreLead: "The file takes the place of all that is set here. You see before what differs.",
  file: "File of a backup",
  noBackup: "That is no backup: choose a file that svc made.",
  madeAt: (time: string, version: string) => `Made ${time} by version ${version}.`,
  openWith:
    "The passphrase that it was made with; without it passwords, tokens and webhooks stay as they are.",
  compare: "Compare",
  differs: "What would change",
  same: "All is as it is in the file.",
  columns: {
    part: "Part",
    added: "Added",
    changed: "Changed",
    removed: "Removed",
    kept: "Kept",
    left_out: "Left out",
  },
  kinds: {
    added: "added",
    changed: "changed",
    removed: "removed",
    left_out: "left out",
  },
  /** Why one is left out, by its type. */
  lacks: {
    user: "without its password",
    token: "without its secret: make it anew",
    webhook: "without its address and key: add it anew",
  },
  others: (count: string) => `and ${count} more`,
  confirmTitle: "Replace everything?",
  confirmText:
    "What is set here and not in the file goes away. Download a backup first, if you may want to come back.",
  done: "Restored",
};

export const cluster = {
  lead: "Nodes that share one configuration.",
  none: "This node is in no cluster; the configuration file makes it join one.",
  state: "State",
  states: {
    leader: "leader",
    follower: "follower",
    learner: "learner",
    candidate: "candidate",
    unknown: "unknown",
    stopped: "stopped",
  },
  thisNode: "This node",
  leader: "Leader",
  term: "Term",
  version: "Configuration",
  contact: "Leader last heard",
  members: "Members",
  address: "Address",
  membership: "Membership",
  memberships: { voter: "votes", learner: "learns", configured: "configured only" },
  reachable: "Reachable",
  yes: "Yes",
  no: "No",
  lag: "Behind",
  witness: "Witness",
  remove: (node: string) => `Remove ${node}`,
  removeText: "It takes no changes any more, and comes back with an empty store only.",
  promote: {
    title: "Take over",
    text: "This node becomes the leader of a new cluster, with its own configuration.",
    force: "Taking over all the same makes two clusters.",
  },
  demote: {
    title: "Join the other cluster",
    text: "This node's configuration is replaced by that of the other cluster.",
    force: "Joining all the same gives up what is here alone.",
  },
  anyway: "All the same",
  done: "Done",
};
