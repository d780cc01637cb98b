// The pictures on buttons, drawn as paths so that they follow the colour of the text.
const PATHS = {
  play: "M8 5v14l11-7z",
  pause: "M7 5h4v14H7zM13 5h4v14h-4z",
  step: "M6 5v14l8-7zM16 5h3v14h-3z",
  back: "M18 5v14l-8-7zM5 5h3v14H5z",
  restart: "M12 5a7 7 0 1 1-6.7 5h2.2A5 5 0 1 0 12 7v3L7 6l5-4z",
  dice: "M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zm0 2v14h14V5zm3 1.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zm8 8a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zm-4-4a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
  link: "M10.6 13.4a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1.2 1.2 1.4 1.4 1.2-1.2a2 2 0 1 1 2.9 2.9l-3 3a2 2 0 0 1-2.9 0zm2.8-2.8a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1.2-1.2-1.4-1.4-1.2 1.2a2 2 0 1 1-2.9-2.9l3-3a2 2 0 0 1 2.9 0z",
  export: "M11 3h2v9l3.5-3.5 1.4 1.4L12 15.8 6.1 9.9l1.4-1.4L11 12zM4 17h2v2h12v-2h2v4H4z",
  folder: "M3 5h7l2 2h9v12H3zm2 4v8h14V9z",
  sun: "M12 7a5 5 0 1 1 0 10 5 5 0 0 1 0-10zM11 1h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4zM4.9 3.5l2.8 2.8-1.4 1.4-2.8-2.8zm12.8 12.8 2.8 2.8-1.4 1.4-2.8-2.8zM19.1 3.5l1.4 1.4-2.8 2.8-1.4-1.4zM6.3 16.3l1.4 1.4-2.8 2.8-1.4-1.4z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  auto: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zm0 2v14a7 7 0 0 0 0-14z",
  close: "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6l5.6-5.6L5 6.4z",
  sliders: "M4 6h9v2H4zm13 0h3v2h-3zM14 4h2v6h-2zM4 16h3v2H4zm7 0h9v2h-9zM8 14h2v6H8zM4 11h16v2H4z",
  tick: "M9.5 17.6 4 12.1l1.5-1.5 4 4 9-9L20 7.1z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="tf-icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="currentColor" />
    </svg>
  );
}
