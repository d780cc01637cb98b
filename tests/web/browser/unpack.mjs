// Unpack the browser that npm brought into node_modules/.unpacked: chromium, fonts, and the shared libraries a
// bare machine lacks (the package ships them for a cloud's machines; saying that this is one unpacks them).
import { mkdirSync } from "node:fs";

const place = new URL("node_modules/.unpacked", import.meta.url).pathname;
mkdirSync(place, { recursive: true });
process.env.TMPDIR = place;
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const { default: chromium } = await import("@sparticuz/chromium");
await chromium.executablePath();
