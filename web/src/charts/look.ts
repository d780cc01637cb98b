// Colours of charts, light and dark; line styles carry the same difference, so colour is never needed.
import type uPlot from "uplot";

export interface Look {
  text: string;
  grid: string;
  now: string; // the line at the shown time
  measured: string[];
  theory: string[];
  bar: string;
}

const LIGHT: Look = {
  text: "#3c4450",
  grid: "rgba(60, 68, 80, 0.14)",
  now: "rgba(30, 35, 43, 0.55)",
  measured: ["#0072b2", "#009e73"],
  theory: ["#c45500", "#a3497c", "#6b5b00"],
  bar: "#0072b2",
};

const DARK: Look = {
  text: "#b9c1cc",
  grid: "rgba(185, 193, 204, 0.14)",
  now: "rgba(230, 233, 238, 0.6)",
  measured: ["#56b4e9", "#2fc79a"],
  theory: ["#f0a04b", "#e39cc4", "#f0e442"],
  bar: "#56b4e9",
};

export const lookOf = (dark: boolean): Look => (dark ? DARK : LIGHT);

export function axis(look: Look, size: number): uPlot.Axis {
  return {
    stroke: look.text,
    font: "11px system-ui, sans-serif",
    size,
    gap: 3,
    grid: { stroke: look.grid, width: 1 },
    ticks: { stroke: look.grid, width: 1, size: 4 },
  };
}
