// The kinds of controls. Each has a label, and a help text that shows while the control has the focus.
import { useSignal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useId } from "preact/hooks";
import { short } from "./words.ts";

/** Several views may live on one document: each begins its ids with something of its own. */
export const ViewName = createContext("");

function useFieldId(): string {
  return useContext(ViewName) + useId();
}

interface Common {
  label: string;
  help: string;
  test: string;
}

function Field({ label, help, id, children }: { label: string; help: string; id: string; children: ComponentChildren }) {
  return (
    <div class="tf-field" title={help}>
      <label for={id}>{label}</label>
      {children}
      <small id={`${id}-help`}>{help}</small>
    </div>
  );
}

interface NumberProps extends Common {
  value: number;
  min: number;
  max: number;
  step?: number | "any";
  whole?: boolean;
  change(value: number): void;
}

/** The number behind a control: taken when it is finished, brought into its range. */
function NumberBox({ id, test, label, value, min, max, step = "any", whole = false, change }: NumberProps & { id: string }) {
  const take = (input: HTMLInputElement): void => {
    const given = Number(input.value);
    if (input.value.trim() === "" || !Number.isFinite(given)) {
      input.value = String(value);
      return;
    }
    const bounded = Math.min(Math.max(whole ? Math.round(given) : given, min), max);
    input.value = String(bounded);
    if (bounded !== value) change(bounded);
  };
  return (
    <input
      id={id}
      type="number"
      data-testid={test}
      aria-label={label}
      aria-describedby={`${id}-help`}
      value={whole ? value : Number(short(value, 6))}
      min={min}
      max={max}
      step={step}
      onChange={(event) => take(event.currentTarget)}
    />
  );
}

export function NumberField(props: NumberProps & { children?: ComponentChildren }) {
  const id = useFieldId();
  return (
    <Field label={props.label} help={props.help} id={id}>
      <div class="tf-row">
        <NumberBox {...props} id={id} />
        {props.children}
      </div>
    </Field>
  );
}

/** A slider with its number; over several decades the slider is logarithmic. `onRelease` spares the way there. */
export function SliderField(props: NumberProps & { logarithmic?: boolean; onRelease?: boolean }) {
  const { label, help, test, min, max, whole = false, logarithmic = false, onRelease = false, change } = props;
  const id = useFieldId();
  const pending = useSignal<number | null>(null); // where the slider is while a costly change waits
  const value = pending.value ?? props.value;
  const place = logarithmic ? Math.log : (x: number): number => x;
  const back = logarithmic ? Math.exp : (x: number): number => x;
  const tidy = (x: number): number => (whole ? Math.round(x) : Number(x.toPrecision(3)));
  return (
    <Field label={label} help={help} id={id}>
      <div class="tf-row">
        <input
          type="range"
          data-testid={`${test}-slider`}
          aria-label={`${label}, slider`}
          aria-describedby={`${id}-help`}
          aria-valuetext={short(value)}
          min={place(min)}
          max={place(max)}
          step={whole && !logarithmic ? 1 : (place(max) - place(min)) / 400}
          value={place(Math.min(Math.max(value, min), max))}
          onInput={(event) => {
            const next = Math.min(Math.max(tidy(back(Number(event.currentTarget.value))), min), max);
            if (onRelease) pending.value = next;
            else if (next !== value) change(next);
          }}
          onChange={() => {
            const chosen = pending.value;
            pending.value = null;
            if (chosen !== null && chosen !== props.value) change(chosen);
          }}
        />
        <NumberBox {...props} value={value} id={id} />
      </div>
    </Field>
  );
}

interface ChoiceProps<T extends string> extends Common {
  value: T;
  options: readonly (readonly [T, string])[];
  change(value: T): void;
}

export function ChoiceField<T extends string>({ label, help, test, value, options, change }: ChoiceProps<T>) {
  const id = useFieldId();
  return (
    <Field label={label} help={help} id={id}>
      <select
        id={id}
        data-testid={test}
        aria-describedby={`${id}-help`}
        value={value}
        onChange={(event) => change(event.currentTarget.value as T)}
      >
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface ToggleProps extends Common {
  value: boolean;
  change(value: boolean): void;
}

export function ToggleField({ label, help, test, value, change }: ToggleProps) {
  const id = useFieldId();
  return (
    <div class="tf-field tf-toggle" title={help}>
      <input
        id={id}
        type="checkbox"
        data-testid={test}
        aria-describedby={`${id}-help`}
        checked={value}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      <small id={`${id}-help`}>{help}</small>
    </div>
  );
}
