// One ES module, with its styles inside, is the page, wherever it is shown.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    lib: { entry: "src/index.ts", formats: ["es"], fileName: () => "tokenflock.js" },
    outDir: "../tokenflock/web/static",
    emptyOutDir: true,
    target: "es2022",
    rollupOptions: { output: { codeSplitting: false } },
  },
  define: { "process.env.NODE_ENV": '"production"' },
});
