import { parseArgs, type ParseArgsConfig } from "node:util";
import { messageOf } from "../errors.ts";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<T extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T & { help: { type: "boolean" } } }>
>["values"];

/**
 * Reads a command's options. Returns the exit code instead where there is nothing more to do: help
 * was asked for and printed, or the usage is wrong and one line has said so.
 */
export function readOptions<T extends Options>(
  command: string,
  help: string,
  args: string[],
  options: T,
): Values<T> | number {
  try {
    const all = { ...options, help: { type: "boolean" as const } };
    const { values } = parseArgs({ args, options: all });
    if (!(values as { help?: boolean }).help) return values as Values<T>;
    console.log(help);
    return 0;
  } catch (error) {
    const reason = messageOf(error).split("\n", 1)[0];
    console.error(`svc ${command}: ${reason} (svc ${command} --help tells more)`);
    return 2;
  }
}
