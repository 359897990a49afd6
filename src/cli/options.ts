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
  const read = readArguments(command, help, args, options, false);
  return typeof read === "number" ? read : read.values;
}

/** As `readOptions`, of a command that takes one argument beside them, which its usage calls so. */
export function readOperand<T extends Options>(
  command: string,
  help: string,
  args: string[],
  options: T,
  name: string,
): { readonly values: Values<T>; readonly operand: string } | number {
  const read = readArguments(command, help, args, options, true);
  if (typeof read === "number") return read;
  const { values, positionals: [operand, ...more] } = read;
  if (operand !== undefined && more.length === 0) return { values, operand };
  return wrongUsage(command, `it takes one ${name}`);
}

/** As `readOptions`, of a command that looks at its further arguments itself. */
export function readOperands<T extends Options>(
  command: string,
  help: string,
  args: string[],
  options: T,
): { readonly values: Values<T>; readonly operands: readonly string[] } | number {
  const read = readArguments(command, help, args, options, true);
  return typeof read === "number" ? read : { values: read.values, operands: read.positionals };
}

function readArguments<T extends Options>(
  command: string,
  help: string,
  args: string[],
  options: T,
  allowPositionals: boolean,
): { readonly values: Values<T>; readonly positionals: readonly string[] } | number {
  try {
    const all = { ...options, help: { type: "boolean" as const } };
    const { values, positionals } = parseArgs({ args, options: all, allowPositionals });
    if (!(values as { help?: boolean }).help) return { values: values as Values<T>, positionals };
    console.log(help);
    return 0;
  } catch (error) {
    return wrongUsage(command, messageOf(error).split("\n", 1)[0]);
  }
}

/** Says in one line what is wrong with the usage; the exit code of that. */
export function wrongUsage(command: string, reason: string): number {
  console.error(`svc ${command}: ${reason} (svc ${command} --help tells more)`);
  return 2;
}
