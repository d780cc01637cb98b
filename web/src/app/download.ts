// Files and the clipboard.

/** Offer a blob as a file. */
export function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  // The download has its own reference once it began; a minute is ample.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function fileName(title: string, extension: string): string {
  const plain = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${plain === "" ? "tokenflock" : plain}.${extension}`;
}

/** Whether the text could be copied. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
