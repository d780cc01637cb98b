// The link into the clipboard.
import type { Store } from "./contract.ts";
import { copyText } from "./download.ts";
import { linkOf } from "./opening.ts";

/** Copies the link; where the clipboard is closed, the address bar still has it. */
export async function copyLink(store: Store): Promise<void> {
  if (store.source.peek().kind === "replay") {
    store.message.value =
      "A link holds settings and tokens, not a stored run: go back to the live run, or export the replay.";
    return;
  }
  const link = await linkOf(store);
  // Not location.hash: the page would follow its own link.
  history.replaceState(null, "", link);
  const length = link.length.toLocaleString("en");
  store.message.value = (await copyText(link))
    ? `Link copied (${length} characters): it opens at this very moment of the run.`
    : "The browser did not allow copying; the link is in the address bar.";
}
