// What the scene is drawn with besides the colours of tokens.
import { type Colour, fromHex } from "./palette.ts";

export interface Theme {
  dark: boolean;
  background: Colour;
  ink: Colour; // text and strong lines
  faint: Colour; // grids
  sphere: [Colour, Colour]; // middle and rim of the translucent sphere
  accent: Colour; // selection, the density on the circle
}

const LIGHT: Theme = {
  dark: false,
  background: fromHex("FBFBFC"),
  ink: fromHex("1E232B"),
  faint: fromHex("A9B2BF"),
  sphere: [fromHex("F7F9FB"), fromHex("DCE4EE")],
  accent: fromHex("3D5A80"),
};

const DARK: Theme = {
  dark: true,
  background: fromHex("11151B"),
  ink: fromHex("E6E9EE"),
  faint: fromHex("4C5767"),
  sphere: [fromHex("293645"), fromHex("19212B")],
  accent: fromHex("9DBCE0"),
};

export const themeOf = (dark: boolean): Theme => (dark ? DARK : LIGHT);
export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
