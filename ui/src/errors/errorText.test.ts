import { describe, expect, it } from "vitest";
import { errorCodes, type Action, type AppError, type Page } from "@/contract/index.ts";
import { setLanguage } from "@/i18n.svelte.ts";
import { appError } from "../../tests/fixtures.ts";
import { actionText, errorSentence, errorText } from "./errorText.ts";

const catalogs = import.meta.glob<Record<string, unknown>>("../../messages/*/errors.json", { eager: true, import: "default" });
const catalog = (language: string) => catalogs[`../../messages/${language}/errors.json`] ?? {};

const full: AppError["params"] = {
  server: "Calendar", program: "npx", seconds: 3, megabytes: 8, message: "no such page", offered: "2023-01-01", tool: "Send", detail: "x",
  model: "Mistral", until: new Date(2026, 10, 30, 14, 32).getTime(), name: "mistral-x", needed: 3, free: 1.25, path: "/home/mira/old.db",
  file: "/home/mira/mcp.json", line: 12, entry: "notes", folder: "/home/mira/Old desk", rounds: 24,
};

describe.each(["en", "zh-CN"] as const)("every failure in %s", (language) => {
  it.each(errorCodes)("%s has a title and a body in the catalog", (code) => {
    const words = catalog(language);
    expect(words[`errors.${code}.title`], `errors.${code}.title`).toBeTruthy();
    expect(words[`errors.${code}.body`], `errors.${code}.body`).toBeTruthy();
  });

  it.each(errorCodes)("%s reads whole, with its values and without any", (code) => {
    setLanguage(language);
    for (const params of [full, {}, { seconds: "soon", line: null, message: "", server: 5, until: "x" } as unknown as AppError["params"]]) {
      const { title, body } = errorText(appError({ code, params }));
      for (const text of [title, body]) {
        expect(text).not.toMatch(/\{|\}|undefined|null|NaN|errors\./);
        expect(text.trim()).not.toBe("");
      }
      expect(body).toMatch(/[.。”]$/u);
      expect(title).not.toMatch(/[.。]$/u);
    }
  });
});

describe("the words of the table", () => {
  const say = (code: AppError["code"]) => errorSentence(appError({ code, params: full }), "chat");

  it("are said in English", () => {
    expect(say("server.program_missing")).toBe("Calendar cannot start. It needs Node.js, which is not on this computer.");
    expect(say("server.exited")).toBe("Calendar stopped by itself. It closed 3 seconds after it started.");
    expect(say("model.key_refused")).toBe("Mistral does not know this key. Copy it again from your account. Your message is kept.");
    expect(say("model.rate_limited")).toBe("Mistral wants a short pause. It goes on by itself at 14:32.");
    expect(say("folder.gone")).toBe("“Old desk” is not there any more. It was moved, renamed or deleted.");
    expect(say("config.broken")).toBe("A mistake in mcp.json, line 12. The last good version stays in use.");
  });

  it("are said in Chinese", () => {
    setLanguage("zh-CN");
    expect(say("server.program_missing")).toBe("“Calendar”无法启动。它需要 Node.js，这台电脑上还没有。");
    expect(say("server.no_answer")).toBe("“Calendar”没有回应。等了 3 秒，这一步已停止。");
    expect(say("model.stream_cut")).toBe("与 Mistral 的连接断了。已收到的内容都在上面。");
    expect(say("config.broken")).toBe("mcp.json 第 12 行有误。仍在使用上一个正确的版本。");
  });

  it("count one second as one", () => {
    expect(errorText(appError({ code: "server.exited", params: { server: "Calendar", seconds: 0.2 } })).body).toBe("It closed 1 second after it started.");
  });

  it("say what became of a message only in a chat", () => {
    for (const language of ["en", "zh-CN"] as const) {
      setLanguage(language);
      for (const code of errorCodes.filter((one) => one.startsWith("model."))) {
        for (const params of [full, {}]) {
          expect(errorText(appError({ code, params }), "apart").body, code).not.toMatch(/kept|saved|还在|都留着|已保存|都在上面/u);
        }
      }
    }
    setLanguage("en");
    expect(errorText(appError({ code: "model.offline", params: full }), "chat").body).toBe("There is no way to it right now. Your message is kept.");
    expect(errorText(appError({ code: "model.no_answer", params: full }), "chat").body).toBe("Nothing came for 3 seconds. What had arrived is kept.");
    expect(errorText(appError({ code: "model.stream_cut", params: full }), "apart").body).toBe("Its answer broke off in the middle.");
  });

  it("tell a key that is gone from one that is wrong", () => {
    expect(errorSentence(appError({ code: "model.key_refused", params: { model: "Mistral", missing: "until_quit" } }))).toBe("Mistral needs its key again. It was kept only until you quit.");
  });

  it("name our own tools in each language", () => {
    const failed = appError({ code: "tool.timeout", params: { server: "Files", tool: "read_file" } });
    expect(errorText(failed).title).toBe("“Read a document” took too long");
    setLanguage("zh-CN");
    expect(errorText(failed).title).not.toContain("read_file");
    expect(errorText(appError({ code: "tool.timeout", params: { server: "Shop", tool: "read_file" } })).title).toContain("read_file");
  });

  it("name our own connection in each language", () => {
    const off = appError({ code: "server.off", params: { server: "Files" } });
    expect(errorText(off).title).toBe("Files is off");
    setLanguage("zh-CN");
    expect(errorText(off).title).toBe("“文件”已关闭");
  });
});

