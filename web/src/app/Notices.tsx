// Sentences to the reader that come and go: messages, and work that takes a while.
import { useEffect } from "preact/hooks";
import type { Store } from "./contract.ts";
import { Icon } from "./icons.tsx";

const SHOWN = 9000; // ms

export function Notices({ store }: { store: Store }) {
  return (
    <div class="tf-notices">
      <Progress store={store} />
      <Message store={store} />
    </div>
  );
}

function Message({ store }: { store: Store }) {
  const text = store.message.value;
  useEffect(() => {
    if (text === null) return;
    const timer = setTimeout(() => (store.message.value = null), SHOWN);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div role="status" aria-live="polite" data-testid="message">
      {text !== null && (
        <div class="tf-toast">
          <span>{text}</span>
          <button type="button" aria-label="Close the message" onClick={() => (store.message.value = null)}>
            <Icon name="close" />
          </button>
        </div>
      )}
    </div>
  );
}

function Progress({ store }: { store: Store }) {
  const busy = store.busy.value;
  if (busy === null) return null;
  return (
    <div class="tf-toast" data-testid="busy">
      <span>{busy.label}</span>
      <progress max={1} aria-label={busy.label} {...(busy.fraction === null ? {} : { value: busy.fraction })} />
      <button type="button" class="tf-plain" onClick={() => busy.cancel()}>
        Cancel
      </button>
    </div>
  );
}
