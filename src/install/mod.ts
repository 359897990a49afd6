/**
 * Puts the program on this machine as a service, and takes it away again: a folder of its own, a
 * system user, the configuration, the state's folder, and units for systemd. Every step looks first
 * whether it is done, and leaves nothing half done behind, so that a second run goes on where one
 * broke off. In goes a `Host`, the machine. Scope: read, write, run. systemd.exec(5). @module
 */
export { DenoHost, type Host } from "./host.ts";
export {
  handOverSteps,
  type InstallOptions,
  installSteps,
  REPLACED,
  uninstallSteps,
} from "./plan.ts";
export {
  CONFIG_FILE,
  findOptionProblem,
  isPackaged,
  type Layout,
  layoutOf,
  readLayout,
  STATE_DIRECTORY,
  type Unit,
  UNITS,
  unitText,
} from "./layout.ts";
export { runSteps, type Step } from "./steps.ts";
export { extract, removeOldExtractions } from "./program.ts";
