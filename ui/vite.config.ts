import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { phosphorPaths } from "./build/icons.ts";
import { catalogs } from "./build/catalogs.js";

export default defineConfig({
  plugins: [catalogs(), phosphorPaths(), svelte()],
  resolve: {
    alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) },
    // Component tests mount in jsdom, which needs the browser build of Svelte.
    conditions: process.env.VITEST ? ["browser"] : undefined,
  },
  // Fixed, so that the desktop shell's development window finds it.
  server: { port: 5173, strictPort: true },
  build: {
    target: ["safari16.4", "chrome111"],
    // Everything is served from disk: a preload list would only add an inline script.
    modulePreload: false,
    // An inlined asset is a `data:` address, which the content security policy forbids.
    assetsInlineLimit: 0,
    sourcemap: false,
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts", "tests/**/*.test.ts"],
    setupFiles: ["./tests/setup.ts"],
    css: false,
    // Shared machines are slow; no test waits for time to pass.
    testTimeout: 30_000,
  },
});
