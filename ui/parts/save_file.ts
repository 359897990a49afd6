/** Has the browser keep data as a file. */
export function saveFile(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  URL.revokeObjectURL(url);
}