describe("a value somebody else wrote", () => {
  const title = (server: string) => errorText(appError({ code: "server.off", params: { server } })).title;

  it("stays on one line and bounded", () => {
    expect(title("Cal\n\n\u0007endar")).toBe("Cal endar is off");
    expect([...title("x".repeat(5000))].length).toBeLessThan(240);
  });

  it("cannot turn the sentence around", () => {
    expect(title("\u202eevil")).toBe("evil is off");
    expect(title("ملاحظات")).toBe("\u2068ملاحظات\u2069 is off");
  });
});

describe("the buttons", () => {
  const actions: Action[] = [
    { type: "retry" }, { type: "continue" }, { type: "restartServer", server: "s" }, { type: "showLog", server: "s" },
    ...(["chat", "connections", "permissions", "activity", "models", "settings"] satisfies Page[]).map((page) => ({ type: "openPage" as const, page })),
    { type: "chooseFolder", server: "s" }, { type: "removeFolder", server: "s", path: "/x" }, { type: "checkKey", model: "q" },
    { type: "useModel", model: "q" }, { type: "waitUntil", at: 0 }, { type: "openFile", path: "/x/mcp.json", line: null },
    { type: "openFile", path: "/x/mcp.json", line: 3 }, { type: "openUrl", url: "https://nodejs.org/en" },
  ];

  it.each(["en", "zh-CN"] as const)("each have a label in %s", (language) => {
    setLanguage(language);
    for (const action of actions) expect(actionText(action)).not.toMatch(/^$|\{|undefined|errors\./);
  });

  it("say exactly what they do beside their error", () => {
    expect(actionText({ type: "retry" }, appError({ code: "model.stream_cut" }))).toBe("Start over");
    expect(actionText({ type: "retry" }, appError({ code: "keychain.locked" }))).toBe("Unlock and try again");
    expect(actionText({ type: "openUrl", url: "https://nodejs.org" }, appError({ code: "server.program_missing", params: full }))).toBe("Get Node.js");
    expect(actionText({ type: "openUrl", url: "https://docs.astral.sh/uv" }, appError({ code: "server.program_missing", params: { program: "/usr/bin/uvx" } }))).toBe("Get uv");
    expect(actionText({ type: "useModel", model: "q" }, undefined, () => "Qwen")).toBe("Use Qwen");
    expect(actionText({ type: "openFile", path: "/x/mcp.json", line: null })).toBe("Open mcp.json");
    expect(actionText({ type: "chooseFolder", server: "files" }, appError({ code: "folder.gone" }))).toBe("Choose it again");
  });
});
