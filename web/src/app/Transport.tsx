// Time: play, step, go back, and where we are.
import { stepOf } from "../spec/size.ts";
import type { Store } from "./contract.ts";
import { type IconName, Icon } from "./icons.tsx";
import { timeText } from "./words.ts";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000];

export function Transport({ store }: { store: Store }) {
  return (
    <div class="tf-transport" role="group" aria-label="Time">
      <Buttons store={store} />
      <Scrubber store={store} />
      <Remark store={store} />
      <Speed store={store} />
    </div>
  );
}

/** What one would otherwise wonder about: a slow machine, a run that stopped by itself. */
function Remark({ store }: { store: Store }) {
  if (store.source.value.kind === "replay") return null;
  const speed = store.speed.value;
  const { t1 } = store.spec.value.solve;
  const ended = Math.abs(store.frame.value.time - t1) < stepOf(store.spec.value) / 2;
  if (store.playing.value && speed >= 1 && store.pace.value < 0.9 * speed) {
    const made = `${store.pace.value} of ${speed}`;
    return (
      <small class="tf-note" data-testid="remark" title="So many tokens take this machine longer; time goes slower instead of jerking">
        {made} steps
      </small>
    );
  }
  if (store.playing.value || !ended) return null;
  return (
    <small class="tf-note" data-testid="remark" title="The run has reached its end, t1; play goes on beyond">
      end of run
    </small>
  );
}

export function togglePlaying(store: Store): void {
  if (store.playing.peek()) store.playing.value = false;
  else store.playFromHere();
}

function Buttons({ store }: { store: Store }) {
  const playing = store.playing.value;
  return (
    <div class="tf-buttons">
      <Button icon="restart" label="Restart" keys="r" test="restart" act={() => store.restart()} />
      <Button icon="back" label="One frame back" keys="," test="back" act={() => store.stepBack()} />
      <button
        type="button"
        class="tf-play"
        data-testid="play"
        title={playing ? "Pause (space)" : "Play (space)"}
        aria-label={playing ? "Pause" : "Play"}
        onClick={() => togglePlaying(store)}
      >
        <Icon name={playing ? "pause" : "play"} />
      </button>
      <Button icon="step" label="One step" keys="." test="step" act={() => store.stepOnce()} />
    </div>
  );
}

interface ButtonProps {
  icon: IconName;
  label: string;
  keys: string;
  test: string;
  act(): void;
}

function Button({ icon, label, keys, test, act }: ButtonProps) {
  return (
    <button type="button" data-testid={test} title={`${label} (${keys})`} aria-label={label} onClick={act}>
      <Icon name={icon} />
    </button>
  );
}

function Scrubber({ store }: { store: Store }) {
  const { value: length } = store.length;
  const text = timeText(store);
  return (
    <div class="tf-scrubber">
      <input
        type="range"
        data-testid="scrubber"
        aria-label="Time"
        aria-valuetext={text}
        title="Drag to look back; playing from an earlier time starts again from there"
        min={0}
        max={Math.max(length - 1, 1)}
        step={1}
        disabled={length < 2}
        value={store.position.value}
        onInput={(event) => store.show(Number(event.currentTarget.value))}
      />
      <output data-testid="time">{text}</output>
    </div>
  );
}

function Speed({ store }: { store: Store }) {
  const speed = store.speed.value;
  const replay = store.source.value.kind === "replay";
  const choices = SPEEDS.includes(speed) ? SPEEDS : [...SPEEDS, speed].sort((a, b) => a - b);
  const unit = replay ? "x" : speed === 1 ? " step" : " steps";
  return (
    <label class="tf-speed" title={replay ? "Speed of the replay" : "Steps computed for every displayed frame"}>
      <span>Speed</span>
      <select
        data-testid="speed"
        aria-label={replay ? "Speed of the replay" : "Steps per displayed frame"}
        value={String(speed)}
        onChange={(event) => (store.speed.value = Number(event.currentTarget.value))}
      >
        {choices.map((choice) => (
          <option key={choice} value={String(choice)}>
            {choice === speed ? `${choice}${unit}` : choice}
          </option>
        ))}
      </select>
    </label>
  );
}
