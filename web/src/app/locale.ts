// Imported before everything else: a browser started in the POSIX locale calls its language "en-US@posix",
// which its own Intl refuses, and the chart library asks for it as soon as it is loaded.

function isUsable(language: string): boolean {
  try {
    new Intl.NumberFormat(language);
    return true;
  } catch {
    return false;
  }
}

if (typeof navigator !== "undefined" && !isUsable(navigator.language)) {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}
