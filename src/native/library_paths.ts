const MULTIARCH = { x86_64: "x86_64-linux-gnu", aarch64: "aarch64-linux-gnu" } as const;

/** Where distributions have a library: for who may open no other file. */
export function pathsOf(file: string): readonly string[] {
  const own = MULTIARCH[Deno.build.arch];
  return [`/usr/lib/${own}`, `/lib/${own}`, "/usr/lib64", "/lib64", "/usr/lib"].map((folder) =>
    `${folder}/${file}`
  );
}

/** Opens the first library of some that is there and has these symbols; `null`: none is. */
export function openFirst<const T extends Deno.ForeignLibraryInterface>(
  paths: readonly string[],
  symbols: T,
): Deno.DynamicLibrary<T> | null {
  if (Deno.build.os !== "linux") return null;
  for (const path of paths) {
    try {
      return Deno.dlopen(path, symbols);
    } catch {
      continue; // Not there, of another C library, or not to be opened here.
    }
  }
  return null;
}
