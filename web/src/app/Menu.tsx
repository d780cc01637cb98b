// A button that opens a small panel under itself. Escape, or a click elsewhere, closes it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";
import type { Panel, Ui } from "./ui.ts";

interface MenuProps {
  ui: Ui;
  panel: Exclude<Panel, null>;
  icon: IconName;
  label: string;
  title: string;
  children: ComponentChildren;
}

export function Menu({ ui, panel, icon, label, title, children }: MenuProps) {
  const place = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const open = ui.panel.value === panel;
  useEffect(() => {
    if (!open) return;
    const outside = (event: PointerEvent): void => {
      const inside = place.current !== null && event.composedPath().includes(place.current);
      if (!inside) ui.panel.value = null;
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const leave = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    ui.panel.value = null;
    button.current?.focus();
  };
  return (
    <div ref={place} class="tf-menu" onKeyDown={leave}>
      <button
        ref={button}
        type="button"
        data-testid={panel}
        title={title}
        aria-expanded={open}
        onClick={() => (ui.panel.value = open ? null : panel)}
      >
        <Icon name={icon} />
        <span>{label}</span>
      </button>
      {open && <div class="tf-menu-panel">{children}</div>}
    </div>
  );
}
