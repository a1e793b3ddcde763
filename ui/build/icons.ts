import { readFile } from "node:fs/promises";
import type { Plugin } from "vite";

/**
 * Lets `import d from "@phosphor-icons/core/assets/regular/eye.svg?path"` give the icon's path data.
 * Only the imported icons reach the bundle, and a component can draw them without setting markup.
 * An icon that is not made of plain paths fails the build.
 */
export function phosphorPaths(): Plugin {
  return {
    name: "phosphor-paths",
    enforce: "pre",
    resolveId: {
      filter: { id: /\.svg\?path$/ },
      async handler(source, importer) {
        const file = await this.resolve(source.slice(0, -"?path".length), importer, { skipSelf: true });
        if (!file) throw new Error(`There is no icon ${source}`);
        return `\0icon:${file.id.split("?")[0]}`;
      },
    },
    load: {
      filter: { id: /^\0icon:/ },
      async handler(id) {
        const file = id.slice("\0icon:".length);
        const svg = await readFile(file, "utf8");
        const paths = [...svg.matchAll(/<path d="([^"]+)"\s*\/>/g)].map((found) => found[1]);
        const rest = svg.replace(/<path d="[^"]+"\s*\/>/g, "").replace(/<\/?svg[^>]*>/g, "").trim();
        if (paths.length === 0 || rest !== "") throw new Error(`${file} is not made of plain paths`);
        return `export default ${JSON.stringify(paths.join(""))};`;
      },
    },
  };
}
